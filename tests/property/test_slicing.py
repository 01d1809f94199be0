"""Random indexing: values, shapes, and whether the result is a view of the argument, are NumPy's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.arrays import Array
from tests.property.generated import check, every_stage
from tests.property.strategies import REALS, WRITEABLE, arrays, index_texts, slice_texts

DTYPES = ["f8", "f4", "i4", "u1", "b1", "c16"]
indexable = st.lists(st.sampled_from([0, 1, 3, 4, 6]), min_size=1, max_size=3).map(tuple)


@every_stage
@given(st.data(), arrays(indexable, DTYPES))
def test_basic_index(stage: str, data: st.DataObject, x: Array) -> None:
    one, two = (data.draw(index_texts(x.shape)) for _ in range(2))
    check(stage, f"def f(x):\n    return x[{one}], x[{two}]\n", [x])


@every_stage
@given(st.data(), arrays(indexable, DTYPES))
def test_index_then_compute(stage: str, data: st.DataObject, x: Array) -> None:
    """Index maps compose with elementwise code, transposition and each other."""
    first = data.draw(index_texts(x.shape))
    then = data.draw(st.sampled_from(["y * 2", "y.T", "-(y * 1)", "y + y", "y[...]", "y.T + 1", "np.sum(y)"]))
    check(stage, f"def f(x):\n    y = x[{first}]\n    return {then}\n", [x], sums=8)


@every_stage
@given(st.data(), arrays(st.tuples(st.sampled_from([0, 1, 5, 8])), DTYPES))
def test_slice_of_slice(stage: str, data: st.DataObject, x: Array) -> None:
    cuts = [data.draw(slice_texts(x.shape[0])) for _ in range(3)]
    check(stage, f"def f(x):\n    y = x[{cuts[0]}]\n    z = y[{cuts[1]}]\n    return z[{cuts[2]}], z, y\n", [x])


@every_stage
@given(st.data(), arrays(indexable, DTYPES))
def test_advanced_index(stage: str, data: st.DataObject, x: Array) -> None:
    check(stage, f"def f(x):\n    return x[{data.draw(index_texts(x.shape, advanced=True))}]\n", [x])


@every_stage
@given(
    arrays(st.tuples(st.sampled_from([0, 1, 4, 7])), DTYPES),
    st.integers(-9, 9),
    st.integers(-9, 9),
    st.sampled_from([1, 2, -1, -3, 0]),
)
def test_bounds_as_arguments(stage: str, x: Array, a: int, b: int, step: int) -> None:
    """Bounds known at run time only, in and out of range, and the element they name."""
    check(stage, "def f(x, a, b, s):\n    return x[a:b:s], x[a:], x[:b], x[a:b][:1]\n", [x, a, b, step])


@every_stage
@given(
    arrays(st.tuples(st.sampled_from([0, 1, 4]), st.sampled_from([1, 3])), DTYPES),
    st.integers(-5, 5),
    st.integers(-4, 3),
)
def test_element_as_argument(stage: str, x: Array, i: int, j: int) -> None:
    """An element, or the IndexError NumPy raises."""
    check(stage, "def f(x, i, j):\n    return x[i, j], x[i], x[:, j]\n", [x, i, j], message=True)


@every_stage
@given(st.data(), arrays(indexable, REALS, WRITEABLE))
def test_store_through_view(stage: str, data: st.DataObject, x: Array) -> None:
    """What is written through a view of a view shows in the argument."""
    first = data.draw(index_texts(x.shape))
    value = data.draw(st.sampled_from(["3", "y[...] * 2", "x.size"]))
    check(stage, f"def f(x):\n    y = x[{first}]\n    if y.ndim > 0:\n        y[...] = {value}\n    return y\n", [x])


@every_stage
@given(st.data(), arrays(indexable, DTYPES, WRITEABLE), st.integers(0, 3))
def test_store_by_index(stage: str, data: st.DataObject, x: Array, seed: int) -> None:
    """Stores of scalars and of broadcast rows by every kind of index."""
    index = data.draw(index_texts(x.shape, advanced=data.draw(st.booleans())))
    row = Array(x.dtype, (x.shape[-1],), "C", "normal", seed)
    operator = data.draw(st.sampled_from(["=", "+=", "*="])) if x.dtype != "b1" else "="
    value = data.draw(st.sampled_from(["1", "v", "v[:1]"]))
    check(stage, f"def f(x, v):\n    x[{index}] {operator} {value}\n", [x, row], ulp=2 if x.dtype[0] == "c" else 0)
