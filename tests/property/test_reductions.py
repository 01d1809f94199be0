"""Random reductions and scans, by axis and dtype, over arrays and over expressions, are those of NumPy."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.arrays import Array
from tests.property.generated import check, every_stage
from tests.property.strategies import FLOATS, REALS, arrays

EXACT = ["min", "max", "argmin", "argmax", "any", "all", "count_nonzero"]
ROUNDED = ["sum", "prod", "mean", "var", "std"]
OPERANDS = ["x", "x", "x * 2", "x + 1", "x.T", "x[::-1]", "abs(x)", "(x > 1)"]
matrices = st.lists(st.sampled_from([0, 1, 2, 3, 5, 9]), min_size=1, max_size=3).map(tuple)


@st.composite
def axis_arguments(draw: st.DrawFn, rank: int, name: str) -> str:
    """`, axis=..., keepdims=...` for this reduction; the axis is out of range now and then."""
    axes: list[Any] = [None, *range(-rank, rank)]
    if name not in ("argmin", "argmax") and rank > 1:
        axes += [(0, rank - 1), (-1, 0)]
    if draw(st.integers(0, 15)) == 0:
        axes = [rank]
    axis = draw(st.sampled_from(axes))
    text = f", axis={axis}" if axis is not None or draw(st.booleans()) else ""
    return text + (f", keepdims={draw(st.booleans())}" if draw(st.integers(0, 2)) == 0 else "")


@every_stage
@given(st.data(), arrays(matrices))
def test_exact_reductions(stage: str, data: st.DataObject, x: Array) -> None:
    names = data.draw(st.lists(st.sampled_from(EXACT), min_size=1, max_size=2))
    calls = [
        f"np.{n}({data.draw(st.sampled_from(OPERANDS))}{data.draw(axis_arguments(len(x.shape), n))})" for n in names
    ]
    check(stage, f"def f(x):\n    return {', '.join(calls)}\n", [x])


@every_stage
@given(st.data(), arrays(matrices, values=("normal", "unit")))
def test_rounded_reductions(stage: str, data: st.DataObject, x: Array) -> None:
    names = data.draw(st.lists(st.sampled_from(ROUNDED), min_size=1, max_size=2))
    calls = [
        f"np.{n}({data.draw(st.sampled_from(OPERANDS))}{data.draw(axis_arguments(len(x.shape), n))})" for n in names
    ]
    # Squares of values up to 10, and of twice them, are summed.
    check(stage, f"def f(x):\n    return {', '.join(calls)}\n", [x], sums=512)


@every_stage
@given(st.data(), arrays(matrices, dtypes=[d for d in REALS if d not in FLOATS]))
def test_integer_sums_are_exact(stage: str, data: st.DataObject, x: Array) -> None:
    axis = data.draw(axis_arguments(len(x.shape), "sum"))
    name = data.draw(st.sampled_from(["sum", "prod"]))
    check(stage, f"def f(x):\n    return np.{name}(x{axis}), x.{name}({axis[2:]})\n", [x])


@every_stage
@given(st.data(), arrays(matrices, values=("normal",)), st.sampled_from(["f8", "f4", "i8", "i4"]))
def test_reductions_with_dtype(stage: str, data: st.DataObject, x: Array, dtype: str) -> None:
    axis = data.draw(axis_arguments(len(x.shape), "sum"))
    name = data.draw(st.sampled_from(["sum", "prod", "cumsum"]))
    axis = "" if name == "cumsum" else axis
    operand = "x" if dtype[0] == "f" or x.dtype not in FLOATS else "np.floor(x)"
    check(stage, f'def f(x):\n    return np.{name}({operand}{axis}, dtype="{dtype}")\n', [x], sums=64)


@every_stage
@given(st.data(), arrays(matrices, values=("normal", "unit")))
def test_scans(stage: str, data: st.DataObject, x: Array) -> None:
    name = data.draw(st.sampled_from(["cumsum", "cumprod", "maximum.accumulate", "diff"]))
    axis = data.draw(st.sampled_from(["", *(f", axis={a}" for a in range(-len(x.shape), len(x.shape)))]))
    operand = data.draw(st.sampled_from(OPERANDS[:6]))
    check(stage, f"def f(x):\n    return np.{name}({operand}{axis})\n", [x], sums=512)


@every_stage
@given(st.data(), arrays(matrices, dtypes=FLOATS, values=("normal", "special")))
def test_reduction_used_elementwise(stage: str, data: st.DataObject, x: Array) -> None:
    """What softmax and normalisation are made of: a reduction that is broadcast against its own input."""
    axis = data.draw(st.integers(-len(x.shape), len(x.shape) - 1))
    name = data.draw(st.sampled_from(["min", "max"]))
    check(stage, f"def f(x):\n    low = np.{name}(x, axis={axis}, keepdims=True)\n    return x - low, low\n", [x])


@every_stage
@given(st.data(), st.sampled_from([17, 127, 128, 129, 1000, 1025]), st.sampled_from(["f8", "f4", "i4"]))
def test_sums_over_block_boundaries(stage: str, data: st.DataObject, size: int, dtype: str) -> None:
    layout = data.draw(st.sampled_from(["C", "reversed", "stepped"]))
    x = Array(dtype, (size,), layout, "normal", data.draw(st.integers(0, 3)))
    y = Array(dtype, (size,), "C", "normal", 9)
    check(stage, "def f(x, y):\n    return np.sum(x), np.sum(x * y), np.max(x - y), np.mean(y)\n", [x, y], sums=64)
