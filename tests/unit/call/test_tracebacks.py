"""Tracebacks of accelerated functions are those of the functions themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, UnsupportedError, accelerate, options

Program = Callable[..., Any]


def index(x: Any, k: int) -> Any:
    y = x * 2
    return y[k] + 1


def index_in_loop(x: Any, k: int) -> Any:
    s = 0.0
    for i in range(len(x) + 1):
        s += x[i + k] * 2
    return s


def divide(x: Any, k: int) -> Any:
    n = len(x)
    return 7 // (n - 3 + 0 * k)


def shapes(x: Any, k: int) -> Any:
    return x[1:] + x[:1] * x[k - k :]


def raises(x: Any, k: int) -> Any:
    if k > 1:
        raise ValueError(f"no {k}")
    return x


def asserts(x: Any, k: int) -> Any:
    assert k < 1, "too much"
    return x


def helper(x: Any, k: int) -> Any:
    total = 0.0
    for j in range(k):
        total = total + x[j]
    return total


def through_helper(x: Any, k: int) -> Any:
    before = x.sum()
    return before + helper(x, k)


def through_two(x: Any, k: int) -> Any:
    return through_helper(
        x,
        k + 1,
    )


def nested(x: Any, k: int) -> Any:
    def inner(y: Any) -> Any:
        return y[k]

    return inner(x) + 1


def after_store(x: Any, k: int) -> Any:
    x[0] = 5
    x[k] = 3
    return x


def key(x: Any, k: int) -> Any:
    table = {1: 2.0, 2: 3.0}
    return table[k] + x


def handed_back(x: Any, k: int) -> Any:
    y = x + 1
    return np.partition(y, k) * 2


def called_back(x: Any, k: int) -> Any:
    return through_helper(x, k) + int("x" * k)


def too_big(x: Any, k: int) -> Any:
    x[0] = np.int8(1)
    return x.astype(np.int8) + (k + 300)


def library(x: Any, k: int) -> Any:
    return np.concatenate((x, x.reshape(k - 5, 1)))


def unbound(x: Any, k: int) -> Any:
    if k < 1:
        y = x
    return y + 1


def comparison(x: Any, k: int) -> Any:
    if x > k:
        return 1
    return 2


def element(v: Any, k: int) -> Any:
    return 7 // int(v - k)


def comprehension(x: Any, k: int) -> Any:
    return [7 // int(v + k - 7) for v in x]


def dict_comprehension(x: Any, k: int) -> Any:
    return {i: 7 // int(v + k - 7) for i, v in enumerate(x)}


def function_in_comprehension(x: Any, k: int) -> Any:
    return [[element(v + 7, k) for v in x] for _ in range(k)]


def comparison_of_generator(x: Any, k: int) -> Any:
    return sum(v for v in x if 7 // int(v + k - 7) > 1)


def raised_again(x: Any, k: int) -> Any:
    try:
        x[0] = 1
        x[k] = 2
    except IndexError:
        x[1] = 3
        raise


def named_again(x: Any, k: int) -> Any:
    try:
        x[0] = through_two(x, k)
    except IndexError as error:
        x[1] = 3
        raise error


def from_several_places(x: Any, k: int) -> Any:
    try:
        for _ in range(2):
            x[k - 5] = helper(x, 2)
            x[k - 6] = helper(x, k)
    finally:
        x[1] += 3
    return x


def behind_finally(x: Any, k: int) -> Any:
    try:
        y = x[0]
    except IndexError:
        return 0
    else:
        x[k] = y
    finally:
        x[1] = 5


def of_a_list(x: Any, k: int) -> Any:
    items = x.tolist()
    try:
        return [items, items[k]]
    finally:
        x[0] = 7


def in_lambda(x: Any, k: int) -> Any:
    get = lambda i: x[i]  # noqa: E731
    return get(0) + get(k)


def complex_power(x: Any, k: int) -> Any:
    return complex(x[0], 0) ** -k


PROGRAMS = [
    index, index_in_loop, divide, shapes, raises, asserts, through_helper, through_two, nested, after_store, key,
    handed_back, called_back, too_big, library, unbound, comparison, comprehension, dict_comprehension,
    function_in_comprehension, comparison_of_generator, raised_again, named_again, from_several_places, behind_finally,
    of_a_list, in_lambda, complex_power,
]  # fmt: skip


def shown(function: Program, *args: Any) -> list[tuple[str, str, int | None, str | None]]:
    """The lines of the traceback of a call, and the exception; frames of NumPy's are not compared, nor those of
    comprehensions, which are not there from Python 3.12 on."""
    try:
        function(*args)
    except Exception as error:
        entries = traceback.extract_tb(error.__traceback__)[1:]
        assert error.__context__ is None and error.__cause__ is None
        own = [entry for entry in entries if "site-packages" not in entry.filename and "<" not in entry.filename]
        return [
            (one.filename, one.name, one.lineno, one.line) for one in own if not one.name.endswith(("comp>", "expr>"))
        ]
    raise AssertionError("no exception")


def arguments() -> tuple[Any, int]:
    return np.arange(3.0), 7


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("warm", [False, True])
def test_tracebacks_are_pythons(program: Program, warm: bool) -> None:
    fast = accelerate(program)
    if warm:
        for _ in range(3):
            try:
                fast(*arguments())
            except Exception:
                continue
    assert shown(fast, *arguments()) == shown(program, *arguments())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("devices", ["emulated", "cpu,emulated*2"])
def test_tracebacks_of_calls_on_devices(program: Program, devices: str) -> None:
    fast = accelerate(devices=devices)(program)
    for _ in range(2):
        assert shown(fast, *arguments()) == shown(program, *arguments())


@accelerate
def accelerated_helper(x: Any, k: int) -> Any:
    return x[k]


def calls_accelerated(x: Any, k: int) -> Any:
    return accelerated_helper(x, k) + 1


def test_accelerated_functions_that_call_each_other() -> None:
    fast = accelerate(calls_accelerated)
    expected = [("calls_accelerated", "return accelerated_helper(x, k) + 1"), ("accelerated_helper", "return x[k]")]
    for function in (fast, fast, calls_accelerated, calls_accelerated):
        assert [(name, line) for _, name, _, line in shown(function, *arguments())] == expected


def test_columns_are_marked() -> None:
    def text(function: Any) -> list[str]:
        with pytest.raises(IndexError) as found:
            function(*arguments())
        lines = "".join(traceback.format_exception(found.value)).splitlines()
        return lines[next(at for at, line in enumerate(lines) if line.endswith("in through_helper")) :]

    fast, expected = accelerate(through_helper), text(through_helper)
    assert any(set(line.strip()) == {"~", "^"} for line in expected)
    for _ in range(3):
        assert text(fast) == expected


def test_fallbacks_and_refusals_have_no_other_frames() -> None:
    def unusual(x: Any) -> Any:
        class Sum:
            value = x[7]

        return Sum.value

    fast = accelerate(unusual)
    with pytest.warns(FallbackWarning) as warned:
        assert fast(np.arange(9.0)) == 7
    assert warned[0].filename == __file__
    for _ in range(2):
        with pytest.raises(IndexError) as found:
            fast(np.arange(3.0))
        assert [entry.name for entry in traceback.extract_tb(found.tb)[1:]] == ["unusual", "Sum"]
        assert found.value.__context__ is None
    strict = accelerate(strict=True)(unusual)
    for _ in range(2):
        with pytest.raises(UnsupportedError) as refused:
            strict(np.arange(3.0))
        assert len(traceback.extract_tb(refused.tb)) == 1
        assert refused.value.__context__ is None and refused.value.__cause__ is None


def test_calls_that_python_refuses() -> None:
    fast = accelerate(index)
    for args in ((), (1,), (1, 2, 3)):
        with pytest.raises(TypeError, match="index") as found:
            fast(*args)
        assert len(traceback.extract_tb(found.tb)) == 1


def test_the_context_is_the_users() -> None:
    fast = accelerate(index)
    for _ in range(3):
        with pytest.raises(IndexError) as found:
            try:
                raise KeyError(1)
            except KeyError:
                fast(*arguments())
        assert type(found.value.__context__) is KeyError


def test_warnings_stand_at_the_callers_line() -> None:
    def unusual(x: Any) -> Any:
        class Sum:
            value = x + 1

        return Sum.value

    with options(threads=2), pytest.warns(FallbackWarning) as found:
        accelerate(unusual)(3)
        accelerate(unusual)(x=2)
        accelerate(devices="emulated")(unusual)(np.arange(3.0))
    lines = [(one.filename, one.lineno) for one in found]
    first = lines[0][1]
    assert lines == [(__file__, first + number) for number in range(len(lines))] and len(lines) == 3


def test_code_from_the_disk(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import traceback
            import numpy as np
            from parakeet_py import accelerate

            def helper(x, k):
                return x[k]

            @accelerate
            def f(x, k):
                return helper(x, k) + 1

            for k in (1, 9):
                try:
                    f(np.arange(3.0), k)
                except IndexError:
                    traceback.print_exc()
            print(f.specializations)
            """
        )
    )
    environment = os.environ | {"PARAKEET_CACHE": "1", "PARAKEET_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
        for _ in range(2)
    ]
    assert "from the disk cache" in runs[1].stdout and "from the disk cache" not in runs[0].stdout
    assert runs[0].stderr == runs[1].stderr
    assert runs[1].stderr.count("  File ") == 3 and "parakeet_py/" not in runs[1].stderr
    assert "line 7, in helper\n    return x[k]\n           ~^^^\n" in runs[1].stderr


def test_frames_are_made_once() -> None:
    """Making frames takes far longer than raising: exceptions from one place share those of compiled functions."""

    def fails(x: Any, i: int) -> Any:
        return x[i]

    compiled = accelerate(fails)
    found = []
    for index in (7, 8):
        with pytest.raises(IndexError, match=f"index {index} ") as caught:
            compiled(np.ones(3), index)
        found.append(list(traceback.walk_tb(caught.value.__traceback__)))
        traceback.clear_frames(caught.value.__traceback__)
    (frame, line), (again, same_line) = (entries[-1] for entries in found)
    assert frame is again and line == same_line == fails.__code__.co_firstlineno + 1
    assert frame.f_code.co_name == "fails" and frame.f_back is None
