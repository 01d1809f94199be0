"""Functions from generated source text, and how a generated function is held against plain Python.

The text is registered with `linecache`, so that `inspect.getsource` finds it as it finds a file. Each generated
function is compiled for its arguments once; "native" runs it on one thread and then on two.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import itertools
import linecache
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import currently_in_test_context
from hypothesis import note as noted

from parakeet_py import options
from parakeet_py.base.errors import DeoptimizedError, UnsupportedError
from tests.backends import BACKENDS, INTERPRETERS, accelerated
from tests.corpus import Case, Difference, Outcome, assert_same, leaves_of, outcome
from tests.property.random_expressions import MODULES, CountTurns, Turns
from tests.property.recipes import made

if TYPE_CHECKING:
    from tests.property.random_programs import Program

STAGES = {"typed_ir": ("typed_ir",), "imp": ("imp",), "native": ("native-1", "native-2")}

GIVEN_UP = (DeoptimizedError,)
"""How a call may end whose values turn out to have other types, when Python can no longer run it from the beginning."""

OVERFLOW = "Python integer result does not fit in 64 bits"
"""Of an OverflowError after a call has changed an argument: Python cannot run it any more (docs/semantics.md)."""

every_stage = pytest.mark.parametrize("stage", STAGES)
"""Run a property on each IR's interpreter and on native code."""


def note(text: str) -> None:
    """For the report of a property test that fails."""
    if currently_in_test_context():
        noted(text)


_sources: dict[str, list[str]] = {}


def function(source: str, name: str = "f", known: bool = True) -> Callable[..., Any]:
    """The function `name` of this source text, with NumPy and modules as globals; `known`: its text is found."""
    filename = f"<{'generated' if known else 'nowhere'} {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    _sources[filename] = source.splitlines()
    if known:
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {**MODULES, "np": np, "__name__": "generated"}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]  # type: ignore[no-any-return]


def check(
    stage: str,
    source: str,
    args: Sequence[Any] | Callable[[], tuple[Any, ...]],
    **tolerances: Any,
) -> None:
    """Compile the source's `f` and compare it with plain Python on this stage.

    `args` are recipes and values, or a callable that makes fresh ones. What the types alone forbid is refused when it
    is compiled: only native code then has Python's exception, from Python.
    """
    note(source)
    note(f"arguments: {args!r}")
    f = function(source)
    case = Case(args if callable(args) else tuple(args))
    for backend in STAGES[stage]:
        fallbacks = compared(f, case, functools.partial(run_on, backend), stage in INTERPRETERS, tolerances)
        assert not fallbacks, f"fell back to Python: {fallbacks[0]}"


def run_on(backend: str, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return BACKENDS[backend](f, args, {})


Run = Callable[[Callable[..., Any], tuple[Any, ...]], Any]


def call_again(calls: Sequence[Callable[..., Any]], args: tuple[Any, ...], onward: bool = True) -> list[Any]:
    """What calls give one after another: all but the last on the same arguments, as the call before has left them, the
    last `onward` on what the first has given, where that is an array like the argument."""
    results = [call(*args) for call in calls[:-1]]
    if not results:
        return [calls[-1](*args)]
    arrays = [one for one in leaves_of(results[0]) if isinstance(one, np.ndarray) and onward]
    changed = list(args)
    for place, given in enumerate(args):
        fits = (one for one in arrays if isinstance(given, np.ndarray) and _alike(one, given))
        changed[place] = next(fits, given)
        arrays = [one for one in arrays if one is not changed[place]]
    return [*results, calls[-1](*changed)]


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape


def ends(program: Program) -> bool:
    """Whether all its loops end, whatever it is called with."""
    return all(ends_again(program, recipes, 1) for recipes in program.calls())


def ends_again(program: Program, recipes: Sequence[Any], calls: int) -> bool:
    """Whether all loops end in so many calls one after another."""
    scope: dict[str, Any] = {**MODULES, "np": np, "turn_": Turns({})}
    exec(compile(CountTurns().visit(ast.parse(program.source)), "<again>", "exec"), scope)
    again = outcome(lambda *args: call_again([scope["f"]] * calls, args), made(recipes))
    return "does not end" not in str(again.exception)


def check_again(program: Program, runs: Sequence[Run], f: Callable[..., Any]) -> list[str]:
    """Compare several calls on the same arguments, each run in another way, with as many of plain Python.

    What the first has given is compared after the last, which is called with it, unless its last digits may differ: a
    power of a power has as many times the error. Returns why it has fallen back to Python.
    """
    note(program.source)
    found: list[str] = []
    for recipes in program.calls():
        note(f"arguments: {recipes!r}")
        if not ends_again(program, recipes, len(runs)):
            continue
        tolerances = {"sums": program.sums * len(runs), "ulp": program.ulp}
        case = Case(functools.partial(made, recipes))
        found += compared(
            functools.partial(_python_again, f, len(runs), not program.ulp),
            case,
            functools.partial(_runs_again, f, runs, not program.ulp),
            False,
            tolerances,
            True,
        )
    return found


def _python_again(f: Callable[..., Any], count: int, onward: bool, *args: Any) -> list[Any]:
    return call_again([f] * count, args, onward)


def _runs_again(
    f: Callable[..., Any], runs: Sequence[Run], onward: bool, _: Callable[..., Any], args: tuple[Any, ...]
) -> list[Any]:
    return call_again([lambda *given, run=run: run(f, given) for run in runs], args, onward)


def check_program(
    program: Program, runs: dict[str, Run] | None = None, f: Callable[..., Any] | None = None
) -> list[str]:
    """Compare all calls of a random program with plain Python, on every stage or as `runs` say.

    Returns why it has fallen back to Python, if it may do so.
    """
    note(program.source)
    f = f or function(program.source)
    if runs is None:
        runs = {backend: functools.partial(run_on, backend) for some in STAGES.values() for backend in some}
    found: list[str] = []
    for number, recipes in enumerate(program.calls()):
        note(f"arguments: {recipes!r}")
        for name, run in runs.items():
            tolerances = {"sums": program.sums, "ulp": program.ulp}
            fallbacks = compared(f, Case(functools.partial(made, recipes)), run, name in INTERPRETERS, tolerances, True)
            assert program.refusable or number or not fallbacks, f"fell back to Python: {fallbacks[0]}"
            found += fallbacks
    return found


THREADS = (1, 1, 1, 2, 7)
"""What is handed back to Python is found out by the first calls; from the third on all run the same code."""


def check_threads(program: Program, f: Callable[..., Any]) -> list[str]:
    """Compare what a random program does on several threads with what it does on one, to the bit.

    Returns why it has fallen back to Python.
    """
    note(program.source)
    recipes = program.large or program.recipes
    note(f"arguments: {recipes!r}")
    case = Case(functools.partial(made, recipes))
    runs = []
    for threads in THREADS:
        with options(threads=threads):
            runs.append(outcome(accelerated(f), case.make()[0]))
    _, _, one, *several = runs
    for more in several:
        assert_same(one, more, message=True)
    return [str(w.message) for w in runs[0].warned if w.category.__name__ == "FallbackWarning"]


def overflowed_late(actual: Outcome, fresh: tuple[Any, ...]) -> bool:
    """Whether a call ended in an overflow after it had changed an argument; `fresh` are its arguments before."""
    if str(actual.exception) != OVERFLOW:
        return False
    try:
        assert_same(Outcome(fresh), Outcome(actual.args))
    except Difference:
        return True
    return False


def _thin(args: Sequence[Any], expected: Outcome) -> bool:
    """Whether strides are not compared: where there are no elements, or axes of one element, which lie anyhow."""
    arrays = [one for one in (*args, *leaves_of(expected.result)) if isinstance(one, np.ndarray)]
    layouts = any(not one.flags.c_contiguous for one in args if isinstance(one, np.ndarray))
    return any(one.size == 0 or (layouts and 1 in one.shape) for one in arrays)


def selects_nothing(error: BaseException) -> bool:
    """Whether an index is out of range in a place that has no elements, as it stands beside an empty slice."""
    frames = [one for one in traceback.walk_tb(error.__traceback__) if one[0].f_code.co_filename in _sources]
    if not frames:
        return False
    frame, number = frames[-1]
    line = _sources[frame.f_code.co_filename][number - 1].strip()
    try:
        tree = ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:
        return False
    names = {**frame.f_globals, **frame.f_locals}

    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<index>", "eval"), names)

    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        try:
            array, index = value(node.value), _index_of(node.slice, value)
            first = tuple(np.zeros_like(one) if isinstance(one, np.ndarray | list) else one for one in index)
            if isinstance(array, np.ndarray) and array[first].size == 0:
                return True
        except (NameError, TypeError, ValueError, LookupError):
            continue
    return False


def _in_own_words(error: BaseException | None) -> bool:
    """Whether a function of NumPy has raised, no ufunc, in a program with loops or stores: its message may then be
    another one (see docs/semantics.md)."""
    frames = [one for one in _tracebacks(error) if one.tb_frame.f_code.co_filename in _sources]
    if not frames:
        return False
    code, at = frames[-1].tb_frame.f_code, frames[-1].tb_lasti // 2
    place = next(itertools.islice(code.co_positions(), at, None))
    tree = ast.parse("\n".join(_sources[code.co_filename]))
    loops_or_stores = (ast.For, ast.While, ast.comprehension, ast.AugAssign)
    if not any(
        isinstance(node, loops_or_stores) or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
        for node in ast.walk(tree)
    ):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and place == (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset):
            return _is_of_numpy(node.func)
    return False


def _is_of_numpy(function: ast.expr) -> bool:
    """Whether this is `np.f` for a function that is no ufunc, or `x.f`, a method by name."""
    if not isinstance(function, ast.Attribute):
        return False
    if isinstance(function.value, ast.Name) and function.value.id == "np":
        return not isinstance(getattr(np, function.attr, None), np.ufunc)
    return callable(getattr(np.ndarray, function.attr, None)) or ast.unparse(function).startswith("np.")


def _tracebacks(error: BaseException | None) -> Iterator[TracebackType]:
    at = None if error is None else error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _index_of(node: ast.expr, value: Callable[[ast.expr], Any]) -> tuple[Any, ...]:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]

    def bound(one: ast.expr | None) -> Any:
        return None if one is None else value(one)

    return tuple(
        slice(bound(one.lower), bound(one.upper), bound(one.step)) if isinstance(one, ast.Slice) else value(one)
        for one in nodes
    )


def compared(
    f: Callable[..., Any],
    case: Case,
    run: Run,
    interpreter: bool,
    tolerances: dict[str, Any],
    may_give_up: bool = False,
) -> list[str]:
    """One call held against Python; why it has fallen back, if it has."""
    compiled, _ = case.make()
    return judged(f, case, outcome(lambda *args: run(f, args), compiled), interpreter, tolerances, may_give_up)


def judged(
    f: Callable[..., Any],
    case: Case,
    actual: Outcome,
    interpreter: bool,
    tolerances: dict[str, Any],
    may_give_up: bool,
) -> list[str]:
    """What a call has done held against Python; why it has fallen back, if it has."""
    plain, _ = case.make()
    expected = outcome(f, plain)
    if type(actual.exception) is UnsupportedError and interpreter:
        if expected.exception is not None:
            return []
        if may_give_up:
            return [f"refused: {actual.exception}"]
    if type(actual.exception) in GIVEN_UP and may_give_up:
        return [f"given up: {actual.exception}"]
    if may_give_up and overflowed_late(actual, case.make()[0]):
        return [f"given up: {OVERFLOW}"]
    nothing = _thin(plain, expected) or (type(expected.exception) is IndexError and selects_nothing(expected.exception))
    if type(expected.exception) is IndexError and may_give_up and nothing:
        return []  # indices that select nothing are not looked at (see docs/semantics.md), and the call goes on
    # What is new and has two names on some paths is returned as an array and a view of it, and results of broadcast
    # arguments are in C order: see docs/semantics.md.
    broadcast = any(0 in one.strides for one in plain if isinstance(one, np.ndarray))
    order = not broadcast and not _thin(plain, expected)
    message = may_give_up and not _in_own_words(expected.exception)
    options = {"order": order, "identity": not may_give_up, "message": message, **tolerances}
    assert_same(expected, actual, **options)
    return [str(w.message) for w in actual.warned if w.category.__name__ == "FallbackWarning"]
