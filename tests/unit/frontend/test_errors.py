"""What is refused, and the exact words in which it is said."""

from __future__ import annotations

import pytest

from parakeet_py.base.errors import FallbackWarning, ParakeetError, UnsupportedError, source_excerpt
from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.ssa import Pos
from tests.helpers.ssa_programs import define


def refusal(text: str) -> str:
    """The text of the error, without the number in the file's name."""
    function = define(text)
    with pytest.raises(UnsupportedError) as caught:
        to_ssa(function)
    assert isinstance(caught.value, ParakeetError)
    return str(caught.value).replace(function.__code__.co_filename, "model.py")


def test_error_word_for_word() -> None:
    text = """
import os
def f(x):
    y = x
    with catch_warnings() as f:
        y = f.read()
    return y
"""
    assert refusal(text.lstrip()) == (
        "model.py:4: a `with` statement of `catch_warnings`, which may change what the body shows\n"
        "    with catch_warnings() as f:\n"
        "         ^^^^^^^^^^^^^^^^\n"
        "  instead: enter it around the call, or accelerate a function of the numeric part alone, called inside\n"
        "  more: parakeet messages with-statement"
    )


def test_caret_counts_characters_and_keeps_tabs() -> None:
    assert refusal("def f(x):\n\tα = 'ä';\tx = yield\n\treturn α") == (
        "model.py:2: what is sent to a generator cannot be accelerated\n"
        "    α = 'ä';\tx = yield\n"
        "            \t    ^^^^^\n"
        "  instead: write `yield` as a statement\n"
        "  more: parakeet messages generator"
    )


def test_error_without_a_place() -> None:
    assert str(UnsupportedError("no")) == "no"
    assert str(UnsupportedError("no", "model.py", hint="yes")) == "model.py: no\n  instead: yes"


def test_warning_is_a_user_warning() -> None:
    assert issubclass(FallbackWarning, UserWarning)


def test_excerpt_for_later_stages() -> None:
    function = define("def f(x):\n    return (x +\n        1)")
    untyped = to_ssa(function)
    excerpt = source_excerpt(untyped, untyped.body.statements[0].pos)
    assert excerpt == f"{untyped.filename}:2\n    return (x +\n            ^^^"
    assert source_excerpt(untyped, Pos(99, 0, 99, 1)) == f"{untyped.filename}:99"
    error = UnsupportedError.at(untyped, untyped.body.statements[0].pos, "cannot add", "subtract")
    assert str(error) == f"{untyped.filename}:2: cannot add\n    return (x +\n            ^^^\n  instead: subtract"


REFUSED = {
    "async def f(x):\n    return x": "an async function cannot be accelerated",
    "def f(x):\n    match x:\n        case C(y=1): return 2": "a pattern that looks into an object",
    "def f(x):\n    class A: pass\n    return A": "a class cannot be defined in an accelerated function",
    "def f(x):\n    global y\n    y = x": "the global `y` cannot be bound in an accelerated function",
    "def f(x):\n    global y\n    for y in x: pass": "the global `y` cannot be bound in an accelerated function",
    "def f(x):\n    global y\n    def y(): pass": "the global `y` cannot be bound in an accelerated function",
    "def f(x):\n    global y\n    return (y := x)": "the global `y` cannot be bound in an accelerated function",
    "def f(x):\n    del x[0]": "`del` of an item cannot be accelerated",
    "def f(x):\n    with x.patch: pass": "a `with` statement of `patch`, which may change what the body shows",
    "def f(x):\n    with np.errstate(all='raise'): pass": "`np.errstate` can only be given 'ignore' or 'warn'",
    "def f(x):\n    with np.errstate(all=x): pass": "`np.errstate` can only be given 'ignore' or 'warn'",
    "def f(x):\n    with np.errstate() as e: pass": "a `with` statement of `np.errstate` that is no call, or with `as`",
    "def f(x):\n    raise": "`raise` without an exception cannot be accelerated",
    "def f(x):\n    return locals()": "`locals` cannot be accelerated: it looks at the frame of its caller",
    "def f(x):\n    return eval('x')": "`eval` cannot be accelerated: it looks at the frame of its caller",
    "def f(x):\n    return f'{x:{x}}'": "a format that is itself computed cannot be accelerated",
    "def f(x):\n    async def g(): pass": "`async` cannot be accelerated",
    "def f(x):\n    while (x := x - 1):\n        x = yield": "what is sent to a generator cannot be accelerated",
    "def f(x):\n    y = yield from x": "what a generator returns cannot be accelerated",
    "def f(x):\n    try:\n        yield x\n    except ValueError: pass": "a yield inside `try` cannot be accelerated",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    shown = refusal(text)
    assert REFUSED[text] in shown.splitlines()[0]
    assert "^" in shown


def test_a_local_name_may_be_called_locals() -> None:
    to_ssa(define("def f(locals):\n    return locals()"))


def test_too_deep() -> None:
    text = "def f(x):\n" + "    if x: return 1\n" * 2000 + "    return 2"
    assert refusal(text).startswith("model.py:1: the function is too deeply nested to be accelerated\n    def f(x):\n")
