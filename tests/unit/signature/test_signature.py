"""Typing of arguments, overlap, slots, JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from parakeet_py.signature.results import (
    ResultLeaf,
    ResultListOf,
    ResultStatic,
    ResultTuple,
    result_leaves,
    result_offsets,
)
from parakeet_py.signature.serialization import NotPortable, from_json, to_json
from parakeet_py.signature.specs import (
    ArraySpec,
    HiddenSpec,
    NoneSpec,
    ObjectSpec,
    ScalarSpec,
    Signature,
    StaticSpec,
    TupleSpec,
    argument_slots,
    leaf_values,
    leaves,
    overlaps_itself,
    signature_of,
    spec_of,
)

SQUARE = np.zeros((4, 4))
RECORD = np.dtype([("a", "f8")])


@pytest.mark.parametrize(
    ("array", "layout", "unit"),
    [
        (np.zeros((2, 3)), "C", (False, False)),
        (np.zeros((2, 3)).T, "F", (False, False)),
        (np.zeros((3, 1)).T, "C", (True, False)),
        (SQUARE[:, :2], "S", (False, False)),
        (SQUARE[:, ::2], "A", (False, False)),
        (np.zeros(6)[::2], "A", (False,)),
        (np.zeros(6)[::-1], "A", (False,)),
        (np.zeros(()), "C", ()),
        (np.zeros((0, 3)), "C", (False, False)),
        (SQUARE[::2, ::2][:1, :1], "C", (True, True)),
    ],
)
def test_layout_is_exact(array: np.ndarray, layout: str, unit: tuple[bool, ...]) -> None:
    inner = array.shape[-1] if array.ndim > 1 and array.shape[-1] in (2, 3, 4) else 0
    assert spec_of(array) == ArraySpec("float64", array.ndim, layout, unit, True, inner)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("array", "order"),
    [
        (np.zeros((5, 6, 7)).transpose(1, 0, 2), (1, 0, 2)),
        (np.zeros((5, 6, 7)).transpose(2, 0, 1)[::-1, ::2], (1, 2, 0)),
        (np.zeros((5, 1, 7)).transpose(2, 1, 0)[:, :, ::2], (2, 1, 0)),
        (np.zeros((5, 6, 7))[:, ::2], ()),
        (np.broadcast_to(np.zeros((6, 5)).T, (7, 5, 6)), (0, 2, 1)),
        (np.broadcast_to(np.zeros((6, 5, 1)).transpose(1, 0, 2), (5, 6, 2))[::-1], (1, 0, 2)),
        (np.broadcast_to(np.zeros((6, 1, 5)).T, (5, 3, 6)), (1, 2, 0)),
    ],
)
def test_order_of_axes_is_known(array: np.ndarray, order: tuple[int, ...]) -> None:
    spec = spec_of(array)
    assert isinstance(spec, ArraySpec) and spec.order == order
    assert spec.still == tuple(axis for axis, stride in enumerate(array.strides) if stride == 0)
    made = (array + 1).strides
    axes = [axis for axis in order or range(array.ndim) if array.shape[axis] > 1]
    assert axes == sorted(axes, key=lambda axis: -made[axis])


def test_short_last_axes_are_known() -> None:
    assert [spec_of(np.zeros((5, n))).inner for n in range(7)] == [0, 0, 2, 3, 4, 0, 0]  # type: ignore[union-attr]
    assert spec_of(np.zeros(3)).inner == 0  # type: ignore[union-attr]


def test_read_only_arrays_have_a_spec_of_their_own() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    assert spec_of(array) == ArraySpec("float64", 1, "C", (False,), False)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3, ">f8"),
        np.zeros(17, "u1")[1:].view("f8"),
        np.zeros(3, object),
        np.zeros(3, "U3"),
        np.zeros(3, "M8"),
        np.zeros(3, ">M8[s]"),
        np.timedelta64(3),
        np.zeros(3, np.longlong if np.dtype(np.longlong).num != np.dtype(np.int64).num else np.longdouble),
        np.zeros(3, np.dtype("f8", metadata={"unit": "m"})),
        np.matrix([1.0]),
        np.ma.zeros(3),
        np.broadcast_arrays(np.zeros(1), np.zeros(3))[0],
        np.lib.stride_tricks.as_strided(np.zeros(5), (3, 3), (8, 8)),
        2**63,
        -(2**63) - 1,
        np.float128(1) if hasattr(np, "float128") else object(),
        np.str_("a"),
        {},
        object(),
        list(range(100)),
        [].append,
    ],
)
def test_opaque_values(value: object) -> None:
    assert spec_of(value) == ObjectSpec(type(value))


def test_scalars() -> None:
    assert spec_of(True) == ScalarSpec("bool", True)
    assert spec_of(-(2**63)) == ScalarSpec("int64", True)
    assert spec_of(1.0) == ScalarSpec("float64", True)
    assert spec_of(1j) == ScalarSpec("complex128", True)
    assert spec_of(np.float64(1)) == ScalarSpec("float64")
    assert spec_of(np.bool(1)) == ScalarSpec("bool")
    assert spec_of(np.float16(1)) == ScalarSpec("float16")
    assert spec_of(None) == NoneSpec()
    assert spec_of((1, [2.0, None])) == TupleSpec(
        (ScalarSpec("int64", True), TupleSpec((ScalarSpec("float64", True), NoneSpec()), "list"))
    )
    assert spec_of(slice(1, None)) == TupleSpec((ScalarSpec("int64", True), NoneSpec(), NoneSpec()), "slice")


def test_a_list_that_contains_itself_has_a_spec() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    assert isinstance(spec_of(loop), TupleSpec)


def test_statics_compare_by_exact_value() -> None:
    values = [0, 0.0, -0.0, False, "0", None, 0j, (0,), (0.0,), (False,), math.nan, np.mean, np, len, int]
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            assert (StaticSpec(left) == StaticSpec(right)) is (i == j)
    assert StaticSpec(math.nan) == StaticSpec(float("nan"))
    assert hash(StaticSpec((1, "a"))) == hash(StaticSpec((1, "a")))


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((3,), (8,), False),
        ((3,), (4,), True),
        ((3,), (0,), True),
        ((1,), (0,), False),
        ((3, 3), (8, 8), True),
        ((3, 3), (24, 8), False),
        ((3, 3), (-24, 8), False),
        ((3, 3), (16, 8), True),
        ((0, 3), (0, 0), False),
        ((2, 2, 2), (8, 16, 32), False),
        ((2, 2, 2), (8, 16, 16), True),
    ],
)
def test_overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], expected: bool) -> None:
    array = np.lib.stride_tricks.as_strided(np.zeros(64)[32:], shape, strides)
    assert overlaps_itself(array) is expected


def test_slots_and_leaves() -> None:
    x = np.zeros((2, 3))
    signature = signature_of([x, None, (1, 2j), "mean"], [(("global", "scale"), 2.0)])
    found = leaves(signature)
    assert [leaf.path for leaf in found] == [(0,), (2, 0), (2, 1), (4,)]
    assert [leaf.slot for leaf in found] == [0, 6, 7, 9]
    assert argument_slots(signature) == 10
    assert leaf_values(signature, [x, None, (1, 2j), "mean", 2.0])[1:] == [1, 2j, 2.0]


def test_signature_of_records_overlap() -> None:
    x = np.zeros(4)
    assert signature_of([x, x.copy()]).disjoint
    assert signature_of([x, x.copy()]).pairs == ((0, 1),)
    assert not signature_of([x, 1, x]).disjoint
    assert signature_of([x, 1, x]).pairs == ((0, 2),)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert signature_of([frozen, frozen]).pairs == ()
    overridden = signature_of([x, 1], overrides={1: StaticSpec(1)})
    assert overridden.params[1] == StaticSpec(1)


def test_result_slots() -> None:
    array = ResultLeaf(0, "array", "float64", rank=2)
    scalar = ResultLeaf(1, "scalar", "complex128", True)
    tree = ResultTuple((array, ResultStatic("a"), ResultTuple((scalar, array)), ResultLeaf(2, "object")))
    assert result_leaves(tree) == (array, scalar, ResultLeaf(2, "object"))
    assert result_offsets(tree) == (0, 8, 10, 11)
    with pytest.raises(ValueError, match="numbered"):
        result_leaves(ResultLeaf(1, "object"))
    with pytest.raises(ValueError, match="two different"):
        result_leaves(ResultTuple((array, ResultLeaf(0, "object"))))


def test_json_round_trip() -> None:
    signature = Signature(
        (
            *(spec_of(v) for v in (np.zeros((1, 2)), 1, 2.5, np.int8(1), None, "a", (1, [2]), slice(None), {})),
            StaticSpec((1, -0.0, math.inf, True, None, ("x", 1j), Ellipsis, 2**80)),
            *(StaticSpec(v) for v in (np, np.add, np.mean, np.float64, np.dtype("f4"), math.sin, len, int, math)),
        ),
        (HiddenSpec(("global", "np"), StaticSpec(np)), HiddenSpec(("cell", 0), ScalarSpec("int64", True))),
        False,
        ((0, 1),),
    )
    text = json.dumps(to_json(signature))
    again = from_json(json.loads(text))
    assert again == signature
    assert hash(again) == hash(signature)
    tree = ResultTuple(
        (ResultListOf(ResultLeaf(0, "array", "int64", rank=1)), ResultStatic((1, None)), ResultLeaf(1, "object")),
        "list",
    )
    assert from_json(json.loads(json.dumps(to_json(tree)))) == tree


def test_what_has_no_name_is_not_portable() -> None:
    class Local:
        pass

    for value in (lambda: 0, Local, Local(), np.dtype("f8", metadata={"a": 1})):
        with pytest.raises(NotPortable):
            to_json(StaticSpec(value))
    with pytest.raises(NotPortable):
        from_json({"is": "StaticSpec", "value": {"object": ["math", "no_such_name"]}})
