"""Array descriptors and memory accesses.

A descriptor is a set of named fields: `object`, `base`, `block`, `data`, `extent0`..., `stride0`... (bytes). Fields of
parameters and of arrays captured by a parallel region are loaded in the entry block when first asked for, so a field
that is not used costs nothing and a field that is used is visibly the same in all loops.

What the layout says is never loaded: the last stride of C and S arrays and the first of F arrays is the itemsize, the
other strides of C and F arrays follow from the extents.

Convention at the boundaries, in slots of 8 bytes: an array that enters is (object, data, extents, strides); one that
leaves is (object, base, block, data, extents, strides). A scalar is one slot (complex128 two), an object one.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Object, Scalar, Type, is_complex, itemsize, real_dtype
from parakeet_py.llvm.codegen import access_checks
from parakeet_py.llvm.codegen.builder import MEMORY_TYPE, FunctionText, Value
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER


@record(frozen=False)
class Descriptor:
    """An array value; `source` finds fields that are not known yet."""

    type: Array
    fields: dict[str, str]
    source: Callable[[str], str] | None = None

    def __getitem__(self, name: str) -> str:
        if name not in self.fields:
            fixed = fixed_stride(self.type, name)
            if fixed is None:
                assert self.source is not None, name
                fixed = self.source(name)
            self.fields[name] = fixed
        return self.fields[name]

    @property
    def extents(self) -> list[str]:
        return [self[f"extent{axis}"] for axis in range(self.type.rank)]

    @property
    def strides(self) -> list[str]:
        return [self[f"stride{axis}"] for axis in range(self.type.rank)]


AnyValue = Value | Descriptor

_NOT_NEGATIVE = "!{i64 0, i64 -9223372036854775808}"


def unit_axis(kind: Array) -> int | None:
    """The axis along which elements are adjacent, if the layout says so."""
    if kind.rank == 0 or kind.layout == "A":
        return None
    return 0 if kind.layout == "F" else kind.rank - 1


def fixed_stride(kind: Array, name: str) -> str | None:
    """The literal stride that the layout implies for field `name`, if any."""
    unit = unit_axis(kind)
    return str(itemsize(kind.dtype)) if unit is not None and name == f"stride{unit}" else None


def field_names(kind: Array, checked: bool = False) -> list[str]:
    """The fields that describe an array of this type completely (those its layout implies left out)."""
    free = range(kind.rank) if kind.layout in "SA" else ()
    return [
        "object",
        "base",
        "block",
        "data",
        *(f"extent{axis}" for axis in range(kind.rank)),
        *(name for axis in free if fixed_stride(kind, name := f"stride{axis}") is None),
        *(access_checks.RANGE if checked else ()),
    ]


def field_type(name: str) -> str:
    return "i64" if name.startswith(("extent", "stride")) else "ptr"


def implied_strides(kind: Array, extents: list[str], multiply: Callable[[str, str], str]) -> dict[str, str]:
    """The strides of a C or F array of these extents."""
    axes = range(kind.rank) if kind.layout == "F" else reversed(range(kind.rank))
    strides = {}
    stride = str(itemsize(kind.dtype))
    for axis in axes:
        strides[f"stride{axis}"] = stride
        if len(strides) < kind.rank:
            stride = multiply(stride, extents[axis])
    return strides


def complete(f: FunctionText, kind: Array, fields: dict[str, str]) -> Descriptor:
    """The descriptor with the strides that its layout implies."""
    if kind.layout in "CF":
        extents = [fields[f"extent{axis}"] for axis in range(kind.rank)]
        fields |= implied_strides(kind, extents, f.multiply)
    return Descriptor(kind, fields)


# ---- boundaries ------------------------------------------------------------------------------------------------------


def slots_in(kind: Type) -> int:
    """Slots of a value that enters compiled code."""
    match kind:
        case Array(rank=rank):
            return 2 + 2 * rank
        case Scalar(dtype="complex128"):
            return 2
        case _:
            return 1


def slots_out(kind: Type) -> int:
    """Slots of a value that leaves compiled code."""
    return 4 + 2 * kind.rank if isinstance(kind, Array) else slots_in(kind)


def enter(f: FunctionText, kind: Type, slots: str, first: int, emit: Callable[[str], str]) -> AnyValue:
    """The value whose slots start at number `first` of the memory `slots`; `emit` writes the loads."""

    def load(slot: int, what: str, metadata: str = "", extra: int = 0) -> str:
        offset = 8 * slot + extra
        place = emit(f"getelementptr inbounds i8, ptr {slots}, i64 {offset}") if offset else slots
        return emit(f"load {what}, ptr {place}{metadata}")

    if isinstance(kind, Object):
        return load(first, "ptr")
    if isinstance(kind, Scalar):
        if is_complex(kind.dtype):
            part = real_dtype(kind.dtype)
            what = MEMORY_TYPE[part]
            return load(first, what), load(first, what, extra=itemsize(part))
        value = load(first, MEMORY_TYPE[kind.dtype])
        return emit(f"icmp ne i8 {value}, 0") if kind.dtype == "bool" else value
    assert isinstance(kind, Array)
    rank = kind.rank

    def source(name: str) -> str:
        if name == "block":
            return "null"
        if name in ("object", "base"):  # the array itself owns the memory, as far as its views are concerned
            other = "base" if name == "object" else "object"
            return descriptor.fields.get(other) or load(first, "ptr")
        if name == "data":
            return load(first + 1, "ptr")
        axis = int(name[6:])
        if name.startswith("extent"):
            extent = load(first + 2 + axis, "i64", f", !range {f.module.shared_node(_NOT_NEGATIVE)}")
            f.bounds[extent] = 0
            return extent
        if kind.layout in "CF":

            def multiply(left: str, right: str) -> str:
                return emit(f"mul nsw i64 {left}, {right}")

            descriptor.fields |= implied_strides(kind, descriptor.extents, multiply)
            return descriptor.fields[name]
        return load(first + 2 + rank + axis, "i64")

    descriptor = Descriptor(kind, {}, source)
    if f.module.checks is not None:
        descriptor.fields |= access_checks.span(emit, descriptor)
    return descriptor


def leave(f: FunctionText, kind: Type, value: AnyValue, slots: str, first: int) -> None:
    """Store a value into the slots from number `first` of the memory `slots`."""

    def store(slot: int, what: str, item: str, extra: int = 0) -> None:
        offset = 8 * slot + extra
        place = f.value(f"getelementptr inbounds i8, ptr {slots}, i64 {offset}") if offset else slots
        f.effect(f"store {what} {item}, ptr {place}")

    if isinstance(value, Descriptor):
        names = ["object", "base", "block", "data"]
        names += [f"extent{axis}" for axis in range(value.type.rank)]
        names += [f"stride{axis}" for axis in range(value.type.rank)]
        for position, name in enumerate(names):
            store(first + position, field_type(name), value[name])
    elif isinstance(kind, Scalar) and is_complex(kind.dtype):
        part = real_dtype(kind.dtype)
        store(first, MEMORY_TYPE[part], value[0])
        store(first, MEMORY_TYPE[part], value[1], itemsize(part))
    elif isinstance(kind, Scalar):
        assert isinstance(value, str)
        if kind.dtype == "bool":
            value = f.value(f"zext i1 {value} to i8")
        store(first, MEMORY_TYPE[kind.dtype], value)
    else:
        assert isinstance(value, str)
        store(first, "ptr", value)


# ---- elements --------------------------------------------------------------------------------------------------------


def address(f: FunctionText, array: Descriptor, indices: list[str]) -> str:
    """The address of an element."""
    unit = unit_axis(array.type)
    offset = "0"
    for axis, index in enumerate(indices):
        if axis != unit:
            offset = f.add(offset, f.multiply(index, array[f"stride{axis}"]))
    place = array["data"]
    if offset != "0":
        place = f.moved(place, "i8", offset)
    if unit is not None and indices[unit] != "0":
        size = itemsize(array.type.dtype)
        element = MEMORY_TYPE.get(array.type.dtype) or f"[{size} x i8]"
        place = f.moved(place, element, indices[unit])
    return place


def load_element(f: FunctionText, dtype: str, place: str, metadata: str) -> Value:
    """Load one element; `metadata` ends the instruction."""
    if is_complex(dtype):
        part = real_dtype(dtype)
        kind, size = MEMORY_TYPE[part], itemsize(part)
        align = 1 if f.module.unaligned else size
        second = f.moved(place, "i8", str(size))
        return (
            f.value(f"load {kind}, {f.pointer(place)}, align {align}{metadata}"),
            f.value(f"load {kind}, {f.pointer(second)}, align {align}{metadata}"),
        )
    align = 1 if f.module.unaligned else itemsize(dtype)
    value = f.value(f"load {MEMORY_TYPE[dtype]}, {f.pointer(place)}, align {align}{metadata}")
    return f.value(f"icmp ne i8 {value}, 0") if dtype == "bool" else value


def store_element(f: FunctionText, dtype: str, place: str, value: Value, metadata: str) -> None:
    """Store one element."""
    if is_complex(dtype):
        part = real_dtype(dtype)
        kind, size = MEMORY_TYPE[part], itemsize(part)
        align = 1 if f.module.unaligned else size
        second = f.moved(place, "i8", str(size))
        f.effect(f"store {kind} {value[0]}, {f.pointer(place)}, align {align}{metadata}")
        f.effect(f"store {kind} {value[1]}, {f.pointer(second)}, align {align}{metadata}")
        return
    if dtype == "bool":
        value = f.value(f"zext i1 {value} to i8")
    align = 1 if f.module.unaligned else itemsize(dtype)
    f.effect(f"store {MEMORY_TYPE[dtype]} {value}, {f.pointer(place)}, align {align}{metadata}")


# ---- new descriptors -------------------------------------------------------------------------------------------------


def heap_array(f: FunctionText, kind: Array, extents: list[str], out_of_memory: Callable[[str], None]) -> Descriptor:
    """A new block; `out_of_memory` leaves the function when the given i1 is set."""
    bytes_ = _size(f, str(itemsize(kind.dtype)), extents)
    function = f.module.declare("ptr", "pk_block_new", "ptr, i64")
    block = f.value(f"call ptr {function}(ptr %ctx, i64 {bytes_})")
    out_of_memory(f.value(f"icmp eq ptr {block}, null"))
    data = f.value(f"getelementptr inbounds i8, ptr {block}, i64 {BLOCK_HEADER}")
    return _new(f, kind, extents, block, data, access_checks.whole(f, data, bytes_))


def stack_array(f: FunctionText, kind: Array, extents: list[str]) -> Descriptor:
    """Memory on the stack (constant extents); it lives as long as the function runs."""
    count = 1
    for extent in extents:
        count *= int(extent)
    size = max(count * itemsize(kind.dtype), 1)
    data = f.alloca(f"[{size} x i8]", 64) if f.module.checks is None else access_checks.zoned(f, size)
    return _new(f, kind, extents, "null", data, access_checks.whole(f, data, str(size)))


def _new(f: FunctionText, kind: Array, extents: list[str], block: str, data: str, memory: dict[str, str]) -> Descriptor:
    fields = {"object": "null", "base": "null", "block": block, "data": data, **memory}
    fields |= {f"extent{axis}": extent for axis, extent in enumerate(extents)}
    layout = "F" if kind.layout == "F" else "C"
    return Descriptor(kind, fields | implied_strides(Array(kind.dtype, kind.rank, layout), extents, f.multiply))


def _size(f: FunctionText, size: str, extents: list[str]) -> str:
    """Bytes of an array; the largest i64 when they do not fit (there is no such memory)."""
    known = int(size)
    unknown = []
    for extent in extents:
        if extent.startswith("%"):
            unknown.append(extent)
        else:
            known *= int(extent)
    if len(unknown) == 0 or known == 0:
        return str(min(known, (1 << 63) - 1))
    size = str(min(known, (1 << 63) - 1))
    over = ""
    function = f.module.declare("{i64, i1}", "llvm.umul.with.overflow.i64", "i64, i64", "")
    for extent in unknown:
        if size == "1":
            size = extent
            continue
        pair = f.value(f"call {{i64, i1}} {function}(i64 {size}, i64 {extent})")
        size = f.value(f"extractvalue {{i64, i1}} {pair}, 0")
        bit = f.value(f"extractvalue {{i64, i1}} {pair}, 1")
        over = bit if not over else f.binary("or", "i1", over, bit)
    # An extent of 0 after an overflow still makes an empty array; that it is refused does no harm.
    return f.select(over, "i64", str((1 << 63) - 1), size) if over else size


def view(
    f: FunctionText,
    kind: Array,
    base: Descriptor,
    starts: list[str],
    axes: list[tuple[int | None, str, str]],
) -> Descriptor:
    """Other extents and strides over the same memory; `axes` are (source axis, extent, step)."""
    offset = "0"
    for axis, start in enumerate(starts):
        offset = f.add(offset, f.multiply(start, base[f"stride{axis}"]))
    data = base["data"]
    if offset != "0":  # an empty view may start outside: not inbounds
        data = f.value(f"getelementptr i8, ptr {data}, i64 {offset}")
    fields = {"object": "null", "base": base["base"], "block": base["block"], "data": data}
    fields |= access_checks.inherited(f, base)
    for position, (source, extent, step) in enumerate(axes):
        fields[f"extent{position}"] = extent
        if kind.layout in "SA":
            fixed = fixed_stride(kind, f"stride{position}")
            moved = "0" if source is None else f.multiply(base[f"stride{source}"], step)
            fields[f"stride{position}"] = fixed or moved
    return complete(f, kind, fields)


def reshape(f: FunctionText, kind: Array, base: Descriptor, extents: list[str]) -> Descriptor:
    """The same contiguous memory under other extents."""
    fields = {"object": "null"} | {name: base[name] for name in ("base", "block", "data")}
    fields |= access_checks.inherited(f, base)
    fields |= {f"extent{axis}": extent for axis, extent in enumerate(extents)}
    strides = implied_strides(Array(kind.dtype, kind.rank, "C"), extents, f.multiply)
    return Descriptor(kind, fields | strides)


def strided(
    f: FunctionText, kind: Array, base: Descriptor, offset: str, extents: list[str], strides: list[str]
) -> Descriptor:
    """Any array over the memory of another; what its layout says of the strides is not asked."""
    data = base["data"]
    if offset != "0":  # an empty array may begin outside: not inbounds
        data = f.value(f"getelementptr i8, ptr {data}, i64 {offset}")
    fields = {"object": "null", "base": base["base"], "block": base["block"], "data": data}
    fields |= access_checks.inherited(f, base)
    fields |= {f"extent{axis}": extent for axis, extent in enumerate(extents)}
    if kind.layout in "SA":
        for axis, stride in enumerate(strides):
            fields[f"stride{axis}"] = fixed_stride(kind, f"stride{axis}") or stride
    return complete(f, kind, fields)


class AliasScopes:
    """The memory roots that one LLVM function touches, as alias scopes: accesses with disjoint roots never alias.

    Roots that are always met together are one scope. The scopes are in the order of the accesses that they are met in,
    and belong to this function alone, so that regions that do the same to different arrays have the same text.
    """

    def __init__(self, f: FunctionText) -> None:
        self.f = f
        self._sets: dict[frozenset[int], tuple[int, int]] = {}

    def suffix(self, roots: frozenset[int] | None) -> str:
        """The metadata of an access to memory in `roots`."""
        if not roots:
            return ""
        if roots not in self._sets:
            self._sets[roots] = len(self.f.nodes), len(self.f.nodes) + 1
            self.f.nodes += ["", ""]  # written by `finish`, when all roots are known
        inside, outside = self._sets[roots]
        return f", !alias.scope !<{inside}>, !noalias !<{outside}>"

    def finish(self) -> None:
        """Write the scopes; the function is complete."""
        places: dict[int, list[int]] = {}  # of each root, among the sets
        for place, some in enumerate(self._sets):
            for root in some:
                places.setdefault(root, []).append(place)
        together = sorted(set(map(tuple, places.values())))
        domain = self.f.node('distinct !{!"roots"}') if together else ""
        scopes = [self.f.node(f'distinct !{{!"root {number}", {domain}}}') for number, _ in enumerate(together)]
        for place, (inside, outside) in enumerate(self._sets.values()):
            for node, wanted in ((inside, True), (outside, False)):
                listed = [scope for scope, at in zip(scopes, together, strict=True) if (place in at) is wanted]
                self.f.nodes[node] = f"!{{{', '.join(listed)}}}"
