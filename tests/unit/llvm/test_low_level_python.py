"""Low-level Python: what it is translated to computes what its text says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.low_level_python import translate
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.native_runtime import runtime


def compiled(text: str, **constants: int | str) -> Callable[..., int]:
    """The function `f` of a text, of numbers and addresses."""
    ir = translate(Source(text, constants))
    code = runtime().load(compiler.compile_ir(ir, level=0, codegen_level=0), ["f"])
    code.keep_for_ever()
    count = text[text.index("def f(") :].split(")")[0].count(":")
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(code["f"])


def test_loops_and_variables() -> None:
    f = compiled("""
def f(n: i64) -> i64:
    total = 0
    other = 1
    k = 0
    while True:
        k += 1
        if k > n:
            break
        if k % 3 == 0:
            continue
        elif k % 3 == 1:
            total += k
        else:
            other = other * 2 ^ total
    return total * 1000 + other
""")
    for n in range(12):
        total, other = 0, 1
        for k in range(1, n + 1):
            total += k if k % 3 == 1 else 0
            other = other * 2 ^ total if k % 3 == 2 else other
        assert f(n) == total * 1000 + other


@pytest.mark.parametrize(
    "text",
    [
        "a < 3 and b < 3",
        "a < 3 or not b < 3",
        "not (a < 3 and (b < 2 or a == b))",
        "(a < 3) & (b != a)",
        "a == 1 or b == 1",
    ],
)
def test_conditions(text: str) -> None:
    branch = compiled(f"def f(a: i64, b: i64) -> i64:\n    if {text}:\n        return 1\n    return 0\n")
    value = compiled(f"def f(a: i64, b: i64) -> i64:\n    c = {text}\n    return i64(c)\n")
    select = compiled(f"def f(a: i64, b: i64) -> i64:\n    return 1 if {text} else 0\n")
    for a in range(5):
        for b in range(5):
            assert branch(a, b) == value(a, b) == select(a, b) == int(eval(text))


def test_signs_and_widths() -> None:
    f = compiled("""
def f(a: i64, b: i64) -> i64:
    return i64(ult(a, b)) | i64(a < b) << 1 | (sext(i32(a)) - a) << 2 | i64(i32(a)) << 8
""")
    assert f(-1, 1) == 2 | 0xFFFFFFFF << 8
    assert f(1, -1) == 1 | 1 << 8


def test_memory_fields_and_calls() -> None:
    f = compiled(
        """
def free(memory: ptr): ...
def malloc(bytes: i64) -> ptr: ...
count: i64 @ 64 = 5
words: i64[4]

@internal
def twice(x: i64) -> i64:
    return 2 * x

def f(n: i64) -> i64:
    block = malloc(SIZE)
    memset(block, 0, SIZE)
    block.SECOND.i32 = 7
    block.i32[3] = -1
    words.i64[n] = i64(block.i64[1] >> 32)
    atomic_add(count.i64, 1, "seq_cst")
    found = compare_exchange(count.i64, 6, 10, "acquire")
    address = twice
    total = address.i64(block.i64 + i64(block.SECOND.i32)) + words.i64[n] + count.i64 + i64(found) * umin(n, -1)
    free(block)
    return total
""",
        SIZE=32,
        SECOND=8,
    )
    assert f(2) == 14 + 0xFFFFFFFF + 10 + 2


def test_what_is_decided_by_constants() -> None:
    text = """
def f() -> i64:
    if WIDE:
        x = missing(3)
    else:
        x = 4
    return x + MORE
"""
    assert compiled(text, WIDE=False, MORE=-1)() == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 + unknown", "no expression"),
        ("return i32(a)", "i32 is no i64"),
        ("return a\n    a = 1", "never reached"),
        ("if a == 1:\n        b = 2\n    return b", "b has no value"),
        ("return a + i32(a)", "i64 and i32"),
        ("return a if a else 1", "i64 chooses from i64 and i64"),
        ("return a if a == 1 else unknown(a)", "both sides are computed"),
        ("for k in a:\n        pass\n    return a", "no statement"),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    with pytest.raises(SyntaxError, match=message):
        translate(Source(f"def f(a: i64) -> i64:\n    {body}\n"))
