"""When calls are compiled, with `when="pays"`. Times are given, not measured."""

from __future__ import annotations

import itertools
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options
from parakeet_py.base import config as settings
from parakeet_py.base import interrupts, lazy_modules
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.call import fallback_cache, pricing, renting
from parakeet_py.call.dispatch import first_calls
from parakeet_py.call.dispatch.compiling import Compiling
from parakeet_py.call.renting import Account, Trial
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.llvm.entry.plain_gate import PlainGate
from parakeet_py.signature.device_classes import class_lives_elsewhere
from parakeet_py.signature.small_arguments import SMALL
from tests.helpers.called_in_python import of, plain, summed

# ---- the account -----------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets what each call takes from now on, in nanoseconds."""
    step = [0.0]
    now = [0]

    def read() -> int:
        now[0] += int(step[0] / 1)
        return now[0]

    monkeypatch.setattr(renting.time, "perf_counter_ns", read)
    monkeypatch.setattr(pricing.compile_cost, "of", lambda size: 100e6)
    monkeypatch.setattr(pricing.CompileCost, "room", 1e18)
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: False)  # they measure by themselves
    monkeypatch.setattr(renting, "LONGEST", 1e18)  # compiling takes what it takes
    monkeypatch.setattr(first_calls, "FEW", 10**6)
    monkeypatch.setattr(first_calls, "_first_gate", (0, 0))  # it measures by itself, too

    def take(nanoseconds: float) -> None:
        step[0] = nanoseconds

    return take


def test_calls_are_compiled_when_python_has_cost_as_much(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x: x + 1)
    x = np.ones(3)
    clock(30e6)
    for _ in range(4):
        assert not function.specializations
        function(x)
    function(x)
    assert len(function.specializations) == 1
    assert "have taken 120 ms in Python" in function._dispatcher.account.decision


def test_a_dear_call_is_compiled_at_once(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(summed)
    assert function(np.ones((2000, 2000))) == 4e6
    assert len(function.specializations) == 1 and "a call may take" in function._dispatcher.account.decision


def test_a_new_signature_has_to_earn_its_compilation(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x: x + 1)
    clock(200e6)
    function(np.ones(3))
    function(np.ones(3))
    assert len(function.specializations) == 1
    clock(1e6)
    function(np.ones((3, 3)))
    function(np.ones((3, 3)))
    assert len(function.specializations) == 1


def test_gates_take_frequent_calls_and_book_their_time(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    boxing.support()  # without it some calls pass untimed
    monkeypatch.setattr(renting, "CALLS", 3)
    monkeypatch.setattr(first_calls, "BUDGET", 10**15)  # what a gate is given: it measures by itself
    monkeypatch.setattr(pricing.compile_cost, "of", lambda size: 1e17)
    function = accelerate(when="pays")(lambda x, n=1: x + n)
    account = function._dispatcher.account
    clock(1e3)
    for _ in range(3):
        function(np.ones(3))
    (gate,) = account.gates
    calls = account.calls
    assert function(np.ones(3)).tolist() == [2, 2, 2]
    assert account.calls == calls and gate.left > 0
    gate.left = 0
    account.looked = True
    function(np.ones(3))
    assert account.spent >= first_calls.BUDGET


def test_code_on_the_disk_is_asked_for_early() -> None:
    account = Account(plain)
    account.spent = renting.LOADING
    asked: list[bool] = []

    def disk() -> bool:
        asked.append(True)
        return True

    assert not account.rents((1, 2), disk) and account.rents((1, 2), disk) and len(asked) == 1


def test_code_on_the_disk_is_loaded_and_nothing_else_compiled(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with options(cache=True, cache_dir=tmp_path):
        accelerate(when="now")(outer_product)(np.ones(3))
        clock(renting.LOADING + 1e6)
        for x, found in ((np.ones(3), 1), (np.ones((3, 3)), 0)):  # the second was not compiled before
            function = accelerate(when="pays")(outer_product)
            function(x)
            assert not function.specializations
            for _ in range(3):
                assert np.array_equal(function(x), outer_product(x))
            assert [one.from_disk for one in function.specializations] == [True] * found


def outer_product(x: Any) -> Any:
    return x[:, None] * x


def test_observing_a_call_does_not_spend_what_is_earned(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x: x + helper_of_python(x))
    clock(200e6)
    function(np.ones(3))
    for _ in range(3):
        function(np.ones(3))
    assert len(function.specializations) == 1 and function.opaque_calls


def helper_of_python(x: Any) -> Any:
    return float(repr(x.sum()).strip("np.float64()"))


def test_arguments_are_not_kept(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x, *, n=1: x + n)
    x = np.ones(3)
    before = sys.getrefcount(x)
    clock(1e3)
    function(x)
    function(x, n=2)
    assert sys.getrefcount(x) == before


def test_few_kinds_of_calls_are_remembered(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    monkeypatch.setattr(Account, "gate_for", lambda *args, **kwargs: None)
    function = accelerate(when="pays")(lambda text: len(text))
    clock(1e3)
    for number in range(200):
        assert function(str(number)) == len(str(number))
    assert len(function._dispatcher.account.last) == fallback_cache.MAX_KINDS
    text = "".join(["long"] * 100)
    before = sys.getrefcount(text)
    function(text)
    assert sys.getrefcount(text) == before


def test_gates_take_calls_that_shorten_their_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(plain)
    account.compiled.add(None)
    account.calls = renting.CALLS
    monkeypatch.setattr(renting, "gates_pay", lambda: True)
    gate = account.gate_for(([1, 2],), ([1, 2],), {}, 5)
    assert gate.shape == of([1]) and gate.largest == 5


def test_gates_that_have_nothing_left_go(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: True)
    function = accelerate(when="pays")(lambda text: len(text))
    clock(1e3)
    for _ in range(3):
        assert function("abc") == 3
        function._dispatcher.account.close()
    assert function("abc") == 3
    assert len(function._gates) == 1


def test_calls_of_any_shape_share_a_gate(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 1, "ALL_CALLS": 0, "BUDGET": 10**15}.items():
        monkeypatch.setattr(first_calls, name, value)
    function = accelerate(when="pays")(lambda text, *others, n=0: len(text))
    clock(1e3)
    for number in range(20):
        assert function(str(number)) == len(str(number))
        assert function([1, 2], n=number) == 2 and function(np.ones(3), 4.0) == 3
    (gate,) = function._gates
    assert gate.shape is None and function._dispatcher.account.calls == 0
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        function()


def test_first_calls_are_taken_by_little(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x, n=1: (x, n))
    clock(1e6)
    for value in (1.0, 3, [1, 2], "text", np.ones(SMALL), plain):
        assert function(value) == (value, 1) and function(value, n=value) == (value, value)
    assert function._complete is not None  # there is not even a dispatcher
    large = np.ones(SMALL + 1)
    assert function(large) == (large, 1) and function._complete is None
    assert function._dispatcher.account.calls == 1
    function(large)
    assert function._dispatcher.account.calls == 1  # it is known how large they may be


def test_larger_arguments_are_not_priced_at_each_call(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(x: Any) -> int:
        found = 0
        for row in x:
            for item in row:
                found += item > 0
        return found

    monkeypatch.setattr(first_calls, "COMPILER", "not imported")
    monkeypatch.setattr(first_calls, "FEW", 2)
    clock(1e3)
    function, x = accelerate(when="pays")(rows), np.ones((40, 40))
    assert [function(x) for _ in range(4)] == [1600] * 4
    assert function._largest == x.size and function._calls.cheap == 2  # the others have passed by their size
    assert function._calls.takes((np.ones(x.size),), {}) and not function._calls.takes((np.ones((200, 200)),), {})
    alone = accelerate(when="pays")(lambda n, x: x + n)
    for _ in range(4):
        alone(10**12, 1)
    assert alone._calls.cheap == 4 and alone._largest < 10**9  # as arrays so large are not cheap


class Quantity(np.ndarray):
    """What packages make of arrays."""


def test_classes_that_derive_from_arrays_are_of_no_device(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not class_lives_elsewhere(Quantity) and not class_lives_elsewhere(np.float32)
    assert class_lives_elsewhere(type("Other", (), {"__dlpack_device__": lambda self: (2, 0)}))
    assert class_lives_elsewhere(type("Both", (Quantity,), {"__cuda_array_interface__": {}}))
    function = accelerate(when="pays")(lambda x: x.sum())
    for _ in range(3):
        assert function(np.ones(3).view(Quantity)) == 3
    assert function._complete is not None and not function.fell_back
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    function = accelerate(when="pays")(lambda x: x.sum())
    assert function(np.ones(3).view(Quantity)) == 3 and "not compiled yet" in function._dispatcher.account.decided()


def test_calls_that_raise_and_are_refused_are_taken_by_a_gate(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: True)
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    made = itertools.count()
    monkeypatch.setattr(Account, "rents", lambda self, normal, disk: next(made) > 0)

    def function(text: str) -> Any:
        a, b, c = text.split()
        return a, b, c

    accelerated = accelerate(when="pays")(function)
    for _ in range(6):
        with pytest.raises(ValueError, match="not enough values to unpack"):
            accelerated("a b")
    assert any(isinstance(gate, PlainGate) for gate in accelerated._gates)


def test_first_calls_raise_what_python_raises_with_its_traceback(clock: Callable[[float], None]) -> None:
    function = accelerate(when="pays")(lambda x: 1 / x)
    with pytest.raises(ZeroDivisionError) as caught:
        function(0)
    assert [entry.name for entry in caught.traceback][1:] == ["<lambda>"]
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        function(1, 2)


def test_first_calls_book_their_own_time(clock: Callable[[float], None]) -> None:
    inner = accelerate(when="pays")(lambda x: x)
    outer = accelerate(when="pays")(lambda x: inner(x) + inner(x))
    clock(1e6)
    before = booked[0]
    assert outer(1) == 2
    taken = booked[0] - before
    accounts = [function._dispatcher.account for function in (inner, outer)]
    assert booked[0] - before > taken  # to make these is no time of calls
    for account in accounts:
        account.settle_gates()
    assert sum(account.spent for account in accounts) == taken == 5e6  # six readings of the clock
    assert accounts[0].spent == 2e6


def test_of_short_first_calls_few_are_timed(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 2, "GATES": "not loaded", "COMPILER": "not loaded", "waiting": [0]}.items():
        monkeypatch.setattr(first_calls, name, value)
    function = accelerate(when="pays")(lambda x: x)
    clock(1e3)
    before = booked[0]
    for _ in range(3 + 2 * first_calls.SAMPLE):
        assert function(1) == 1 and function([2]) == [2] and function(n := np.ones(3)) is n
    calls = 3 * (3 + 2 * first_calls.SAMPLE)
    assert booked[0] - before == 1e3 * calls and function._complete is not None
    account = function._dispatcher.account
    account.settle_gates()
    timed = calls - function._untimed
    assert 1e3 * (timed - first_calls.SAMPLE) <= account.total <= 1e3 * calls
    clock(1e6)  # calls that have become long are all timed, from the next one on
    before = booked[0]
    for _ in range(2 * first_calls.SAMPLE):
        function(1)
    assert function._untimed == 0 and booked[0] - before > 1e6 * first_calls.SAMPLE


def test_recursive_first_calls_are_timed(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_calls, "FEW", 0)
    monkeypatch.setattr(first_calls, "gates_pay", lambda calls: False)
    function: Any = accelerate(when="pays")(lambda n: n and function(n - 1))
    clock(1e3)
    for _ in range(10):
        assert function(3) == 0 and function._untimed == 0


def test_a_first_gate_needs_no_dispatcher(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 1, "BUDGET": 10**15}.items():
        monkeypatch.setattr(first_calls, name, value)
    function = accelerate(when="pays")(lambda x: x)
    clock(1e3)
    for _ in range(5):
        function(1)
    (gate,) = function._gates
    assert function._complete is not None and 0 < gate.left < first_calls.BUDGET

    class Other:
        """A class that gates do not know."""

    left = gate.left
    for _ in range(3):
        function(Other())
    assert function._complete is not None and gate.left < left
    account = function._dispatcher.account
    account.settle_gates()
    assert account.gates == [gate] and account.total == first_calls.BUDGET - gate.left


def test_a_gate_takes_refused_calls_whatever_they_have_cost(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: True)
    monkeypatch.setattr(first_calls, "BUDGET", 0)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError("not this one")

    monkeypatch.setattr(Compiling, "specialize", refuse)
    function = accelerate(when="pays")(lambda x: x + 1)
    clock(150e6)
    with pytest.warns(FallbackWarning, match="not this one"):
        for _ in range(10):
            assert function(1.0) == 2.0
    account = function._dispatcher.account
    account.close()
    account.spent = 1e15
    for _ in range(3):
        assert function(1.0) == 2.0
    (gate,) = account.gates
    assert gate.left > renting.FOLLOWING and account.calls == 1


def test_the_code_of_gates_is_loaded_for_many_calls(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FEW": 1, "ALL_CALLS": 9, "MANY": 10**9, "waiting": [0]}.items():
        monkeypatch.setattr(first_calls, name, value)
    for name in ("GATES", "COMPILER"):
        monkeypatch.setattr(first_calls, name, "not loaded")
    uses_disk = settings.environment().uses_disk
    function = accelerate(when="pays")(lambda x: x)
    clock(1e3)
    enough = 9 if uses_disk else 9 * first_calls.MAKING
    for _ in range(enough):
        assert function(1) == 1 and not function._gates
    for _ in range(first_calls.SAMPLE):  # until one is timed
        assert function(1) == 1
    assert len(function._gates) == 1


def test_nothing_is_made_for_functions_that_are_not_called(clock: Callable[[float], None]) -> None:
    def annotated(x: int) -> int:
        """Its text."""
        return x

    function = accelerate(when="pays")(annotated)
    assert function._calls is None and function._complete is not None and "__annotations__" not in vars(function)
    assert (function.__doc__, function.__name__, function.__wrapped__) == ("Its text.", "annotated", annotated)
    assert function.__annotations__ is annotated.__annotations__ and typing.get_type_hints(function)["x"] is int
    assert function(3) == 3 and function._calls.calls == 1 and function._slow == function._calls.run
    assert function(x=3) == 3 and function._dispatcher.account.first is function._calls
    unasked = accelerate(when="pays")(annotated)
    assert unasked._dispatcher.account.first is unasked._calls and unasked(2) == 2 and unasked._calls.calls == 1


def test_a_call_does_not_wait_for_what_another_thread_compiles(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: True)
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    monkeypatch.setattr(first_calls, "ALL_CALLS", 0)
    function = accelerate(when="pays")(lambda x: x)
    clock(1e3)
    done = threading.Event()
    with function._dispatcher.lock:
        thread = threading.Thread(target=lambda: (function(1), done.set()))
        thread.start()
        assert done.wait(60)
    thread.join()
    assert not function._gates and function(1) == 1 and len(function._gates) == 1


@pytest.mark.parametrize("keyword", [False, True])
def test_recursion_goes_as_deep_as_in_python(keyword: bool, clock: Callable[[float], None]) -> None:
    def descend(n: int, *, by: int = 1) -> int:
        if n <= 0:
            return 0
        return 1 + (function(n - by, by=by) if keyword else function(n - 1))

    clock(0)
    function = accelerate(when="pays")(descend)
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    room = sys.getrecursionlimit() - depth - 60
    assert function(room, by=1) == room


def test_calls_within_calls_are_booked_once(clock: Callable[[float], None]) -> None:
    account = Account(plain)
    clock(10e6)

    def call() -> None:  # four readings of the clock: 30 ms in all, 10 of them within
        account.run((1,), lambda: None)

    account.run((2,), call)
    assert account.spent == account.total == 30e6 and account.running == 0
    assert account.last[fallback_cache.kind_of((1,))] == (2, 30e6)


# ---- the trial -------------------------------------------------------------------------------------------------------


class Code:
    """Stands for a specialization."""

    function = staticmethod(plain)
    taking = staticmethod(lambda missed: plain)


def tried(
    native: Iterator[int],
    python: Iterator[int],
    former: tuple[int, float] | None,
    loops: bool,
    expected: float = 0.0,
) -> list[Any]:
    """The calls that a trial makes until its verdict, and that."""
    made: list[Any] = []
    trial = Trial(
        lambda n: made.append("python"), Code, 0, former, loops, expected,  # type: ignore[arg-type]
        lambda n: None, lambda t, v: made.append(v),
    )  # fmt: skip
    trial.target = lambda n: made.append("native")
    now = [0]
    waiting: list[bool] = []

    def read() -> int:
        if waiting:
            waiting.clear()
            now[0] += next(native if made[-1] == "native" else python)
        else:
            waiting.append(True)
        return now[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renting.time, "perf_counter_ns", read)
        while not trial.over:
            trial.run((3,))
    return made


def test_a_trial_lets_the_faster_one_win() -> None:
    ten, twenty = itertools.repeat(10_000), itertools.repeat(20_000)
    assert tried(ten, twenty, None, False) == ["native", "python"] * 4 + ["native", "python", True]
    assert tried(twenty, ten, None, False)[-1] is False


def test_python_is_not_tried_where_it_goes_through_as_many_elements_for_longer() -> None:
    native, python = itertools.repeat(20_000_000), itertools.repeat(10_000_000)
    assert tried(native, python, None, False, 3e8) == ["native", True]
    for other in (tried(native, python, None, False, 1e8), tried(native, python, (3, 1e7), False, 3e8)):
        assert "python" in other and other[-1] is False
    assert tried(itertools.repeat(10_000), itertools.repeat(9_000), None, False, 3e8)[-1] is False


def test_a_trial_is_short_where_all_is_clear() -> None:
    made = tried(itertools.repeat(10_000), itertools.repeat(500_000), None, False)
    assert made == ["native", "python", "native", "python", True]
    made = tried(itertools.repeat(10_000_000), itertools.repeat(9_000_000), None, False)
    assert made == ["native", "python", "native", "python", False]


def test_python_is_not_tried_where_it_may_take_long() -> None:
    assert tried(itertools.repeat(10_000), itertools.repeat(0), None, True) == ["native", "native", True]
    made = tried(itertools.repeat(10_000), itertools.repeat(0), (3, 1e9), True)
    assert made == ["native", "native", True]  # a call before took long enough
    assert "python" in tried(itertools.repeat(10_000), itertools.repeat(5_000), (3, 5e3), True)


def test_what_python_does_faster_is_left_to_it(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renting, "gates_pay", lambda calls=1: True)
    monkeypatch.setattr(Trial, "judge", lambda self, native, python: self.finish(len(native) > 9))
    monkeypatch.setattr(renting, "CALLS", 2)
    function = accelerate(when="pays")(lambda x: x + 1)
    clock(200e6)
    function(np.ones(3))
    function(np.ones(3))
    dispatcher = function._dispatcher
    assert "Python takes calls of this size" in dispatcher.account.decision
    for _ in range(3):
        assert function(np.ones(3)).tolist() == [2, 2, 2]
    assert [gate.is_lasting for gate in function._gates if isinstance(gate, PlainGate)] == [True]
    assert len(dispatcher.untried) > 0  # larger calls are tried once more
    assert function(np.ones(100)).shape == (100,)


def test_trials_make_calls_in_any_form(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "judge", lambda self, native, python: self.finish(True) if len(python) > 4 else None)

    def keywords(x: Any, n: Any = 1, *rest: Any, by: Any = 2, **others: Any) -> Any:
        x += n
        return x.sum() * by + sum(rest) + len(others)

    function = accelerate(when="pays")(keywords)
    clock(200e6)
    for args, kwargs in (((), {}), ((2,), {"by": 3}), ((2, 3, 4), {"by": 3, "other": 1})):
        for _ in range(12):
            x, y = np.ones(3), np.ones(3)
            assert function(x, *args, **kwargs) == keywords(y, *args, **kwargs) and x.tolist() == y.tolist()
    assert function.specializations and not function._dispatcher.trials


# ---- around it -------------------------------------------------------------------------------------------------------


def test_compile_makes_code_without_a_call() -> None:
    seen: list[int] = []

    def function(x: Any) -> Any:
        return x * 2 + len(seen)

    accelerated = accelerate(when="pays")(function)
    accelerated.compile(np.ones(3))
    assert len(accelerated.specializations) == 1 and len(accelerated._gates) == 1
    accelerated.compile(np.ones(3))
    assert accelerated(np.ones(3)).tolist() == [2, 2, 2] and len(accelerated.specializations) == 1
    with pytest.raises(TypeError):
        accelerated.compile()
    with pytest.raises(UnsupportedError):
        accelerate(lambda x: open(x).read()[x]).compile(3)  # noqa: SIM115


def test_compiling_ends_when_it_takes_too_long(clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "most", -1e9)
    function = accelerate(when="pays")(lambda x: x + 1)
    clock(200e6)
    function(np.ones(3))
    with pytest.warns(FallbackWarning, match="its calls take less"):
        assert function(np.ones(3)).tolist() == [2, 2, 2]
    assert "compiling" in function.fell_back


def test_compiling_is_tried_again_with_more_time(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "longest", property(lambda self: -1.0 if self.factor < 4 else 60.0))
    function = accelerate(when="pays")(lambda x: x + 1)
    account = function._dispatcher.account
    clock(50e6)
    found = []
    for _ in range(15):
        assert function(np.ones(3)).tolist() == [2, 2, 2]
        found.append((account.factor, len(function.specializations)))
    assert found == [(1, 0)] * 2 + [(2, 0)] * 4 + [(4, 0)] * 8 + [(4, 1)]
    assert not function.fell_back


def test_explain_says_what_was_decided() -> None:
    function = accelerate(when="pays")(lambda x: x + 1)
    function(np.ones(3))
    found = function.explain(np.ones(3))
    assert (found.decision or "").startswith("not compiled yet, calls run in Python: its calls have taken ")
    assert f"when it pays: {found.decision}" in str(found)
    function.compile(np.ones(3))
    assert function.explain(np.ones(3)).decision == "there is machine code for such calls"
    assert accelerate(when="now")(lambda x: x + 1).explain(np.ones(3)).decision is None


def test_settings() -> None:
    with pytest.raises(ValueError, match="when is 'now' or 'pays'"):
        accelerate(when="later")
    with options(when="pays"):
        assert accelerate(lambda x: x + 1)(np.ones(3)) is not None
    strict = accelerate(when="pays", strict=True)(lambda x: x + 1)
    strict(np.ones(3))
    assert len(strict.specializations) == 1


def test_what_the_compiler_takes_to_be_imported_is_no_cost_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    for clock in ("process_time", "thread_time"):
        monkeypatch.setattr(interrupts.time, clock, lambda: now[0])
    with interrupts.deadline(1.0):
        with lazy_modules.loads():
            now[0] += 5.0
            with lazy_modules.loads():
                now[0] += 5.0
        now[0] += 0.9
        interrupts.poll()
        now[0] += 0.2
        with pytest.raises(interrupts.OutOfTime):
            interrupts.poll()
    account = Account(plain)
    account.has_waited(3e9, 2e9)
    assert account.owed == 1e9 and account.waited == 3e9
    pricing.compile_cost.lost -= account.owed


def test_what_python_has_cost_outweighs_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing.CompileCost, "room", 1e9)
    monkeypatch.setattr(pricing.compile_cost, "lost", 2e9)
    monkeypatch.setattr(pricing.compile_cost, "of", lambda size: 1e8)
    monkeypatch.setattr(renting, "BEGUN", renting.time.perf_counter_ns() - 10**12)
    account = Account(plain)
    account.spent = 3e8  # 2.1 times the room would be lost: the cost has to be earned 2.1 ** 2 times
    assert account.is_doubtful()
    account.spent = 5e8
    assert not account.is_doubtful()
    monkeypatch.setattr(pricing.compile_cost, "lost", 1e12)
    assert account.is_doubtful()
    account.spent = 1e9
    assert not account.is_doubtful()
