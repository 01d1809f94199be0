"""The benchmark programs, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_py.bench.program import Program
from parakeet_py.bench.programs import (
    black_scholes,
    fractals,
    geometry,
    graphs,
    kmeans,
    linear_algebra,
    nbody,
    reductions,
    stencils,
)

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        black_scholes.PROGRAM,
        *reductions.PROGRAMS,
        *kmeans.PROGRAMS,
        *fractals.PROGRAMS,
        nbody.PROGRAM,
        *stencils.PROGRAMS,
        *linear_algebra.PROGRAMS,
        *geometry.PROGRAMS,
        graphs.PROGRAM,
    )
}


def select(names: Iterable[str]) -> list[Program]:
    """The programs of the given names, in the order asked for; all of them for no names.

    Raises
    ------
    KeyError
        With the names to choose from, when a name is unknown.
    """
    names = list(names)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        raise KeyError(f"no benchmark program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    return [PROGRAMS[name] for name in names] or list(PROGRAMS.values())


__all__ = ["PROGRAMS", "select"]
