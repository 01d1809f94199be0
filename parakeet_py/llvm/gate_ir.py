"""The text of a call gate: a vectorcall function that checks its arguments in machine code and runs one specialization.

    ptr @gate(ptr self, ptr args, i64 nargsf, ptr kwnames)

A gate takes exactly the calls its `Signature` describes. It compares types by pointer and arrays by the fields of their
structures, stores the leaves of the arguments into an array of 8-byte slots on its stack, reads and checks the hidden
arguments in the same way, and only then calls the compiled function

    i32 @entry(ptr ctx, ptr arguments, ptr results)

and boxes what it left in the result slots. Nothing has changed anywhere when a check fails: the call goes on, with the
same arguments, to what `@gate.next` names at that moment, a record [code, object] of the next gate or of the
Python function that compiles. So chains of gates are made and reordered without touching code.

Every address is an external symbol: those under `gate.` are the same in the whole process (`boxing.support`), those
under the gate's own name belong to this one (`gate.gate_symbols`). So the object code is the same in every process.

A gate is straight SSA that no pass could improve much: `optnone` makes it cost 2 ns more in a call and 10 ms less in
every compilation.

References: arguments are borrowed from the caller, who holds them during the call. Objects reached through a list or
through a hidden argument are held by the gate while the function runs, since the function may run without the GIL and
other threads may drop them. The GIL is released when the array arguments have more than `release_elements` elements
together.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.llvm.boxing import Flags, Layout, increment_ir
from parakeet_py.llvm.context import Context
from parakeet_py.signature import (
    ArraySpec,
    NoneSpec,
    ObjectSpec,
    Result,
    ResultLeaf,
    ResultListOf,
    ResultStatic,
    ResultTuple,
    ScalarSpec,
    Signature,
    Spec,
    StaticSpec,
    TupleSpec,
    argument_slots,
    result_leaves,
    result_offsets,
)
from parakeet_py.typed_ir.types import itemsize

RELEASE_ELEMENTS = 16384
_WORDS = Context.SIZE // 8

CHECKED_TYPES = (np.ndarray, list, tuple)  # may be an `ObjectSpec` or something better, depending on the value
_PYTHON_TYPES = {"bool": "bool", "int64": "int", "float64": "float", "complex128": "complex"}

_FUNCTIONS = """
declare i1 @gate.same_dtype(ptr, i32)
declare i1 @gate.overlaps_itself(i64, ptr, ptr, i64)
declare i1 @gate.equal(ptr, ptr)
declare ptr @gate.global(ptr, ptr, ptr)
declare i1 @gate.opaque(ptr, ptr)
declare void @gate.fail(ptr, ptr, ptr)
declare void @gate.drop(ptr, i64)
declare ptr @gate.box_array(ptr, ptr, i64, ptr, ptr)
declare ptr @gate.box_list(ptr)
declare void @gate.pk_free_all(ptr)
declare ptr @gate.PyObject_Call(ptr, ptr, ptr)
declare ptr @gate.PyEval_SaveThread()
declare void @gate.PyEval_RestoreThread(ptr)
declare void @gate.Py_DecRef(ptr)
declare ptr @gate.PyFloat_FromDouble(double)
declare ptr @gate.PyComplex_FromDoubles(double, double)
declare ptr @gate.PyLong_FromLongLong(i64)
declare ptr @gate.PyLong_FromUnsignedLongLong(i64)
declare i64 @gate.PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @gate._PyObject_New(ptr)
declare ptr @gate.PyTuple_New(i64)
declare ptr @gate.PyList_New(i64)
""".strip().splitlines()


def gate_ir(
    signature: Signature,
    result: Result,
    entry_symbol: str,
    gate_symbol: str,
    *,
    release_elements: int = RELEASE_ELEMENTS,
    always_release: bool = False,
    has_state: bool = False,
    declare_entry: bool = False,
) -> str:
    """The LLVM IR text of a gate; it may stand in one module with the entry (one gate to a module).

    Parameters
    ----------
    signature, result : the calls to take, and how to box what comes back
    entry_symbol, gate_symbol : names of the compiled function and of the gate
    release_elements : elements of all array arguments together above which the GIL is released
    always_release : release the GIL in every call
    has_state : the context's STATE is `<gate>.state` when the entry is called, else null
    declare_entry : declare the entry here, because it is in another module
    """
    return _Gate(signature, result, entry_symbol, gate_symbol, has_state).text(
        release_elements, always_release, declare_entry
    )


class _Extent:
    """What the gate knows of an array leaf: first and last address and number of elements, as IR values."""

    __slots__ = ("elements", "high", "low")

    def __init__(self, low: str, high: str, elements: str) -> None:
        self.low, self.high, self.elements = low, high, elements


class _Gate:
    """Writes one gate. Checks leave for the block `miss`; after each the text goes on in a new block."""

    def __init__(self, signature: Signature, result: Result, entry: str, name: str, has_state: bool) -> None:
        self.signature, self.result, self.entry, self.name = signature, result, entry, name
        self.has_state = has_state
        self.lines: list[str] = []
        self.counter = 0
        self.externals: set[str] = set()
        self.slot = 0
        self.leaf = 0
        self.extents: dict[int, _Extent] = {}
        self.paired = {index for pair in signature.pairs for index in pair}
        self.pins: list[str] = []
        self.checks: list[str] = []
        self.built = 0  # entries of %objects

    # ---- writing ----

    def put(self, line: str) -> None:
        self.lines.append("  " + line)

    def let(self, value: str) -> str:
        self.counter += 1
        self.put(f"%v{self.counter} = {value}")
        return f"%v{self.counter}"

    def need(self, *conditions: str) -> None:
        """Remember conditions for the next `checkpoint`."""
        self.checks.extend(conditions)

    def checkpoint(self) -> None:
        """Go on only if all remembered conditions hold."""
        if not self.checks:
            return
        both = self.checks[0]
        for condition in self.checks[1:]:
            both = self.let(f"and i1 {both}, {condition}")
        self.checks.clear()
        self.counter += 1
        label = f"b{self.counter}"
        self.put(f"br i1 {both}, label %{label}, label %miss")
        self.lines.append(f"{label}:")

    def external(self, name: str) -> str:
        """A symbol of the whole process."""
        self.externals.add(f"gate.{name}")
        return f"@gate.{name}"

    def own(self, name: str) -> str:
        """A symbol of this gate."""
        self.externals.add(f"{self.name}.{name}")
        return f"@{self.name}.{name}"

    def at(self, pointer: str, offset: int) -> str:
        return pointer if offset == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, pointer: str, offset: int, type_: str = "ptr") -> str:
        return self.let(f"load {type_}, ptr {self.at(pointer, offset)}")

    def store_slot(self, type_: str, value: str) -> None:
        place = self.at("%arguments", 8 * self.slot)
        self.put(f"store {type_} {value}, ptr {place}")
        self.slot += 1

    def increment(self, pointer: str) -> None:
        self.counter += 1
        self.lines.extend(increment_ir(f"r{self.counter}", pointer).rstrip().split("\n"))

    def of_type(self, value: str, type_symbol: str) -> None:
        self.need(self.let(f"icmp eq ptr {self.field(value, Layout.TYPE)}, {type_symbol}"))

    # ---- arguments ----

    def take(self, value: str, spec: Spec, path: str, pinned: bool) -> None:
        """Check `value` against `spec` and store its leaves; `pinned`: nobody else holds it during the call."""
        match spec:
            case NoneSpec():
                self.need(self.let(f"icmp eq ptr {value}, {self.external('None')}"))
            case StaticSpec():
                self.static(value, spec.value, path)
            case TupleSpec():
                self.items(value, spec, path, pinned)
            case ObjectSpec():
                self.of_type(value, self.own(f"type.{path}"))
                if spec.type is int:
                    self.checkpoint()
                    self.long(value, "ne")
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
        if kind is int or kind is str:
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

    def items(self, value: str, spec: TupleSpec, path: str, pinned: bool) -> None:
        self.of_type(value, self.external(spec.kind))
        self.checkpoint()
        if spec.kind == "slice":
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
            if not isinstance(spec, ObjectSpec) or spec.type not in CHECKED_TYPES:
                continue
            split = len(self.signature.params)
            value = self.field("%args", 8 * index) if index < split else self.hidden(index - split)
            self.need(self.let(f"call i1 @gate.opaque(ptr {self.own('is_opaque')}, ptr {value})"))
            self.checkpoint()

    def array(self, value: str, spec: ArraySpec) -> None:
        self.of_type(value, self.external("ndarray"))
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
        size = itemsize(spec.dtype)
        if spec.layout in "SA":
            self.need(self.let(f"icmp {'eq' if spec.layout == 'S' else 'ne'} i64 {strides[-1]}, {size}"))
            if spec.writeable:
                self.checkpoint()
                call = f"call i1 @gate.overlaps_itself(i64 {spec.rank}, ptr {dims_at}, ptr {strides_at}, i64 {size})"
                self.need(self.let(f"xor i1 {self.let(call)}, true"))
        data = self.field(value, Layout.DATA)
        self.store_slot("ptr", value)
        self.store_slot("ptr", data)
        for number in (*dims, *strides):
            self.store_slot("i64", number)
        self.extents[self.leaf] = self.extent(data, dims, strides, spec, size)

    def array_flags(self, value: str, spec: ArraySpec) -> str:
        mask = Flags.ALIGNED | Flags.WRITEABLE | Flags.WARN_ON_WRITE | Flags.C
        wanted = Flags.ALIGNED | (Flags.WRITEABLE if spec.writeable else 0)
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
        same = self.let(f"icmp eq ptr {descr}, {expected}")
        self.counter += 1
        here, other, join = (f"{label}{self.counter}" for label in ("here", "other", "join"))
        self.put(f"br label %{here}")
        self.lines.append(f"{here}:")
        self.put(f"br i1 {same}, label %{join}, label %{other}")
        self.lines.append(f"{other}:")
        number = self.field(expected, Layout.TYPE_NUM, "i32")
        equal = self.let(f"call i1 @gate.same_dtype(ptr {descr}, i32 {number})")
        self.put(f"br label %{join}")
        self.lines.append(f"{join}:")
        self.need(self.let(f"phi i1 [true, %{here}], [{equal}, %{other}]"))

    def extent(self, data: str, dims: list[str], strides: list[str], spec: ArraySpec, size: int) -> _Extent:
        elements = "1"
        for dim, unit in zip(dims, spec.unit, strict=True):
            if not unit:
                elements = dim if elements == "1" else self.let(f"mul i64 {elements}, {dim}")
        if self.leaf not in self.paired:
            return _Extent("", "", elements)
        low = self.let(f"ptrtoint ptr {data} to i64")
        if spec.layout in "CF":
            length = self.let(f"mul i64 {elements}, {size}")
            return _Extent(low, self.let(f"add i64 {low}, {length}"), elements)
        high = self.let(f"add i64 {low}, {size}")
        for dim, stride, unit in zip(dims, strides, spec.unit, strict=True):
            if unit:
                continue
            span = self.let(f"mul i64 {self.let(f'sub i64 {dim}, 1')}, {stride}")
            negative = self.let(f"icmp slt i64 {span}, 0")
            low = self.let(f"add i64 {low}, {self.let(f'select i1 {negative}, i64 {span}, i64 0')}")
            high = self.let(f"add i64 {high}, {self.let(f'select i1 {negative}, i64 0, i64 {span}')}")
        return _Extent(low, high, elements)

    def overlaps(self) -> None:
        """Extents that must not meet, or of which some must. Arrays without elements meet nothing."""
        meets = []
        for i, j in self.signature.pairs:
            left, right = self.extents[i], self.extents[j]
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

    def hidden(self, index: int) -> str:
        """The present value of a hidden argument, borrowed; missing values are a mismatch."""
        match self.signature.hidden[index].source:
            case ("global", _):
                globals_, builtins = self.own("globals"), self.own("builtins")
                call = f"call ptr @gate.global(ptr {globals_}, ptr {builtins}, ptr {self.own(f'name.{index}')})"
            case ("cell", _):
                call = f"load ptr, ptr {self.at(self.own(f'cell.{index}'), Layout.CELL)}"
            case ("attribute", *_):
                module = self.own(f"module.{index}")
                call = f"call ptr @gate.global(ptr {module}, ptr null, ptr {self.own(f'name.{index}')})"
            case source:
                raise ValueError(f"unknown source of a hidden argument: {source!r}")
        value = self.let(call)
        self.need(self.let(f"icmp ne ptr {value}, null"))
        self.checkpoint()
        return value

    # ---- the call ----

    def call(self, release_elements: int, always_release: bool) -> None:
        self.put(f"store <{_WORDS} x i64> zeroinitializer, ptr %ctx, align 64")
        if self.has_state:
            self.put(f"store ptr {self.initial_state()}, ptr {self.at('%ctx', Context.STATE)}")
        threads = self.let(f"load atomic i32, ptr {self.external('max_threads')} monotonic, align 4")
        self.put(f"store i32 {threads}, ptr {self.at('%ctx', Context.MAX_THREADS)}")
        for pin in self.pins:
            self.increment(pin)
        release = self.releases(release_elements, always_release)
        thread = "null"
        if release:
            self.put(f"br i1 {release}, label %release, label %run")
            self.lines.append("release:")
            self.put("%released = call ptr @gate.PyEval_SaveThread()")
            self.put("br label %run")
            self.lines.append("run:")
            self.put("%thread = phi ptr [null, %ready], [%released, %release]")
            thread = "%thread"
        self.put(f"%status = call i32 @{self.entry}(ptr %ctx, ptr %arguments, ptr %results)")
        if release:
            held = self.let(f"icmp eq ptr {thread}, null")
            self.put(f"br i1 {held}, label %back, label %restore")
            self.lines.append("restore:")
            self.put(f"call void @gate.PyEval_RestoreThread(ptr {thread})")
            self.put("br label %back")
            self.lines.append("back:")
        self.put("%good = icmp eq i32 %status, 0")
        self.put("br i1 %good, label %box, label %failed")

    def releases(self, release_elements: int, always_release: bool) -> str:
        """The condition of releasing the GIL; empty: never."""
        if always_release:
            return "true"
        total = ""
        for extent in self.extents.values():
            total = self.let(f"add i64 {total}, {extent.elements}") if total else extent.elements
        return self.let(f"icmp sgt i64 {total}, {release_elements}") if total and total != "1" else ""

    # ---- results ----

    def box(self) -> None:
        """Box the leaves, make the containers and fill them. `%objects` lists what must be dropped afterwards."""
        self.lines.append("box:")
        leaves, offsets = result_leaves(self.result), result_offsets(self.result)
        before, self.lines = self.lines, []
        if any(leaf.kind == "array" for leaf in leaves):
            self.put("store i64 0, ptr %bases")
        if isinstance(self.result, ResultStatic):
            value = self.make(self.result, "0")
        elif isinstance(self.result, ResultLeaf):
            value = self.box_leaf(self.result, "%results")
            self.exists(value)
        else:
            self.built = len(leaves)
            for leaf in leaves:
                value = self.box_leaf(leaf, self.at("%results", 8 * offsets[leaf.index]))
                self.keep(value, leaf.index)
            value = self.make(self.result, "0")
        if self.built:
            before.append(f"  store [{self.built} x ptr] zeroinitializer, ptr %objects")
            self.put(f"call void @gate.drop(ptr %objects, i64 {self.built})")
        self.finish(value)
        if any("label %unboxed" in line for line in self.lines):
            self.lines.append("unboxed:")
            if self.built:
                self.put(f"call void @gate.drop(ptr %objects, i64 {self.built})")
            self.finish("null")
        self.lines = before + self.lines

    def exists(self, object_: str) -> None:
        """Go on only if a new object could be made."""
        missing = self.let(f"icmp eq ptr {object_}, null")
        self.counter += 1
        self.put(f"br i1 {missing}, label %unboxed, label %b{self.counter}")
        self.lines.append(f"b{self.counter}:")

    def keep(self, object_: str, index: int) -> None:
        self.exists(object_)
        self.put(f"store ptr {object_}, ptr {self.at('%objects', 8 * index)}")

    def box_leaf(self, leaf: ResultLeaf, slots: str) -> str:
        match leaf.kind:
            case "object":
                value = self.let(f"load ptr, ptr {slots}")
                self.increment(value)
                return value
            case "array":
                descr = self.external(f"dtype.{leaf.dtype}")
                return self.let(
                    f"call ptr @gate.box_array(ptr %ctx, ptr {slots}, i64 {leaf.rank}, ptr {descr}, ptr %bases)"
                )
            case "scalar":
                return self.box_scalar(leaf, slots)

    def box_scalar(self, leaf: ResultLeaf, slots: str) -> str:
        if leaf.dtype == "bool":
            byte = self.let(f"load i8, ptr {slots}")
            false = self.let(f"icmp eq i8 {byte}, 0")
            prefix = "" if leaf.python else "numpy."
            names = self.external(prefix + "False"), self.external(prefix + "True")
            value = self.let(f"select i1 {false}, ptr {names[0]}, ptr {names[1]}")
            self.increment(value)
            return value
        if not leaf.python:
            value = self.let(f"call ptr @gate._PyObject_New(ptr {self.external(f'numpy.{leaf.dtype}')})")
            self.exists(value)
            size = itemsize(leaf.dtype)
            bits = min(8 * size, 64)
            for offset in range(0, size, 8):
                word = self.field(slots, offset, f"i{bits}")
                self.put(f"store i{bits} {word}, ptr {self.at(value, Layout.HEADER + offset)}")
            return value
        match leaf.dtype:
            case "float64":
                return self.let(f"call ptr @gate.PyFloat_FromDouble(double {self.field(slots, 0, 'double')})")
            case "complex128":
                real, imag = self.field(slots, 0, "double"), self.field(slots, 8, "double")
                return self.let(f"call ptr @gate.PyComplex_FromDoubles(double {real}, double {imag})")
            case "int64":
                return self.let(f"call ptr @gate.PyLong_FromLongLong(i64 {self.field(slots, 0, 'i64')})")
            case "uint64":
                return self.let(f"call ptr @gate.PyLong_FromUnsignedLongLong(i64 {self.field(slots, 0, 'i64')})")
        raise ValueError(f"no Python scalar for {leaf.dtype}")

    def make(self, tree: Result, path: str) -> str:
        """A new reference to the object of `tree`."""
        match tree:
            case ResultStatic():
                value = self.own(f"result.{path}") if tree.value is not None else self.external("None")
                self.increment(value)
                return value
            case ResultLeaf():
                return self.again(tree)
            case ResultListOf():
                listed = self.let(f"call ptr @gate.box_list(ptr {self.again(tree.leaf)})")
                self.list_new(listed)
                return listed
            case ResultTuple():
                return self.container(tree, path)

    def again(self, leaf: ResultLeaf) -> str:
        """A new reference to a boxed leaf; the one in `%objects` is dropped at the end."""
        value = self.field("%objects", 8 * leaf.index)
        self.increment(value)
        return value

    def list_new(self, object_: str) -> None:
        self.keep(object_, self.built)
        self.increment(object_)
        self.built += 1

    def container(self, tree: ResultTuple, path: str) -> str:
        """Containers are listed in `%objects` while they are filled; null items are allowed when one is dropped."""
        as_tuple = tree.kind == "tuple" or tree.type is not None
        maker = "PyTuple_New" if as_tuple else "PyList_New"
        made = self.let(f"call ptr @gate.{maker}(i64 {len(tree.items)})")
        self.list_new(made)
        items = self.at(made, Layout.TUPLE_ITEMS) if as_tuple else ""
        if not as_tuple and tree.items:
            items = self.field(made, Layout.LIST_ITEMS)
        for index, item in enumerate(tree.items):
            value = self.make(item, f"{path}.{index}")
            self.put(f"store ptr {value}, ptr {self.at(items, 8 * index)}")
        if tree.type is None:
            return made
        named = self.let(f"call ptr @gate.PyObject_Call(ptr {self.own(f'result.{path}')}, ptr {made}, ptr null)")
        self.put(f"call void @gate.Py_DecRef(ptr {made})")
        self.list_new(named)
        return named

    # ---- the whole ----

    def text(self, release_elements: int, always_release: bool, declare_entry: bool) -> str:
        body, self.lines = self._body(release_elements, always_release), []
        used = "\n".join(body)
        declared = [line for line in _FUNCTIONS if line.split("@")[1].split("(")[0] + "(" in used]
        data = [f"@{name} = external global i64" for name in sorted(self.externals)]
        if declare_entry:
            declared.append(f"declare i32 @{self.entry}(ptr, ptr, ptr)")
        return "\n".join((*data, *declared, "", *body, ""))

    def _body(self, release_elements: int, always_release: bool) -> list[str]:
        self.check()
        self.put("br label %ready")
        self.lines.append("ready:")
        self.call(release_elements, always_release)
        self.box()
        self.lines.append("failed:")
        held = self.field("%ctx", Context.STATE)
        same = self.let(f"icmp eq ptr {held}, {self.initial_state()}")
        state = self.let(f"select i1 {same}, ptr null, ptr {held}")
        self.put(f"call void @gate.fail(ptr %ctx, ptr {self.own('raise_failure')}, ptr {state})")
        self.finish("null")
        self.lines.append("miss:")
        record = self.field(self.own("next"), 0)
        code, object_ = self.field(record, 0), self.field(record, 8)
        following = self.let(f"tail call ptr {code}(ptr {object_}, ptr %args, i64 %nargsf, ptr %names)")
        self.put(f"ret ptr {following}")
        self.lines.append("}")
        return self.head() + self.lines

    def head(self) -> list[str]:
        arrays = sum(leaf.kind == "array" for leaf in result_leaves(self.result))
        sizes = {
            "ctx": Context.SIZE // 8,
            "arguments": argument_slots(self.signature),
            "results": result_offsets(self.result)[-1],
            "bases": 1 + 2 * arrays if arrays else 0,
            "objects": self.built,
            "overflow": 1,
        }
        return [
            f"define ptr @{self.name}(ptr %self, ptr %args, i64 %nargsf, ptr %names) nounwind noinline optnone {{",
            "start:",
            *(f"  %{name} = alloca [{max(1, size)} x i64], align 64" for name, size in sizes.items()),
        ]

    def check(self) -> None:
        """All checks of a call, and its leaves into `%arguments`."""
        signature = self.signature
        self.put("%nargs = and i64 %nargsf, 9223372036854775807")
        self.need(self.let(f"icmp eq i64 %nargs, {len(signature.params)}"), self.let("icmp eq ptr %names, null"))
        self.checkpoint()
        self.opaque()
        for index, spec in enumerate(signature.params):
            self.take(self.field("%args", 8 * index), spec, str(index), False)
            self.checkpoint()
        for index, hidden in enumerate(signature.hidden):
            self.take(self.hidden(index), hidden.spec, f"hidden.{index}", True)
            self.checkpoint()
        self.overlaps()
        self.checkpoint()

    def initial_state(self) -> str:
        return self.own("state") if self.has_state else "null"

    def finish(self, value: str) -> None:
        """Give back what the call held, and return."""
        held = self.field("%ctx", Context.STATE)
        same = self.let(f"icmp eq ptr {held}, {self.initial_state()}")
        blocks = self.field("%ctx", Context.BLOCKS)
        empty = self.let(f"icmp eq ptr {blocks}, null")
        clean = self.let(f"and i1 {same}, {empty}")
        self.counter += 1
        number = self.counter
        self.put(f"br i1 {clean}, label %clean{number}, label %rest{number}")
        self.lines.append(f"rest{number}:")
        # A block still listed after boxing is a temporary that the function left to its context.
        self.put("call void @gate.pk_free_all(ptr %ctx)")
        mine = self.let(f"select i1 {same}, ptr null, ptr {held}")
        self.put(f"call void @gate.Py_DecRef(ptr {mine})")
        self.put(f"br label %clean{number}")
        self.lines.append(f"clean{number}:")
        for pin in self.pins:
            self.put(f"call void @gate.Py_DecRef(ptr {pin})")
        self.put(f"ret ptr {value}")
