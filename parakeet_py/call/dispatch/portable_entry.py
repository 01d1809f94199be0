"""The portable entry: machine code called without a look at how Python lays its objects out.

An entry stub reads arguments in machine code, by the offsets of `object_layout`. Where an interpreter or a NumPy has
others, specializations are `PortableLoaded`: the dispatcher gets every call, forms its signature, and code of that
signature is called through ctypes. Arguments are read and results are made by what Python and NumPy offer everybody:
attributes of arrays, and two functions of NumPy's C interface, which make an array over given memory. A call takes some
tens of microseconds more than one by way of an entry stub; those for which it does not pay are left to Python, as ever
(`renting`).

A call holds the GIL, and lends it to other threads at polls. Functions that hand operations back to Python, or have
objects of Python in their results, need the layout inside of compiled code: Python runs them.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base import machine
from parakeet_py.base.errors import DeoptimizedError, UnsupportedError
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.compile import clocks_of, failures_of
from parakeet_py.call.compiled import Compiled
from parakeet_py.call.give_back import contents_kept, put_back, rerun_statuses
from parakeet_py.call.load import Loaded, read_source
from parakeet_py.call.specialization_cache import Native
from parakeet_py.hybrid.plan.host_memory import Payload, kept_block
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.entry.entry_kind import MISSED
from parakeet_py.llvm.entry.small_calls import SmallCalls
from parakeet_py.llvm.runtime import blas, error_state, loop_polls
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.llvm.runtime.native_runtime import runtime, support_code
from parakeet_py.signature import patches
from parakeet_py.signature.attribute_sources import RANDOM_STATE
from parakeet_py.signature.results import ResultLeaf, assemble, result_leaves, result_offsets
from parakeet_py.signature.specs import ArraySpec, LeafSpec, ObjectSpec, argument_slots, leaf_values, leaves, spec_of
from parakeet_py.typed_ir.numerics import computes

_WRITEABLE: Final = 0x0400  # NPY_ARRAY_WRITEABLE
_FLAGS: Final = {"divide": error_state.DIVIDE, "over": error_state.OVERFLOW, "invalid": error_state.INVALID}


class Dispatcher(Protocol):
    """What the code of a function asks of what calls it."""

    checked: bool

    def config(self) -> settings.Config: ...


class PortableGate:
    """What stands for an entry stub: calls do not begin here, but the dispatcher knows what there is."""

    address: Final = 0
    left: Final = 0

    def __init__(self, params: int, reads: Sequence[patches.Read]) -> None:
        self.versions = patches.Versions(reads)
        self.flags = error_state.Record()
        self.small = SmallCalls(params)

    def follow(self, target: Any) -> None:
        """Nothing is linked: the dispatcher goes from one to the next."""

    def leave_to(self, slow: Any) -> None:
        """Nor is this."""


class PortableLoaded(Loaded):
    """A specialization whose code the dispatcher calls.

    Raises
    ------
    UnsupportedError
        Compiled code would have to read or make objects of Python.
    """

    __slots__ = (
        "_code",
        "_compiled",
        "_dispatcher",
        "_entry",
        "_free_all",
        "_held",
        "_hidden",
        "_offsets",
        "_recursive",
        "_rerun",
        "_results",
        "_slots",
        "_specs",
        "_warns",
    )

    gate: Any

    def __init__(self, dispatcher: Dispatcher, compiled: Compiled) -> None:
        made, config = compiled.specialization, compiled.config
        objects = any(leaf.kind == "object" for leaf in result_leaves(made.result))
        if made.opaque_sites or made.guessed or made.assigns or objects or dispatcher.checked:
            what = "objects of Python" if objects or made.assigns else "operations handed back to Python"
            text = f"{compiled.function.__qualname__} has {what}, for which compiled code has to know their layout"
            raise UnsupportedError(text, compiled.untyped.filename)
        start = time.perf_counter()
        self.function, self.state, self.from_disk, self.times = compiled.function, None, False, compiled.times
        self.give_up = lambda reason: None
        code = generate(
            compiled.imp,
            compiler.host(),
            contract=config.contract,
            fastmath=config.fastmath,
            clocks=clocks_of(compiled),
        )
        object_bytes = compiler.compile_divided(
            code.text, min(config.thread_count, settings.available_cpus()), code.library
        )
        self.times["llvm"] = time.perf_counter() - start
        self.native = Native(
            object_bytes, compiled.signature, made.result, failures_of(compiled), code.symbols, compiled.passes.guarded
        )
        for module, _ in made.module_reads:
            importlib.import_module(module)
        self.gate = PortableGate(len(compiled.signature.params), sorted(made.module_reads))
        native = runtime()
        _set_poll()
        found = {name: blas.resolve(name) for name in code.symbols if name not in native.symbols}
        external = {name: address for name, address in found.items() if address is not None}
        self._code = native.load(object_bytes, [code.entry], external)
        self._entry = self._code[code.entry]
        self._free_all = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(native.symbols["pk_free_all"])
        self._dispatcher, self._compiled = dispatcher, compiled
        self._hidden = compiled.signature.hidden
        self._rerun = frozenset(rerun_statuses(compiled))
        self._specs = [(leaf.spec, leaf.slot) for leaf in leaves(compiled.signature)]
        self._slots = argument_slots(compiled.signature)
        self._results, self._offsets = result_leaves(made.result), result_offsets(made.result)
        self._recursive = not all(one.library for one in compiled.imp.procedures)
        draws = any(one.source[-1] == RANDOM_STATE for one in compiled.signature.hidden)
        self._held = loop_polls.KEPT if draws else loop_polls.LENT
        self._warns = error_state.HAS_FLAGS and computes(compiled.typed) and not made.stored_params

    def taking(self, missed: Any) -> Any:
        """A callable that takes the calls of this code, and gives others to `missed`."""

        @hidden
        def take(*normal: Any) -> Any:
            done = self.run(normal)
            return missed(*normal) if done is MISSED else done

        return take

    @hidden
    def run(self, normal: tuple[Any, ...]) -> Any:
        """A call of this signature, in positional form; `MISSED` if Python, or other code, has to run it."""
        hidden = [read_source(self.function, one.source, normal) for one in self._hidden]
        if any(
            isinstance(one.spec, ArraySpec) and spec_of(value) != one.spec
            for one, value in zip(self._hidden, hidden, strict=True)
        ):
            return MISSED  # another thread has replaced it since the signature was formed
        values = leaf_values(self._compiled.signature, [*normal, *hidden])
        arguments = np.zeros(self._slots + 1, np.int64)
        for (spec, slot), value in zip(self._specs, values, strict=True):
            _fill(arguments, slot, spec, value)
        kept = contents_kept(self._compiled, values)
        results = np.zeros(self._offsets[-1] + 1, np.int64)
        memory = np.zeros(Context.SIZE + 64, np.uint8)
        first = -memory.ctypes.data % 64
        context = memory[first : first + Context.SIZE]
        self._begin(context)
        at = context.ctypes.data
        try:
            status = _enter()(self._entry, at, arguments.ctypes.data, results.ctypes.data)
            if status in self._rerun:
                put_back(kept)
                return MISSED
            if status:
                raise self._failure(status, context[Context.ARGUMENTS :].view(np.int64)[:6].tolist())
            made = _Made(self._results, self._offsets, results, values, at).leaves()
        finally:
            self._free_all(at)
        result = assemble(self.native.result, made, values)
        if self._warns:
            self._warn(int(context[Context.FLAGS : Context.FLAGS + 4].view(np.int32)[0]), normal)
        return result

    def _begin(self, context: np.ndarray[Any, Any]) -> None:
        """What a call is told of where it runs."""
        context[Context.MAX_THREADS : Context.MAX_THREADS + 4].view(np.int32)[0] = (
            self._dispatcher.config().thread_count
        )
        words = context.view(np.int64)
        words[Context.THREAD // 8] = self._held
        if self._recursive:
            words[Context.LEVELS // 8] = sys.getrecursionlimit()
            words[Context.FLOOR // 8] = _stack_floor()() or 0

    def _failure(self, status: int, words: Sequence[int]) -> BaseException:
        error = self.raise_failure(status, *words)
        assert isinstance(error, BaseException)
        if isinstance(error, DeoptimizedError):
            self.give_up(str(error))
        return error

    def _warn(self, flags: int, normal: tuple[Any, ...]) -> None:
        """Let NumPy say what a call has met, as `gate.flags_set` does (see `error_state`)."""
        if not flags:
            return
        state: Any = np.geterr()
        warned = sum(flag for kind, flag in _FLAGS.items() if state[kind] == "warn")
        here = flags & warned
        if not here:
            if not warned:
                return
            here = error_state.OTHER
        record, filters = self.gate.flags, warnings.filters
        now = id(filters), len(filters), id(filters[0]) if filters else None
        if (record.filters, record.count, record.first) == now and not here & ~record.told:
            return
        record.present = here
        said = self.warn(*normal)
        if said is not None:
            raise said


def _fill(slots: np.ndarray[Any, Any], slot: int, spec: LeafSpec, value: Any) -> None:
    """The slots of a leaf argument: array [object, data, extents, strides], scalar, object."""
    match spec:
        case ArraySpec(rank=rank):
            slots[slot] = id(value)
            slots[slot + 1] = value.__array_interface__["data"][0]
            slots[slot + 2 : slot + 2 + rank] = value.shape
            slots[slot + 2 + rank : slot + 2 + 2 * rank] = value.strides
        case ObjectSpec():
            slots[slot] = id(value)
        case _:
            item = np.asarray(value).reshape(1)
            item = item.view(np.int64) if item.dtype.kind in "mM" else item.astype(spec.dtype)
            slots.view(np.uint8)[8 * slot : 8 * slot + item.nbytes] = item.view(np.uint8)


class _Made:
    """The leaves of a result, from its slots: array [object, base, block, data, extents, strides], or scalar.

    Arrays that are arguments are these; views of arguments have them as their base. What a call has made is copied out
    of its memory if it lies there alone and without gaps, so that the array owns what it has, as NumPy's would; arrays
    that share memory take it over together.
    """

    def __init__(
        self,
        results: Sequence[ResultLeaf],
        offsets: Sequence[int],
        slots: np.ndarray[Any, Any],
        given: Sequence[Any],
        context: int,
    ) -> None:
        self.results, self.offsets, self.slots, self.context = results, offsets, slots.tolist(), context
        self.bytes = slots.view(np.uint8)
        self.given = {id(value): value for value in given if isinstance(value, np.ndarray)}
        self.blocks: dict[int, int] = {}  # how many arrays are in each
        for leaf, at in zip(results, offsets, strict=False):
            if leaf.kind == "array" and (block := self.slots[at + 2]):
                self.blocks[block] = self.blocks.get(block, 0) + 1
        self.taken: dict[int, Payload] = {}

    def leaves(self) -> list[Any]:
        return [
            self.array(leaf, at) if leaf.kind == "array" else self.scalar(leaf, at)
            for leaf, at in zip(self.results, self.offsets, strict=False)
        ]

    def scalar(self, leaf: ResultLeaf, at: int) -> Any:
        return np.frombuffer(self.bytes[8 * at : 8 * at + 16].tobytes(), leaf.dtype, 1)[0]

    def array(self, leaf: ResultLeaf, at: int) -> Any:
        same, of, block, data = self.slots[at : at + 4]
        if same in self.given:
            return self.given[same]
        rank = leaf.rank
        shape, strides = self.slots[at + 4 : at + 4 + rank], self.slots[at + 4 + rank : at + 4 + 2 * rank]
        base = self.given.get(of)
        if base is not None:
            return _array_at(leaf.dtype, data, shape, strides, base, base.flags.writeable)
        if 0 in shape and not block:  # nothing has been allocated for it
            return np.empty(shape, leaf.dtype)
        if self.blocks.get(block, 1) == 1:
            made = _array_at(leaf.dtype, data, shape, strides, None, True).copy(order="K")
            if made.size == 0 or list(made.strides) == strides or not block:
                return made
        if block not in self.taken:
            self.taken[block] = kept_block(block, self.context)
        return _array_at(leaf.dtype, data, shape, strides, self.taken[block], True)


def _array_at(
    dtype: str, data: int, shape: Sequence[int], strides: Sequence[int], base: object, writeable: bool
) -> np.ndarray[Any, Any]:
    """An array over memory that `base` holds."""
    new, set_base = _numpy()
    rank = len(shape)
    extents = (ctypes.c_ssize_t * (2 * rank + 1))(*shape, *strides)
    kind: Any = np.dtype(dtype)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kind))  # the function takes it over
    at = ctypes.addressof(extents)
    made: np.ndarray[Any, Any] = new(np.ndarray, kind, rank, at, at + 8 * rank, data, _WRITEABLE * writeable, None)
    if base is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(base))  # this one, too
        set_base(made, base)
    return made


@lru_cache(maxsize=1)
def _numpy() -> tuple[Any, Any]:
    """`PyArray_NewFromDescr` and `PyArray_SetBaseObject`, of NumPy's C interface."""
    known = boxing.symbols()
    word, some = ctypes.c_void_p, ctypes.py_object
    new = ctypes.PYFUNCTYPE(some, some, some, ctypes.c_int, word, word, word, ctypes.c_int, word)
    return new(known["gate.PyArray_NewFromDescr"]), ctypes.PYFUNCTYPE(ctypes.c_int, some, some)(
        known["gate.PyArray_SetBaseObject"]
    )


@lru_cache(maxsize=1)
def _stack_floor() -> Any:
    return ctypes.PYFUNCTYPE(ctypes.c_void_p)(runtime().symbols["pk_stack_floor"])


@lru_cache(maxsize=1)
def _set_poll() -> None:
    """Let long loops look at signals."""
    symbols = boxing.symbols()
    names = (
        "PyGILState_GetThisThreadState PyEval_RestoreThread PyEval_SaveThread PyErr_CheckSignals PyErr_Fetch "
        "PyErr_NormalizeException PyException_SetTraceback Py_DecRef"
    )
    known = {f"gate.{name}": symbols[f"gate.{name}"] for name in names.split()}
    code = support_code("polls alone", (loop_polls.SUPPORT,), known, ["gate.poll"], prefix="gate.")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime().symbols["pk_set_poll"])(code["gate.poll"])


_ENTER: Final = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i32 @enter(ptr %entry, ptr %ctx, ptr %arguments, ptr %results) {{
  %register = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %register)
  %before = load i32, ptr %register
  %clear = and i32 %before, {~error_state.ALL_FLAGS}
  store i32 %clear, ptr %register
  call void @llvm.x86.sse.ldmxcsr(ptr %register)
  %status = call i32 %entry(ptr %ctx, ptr %arguments, ptr %results)
  call void @llvm.x86.sse.stmxcsr(ptr %register)
  %after = load i32, ptr %register
  %own = and i32 %after, {error_state.ALL_FLAGS}
  %place = getelementptr i8, ptr %ctx, i64 {Context.FLAGS}
  %others = load i32, ptr %place
  %flags = or i32 %own, %others
  store i32 %flags, ptr %place
  ret i32 %status
}}
"""
"""Calls an entry, and leaves the floating-point flags that have been set meanwhile in its context."""


@lru_cache(maxsize=1)
def _enter() -> Any:
    """Calls an entry, which is given by its address."""
    kind = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    if machine.HAS_FLAGS:
        code = runtime().load(compiler.compile_ir(_ENTER), ["enter"])
        _kept.append(code)
        return kind(code["enter"])
    plain = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
    return lambda entry, *rest: plain(entry)(*rest)


_kept: list[object] = []
