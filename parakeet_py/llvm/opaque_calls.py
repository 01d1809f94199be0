"""Operations handed back to Python, at run time: what compiled code calls when it meets one.

    i32 pk_opaque(ptr ctx, i64 site, ptr arguments, ptr results)

Compiled code leaves the operands in the slots of results ([object, base, block, data, dims, strides] for an array) and
takes the results from the slots of arguments ([object, data, dims, strides]). This is a ctypes callback, which takes
the GIL by itself. It makes Python objects of the operands, does the operation, compares the result's type with the one
the code was compiled for, and keeps the result alive until the call is over.

The context's STATE is the specialization's `OpaqueCalls` when a call begins. The first operation of the call replaces
it by a `CallState`, a new reference that the gate drops at the end.

Memory that compiled code has made for itself is given to Python for good (`gate.lend_array`): a NumPy array owns the
block from then on, so Python may keep it, change it and return it. The block's count is made so large that compiled
code never frees it, and the call state keeps the array alive as long as compiled code runs.

When a result has another type than expected, compiled code cannot go on. If all that has happened so far can be told
again, the call is run by the evaluator, which does not repeat the operations but takes their results from a log. That
is so when compiled code has only stored into memory of its own, and no array was given to anybody who might have
changed it. Otherwise the call ends in `OpaqueResultChanged`. In both cases the next compilation knows better.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.errors import OpaqueResultChanged
from parakeet_py.frontend.evaluate import CHANGED, Key, contents, stand_in
from parakeet_py.imp import ir as imp
from parakeet_py.imp.effects import stores_only_into_its_own
from parakeet_py.llvm.context import OPAQUE_AGAIN, OPAQUE_RAISED, Context
from parakeet_py.native import Knowledge, present
from parakeet_py.signature import ArraySpec, ObjectSpec, ScalarSpec, Spec, TupleSpec
from parakeet_py.typed_ir import opaque
from parakeet_py.typed_ir.opaque import ContainerT, OpaqueSite, Template
from parakeet_py.typed_ir.types import Array, Object, Scalar, Type, itemsize

if TYPE_CHECKING:
    from parakeet_py.compile import Compiled

MAX_LOG = 64  # operations of one call that can be told again
_NOT_EVALUATED = ("same", "truth")  # no operations of the evaluator


class OpaqueCalls:
    """What the operations of one specialization need at run time."""

    __slots__ = ("forget", "fresh", "function", "hidden", "knowledge", "observed", "sites", "types")

    def __init__(self, compiled: Compiled, knowledge: Knowledge) -> None:
        self.function: FunctionType = compiled.function
        self.knowledge = knowledge
        self.observed = knowledge.observed.setdefault(compiled.signature.params, {})
        self.sites: tuple[OpaqueSite, ...] = compiled.specialization.opaque_sites
        self.types: dict[int, tuple[Type, ...]] = {}
        for statement in imp.walk(compiled.imp.body):
            if isinstance(statement, imp.Opaque):
                self.types[statement.site] = tuple(argument.type for argument in statement.args)
        self.hidden = compiled.read_after_opaque
        self.fresh = stores_only_into_its_own(compiled.imp)
        self.forget: Callable[[], None] = lambda: None

    def learn(self, key: Key, result: Any) -> None:
        """An operation has given a result that this specialization is not made for."""
        opaque.Observations(self.observed)(key, result)
        self.forget()


class CallState:
    """What one call keeps: the objects it has seen, and a log of what it has done."""

    __slots__ = ("calls", "exception", "globals", "kept", "log", "safe")

    def __init__(self, calls: OpaqueCalls) -> None:
        self.calls = calls
        self.kept: dict[int, Any] = {}
        self.exception: BaseException | None = None
        self.log: list[tuple[Key, Any]] = []
        self.safe = calls.fresh
        self.globals = [present(calls.function, source) for source in calls.hidden]

    def keep(self, value: Any) -> None:
        self.kept[id(value)] = value

    def perform(self, ctx: int, number: int, arguments: int, results: int) -> int:
        """One operation; a status other than 0 ends the call."""
        calls = self.calls
        site, types = calls.sites[number], calls.types[number]
        leaves = self.take(ctx, arguments, types)
        lists: list[Any] = []
        operands = [_rebuild(template, leaves, lists) for template in site.operands]
        before = [contents(value) for value in lists]
        if site.operation not in _NOT_EVALUATED:
            self.safe = self.safe and site.regular and len(self.log) < MAX_LOG and _is_safe(site, operands, types)
        result = opaque.perform(site.operation, operands, site.keywords)
        if site.result is None:
            result = None
        if site.operation not in _NOT_EVALUATED:
            self.log.append((site.key, result))
        if any(contents(value) != had for value, had in zip(lists, before, strict=True)):
            calls.learn(site.key, CHANGED)
            raise OpaqueResultChanged(f"{_where(site)}: {site.text} has changed a list or dict it was given")
        if site.result is not None:
            found = opaque.observed_spec(result)
            if not opaque.accepts(site.result, found):
                calls.learn(site.key, result)
                return self.leave(f"{site.text} has given {_kind(result)}, not what it gave before", site)
            self.put(results, site.result, result)
        for source, value in zip(calls.hidden, self.globals, strict=True):
            if present(calls.function, source) is not value:
                calls.learn(site.key, CHANGED)
                raise OpaqueResultChanged(f"{_where(site)}: {site.text} has changed {source[-1]}, which is in use here")
        return 0

    def leave(self, what: str, site: OpaqueSite) -> int:
        """The call cannot go on in compiled code."""
        if not self.safe:
            hint = "the call is abandoned in the middle; the next ones will be right"
            raise OpaqueResultChanged(f"{_where(site)}: {what} ({hint})")
        _pending.log = (self.calls, self.log)
        return OPAQUE_AGAIN

    # ---- operands and results ------------------------------------------------------------------------------------

    def take(self, ctx: int, slots: int, types: Sequence[Type]) -> list[Any]:
        """The Python objects of the operands."""
        leaves: list[Any] = []
        for kind in types:
            match kind:
                case Array(dtype, rank):
                    leaves.append(self.array(ctx, slots, dtype, rank))
                    slots += 8 * (4 + 2 * rank)
                case Scalar(dtype, python):
                    leaves.append(_scalar(slots, dtype, python))
                    slots += 16 if dtype == "complex128" else 8
                case Object():
                    leaves.append(_object(_word(slots)))
                    slots += 8
        return leaves

    def array(self, ctx: int, slots: int, dtype: str, rank: int) -> Any:
        same = _word(slots)
        if same:
            return _object(same)
        array = _lend()(ctx, slots, rank, id(np.dtype(dtype)))
        if not _word(slots + 8):
            self.keep(array if array.base is None else array.base)  # the owner of the block
        return array

    def put(self, slots: int, spec: Spec, value: Any) -> int:
        """Write the leaves of a result; gives the slot behind them."""
        match spec:
            case ScalarSpec(dtype):
                if type(value) is float:
                    ctypes.c_double.from_address(slots).value = value
                else:
                    bits = np.asarray(value, dtype).tobytes()
                    ctypes.memmove(slots, bits, len(bits))
                return slots + (16 if dtype == "complex128" else 8)
            case ArraySpec(rank=rank):
                self.keep(value)
                data = value.__array_interface__["data"][0]
                struct_ = struct.pack(f"={2 + 2 * rank}q", id(value), data, *value.shape, *value.strides)
                ctypes.memmove(slots, struct_, len(struct_))
                return slots + len(struct_)
            case ObjectSpec():
                self.keep(value)
                ctypes.c_int64.from_address(slots).value = id(value)
                return slots + 8
            case TupleSpec(items, kind):
                parts = (value.start, value.stop, value.step) if kind == "slice" else value
                for item, part in zip(items, parts, strict=True):
                    slots = self.put(slots, item, part)
        return slots


def _rebuild(template: Template, leaves: Sequence[Any], lists: list[Any]) -> Any:
    """The object of a template; new lists and dicts are listed, to see whether they are changed."""
    value = opaque.rebuild(template, leaves)
    if isinstance(template, ContainerT):
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if type(part) in (list, dict):
                lists.append(part)
            if type(part) in (list, tuple):
                waiting.extend(part)
            elif type(part) is dict:
                waiting.extend(part.values())
    return value


def _word(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _object(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


def _scalar(address: int, dtype: str, python: bool) -> Any:
    if dtype == "float64" and python:
        return ctypes.c_double.from_address(address).value
    if dtype == "int64" and python:
        return ctypes.c_int64.from_address(address).value
    value = np.frombuffer(ctypes.string_at(address, itemsize(dtype)), dtype)[0]
    return value.item() if python else value


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.ndim} axes of {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"


def _where(site: OpaqueSite) -> str:
    return f"{site.trace[0][0]}:{site.trace[0][2]}" if site.trace else f"line {site.line}"


# ---- what can be told again ------------------------------------------------------------------------------------------


def _is_safe(site: OpaqueSite, operands: Sequence[Any], types: Sequence[Type]) -> bool:
    """Can no array have been changed by the operation?"""
    if not any(isinstance(kind, Array | Object) for kind in types):
        return True
    if not any(_holds_array(operand) for operand in operands):
        return True
    if site.operation != "call":
        return site.operation != "set_item" and not site.operation.startswith("inplace")
    return opaque.is_pure(operands[0], len(operands) - 1, site.keywords)


def _holds_array(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_array, value))
    if isinstance(value, dict):
        return any(map(_holds_array, value.values()))
    if isinstance(getattr(value, "__self__", None), np.ndarray):
        return True
    return isinstance(value, np.ndarray)


class _Pending(threading.local):
    log: tuple[OpaqueCalls, list[tuple[Key, Any]]] | None = None


_pending = _Pending()


def take_log(knowledge: Knowledge) -> list[tuple[Key, Any]] | None:
    """What has happened in the call of this thread that compiled code has just left; None if there is no such call."""
    found, _pending.log = _pending.log, None
    return found[1] if found is not None and found[0].knowledge is knowledge else None


# ---- the way in ------------------------------------------------------------------------------------------------------


def _enter(ctx: int, number: int, arguments: int | None, results: int | None) -> int:
    word = ctypes.c_void_p.from_address(ctx + Context.STATE)
    state = _object(word.value or 0)
    if type(state) is OpaqueCalls:
        state = CallState(state)
        _own(state)
        word.value = id(state)
    status = OPAQUE_RAISED
    try:
        status = state.perform(ctx, number, arguments or 0, results or 0)
    except BaseException as error:
        error.__traceback__ = _trimmed(error.__traceback__, state.calls.sites[number])
        state.exception = error
    if status:
        ctypes.c_int64.from_address(ctx + Context.STATUS).value = status
    return status


def _own(state: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(state))


def _trimmed(traceback: TracebackType | None, site: OpaqueSite) -> TracebackType | None:
    """The traceback with the functions that were compiled in the place of this file's frames."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (__file__, opaque.__file__):
        traceback = traceback.tb_next
    for filename, name, line in reversed(site.trace):
        traceback = TracebackType(traceback, stand_in(filename, name), -1, line)
    return traceback


_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(_enter)


def address() -> int:
    """The address of `pk_opaque`."""
    return ctypes.cast(_callback, ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def _lend() -> Any:
    """`gate.lend_array(ctx, slots, rank, dtype)` as a function that gives the array."""
    from parakeet_py.llvm import boxing

    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return prototype(boxing.support()["gate.lend_array"])
