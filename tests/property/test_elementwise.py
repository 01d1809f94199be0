"""Random elementwise expressions over random dtypes, shapes and layouts are those of NumPy, to the bit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import ELEMENTARY
from tests.property.generated import check, every_stage
from tests.property.strategies import FLOATS, REALS, arrays, broadcastable

NAMES = ("x", "y", "z")
CONSTANTS = ["1", "2", "-3", "0", "0.5", "-1.5", "1e30", "True", "np.float32(0.1)", "np.int8(5)", "np.float64(3)"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "np.maximum({}, {})", "np.minimum({}, {})"]
UNARY = ["-{}", "abs({})", "np.sqrt(abs({}))", "np.floor({})", "np.sign({})", "np.square({})", "+{}", "{} ** 2"]
COMPARISONS = ["{} < {}", "{} >= {}", "{} == {}", "{} != {}"]
BITWISE = ["{} & {}", "{} | {}", "{} ^ {}"]
CASTS = ["f8", "f4", "i4", "i8", "u1", "b1"]
ELEMENTARY_FUNCTIONS = ["exp", "log", "sin", "cos", "tan", "arctan", "tanh", "cbrt", "log1p", "expm1", "log2", "exp2"]


def _condition(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda form, a, b: f"({form.format(a, b)})", st.sampled_from(COMPARISONS), inner, inner)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda form, a, b: f"({form.format(a, b)})", st.sampled_from(BINARY), inner, inner),
        st.builds(lambda form, a, b: f"({form.format(a, b)})", st.sampled_from(BINARY[:4]), inner, inner),
        st.builds(lambda form, a: f"({form.format(a)})", st.sampled_from(UNARY), inner),
        st.builds(lambda c, a, b: f"np.where({c}, {a}, {b})", _condition(inner), inner, inner),
        _condition(inner),
    )


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Source text of expressions over these names in which at least the first leaf is likely an array."""
    leaves = st.one_of(st.sampled_from(names), st.sampled_from(names), st.sampled_from(CONSTANTS))
    return st.recursive(leaves, _grow, max_leaves=5)


@st.composite
def operands(draw: st.DrawFn, dtypes: list[str] = REALS) -> list[Any]:
    shapes = draw(broadcastable(len(NAMES)))
    return [draw(arrays(shape, dtypes)) for shape in shapes]


@every_stage
@given(st.data(), operands())
def test_expressions(stage: str, data: st.DataObject, args: list[Any]) -> None:
    check(stage, f"def f(x, y, z):\n    return {data.draw(expressions(NAMES))}, x + y\n", args)


@every_stage
@given(st.data(), operands())
def test_shared_temporaries(stage: str, data: st.DataObject, args: list[Any]) -> None:
    """Values used more than once, by name, in several results."""
    first = data.draw(expressions(NAMES))
    second = data.draw(expressions((*NAMES[:2], "t")))
    third = data.draw(expressions(("t", "u")))
    check(stage, f"def f(x, y, z):\n    t = x * 1 + ({first})\n    u = {second}\n    return {third}, t\n", args)


@every_stage
@given(st.data(), operands(["i8", "i4", "u1", "i1", "b1"]))
def test_integer_expressions(stage: str, data: st.DataObject, args: list[Any]) -> None:
    grow = [*BITWISE, *BINARY[:3], *BINARY[4:]]
    one, two = (data.draw(st.sampled_from(grow)) for _ in range(2))
    check(stage, f"def f(x, y, z):\n    return {two.format('(' + one.format('x', 'y') + ')', 'z')}\n", args)


@every_stage
@given(st.data(), operands())
def test_in_place(stage: str, data: st.DataObject, args: list[Any]) -> None:
    """Augmented assignment keeps the dtype of its target, or is refused."""
    operator = data.draw(st.sampled_from(["+=", "-=", "*=", "/=", "//=", "%="]))
    right = data.draw(expressions(NAMES))
    target = data.draw(st.sampled_from(["x", "x[...]", "x[:1]", "x.T"]))
    source = f"def f(x, y, z):\n    {target} {operator} {right}\n    return x\n"
    if target == "x.T":
        source = f"def f(x, y, z):\n    t = x.T\n    t {operator} {right}\n    return t\n"
    check(stage, source, args)


@every_stage
@given(st.data(), arrays(dtypes=[*FLOATS, "i4"]))
def test_elementary_functions(stage: str, data: st.DataObject, x: Any) -> None:
    one, two = (data.draw(st.sampled_from(ELEMENTARY_FUNCTIONS)) for _ in range(2))
    check(stage, f"def f(x):\n    return np.{one}(x), np.{two}(x * 0.5)\n", [x], ulp=ELEMENTARY)


@every_stage
@given(st.data(), operands())
def test_casts(stage: str, data: st.DataObject, args: list[Any]) -> None:
    """Casts of numbers in range: what an out-of-range float becomes is not defined by NumPy."""
    one, two = (data.draw(st.sampled_from(CASTS)) for _ in range(2))
    source = (
        f'def f(x, y, z):\n    t = np.clip(x, 0, 100).astype("{one}")\n    return t, (t + (y == z)).astype("{two}")\n'
    )
    args[0] = type(args[0])(args[0].dtype, args[0].shape, args[0].layout, "normal", args[0].seed)
    check(stage, source, args)
