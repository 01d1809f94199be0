"""The specializer's side of `library/intrinsics.py`: what each word of the accelerated language emits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.library import intrinsics as words
from parakeet_py.typed_ir import indexing, ir, routines
from parakeet_py.typed_ir.array_store import copy_array, keep_imaginary, store_array
from parakeet_py.typed_ir.axis_order import canonical, fortran, inverse, merged_order
from parakeet_py.typed_ir.elementwise import elementwise, generate, scalar_operand
from parakeet_py.typed_ir.index_entries import check_index
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.types import BOOL, DTYPES, PYBOOL, PYINT, Array, Scalar, real_dtype, same_bits
from parakeet_py.typed_ir.ufuncs import call_ufunc
from parakeet_py.typed_ir.values import (
    NONE,
    ArrayV,
    ListV,
    ScalarV,
    Static,
    TupleV,
    Value,
    is_known,
    is_none,
    lift,
    py,
)
from parakeet_py.typed_ir.views import make_view, transpose

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

Handler = Callable[..., Value]
HANDLERS: dict[int, Handler] = {}


def _handles(word: Any) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS[id(word)] = handler
        return handler

    return register


def dtype_name(s: Specializer, value: Value, what: str = "a dtype") -> str:
    """The name of a known dtype."""
    found = s.static(value, what)
    try:
        name: str = np.dtype(found).name
    except TypeError as error:
        raise s.unsupported(str(error)) from None
    if name not in DTYPES or not np.dtype(found).isnative:
        raise s.hand_back(f"dtype {name}")
    return name


def extents_of(s: Specializer, value: Value) -> tuple[ir.Operand, ...]:
    """A shape argument as int operands; negative extents raise."""
    items = value.items if isinstance(value, TupleV) else (value,)
    b = s.builder
    extents: list[ir.Operand] = []
    for item in items:
        number = s.numeric(item)
        if not isinstance(number, ScalarV):
            raise s.unsupported("a shape must be made of integers")
        if np.dtype(number.dtype).kind not in "iu":
            known = {"float64": "float", "complex128": "complex", "bool": "bool"}
            own = known[number.dtype] if number.python else f"numpy.{number.dtype}"
            if own == "bool":
                raise s.unsupported("a shape must be made of integers")
            message = f"'{own}' object cannot be interpreted as an integer"
            s.check(ir.Const(False, PYBOOL), "TypeError", message)
            number = py(0)
        operand = b.cast(number.operand, PYINT)
        if not b.at_least_zero(b.form(operand)):
            s.check(b.prim("ge", operand, ZERO, type=PYBOOL), "ValueError", "negative dimensions are not allowed")
        if isinstance(operand, ir.Var):
            if operand not in b.small:
                fits = b.prim("lt", operand, ir.Const(1 << 47, PYINT), type=PYBOOL)
                s.check(fits, "MemoryError", "array is too big")
            b.nonnegative.add(operand)
            b.small.add(operand)
        extents.append(operand)
    return tuple(extents)


def _operands(s: Specializer, value: Value) -> list[ir.Operand]:
    values = value.items if isinstance(value, TupleV) else (value,)
    return [scalar_operand(s, one if isinstance(one, ScalarV) else s.numeric(one)) for one in values]


@_handles(words.elementwise)
def _elementwise(s: Specializer, function: Value, *args: Value) -> Value:
    def body(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        with s.element_function():
            return _operands(s, s.call(function, [ScalarV(operand) for operand in operands], {}))

    results = elementwise(s, body, [s.numeric(arg) for arg in args])
    return results[0] if len(results) == 1 else TupleV(tuple(results))


@_handles(words.generate)
def _generate(s: Specializer, shape: Value, function: Value) -> Value:
    def body(indices: tuple[ir.Var, ...]) -> Sequence[ir.Operand]:
        with s.element_function():
            return _operands(s, s.call(function, [ScalarV(index) for index in indices], {}))

    extents = extents_of(s, shape)
    if not extents:
        made = [rank0(s, operand) for operand in body(())]
        return made[0] if len(made) == 1 else TupleV(tuple(made))
    results = generate(s, extents, body)
    return results[0] if len(results) == 1 else TupleV(tuple(results))


def rank0(s: Specializer, operand: ir.Operand) -> ArrayV:
    """A new 0-d array."""
    var = s.builder.emit1(ir.Alloc(()), Array(ir.dtype_of(operand), 0, "C"), name="scalar")
    s.builder.emit(ir.Store(var, (), s.builder.cast(operand, Scalar(ir.dtype_of(operand)))))
    return ArrayV(var, (), frozenset({s.new_root()}))


@_handles(words.reduce_axes)
def _reduce_axes(s: Specializer, array: Value, axes: Value, inits: Value, contribute: Value, combine: Value) -> Value:
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
    op = ir.Reduce(
        extents,
        tuple(index[axis] for axis in kept),
        tuple(array.extents[axis] for axis in reduced),
        tuple(index[axis] for axis in reduced),
        body,
        tuple(start),
        fold,
    )
    if not kept:
        return TupleV(tuple(ScalarV(out) for out in b.emit(op, *kinds, name="reduce")))
    outs = b.emit(op, *(Array(kind.dtype, len(kept), "C") for kind in kinds), name="reduce")
    nonunit = tuple(array.is_nonunit(axis) for axis in kept)
    made = [ArrayV(out, extents, frozenset({s.new_root()}), False, nonunit) for out in outs]
    if canonical(kept):
        made = [transpose(s, one, inverse(kept)) for one in made]
    return TupleV(tuple(made))


def _reduce_nothing(s: Specializer, array: ArrayV, start: list[ir.Operand], contribute: Value, combine: Value) -> Value:
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


def _weak(operand: ir.Operand) -> bool:
    kind = operand.type
    return isinstance(kind, Scalar) and kind.python


@_handles(words.scan_axis)
def _scan_axis(
    s: Specializer,
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
    return transpose(s, ArrayV(out, extents, frozenset({s.new_root()}), False, nonunit), inverse(order))


@_handles(words.nonzero)
def _nonzero(s: Specializer, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return TupleV(tuple(indexing.nonzero_indices(s, array)[1]))


@_handles(words.compress)
def _compress(s: Specializer, mask: Value, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return indexing.read(s, array, mask)


@_handles(words.scatter)
def _scatter(s: Specializer, target: Value, indices: Value, values: Value, combine: Value) -> Value:
    b = s.builder
    assert isinstance(target, ArrayV) and isinstance(indices, ArrayV)
    s.will_store(target)
    kind = Scalar(target.dtype)
    point = s.index_var("k", indices.extents[0])
    with b.block() as statements:
        place = b.cast(b.emit1(ir.Load(indices.var, (point,)), Scalar(indices.dtype)), PYINT)
        if isinstance(values, ArrayV):
            element: ir.Operand = b.emit1(ir.Load(values.var, (point,)), Scalar(values.dtype))
        else:
            element = scalar_operand(s, s.numeric(values))
        element = b.cast(element, kind)
    old, new = ir.Var("old", kind), ir.Var("new", kind)
    with b.block() as inner, s.element_function():
        combined = b.cast(_operands(s, s.call(combine, [ScalarV(old), ScalarV(new)], {}))[0], kind)
    body = ir.Block(tuple(statements), (ir.Const(True, PYBOOL), place, element))
    fold = ir.Lambda((old, new), ir.Block(tuple(inner), (combined,)))
    b.emit(ir.Scatter(target.var, (indices.extents[0],), (point,), body, fold))
    return NONE


@_handles(words.load)
def _load(s: Specializer, array: Value, *indices: Value) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV) and len(indices) == array.rank
    place = tuple(b.cast(scalar_operand(s, index), PYINT) for index in indices)
    return ScalarV(b.emit1(ir.Load(array.var, place), Scalar(array.dtype)))


@_handles(words.extent_is_one)
def _extent_is_one(s: Specializer, array: Value, axis: Value) -> Value:
    assert isinstance(array, ArrayV)
    number = s.static_int(axis, "an axis")
    if array.is_nonunit(number) or s.builder.provably_lt(ONE, array.extents[number]):
        return py(False)
    extent = array.extents[number]
    return py(extent == ONE) if isinstance(extent, ir.Const) else NONE


@_handles(words.allocate)
def _allocate(s: Specializer, shape: Value, dtype: Value, order: Value | None = None) -> Value:
    extents = extents_of(s, shape)
    name = dtype_name(s, dtype)
    chosen = "C" if order is None else s.static(order, "the order of an array")
    if isinstance(chosen, str):
        axes = fortran(len(extents)) if chosen == "F" else ()
    else:
        axes = canonical(chosen)
    extents = tuple(extents[axis] for axis in axes) if axes else extents
    var = s.builder.emit1(ir.Alloc(extents), Array(name, len(extents), "C"), name="new")
    array = ArrayV(var, extents, frozenset({s.new_root()}))
    return transpose(s, array, inverse(axes)) if axes else array


@_handles(words.assign)
def _assign(s: Specializer, target: Value, value: Value, users: Value | None = None) -> Value:
    if not isinstance(target, ArrayV):
        raise s.hand_back(f"a store to {s.describe(target)}")
    store_array(s, target, value, users=users is not None and s.static(users, "who assigns"))
    return NONE


@_handles(words.copy)
def _copy(s: Specializer, array: Value, order: Value | None = None) -> Value:
    chosen = "K" if order is None else s.static(order, "the order of a copy")
    if not isinstance(array, ArrayV):
        raise s.hand_back(f"a copy of {s.describe(array)}")
    if array.rank == 0:
        return rank0(s, scalar_operand(s, array))
    return copy_array(s, array, order=chosen)


@_handles(words.cast)
def _cast(s: Specializer, value: Value, dtype: Value) -> Value:
    name = dtype_name(s, dtype)
    number = s.numeric(value)
    keep_imaginary(s, number.dtype, name)
    if isinstance(number, ArrayV):
        if number.rank == 0:
            return rank0(s, s.builder.cast(scalar_operand(s, number), Scalar(name)))
        return copy_array(s, number, name)
    return ScalarV(s.builder.cast(number.operand, Scalar(name)))


@_handles(words.constant)
def _constant(s: Specializer, value: Value, dtype: Value) -> Value:
    name = dtype_name(s, dtype)
    number = np.dtype(name).type(s.static(value, "a constant"))
    return ScalarV(ir.Const(number.item(), Scalar(name)))


@_handles(words.prim)
def _prim(s: Specializer, name: Value, *operands: Value) -> Value:
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


@_handles(words.dtype_of)
def _dtype_of(s: Specializer, value: Value) -> Value:
    number = s.numeric(value)
    return Static(np.dtype(number.dtype))


@_handles(words.is_weak)
def _is_weak(s: Specializer, value: Value) -> Value:
    return py(isinstance(value, ScalarV) and value.python)


@_handles(words.is_array)
def _is_array(s: Specializer, value: Value) -> Value:
    return py(isinstance(value, ArrayV))


@_handles(words.is_known)
def _is_known(s: Specializer, value: Value) -> Value:
    return py(is_known(value))


@_handles(words.is_sequence)
def _is_sequence(s: Specializer, value: Value) -> Value:
    return py(isinstance(value, TupleV | ListV))


@_handles(words.has_known_length)
def _has_known_length(s: Specializer, value: Value) -> Value:
    return py(isinstance(value, TupleV) or (isinstance(value, ListV) and isinstance(value.array.extents[0], ir.Const)))


@_handles(words.as_array)
def _as_array(s: Specializer, value: Value, dtype: Value | None = None) -> Value:
    if dtype is not None and not is_none(dtype) and not isinstance(value, ArrayV | ScalarV):
        return s.as_array(value, dtype_name(s, dtype))
    number = s.numeric(value)
    return rank0(s, number.operand) if isinstance(number, ScalarV) else number


@_handles(words.as_numeric)
def _as_numeric(s: Specializer, value: Value) -> Value:
    return s.numeric(value)


@_handles(words.python_scalar)
def _python_scalar(s: Specializer, value: Value) -> Value:
    number = s.numeric(value)
    return s.as_python(ScalarV(scalar_operand(s, number)))


@_handles(words.is_writeable)
def _is_writeable(s: Specializer, array: Value) -> Value:
    return py(isinstance(array, ArrayV) and not array.readonly)


@_handles(words.layout_of)
def _layout_of(s: Specializer, array: Value) -> Value:
    return Static(array.layout if isinstance(array, ArrayV) else "C")


@_handles(words.may_overlap)
def _may_overlap(s: Specializer, left: Value, right: Value) -> Value:
    assert isinstance(left, ArrayV) and isinstance(right, ArrayV)
    return py(bool(left.roots & right.roots))


@_handles(words.order_of)
def _order_of(s: Specializer, *arrays: Value) -> Value:
    known = [array for array in arrays if isinstance(array, ArrayV)]
    rank = known[0].rank
    return lift(merged_order(s.builder, known, rank, joined=True) or tuple(range(rank)))


@_handles(words.elementwise_order)
def _elementwise_order(s: Specializer, *arrays: Value) -> Value:
    known = [array for array in arrays if isinstance(array, ArrayV)]
    return lift(merged_order(s.builder, known, known[0].rank) or tuple(range(known[0].rank)))


@_handles(words.permute)
def _permute(s: Specializer, array: Value, axes: Value) -> Value:
    assert isinstance(array, ArrayV)
    return transpose(s, array, s.static(axes, "the axes of a transpose"))


@_handles(words.reshape)
def _reshape(s: Specializer, array: Value, shape: Value) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV)
    extents = extents_of(s, shape)
    view = _unit_reshape(s, array, extents)
    if view is not None:
        return view
    if array.layout != "C":
        copied = copy_array(s, array, order="C")
        if not _surely_copies(array, extents):
            copied = replace(copied, roots=s.shadow(array))
        array = copied
    if len(extents) == 0:
        return make_view(s, array, (ZERO,) * array.rank, [])
    out = b.emit1(ir.Reshape(array.var, extents), Array(array.dtype, len(extents), "C"), name="reshape")
    return ArrayV(out, extents, array.roots, array.readonly)


def _surely_copies(array: ArrayV, extents: tuple[ir.Operand, ...]) -> bool:
    """True where NumPy has to copy, too: several axes in Fortran order become one."""
    return len(extents) == 1 and _in_fortran_order_only(array)


def _in_fortran_order_only(array: ArrayV) -> bool:
    several = sum(array.is_nonunit(axis) for axis in range(array.rank)) > 1
    return array.layout == "F" and several


@_handles(words.surely_strided)
def _surely_strided(s: Specializer, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    if _in_fortran_order_only(array) or _is_line_across(s, array):
        return py(True)
    return py(array.layout != "C" and array.var in s.leaf_param)  # it would have that layout


def _is_line_across(s: Specializer, array: ArrayV) -> bool:
    """A whole axis of an argument; others, of whose extents it is known which are 1, lie between its elements."""
    view = s.builder.definition.get(array.var)
    if not isinstance(view, ir.View) or view.base not in s.leaf_param:
        return False
    kind = view.base.type
    ordered = isinstance(kind, Array) and kind.layout in ("C", "F")
    return ordered and array.rank == 1 and array.layout != "C" and array.is_nonunit(0)


def _unit_reshape(s: Specializer, array: ArrayV, extents: tuple[ir.Operand, ...]) -> ArrayV | None:
    """A reshape that only adds or drops axes of extent 1 is a view whatever the layout."""
    b = s.builder
    sources = [axis for axis, extent in enumerate(array.extents) if extent != ONE]
    wanted = [extent for extent in extents if extent != ONE]
    if len(sources) != len(wanted):
        return None
    single = len(sources) == 1  # the sizes are equal, so these two extents are
    if not single and not all(b.same(array.extents[own], extent) for own, extent in zip(sources, wanted, strict=True)):
        return None
    axes: list[tuple[int | None, ir.Operand, ir.Operand]] = []
    for extent in extents:
        if extent == ONE:
            axes.append((None, ONE, ZERO))
        else:
            axis = sources.pop(0)
            axes.append((axis, array.extents[axis], ONE))
    return make_view(s, array, (ZERO,) * array.rank, axes)


@_handles(words.standing_for_view)
def _standing_for_view(s: Specializer, made: Value, base: Value, writeable: Value | None = None) -> Value:
    assert isinstance(made, ArrayV) and isinstance(base, ArrayV)
    readonly = writeable is None or not s.static(writeable, "writeable")
    return replace(made, roots=s.shadow(base), readonly=readonly)


@_handles(words.wants_view)
def _wants_view(s: Specializer) -> Value:
    return py(s.shadows.site in s.shadows.wanted)


@_handles(words.read_only)
def _read_only(s: Specializer, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return replace(array, readonly=True)


@_handles(words.broadcast_view)
def _broadcast_view(s: Specializer, array: Value, shape: Value, writeable: Value | None = None) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV)
    extents = extents_of(s, shape)
    surplus = len(extents) - array.rank
    if surplus < 0:
        raise s.unsupported("input operand has more dimensions than allowed by the axis remapping")
    axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [(None, extent, ZERO) for extent in extents[:surplus]]
    for axis, own in enumerate(array.extents):
        extent = extents[surplus + axis]
        if own == ONE:
            axes.append((None, extent, ZERO))
        elif b.same(own, extent):
            axes.append((axis, own, ONE))
        else:
            single = b.prim("eq", own, ONE, type=PYBOOL)
            agree = b.prim("eq", own, extent, type=PYBOOL)
            if not array.is_nonunit(axis):
                agree = b.logical_or(agree, single)
            s.check(
                agree, "ValueError",
                "operands could not be broadcast together with remapped shapes",
            )  # fmt: skip
            step = ONE if array.is_nonunit(axis) else b.select(single, ZERO, ONE)
            axes.append((axis, extent, step))
    view = make_view(s, array, (ZERO,) * array.rank, axes)
    stored = writeable is not None and bool(s.static(writeable, "writeable"))
    roots = view.roots | s.shadows.guard(s) if stored else view.roots
    return ArrayV(view.var, view.extents, roots, not stored, view.nonunit)


@_handles(words.matmul_into)
def _matmul_into(s: Specializer, out: Value, left: Value, right: Value) -> Value:
    assert isinstance(out, ArrayV) and isinstance(left, ArrayV) and isinstance(right, ArrayV)
    s.builder.emit(ir.Matmul(out.var, left.var, right.var))
    return NONE


@_handles(words.named)
def _named(s: Specializer, cls: Value, *items: Value) -> Value:
    return TupleV(items, "tuple", s.static(cls, "the class of a named tuple"))


@_handles(words.routine)
def _routine(s: Specializer, name: Value, outs: Value, ins: Value) -> Value:
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


@_handles(words.has_routine)
def _has_routine(s: Specializer, name: Value, *kinds: Value) -> Value:
    from parakeet_py.llvm import numpy_loops

    known = s.static(name, "the name of a routine")
    dtypes = tuple(dtype_name(s, kind) for kind in kinds)
    return py(numpy_loops.available(known, dtypes))


@_handles(words.on_device)
def _on_device(s: Specializer) -> Value:
    return ScalarV(s.builder.prim(ir.ON_DEVICE, ir.Const(False, BOOL), type=BOOL))


@_handles(words.check)
def _check(s: Specializer, condition: Value, exception: Value, message: Value, *args: Value) -> Value:
    operands = [scalar_operand(s, s.numeric(arg)) for arg in args]
    s.check(s.truth(condition), s.static(exception, "an exception"), s.static(message, "a message"), operands)
    return NONE


@_handles(words.hand_back)
def _hand_back(s: Specializer, reason: Value) -> Value:
    raise s.hand_back(s.static(reason, "a reason"))


@_handles(words.unsupported)
def _unsupported(s: Specializer, reason: Value) -> Value:
    raise s.unsupported(s.static(reason, "a reason"))


@_handles(words.ufunc_call)
def _ufunc_call(
    s: Specializer,
    ufunc: Value,
    *args: Value,
    dtype: Value | None = None,
    out: Value | None = None,
    where: Value | None = None,
) -> Value:
    loop = s.static(ufunc, "a ufunc")
    chosen = None if dtype is None or is_none(dtype) else dtype_name(s, dtype)
    target = None if out is None or is_none(out) else out
    mask = None if where is None or is_none(where) or where == lift(True) else where
    return call_ufunc(s, loop, args, out=target, dtype=chosen, where=mask)


@_handles(words.index_check)
def _index_check(s: Specializer, index: Value, extent: Value, axis: Value | None = None) -> Value:
    number, size = s.numeric(index), s.numeric(extent)
    assert isinstance(number, ScalarV) and isinstance(size, ScalarV)
    return ScalarV(check_index(s, number, size.operand, 0 if axis is None else s.static_int(axis, "an axis")))
