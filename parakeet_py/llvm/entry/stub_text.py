"""The text of a call gate: a vectorcall function that checks its arguments in machine code and runs one specialization.

    ptr @gate(ptr self, ptr args, i64 nargsf, ptr kwnames)

A gate takes exactly the calls its `Signature` describes. It compares types by pointer and arrays by the fields of their
structures, stores the leaves of the arguments into an array of 8-byte slots on its stack, reads and checks the hidden
arguments in the same way, and only then calls the compiled function

    i32 @entry(ptr ctx, ptr arguments, ptr results)

and boxes what it left in the result slots. Nothing has changed anywhere when a check fails: the call goes on, with the
same arguments, to what `@gate.next` names at that moment, a record [code, object] of the next gate or of the
Python function that compiles. So chains of gates are made and reordered without touching code.
A call that compiled code has given up after it has handed something back to Python goes to what `@gate.slow` names,
which knows what has been done: no gate that would take the arguments, too, may begin it anew.

Every address is an external symbol: those under `gate.` are the same in the whole process (`boxing.support`), those
under the gate's own name belong to this one (`gate.gate_symbols`). So the object code is the same in every process.

A gate is straight SSA that no pass could improve much: `optnone` makes it cost 2 ns more in a call and 10 ms less in
every compilation.

References: arguments are borrowed from the caller, who holds them during the call. Objects reached through a list or
through a hidden argument are held by the gate while the function runs, since the function may run without the GIL and
other threads may drop them. The GIL is released when the array arguments have more than `release_elements` elements
together.

Where Python may have to run a call from the beginning although the function has stored into arguments, the gate keeps
copies of these (`kept`) and puts their contents back first.
"""

from __future__ import annotations

from collections.abc import Mapping

from parakeet_py.base.frames.tracing import FRAMED
from parakeet_py.llvm.entry.stub_arguments import ArgumentWriter
from parakeet_py.llvm.entry.stub_results import ResultWriter
from parakeet_py.llvm.runtime import error_state
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, OPAQUE_REST, Context
from parakeet_py.llvm.runtime.loop_polls import BRIEF, HELD, KEPT, LENT
from parakeet_py.llvm.safety.declarations import DECLARATIONS
from parakeet_py.signature.attribute_sources import RANDOM_STATE
from parakeet_py.signature.results import Result, result_leaves, result_offsets
from parakeet_py.signature.specs import Signature, argument_slots

RELEASE_ELEMENTS = 16384
_WORDS = Context.SIZE // 8
_KEEP_ORDER = 2  # NPY_KEEPORDER


_FUNCTIONS = """
declare i1 @gate.same_dtype(ptr, i32)
declare i1 @gate.asks_for_errors()
declare ptr @gate.flags_set(ptr, i32, ptr, ptr, i64, ptr)
declare i1 @gate.overlaps_itself(i64, ptr, ptr, i64)
declare i1 @gate.equal(ptr, ptr)
declare ptr @gate.global(ptr, ptr, ptr, ptr)
declare ptr @gate.field(ptr, ptr)
declare ptr @gate.method_of(ptr, ptr)
declare ptr @gate.item(ptr, ptr)
declare ptr @gate.random_state(ptr, ptr)
declare ptr @gate.derived(ptr, ptr)
declare ptr @gate.times(ptr, i32, i64, ptr)
declare i1 @gate.is_time(ptr, i32, i64, ptr)
declare i1 @gate.keys(ptr, ptr)
declare i1 @gate.opaque(ptr, ptr)
declare void @gate.fail(ptr, ptr, ptr)
declare ptr @gate.PyErr_Occurred()
declare i32 @gate.ask_threads(ptr, ptr, ptr)
declare i64 @gate.watched()
declare i64 @gate.now()
declare void @gate.drop(ptr, i64)
declare void @gate.clean(ptr, ptr)
declare ptr @gate.read_list(ptr, ptr, ptr)
declare ptr @gate.box_array(ptr, ptr, i64, ptr, ptr, i1)
declare ptr @gate.box_list(ptr)
declare ptr @gate.box_items(ptr)
declare ptr @gate.box_rows(ptr, ptr)
declare void @gate.pk_free_all(ptr)
declare ptr @gate.PyArray_NewCopy(ptr, i32)
declare i32 @gate.PyArray_CopyInto(ptr, ptr)
declare ptr @gate.pk_stack_floor()
declare i32 @gate.Py_GetRecursionLimit()
declare i32 @gate.PyObject_SetAttr(ptr, ptr, ptr)
declare i32 @gate.PyObject_SetItem(ptr, ptr, ptr)
declare ptr @gate.PyObject_Call(ptr, ptr, ptr)
declare ptr @gate.PyObject_Vectorcall(ptr, ptr, i64, ptr)
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
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
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
    rerun: tuple[int, ...] = (),
    kept: tuple[int, ...] = (),
    recursive: bool = False,
    numeric: bool = False,
    warns: bool = False,
    watched: int = 0,
    checked: bool = False,
    limits: Mapping[int, int] | None = None,
    lends: bool = True,
    restarts: bool = False,
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
    rerun : statuses of the entry after which the call goes on to `next`, as if it had not been taken
    kept : array leaves of the arguments that must then hold what they held before
    recursive : the entry makes calls, whose depth the context limits
    numeric : the entry computes what NumPy's floating-point error state is about (see `error_state`)
    warns : floating-point flags that the entry sets are reported
    watched : the number of modules whose names must not have been replaced (see `patches`)
    checked : references are looked at (`safety.objects`)
    limits : calls are taken only until they have used up the nanoseconds at `<gate>.left`, and only if the ints and
        extents in these slots of their arguments are at most so large
    lends : where there is a state, the entry calls Python time and again: other threads are lent the GIL
    restarts : a call that takes long is given up at a poll, and goes on to `next`
    """
    gate = _Gate(signature, result, entry_symbol, gate_symbol, has_state)
    gate.rerun, gate.kept, gate.recursive, gate.numeric, gate.warns = rerun, kept, recursive, numeric, warns
    gate.watched, gate.checked, gate.limits = watched, checked, limits
    gate.lends, gate.restarts = has_state and lends, restarts
    return gate.text(release_elements, always_release, declare_entry)


class _Gate(ArgumentWriter, ResultWriter):
    """Writes one whole gate."""

    rerun: tuple[int, ...] = ()
    recursive = False
    lends = False
    restarts = False

    def call(self, release_elements: int, always_release: bool) -> None:
        self.put(f"store <{_WORDS} x i64> zeroinitializer, ptr %ctx, align 64")
        if self.has_state:
            self.put(f"store ptr {self.initial_state()}, ptr {self.at('%ctx', Context.STATE)}")
        self.put(f"store i32 %threads, ptr {self.at('%ctx', Context.MAX_THREADS)}")
        if self.recursive:
            levels = self.let(f"sext i32 {self.let('call i32 @gate.Py_GetRecursionLimit()')} to i64")
            self.put(f"store i64 {levels}, ptr {self.at('%ctx', Context.LEVELS)}")
            floor = self.let("call ptr @gate.pk_stack_floor()")
            self.put(f"store ptr {floor}, ptr {self.at('%ctx', Context.FLOOR)}")
        for pin in self.pins:
            self.increment(pin)
        self.put(f"%framed = load i64, ptr {self.at(self.external('tools'), 8 * FRAMED)}")
        self.put(f"store i64 0, ptr {self.at(self.external('tools'), 8 * FRAMED)}")  # calls within this one are seen
        self.keep_contents()
        release = "" if self.restarts else self.releases(release_elements, always_release)
        held_at = self.at("%ctx", Context.THREAD)
        draws = any(hidden.source[-1] == RANDOM_STATE for hidden in self.signature.hidden)
        held = BRIEF if self.restarts else KEPT if draws else LENT if self.lends else HELD
        self.put(f"store i64 {held}, ptr {held_at}")
        if release:
            self.put(f"br i1 {release}, label %release, label %run")
            self.begin("release")
            self.put("%released = call ptr @gate.PyEval_SaveThread()")
            self.put(f"store ptr %released, ptr {held_at}")
            self.put("br label %run")
            self.begin("run")
        start = "" if self.limits is None else self.let("call i64 @gate.now()")
        self.clear_flags()
        self.put(f"%status = call i32 @{self.entry}(ptr %ctx, ptr %arguments, ptr %results)")
        self.read_flags()
        if start:
            taken = self.let(f"sub i64 {self.let('call i64 @gate.now()')}, {start}")
            left = self.let(f"load i64, ptr {self.own('left')}")
            self.put(f"store i64 {self.let(f'sub i64 {left}, {taken}')}, ptr {self.own('left')}")
        thread = self.field("%ctx", Context.THREAD, "i64")  # loops that run long let the GIL go, too
        kept = self.let(f"icmp ule i64 {thread}, {BRIEF}")
        self.put(f"br i1 {kept}, label %back, label %restore")
        self.begin("restore")
        state = self.let(f"inttoptr i64 {thread} to ptr")
        self.put(f"call void @gate.PyEval_RestoreThread(ptr {state})")
        self.jump("back")
        self.put("%good = icmp eq i32 %status, 0")
        self.put("br i1 %good, label %box, label %failed")

    def clear_flags(self) -> None:
        """Begin without floating-point flags. They are seldom set, and setting the register takes long."""
        if not self.warns:
            return
        register = self.floating_register()
        clear, cleared = self.labels("clear", "cleared")
        before = self.let(f"and i32 {register}, {error_state.ALL_FLAGS}")
        self.branch(self.let(f"icmp eq i32 {before}, 0"), cleared, clear)
        self.begin(clear)
        without = self.let(f"and i32 {register}, {~error_state.ALL_FLAGS}")
        self.put(f"store i32 {without}, ptr %mxcsr")
        self.put("call void @llvm.x86.sse.ldmxcsr(ptr %mxcsr)")
        self.jump(cleared)

    def floating_register(self) -> str:
        self.put("call void @llvm.x86.sse.stmxcsr(ptr %mxcsr)")
        return self.let("load i32, ptr %mxcsr")

    def read_flags(self) -> None:
        """`%flags`: the floating-point flags that the function has set."""
        if self.warns:
            own = self.let(f"and i32 {self.floating_register()}, {error_state.ALL_FLAGS}")
            self.put(f"%flags = or i32 {own}, {self.field('%ctx', Context.FLAGS, 'i32')}")

    def keep_contents(self) -> None:
        """Copy the arrays that may have to be as they were."""
        if not self.kept:
            return
        self.put(f"store [{len(self.kept)} x ptr] zeroinitializer, ptr %kept")
        for place, leaf in enumerate(self.kept):
            copy = self.let(f"call ptr @gate.PyArray_NewCopy(ptr {self.arrays[leaf]}, i32 {_KEEP_ORDER})")
            self.put(f"store ptr {copy}, ptr {self.at('%kept', 8 * place)}")
            self.go_on_unless_null(copy, "unkept")
        self.put("br label %begin")
        self.begin("unkept")  # out of memory
        self.finish("null")
        self.begin("begin")

    def put_back(self) -> None:
        """Undo what the function has stored into arguments."""
        for place, leaf in enumerate(self.kept):
            copy = self.field("%kept", 8 * place)
            self.let(f"call i32 @gate.PyArray_CopyInto(ptr {self.arrays[leaf]}, ptr {copy})")

    def releases(self, release_elements: int, always_release: bool) -> str:
        """The condition of releasing the GIL; empty: never."""
        if always_release:
            return "true"
        total = ""
        for extent in self.extents.values():
            total = self.let(f"add i64 {total}, {extent.elements}") if total else extent.elements
        return self.let(f"icmp sgt i64 {total}, {release_elements}") if total and total != "1" else ""

    def text(self, release_elements: int, always_release: bool, declare_entry: bool) -> str:
        body, self.lines = self._body(release_elements, always_release), []
        used = "\n".join(body)
        declared = [line for line in (*_FUNCTIONS, *DECLARATIONS) if line.split("@")[1].split("(")[0] + "(" in used]
        data = [f"@{name} = external global i64" for name in sorted(self.externals)]
        if declare_entry:
            declared.append(f"declare i32 @{self.entry}(ptr, ptr, ptr)")
        return "\n".join((*data, *declared, "", *body, ""))

    def _body(self, release_elements: int, always_release: bool) -> list[str]:
        self.check()
        self.jump("ready")
        self.call(release_elements, always_release)
        self.box()
        self.begin("failed")
        if self.restarts:
            self.put(f"br i1 {self.let(f'icmp eq i32 %status, {INTERRUPTED}')}, label %ended, label %other")
            self.begin("ended")
            raised = self.let("call ptr @gate.PyErr_Occurred()")
            self.put(f"br i1 {self.let(f'icmp eq ptr {raised}, null')}, label %long, label %other")
            self.begin("long")
            self.put(f"store i64 0, ptr {self.own('left')}")
            self.put("br label %again")
            self.begin("other")
        if self.rerun or self.restarts:
            cases = " ".join(f"i32 {code}, label %{'rest' if code == OPAQUE_REST else 'again'}" for code in self.rerun)
            self.put(f"switch i32 %status, label %error [{cases}]")
            self.begin("again")
            self.put_back()
            self.jump("rest")
            self.go_on_elsewhere()
            self.begin("error")
        held = self.field("%ctx", Context.STATE)
        same = self.let(f"icmp eq ptr {held}, {self.initial_state()}")
        state = self.let(f"select i1 {same}, ptr null, ptr {held}")
        self.put(f"call void @gate.fail(ptr %ctx, ptr {self.own('raise_failure')}, ptr {state})")
        if self.has_state:
            raised = self.let("call ptr @gate.PyErr_Occurred()")
            self.put(f"br i1 {self.let(f'icmp eq ptr {raised}, null')}, label %told_again, label %raise")
            self.begin("told_again")
            self.go_on_elsewhere()
            self.begin("raise")
        self.finish("null")
        self.begin("miss")
        self.leave_to("next")
        if self.has_state:
            self.begin("slow")
            self.leave_to("slow")
        self.lines.append("}")
        return self.head() + self.lines

    def go_on_elsewhere(self) -> None:
        """Let what comes next take a call that was taken here; a profiler has seen its frame, if it has one."""
        self.give_back()
        self.put(f"store i64 %framed, ptr {self.at(self.external('tools'), 8 * FRAMED)}")
        self.miss_if_settled()

    def leave_to(self, cell: str) -> None:
        """Let what a cell names take the call."""
        self.drop_columns()
        record = self.field(self.own(cell), 0)
        code, object_ = self.field(record, 0), self.field(record, 8)
        following = self.let(f"tail call ptr {code}(ptr {object_}, ptr %args, i64 %nargsf, ptr %names)")
        self.put(f"ret ptr {following}")

    def head(self) -> list[str]:
        arrays = sum(leaf.kind == "array" for leaf in result_leaves(self.result))
        cleared: tuple[str, ...] = (
            ("ctx", "results", "objects", "kept") if self.checked else ()
        )  # `unsafe` may be reached early
        cleared += ("columns",) if self.columns else ()
        sizes = {
            "ctx": Context.SIZE // 8,
            "arguments": argument_slots(self.signature),
            "results": result_offsets(self.result)[-1],
            "bases": 1 + 2 * arrays if arrays else 0,
            "objects": self.built,
            "overflow": 1,
            "kept": len(self.kept),
            "mxcsr": 1,
            "columns": self.columns,
        }
        return [
            f"define ptr @{self.name}(ptr %self, ptr %args, i64 %nargsf, ptr %names) nounwind noinline optnone {{",
            "start:",
            *(f"  %{name} = alloca [{max(1, size)} x i64], align 64" for name, size in sizes.items()),
            *(f"  store [{max(1, sizes[name])} x i64] zeroinitializer, ptr %{name}" for name in cleared),
        ]
