"""Copies of arrays, and stores of whole arrays: `x[...] = value`, `out=`, in-place operators.

The value is broadcast to the target, cast with NumPy's rules, and copied first where the target could be read after it
has been written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import PYBOOL, PYFLOAT, PYINT, Array, Scalar, Type, is_complex, is_float, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.axis_order import copied_order, fortran
from parakeet_py.typed_ir.specialize.arrays.elementwise import (
    broadcast_extents,
    generate,
    load_broadcast,
    scalar_operand,
    shape_text,
)
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.python import long_ints
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def weak_cast(s: Context, operand: ir.Operand, dtype: str) -> ir.Operand:
    """Convert an argument to its loop dtype; a Python int that does not fit an integer dtype raises as NumPy does."""
    kind = operand.type
    assert isinstance(kind, Scalar)
    if kind == PYINT and is_integer(dtype) and dtype != "int64":
        limits = np.iinfo(dtype)
        low, high = max(int(limits.min), -(1 << 63)), min(int(limits.max), (1 << 63) - 1)
        b = s.builder
        fits = b.logical_and(b.prim("ge", operand, ir.Const(low, PYINT)), b.prim("le", operand, ir.Const(high, PYINT)))
        s.check(fits, "OverflowError", f"Python integer {{0}} out of bounds for {dtype}", [operand])
        if isinstance(operand, ir.Const) and not low <= operand.value.real <= high:
            operand = ir.Const(0, PYINT)
    return s.builder.cast(operand, Scalar(dtype))


def keep_imaginary(s: Context, source: str, dtype: str) -> None:
    """Where imaginary parts are dropped NumPy warns; so it has to do that itself."""
    if is_complex(source) and not is_complex(dtype) and dtype != "bool":
        raise s.hand_back("complex numbers made real, with a warning")


def new_array(s: Context, extents: tuple[ir.Operand, ...], dtype: str, name: str = "new") -> ArrayV:
    """New memory for an array in C order, whose elements mean nothing yet."""
    var = s.builder.emit1(ir.Alloc(extents), Array(dtype, len(extents), "C"), name=name)
    return ArrayV(var, extents, frozenset({s.memory.new_root()}))


def copy_array(s: Context, array: ArrayV, dtype: str | None = None, *, order: str = "K") -> ArrayV:
    """A new array with the same elements; order K keeps that of the array, A only Fortran order."""
    kind = Scalar(dtype or array.dtype)
    keep_imaginary(s, array.dtype, kind.dtype)
    kept = array.order == fortran(array.rank) if order == "A" else order == "K"
    own = fortran(array.rank) if order == "F" else copied_order(s.builder, array) if kept else ()

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        element = s.builder.emit1(ir.Load(array.var, indices), Scalar(array.dtype))
        return [s.builder.cast(element, kind)]

    return generate(s, array.extents, point, order=own, nonunit=array.nonunit)[0]


def store_array(
    s: Context,
    target: ArrayV,
    value: Value,
    *,
    casting: str = "unsafe",
    out: bool = False,
    mask: Value | None = None,
    users: bool = False,
) -> None:
    """target[...] = value, broadcast; with a mask only where it is true. Never reads what it has already written.

    `users`: as if the user's program stored it, see `store_cast`.
    """
    b = s.builder
    value = s.numeric(long_ints.beside(value, target))
    assert isinstance(value, ScalarV | ArrayV)
    weak = isinstance(value, ScalarV) and value.python
    source = np.dtype(value.dtype)
    if not weak and not np.can_cast(source, np.dtype(target.dtype), casting):  # type: ignore[arg-type]
        raise s.unsupported(f"cannot cast {source} to {target.dtype} with casting rule '{casting}'")
    if isinstance(value, ArrayV):
        keep_imaginary(s, value.dtype, target.dtype)
    if mask is None and isinstance(value, ArrayV) and value.var is target.var:
        return  # x[i] op= y ends by storing the very view that was changed in place
    if target.readonly:
        message = "output array is read-only" if out else "assignment destination is read-only"
        s.check(ir.Const(False, PYBOOL), "ValueError", message)
        return
    s.will_store(target)
    kind = Scalar(target.dtype)
    extents = target.extents
    if isinstance(value, ArrayV):
        value = value if out else _fit_shape(s, target, value)  # `fit_outputs` has checked it
        if value.roots & target.roots:
            value = copy_array(s, value)
    scalar: ir.Operand | None = None
    if isinstance(value, ScalarV):
        if out:  # which a ufunc casts, as it would an array
            scalar = b.cast(value.operand, kind)
        else:
            scalar = store_cast(s, value.operand, kind, one=mask is None, users=users)
    if isinstance(mask, ArrayV) and not out:
        if mask.rank > target.rank:
            s.check(ir.Const(False, PYBOOL), "ValueError", *_misfit(target, mask, "where mask"))
            return
        mask = _fit_shape(s, target, mask, "where mask")
    if isinstance(mask, ArrayV) and mask.roots & target.roots:
        mask = copy_array(s, mask)

    def point(indices: Sequence[ir.Operand]) -> None:
        if scalar is not None:
            element = scalar
        else:
            assert isinstance(value, ArrayV)
            element = b.cast(load_broadcast(s, value, indices, extents), kind)
        store = ir.Store(target.var, tuple(indices), element)
        if mask is None:
            b.emit(store)
            return
        chosen = scalar_operand(s, mask) if not isinstance(mask, ArrayV) or mask.rank == 0 else None
        if chosen is None:
            assert isinstance(mask, ArrayV)
            chosen = load_broadcast(s, mask, indices, extents)
        with b.block() as then:
            b.emit(store)
        b.emit(ir.If(b.cast(chosen, PYBOOL), ir.Block(tuple(then)), ir.Block(())))

    if target.rank == 0:
        point(())
        return
    indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
    with b.block() as statements:
        point(indices)
    b.emit(ir.Map(extents, indices, ir.Block(tuple(statements))))


def store_cast(s: Context, operand: ir.Operand, kind: Scalar, *, one: bool = True, users: bool = False) -> ir.Operand:
    """Convert a scalar to be stored.

    Python ints are range-checked. Python floats are made ints first, as by `int`, and so are NumPy's scalars for signed
    integers, if the scalar is stored as it is and not (`one`) as an array that is broadcast. Everything else is cast,
    and so is what the library stores for itself.
    """
    source = ir.dtype_of(operand)
    if operand.type == PYINT and is_integer(kind.dtype):
        return weak_cast(s, operand, kind.dtype)
    users = users or not s.frame.namespace.trusted
    if users and is_integer(kind.dtype) and (operand.type == PYFLOAT or (one and kind.dtype.startswith("int"))):
        if is_float(source):
            return _whole(s, s.builder.cast(operand, PYFLOAT), kind.dtype)
        if is_integer(source) and not np.can_cast(source, kind.dtype):
            if source == "uint64":
                limit = ir.Const((1 << 63) - 1, Scalar(source))
                fits = s.builder.prim("le", operand, limit, type=PYBOOL)
                s.check(fits, "OverflowError", "Python int too large to convert to C long")
            return weak_cast(s, s.builder.cast(operand, PYINT), kind.dtype)
    if ir.dtype_of(operand).startswith("complex") and not kind.dtype.startswith("complex"):
        raise s.hand_back("a complex number cannot be stored as a real one")
    return s.builder.cast(operand, kind)


def _whole(s: Context, number: ir.Operand, dtype: str) -> ir.Operand:
    """A float as an integer of a dtype that it has to fit."""
    b = s.builder

    def compare(name: str, limit: float) -> ir.Operand:
        return b.prim(name, number, ir.Const(limit, PYFLOAT), type=PYBOOL)

    nan, infinite = b.prim("isnan", number, type=PYBOOL), b.prim("isinf", number, type=PYBOOL)
    s.check(b.prim("not", nan, type=PYBOOL), "ValueError", "cannot convert float NaN to integer")
    s.check(b.prim("not", infinite, type=PYBOOL), "OverflowError", "cannot convert float infinity to integer")
    high = 2.0**64 if dtype in ("uint32", "uint64") else 2.0**63
    inside = b.logical_and(compare("ge", -(2.0**63)), compare("lt", high))
    s.check(inside, "OverflowError", "Python int too large to convert to C long")
    if dtype == "uint32":  # NumPy asks Python for an unsigned long, and then whether that is too much
        above = b.select(compare("lt", 2.0**63), ir.Const(0.0, PYFLOAT), number)
        s.check(compare("lt", 2.0**63), "OverflowError", "Python integer {0:.0f} out of bounds for uint32", [above])
    if dtype != "uint64":
        return weak_cast(s, b.cast(number, PYINT), dtype)
    below = b.select(compare("lt", 0.0), number, ir.Const(0.0, PYFLOAT))
    message = f"Python integer {{0}} out of bounds for {dtype}"
    s.check(compare("gt", -1.0), "OverflowError", message, [b.cast(below, PYINT)])
    return b.cast(number, Scalar(dtype))


def fit_outputs(s: Context, inputs: Sequence[Value], targets: Sequence[ArrayV], mask: Value | None = None) -> bool:
    """Check that operands can be broadcast together with outputs (and a mask), and that no output would be larger.

    False: they never can.
    """
    b = s.builder
    operands = [*inputs, *targets] if mask is None else [*inputs, *targets, mask]
    arrays = [operand for operand in operands if isinstance(operand, ArrayV)]
    extents, _ = broadcast_extents(s, arrays, operands)
    for target in targets:
        message = (
            f"non-broadcastable output operand with shape {shape_text(target.rank, 0)} "
            f"doesn't match the broadcast shape {shape_text(len(extents), target.rank)}"
        )
        args = (*target.extents, *extents)
        if target.rank < len(extents):
            s.check(ir.Const(False, PYBOOL), "ValueError", message, args)
            return False
        for own, extent in zip(target.extents, extents[len(extents) - target.rank :], strict=True):
            if not b.same(own, extent):
                s.check(b.prim("eq", own, extent, type=PYBOOL), "ValueError", message, args)
                b.learn_equal(own, extent)
    return True


def _fit_shape(s: Context, target: ArrayV, value: ArrayV, what: str = "input array") -> ArrayV:
    """Check that a value broadcasts to the target's shape; drops leading axes of extent 1 that are too many."""
    b = s.builder
    surplus = value.rank - target.rank
    if surplus > 0:
        for dropped, extent in enumerate(value.extents[:surplus]):
            s.check(b.prim("eq", extent, ONE), "ValueError", *_misfit(target, value, what, dropped))
        axes = [(axis, value.extents[axis], ONE) for axis in range(surplus, value.rank)]
        value = make_view(s, value, (ZERO,) * value.rank, axes)
    for axis, extent in enumerate(value.extents):
        wanted = target.extents[target.rank - value.rank + axis]
        if extent == ONE or b.same(extent, wanted):
            continue
        agree = b.prim("eq", extent, wanted)
        if not value.is_nonunit(axis):
            agree = b.logical_or(agree, b.prim("eq", extent, ONE))
        s.check(agree, "ValueError", *_misfit(target, value, what))
        if value.is_nonunit(axis):
            b.learn_equal(wanted, extent)
    return value


def _misfit(target: ArrayV, value: ArrayV, what: str, dropped: int = 0) -> tuple[str, list[ir.Operand]]:
    """The message for a value that does not broadcast, which has lost leading axes already, and what it names."""
    extents = value.extents[dropped:]
    message = (
        f"could not broadcast {what} from shape {shape_text(len(extents), 0)} "
        f"into shape {shape_text(target.rank, len(extents))}"
    )
    return message, [*extents, *target.extents]


def encoded(s: Context, leaves: Sequence[ir.Operand]) -> list[ir.Operand]:
    """The leaves as elements of arrays."""
    return [s.builder.cast(leaf, Scalar(ir.dtype_of(leaf))) for leaf in leaves]


def load_leaves(s: Context, columns: Sequence[ArrayV], place: ir.Operand, kinds: Sequence[Type]) -> list[Any]:
    """The leaves of an item, of these types, from columns."""
    b = s.builder
    return [
        b.cast(b.emit1(ir.Load(column.var, (place,)), Scalar(column.dtype)), kind)
        for column, kind in zip(columns, kinds, strict=True)
        if isinstance(kind, Scalar)
    ]


def store_leaves(s: Context, columns: Sequence[ArrayV], place: ir.Operand, leaves: Sequence[ir.Operand]) -> None:
    """Store the leaves of an item into columns."""
    for column, leaf in zip(columns, leaves, strict=True):
        s.will_store(column)
        s.builder.emit(ir.Store(column.var, (place,), store_cast(s, leaf, Scalar(column.dtype))))
