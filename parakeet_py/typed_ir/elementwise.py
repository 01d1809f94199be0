"""Elementwise operations: broadcasting, NumPy's ufuncs, Python's scalar operators and stores of whole arrays.

Types come from NumPy itself: `ufunc.resolve_dtypes` gives the loop NumPy would run, Python scalars being weak as NEP 50
has it. Each operation becomes one `Map`; fusing them is the passes' work. Python scalars among themselves follow
Python: ints are exact (overflow raises), division by zero raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.axis_order import Order, canonical, fortran, inverse, merged_order
from parakeet_py.typed_ir.builder import combine_forms
from parakeet_py.typed_ir.scalar_functions import UFUNC_PRIMS, scalar_loop
from parakeet_py.typed_ir.types import BOOL, DTYPES, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Array, Scalar, is_integer
from parakeet_py.typed_ir.values import ArrayV, ScalarV, TupleV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

Body = Callable[[list[ir.Operand]], Sequence[ir.Operand]]
ZERO, ONE = ir.Const(0, PYINT), ir.Const(1, PYINT)

BINARY_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNARY_UFUNCS = {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}
COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})


def shape_text(rank: int, first: int) -> str:
    """A shape as NumPy prints it, with format fields numbered from `first`."""
    if rank == 1:
        return f"({{{first}}},)"
    return "(" + ",".join(f"{{{first + axis}}}" for axis in range(rank)) + ")"


def broadcast_extents(
    s: Specializer, arrays: Sequence[ArrayV], named: Sequence[ArrayV] = (), *, indices: bool = False
) -> tuple[tuple[ir.Operand, ...], tuple[bool, ...]]:
    """The broadcast shape of arrays (with the check that there is one) and which extents are known not to be 1.

    `named` are further arrays that the error message names (the output of an in-place operation); `indices` says that
    it is index arrays that are broadcast.
    """
    b = s.builder
    rank = max(array.rank for array in arrays)
    extents: list[ir.Operand] = []
    nonunits: list[bool] = []
    for axis in range(rank):
        extent: ir.Operand = ONE
        nonunit = False
        for array in arrays:
            own = axis - (rank - array.rank)
            if own < 0:
                continue
            other, other_nonunit = array.extents[own], array.is_nonunit(own)
            if other == ONE:
                continue
            if extent == ONE:
                extent, nonunit = other, other_nonunit
            elif b.same(extent, other):
                nonunit = nonunit or other_nonunit
            else:
                agree = b.prim("eq", extent, other)
                if not other_nonunit:
                    agree = b.logical_or(agree, b.prim("eq", other, ONE))
                if not nonunit:
                    agree = b.logical_or(agree, b.prim("eq", extent, ONE))
                _check_broadcast(s, agree, [*arrays, *named], indices)
                if nonunit and other_nonunit:
                    b.learn_equal(extent, other)
                elif nonunit:
                    pass
                elif other_nonunit:
                    extent, nonunit = other, True
                else:
                    merged = b.select(b.prim("eq", extent, ONE), other, extent)
                    if isinstance(merged, ir.Var):
                        b.nonnegative.add(merged)
                        b.small.add(merged)
                    extent = merged
        extents.append(extent)
        nonunits.append(nonunit)
    return tuple(extents), tuple(nonunits)


def _check_broadcast(s: Specializer, agree: ir.Operand, arrays: Sequence[ArrayV], indices: bool) -> None:
    args: list[ir.Operand] = []
    shapes = []
    for array in arrays:
        shapes.append(shape_text(array.rank, len(args)))
        args.extend(array.extents)
    what = "shape mismatch: indexing arrays" if indices else "operands"
    message = f"{what} could not be broadcast together with shapes {' '.join(shapes)} "
    s.check(agree, "IndexError" if indices else "ValueError", message, args)


def load_broadcast(
    s: Specializer, array: ArrayV, indices: Sequence[ir.Operand], extents: Sequence[ir.Operand]
) -> ir.Operand:
    """The element of `array` at a point of a broadcast index space (called while the body is open)."""
    b = s.builder
    own: list[ir.Operand] = []
    for axis, extent in enumerate(array.extents):
        index = indices[len(indices) - array.rank + axis]
        target = extents[len(extents) - array.rank + axis]
        if extent == ONE:
            own.append(ZERO)
        elif array.is_nonunit(axis) or b.same(extent, target):
            own.append(index)
        else:
            own.append(b.select(b.prim("eq", extent, ONE), ZERO, index))
    return b.emit1(ir.Load(array.var, tuple(own)), Scalar(array.dtype))


def generate(
    s: Specializer,
    extents: Sequence[ir.Operand],
    body: Callable[[tuple[ir.Var, ...]], Sequence[ir.Operand]],
    *,
    order: Order = (),
    nonunit: tuple[bool, ...] = (),
) -> list[ArrayV]:
    """New arrays from a function of the index, with their axes in this order in memory."""
    b = s.builder
    extents = tuple(extents)
    rank = len(extents)
    indices = tuple(s.index_var(f"i{axis}", extent) for axis, extent in enumerate(extents))
    with b.block() as statements:
        results = tuple(body(indices))
    order = order or tuple(range(rank))
    op = ir.Map(
        tuple(extents[axis] for axis in order),
        tuple(indices[axis] for axis in order),
        ir.Block(tuple(statements), results),
    )
    outs = b.emit(op, *(Array(ir.dtype_of(result), rank, "C") for result in results), name="map")
    made = []
    for out in outs:
        root = s.new_root()
        array = ArrayV(out, op.extents, frozenset({root}), nonunit=tuple(nonunit[a] for a in order) if nonunit else ())
        made.append(transpose(s, array, inverse(order)) if canonical(order) else array)
    return made


def transpose(s: Specializer, array: ArrayV, axes: Sequence[int]) -> ArrayV:
    """A view with permuted axes; `axes[i]` is the source of axis i."""
    from parakeet_py.typed_ir.indexing import make_view

    return make_view(s, array, (ZERO,) * array.rank, [(axis, array.extents[axis], ONE) for axis in axes])


def elementwise(s: Specializer, body: Body, args: Sequence[Value], named: Sequence[ArrayV] = ()) -> list[Value]:
    """Apply a scalar function to broadcast arguments; 0-d arrays and scalars give NumPy scalars."""
    arrays = [arg for arg in args if isinstance(arg, ArrayV)]
    if all(array.rank == 0 for array in arrays):
        return [ScalarV(result) for result in body([scalar_operand(s, arg) for arg in args])]
    extents, nonunit = broadcast_extents(s, arrays, named)
    order = merged_order(s.builder, arrays, len(extents))

    def point(indices: tuple[ir.Var, ...]) -> Sequence[ir.Operand]:
        operands = []
        for arg in args:
            if isinstance(arg, ArrayV):
                operands.append(load_broadcast(s, arg, indices, extents))
            else:
                operands.append(scalar_operand(s, arg))
        return body(operands)

    return list(generate(s, extents, point, order=order, nonunit=nonunit))


def scalar_operand(s: Specializer, value: Value) -> ir.Operand:
    """The operand of a scalar or 0-d array."""
    match value:
        case ScalarV(operand):
            return operand
        case ArrayV(rank=0):
            return s.builder.emit1(ir.Load(value.var, ()), Scalar(value.dtype))
        case _:
            raise s.unsupported(f"a scalar is needed here, not {s.describe(value)}")


# ---- ufuncs ----------------------------------------------------------------------------------------------------------


def resolution_type(value: Value) -> Any:
    """What `resolve_dtypes` is told about an argument: a dtype, or int/float/complex for a weak scalar."""
    if isinstance(value, ScalarV) and value.python:
        return {"bool": np.dtype(bool), "int64": int, "float64": float, "complex128": complex}[value.dtype]
    assert isinstance(value, ScalarV | ArrayV)
    return np.dtype(value.dtype)


def call_ufunc(
    s: Specializer,
    ufunc: np.ufunc,
    args: Sequence[Value],
    *,
    out: Value | None = None,
    dtype: str | None = None,
    where: Value | None = None,
) -> Value:
    """`ufunc(*args)` with NumPy's type resolution; several results come as a tuple."""
    values = [s.numeric(arg) for arg in args]
    if ufunc is np.power and len(values) == 2 and dtype is None and out is None and where is None:
        fast = _fast_power(s, values[0], values[1])
        if fast is not None:
            return fast
    if len(values) != ufunc.nin:
        raise s.unsupported(f"{ufunc.__name__} takes {ufunc.nin} arguments")
    types = [resolution_type(value) for value in values]
    if ufunc in COMPARISONS and all(
        kind is int or (isinstance(kind, np.dtype) and kind.kind in "iu") for kind in types
    ):
        # A Python int is compared by value, however narrow the array's dtype is.
        types = [np.dtype("int64") if kind is int else kind for kind in types]
    if all(kind in (int, float, complex) for kind in types):
        types = [np.dtype(kind) for kind in types]
    try:
        wanted: Any = {} if dtype is None else {"signature": (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout}
        loop = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), **wanted)
    except (TypeError, AttributeError) as error:
        raise s.unsupported(str(error)) from None
    names = [kind.name for kind in loop]
    if any(name not in DTYPES for name in names):
        raise s.hand_back(f"{ufunc.__name__} for {names[0]}")
    function = scalar_loop(s, ufunc, names)
    outputs = [Scalar(name) for name in names[ufunc.nin :]]
    values = [  # a Python int that does not fit raises whether or not there are elements
        ScalarV(weak_cast(s, value.operand, name)) if isinstance(value, ScalarV) and value.type == PYINT else value
        for value, name in zip(values, names, strict=False)
    ]

    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        converted = [weak_cast(s, operand, name) for operand, name in zip(operands, names, strict=False)]
        results = function(converted)
        return [s.builder.cast(result, kind) for result, kind in zip(results, outputs, strict=True)]

    if where is not None:
        return _masked_ufunc(s, body, values, out, where)
    targets = () if out is None else out.items if isinstance(out, TupleV) else (out,)
    results = elementwise(s, body, values, [target for target in targets if isinstance(target, ArrayV)])
    if out is not None:
        for target, result in zip(targets, results, strict=True):
            if not isinstance(target, ArrayV):
                raise s.unsupported("out= must be an array")
            store_array(s, target, result, casting="same_kind", out=True)
        return targets[0] if len(targets) == 1 else TupleV(tuple(targets))
    return results[0] if len(results) == 1 else TupleV(tuple(results))


def _masked_ufunc(s: Specializer, body: Body, values: Sequence[Value], out: Value | None, where: Value) -> Value:
    if out is None or not isinstance(out, ArrayV):
        raise s.hand_back("where= without out=")
    results = elementwise(s, body, values)
    store_array(s, out, results[0], casting="same_kind", out=True, mask=s.numeric(where))
    return out


def weak_cast(s: Specializer, operand: ir.Operand, dtype: str) -> ir.Operand:
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


# ---- Python's operators ----------------------------------------------------------------------------------------------


def binary(s: Specializer, op: str, left: Value, right: Value) -> Value:
    """A Python binary operator or comparison on numeric values."""
    left, right = s.numeric(left), s.numeric(right)
    if isinstance(left, ScalarV) and isinstance(right, ScalarV) and left.python and right.python:
        from parakeet_py.typed_ir.python_scalars import python_binary

        return python_binary(s, op, left, right)
    return call_ufunc(s, BINARY_UFUNCS[op], [left, right])


def _fast_power(s: Specializer, left: Value, right: Value) -> Value | None:
    """NumPy's special exponents of `array ** scalar`: they are exact where pow is only close."""
    if not (isinstance(right, ScalarV) and right.python and isinstance(right.operand, ir.Const)):
        return None
    if not (isinstance(left, ArrayV) and np.dtype(left.dtype).kind in "fc"):
        return None
    exponent = right.operand.value
    if isinstance(exponent, complex):
        return None
    if exponent == 2:
        return call_ufunc(s, np.square, [left])
    if exponent == 1:
        return call_ufunc(s, np.positive, [left])
    if exponent == -1:
        return call_ufunc(s, np.reciprocal, [left])
    if exponent == 0.5:
        return call_ufunc(s, np.sqrt, [left])
    if exponent == 3 and np.dtype(left.dtype).kind == "f" and left.dtype != "float16":
        return call_ufunc(s, np.multiply, [call_ufunc(s, np.square, [left]), left])
    return None


def inplace(s: Specializer, op: str, left: Value, right: Value) -> Value:
    """`left op= right`."""
    if isinstance(left, ArrayV):
        right = s.numeric(right)
        ufunc = BINARY_UFUNCS[op]
        if op == "pow":
            fast = _fast_power(s, left, right)
            if fast is not None:
                store_array(s, left, fast, casting="same_kind", out=True)
                return left
        return call_ufunc(s, ufunc, [left, right], out=left)
    return binary(s, op, left, right)


# ---- whole-array stores ----------------------------------------------------------------------------------------------


def copy_array(s: Specializer, array: ArrayV, dtype: str | None = None, *, order: str = "K") -> ArrayV:
    """A new array with the same elements; order K keeps that of the array, A only Fortran order."""
    kind = Scalar(dtype or array.dtype)
    kept = array.order == fortran(array.rank) if order == "A" else order == "K"
    own = fortran(array.rank) if order == "F" else array.order if kept else ()

    def point(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
        element = s.builder.emit1(ir.Load(array.var, indices), Scalar(array.dtype))
        return [s.builder.cast(element, kind)]

    return generate(s, array.extents, point, order=own, nonunit=array.nonunit)[0]


def store_array(
    s: Specializer,
    target: ArrayV,
    value: Value,
    *,
    casting: str = "unsafe",
    out: bool = False,
    mask: Value | None = None,
) -> None:
    """target[...] = value, broadcast; with a mask only where it is true. Never reads what it has already written."""
    b = s.builder
    value = s.numeric(value)
    assert isinstance(value, ScalarV | ArrayV)
    weak = isinstance(value, ScalarV) and value.python
    source = np.dtype(value.dtype)
    if not weak and not np.can_cast(source, np.dtype(target.dtype), casting):  # type: ignore[arg-type]
        raise s.unsupported(f"cannot cast {source} to {target.dtype} with casting rule '{casting}'")
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
        value = _fit_shape(s, target, value, out)
        if value.roots & target.roots and value.var not in s.fresh:
            value = copy_array(s, value)
    scalar: ir.Operand | None = None
    if isinstance(value, ScalarV):
        scalar = store_cast(s, value.operand, kind)
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


def store_cast(s: Specializer, operand: ir.Operand, kind: Scalar) -> ir.Operand:
    """Convert a scalar to be stored: Python ints are range-checked, everything else is cast."""
    if operand.type == PYINT and is_integer(kind.dtype):
        return weak_cast(s, operand, kind.dtype)
    if ir.dtype_of(operand).startswith("complex") and not kind.dtype.startswith("complex"):
        raise s.unsupported("a complex number cannot be stored as a real one")
    return s.builder.cast(operand, kind)


def _fit_shape(s: Specializer, target: ArrayV, value: ArrayV, out: bool) -> ArrayV:
    """Check that a value broadcasts to the target's shape; drops leading axes of extent 1 that are too many."""
    from parakeet_py.typed_ir.indexing import make_view

    b = s.builder
    surplus = value.rank - target.rank
    if surplus > 0:
        for extent in value.extents[:surplus]:
            single = ir.Const(False, PYBOOL) if out else b.prim("eq", extent, ONE)  # an output is never broadcast
            s.check(single, "ValueError", _store_message(target, value, out), _store_args(target, value))
        axes = [(axis, value.extents[axis], ONE) for axis in range(surplus, value.rank)]
        value = make_view(s, value, (ZERO,) * value.rank, axes)
    for axis, extent in enumerate(value.extents):
        wanted = target.extents[target.rank - value.rank + axis]
        if extent == ONE or b.same(extent, wanted):
            continue
        agree = b.prim("eq", extent, wanted)
        if not value.is_nonunit(axis) and not out:
            agree = b.logical_or(agree, b.prim("eq", extent, ONE))
        s.check(agree, "ValueError", _store_message(target, value, out), _store_args(target, value))
        if value.is_nonunit(axis) or out:
            b.learn_equal(wanted, extent)
    return value


def _store_message(target: ArrayV, value: ArrayV, out: bool) -> str:
    if out:
        return (
            f"non-broadcastable output operand with shape {shape_text(target.rank, value.rank)} "
            f"doesn't match the broadcast shape {shape_text(value.rank, 0)}"
        )
    return (
        f"could not broadcast input array from shape {shape_text(value.rank, 0)} "
        f"into shape {shape_text(target.rank, value.rank)}"
    )


def _store_args(target: ArrayV, value: ArrayV) -> list[ir.Operand]:
    return [*value.extents, *target.extents]


__all__ = ["BOOL", "PYCOMPLEX", "PYFLOAT", "UFUNC_PRIMS", "combine_forms", "py"]
