"""Random programs for as long as one likes: `python -m tests.property.fuzz --minutes 30`, or `make fuzz MINUTES=30`.

Each round draws programs from a new seed and runs them on both interpreters and as native code on one thread and two,
against Python. A program that behaves differently is shrunk to a few lines and written to `tests/programs/`, where the
next run of the tests finds it; the search goes on with the next seed, and ends with status 1 if anything was found.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

import tests.conftest  # noqa: F401  (the environment of the tests, before the package is imported)
from tests.arrays import Array

PROGRAMS = Path(__file__).parents[1] / "programs"
HEAD = '''"""Found by `make fuzz`: {title}."""

import numpy as np  # noqa: F401

from tests.arrays import Array  # noqa: F401
from tests.corpus import Case, program
from tests.property.random_programs import Overlapping, made  # noqa: F401


@program([Case(lambda: made(({recipes},)))], sums=1, opaque=None, fell_back=None)
{source}
'''


def recipes_text(recipes: tuple[Any, ...]) -> str:
    """The recipes as an expression."""

    def text(recipe: Any) -> str:
        if not isinstance(recipe, Array):
            return repr(recipe)
        return f"Array({', '.join(repr(getattr(recipe, one.name)) for one in fields(recipe))})"

    return ", ".join(map(text, recipes))


def search(seed: int, examples: int) -> str | None:
    """The text of a corpus file for the smallest program that differs among those of a seed; None if none does."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded

    from tests.property.generated import STAGES, check
    from tests.property.random_programs import Program, programs

    failing: list[tuple[Program, BaseException]] = []

    @seeded(seed)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def run(program: Program) -> None:
        try:
            for stage in STAGES:
                check(stage, program.source, program.args, sums=1)
        except BaseException as error:
            failing.append((program, error))
            raise

    try:
        run()
    except KeyboardInterrupt:
        raise
    except BaseException:
        smallest, error = failing[-1]  # the last to be tried again is the shrunk one
        title = " ".join(f"{type(error).__name__}: {error}".split())[:80].replace('"', "'")
        return HEAD.format(title=title, recipes=recipes_text(smallest.recipes), source=smallest.source.strip())
    return None


def main(
    minutes: Annotated[float, typer.Option(help="How long to search.")] = 2.0,
    seed: Annotated[int, typer.Option(help="The seed of the first round.")] = 0,
    examples: Annotated[int, typer.Option(help="Programs a round.")] = 50,
) -> None:
    end = time.monotonic() + 60 * minutes
    found = rounds = 0
    while time.monotonic() < end:
        text = search(seed + rounds, examples)
        rounds += 1
        if text is not None:
            found += 1
            path = PROGRAMS / f"found_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
            path.write_text(text, encoding="utf-8")
            typer.echo(f"seed {seed + rounds - 1}: {path.name}")
    typer.echo(f"{rounds} rounds of {examples} programs, {found} differences")
    raise typer.Exit(1 if found else 0)


if __name__ == "__main__":
    typer.run(main)
