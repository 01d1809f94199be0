"""Words that compute: maps, reductions, scans, stores, memory, primitives, checks and whole routines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base import exact_loops, routines
from parakeet_py.base.exact_loops import exact
from parakeet_py.base.types import (
    BOOL,
    PYBOOL,
    PYFLOAT,
    PYINT,
    Array,
    Scalar,
    is_complex,
    is_float,
    real_dtype,
    same_bits,
)
from parakeet_py.library import intrinsics as words
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing, strided
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, keep_imaginary, new_array, store_array
from parakeet_py.typed_ir.specialize.arrays.axis_order import canonical, fortran, inverse
from parakeet_py.typed_ir.specialize.arrays.elementwise import elementwise, generate, scalar_operand
from parakeet_py.typed_ir.specialize.arrays.index_entries import check_index
from parakeet_py.typed_ir.specialize.arrays.summation_order import runs_of
from parakeet_py.typed_ir.specialize.arrays.ufuncs import call_ufunc
from parakeet_py.typed_ir.specialize.arrays.views import transpose
from parakeet_py.typed_ir.specialize.intrinsics.table import dtype_name, extents_of, handles, rank0
from parakeet_py.typed_ir.specialize.paths.tagged_scalars import as_type
from parakeet_py.typed_ir.specialize.values import NONE, ArrayV, ScalarV, TaggedScalar, TupleV, Value, is_none, lift

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _operands(s: Context, value: Value) -> list[ir.Operand]:
    values = value.items if isinstance(value, TupleV) else (value,)
    return [scalar_operand(s, _element(s, one)) for one in values]


def _element(s: Context, value: Value) -> ScalarV | ArrayV:
    """A value as an element of an array."""
    match value:
        case ScalarV():
            return value
        case TaggedScalar(kinds) if len({kind.dtype for kind in kinds}) == 1:  # a float or a np.float64: one dtype
            return ScalarV(as_type(s, value, Scalar(kinds[0].dtype)))
    return s.numeric(value)


@handles(words.elementwise)
def _elementwise(s: Context, function: Value, *args: Value) -> Value:
    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        with s.element_function():
            return _operands(s, s.call(function, [ScalarV(operand) for operand in operands], {}))

    results = elementwise(s, body, [s.numeric(arg) for arg in args])
    return results[0] if len(results) == 1 else TupleV(tuple(results))


@handles(words.generate)
def _generate(s: Context, shape: Value, function: Value) -> Value:
    def body(indices: tuple[ir.Var, ...]) -> Sequence[ir.Operand]:
        with s.element_function():
            return _operands(s, s.call(function, [ScalarV(index) for index in indices], {}))

    extents = extents_of(s, shape)
    if not extents:
        made = [rank0(s, operand) for operand in body(())]
        return made[0] if len(made) == 1 else TupleV(tuple(made))
    results = generate(s, extents, body)
    return results[0] if len(results) == 1 else TupleV(tuple(results))


@handles(words.reduce_axes)
def _reduce_axes(
    s: Context,
    array: Value,
    axes: Value,
    inits: Value,
    contribute: Value,
    combine: Value,
    summed: Value | None = None,
) -> Value:
    """One Reduce; the kept axes keep their order."""
    b = s.builder
    assert isinstance(array, ArrayV) and isinstance(inits, TupleV)
    reduced = tuple(s.static(axes, "the axes of a reduction"))
    kept = [axis for axis in array.axes_by_stride if axis not in reduced]  # the result has the order of the array
    index = [s.index_var(f"i{axis}", extent) for axis, extent in enumerate(array.extents)]
    start = [scalar_operand(s, s.numeric(init)) for init in inits.items]
    kinds = [Scalar(ir.dtype_of(operand), _weak(operand)) for operand in start]
    if array.rank == 0:
        element = b.emit1(ir.Load(array.var, ()), Scalar(array.dtype))
        single = _operands(s, s.call(contribute, [ScalarV(element)], {}))
        arrived = [ScalarV(b.cast(x, kind)) for x, kind in zip(single, kinds, strict=True)]
        folded = _operands(s, s.call(combine, [*map(ScalarV, start), *arrived], {}))
        return TupleV(tuple(ScalarV(b.cast(x, kind)) for x, kind in zip(folded, kinds, strict=True)))
    if not reduced and kept:
        return _reduce_nothing(s, array, start, contribute, combine)
    with b.block() as statements, s.element_function():
        element = b.emit1(ir.Load(array.var, tuple(index)), Scalar(array.dtype))
        found = s.call(contribute, [ScalarV(element), *(ScalarV(index[axis]) for axis in reduced)], {})
        contributions = [b.cast(x, kind) for x, kind in zip(_operands(s, found), kinds, strict=True)]
    body = ir.Block(tuple(statements), tuple(contributions))
    accumulators = tuple(ir.Var("acc", kind) for kind in kinds)
    arrivals = tuple(ir.Var("x", kind) for kind in kinds)
    with b.block() as statements, s.element_function():
        found = s.call(combine, [*map(ScalarV, accumulators), *map(ScalarV, arrivals)], {})
        combined = [b.cast(x, kind) for x, kind in zip(_operands(s, found), kinds, strict=True)]
    fold = ir.Lambda((*accumulators, *arrivals), ir.Block(tuple(statements), tuple(combined)))
    extents = tuple(array.extents[axis] for axis in kept)
    runs: tuple[ir.Operand, ...] = ()
    if summed is not None and not is_none(summed) and np.dtype(name := dtype_name(s, summed)).kind in "fc":
        reduced = tuple(axis for axis in array.axes_by_stride if axis in reduced)
        runs = runs_of(s, array, reduced, name)
        if exact.get() and array.rank > 1 and strided.is_strided(s, array.var):
            raise s.hand_back("a sum whose order depends on strides that only the run tells, in exact code")
    if exact.get() and not runs and _rounds(statements):
        raise s.hand_back("a reduction that rounds, in no particular order, in exact code")
    op = ir.Reduce(
        extents,
        tuple(index[axis] for axis in kept),
        tuple(array.extents[axis] for axis in reduced),
        tuple(index[axis] for axis in reduced),
        body,
        tuple(start),
        fold,
        runs,
    )
    if not kept:
        return TupleV(tuple(ScalarV(out) for out in b.emit(op, *kinds, name="reduce")))
    outs = b.emit(op, *(Array(kind.dtype, len(kept), "C") for kind in kinds), name="reduce")
    nonunit = tuple(array.is_nonunit(axis) for axis in kept)
    made = [ArrayV(out, extents, frozenset({s.memory.new_root()}), False, nonunit) for out in outs]
    if canonical(kept):
        made = [transpose(s, one, inverse(kept)) for one in made]
    return TupleV(tuple(made))


def _reduce_nothing(s: Context, array: ArrayV, start: list[ir.Operand], contribute: Value, combine: Value) -> Value:
    """A reduction over no axis: every element combined with the identity."""

    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        with s.element_function():
            found = s.call(contribute, [ScalarV(operands[0])], {})
            values = [
                ScalarV(s.builder.cast(x, Scalar(ir.dtype_of(init))))
                for x, init in zip(_operands(s, found), start, strict=True)
            ]
            return _operands(s, s.call(combine, [*map(ScalarV, start), *values], {}))

    return TupleV(tuple(elementwise(s, body, [array])))


def _rounds(combine: list[ir.Let]) -> bool:
    """Whether the result of a combination of floats depends on the order."""
    return any(
        isinstance(let.op, ir.Prim)
        and (let.op.name in ("add", "sub", "mul", "div") or exact_loops.is_loop(let.op.name))
        and (is_float(name := ir.dtype_of(let.outs[0])) or is_complex(name))
        for let in combine
    )


def _weak(operand: ir.Operand) -> bool:
    kind = operand.type
    return isinstance(kind, Scalar) and kind.python


@handles(words.scan_axis)
def _scan_axis(
    s: Context,
    array: Value,
    axis: Value,
    init: Value,
    contribute: Value,
    combine: Value,
    inclusive: Value | None = None,
) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV)
    along = s.static_int(axis, "the axis of a scan")
    indices = tuple(s.index_var(f"i{n}", extent) for n, extent in enumerate(array.extents))
    start = scalar_operand(s, s.numeric(init))
    kind = Scalar(ir.dtype_of(start))
    with b.block() as statements, s.element_function():
        element = b.emit1(ir.Load(array.var, indices), Scalar(array.dtype))
        contribution = b.cast(_operands(s, s.call(contribute, [ScalarV(element)], {}))[0], kind)
    body = ir.Block(tuple(statements), (contribution,))
    accumulator, arrival = ir.Var("acc", kind), ir.Var("x", kind)
    with b.block() as statements, s.element_function():
        combined = b.cast(_operands(s, s.call(combine, [ScalarV(accumulator), ScalarV(arrival)], {}))[0], kind)
    fold = ir.Lambda((accumulator, arrival), ir.Block(tuple(statements), (combined,)))
    whole = inclusive is None or bool(s.static(inclusive, "inclusive"))
    order = array.axes_by_stride  # the result has the order of the array
    extents = tuple(array.extents[axis] for axis in order)
    points = tuple(indices[axis] for axis in order)
    op = ir.Scan(extents, points, order.index(along), body, (b.cast(start, kind),), fold, whole)
    out = b.emit1(op, Array(kind.dtype, array.rank, "C"), name="scan")
    nonunit = tuple(array.is_nonunit(axis) for axis in order)
    return transpose(s, ArrayV(out, extents, frozenset({s.memory.new_root()}), False, nonunit), inverse(order))


@handles(words.nonzero)
def _nonzero(s: Context, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return TupleV(tuple(indexing.nonzero_indices(s, array)[1]))


@handles(words.compress)
def _compress(s: Context, mask: Value, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return indexing.read(s, array, mask)


@handles(words.scatter)
def _scatter(
    s: Context, target: Value, indices: Value, values: Value, combine: Value, chunk: Value | None = None
) -> Value:
    b = s.builder
    assert isinstance(target, ArrayV) and isinstance(indices, ArrayV)
    s.will_store(target)
    kind = Scalar(target.dtype)
    point = tuple(s.index_var("k", extent) for extent in indices.extents)
    with b.block() as statements:
        place = b.cast(b.emit1(ir.Load(indices.var, point), Scalar(indices.dtype)), PYINT)
        if isinstance(values, ArrayV):
            element: ir.Operand = b.emit1(ir.Load(values.var, point), Scalar(values.dtype))
        else:
            element = scalar_operand(s, s.numeric(values))
        element = b.cast(element, kind)
    old, new = ir.Var("old", kind), ir.Var("new", kind)
    with b.block() as inner, s.element_function():
        combined = b.cast(_operands(s, s.call(combine, [ScalarV(old), ScalarV(new)], {}))[0], kind)
    body = ir.Block(tuple(statements), (ir.Const(True, PYBOOL), place, element))
    fold = ir.Lambda((old, new), ir.Block(tuple(inner), (combined,)))
    together = 0 if chunk is None else int(s.static(chunk, "how many points are added up together"))
    b.emit(ir.Scatter(target.var, indices.extents, point, body, fold, together))
    return NONE


@handles(words.load)
def _load(s: Context, array: Value, *indices: Value) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV) and len(indices) == array.rank
    place = tuple(b.cast(scalar_operand(s, index), PYINT) for index in indices)
    return ScalarV(b.emit1(ir.Load(array.var, place), Scalar(array.dtype)))


@handles(words.store)
def _store(s: Context, array: Value, index: Value, value: Value) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV) and array.rank == 1
    s.will_store(array)
    item = b.cast(scalar_operand(s, value), Scalar(array.dtype))
    b.emit(ir.Store(array.var, (b.cast(scalar_operand(s, index), PYINT),), item))
    return NONE


@handles(words.allocate)
def _allocate(s: Context, shape: Value, dtype: Value, order: Value | None = None) -> Value:
    extents = extents_of(s, shape)
    name = dtype_name(s, dtype)
    chosen = "C" if order is None else s.static(order, "the order of an array")
    if isinstance(chosen, str):
        axes = fortran(len(extents)) if chosen == "F" else ()
    else:
        axes = canonical(chosen)
    extents = tuple(extents[axis] for axis in axes) if axes else extents
    array = new_array(s, extents, name)
    return transpose(s, array, inverse(axes)) if axes else array


@handles(words.assign)
def _assign(s: Context, target: Value, value: Value, users: Value | None = None, where: Value | None = None) -> Value:
    if not isinstance(target, ArrayV):
        raise s.hand_back(f"a store to {s.describe(target)}")
    store_array(s, target, value, mask=where, users=users is not None and s.static(users, "who assigns"))
    return NONE


@handles(words.copy)
def _copy(s: Context, array: Value, order: Value | None = None) -> Value:
    chosen = "K" if order is None else s.static(order, "the order of a copy")
    if not isinstance(array, ArrayV):
        raise s.hand_back(f"a copy of {s.describe(array)}")
    if array.rank == 0:
        return rank0(s, scalar_operand(s, array))
    return copy_array(s, array, order=chosen)


@handles(words.cast)
def _cast(s: Context, value: Value, dtype: Value) -> Value:
    name = dtype_name(s, dtype)
    number = s.numeric(value)
    keep_imaginary(s, number.dtype, name)
    if isinstance(number, ArrayV):
        if number.rank == 0:
            return rank0(s, s.builder.cast(scalar_operand(s, number), Scalar(name)))
        return copy_array(s, number, name)
    return ScalarV(s.builder.cast(number.operand, Scalar(name)))


@handles(words.constant)
def _constant(s: Context, value: Value, dtype: Value) -> Value:
    name = dtype_name(s, dtype)
    number = np.dtype(name).type(s.static(value, "a constant"))
    return ScalarV(ir.Const(number.item(), Scalar(name)))


@handles(words.prim)
def _prim(s: Context, name: Value, *operands: Value) -> Value:
    op = s.static(name, "the name of a primitive")
    args = [scalar_operand(s, s.numeric(operand)) for operand in operands]
    kind: Scalar | None = None
    first = ir.dtype_of(args[0])
    if op in ("real", "imag") or (op == "abs" and first.startswith("complex")):
        kind = Scalar(real_dtype(first))
    elif op == "complex":
        kind = Scalar("complex64" if first == "float32" else "complex128")
    elif op in ir.COMPARE or op in ir.FLOAT_TESTS:
        kind = BOOL
    elif op in ir.REINTERPRET:
        kind = Scalar(same_bits(first))
    else:
        last = args[-1].type
        assert isinstance(last, Scalar)
        kind = Scalar(last.dtype, last.python)
    return ScalarV(s.builder.prim(op, *args, type=kind))


@handles(words.as_array)
def _as_array(s: Context, value: Value, dtype: Value | None = None) -> Value:
    if dtype is not None and not is_none(dtype) and not isinstance(value, ArrayV | ScalarV):
        return s.as_array(value, dtype_name(s, dtype))
    number = s.numeric(value)
    return rank0(s, number.operand) if isinstance(number, ScalarV) else number


@handles(words.as_numeric)
def _as_numeric(s: Context, value: Value) -> Value:
    return s.numeric(value)


@handles(words.python_scalar)
def _python_scalar(s: Context, value: Value) -> Value:
    number = s.numeric(value)
    return s.as_python(ScalarV(scalar_operand(s, number)))


@handles(words.matmul_into)
def _matmul_into(s: Context, out: Value, left: Value, right: Value) -> Value:
    assert isinstance(out, ArrayV) and isinstance(left, ArrayV) and isinstance(right, ArrayV)
    if exact.get() and (is_float(out.dtype) or is_complex(out.dtype)):
        raise s.hand_back("a product of matrices, in exact code")
    s.builder.emit(ir.Matmul(out.var, left.var, right.var))
    return NONE


@handles(words.hidden_array)
def _hidden_array(s: Context, module: Value, name: Value) -> Value:
    holder, own = s.static(module, "the name of a module"), s.static(name, "the name of an array")
    return s.hidden_value(("attribute", holder, own))


@handles(words.named)
def _named(s: Context, cls: Value, *items: Value) -> Value:
    return TupleV(items, "tuple", s.static(cls, "the class of a named tuple"))


@handles(words.routine)
def _routine(s: Context, name: Value, outs: Value, ins: Value) -> Value:
    sides = []
    for side in (outs, ins):
        assert isinstance(side, TupleV)
        arrays = [item for item in side.items if isinstance(item, ArrayV)]
        assert len(arrays) == len(side.items)
        sides.append(arrays)
    for array in sides[0]:
        s.will_store(array)
    known = s.static(name, "the name of a routine")
    op = ir.Routine(known, tuple(array.var for array in sides[0]), tuple(array.var for array in sides[1]))
    if not routines.reports(known):
        s.builder.emit(op)
        return NONE
    return ScalarV(s.builder.emit1(op, BOOL, name="failed"))


@handles(words.check)
def _check(s: Context, condition: Value, exception: Value, message: Value, *args: Value) -> Value:
    operands = [_shown(s, scalar_operand(s, s.numeric(arg))) for arg in args]
    s.check(s.truth(condition), s.static(exception, "an exception"), s.static(message, "a message"), operands)
    return NONE


def _shown(s: Context, operand: ir.Operand) -> ir.Operand:
    """What a message shows: numbers of all types are Python's there."""
    kind = np.dtype(operand.type.dtype).kind if isinstance(operand.type, Scalar) else ""
    wanted = PYINT if kind in "iub" else PYFLOAT if kind == "f" else operand.type
    return s.builder.cast(operand, wanted) if kind and isinstance(wanted, Scalar) else operand


@handles(words.hand_back)
def _hand_back(s: Context, reason: Value) -> Value:
    raise s.hand_back(s.static(reason, "a reason"))


@handles(words.unsupported)
def _unsupported(s: Context, reason: Value) -> Value:
    raise s.unsupported(s.static(reason, "a reason"))


@handles(words.ufunc_call)
def _ufunc_call(
    s: Context,
    ufunc: Value,
    *args: Value,
    dtype: Value | None = None,
    out: Value | None = None,
    where: Value | None = None,
    prim: Value | None = None,
) -> Value:
    loop = s.static(ufunc, "a ufunc")
    chosen = None if dtype is None or is_none(dtype) else dtype_name(s, dtype)
    target = None if out is None or is_none(out) else out
    mask = None if where is None or is_none(where) or where == lift(True) else where
    own = None if prim is None else s.static(prim, "a primitive")
    return call_ufunc(s, loop, args, out=target, dtype=chosen, where=mask, prim=own)


@handles(words.index_check)
def _index_check(s: Context, index: Value, extent: Value, axis: Value | None = None) -> Value:
    number, size = s.numeric(index), s.numeric(extent)
    assert isinstance(number, ScalarV) and isinstance(size, ScalarV)
    return ScalarV(check_index(s, number, size.operand, 0 if axis is None else s.static_int(axis, "an axis")))
