"""The comparison of the corpus notices every kind of difference it promises to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.arrays import LAYOUTS, arr
from tests.corpus import Difference, assert_same, outcome


def _raise(exception: BaseException) -> Any:
    raise exception


def _store(x: np.ndarray, at: Any, value: Any) -> Any:
    x[at] = value
    return None


DIFFERENT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "python type": (lambda x: 1, lambda x: 1.0),
    "numpy scalar for python scalar": (lambda x: 1.0, lambda x: np.float64(1.0)),
    "bool for int": (lambda x: 1, lambda x: True),
    "0-d array for scalar": (lambda x: np.float64(1), lambda x: np.array(1.0)),
    "dtype": (lambda x: x + 1, lambda x: (x + 1).astype("f4")),
    "shape": (lambda x: x + 1, lambda x: x[1:] + 1),
    "value": (lambda x: x + 1, lambda x: x + 1.0000001),
    "last bit": (lambda x: x + 1, lambda x: np.nextafter(x + 1, 9)),
    "sign of zero": (lambda x: 0.0, lambda x: -0.0),
    "nan": (lambda x: x * np.nan, lambda x: x),
    "tuple for list": (lambda x: [1], lambda x: (1,)),
    "length": (lambda x: (1, 2), lambda x: (1,)),
    "none": (lambda x: None, lambda x: 0),
    "memory order": (lambda x: np.zeros((2, 3)), lambda x: np.zeros((2, 3), order="F")),
    "copy for view": (lambda x: x[1:], lambda x: x[1:].copy()),
    "view for copy": (lambda x: x[1:].copy(), lambda x: x[1:]),
    "view for argument": (lambda x: x, lambda x: x[:]),
    "view from elsewhere": (lambda x: (_store(x, 1, x[0]), x[:1]), lambda x: (_store(x, 1, x[0]), x[1:2])),
    "read-only": (lambda x: np.broadcast_to(x, (2, 4)), lambda x: np.tile(x, (2, 1))),
    "one array for two": (lambda x: (x + 1, x + 1), lambda x: (lambda y: (y, y))(x + 1)),
    "no exception": (lambda x: _raise(ValueError("a")), lambda x: None),
    "exception": (lambda x: None, lambda x: _raise(ValueError("a"))),
    "exception type": (lambda x: _raise(ValueError("a")), lambda x: _raise(TypeError("a"))),
    "message": (lambda x: _raise(ValueError("a")), lambda x: _raise(ValueError("b"))),
    "mutation": (lambda x: None, lambda x: _store(x, 0, 9)),
    "no mutation": (lambda x: _store(x, 0, 9), lambda x: None),
    "mutation beside a view": (lambda x: None, lambda x: _store(x.base, 0, 9)),
}


@pytest.mark.parametrize(("plain", "other"), DIFFERENT.values(), ids=list(DIFFERENT))
def test_difference_is_noticed(plain: Callable[[Any], Any], other: Callable[[Any], Any]) -> None:
    recipe = arr("f8", 4, layout="stepped")
    assert_same(outcome(plain, (recipe.make(),)), outcome(plain, (recipe.make(),)), message=True)
    with pytest.raises(Difference):
        assert_same(outcome(plain, (recipe.make(),)), outcome(other, (recipe.make(),)), message=True)


def test_tolerances() -> None:
    recipe = arr("f8", 100)
    exact = outcome(lambda x: (np.sum(x), np.sin(x)), (recipe.make(),))
    near = outcome(lambda x: (np.sum(x) + 5e-14, np.nextafter(np.sin(x), 9)), (recipe.make(),))
    assert_same(exact, near, ulp=1, sums=8)
    with pytest.raises(Difference):
        assert_same(exact, near, ulp=1)
    with pytest.raises(Difference):
        assert_same(exact, outcome(lambda x: (np.sum(x) + 1e-9, np.sin(x)), (recipe.make(),)), sums=8)


def test_tolerances_of_numbers_in_texts() -> None:
    exact = outcome(lambda: f"x = {1.1} of {3}", ())
    near = outcome(lambda: f"x = {np.nextafter(1.1, 2)} of {3}", ())
    assert_same(exact, near, ulp=1)
    for other in (f"x = {1.1 + 1e-15} of 3", "x = 1.1 of 4", "y = 1.1 of 3", "x = -1.1 of 3"):
        with pytest.raises(Difference):
            assert_same(exact, outcome(lambda text=other: text, ()), ulp=1)
    with pytest.raises(Difference):
        assert_same(exact, near)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "b1", "c16", "f2"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (0, 3), (2, 3, 4)])
def test_recipes(dtype: str, layout: str, shape: tuple[int, ...]) -> None:
    recipe = arr(dtype, *shape, layout=layout)
    one, other = recipe.make(), recipe.make()
    assert one.dtype.newbyteorder("=") == np.dtype(dtype) and one.shape == shape
    assert one.dtype.isnative == (layout != "swapped" or one.dtype.itemsize == 1)
    assert np.array_equal(one, other) and not np.shares_memory(one, other)
    if layout == "reversed" and one.size > 1:
        assert all(stride < 0 for stride, n in zip(one.strides, shape, strict=True) if n > 1)
    if layout not in ("readonly", "broadcast"):
        assert one.flags.writeable
