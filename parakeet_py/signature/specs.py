"""Signatures: what one specialization knows about its arguments, and how its results are put together again.

A *spec* is the type of one argument as the native gate can check it: arrays by dtype, rank, layout, unit axes and
writeability; scalars by type only; tuples, lists and slices item by item; strings, functions, modules, types and dtypes
by value or identity; everything else is an opaque Python object of an exact type. An argument that is a lambda or a
nested function is known by its code, and what its closure holds item by item: each evaluation of its definition makes
another object. `spec_of` types a value. A
`Signature` adds the hidden arguments (globals, closure cells and module attributes, read at every call) and whether the
memory of the array arguments overlaps.

Specs are exact: a value has one spec, and a gate made for a signature accepts precisely the calls that have it. An
array that is C-contiguous has layout C, never S or A. So two specializations of a function never accept the same call;
but lists of numbers that are read into arrays may be taken by a gate of that kind, too, after it has turned out that
short ones are better known item by item.

*Leaves* are what the machine code receives: arrays, scalars and opaque objects, flattened depth first, parameters in
order and then hidden arguments. Each leaf takes a fixed number of 8-byte slots (`leaf_slots`). Results have leaves too,
see `result_tree`. Nothing here knows of LLVM: frontend, specializer, code generation and the disk cache share these
classes; `signature_json` writes them into the disk cache.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from parakeet_py.base import extensions
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.foreign_code import native_functions
from parakeet_py.base.types import ARRAYS, DTYPES
from parakeet_py.signature import enums
from parakeet_py.signature.attribute_sources import RECORDS, is_column, unit_of

MAX_ITEMS = 32  # longer tuples and lists, and nested ones with more items in all, are opaque objects
MANY_NUMBERS = 4  # longer lists of numbers are data, whose length decides nothing
MAX_DEPTH = 4
AS_ARRAY = -1  # in the path of a leaf: the items of a list as an array
MAX_INNER = 4  # largest extent of a last axis that specializations know

Layout = Literal["C", "F", "S", "A"]


# ---- specs -----------------------------------------------------------------------------------------------------------


@record
class ArraySpec:
    """An exact, native `numpy.ndarray`, or `numpy.memmap` if `mapped`. Those of layouts C and F are `aligned`,
    but where they have no axes longer than 1 but `inner`.

    Layout: C (C-contiguous), F (Fortran-contiguous and not C), S (neither, but the last axis has stride ==
    itemsize), A (none of these). `unit` says which axes have extent 1. `inner` is the extent of the last axis if
    that is 2, 3 or 4 and there are others (coordinates, colour channels: loops over them are unrolled), else 0.
    `writeable` is the array's flag. A writeable array whose elements share memory with each other is never an
    `ArraySpec`. `order` holds the axes of a layout S or A from the largest stride to the smallest, axes of extent 1
    where they are; where some stride is 0, the order in which NumPy's iterator goes through them. It is empty if that
    is the order of the axes. `still` are the axes with a stride of 0, but for those of extent 1.
    """

    dtype: str
    rank: int
    layout: Layout
    unit: tuple[bool, ...]
    writeable: bool = True
    inner: int = 0
    order: tuple[int, ...] = ()
    mapped: bool = False
    aligned: bool = True
    still: tuple[int, ...] = ()


@record
class ScalarSpec:
    """An exact Python bool, int (that fits int64), float or complex if `python`, else a NumPy scalar of the dtype."""

    dtype: str
    python: bool = False


@record
class NoneSpec:
    """None."""


@record(eq=False)
class StaticSpec:
    """An argument specialized by value.

    Bools, ints, floats, complex numbers, strings, None and tuples of these are compared by exact type and value (0.0
    and -0.0 differ, 1 and True differ), plain dtypes by their number; any other object by identity.
    """

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticSpec) and static_key(self.value) == static_key(other.value)

    def __hash__(self) -> int:
        return hash(static_key(self.value))


@record
class ObjectSpec:
    """An object whose exact type is `type`; it is passed through as it is.

    It has no better spec, unless it is taken `whole`: then it is any object of the type, and if that is one of arrays,
    any array of records. `unit` is the dtype, such as M8[ns], of a time (`attribute_sources.unit_of`): an array or a
    scalar, whose dtype is looked at where what it is underneath is read.
    """

    type: type
    whole: bool = False
    unit: str = ""


@record
class TimesSpec:
    """A datetime64 or timedelta64 that Python has given, an array or a scalar: its dtype, such as M8[ns], and the spec
    of the int64 that it is underneath. Only results of operations that Python does are known so (`observed_spec`)."""

    unit: str
    numbers: ArraySpec | ScalarSpec


@record
class RecordsSpec:
    """An array of records that Python has given, of one of NumPy's classes: its rank, and the names and specs of its
    fields, all of them arrays of numbers. Only results of operations that Python does are known so
    (`observed_spec`)."""

    type: type
    rank: int
    names: tuple[str, ...]
    columns: tuple[ArraySpec, ...]


@record
class TupleSpec:
    """An exact tuple or list of `len(items)` items, or a slice or range (items start, stop, step).

    The step of a range is known by its value.

    `named` is the class of a named tuple; only results of operations that Python does are known so (`observed_spec`).
    """

    items: tuple[Spec, ...]
    kind: Literal["tuple", "list", "slice", "range"] = "tuple"
    named: type | None = None


@record
class ListSpec:
    """A list of more than `MANY_NUMBERS` Python floats, or ints that fit int64, as an argument: its items are read into
    an array, which is its leaf. Whatever its length, it has this spec."""

    dtype: Literal["float64", "int64"]

    @property
    def leaf(self) -> ArraySpec:
        return ArraySpec(self.dtype, 1, "C", (False,), False)


@record
class TextSpec:
    """A string whose characters are looked at, as an argument: its code points are read into an array, its leaf."""

    @property
    def leaf(self) -> ArraySpec:
        return ArraySpec("uint32", 1, "C", (False,), False)


def code_points(text: str) -> np.ndarray[Any, Any]:
    """The code points of a string."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(codes: np.ndarray[Any, Any]) -> str:
    """The string of these code points."""
    return codes.astype(np.uint32, copy=False).tobytes().decode("utf-32-le", "surrogatepass")


@record(eq=False)
class FunctionSpec:
    """Any function with this code and these globals; the contents of its closure's cells, and then its defaults."""

    code: types.CodeType
    globals: dict[str, Any]
    cells: tuple[Spec, ...]
    defaults: tuple[Spec, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return id(self.code), id(self.globals), self.cells, self.defaults


Spec = (
    ArraySpec
    | ScalarSpec
    | NoneSpec
    | StaticSpec
    | ObjectSpec
    | TimesSpec
    | RecordsSpec
    | TupleSpec
    | ListSpec
    | TextSpec
    | FunctionSpec
)

# ("global", name): function.__globals__, then builtins.  ("cell", index): the contents of function.__closure__[index].
# ("attribute", module name, name): the __dict__ of sys.modules[module name].  ("class", module name, class name, name):
# the __dict__ of the class with that qualified name; `fields.SIZE` as the name: how many names it has.
# ("field", index, name, ...): an attribute (of an attribute ...) of the argument with that index, see `fields`.
# ("method", index, ..., name): what the class of that argument, or of that attribute of it, holds under a name.
# ("apart", index, name, ..., index, name, ...): are the two of them,
# arguments or attributes of these, different objects?  The first three, followed by names: fields of what is there.
Source = tuple[str | int, ...]


@record
class HiddenSpec:
    """A value the function reads from outside its arguments, at every call, and what it must be."""

    source: Source
    spec: Spec


@record
class Signature:
    """What a call must look like to run one specialization.

    `pairs` are pairs of indices into `leaves(signature)`, both arrays. With `disjoint` the extents of every pair are
    disjoint; without it, and with pairs, at least one pair overlaps. No pairs: memory is not looked at.
    """

    params: tuple[Spec, ...]
    hidden: tuple[HiddenSpec, ...] = ()
    disjoint: bool = True
    pairs: tuple[tuple[int, int], ...] = ()


def with_any_extents(spec: Spec) -> Spec:
    """The spec of arrays whose last axis is of any extent, but for 1."""
    match spec:
        case ArraySpec():
            return replace(spec, inner=0)
        case TupleSpec(items):
            return replace(spec, items=tuple(map(with_any_extents, items)))
    return spec


# ---- leaves and slots ------------------------------------------------------------------------------------------------

LeafSpec = ArraySpec | ScalarSpec | ObjectSpec


@record
class Leaf:
    """One value handed to machine code. `path[0]` counts the parameters and then the hidden arguments."""

    path: tuple[int, ...]
    spec: LeafSpec
    slot: int  # the first of its slots in the argument array


def leaf_slots(spec: LeafSpec) -> int:
    """Number of 8-byte slots of an argument leaf: array [object, data, dims, strides], scalar 1 (complex128: 2)."""
    match spec:
        case ArraySpec():
            return 2 + 2 * spec.rank
        case ScalarSpec():
            return 2 if spec.dtype == "complex128" else 1
        case ObjectSpec():
            return 1


def leaves(signature: Signature) -> tuple[Leaf, ...]:
    """All leaves in the order of their slots."""
    found: list[Leaf] = []
    slot = 0
    for path, spec in _leaf_specs(signature):
        found.append(Leaf(path, spec, slot))
        slot += leaf_slots(spec)
    return tuple(found)


def _leaf_specs(signature: Signature) -> list[tuple[tuple[int, ...], LeafSpec]]:
    """The paths and specs of all leaves in order."""
    found: list[tuple[tuple[int, ...], LeafSpec]] = []
    for index, top in enumerate((*signature.params, *(hidden.spec for hidden in signature.hidden))):
        if isinstance(top, ArraySpec | ScalarSpec | ObjectSpec):  # most of them
            found.append(((index,), top))
        else:
            found += _walk(top, (index,))
    return found


def argument_slots(signature: Signature) -> int:
    """Number of slots of the whole argument array."""
    return sum(leaf_slots(leaf.spec) for leaf in leaves(signature))


def _walk(spec: Spec, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], LeafSpec]]:
    match spec:
        case TupleSpec():
            for index, item in enumerate(spec.items):
                yield from _walk(item, (*path, index))
        case ListSpec() | TextSpec():
            yield (*path, AS_ARRAY), spec.leaf
        case FunctionSpec():
            for index, item in enumerate((*spec.cells, *spec.defaults)):
                yield from _walk(item, (*path, index))
        case ArraySpec() | ScalarSpec() | ObjectSpec():
            yield path, spec


# ---- arrays that are not in the host's memory ------------------------------------------------------------------------


class _StandIns:
    """What is to be known of an array elsewhere; None of anything else.

    Attributes
    ----------
    of : the array of NumPy's that has its type, and lies to others of its kind as it does; elements need not be valid
    kept : what puts its elements back as they are now
    """

    of: Callable[[Any], np.ndarray[Any, Any] | None] = staticmethod(lambda value: None)
    kept: Callable[[Any], Callable[[], None] | None] = staticmethod(lambda value: None)


stand_in = _StandIns()

# ---- typing values ---------------------------------------------------------------------------------------------------

_SCALAR_TYPES = {np.dtype(name).type: name for name in DTYPES}
_PYTHON_TYPES: dict[type, str] = {bool: "bool", float: "float64", complex: "complex128"}
_TYPE_NUMBERS = {np.dtype(name).num: name for name in DTYPES}
_DISPATCHER = type(np.mean)  # the type of NumPy's overridable functions
_IDENTITY_TYPES = (
    *(types.ModuleType, types.FunctionType, staticmethod, classmethod, property, type),
    *(np.dtype, np.ufunc, np.vectorize, _DISPATCHER, type(Ellipsis)),
)
_WARN_ON_WRITE = 1 << 31  # set on the results of np.broadcast_arrays


def spec_of(value: object, depth: int = 0) -> Spec:
    """The spec of one argument.

    Everything machine code cannot take as it is becomes an `ObjectSpec`: subclasses of ndarray but memmap, arrays of
    other byte order, contiguous ones that are not aligned, unsupported dtypes, writeable arrays that overlap
    themselves, Python ints beyond int64, long or deeply nested lists, subclasses of Python's own types.
    """
    kind = type(value)
    if kind in ARRAYS:
        return _array_spec(value)  # type: ignore[arg-type]
    if value is None:
        return NoneSpec()
    if kind in _PYTHON_TYPES:
        return ScalarSpec(_PYTHON_TYPES[kind], True)
    if kind is int:
        return ScalarSpec("int64", True) if -(2**63) <= value < 2**63 else ObjectSpec(int)  # type: ignore[operator]
    if kind in _SCALAR_TYPES:
        return ScalarSpec(_SCALAR_TYPES[kind])
    if kind is np.datetime64 or kind is np.timedelta64:
        return ObjectSpec(kind, unit=unit_of(value))
    if isinstance(value, tuple | list) and kind in (tuple, list):
        return _sequence_spec(value, depth)
    if isinstance(value, slice):
        return TupleSpec(tuple(spec_of(item, MAX_DEPTH) for item in bounds_of(value)), "slice")
    if isinstance(value, range):
        return range_spec(value, spec_of)
    if isinstance(value, np.dtype) and is_plain(value):
        return StaticSpec(np.dtype(_TYPE_NUMBERS[value.num]))
    if kind is str or isinstance(value, _IDENTITY_TYPES):
        return StaticSpec(value)
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | types.NoneType):
        return StaticSpec(value)
    if kind in (types.BuiltinMethodType, types.MethodType) and draws(value):
        return StaticSpec(value)
    if getattr(kind, "stands_for_itself", False) or native_functions.is_dispatcher(kind):
        return StaticSpec(value)  # decorated functions, those of numba
    if extensions.body_of(value) is not None or enums.is_member(value):
        return StaticSpec(value)
    found = stand_in.of(value)
    spec = None if found is None else _array_spec(found)
    return spec if isinstance(spec, ArraySpec) else ObjectSpec(kind)


def draws(value: Any) -> bool:
    """Is this one of the functions of random numbers that are compiled, though they are methods of hidden objects?"""
    names = _DRAWING.get(getattr(value, "__module__", None) or "random", ())
    return value.__name__ in names and getattr(value, "__self__", None) is not None and _in_module(value)


def _in_module(value: Any) -> bool:
    holder = sys.modules.get(value.__module__ or "random")
    return getattr(holder, value.__name__, None) is value


_DRAWING = {
    "random": ("random", "uniform", "randint", "randrange"),
    "numpy.random": ("rand", "random", "random_sample", "uniform", "randint"),
}


def argument_spec(value: object) -> Spec:
    """The spec of an argument; only there, functions that are defined inside of others are known by their code, and
    long lists of numbers by the type of these."""
    if type(value) is list and len(value) > MANY_NUMBERS:
        return list_spec(value) or spec_of(value)
    if type(value) is types.FunctionType and "<" in value.__qualname__:
        return _function_spec(value)
    return spec_of(value)


def list_spec(value: list[object]) -> Spec | None:
    """The spec of a list of numbers that is read into an array; None for other lists."""
    kinds = set(map(type, value)) if type(value[0]) in (int, float) else set()
    if kinds == {float}:
        return ListSpec("float64")
    if kinds == {int} and min(value) >= -(2**63) and max(value) < 2**63:  # type: ignore[type-var, operator]
        return ListSpec("int64")
    return None


def _function_spec(function: types.FunctionType) -> Spec:
    if function.__kwdefaults__:
        return StaticSpec(function)
    try:
        held = function_items(function)
    except ValueError:  # a variable that is not bound yet
        return StaticSpec(function)
    if any(_holds_a_list(item) for item in held):
        return StaticSpec(function)
    specs = tuple(spec_of(item, 1) for item in held)
    if sum(map(_count, specs)) > MAX_ITEMS:
        return StaticSpec(function)
    split = len(function.__closure__ or ())
    return FunctionSpec(function.__code__, function.__globals__, specs[:split], specs[split:])


def _holds_a_list(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, tuple) and any(map(_holds_a_list, value)))


def function_items(function: types.FunctionType) -> list[object]:
    """What a function holds: the contents of its closure's cells, and its defaults."""
    return [*(cell.cell_contents for cell in function.__closure__ or ()), *(function.__defaults__ or ())]


def _sequence_spec(value: tuple[object, ...] | list[object], depth: int) -> Spec:
    kind = type(value)
    if len(value) > MAX_ITEMS or depth >= MAX_DEPTH:
        return ObjectSpec(kind)
    spec = TupleSpec(tuple(spec_of(item, depth + 1) for item in value), "tuple" if kind is tuple else "list")
    return spec if _count(spec) <= MAX_ITEMS else ObjectSpec(kind)


def _count(spec: Spec) -> int:
    return sum(map(_count, spec.items)) if isinstance(spec, TupleSpec) else 1


def has_lists(spec: Spec) -> bool:
    """Is this the spec of a list whose items are known, or of something that holds one?"""
    if isinstance(spec, TupleSpec):
        return spec.kind == "list" or any(map(has_lists, spec.items))
    return isinstance(spec, ListSpec)


def is_opaque(value: object) -> bool:
    """Is the spec of `value` an `ObjectSpec`?"""
    return isinstance(spec_of(value), ObjectSpec)


def _array_spec(array: np.ndarray[Any, Any]) -> Spec:
    kind, dtype, flags = type(array), array.dtype, array.flags
    name = _TYPE_NUMBERS.get(dtype.num)
    if dtype.names:
        return ObjectSpec(kind, True)
    if name is None or not dtype.isnative or dtype.metadata or flags.num & _WARN_ON_WRITE:
        return ObjectSpec(kind, unit="" if flags.num & _WARN_ON_WRITE else unit_of(array))
    if not flags.aligned and flags.forc and not _is_tiny(array.shape):
        return ObjectSpec(kind)
    layout: Layout
    if flags.c_contiguous:
        layout = "C"
    elif flags.f_contiguous:
        layout = "F"
    elif flags.writeable and overlaps_itself(array):
        return ObjectSpec(kind)
    else:
        layout = "S" if array.strides[-1] == array.itemsize else "A"
    shape = array.shape
    inner = shape[-1] if len(shape) > 1 and 2 <= shape[-1] <= MAX_INNER else 0
    unit = tuple(extent == 1 for extent in shape)
    lies = layout in ("S", "A")
    order = order_of_strides(array.strides, unit) if lies else ()
    still = still_axes(array.strides, unit) if lies else ()
    mapped = kind is np.memmap
    return ArraySpec(name, array.ndim, layout, unit, flags.writeable, inner, order, mapped, flags.aligned, still)


def _is_tiny(shape: tuple[int, ...]) -> bool:
    """Are there no more elements than specs know of: an `inner` axis alone is longer than 1?"""
    return all(extent == 1 for extent in shape[:-1]) and (
        shape[-1:] in ((), (1,)) or (len(shape) > 1 and 2 <= shape[-1] <= MAX_INNER)
    )


def order_of_strides(strides: Sequence[int], unit: Sequence[bool]) -> tuple[int, ...]:
    """The `order` of an array (see `ArraySpec`)."""
    axes = [axis for axis, one in enumerate(unit) if not one]
    if not all(strides[axis] for axis in axes):
        return _walked([0 if one else abs(stride) for stride, one in zip(strides, unit, strict=True)])
    moved = dict(zip(axes, sorted(axes, key=lambda axis: -abs(strides[axis])), strict=True))
    order = tuple(moved.get(axis, axis) for axis in range(len(unit)))
    return () if order == tuple(range(len(unit))) else order


def still_axes(strides: Sequence[int], unit: Sequence[bool]) -> tuple[int, ...]:
    """The axes that `ArraySpec.still` names."""
    return tuple(axis for axis, one in enumerate(unit) if not (one or strides[axis]))


def _walked(steps: Sequence[int]) -> tuple[int, ...]:
    """The order in which NumPy's iterator goes through axes, from the slowest: an insertion sort, for which an axis
    with a step of 0 is neither slower nor faster than another."""
    order: list[int] = []  # from the fastest
    for axis in reversed(range(len(steps))):
        place = len(order)
        for other in reversed(range(len(order)) if steps[axis] else ()):
            if 0 < steps[order[other]] <= steps[axis]:
                break
            if steps[order[other]]:
                place = other
        order.insert(place, axis)
    found = tuple(reversed(order))
    return () if found == tuple(range(len(steps))) else found


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """May two elements share memory?  False is a proof: every axis steps over the extent of all finer axes."""
    if array.size == 0:
        return False
    axes = sorted(
        (abs(stride), extent) for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1
    )
    reach = array.itemsize
    for stride, extent in axes:
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def extent_of(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The half-open range of addresses of an array's elements; (0, 0) if it has none."""
    if array.size == 0:
        return 0, 0
    if array.flags.forc:
        start = int(array.__array_interface__["data"][0])
        return start, start + array.nbytes
    spans = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
    data = int(array.__array_interface__["data"][0])
    return data + sum(s for s in spans if s < 0), data + sum(s for s in spans if s > 0) + array.itemsize


def _meet(left: tuple[int, int], right: tuple[int, int]) -> bool:
    (a, b), (c, d) = left, right
    return a < b and c < d and a < d and c < b


def leaf_values(signature: Signature, values: Sequence[object]) -> list[object]:
    """The values of the leaves, given the values of the parameters followed by those of the hidden arguments."""
    return values_at([path for path, _ in _leaf_specs(signature)], values)


def values_at(paths: Sequence[tuple[int, ...]], values: Sequence[object]) -> list[object]:
    """The values at paths of leaves, given those of the parameters followed by those of the hidden arguments."""
    found: list[object] = []
    for path in paths:
        value = values[path[0]]
        for index in path[1:]:
            if index == AS_ARRAY and isinstance(value, str):
                value = code_points(value)
            elif index == AS_ARRAY:
                value = np.array(value, np.float64 if type(value[0]) is float else np.int64)  # type: ignore[index]
            elif isinstance(value, slice | range):
                value = bounds_of(value)[index]
            elif isinstance(value, types.FunctionType):
                value = function_items(value)[index]
            else:
                value = value[index]  # type: ignore[index]
        found.append(value)
    return found


def bounds_of(value: slice | range) -> tuple[Any, Any, Any]:
    """What a slice or a range is made of."""
    return value.start, value.stop, value.step


def range_spec(value: range, of_bound: Callable[[int], Spec]) -> Spec:
    """The spec of a range, given those of its bounds."""
    bounds = bounds_of(value)
    if not all(-(2**63) <= bound < 2**63 for bound in bounds):
        return ObjectSpec(range)
    return TupleSpec((of_bound(value.start), of_bound(value.stop), StaticSpec(value.step)), "range")


def signature_of(
    args: Sequence[object],
    hidden: Sequence[tuple[Source, object]] = (),
    overrides: Mapping[int, Spec] | None = None,
) -> Signature:
    """The signature of a call: specs of all arguments, and the overlap of the arrays of `writeable_pairs`.

    `overrides` replaces the spec of some arguments (counting the hidden ones after the parameters), for instance by a
    `StaticSpec` where the value decides a type.
    """
    chosen = overrides or {}
    values = [*args, *(value for _, value in hidden)]
    split = len(args)
    specs = [
        chosen[index] if index in chosen else argument_spec(value) if index < split else spec_of(value)
        for index, value in enumerate(values)
    ]
    hidden_specs = tuple(HiddenSpec(source, spec) for (source, _), spec in zip(hidden, specs[split:], strict=True))
    return with_pairs(Signature(tuple(specs[:split]), hidden_specs), values)


def with_pairs(signature: Signature, values: Sequence[object]) -> Signature:
    """A signature with the overlap of the arrays among these values, those of parameters and then of hidden ones."""
    plain = Signature(signature.params, signature.hidden)
    found = _leaf_specs(plain)
    of_records = columns_of(plain)
    shapes = frozenset(leaf for leaf, (_, name) in of_records.items() if name == RECORDS)
    pairs = _writeable_pairs(found, shapes)
    if not pairs:
        return plain
    paired = sorted({index for pair in pairs for index in pair})
    arrays: Any = values_at([found[index][0] for index in paired], values)
    arrays = [array if type(array) in ARRAYS else stand_in.of(array) for array in arrays]
    extents = dict(zip(paired, map(extent_of, arrays), strict=True))
    by_leaf = dict(zip(paired, arrays, strict=True))

    def meet(i: int, j: int) -> bool:
        if i in of_records and j in of_records and of_records[i][0] == of_records[j][0]:
            records: Any = values[of_records[i][0]]
            if not overlaps_itself(records):
                return _columns_meet(by_leaf[i], by_leaf[j], records.ndim)
        return _meet(extents[i], extents[j])

    disjoint = not any(meet(i, j) for i, j in pairs)
    return Signature(plain.params, plain.hidden, disjoint, pairs)


def columns_of(signature: Signature) -> dict[int, tuple[int, str]]:
    """The leaves that are columns: of which argument (hidden ones come last), an array of records, and by what name."""
    places: dict[Source, int] = {("field", index): index for index in range(len(signature.params))}
    places |= {hidden.source: len(signature.params) + index for index, hidden in enumerate(signature.hidden)}
    if not any(is_column(source[-1]) for source in places):
        return {}
    sources = {place: source for source, place in places.items()}
    found = {}
    for leaf, (path, _) in enumerate(_leaf_specs(signature)):
        source = sources[path[0]]
        if is_column(source[-1]):
            found[leaf] = places[source[:-1]], str(source[-1])
    return found


def _columns_meet(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], rank: int) -> bool:
    """Do two columns of records that do not overlap share memory? They do if those of the first record do."""
    if not left.size or not right.size:
        return False
    first: Any = (*(0,) * rank, ...)  # a view also where no axis is left
    return _meet(extent_of(left[first]), extent_of(right[first]))


def _writeable_pairs(
    found: Sequence[tuple[tuple[int, ...], LeafSpec]], unread: frozenset[int]
) -> tuple[tuple[int, int], ...]:
    """All pairs of array leaves of which one is writeable, but for those whose elements are not read."""
    arrays = [
        (index, spec)
        for index, (path, spec) in enumerate(found)
        if isinstance(spec, ArraySpec) and path[-1] != AS_ARRAY and index not in unread
    ]
    return tuple(
        (i, j)
        for n, (i, left) in enumerate(arrays)
        for j, right in arrays[n + 1 :]
        if left.writeable or right.writeable
    )


def static_key(value: object) -> object:
    """A hashable key that is equal exactly when two static values are interchangeable."""
    kind = type(value)
    if kind in (bool, int, str, types.NoneType):
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)  # tells -0.0 from 0.0 and makes NaN equal itself
    if isinstance(value, tuple) and kind is tuple:
        return kind, tuple(static_key(item) for item in value)
    if isinstance(value, np.dtype) and is_plain(value):
        return np.dtype, value.num
    return object, id(value)


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Is this dtype one of those that are compiled, or another object that means the same (pickling makes such)?"""
    return dtype.num in _TYPE_NUMBERS and dtype.isnative and not dtype.metadata
