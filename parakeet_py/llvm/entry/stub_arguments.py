"""The first half of a gate: checking the arguments of a call and storing their leaves.

Leaves go to the slots of `%arguments` in the order of `signature.leaves`. Values are borrowed from the caller; those
that another thread may drop during the call (items of lists, hidden arguments) are listed in `pins`, to be held.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from parakeet_py.base.types import ARRAYS, itemsize
from parakeet_py.llvm.entry.stub_writer import Extent, GateWriter
from parakeet_py.llvm.runtime.object_layout import Flags, Layout, unit_code
from parakeet_py.signature.attribute_sources import (
    KEYS,
    RANDOM_STATE,
    SIZE,
    is_derived,
    is_item,
    is_of_times,
    variable_of,
)
from parakeet_py.signature.specs import (
    MANY_NUMBERS,
    MAX_INNER,
    ArraySpec,
    FunctionSpec,
    HiddenSpec,
    ListSpec,
    NoneSpec,
    ObjectSpec,
    ScalarSpec,
    Source,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
    columns_of,
    is_plain,
    leaf_slots,
)

CHECKED_TYPES = (*ARRAYS, list, tuple)  # may be an `ObjectSpec` or something better, depending on the value
_KINDS_OF_TIMES = {"M": "datetime64", "m": "timedelta64"}
_OF_RECORDS = np.dtype([("x", "u1")]).num
_PYTHON_TYPES = {"bool": "bool", "int64": "int", "float64": "float", "complex128": "complex"}


class ArgumentWriter(GateWriter):
    """Writes the checks."""

    def check(self) -> None:
        """All checks of a call, and its leaves into `%arguments`."""
        signature = self.signature
        self.put("%nargs = and i64 %nargsf, 9223372036854775807")
        self.need(self.let(f"icmp eq i64 %nargs, {len(signature.params)}"), self.let("icmp eq ptr %names, null"))
        self.checkpoint()
        self.threads()
        if self.numeric:
            self.need(self.let(f"xor i1 {self.let('call i1 @gate.asks_for_errors()')}, true"))
            self.checkpoint()
        for place in range(self.watched):
            tag, known = (self.let(f"load i64, ptr {self.own(f'{which}.{place}')}") for which in ("tag", "known"))
            self.need(self.let(f"icmp eq i64 {tag}, {known}"))
        self.opaque()
        for index, spec in enumerate(signature.params):
            self.take(self.field("%args", 8 * index), spec, str(index), False)
            self.checkpoint()
        for index, hidden in enumerate(signature.hidden):
            if not self.facts(index):
                self.place = len(signature.params) + index
                self.take(self.hidden(index), hidden.spec, f"hidden.{index}", True)
            self.checkpoint()
        self.overlaps()
        self.limit()
        self.checkpoint()
        if self.checked:
            self.put("call void @gate.begin()")
        self.read_lists()

    def limit(self) -> None:
        """Take only what quick code is for (see `call.dispatch.tiers`)."""
        if self.limits is None:
            return
        left = self.let(f"load i64, ptr {self.own('left')}")
        self.need(self.let(f"icmp sgt i64 {left}, 0"))
        lengths = {slot + 2: (value, spec) for value, spec, slot in self.long_lists}
        for slot, limit in self.limits.items():
            if slot in lengths:
                value, spec = lengths[slot]
                size = self.field(value, Layout.SIZE if isinstance(spec, ListSpec) else Layout.HEADER, "i64")
            else:
                size = self.field("%arguments", 8 * slot, "i64")
            self.need(self.let(f"icmp ule i64 {self.let(f'add i64 {size}, {limit}')}, {2 * limit}"))

    def threads(self) -> None:
        """`%threads`: the function's own number, or the environment's, or, inside `options` blocks, what Python says.

        It asks, too, under profilers and debuggers. Python says 0 for calls that are to run on
        other devices, or as Python: the gate does not take them; nor those of teams, but for what is known to be too
        small for them. Python code may run here, so this comes before other checks.
        """
        fixed = self.let(f"load i32, ptr {self.own('threads')}")
        default = self.let(f"load i32, ptr {self.external('default_threads')}")
        open_ = self.let(f"load atomic i64, ptr {self.external('open_blocks')} monotonic, align 8")
        watched = self.let("call i64 @gate.watched()")
        free = self.let(f"icmp eq i32 {fixed}, 0")
        inside = self.let(f"icmp ne i64 {self.let(f'or i64 {open_}, {watched}')}, 0")
        known = self.let(f"select i1 {free}, i32 {default}, i32 {fixed}")
        here, ask, join = self.labels("threads", "ask", "known")
        self.jump(here)
        self.branch(inside, ask, join)
        self.begin(ask)
        asked_with = f"ptr {self.external('thread_count')}, ptr {self.own('small')}, ptr %args"
        told = self.let(f"call i32 @gate.ask_threads({asked_with})")
        elsewhere = self.let(f"icmp eq i32 {told}, 0")
        asked = self.let(f"select i1 {self.let(f'or i1 {free}, {elsewhere}')}, i32 {told}, i32 {fixed}")
        self.jump(join)
        self.put(f"%threads = phi i32 [{known}, %{here}], [{asked}, %{ask}]")
        self.need(self.let("icmp ne i32 %threads, 0"))

    def take(self, value: str, spec: Spec, path: str, pinned: bool) -> None:
        """Check `value` against `spec` and store its leaves; `pinned`: nothing else refers to it during the call."""
        match spec:
            case NoneSpec():
                self.need(self.let(f"icmp eq ptr {value}, {self.external('None')}"))
            case StaticSpec():
                self.static(value, spec.value, path)
            case TupleSpec():
                self.items(value, spec, path, pinned)
            case ListSpec():
                self.of_type(value, self.external("list"))
                self.checkpoint()
                self.need(self.let(f"icmp sgt i64 {self.field(value, Layout.SIZE, 'i64')}, {MANY_NUMBERS}"))
                self.long_lists.append((value, spec, self.slot))
                self.slot += leaf_slots(spec.leaf)
                self.leaf += 1
            case TextSpec():
                self.of_type(value, self.own(f"type.{path}"))
                self.long_lists.append((value, spec, self.slot))
                self.slot += leaf_slots(spec.leaf)
                self.leaf += 1
            case FunctionSpec():
                self.function(value, spec, path)
            case ObjectSpec():
                self.of_type(value, self.own(f"type.{path}"))
                if spec.type is int and not spec.whole:
                    self.checkpoint()
                    self.long(value, "ne")
                if spec.whole and spec.type in ARRAYS:
                    self.checkpoint()
                    number = self.field(self.field(value, Layout.DESCR), Layout.TYPE_NUM, "i32")
                    self.need(self.let(f"icmp eq i32 {number}, {_OF_RECORDS}"))
                if spec.unit:
                    self.checkpoint()
                    self.need(self.let(f"call i1 @gate.is_time(ptr {value}, {self.unit(spec.unit)})"))
                self.store_slot("ptr", value)
                self.leaf += 1
                if pinned:
                    self.pins.append(value)
            case ScalarSpec():
                self.scalar(value, spec)
                self.leaf += 1
            case ArraySpec():
                self.array(value, spec)
                self.leaf += 1
                if pinned:
                    self.pins.append(value)

    def read_lists(self) -> None:
        """The items of long lists, as the arrays that are their leaves; the last check of the call."""
        for value, spec, slot in self.long_lists:
            if isinstance(spec, TextSpec):
                place = self.at("%arguments", 8 * slot)
                self.put(f"store ptr {value}, ptr {place}")
                reader = self.own("code_points")
                call = f"call ptr @gate.PyObject_Vectorcall(ptr {reader}, ptr {place}, i64 1, ptr null)"
            else:
                kind = self.external(_PYTHON_TYPES[spec.dtype])
                descr = self.external(f"dtype.{spec.dtype}")
                call = f"call ptr @gate.read_list(ptr {value}, ptr {descr}, ptr {kind})"
            array = self.let(call)
            unread, read = self.labels("unread", "b")
            self.branch(self.let(f"icmp eq ptr {array}, null"), unread, read)
            self.begin(unread)
            for other in self.made:
                self.put(f"call void @gate.Py_DecRef(ptr {other})")
            self.miss_if_settled()
            self.begin(read)
            self.made.append(array)
            length = self.field(self.field(array, Layout.DIMS), 0, "i64")
            size = "4" if isinstance(spec, TextSpec) else "8"
            held = (("ptr", array), ("ptr", self.field(array, Layout.DATA)), ("i64", length), ("i64", size))
            for offset, (type_, part) in enumerate(held):
                self.put(f"store {type_} {part}, ptr {self.at('%arguments', 8 * (slot + offset))}")

    def static(self, value: str, expected: object, path: str) -> None:
        kind = type(expected)
        if isinstance(expected, tuple) and kind is tuple:
            self.of_type(value, self.external("tuple"))
            self.checkpoint()
            self.need(self.let(f"icmp eq i64 {self.field(value, Layout.SIZE, 'i64')}, {len(expected)}"))
            self.checkpoint()
            for index, item in enumerate(expected):
                self.static(self.field(value, Layout.TUPLE_ITEMS + 8 * index), item, f"{path}.{index}")
                self.checkpoint()
            return
        symbol = self.own(f"value.{path}")
        if isinstance(expected, np.dtype) and is_plain(expected):
            self.dtype_object(value, symbol, expected.num)
        elif kind is int or kind is str:
            self.need(self.let(f"call i1 @gate.equal(ptr {value}, ptr {symbol})"))
        elif kind is float or kind is complex:
            self.of_type(value, self.external("float" if kind is float else "complex"))
            self.checkpoint()
            for offset in (0, 8) if kind is complex else (0,):
                bits = self.field(value, Layout.HEADER + offset, "i64")
                expected_bits = self.field(symbol, Layout.HEADER + offset, "i64")
                self.need(self.let(f"icmp eq i64 {bits}, {expected_bits}"))
        else:
            self.need(self.let(f"icmp eq ptr {value}, {symbol}"))

    def dtype_object(self, value: str, expected: str, number: int) -> None:
        """A dtype given as a value: the object that is known, or another of its class that means the same."""
        here, other, equal, join = self.labels("here", "other", "equal", "join")
        self.jump(here)
        self.branch(self.let(f"icmp eq ptr {value}, {expected}"), join, other)
        self.begin(other)
        kind = self.let(f"icmp eq ptr {self.field(value, Layout.TYPE)}, {self.field(expected, Layout.TYPE)}")
        self.branch(kind, equal, join)
        self.begin(equal)
        means = self.let(f"call i1 @gate.same_dtype(ptr {value}, i32 {number})")
        self.jump(join)
        self.need(self.let(f"phi i1 [true, %{here}], [false, %{other}], [{means}, %{equal}]"))

    def items(self, value: str, spec: TupleSpec, path: str, pinned: bool) -> None:
        self.of_type(value, self.external(spec.kind))
        self.checkpoint()
        if spec.kind in ("slice", "range"):
            start, first = value, Layout.SLICE_ITEMS
        else:
            self.need(self.let(f"icmp eq i64 {self.field(value, Layout.SIZE, 'i64')}, {len(spec.items)}"))
            self.checkpoint()
            if spec.kind == "tuple":
                start, first = value, Layout.TUPLE_ITEMS
            else:
                start, first = self.field(value, Layout.LIST_ITEMS), 0
                pinned = True
        for index, item in enumerate(spec.items):
            self.take(self.field(start, first + 8 * index), item, f"{path}.{index}", pinned)
            self.checkpoint()

    def function(self, value: str, spec: FunctionSpec, path: str) -> None:
        """A function by its code, with what its closure and its defaults hold."""
        self.of_type(value, self.external("function"))
        self.checkpoint()
        for offset, wanted in (
            (Layout.FUNCTION_CODE, self.own(f"code.{path}")),
            (Layout.FUNCTION_GLOBALS, self.own(f"globals.{path}")),
            (Layout.FUNCTION_KEYWORD_DEFAULTS, "null"),
        ):
            self.need(self.let(f"icmp eq ptr {self.field(value, offset)}, {wanted}"))
        self.checkpoint()
        closure = self.field(value, Layout.FUNCTION_CLOSURE)  # as long as the code says
        for index, item in enumerate(spec.cells):
            cell = self.field(closure, Layout.TUPLE_ITEMS + 8 * index)
            content = self.field(cell, Layout.CELL)
            self.need(self.let(f"icmp ne ptr {content}, null"))
            self.checkpoint()
            self.take(content, item, f"{path}.{index}", True)
            self.checkpoint()
        defaults = self.field(value, Layout.FUNCTION_DEFAULTS)
        self.need(self.let(f"icmp {'ne' if spec.defaults else 'eq'} ptr {defaults}, null"))
        self.checkpoint()
        if not spec.defaults:
            return
        self.need(self.let(f"icmp eq i64 {self.field(defaults, Layout.SIZE, 'i64')}, {len(spec.defaults)}"))
        self.checkpoint()
        for index, item in enumerate(spec.defaults):
            place = self.field(defaults, Layout.TUPLE_ITEMS + 8 * index)
            self.take(place, item, f"{path}.{len(spec.cells) + index}", True)
            self.checkpoint()

    def scalar(self, value: str, spec: ScalarSpec) -> None:
        """Scalars are stored as the bits they have in memory, in the low bytes of the slot."""
        if not spec.python:
            self.of_type(value, self.external(f"numpy.{spec.dtype}"))
            self.checkpoint()
            size = itemsize(spec.dtype)
            if size < 8:
                narrow = self.field(value, Layout.HEADER, f"i{8 * size}")
                self.store_slot("i64", self.let(f"zext i{8 * size} {narrow} to i64"))
                return
            for offset in range(0, size, 8):
                self.store_slot("i64", self.field(value, Layout.HEADER + offset, "i64"))
            return
        self.of_type(value, self.external(_PYTHON_TYPES[spec.dtype]))
        self.checkpoint()
        match spec.dtype:
            case "bool":
                true = self.let(f"icmp eq ptr {value}, {self.external('True')}")
                self.store_slot("i64", self.let(f"zext i1 {true} to i64"))
            case "int64":
                number = self.long(value, "eq")
                self.store_slot("i64", number)
            case "float64":
                self.store_slot("i64", self.field(value, Layout.HEADER, "i64"))
            case _:
                self.store_slot("i64", self.field(value, Layout.HEADER, "i64"))
                self.store_slot("i64", self.field(value, Layout.HEADER + 8, "i64"))

    def long(self, value: str, fits: str) -> str:
        """A Python int as int64, and the condition that it fits (`eq`) or does not (`ne`)."""
        number = self.let(f"call i64 @gate.PyLong_AsLongLongAndOverflow(ptr {value}, ptr %overflow)")
        self.need(self.let(f"icmp {fits} i32 {self.let('load i32, ptr %overflow')}, 0"))
        return number

    def opaque(self) -> None:
        """Arrays, lists and tuples taken as objects must have no better spec; only Python can tell.

        This comes before all other checks, because Python code may run here.
        """
        tops = (*self.signature.params, *(hidden.spec for hidden in self.signature.hidden))
        for index, spec in enumerate(tops):
            if not isinstance(spec, ObjectSpec) or spec.type not in CHECKED_TYPES or spec.whole or spec.unit:
                continue
            split = len(self.signature.params)
            value = self.field("%args", 8 * index) if index < split else self.hidden(index - split)
            self.need(self.let(f"call i1 @gate.opaque(ptr {self.own('is_opaque')}, ptr {value})"))
            self.checkpoint()

    def array(self, value: str, spec: ArraySpec) -> None:
        self.of_type(value, self.external("memmap" if spec.mapped else "ndarray"))
        self.checkpoint()
        self.need(self.let(f"icmp eq i32 {self.field(value, Layout.NDIM, 'i32')}, {spec.rank}"))
        self.need(self.array_flags(value, spec))
        self.dtype(self.field(value, Layout.DESCR), spec.dtype)
        self.checkpoint()
        dims_at, strides_at = self.field(value, Layout.DIMS), self.field(value, Layout.STRIDES)
        dims = [self.field(dims_at, 8 * axis, "i64") for axis in range(spec.rank)]
        strides = [self.field(strides_at, 8 * axis, "i64") for axis in range(spec.rank)]
        for dim, unit in zip(dims, spec.unit, strict=True):
            self.need(self.let(f"icmp {'eq' if unit else 'ne'} i64 {dim}, 1"))
        if spec.rank > 1:
            beyond = self.let(f"sub i64 {dims[-1]}, 2")
            if spec.inner:
                self.need(self.let(f"icmp eq i64 {dims[-1]}, {spec.inner}"))
            else:
                self.need(self.let(f"icmp ugt i64 {beyond}, {MAX_INNER - 2}"))
        size = itemsize(spec.dtype)
        if spec.layout in "SA":
            self.need(self.let(f"icmp {'eq' if spec.layout == 'S' else 'ne'} i64 {strides[-1]}, {size}"))
            if spec.writeable:
                self.checkpoint()
                call = f"call i1 @gate.overlaps_itself(i64 {spec.rank}, ptr {dims_at}, ptr {strides_at}, i64 {size})"
                self.need(self.let(f"xor i1 {self.let(call)}, true"))
            self.stride_order(strides, spec)
        data = self.field(value, Layout.DATA)
        self.arrays[self.leaf], self.specs[self.leaf] = value, spec
        self.store_slot("ptr", value)
        self.store_slot("ptr", data)
        for number in (*dims, *strides):
            self.store_slot("i64", number)
        self.extents[self.leaf] = self.extent(data, dims, strides, spec, size)

    def stride_order(self, strides: list[str], spec: ArraySpec) -> None:
        """The order of the axes by their strides, and which of these are 0."""
        for axis, stride in enumerate(strides):
            if not spec.unit[axis]:
                self.need(self.let(f"icmp {'eq' if axis in spec.still else 'ne'} i64 {stride}, 0"))
        axes = [axis for axis in spec.order or range(spec.rank) if not (spec.unit[axis] or axis in spec.still)]
        sizes = {}
        for axis in axes:
            negative = self.let(f"icmp slt i64 {strides[axis]}, 0")
            sizes[axis] = self.let(
                f"select i1 {negative}, i64 {self.let(f'sub i64 0, {strides[axis]}')}, i64 {strides[axis]}"
            )
        for slower, faster in itertools.pairwise(axes):
            compare = "uge" if slower < faster else "ugt"
            self.need(self.let(f"icmp {compare} i64 {sizes[slower]}, {sizes[faster]}"))

    def array_flags(self, value: str, spec: ArraySpec) -> str:
        mask = Flags.ALIGNED | Flags.WRITEABLE | Flags.WARN_ON_WRITE | Flags.C
        wanted = (Flags.ALIGNED if spec.aligned else 0) | (Flags.WRITEABLE if spec.writeable else 0)
        if spec.layout == "C":
            wanted |= Flags.C
        else:
            mask |= Flags.F
            wanted |= Flags.F if spec.layout == "F" else 0
        flags = self.let(f"and i32 {self.field(value, Layout.FLAGS, 'i32')}, {mask - (1 << 32)}")
        return self.let(f"icmp eq i32 {flags}, {wanted}")

    def dtype(self, descr: str, name: str) -> None:
        """NumPy's own dtype object, as nearly always, or else an equal one."""
        expected = self.external(f"dtype.{name}")

        def equal() -> str:
            number = self.field(expected, Layout.TYPE_NUM, "i32")
            return self.let(f"call i1 @gate.same_dtype(ptr {descr}, i32 {number})")

        self.need(self.either(self.let(f"icmp eq ptr {descr}, {expected}"), "i1", "true", equal))

    def extent(self, data: str, dims: list[str], strides: list[str], spec: ArraySpec, size: int) -> Extent:
        elements = "1"
        for dim, unit in zip(dims, spec.unit, strict=True):
            if not unit:
                elements = dim if elements == "1" else self.let(f"mul i64 {elements}, {dim}")
        if self.leaf not in self.paired:
            return Extent("", "", elements)
        low = self.let(f"ptrtoint ptr {data} to i64")
        if spec.layout in "CF":
            length = self.let(f"mul i64 {elements}, {size}")
            return Extent(low, self.let(f"add i64 {low}, {length}"), elements)
        high = self.let(f"add i64 {low}, {size}")
        for dim, stride, unit in zip(dims, strides, spec.unit, strict=True):
            if unit:
                continue
            span = self.let(f"mul i64 {self.let(f'sub i64 {dim}, 1')}, {stride}")
            negative = self.let(f"icmp slt i64 {span}, 0")
            low = self.let(f"add i64 {low}, {self.let(f'select i1 {negative}, i64 {span}, i64 0')}")
            high = self.let(f"add i64 {high}, {self.let(f'select i1 {negative}, i64 0, i64 {span}')}")
        return Extent(low, high, elements)

    def overlaps(self) -> None:
        """Extents that must not meet, or of which some must. Arrays without elements meet nothing."""
        meets = []
        of_records = columns_of(self.signature)
        for i, j in self.signature.pairs:
            left, right = self.extents[i], self.extents[j]
            if i in of_records and j in of_records and of_records[i][0] == of_records[j][0]:
                left, right = self.of_first_records(i, j)
            conditions = [
                self.let(f"icmp ult i64 {left.low}, {right.high}"),
                self.let(f"icmp ult i64 {right.low}, {left.high}"),
                self.let(f"icmp ne i64 {left.elements}, 0"),
                self.let(f"icmp ne i64 {right.elements}, 0"),
            ]
            met = conditions[0]
            for condition in conditions[1:]:
                met = self.let(f"and i1 {met}, {condition}")
            meets.append(met)
        if not meets:
            return
        some = meets[0]
        for met in meets[1:]:
            some = self.let(f"or i1 {some}, {met}")
        self.need(self.let(f"xor i1 {some}, true") if self.signature.disjoint else some)

    def of_first_records(self, i: int, j: int) -> tuple[Extent, Extent]:
        """What two columns of the same records span of the first one, which is enough to see whether they overlap; of
        records that overlap themselves, all that the columns span."""
        records = self.records[i]
        rank = self.field(records, Layout.NDIM, "i32")
        size = self.field(self.field(records, Layout.DESCR), Layout.ITEMSIZE, "i64")
        dims, strides = self.field(records, Layout.DIMS), self.field(records, Layout.STRIDES)
        wide = self.let(f"sext i32 {rank} to i64")
        overlap = self.let(f"call i1 @gate.overlaps_itself(i64 {wide}, ptr {dims}, ptr {strides}, i64 {size})")
        made = []
        for leaf in (i, j):
            whole, spec, array = self.extents[leaf], self.specs[leaf], self.arrays[leaf]
            low = self.let(f"ptrtoint ptr {self.field(array, Layout.DATA)} to i64")
            high = self.let(f"add i64 {low}, {itemsize(spec.dtype)}")
            dims_at, strides_at = self.field(array, Layout.DIMS), self.field(array, Layout.STRIDES)
            for axis in range(spec.rank):
                dim, stride = (self.field(place, 8 * axis, "i64") for place in (dims_at, strides_at))
                span = self.let(f"mul i64 {self.let(f'sub i64 {dim}, 1')}, {stride}")
                inside = self.let(f"icmp sge i32 {axis}, {rank}")
                high = self.let(f"add i64 {high}, {self.let(f'select i1 {inside}, i64 {span}, i64 0')}")
            low = self.let(f"select i1 {overlap}, i64 {whole.low}, i64 {low}")
            high = self.let(f"select i1 {overlap}, i64 {whole.high}, i64 {high}")
            made.append(Extent(low, high, whole.elements))
        return made[0], made[1]

    def facts(self, index: int) -> bool:
        """Check what a hidden argument that has no object says of others; False if it has one."""
        match self.signature.hidden[index]:
            case HiddenSpec(source, StaticSpec()) if source[-1] == KEYS:
                owner = self.read(index, source[:-1])
                self.need(self.let(f"call i1 @gate.keys(ptr {owner}, ptr {self.own(f'keys.{index}')})"))
                return True
            case HiddenSpec(("class", _, _, name), StaticSpec(value)) if name == SIZE:
                size = self.field(self.own(f"module.{index}"), Layout.SIZE, "i64")
                self.need(self.let(f"icmp eq i64 {size}, {value}"))
                return True
            case HiddenSpec(("apart", *paths), StaticSpec(value)):
                places = [place for place, part in enumerate(paths) if isinstance(part, int)]
                ends = []
                for first, last in zip(places, (*places[1:], len(paths)), strict=True):
                    own = [f"name.{index}.{place}" for place in range(first + 1, last)]
                    argument = self.field("%args", 8 * int(paths[first]))
                    ends.append(self.member(argument, paths[first + 1 : last], own, "field"))
                self.need(self.let(f"icmp {'ne' if value else 'eq'} ptr {ends[0]}, {ends[1]}"))
                return True
        return False

    def member(self, value: str, names: Sequence[str | int], own: Sequence[str], kind: str) -> str:
        """A field of a field ... of a value, borrowed; missing ones are a mismatch."""
        for place, (name, object_) in enumerate(zip(names, own, strict=True)):
            if is_derived(name):
                self.records[self.leaf] = value
                if is_of_times(name):
                    value = self.let(f"call ptr @gate.times(ptr {value}, {self.unit(str(name)[1:])})")
                else:
                    value = self.let(f"call ptr @gate.derived(ptr {value}, ptr {self.own(object_)})")
                self.put(f"store ptr {value}, ptr {self.at('%columns', 8 * self.columns)}")
                self.columns += 1
                self.need(self.let(f"icmp ne ptr {value}, null"))
                self.checkpoint()
                continue
            read = "random_state" if name == RANDOM_STATE else "item" if is_item(str(name)) else "field"
            if kind == "method" and place == len(names) - 1:
                read = "method_of"
            value = self.let(f"call ptr @gate.{read}(ptr {value}, ptr {self.own(object_)})")
            self.need(self.let(f"icmp ne ptr {value}, null"))
            self.checkpoint()
        return value

    def unit(self, unit: str) -> str:
        """A dtype of times, as `gate.times` is given it: its number, its unit, and the class of scalars."""
        kind = self.external(_KINDS_OF_TIMES[unit[0]])
        return f"i32 {np.dtype(unit).num}, i64 {unit_code(unit)}, ptr {kind}"

    def hidden(self, index: int) -> str:
        """The present value of a hidden argument, borrowed; missing values are a mismatch."""
        return self.read(index, self.signature.hidden[index].source)

    def read(self, index: int, source: Source) -> str:
        """What is found at the source of a hidden argument, or on the way there."""
        variable = variable_of(source)
        if len(variable) < len(source):
            own = [f"name.{index}.{place}" for place in range(len(source) - len(variable))]
            return self.member(self.read(index, variable), source[len(variable) :], own, "field")
        match source:
            case ("global", _):
                globals_, builtins = self.own("globals"), self.own("builtins")
                call = f"call ptr @gate.global(ptr {globals_}, ptr {builtins}, {self.name_and_value(index)})"
            case ("cell", _):
                call = f"load ptr, ptr {self.at(self.own(f'cell.{index}'), Layout.CELL)}"
            case ("attribute" | "class", *_):
                module = self.own(f"module.{index}")
                call = f"call ptr @gate.global(ptr {module}, ptr null, {self.name_and_value(index)})"
            case ("field" | "method" as kind, int() as position, *names):
                own = [f"name.{index}.{place}" for place in range(len(names))]
                return self.member(self.field("%args", 8 * position), names, own, kind)
            case _:
                raise ValueError(f"unknown source of a hidden argument: {source!r}")
        value = self.let(call)
        self.need(self.let(f"icmp ne ptr {value}, null"))
        self.checkpoint()
        return value

    def name_and_value(self, index: int) -> str:
        """What a hidden argument is looked up by, and where what was found last is kept."""
        return f"ptr {self.own(f'name.{index}')}, ptr {self.own(f'looked_up.{index}')}"
