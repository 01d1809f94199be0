"""Random programs for as long as one likes: `python -m tests.property.fuzz --minutes 30`, or `make fuzz MINUTES=30`.

Each round draws programs from a new seed and runs them against Python in one of several ways, in turn: on both
interpreters and as native code on one thread and two; compiled from their bytecode alone; on an emulated GPU; on teams
of devices; with arrays that live on devices; with long arguments on several threads against one; in a process that
finds the code in the disk cache; several times on the same arguments, with other threads and devices each time; as
machine code that checks what it does to memory; a hundred times, for reference counts; as exact code, without
tolerances; through Dask arrays; in a series of calls that are compiled when that pays.
`--family mixed` draws programs about scalars of different types alone (`mixed_scalars`), `--family general` all others.
A program that behaves differently is made smaller and written to `tests/programs/` (or `--into` a folder), where the
next run of the tests finds it; the search goes on, and ends with status 1 if anything was found. What has been run is
told every minute, and when the search is interrupted. A program that ends the process is found as well (`crashes`).
"""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import os
import re
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import tests.conftest  # noqa: F401  (the environment of the tests, before the package is imported)
from tests.arrays import Array
from tests.property.crashes import in_process, load, save

if TYPE_CHECKING:
    from tests.property.random_programs import Program

PROGRAMS = Path(__file__).parents[1] / "programs"
WAYS = (
    "stages",
    "bytecode",
    "emulated",
    "team",
    "resident",
    "threads",
    "cache",
    "again",
    "checked",
    "counts",
    "exact",
    "dask",
    "pays",
)
FAMILIES = ("all", "general", "mixed")
COUNTED = ("rounds", "programs", "calls", "loaded", "found", "fallbacks", "slowest")
HEAD = '''"""Found by `make fuzz` ({way}): {title}."""

import bisect, collections, copy, functools, heapq, itertools, math, operator, types  # noqa: E401, F401
from math import inf, nan  # noqa: F401

import numpy as np  # noqa: F401

from tests.arrays import Array  # noqa: F401
from tests.corpus import Case, program
from tests.property.recipes import Attributes, Nested, Overlapping, Same, made  # noqa: F401


@program([{cases}], sums={sums}, ulp={ulp}, opaque=None, fell_back=None, order=False)
{source}
'''


def recipes_text(recipes: tuple[Any, ...]) -> str:
    """The recipes as an expression."""
    from tests.property.recipes import Attributes, Nested

    def text(recipe: Any) -> str:
        if isinstance(recipe, tuple):
            return f"({''.join(text(one) + ', ' for one in recipe)})"
        if isinstance(recipe, type):
            return f"np.{recipe.__name__}" if issubclass(recipe, np.generic) else recipe.__name__
        if isinstance(recipe, np.complexfloating):
            return f"np.{type(recipe).__name__}({text(complex(recipe))})"
        if isinstance(recipe, complex):
            return f"complex({recipe.real!r}, {recipe.imag!r})"
        if not isinstance(recipe, Array | Attributes | Nested):
            return repr(recipe)
        return f"{type(recipe).__name__}({', '.join(text(getattr(recipe, one.name)) for one in fields(recipe))})"

    return ", ".join(map(text, recipes))


def runs_of(way: str, number: int) -> dict[str, Any] | None:
    """How a round runs programs; None for every stage."""
    from parakeet_py import options
    from tests.backends import accelerated
    from tests.property.generated import run_on
    from tests.teams import PLACES, TEAMS, cut_at

    if way in ("stages", "threads", "counts", "dask", "pays", "resident"):
        return None
    if way in ("emulated", "native-1", "native-2", "checked", "typed_ir", "imp", "untyped_ir"):
        return {way: lambda f, args: run_on(way, f, args)}
    if way == "exact":
        return {backend: functools.partial(run_on, backend) for backend in ("native-1", "native-2")}
    if way in ("bytecode", "cache"):
        return {"native-1": lambda f, args: run_on("native-1", f, args)}
    devices, place = TEAMS[number % len(TEAMS)], list(PLACES)[number % len(PLACES)]

    def on_team(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with options(devices=devices, check=True), cut_at(place):
            return accelerated(f)(*args)

    if way == "again":
        on = {backend: functools.partial(run_on, backend) for backend in ("native-1", "emulated", "native-2")}
        orders = list(itertools.permutations({**on, "team": on_team}.items(), 3))
        return dict(orders[number * 7 % len(orders)])
    assert way == "team", way
    return {"team": on_team}


def family(name: str, shared: bool) -> Any:
    """The strategy that draws programs of a family; `shared`: for threads too."""
    from tests.property.mixed_scalars import mixed_programs
    from tests.property.random_programs import programs

    general, mixed = programs(shared=shared), mixed_programs()
    return {"general": general, "mixed": mixed, "all": general | general | general | mixed}[name]


class Search:
    """Runs programs, keeps those that differ, and counts what was run and what fell back to Python."""

    def __init__(self, examples: int, into: Path, every: float, family: str = "all") -> None:
        self.examples, self.into, self.every, self.family = examples, into, every, family
        self.rounds = self.programs = self.calls = self.loaded = self.found = 0
        self.began = self.told = time.monotonic()
        self.runs: dict[str, Any] | None = None
        self.cache = Path(tempfile.mkdtemp(prefix="parakeet-fuzz-"))
        self.way, self.number = WAYS[0], 0
        self.fallbacks: Counter[str] = Counter()
        self.slowest = 0.0, ""

    @property
    def running(self) -> Path:
        """The file with the program that is being run."""
        return self.cache / "running.py"

    def totals(self) -> str:
        """What has been run so far."""
        wall = time.monotonic() - self.began
        cpu = sum(os.times()[:4])
        return (
            f"{wall:.0f} s ({cpu:.0f} s of CPU): {self.rounds} rounds, {self.programs} programs, {self.calls} calls, "
            f"{self.found} differences"
        )

    def tell(self) -> None:
        if time.monotonic() - self.told >= self.every:
            self.told = time.monotonic()
            typer.echo(self.totals())

    def keep(self, seed: int, program: Program, error: Exception) -> None:
        """Write a program that differs to a file of the corpus."""
        text = self.text(program, error)
        path = self.into / f"found_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
        path.write_text(text, encoding="utf-8")
        self.found += 1
        typer.echo(f"seed {seed}, {self.way}: {path.name}: {kind_of(error)}")

    def round(self, seed: int, way: str) -> None:
        """Run programs of a seed; of those that differ keep one for each way to do so."""
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded

        from tests.property.generated import ends, function
        from tests.property.smaller import smaller

        self.runs, self.way, self.number = runs_of(way, seed), way, seed
        seen: set[str] = set()  # Hypothesis tries about every second one again
        found: set[str] = set()
        kept: list[Program] = []

        @seeded(seed)
        @settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(family(self.family, way == "threads"))
        def run(program: Program) -> None:
            if repr(program) in seen:
                return
            seen.add(repr(program))
            error = self.check(program, count=True)
            kind = kind_of(error)
            if error is not None and kind not in found:
                found.add(kind)
                small = smaller(program, lambda one: ends(one) and kind_of(self.check(one)) == kind)
                self.keep(seed, small, self.check(small) or error)
            if error is None and way == "cache":
                kept.append(program)

        try:
            run()
        except Exception:  # of what makes programs; `check` lets none out
            self.found += 1
            typer.echo(f"seed {seed}, {way}: no program could be made: {traceback.format_exc(limit=-3)}")
        for program, error in zip(kept, self.again(kept), strict=True) if kept else ():
            if error is not None and not varies(program, function(program.source)):
                small = smaller(
                    program, lambda one: ends(one) and self.check(one) is None and self.again([one])[0] is not None
                )
                self.keep(seed, small, self.again([small])[0] or error)
        self.rounds += 1
        gc.collect()

    def check(self, program: Program, *, count: bool = False) -> Exception | None:
        """What is wrong with a program, if anything is."""
        from parakeet_py import options
        from tests.backends import forget_accelerated
        from tests.property.generated import function

        forget_accelerated()
        self.tell()
        save(self.cache / "program", (program, self.way))
        self.running.write_text(f"# {self.way}\n# {self.calls_of(program)}\n{program.source}", encoding="utf-8")
        f = function(program.source, known=self.way != "bytecode")
        began = time.process_time()
        on_disk = {"cache": True, "cache_dir": os.fspath(self.cache)} if self.way == "cache" else {}
        try:
            with options(**on_disk):
                reasons = self.reasons(program, f)
        except Exception as error:
            return None if varies(program, f) else error
        self.slowest = max(self.slowest, (time.process_time() - began, program.source))
        if count:
            self.programs += 1
            self.calls += len(program.calls()) * len(self.runs or "1234")
            self.fallbacks.update({reason.split("\n")[0].partition(": ")[2] for reason in reasons})
        return None

    def reasons(self, program: Program, f: Callable[..., Any]) -> list[str]:
        """Compare; why it ran in Python."""
        from parakeet_py import options
        from tests.property.generated import check_again, check_program, check_threads
        from tests.property.reference_counts import check_counts

        if self.way == "threads":
            return check_threads(program, f)
        if self.way == "counts":
            return check_counts(program, f)
        if self.way == "again":
            return check_again(program, list((self.runs or {}).values()), f)
        if self.way == "dask":
            from tests.property.on_dask import check_on_dask

            return check_on_dask(program, f, self.number)
        if self.way == "pays":
            from tests.property.paying import check_paying

            return check_paying(program, f, self.number)
        if self.way == "resident":
            from tests.property.on_devices import check_on_devices

            return check_on_devices(program, f, self.number)
        if self.way == "exact":
            with options(exact=True):
                return check_program(replace(program, sums=0, ulp=0), self.runs, f)
        return check_program(program, self.runs, f)

    def again(self, programs: list[Program]) -> list[Exception | None]:
        """What is wrong with programs in another process, which loads what has been compiled here."""
        from tests.property.apart import again

        try:
            errors, loaded = again(programs, self.cache)
        except RuntimeError as error:  # the process has crashed
            return [error] if len(programs) == 1 else [self.again([one])[0] for one in programs]
        self.loaded += loaded
        return errors

    def calls_of(self, program: Program) -> tuple[tuple[Any, ...], ...]:
        return (program.large or program.recipes,) if self.way == "threads" else program.calls()

    def text(self, program: Program, error: Exception) -> str:
        title = " ".join(f"{type(error).__name__}: {error}".split())[:80].replace('"', "'").replace("\\", "/")
        cases = ", ".join(f"Case(lambda: made(({recipes_text(one)},)))" for one in self.calls_of(program))
        source, sums, ulp = program.source.strip(), program.sums, program.ulp
        return HEAD.format(way=self.way, title=title, cases=cases, source=source, sums=sums, ulp=ulp)


def varies(program: Program, f: Callable[..., Any]) -> bool:
    """Does the plain program itself do now this and now that? (NumPy leaves what it has not computed in an array whose
    elements it converts, when `r **= -1` of integers raises; and makes uint32 of floats that these do not hold four at
    a time in one way, and the others in another.)"""
    from tests.corpus import Difference, assert_same, outcome
    from tests.property.recipes import made

    def with_gaps(one: Any) -> Any:
        return replace(one, layout="stepped") if isinstance(one, Array) and one.dtype == "u4" else one

    for recipes in program.calls():
        try:
            first = outcome(f, made(recipes))
            for _ in range(3):
                assert_same(first, outcome(f, made(recipes)), order=False)
        except Difference:
            return True
        apart = tuple(map(with_gaps, recipes))
        if apart != tuple(recipes) and texts_of(outcome(f, made(apart)).args) != texts_of(first.args):
            return True
    return False


def texts_of(given: Sequence[Any]) -> list[str]:
    """The elements of arrays, wherever they lie."""
    return [repr(one.tolist()) for one in given if isinstance(one, np.ndarray)]


def kind_of(error: Exception | None) -> str:
    """What two failures have in common that are taken for one."""
    return "" if error is None else re.sub(r"\d+|<.*?>", "", f"{type(error).__name__}: {error}".split("\n")[0])[:60]


class Crash(Exception):
    """A program has ended the process."""


class Rounds:
    """Runs the rounds of a search in processes of their own, the next one where the last one died."""

    def __init__(self, search: Search, ways: list[str], first: int, seconds: float) -> None:
        self.search, self.ways, self.first, self.end = search, ways, first, search.began + seconds

    def run(self) -> None:
        """Until the time is over."""
        while time.monotonic() < self.end:
            status = in_process(self.rounds)
            self.read()
            if status not in (0, 1, 130):
                program, way = load(self.search.cache / "program")
                self.crashed(program, way, -status)
                self.search.rounds += 1
            elif status:
                raise KeyboardInterrupt if status == 130 else RuntimeError("the search has failed")

    def rounds(self) -> None:
        search = self.search
        while time.monotonic() < self.end:
            search.round(self.first + search.rounds, self.ways[search.rounds % len(self.ways)])
            save(search.cache / "search", {name: getattr(search, name) for name in COUNTED})

    def read(self) -> None:
        """How far the process has come."""
        path = self.search.cache / "search"
        for name, value in load(path).items() if path.exists() else ():
            setattr(self.search, name, value)

    def crashed(self, program: Program, way: str, number: int) -> None:
        """Keep a program that has ended the process."""
        from tests.property.generated import ends
        from tests.property.smaller import smaller

        search, error = self.search, Crash(f"signal {number}")
        search.way, search.number = way, self.first + search.rounds
        search.runs = runs_of(way, search.number)

        def dies(one: Program) -> bool:
            return in_process(lambda: search.check(one), 60) == -number

        small = smaller(program, lambda one: ends(one) and dies(one)) if dies(program) else program
        search.keep(self.first + search.rounds, small, error)


def main(
    minutes: Annotated[float, typer.Option(help="How long to search.")] = 2.0,
    seed: Annotated[int, typer.Option(help="The seed of the first round.")] = 0,
    examples: Annotated[int, typer.Option(help="Programs a round.")] = 50,
    ways: Annotated[str, typer.Option(help="How to run them, in turn.")] = ",".join(WAYS),
    family: Annotated[str, typer.Option(help=f"Which programs: {', '.join(FAMILIES)}.")] = FAMILIES[0],
    into: Annotated[Path, typer.Option(help="Where programs that differ are put.")] = PROGRAMS,
    every: Annotated[float, typer.Option(help="Seconds between two lines about what has been run.")] = 60.0,
) -> None:
    chosen = ways.split(",")
    into.mkdir(parents=True, exist_ok=True)
    search = Search(examples, into, every, family)
    typer.echo(f"seeds from {seed}, in turn {', '.join(chosen)}; what is being run is in {search.running}")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background ignores the first
        signal.signal(number, signal.default_int_handler)
    try:
        Rounds(search, chosen, seed, 60 * minutes).run()
    except KeyboardInterrupt:
        typer.echo("interrupted")
    shutil.rmtree(search.cache)
    typer.echo(search.totals())
    typer.echo(f"{search.loaded} programs came from the disk cache in another process")
    seconds, source = search.slowest
    typer.echo(f"the slowest took {seconds:.1f} s" + (f":\n{source}" if seconds > 10 else ""))
    typer.echo(f"{search.fallbacks.total()} of the programs ran in Python:")
    for reason, count in search.fallbacks.most_common(12):
        typer.echo(f"  {count:4} {reason[:120]}")
    raise typer.Exit(1 if search.found else 0)


if __name__ == "__main__":
    typer.run(main)
