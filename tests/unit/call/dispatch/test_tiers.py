"""Code that is made quickly first: what it takes, and when it is optimised."""

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.dispatch import tiers
from parakeet_py.llvm.runtime import blas


@pytest.fixture(autouse=True)
def with_tiers():
    with options(tiers=True, when="now", check=0):
        yield


def is_quick(function):
    (loaded,) = set(function._dispatcher.specializations.values())
    return loaded.native.quick is not None


def total(x, n):
    found = 0.0
    for k in range(n):
        found += x[k] * k
    return found, np.sqrt(x) + found


def test_short_calls_are_not_optimised_until_they_have_taken_their_time(monkeypatch):
    monkeypatch.setattr(tiers, "OPTIMISING", 100)
    f, x = accelerate(total), np.arange(10.0)
    wanted = total(x, 10)
    for number in range(2000):
        found = f(x, 10)
        assert found[0] == wanted[0] and np.array_equal(found[1], wanted[1])
        if number == 0:
            assert is_quick(f)
            assert "not optimised until" in str(f.explain(x, 10))
    assert not is_quick(f)
    assert len(f._dispatcher.instance._gates) == 1


@pytest.mark.parametrize("second", [(np.arange(100.0), 10), (np.arange(10.0), -100), (np.arange(200.0), 200)])
def test_larger_arguments_are_a_reason_to_optimise(second):
    f = accelerate(total)
    f(np.arange(10.0), 10)
    assert is_quick(f)
    f(np.arange(64.0), 64)
    f(np.arange(64.0), -3)
    assert is_quick(f)
    found, wanted = f(*second), total(*second)
    assert found[0] == wanted[0] and np.array_equal(found[1], wanted[1])
    assert not is_quick(f)


def test_long_lists_are_measured():
    f = accelerate(lambda numbers: sum(numbers) * 2)
    assert f([*range(500)]) == 249500
    assert is_quick(f)
    assert f([*range(300)]) == 89700
    assert is_quick(f)
    assert f([*range(501)]) == 250500
    assert not is_quick(f)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def fill(x, k):
    x[k] = k
    return k if k + 1 == len(x) else fill(x, k + 1)


def row_lengths(starts):
    count = 0
    for k in range(len(starts) - 1):
        for _ in range(starts[k], starts[k + 1]):
            count += 1
    return count


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (fill, (np.zeros(4), 0)),
        (total, (np.ones(2_000_000), 2_000_000)),
        (row_lengths, (np.array([0, 3, 10_000_000]),)),
    ],
)
def test_what_may_take_long_is_optimised_at_once(function, args):
    f = accelerate(function)
    f(*args)
    assert not is_quick(f)


def test_bounds_follow_the_values_of_small_integer_arrays():
    f = accelerate(row_lengths)
    assert f(np.array([0, 3, 10])) == 10
    assert is_quick(f)


def test_no_quick_code_where_llvm_may_choose_what_comes_out():
    for setting in ("contract", "fastmath"):
        with options(**{setting: True}):
            f = accelerate(total)
            f(np.arange(10.0), 10)
            assert not is_quick(f)


def test_code_compiled_ahead_is_optimised():
    f = accelerate(total)
    f.compile(np.arange(10.0), 10)
    assert not is_quick(f)
    f = accelerate(total)
    f(np.arange(10.0), 10)
    assert is_quick(f)
    f.compile(np.arange(10.0), 10)
    assert not is_quick(f)


def test_what_is_read_from_outside_is_measured_too():
    table = np.arange(10.0)
    f = accelerate(lambda k: table.sum() + k)
    assert f(1) == 46
    assert is_quick(f)
    table = np.arange(1000.0)
    assert f(1) == 499501
    assert not is_quick(f)


def test_quick_code_on_the_disk_is_replaced_by_optimised_code(tmp_path, monkeypatch):
    with options(cache=True, cache_dir=tmp_path):
        f = accelerate(total)
        f(np.arange(10.0), 10)
        second = accelerate(total)
        second(np.arange(10.0), 10)
        (loaded,) = set(second._dispatcher.specializations.values())
        assert loaded.from_disk and is_quick(second)
        second(np.arange(100.0), 100)
        assert not is_quick(second)
        third = accelerate(total)
        third(np.arange(10.0), 10)
        (loaded,) = set(third._dispatcher.specializations.values())
        assert loaded.from_disk and not is_quick(third)


def test_quick_code_on_the_disk_is_not_for_those_who_want_no_tiers(tmp_path):
    with options(cache=True, cache_dir=tmp_path):
        accelerate(total)(np.arange(10.0), 10)
        with options(tiers=False):
            f = accelerate(total)
            f(np.arange(10.0), 10)
            assert not is_quick(f)


def collatz(n):
    longest = 0
    for start in range(1, n):
        k, steps = start, 0
        while k != 1:
            k = 3 * k + 1 if k % 2 else k // 2
            steps += 1
        longest = max(longest, steps)
    return longest


def until_found(x, limit):
    made = [1.0]
    while x < limit:
        x += 1.0
        made.append(x)
    return made[-1] + len(made)


def until_stored(x, limit):
    while x[0] < limit:
        x[0] += 1.0


def test_a_call_that_turns_out_to_be_long_is_begun_again():
    for function, short, long in ((collatz, (5,), (64,)), (until_found, (1.0, 5.0), (1.0, 5e6))):
        f = accelerate(function)
        assert f(*short) == function(*short)
        assert is_quick(f)
        assert f(*long) == function(*long)
        assert f(*short) == function(*short)
    assert not is_quick(f)


def test_recursion_that_turns_out_to_be_long_is_begun_again():
    f = accelerate(fib)
    assert f(3) == 2
    assert is_quick(f)
    assert f(30) == 832040  # some clock ticks
    assert not is_quick(f)


def test_products_are_quick_where_blas_computes_them(monkeypatch):
    x = np.arange(12.0).reshape(3, 4)
    for quick in (True, False):
        f = accelerate(lambda x, y: x @ y + 1)
        assert np.array_equal(f(x, x.T), x @ x.T + 1)
        assert is_quick(f) is quick
        monkeypatch.setattr(blas, "find", lambda: None)


def test_a_call_that_may_be_long_and_changes_arguments_is_optimised_at_once():
    f, x = accelerate(until_stored), np.zeros(2)
    f(x, 5.0)
    assert x[0] == 5 and not is_quick(f)
