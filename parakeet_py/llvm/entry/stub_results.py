"""The second half of a gate: making Python objects of what the function left in the slots of `%results`.

Every leaf is boxed once and every container made once. While there is more than one object they are listed in
`%objects`, so that an error at any point drops what is there; the tree takes references of its own, and the list is
dropped at the end in any case. A single tuple or list in which each leaf is once takes theirs (`_moves`).
"""

from __future__ import annotations

from parakeet_py.base.types import itemsize
from parakeet_py.llvm.entry.stub_writer import GateWriter
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.llvm.runtime.object_layout import Flags, Layout, unit_code
from parakeet_py.signature.attribute_sources import is_item
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultRows,
    ResultStatic,
    ResultTuple,
    SetAttributes,
    certain_leaves,
    result_leaves,
    result_offsets,
)

_KINDS_OF_TIMES = {"M": "datetime64", "m": "timedelta64"}


def _moves(tree: Result) -> bool:
    """Is a result one tuple or list, with each of its leaves in one place?"""
    if not isinstance(tree, ResultTuple) or tree.type is not None:
        return False
    leaves = [item.index for item in tree.items if isinstance(item, ResultLeaf)]
    statics = sum(isinstance(item, ResultStatic) for item in tree.items)
    return len(leaves) + statics == len(tree.items) and len(set(leaves)) == len(leaves)


class ResultWriter(GateWriter):
    """Writes the boxing, and the way out."""

    def box(self) -> None:
        """Box the leaves, make the containers and fill them. `%objects` lists what must be dropped afterwards."""
        self.begin("box")
        leaves, offsets = result_leaves(self.result), result_offsets(self.result)
        before, self.lines = self.lines, []
        if any(leaf.kind == "array" for leaf in leaves):
            self.put("store i64 0, ptr %bases")
        if isinstance(self.result, ResultStatic):
            value = self.make(self.result, "0")
        elif isinstance(self.result, ResultLeaf):
            value = self.box_leaf(self.result, "%results")
            self.exists(value)
            self.close(value, self.result)
        else:
            self.built = len(leaves)
            boxed: list[tuple[str, ResultLeaf]] = []
            self.moves = not self.checked and _moves(self.result)
            self.certain = certain_leaves(self.result)
            self.chosen: dict[tuple[int, ...], str] = {}
            for leaf in leaves:
                if leaf.index not in self.certain:
                    continue
                value = self.box_leaf(leaf, self.at("%results", 8 * offsets[leaf.index]))
                self.keep(value, leaf.index)
                boxed.append((value, leaf))
            for value, leaf in boxed:  # not before: others may be views of this one, and can be written to
                self.close(value, leaf)
            value = self.make(self.result, "0")
        if self.built:
            before.append(f"  store [{self.built} x ptr] zeroinitializer, ptr %objects")
            if not self.moves:
                self.put(f"call void @gate.drop(ptr %objects, i64 {self.built})")
        self.finish(self.told(value))
        if any("label %unboxed" in line for line in self.lines):
            self.begin("unboxed")
            if self.built:
                self.put(f"call void @gate.drop(ptr %objects, i64 {self.built})")
            self.finish("null")
        if self.checked:
            self.begin("unsafe")
            if self.built:
                self.put(f"call void @gate.drop(ptr %objects, i64 {self.built})")
            self.finish("null")
            before.append(f"  call void @gate.count_blocks(ptr %ctx, ptr %results, ptr {self.own('raise_failure')})")
        self.lines = before + self.lines

    def told(self, value: str) -> str:
        """The result, once floating-point flags have been reported; null if this has raised an exception."""
        if not self.warns:
            return value
        given = f"ptr {self.own('flags')}, i32 %flags, ptr {self.own('warn')}, ptr %args, i64 %nargs, ptr {value}"
        none = self.let("icmp eq i32 %flags, 0")
        return self.either(none, "ptr", value, lambda: self.let(f"call ptr @gate.flags_set({given})"))

    def exists(self, object_: str) -> None:
        """Go on only if a new object could be made."""
        self.go_on_unless_null(object_, "unboxed")

    def keep(self, object_: str, index: int) -> None:
        self.exists(object_)
        self.put(f"store ptr {object_}, ptr {self.at('%objects', 8 * index)}")

    def close(self, boxed: str, leaf: ResultLeaf) -> None:
        """Let a read-only array be that."""
        if leaf.kind == "array" and leaf.readonly:
            flags = self.field(boxed, Layout.FLAGS, "i32")
            cleared = self.let(f"and i32 {flags}, {~Flags.WRITEABLE & 0xFFFFFFFF}")
            self.put(f"store i32 {cleared}, ptr {self.at(boxed, Layout.FLAGS)}")

    def box_leaf(self, leaf: ResultLeaf, slots: str) -> str:
        if self.checked:
            self.put(f"call void @gate.place(i64 {leaf.index})")
        match leaf.kind:
            case "object":
                value = self.let(f"load ptr, ptr {slots}")
                self.increment(value)
                return value
            case "array":
                descr = self.own(f"unit.{leaf.index}") if leaf.unit else self.external(f"dtype.{leaf.dtype}")
                if leaf.view:
                    self.put(f"store ptr null, ptr {slots}")
                if self.checked:
                    self.go_on_if(self.let(f"call i1 @gate.is_owned(ptr {slots})"), "unsafe")
                array = f"ptr %ctx, ptr {slots}, i64 {leaf.rank}, ptr {descr}, ptr %bases"
                itself = str(not leaf.view and not leaf.readonly).lower()
                return self.let(f"call ptr @gate.box_array({array}, i1 {itself})")
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
            name = _KINDS_OF_TIMES[leaf.unit[0]] if leaf.unit else f"numpy.{leaf.dtype}"
            value = self.let(f"call ptr @gate._PyObject_New(ptr {self.external(name)})")
            self.exists(value)
            if leaf.unit:
                self.put(f"store i64 {unit_code(leaf.unit)}, ptr {self.at(value, Layout.TIME_UNIT)}")
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
                box = "box_items" if tree.numpy else "box_list"
                listed = self.let(f"call ptr @gate.{box}(ptr {self.again(tree.leaf)})")
                self.list_new(listed)
                return listed
            case ResultRows(items, ends):
                held = self.make(items, f"{path}.items")
                rows = self.let(f"call ptr @gate.box_rows(ptr {held}, ptr {self.again(ends)})")
                self.list_new(rows)
                return rows
            case ResultEither():
                return self.choose(tree, path)
            case ResultTuple(type=SetAttributes(names)):
                return self.attributes(tree, names, path)
            case ResultTuple():
                return self.container(tree, path)

    def choose(self, tree: ResultEither, path: str) -> str:
        """A new reference to the scalar whose turn it is; one object however often it is part of the result."""
        key = tuple(leaf.index for leaf in tree.leaves)
        if key in self.chosen:
            self.increment(self.chosen[key])
            return self.chosen[key]
        offsets = result_offsets(self.result)
        tag = self.field("%results", 8 * offsets[tree.tag.index], "i64")
        self.counter += 1
        number = self.counter
        cases = " ".join(f"i64 {index}, label %c{number}.{index}" for index in range(1, len(tree.choices)))
        self.put(f"switch i64 {tag}, label %c{number}.0 [{cases}]")
        made = []
        for index, choice in enumerate(tree.choices):
            self.begin(f"c{number}.{index}")
            if isinstance(choice, ResultStatic) or choice.index in self.certain:
                value = self.make(choice, f"{path}.{index}")
            else:
                value = self.box_leaf(choice, self.at("%results", 8 * offsets[choice.index]))
            self.put(f"br label %d{number}.{index}")
            self.begin(f"d{number}.{index}")
            self.put(f"br label %e{number}")
            made.append(f"[{value}, %d{number}.{index}]")
        self.begin(f"e{number}")
        value = self.let(f"phi ptr {', '.join(made)}")
        self.list_new(value)
        self.chosen[key] = value
        return value

    def again(self, leaf: ResultLeaf) -> str:
        """A new reference to a boxed leaf; the one in `%objects` is dropped at the end."""
        if self.checked:
            self.put(f"call void @gate.place(i64 {leaf.index})")
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
        if self.moves:
            self.exists(made)
        else:
            self.list_new(made)
        items = self.at(made, Layout.TUPLE_ITEMS) if as_tuple else ""
        if not as_tuple and tree.items:
            items = self.field(made, Layout.LIST_ITEMS)
        for index, item in enumerate(tree.items):
            if self.moves and isinstance(item, ResultLeaf):
                value = self.field("%objects", 8 * item.index)
            else:
                value = self.make(item, f"{path}.{index}")
            self.put(f"store ptr {value}, ptr {self.at(items, 8 * index)}")
            if self.checked:
                self.put(f"call void @gate.give(ptr {value})")
        if tree.type is None:
            return made
        named = self.let(f"call ptr @gate.PyObject_Call(ptr {self.own(f'result.{path}')}, ptr {made}, ptr null)")
        self.put(f"call void @gate.Py_DecRef(ptr {made})")
        self.list_new(named)
        return named

    def attributes(self, tree: ResultTuple, names: tuple[tuple[int, str], ...], path: str) -> str:
        """The first item, once objects have been given their attributes: what calling a `SetAttributes` does."""
        made = self.make(tree.items[0], f"{path}.0")
        self.list_new(made)
        first = len(tree.items) - len(names)
        for place, (number, field) in enumerate(names):
            store = "PyObject_SetItem" if is_item(field) else "PyObject_SetAttr"
            object_ = self.make(tree.items[1 + number], f"{path}.{1 + number}")
            value = self.make(tree.items[first + place], f"{path}.{first + place}")
            name = self.own(f"result.{path}.name{place}")
            status = self.let(f"call i32 @gate.{store}(ptr {object_}, ptr {name}, ptr {value})")
            self.put(f"call void @gate.Py_DecRef(ptr {value})")
            self.put(f"call void @gate.Py_DecRef(ptr {object_})")
            self.go_on_unless(self.let(f"icmp ne i32 {status}, 0"), "unboxed")
        return made

    def initial_state(self) -> str:
        return self.own("state") if self.has_state else "null"

    def finish(self, value: str) -> None:
        """Release what the call has taken, and return."""
        self.give_back(often=value != "null")
        self.drop_columns()
        self.put(f"ret ptr {self.settle(value)}")

    def drop_columns(self) -> None:
        """Drop the objects that hidden arguments are and only the call holds."""
        for place in range(self.columns if self.checked else 0):
            self.put(f"call void @gate.take(ptr {self.field('%columns', 8 * place)})")
        if self.columns:
            self.put(f"call void @gate.drop(ptr %columns, i64 {self.columns})")

    def give_back(self, often: bool = False) -> None:
        """Free what is left of the call's memory, and drop its state and what it has pinned.

        The code is short, unless this happens `often`, and in code that is optimised.
        """
        if self.checked or (often and self.limits is None):
            self.clean()
        else:
            self.put(f"call void @gate.clean(ptr %ctx, ptr {self.initial_state()})")
        if self.kept:
            self.put(f"call void @gate.drop(ptr %kept, i64 {len(self.kept)})")
        for pin in (*self.pins, *self.made):
            self.put(f"call void @gate.Py_DecRef(ptr {pin})")

    def clean(self) -> None:
        """What `gate.clean` does."""
        held = self.field("%ctx", Context.STATE)
        same = self.let(f"icmp eq ptr {held}, {self.initial_state()}")
        blocks = self.field("%ctx", Context.BLOCKS)
        empty = self.let(f"icmp eq ptr {blocks}, null")
        clean = self.let(f"and i1 {same}, {empty}")
        done, rest = self.labels("clean", "rest")
        self.branch(clean, done, rest)
        self.begin(rest)
        # A block still listed after boxing is a temporary that the function left to its context.
        self.put("call void @gate.pk_free_all(ptr %ctx)")
        mine = self.let(f"select i1 {same}, ptr null, ptr {held}")
        if self.checked:
            self.put(f"call void @gate.take(ptr {mine})")
        self.put(f"call void @gate.Py_DecRef(ptr {mine})")
        self.jump(done)
