"""Stores that read what they write, by random slices of one buffer, give NumPy's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.arrays import Array
from tests.property.generated import check, every_stage
from tests.property.strategies import arrays

DTYPES = ["f8", "f4", "i4", "i8"]
LAYOUTS = ["C", "C", "reversed", "stepped"]
OPERATORS = ["=", "+=", "-=", "*="]
lines = arrays(st.tuples(st.integers(0, 9)), DTYPES, LAYOUTS, values=("normal",))
squares = arrays(st.integers(1, 5).map(lambda n: (n, n)), DTYPES, ["C", "F", "stepped", "reversed"], values=("normal",))
COPIES = ["{}", "np.flip({})"]
STEPS = (1, 2, 3, 4)
ONE_STEP = (1,)  # NumPy's own plain copies between windows of one buffer may go wrong if their steps differ
FACTORS = ["{}", "2 * {}", "{} + {}[::-1]", "-{}", "np.flip({})", "{} * {}[:1]", "{} + 1"]


@st.composite
def windows(draw: st.DrawFn, extent: int, count: int, steps: tuple[int, ...] = STEPS) -> str:
    """Source text of a slice of exactly `count` elements, forwards or backwards, with one of the steps that fits."""
    most = (extent - 1) // (count - 1) if count > 1 else 1
    step = draw(st.sampled_from([1, *(step for step in steps if 1 < step <= most)]))
    first = draw(st.integers(0, max(0, extent - 1 - (count - 1) * step)))
    last = first + (count - 1) * step
    if count == 0:
        return f"{first}:{first}"
    if draw(st.integers(0, 2)):
        return f"{first}:{last + 1}:{step}"
    return f"{last}:{first - 1 if first else ''}:{-step}" if first else f"{last}::{-step}"


@every_stage
@given(st.data(), lines)
def test_line_onto_itself(stage: str, data: st.DataObject, x: Array) -> None:
    extent = x.shape[0]
    count = data.draw(st.integers(0, extent))
    operator, right = data.draw(st.sampled_from(OPERATORS)), data.draw(st.sampled_from(FACTORS))
    steps = ONE_STEP if operator == "=" and right in COPIES else STEPS
    target, source = (data.draw(windows(extent, count, steps)) for _ in range(2))
    right = right.replace("{}", f"x[{source}]")
    check(stage, f"def f(x):\n    x[{target}] {operator} {right}\n    return x\n", [x])


@every_stage
@given(st.data(), lines)
def test_several_stores(stage: str, data: st.DataObject, x: Array) -> None:
    """Stores and reads in a row through named views: order decides."""
    extent = x.shape[0]
    count = data.draw(st.integers(0, extent))
    one, two = (data.draw(st.sampled_from(OPERATORS)) for _ in range(2))
    a, b, c = (data.draw(windows(extent, count, ONE_STEP if one == "=" else STEPS)) for _ in range(3))
    body = f"    y = x[{a}]\n    z = x[{b}] * 2\n    y += x[{c}]\n    x[{b}] {one} y\n    x[{c}] {two} z"
    check(stage, f"def f(x):\n{body}\n    return y, z, y - x[{c}]\n", [x])


@every_stage
@given(st.data(), squares)
def test_plane_onto_itself(stage: str, data: st.DataObject, x: Array) -> None:
    n = x.shape[0]
    rows, columns = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    target = f"x[{data.draw(windows(n, rows))}, {data.draw(windows(n, columns))}]"
    source = f"x[{data.draw(windows(n, rows))}, {data.draw(windows(n, columns))}]"
    if data.draw(st.booleans()):
        source = f"x[{data.draw(windows(n, columns))}, {data.draw(windows(n, rows))}].T"
    operator = data.draw(st.sampled_from(OPERATORS))
    check(stage, f"def f(x):\n    {target} {operator} {source} + x[:1, :1]\n    return x\n", [x])


@every_stage
@given(st.data(), lines)
def test_loop_carried(stage: str, data: st.DataObject, x: Array) -> None:
    """An explicit loop over shifted elements is what it says, parallel or not."""
    p, q = data.draw(st.integers(-2, 2)), data.draw(st.integers(-2, 2))
    operator = data.draw(st.sampled_from(OPERATORS))
    order = data.draw(st.sampled_from(["2, len(x) - 2", "len(x) - 3, 1, -1", "0, len(x)"]))
    source = f"def f(x):\n    for i in range({order}):\n        x[i + {p}] {operator} x[i + {q}] + 1\n    return x\n"
    check(stage, source, [x], message=True)


@every_stage
@given(st.data(), squares)
def test_rows_in_loop(stage: str, data: st.DataObject, x: Array) -> None:
    up, left, right = (data.draw(st.integers(0, 1)) for _ in range(3))
    body = f"x[i, 1:-1] += x[i - {up}, {left}:len(x) - 2 + {left}] - x[i, {right}:len(x) - 2 + {right}]"
    check(stage, f"def f(x):\n    for i in range(1, x.shape[0]):\n        {body}\n    return x\n", [x])


@every_stage
@given(st.data(), st.integers(0, 8), st.sampled_from(DTYPES))
def test_overlapping_arguments(stage: str, data: st.DataObject, count: int, dtype: str) -> None:
    """Two views of one buffer passed as two arguments."""
    one, two = (data.draw(windows(12, count, ONE_STEP)) for _ in range(2))
    statement = data.draw(
        st.sampled_from(
            ["x += y", "x[:] = y * 2", "x[1:] = y[:-1]", "x -= y[::-1]", "y[:] = x + y", "x[:], y[:] = y, x"]
        )
    )
    source = f"def f(x, y):\n    t = x + 1\n    {statement}\n    x[:1] = 7\n    return t, y\n"
    check(stage, source, _pair(dtype, one, two))


def _pair(dtype: str, one: str, two: str) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        buffer = Array(dtype, (12,)).make()
        return eval(f"buffer[{one}]", {"buffer": buffer}), eval(f"buffer[{two}]", {"buffer": buffer})

    return make


@every_stage
@given(st.data(), lines, st.lists(st.integers(0, 8), max_size=9))
def test_scatter_onto_itself(stage: str, data: st.DataObject, x: Array, places: list[int]) -> None:
    """Integer-array stores with equal places: the last one wins, and the right-hand side is read first."""
    places = [p % x.shape[0] for p in places] if x.shape[0] else []
    statement = data.draw(st.sampled_from(["x[p] = x[q]", "x[p] += x[q] + 1", "x[p] = x[p[::-1]]", "x[p] *= 2"]))
    args = [x, *(np.array(v, np.int64) for v in (places, places[::-1]))]
    check(stage, f"def f(x, p, q):\n    {statement}\n    return x[q]\n", args)
