"""The implementations that are compared, each made from the program's own source where that is possible.

A peer turns a program into something that can be called with the program's arguments. What a peer needs but the machine
lacks (jax, gcc) makes it unavailable, with the reason; a program that has no form for a peer is *absent*; one that the
peer cannot compile is *unsupported*, found out at the first call. The names in `PEERS` are the columns of the table, in
order.

numba and jax get the same function object with its globals rebound: helper functions compiled by the same decorator,
for jax `np` replaced by `jax.numpy`, for numba `prange` replaced by numba's. No source is edited.
"""

from __future__ import annotations

import dis
import importlib
import importlib.util
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from parakeet_py.bench import program as program_module
from parakeet_py.bench.c import BuildError, library
from parakeet_py.bench.c.bindings import baseline
from parakeet_py.bench.program import Arguments, Program

OURS = "parakeet"
PEERS: dict[str, str] = {
    OURS: "parakeet_py",
    "numpy": "NumPy",
    "numba": "numba",
    "numba-parallel": "numba parallel",
    "jax": "jax",
    "c": "C",
}
DEFAULT_PEERS = ("numpy", "numba", "numba-parallel", "jax", "c")


class Unavailable(Exception):
    """This peer is not on this machine; the message says why."""


class Absent(Exception):
    """This peer has no form of this program to measure; the message says why."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program made callable by a peer, nothing compiled yet.

    Attributes
    ----------
    call : callable
        Takes the program's arguments as `convert` left them; returns when the result is complete.
    convert : callable
        Brings NumPy arguments into the peer's own form, outside the measured time (jax: arrays on its device).
    variant : str
        "source" (the program's plain NumPy source), "loops", "numpy" (the vectorised form) or "c".
    note : callable
        Asked after the first call: anything the reader of the table must know, or "".
    """

    call: Callable[..., Any]
    convert: Callable[[Arguments], Arguments] = lambda arguments: arguments
    variant: str = "source"
    note: Callable[[], str] = lambda: ""


def availability(name: str) -> None:
    """Check that the peer `name` can be used here.

    Raises
    ------
    Unavailable
        With the reason.
    """
    if name in ("numba", "numba-parallel") and importlib.util.find_spec("numba") is None:
        raise Unavailable("numba is not installed")
    if name == "jax" and importlib.util.find_spec("jax") is None:
        raise Unavailable("jax is not installed")
    if name == "c":
        try:
            library()
        except BuildError as error:
            raise Unavailable(str(error)) from None


def prepare(name: str, program: Program, threads: int) -> Prepared:
    """The program `program` as the peer `name` would run it on `threads` threads.

    Raises
    ------
    Absent
        This peer has no form of the program.
    """
    match name:
        case "parakeet":
            return _parakeet(program)
        case "numpy":
            if program.numpy_checks_only:
                raise Absent("no NumPy form of the same algorithm")
            return Prepared(program.baseline, variant="numpy" if program.numpy else "source")
        case "numba":
            return Prepared(_numba(program.function, parallel=False))
        case "numba-parallel":
            source = program.loops or program.function
            return Prepared(_numba(source, parallel=True), variant="loops" if program.loops else "source")
        case "jax":
            return _jax(program)
        case "c":
            if not program.c:
                raise Absent("no C baseline")
            return Prepared(baseline(program.name, threads), variant="c")
    raise ValueError(f"unknown peer {name!r}")


def warm_up(name: str, threads: int) -> None:
    """Have the peer compile something trivial, so that the first program does not pay for its start."""

    def increment(x: program_module.Array) -> program_module.Array:
        return x + 1.0

    trivial = Program("increment", "", increment, lambda rng: (np.zeros(4),), {"XS": ()}, jax=True)
    try:
        prepared = prepare(name, trivial, threads)
    except Absent:
        return
    prepared.call(*prepared.convert((np.zeros(4),)))


@contextmanager
def thread_limits(threads: int) -> Iterator[None]:
    """Every peer on at most `threads` threads: ours, numba's, and the OpenMP and BLAS pools already loaded."""
    from parakeet_py import options

    with ExitStack() as stack:
        stack.enter_context(options(threads=threads, cache=False))
        if importlib.util.find_spec("numba") is not None:
            import numba

            before = numba.get_num_threads()
            numba.set_num_threads(min(threads, before))
            stack.callback(numba.set_num_threads, before)
        if importlib.util.find_spec("threadpoolctl") is not None:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(threads))
        yield


def _parakeet(program: Program) -> Prepared:
    from parakeet_py import accelerate

    accelerated: Any = accelerate(when="now", tiers=False)(program.function)

    def note() -> str:
        if accelerated.fell_back:
            return f"ran in Python: {accelerated.fell_back}"
        handed_back = ", ".join(dict.fromkeys(accelerated.opaque_calls))
        return f"handed back to Python: {handed_back}" if handed_back else ""

    return Prepared(accelerated, note=note)


def _numba(function: Callable[..., Any], *, parallel: bool) -> Callable[..., Any]:
    import numba

    def jit(source: types.FunctionType) -> Any:
        return numba.njit(parallel=parallel)(source)

    return rebound(function, jit, {"prange": numba.prange if parallel else range})


def _jax(program: Program) -> Prepared:
    if not program.jax:
        raise Absent("not expressible without a rewrite")
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    numpy_of_jax = importlib.import_module("jax.numpy")
    scalars = tuple(
        i for i, a in enumerate(program.arguments("XS")) if not isinstance(a, np.ndarray)
    )  # counts and constants are part of the program, as they are in jax code
    jitted = jax.jit(rebound(program.function, lambda f: f, {"np": numpy_of_jax}), static_argnums=scalars)

    def convert(arguments: Arguments) -> Arguments:
        return tuple(numpy_of_jax.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments)

    return Prepared(lambda *arguments: jax.block_until_ready(jitted(*arguments)), convert)


def rebound(
    function: Callable[..., Any], decorate: Callable[[types.FunctionType], Any], replacements: Mapping[str, Any]
) -> Callable[..., Any]:
    """`decorate`d copy of `function` whose globals see `replacements` and whose helper functions are decorated too.

    Helpers are the plain functions of the same module that the function (or a helper) names.
    """
    assert isinstance(function, types.FunctionType)
    made: dict[types.FunctionType, Callable[..., Any]] = {}

    def copy(source: types.FunctionType) -> Callable[..., Any]:
        scope = dict(source.__globals__)
        scope.update({name: value for name, value in replacements.items() if name in scope})
        for name in _global_names(source):
            helper = scope.get(name)
            if isinstance(helper, types.FunctionType) and helper.__module__ == source.__module__:
                scope[name] = made[helper] if helper in made else copy(helper)
        new = types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__, source.__closure__)
        new.__module__ = source.__module__
        compiled: Callable[..., Any] = decorate(new)
        made[source] = compiled
        return compiled

    return copy(function)


def _global_names(function: types.FunctionType) -> set[str]:
    return {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings other systems emit while they compile; what matters of them is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
