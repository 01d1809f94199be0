"""Operations handed back to Python, at run time: what compiled code calls when it meets one.

    i32 pk_opaque(ptr ctx, i64 site, ptr arguments, ptr results)

Compiled code leaves the operands in the slots of results ([object, base, block, data, dims, strides] for an array) and
takes the results from the slots of arguments ([object, data, dims, strides]). This is `gate.hand_back`, which takes the
GIL and calls `_enter`; of checked code and calls that no gate has made, a ctypes callback. It makes Python objects of
the operands, does the operation, compares the result's type with the one the code was compiled for, and keeps the
result alive until the call is over.

The context's STATE is the specialization's `OpaqueCalls` when a call begins. The first operation of the call replaces
it by a `CallState`, a new reference that the gate drops at the end.

Memory that compiled code has made for itself is given to Python for good (`gate.lend_array`): a NumPy array owns the
block from then on, so Python may keep it, change it and return it. The block's count is made so large that compiled
code never frees it, and the call state keeps the array alive as long as compiled code runs.

When a result has another type than expected, compiled code cannot go on. If all that has happened so far can be
replayed, the call is run by the evaluator, which does not repeat the operations but takes their results from a log.
That is so when compiled code has only stored into memory of its own until then, and no array was given to a callee that
might have changed it. Otherwise compiled code leaves: it puts together what its variables hold, and Python
does the rest of the call (`typed_ir/specialize/opaque/frame_states.py`). The next compilation knows better.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from types import FunctionType, NoneType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import is_own, placed
from parakeet_py.base.types import Array, Object, Scalar, Type
from parakeet_py.call.give_back import do_the_rest, sites_without_exit, watched_now
from parakeet_py.call.handed_back_plans import C_TYPES, FLAGS, LOGGED, MAX_LOG, Perform, Plan, scalar_at
from parakeet_py.call.load import Knowledge
from parakeet_py.frontend.desugar import managers
from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key, Raised, differ
from parakeet_py.imp import ir as imp
from parakeet_py.imp.schedule.effects import sites_after_stores, stores_only_into_its_own
from parakeet_py.llvm.codegen.arrays import slots_out
from parakeet_py.llvm.runtime.call_context import OPAQUE_AGAIN, OPAQUE_RAISED, OPAQUE_REST, Context
from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.llvm.runtime.watched_lists import WatchedLists
from parakeet_py.signature.specs import (
    ArraySpec,
    ObjectSpec,
    RecordsSpec,
    ScalarSpec,
    Source,
    Spec,
    TimesSpec,
    TupleSpec,
    bounds_of,
)
from parakeet_py.typed_ir.specialize.observed import Observations, accepts, observed_spec
from parakeet_py.typed_ir.specialize.opaque.sites import (
    CONTINUE,
    EXIT,
    OpaqueSite,
    caught_by,
    descriptions,
    raises_again,
)

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled

_SMALL = (bool, int, float, complex, str, NoneType)


@record
class HandedBack:
    """What compiled code hands back to Python: all that is known of it when the code has been made.

    Attributes
    ----------
    sites : number, operation and types of the operands of each place that is left
    hidden : hidden arguments that no operation may replace, each with whether that holds for its items, too
    fresh : does compiled code store only into memory of its own?
    guessed : are there operations that are taken to be out of reach?
    late : the numbers of places that may come after a store into other memory which is not undone
    must_replay : is a call always replayed when it is given up, at some place at least?
    """

    sites: tuple[tuple[int, OpaqueSite, tuple[Type, ...]], ...]
    hidden: tuple[tuple[Source, bool], ...]
    fresh: bool
    guessed: bool
    late: tuple[int, ...] = ()
    must_replay: bool = False

    @classmethod
    def by(cls, compiled: Compiled, undone: bool = False) -> HandedBack:
        """By a specialization; `undone`: its stores into arguments, when it gives a call up."""
        sites = compiled.specialization.opaque_sites
        statements = [one for one in imp.walk(compiled.imp.body) if isinstance(one, imp.Opaque)]
        left = {one.site: (one.site, sites[one.site], tuple(arg.type for arg in one.args)) for one in statements}
        fresh = stores_only_into_its_own(compiled.imp)
        guessed = bool(compiled.specialization.guessed)
        late = () if undone else tuple(sorted(sites_after_stores(compiled.imp)))
        must_replay = undone or bool(sites_without_exit(compiled))
        return cls(tuple(left.values()), compiled.read_after_opaque, fresh, guessed, late, must_replay)

    @property
    def opaque_calls(self) -> tuple[str, ...]:
        """The operations, as text: "name (line n): reason"."""
        return descriptions(site for _, site, _ in self.sites)


class OpaqueCalls:
    """What the operations of one specialization need at run time."""

    __slots__ = (
        "forget",
        "fresh",
        "function",
        "handed_back",
        "hidden",
        "knowledge",
        "observed",
        "performers",
        "plans",
    )

    def __init__(
        self, function: FunctionType, params: tuple[Spec, ...], handed_back: HandedBack, knowledge: Knowledge
    ) -> None:
        self.function = function
        self.knowledge = knowledge
        self.observed = knowledge.observed.setdefault(params, {})
        self.handed_back = handed_back
        self.plans = {
            number: Plan(site, types, number in handed_back.late) for number, site, types in handed_back.sites
        }
        self.performers: dict[int, Perform] = {}
        self.hidden = handed_back.hidden
        self.fresh = handed_back.fresh
        self.forget: Callable[[], None] = lambda: None

    def addresses(self, checked: bool) -> dict[str, int]:
        """The addresses of the functions that compiled code, or checked code, calls."""
        return _addresses(checked)

    def tell_again(self, state: CallState | None) -> bool:
        """May Python do a call that compiled code gives up, without what has been handed back already?"""
        if not self.fresh or (state is not None and not state.safe):
            return False
        _pending.log = (self, [] if state is None else state.log)
        return True

    def raised(self, state: CallState | None, error: BaseException) -> None:
        """A call ends in an exception that Python does not see where it comes from: an interrupt, a lack of memory."""
        for manager in reversed([] if state is None else state.managers):
            with suppress(BaseException):
                managers.left_by(manager, error)

    def learn(self, key: Key, result: Any) -> None:
        """An operation has given a result that this specialization is not made for."""
        Observations(self.observed)(key, result)
        self.forget()


class CallState:
    """What one call keeps: the objects compiled code holds references to, and a log of what it has done."""

    __slots__ = (
        "calls",
        "changed",
        "exception",
        "globals",
        "kept",
        "log",
        "logged",
        "managers",
        "operands",
        "pending",
        "safe",
        "watched",
    )

    def __init__(self, calls: OpaqueCalls) -> None:
        self.calls = calls
        self.kept: dict[int, list[Any]] = {}  # by `id`: the object and how often it is held
        self.exception: BaseException | None = None
        self.log: list[tuple[Key, Any]] = []
        self.logged = 0  # bytes of arrays in the log
        self.safe = True  # can the call be replayed by the log?
        self.globals = self.now()
        self.changed = False  # has an operation changed one of them, or a list that it was given?
        self.operands: Sequence[Any] = ()  # of an operation that is given lists
        self.watched: WatchedLists | None = None  # which no operation may change
        self.managers: list[Any] = []  # of `with` statements, that have been entered
        self.pending: Callable[[], Any] | None = None  # what the operation gives at which compiled code is left

    def keep(self, value: Any) -> None:
        entry = self.kept.setdefault(id(value), [value, 0])
        entry[1] += 1

    def count(self, address: int, delta: int) -> None:
        """Compiled code takes or drops a reference to an object (which is another's to keep if it is not here)."""
        entry = self.kept.get(address)
        if entry is not None:
            entry[1] += delta
            if entry[1] <= 0:
                del self.kept[address]

    def prepare(self, number: int) -> Perform:
        """What performs an operation."""
        plan = self.calls.plans[number]
        found = self.calls.performers[number] = plan.performer(self.calls.function, bool(self.calls.hidden))
        return found

    def interrupted(self, number: int, error: BaseException, ctx: int, arguments: int, results: int) -> int:
        """A handler of a signal has raised before an operation. Python comes to signals behind calls of C functions, so
        the operation is done (a lock is let go), but managers are not entered."""
        plan = self.calls.plans[number]
        perform = self.calls.performers.get(number) or self.prepare(number)
        if plan.site.operation == CONTINUE:
            self.pending = partial(_raise, error)
            return perform(self, ctx, arguments, results)
        if plan.called is managers.entered:
            raise error
        logged = len(self.log)
        status = perform(self, ctx, arguments, results)
        if status == 0 and self.pending is not None:  # compiled code is left behind the operation
            self.pending = partial(_raise, error)
        elif status == 0:
            del self.log[logged:]
            if not (plan.site.catches and self.catch(plan, results, error)):
                raise error
        elif len(self.log) > logged:
            self.log[logged:] = [(plan.site.key, Raised(error))]
        else:
            raise error
        return status

    def catch(self, plan: Plan, results: int, error: BaseException) -> bool:
        """Let compiled code go on with its handler, if it catches this exception of an operation."""
        handler = caught_by(plan.site, error)
        if handler:
            ctypes.memset(results, 0, 8 * plan.slots)
            ctypes.c_int64.from_address(results).value = handler
            if self.safe and plan.evaluated:
                self.note(plan.site.key, Raised(error))
            if plan.site.left:
                self.safe = False
                self.leave(plan, results + 8, partial(_raise, error))
            elif self.has_changed(plan):
                self.leave(plan, results + 8, partial(_raise, error))
        return handler != 0

    def settle(self, plan: Plan, results: int, result: Any) -> int:
        """Write a result, if it is as compiled code expects it."""
        assert plan.result is not None
        if type(result) is not plan.accepted and not (
            plan.dtype is not None
            and type(result) is np.ndarray
            and result.dtype is plan.dtype
            and result.ndim == plan.result.rank  # type: ignore[union-attr]
            and result.flags.num & FLAGS == plan.flags
        ):
            found = observed_spec(result)
            if not accepts(plan.result, found):
                self.calls.learn(plan.site.key, result)
                return self.leave(plan, results, lambda: result)
        self.put(results, plan.result, result)
        return 0

    def now(self) -> list[list[Any]]:
        """The hidden arguments as they are, with the items that compiled code reads."""
        return watched_now(self.calls.function, self.calls.hidden)

    def look_for_changes(self, plan: Plan, results: int, result: Any) -> int:
        """Compiled code cannot go on if Python code has bound anew, or changed, what it uses."""
        return self.leave(plan, results, lambda: result) if self.has_changed(plan) else 0

    def has_changed(self, plan: Plan) -> bool:
        self.changed = self.changed or any(map(differ, self.now(), self.globals))
        if self.changed:
            self.calls.learn(plan.site.key, CHANGED)
            self.safe = False  # operations before this one have seen something else
        return self.changed

    def note(self, key: Key, result: Any) -> None:
        """Log an operation, as long as that costs little memory."""
        if isinstance(result, np.ndarray):
            self.logged += result.nbytes
        else:
            self.logged += LOGGED if type(result) in _SMALL or isinstance(result, np.generic) else MAX_LOG // 8
        self.log.append((key, result))
        if self.logged > MAX_LOG:
            self.forget_log()

    def forget_log(self) -> None:
        """The call cannot be replayed from here on, if there is another way to go on."""
        if self.calls.handed_back.must_replay:
            return
        self.safe = False
        self.log.clear()

    def leave(self, plan: Plan, results: int, pending: Callable[[], Any]) -> int:
        """Compiled code cannot go on behind an operation: Python replays the call, or does the rest of it when it has
        been given the state."""
        if self.safe:
            _pending.log = (self.calls, self.log)
            return OPAQUE_AGAIN
        assert plan.site.exits, plan.site.text
        self.pending = pending
        ctypes.memset(results - 8, 0, 8 * plan.slots)
        ctypes.c_int64.from_address(results - 8).value = EXIT
        return 0

    def go_on(self, plan: Plan, ctx: int, arguments: int) -> int:
        """Python does the rest of the call, with what the variables hold."""
        leaves = self.take(ctx, arguments, plan.types)
        if plan.site.interrupted:
            error: BaseException = _object_at(ctx + Context.ARGUMENTS).value
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(error))  # that of the context
            self.pending = partial(_raise, error)
        rest = partial(do_the_rest, self.calls.function, plan.site, leaves, self.pending, self.operands)
        _pending.log = (self.calls, rest)
        return OPAQUE_REST

    # ---- operands and results ------------------------------------------------------------------------------------

    def take(self, ctx: int, slots: int, types: Sequence[Type]) -> list[Any]:
        """The Python objects of the operands."""
        leaves: list[Any] = []
        for kind in types:
            match kind:
                case Array(dtype, rank):
                    leaves.append(self.array(ctx, slots, dtype, rank))
                case Scalar(dtype, python):
                    leaves.append(scalar_at(slots, dtype, python))
                case Object():
                    leaves.append(_object_at(slots).value)
            slots += 8 * slots_out(kind)
        return leaves

    def array(self, ctx: int, slots: int, dtype: str, rank: int) -> Any:
        if _word(slots):
            return _object_at(slots).value
        array = _lend()(ctx, slots, rank, id(np.dtype(dtype)))
        if not _word(slots + 8):
            owner = array if array.base is None else array.base  # of the block
            self.kept.setdefault(id(owner), [owner, 1])
        return array

    def put(self, slots: int, spec: Spec, value: Any) -> int:
        """Write the leaves of a result; gives the slot behind them."""
        match spec:
            case ScalarSpec(dtype):
                if dtype in C_TYPES:
                    C_TYPES[dtype].from_address(slots).value = value
                else:
                    bits = np.asarray(value, dtype).tobytes()
                    ctypes.memmove(slots, bits, len(bits))
                return slots + (16 if dtype == "complex128" else 8)
            case ArraySpec(rank=rank):
                self.keep(value)
                at = id(value)
                fields = (ctypes.c_int64 * 2).from_address(slots)
                fields[0], fields[1] = at, _word(at + Layout.DATA)
                ctypes.memmove(slots + 16, _word(at + Layout.DIMS), 8 * rank)
                ctypes.memmove(slots + 16 + 8 * rank, _word(at + Layout.STRIDES), 8 * rank)
                return slots + 16 + 16 * rank
            case ObjectSpec():
                self.keep(value)
                ctypes.c_int64.from_address(slots).value = id(value)
                return slots + 8
            case TimesSpec(_, numbers):
                self.keep(value)
                ctypes.c_int64.from_address(slots).value = id(value)
                return self.put(slots + 8, numbers, value.view(np.int64))
            case RecordsSpec(_, _, names, columns):
                self.keep(value)
                ctypes.c_int64.from_address(slots).value = id(value)
                slots += 8
                for name, column in zip(names, columns, strict=True):
                    slots = self.put(slots, column, value[name])
                return slots
            case TupleSpec(items, kind):
                parts = bounds_of(value) if kind in ("slice", "range") else value
                for item, part in zip(items, parts, strict=True):
                    slots = self.put(slots, item, part)
        return slots


def _word(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


_object_at: Any = ctypes.py_object.from_address  # its value: the object that the word at an address points to


def _raise(error: BaseException) -> Any:
    raise error


# ---- what can be replayed --------------------------------------------------------------------------------------------


Log = list[tuple[Key, Any]]
DoRest = Callable[[Sequence[Any]], Any]  # does the rest of a call with these arguments


class _Pending(threading.local):
    log: tuple[OpaqueCalls, Log | DoRest] | None = None


_pending = _Pending()


def take_log(knowledge: Knowledge) -> Log | DoRest | None:
    """What has happened in the call of this thread that compiled code has just left, or what does the rest of it; None
    if there is no such call."""
    found, _pending.log = _pending.log, None
    return found[1] if found is not None and found[0].knowledge is knowledge else None


def has_log(knowledge: Knowledge) -> bool:
    """Is there such a call?"""
    found = _pending.log
    return found is not None and found[0].knowledge is knowledge


# ---- the way in ------------------------------------------------------------------------------------------------------


@hidden
def _enter(
    ctx: int, number: int, arguments: int | None, results: int | None, error: BaseException | None = None
) -> int:
    """Do an operation. If a handler of a signal has raised where this was called before, the operation has the number
    ~number, and the exception is the last argument."""
    state = _object_at(ctx + Context.STATE).value
    if type(state) is OpaqueCalls:
        state = CallState(state)
        _own(state)
        ctypes.c_void_p.from_address(ctx + Context.STATE).value = id(state)
    status = OPAQUE_RAISED
    perform: Perform | None = None
    try:
        if error is not None:
            number = ~number
            status = state.interrupted(number, error, ctx, arguments or 0, results or 0)
        else:
            perform = state.calls.performers.get(number) or state.prepare(number)
            status = perform(state, ctx, arguments or 0, results or 0)
    except BaseException as raised:
        raised.__traceback__ = _trimmed(raised.__traceback__, perform, state.calls.plans[number].site)
        state.exception = raised
    if status:
        ctypes.c_int64.from_address(ctx + Context.STATUS).value = status
    return status


def _own(state: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(state))


def _trimmed(traceback: TracebackType | None, perform: Any, site: OpaqueSite) -> TracebackType | None:
    """The traceback with the functions that were compiled in the place of the frames of what performs an operation,
    whose variables are none of the user's."""
    if perform is not None and traceback is not None and traceback.tb_frame.f_code is perform.__code__:
        for _ in site.trace or (None,):
            traceback = traceback and traceback.tb_next
    while traceback is not None and is_own(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback if raises_again(site) else placed(site.trace, traceback)


@hidden
def _enter_checked(ctx: int, number: int, arguments: int | None, results: int | None) -> int:
    from parakeet_py.llvm.safety import objects

    state = _object_at(ctx + Context.STATE).value
    calls = state if type(state) is OpaqueCalls else state.calls
    objects.use(_objects_in(arguments or 0, calls.plans[number].types))
    return _enter(ctx, number, arguments, results)


def _objects_in(slots: int, types: Sequence[Type]) -> Iterator[int]:
    """The addresses of objects among operands, and of those that own the memory of arrays."""
    for kind in types:
        if isinstance(kind, Array):
            yield from (_word(slots), _word(slots + 8))
        elif isinstance(kind, Object):
            yield _word(slots)
        slots += 8 * slots_out(kind)


_Enter = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_callbacks = _Enter(_enter), _Enter(_enter_checked)


def _hold(ctx: int, address: int, delta: int) -> None:
    state = _object_at(ctx + Context.STATE).value
    if type(state) is CallState:
        state.count(address, delta)


def _hold_checked(ctx: int, address: int, delta: int) -> None:
    from parakeet_py.llvm.safety import objects

    state = _object_at(ctx + Context.STATE).value
    objects.hold(state.kept if type(state) is CallState else {}, address, delta)


_Hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_hold_callbacks = _Hold(_hold), _Hold(_hold_checked)


@lru_cache(maxsize=2)
def _addresses(checked: bool) -> dict[str, int]:
    """The addresses of the functions that compiled code, or checked code, calls."""
    from parakeet_py.llvm.entry import boxing

    for hold, callback in zip(boxing.holds, _hold_callbacks, strict=True):
        hold.value = ctypes.cast(callback, ctypes.c_void_p).value
    boxing.enters[0] = id(_enter)
    boxing.enters[1] = ctypes.cast(_callbacks[False], ctypes.c_void_p).value
    entered = ctypes.cast(_callbacks[True], ctypes.c_void_p).value or 0
    if not checked:
        entered = boxing.support()["gate.hand_back"]
    return {"pk_opaque": entered, "pk_count": boxing.support(checked)["gate.count"]}


@lru_cache(maxsize=1)
def _lend() -> Any:
    """`gate.lend_array(ctx, slots, rank, dtype)` as a function that gives the array."""
    from parakeet_py.llvm.entry import boxing

    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    return prototype(boxing.support()["gate.lend_array"])
