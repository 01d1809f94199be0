"""What user code sees of its callers is what it sees in plain Python, whatever runs a call: no frame of the package."""

from __future__ import annotations

import asyncio
import cProfile
import inspect
import logging
import opcode
import pstats
import re
import sys
import traceback
import types
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.devices import array_functions
from parakeet_py.call.dispatch.first_calls import FirstCalls
from parakeet_py.call.dispatcher import Dispatcher
from parakeet_py.call.renting import Account, Trial
from parakeet_py.hybrid.execute.cpu_only_calls import CpuOnlyCalls
from parakeet_py.hybrid.execute.execution import Execution
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, gates_of

Frames = list[tuple[str, str, int]]
seen: list[Any] = []


def look() -> None:
    frame, found = sys._getframe(1), []
    while frame is not None and frame.f_code.co_name != "everything":
        found.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno, frame.f_globals["__name__"]))
        frame = frame.f_back  # type: ignore[assignment]
    seen.append(found)


def stack() -> None:
    seen.append([(one.filename, one.function, one.lineno) for one in inspect.stack()[1:4]])


def module() -> None:
    seen.append(namedtuple("Pair", "a b").__module__)


def warn(level: int) -> None:
    warnings.warn("look", UserWarning, stacklevel=level)


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        seen.append((record.pathname, record.funcName, record.lineno))


logger = logging.getLogger("of the tests of frames")
logger.addHandler(Handler())


def looks(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * 2
    look()
    return total


def inner(x: Any) -> Any:
    y = x + 1
    look()
    return y * 2


def calls_another(x: Any) -> Any:
    y = inner(x * 2)
    look()
    return y.sum()


fast_inner = accelerate(inner)


def calls_accelerated(x: Any) -> Any:
    return fast_inner(x * 2).sum()


def stacks(x: Any) -> Any:
    y = x.sum()
    stack()
    module()
    return y


def warns(x: Any) -> Any:
    y = x.sum()
    warn(1)
    warn(2)
    warn(3)
    warnings.warn("here", stacklevel=1)
    warnings.warn("here", stacklevel=2)
    warnings.warn("there", stacklevel=3)
    return y


def logs(x: Any) -> Any:
    y = x * 2
    logger.warning("twice")
    return y


def falls_back(x: Any) -> Any:
    class Local:
        value = x[0]

    look()
    return Local.value


def recurses(x: Any, depth: int = 3) -> Any:
    if depth == 0:
        look()
        return x.sum()
    return fast_recurses(x, depth - 1) + depth


fast_recurses: Any = recurses


def fails(x: Any) -> Any:
    y = x * 2
    return raises(y)


def raises(x: Any) -> Any:
    if len(x):
        raise KeyError("no")
    return x


def generates(x: Any) -> Iterator[Any]:
    look()
    yield x.sum()
    look()
    yield 2


def consumes(x: Any) -> Any:
    return list(generates(x))


def with_keywords(x: Any, *rest: Any, k: int = 2, **named: Any) -> Any:
    look()
    return x * k


FUNCTIONS = [
    looks,
    calls_another,
    calls_accelerated,
    stacks,
    warns,
    logs,
    falls_back,
    recurses,
    fails,
    generates,
    consumes,
    with_keywords,
]


def report(function: Callable[..., Any], repeat: int) -> list[Any]:
    """All that calls of a function have seen and given."""
    x = np.arange(4.0)
    seen.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(repeat):
            try:
                result = function(x)
                seen.append(list(result) if inspect.isgenerator(result) else np.asarray(result).tolist())
            except KeyError as error:
                seen.append([(one.filename, one.name, one.lineno) for one in traceback.extract_tb(error.__traceback__)])
    ours = [one for one in caught if one.category is UserWarning]
    return [*seen, *((str(one.message), one.filename, one.lineno) for one in ours)]


def everything(function: Callable[..., Any]) -> list[Any]:
    global fast_recurses
    fast_recurses = function
    return [report(function, times) for times in (1, 1, 1, 4)]


def first(function: Any) -> Any:
    return accelerate(when="pays")(function)


def renting(function: Any) -> Any:
    made = accelerate(when="pays")(function)
    made._dispatcher.leave_first_calls()
    return made


def gated(function: Any) -> Any:
    made = accelerate(when="pays")(function)
    made._dispatcher.open_first_gate()
    assert gates_of(made)
    return made


def compiled(function: Any) -> Any:
    return accelerate(when="now")(function)


def disabled(function: Any) -> Any:
    made = accelerate(when="now")(function)

    @hidden
    def call(*args: Any) -> Any:
        with options(enabled=False):
            return made(*args)

    return call


def tried(function: Any) -> Any:
    """Compiled at the first call, and then compared with Python."""
    made = accelerate(when="pays")(function)
    made._dispatcher.leave_first_calls()
    made._dispatcher.account.spent = 1e12
    return made


def profiled(function: Any) -> Any:
    made, quiet = compiled(function), (lambda *event: None)

    @hidden
    def call(*args: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(quiet)
        try:
            return made(*args)
        finally:
            sys.setprofile(before)

    return call


def on_device(function: Any) -> Any:
    return accelerate(when="now", devices="emulated")(function)


@pytest.mark.parametrize("state", [first, renting, gated, compiled, disabled, tried, profiled, on_device])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_callers_are_those_of_plain_python(function: Any, state: Any) -> None:
    assert everything(state(function)) == everything(function)


def kind_of(decorate: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    class Kind:
        scale = 2.0

        @decorate
        def method(self, x: Any) -> Any:
            look()
            return x * self.scale

        @classmethod
        @decorate
        def of_class(cls, x: Any) -> Any:
            look()
            return x * cls.scale

        @staticmethod
        @decorate
        def static(x: Any) -> Any:
            look()
            return x * 2

        @property
        @decorate
        def attribute(self) -> Any:
            look()
            return self.scale

        @decorate
        def __add__(self, x: Any) -> Any:
            look()
            return x + 1

        @decorate
        def __call__(self, x: Any) -> Any:
            look()
            return x + 2

    return Kind


def calls_of(kind: Any) -> list[Callable[..., Any]]:
    thing = kind()
    return [thing.method, thing.of_class, kind.of_class, thing.static, lambda x: thing.attribute, thing.__add__, thing]


@pytest.mark.parametrize("when", ["pays", "now"])
def test_methods_see_their_callers(when: str) -> None:
    plain, fast = calls_of(kind_of(lambda function: function)), calls_of(kind_of(accelerate(when=when)))
    for expected, made in zip(plain, fast, strict=True):
        assert everything(made) == everything(expected)


async def waits(x: Any) -> Any:
    look()
    await asyncio.sleep(0)
    look()
    return x.sum()


def awaits(function: Any) -> Any:
    def call(x: Any) -> Any:
        return asyncio.run(function(x))

    return call


@pytest.mark.parametrize("state", [first, renting, gated, compiled])
def test_coroutines_see_their_callers(state: Any) -> None:
    assert everything(awaits(state(waits))) == everything(awaits(waits))


def once(x: Any) -> Any:
    for _ in range(3):
        warn(2)
        warnings.warn("of the caller", stacklevel=2)
    return x


@pytest.mark.parametrize("state", [first, renting, gated, compiled, tried])
def test_warnings_are_shown_once_for_each_place(state: Any) -> None:
    def places(function: Any) -> list[tuple[str, int]]:
        globals().pop("__warningregistry__", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(4):
                function(1.0)
        return [(one.filename, one.lineno) for one in caught if one.category is UserWarning]

    found = places(state(once))
    assert found == places(once) and len(found) == 2 and "__warningregistry__" in globals()


@pytest.mark.parametrize("state", [first, renting, gated])
def test_profiles_are_those_of_plain_python(state: Any) -> None:
    """Where Python runs a call; functions of the package are called beside, and all calls end."""

    def callers(function: Any) -> Any:
        def work() -> None:
            for _ in range(3):
                function(np.arange(3.0))
            with pytest.raises(KeyError):
                fails(np.arange(3.0))

        profile = cProfile.Profile()
        profile.runcall(work)
        stats: Any = pstats.Stats(profile)
        return {key[2]: value[:2] for key, value in stats.stats.items() if key[0] == __file__}

    made = state(calls_another)
    assert callers(made) == callers(calls_another)


# ---- functions without frames ----------------------------------------------------------------------------------------


def relay(function: Any, *args: Any) -> Any:
    cell = [0]

    def add(number: int) -> int:
        cell[0] += number
        return cell[0]

    try:
        for number in range(300):
            add(number)
            if number == 200:
                continue
        try:
            with warnings.catch_warnings():
                return function(*args), add(1)
        except ZeroDivisionError as error:
            if args == (1,):
                raise ValueError("one") from error
            return "caught", add(2)
        finally:
            add(100)
    except LookupError:
        add(1000)
        raise
    finally:
        cell.clear()


unseen = hidden(types.FunctionType(relay.__code__, globals()))


def divides(x: int) -> Any:
    seen.append([frame.name for frame in traceback.extract_stack() if frame.filename == __file__][-3:])
    if x == 2:
        raise KeyError(x)
    return 1 // (x * (x - 1))


def outcome(function: Any, x: int) -> Any:
    try:
        return function(divides, x)
    except Exception as error:
        names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
        return type(error), error.args, names, type(error.__cause__)


def test_hidden_functions_do_what_they_did() -> None:
    seen.clear()
    for x in (0, 1, 2, 3):
        before, now = outcome(relay, x), outcome(unseen, x)
        assert now == (
            before if x in (0, 3) else (*before[:2], [one for one in before[2] if one != "relay"], before[3])
        )
        assert seen.pop() == ["test_hidden_functions_do_what_they_did", "outcome", "divides"]
        assert seen.pop() == ["outcome", "relay", "divides"]


def test_events_of_hidden_functions_are_balanced() -> None:
    calls: list[Any] = []

    def look_at(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code)
        elif event == "return":
            assert calls.pop() is frame.f_code

    def work() -> list[Any]:
        return [outcome(unseen, x) for x in (0, 1, 2, 3)]

    expected = work()
    before = sys.getprofile()
    sys.setprofile(look_at)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    assert found == expected and not calls


def is_hidden(function: Any) -> bool:
    """Does the code begin with a far jump?"""
    return bytes(function.__code__.co_code[:4:2]) == bytes([opcode.opmap["EXTENDED_ARG"], opcode.opmap["JUMP_FORWARD"]])


@pytest.mark.parametrize(
    "kind", [Dispatcher, Account, Trial, FirstCalls, Execution, CpuOnlyCalls, AcceleratedFunction, array_functions]
)
def test_marked_functions_are_hidden(kind: Any) -> None:
    source = inspect.getsource(kind)
    marked = re.findall(r"^ *@hidden\n *def (\w+)", source, re.MULTILINE)
    assert marked and all(is_hidden(getattr(kind, name)) for name in marked)
