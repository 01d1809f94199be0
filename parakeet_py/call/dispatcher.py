"""From a call to the specialization that runs it.

A `Dispatcher` stands behind each accelerated function. Calls that none of the gates of the specializations takes arrive
at `Dispatcher.slow`, which brings keyword arguments and defaults into positional form, compiles the signature if it is
new (or loads it from the disk), and lets the call enter again. What hands operations back to Python is run by the
evaluator first, which sees what they give. What cannot be compiled runs as the plain Python function, with one
`FallbackWarning` that says why (`strict=True`: an error).

What is done with a call follows from the state of its signature (`signature_states`). `Compiling` and `Specializations`
have the compiled code and make it.

With `when="pays"`, calls run in Python until compiling pays, and compiled code is compared with Python before it takes
calls (see `renting`).
"""

from __future__ import annotations

import operator
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from parakeet_py.base import config as settings
from parakeet_py.base import extensions
from parakeet_py.base.debug_log import log, shows_info
from parakeet_py.base.errors import FallbackWarning
from parakeet_py.base.frames import tracing
from parakeet_py.base.frames.hidden_frames import HIDES, hidden
from parakeet_py.base.frames.tracebacks import shown, user_level
from parakeet_py.base.gc_pause import put_off
from parakeet_py.base.interrupts import came_from_outside, deferring
from parakeet_py.call.dispatch.background import is_busy
from parakeet_py.call.dispatch.compiling import Compiling
from parakeet_py.call.dispatch.error_states import ErrorStates
from parakeet_py.call.dispatch.first_calls import FirstCalls
from parakeet_py.call.dispatch.forms_of_calls import FormsOfCalls
from parakeet_py.call.dispatch.signature_states import HANDED_BACK, Action, Call, Decision, decide
from parakeet_py.call.dispatch.specializations import DoneByPython
from parakeet_py.call.dispatch.wrong_calls import WrongCalls
from parakeet_py.call.fallback_cache import kind_of
from parakeet_py.call.load import Loaded, present
from parakeet_py.call.pricing import size_of
from parakeet_py.call.renting import Trial
from parakeet_py.hybrid.devices.device_detection import some_are_of_dask, some_live_elsewhere
from parakeet_py.llvm.entry.booked_time import not_of_the_call
from parakeet_py.llvm.entry.callable_type import Plain, gates_of, install, set_framed
from parakeet_py.llvm.entry.entry_kind import MISSED, why_portable
from parakeet_py.llvm.runtime.error_state import asks_for_errors
from parakeet_py.signature.device_classes import some_are_labelled
from parakeet_py.signature.positional import positional_form, python_form, takes_positions_only, wrong_arguments
from parakeet_py.signature.specs import Signature

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.hybrid.devices.team import Team


class Dispatcher(Compiling):
    """The Python side of one accelerated function."""

    def __init__(
        self,
        function: types.FunctionType,
        options: dict[str, Any],
        checked: bool = False,
        first: FirstCalls | None = None,
    ) -> None:
        super().__init__(function, options, checked, first)
        self.given: Any = function  # what the decorator was given: a ufunc, a callable object
        self.make_other: Callable[[], Any] = lambda: self.instance
        self.make_exact: Callable[[], Any] = lambda: self.instance
        self.exactly: Any = None  # what calls go to under settings that ask for NumPy's bits
        self.other: Any = None  # what calls go to under settings that ask for the other machine code
        # A call in progress that is not positional: its positional form, and how it was made.
        self.raw: tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]] | None = None
        self.plain = takes_positions_only(function.__code__)
        self.wrong = WrongCalls(function)
        self.forms = FormsOfCalls(function)
        self.left: Any = None  # calls that teams have left to the CPU, see `cpu_only_calls`
        self.framed: Any = None  # takes calls while there is a profiler
        self.error_states = ErrorStates(function)
        self.numba: Any = None  # the function as numba compiles it, once numba has asked
        extensions.watchers.add(self)

    def device(self) -> Team | None:
        """The team, of one device or several, that calls run on here and now, opened; None for the CPU."""
        config = self.config()
        if config.on_cpu or config.exact:
            return None
        found: Team | None = _devices().chosen(config.devices or "", config.split)
        return found

    def place_of(self, normal: tuple[Any, ...], asked: dict[int, Any] | None = None) -> Team | None:
        """The team that a call in positional form runs on: where arguments live, else what the settings say; None for
        the CPU. `asked` gets what arrays of other libraries have said of themselves."""
        if some_live_elsewhere(normal) or self.reads_elsewhere():
            from parakeet_py.call.devices import calls

            found: Team | None = calls.place_of(self, normal, asked)
            if found is not None:
                return found
        return self.device()

    def is_on_dask(self, normal: tuple[Any, ...]) -> bool:
        """Whether a call in positional form has Dask arrays, or runs on Dask as the settings say."""
        return some_are_of_dask(normal) or self.config().engine == "dask"

    def reads_elsewhere(self) -> bool:
        """Whether some global or free variable may hold an array on a device."""
        hidden = [source for source in self.knowledge.facts.hidden if source[0] in ("global", "cell")]
        return bool(hidden) and some_live_elsewhere([present(self.function, source) for source in hidden])

    # ---- calls -------------------------------------------------------------------------------------------------------

    @hidden
    def slow(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call that no gate has taken."""
        if HIDES and self.wrong.has(len(args), kwargs):
            return self.refuse_arguments(args, kwargs)
        try:
            return self.enter(args, kwargs)
        except BaseException as error:
            error.__traceback__ = shown(error)
            raise

    @hidden
    def refuse_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the function say what is wrong with the arguments of a call."""
        if self.wrong.are_many(args, kwargs):
            self.leave_for_ever(args, kwargs)
        return self.function(*args, **kwargs)

    @hidden
    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.recorded is not None and self.plain and not kwargs:
            done = self.recorded.run(args)
            if done is not self.recorded.MISSED:
                return done
        if self.left is not None and self.inner is None and not kwargs:
            count = self.left.has(args, settings.current())
            if count:
                if count & (count - 1) == 0:  # now and then, as its code may be new
                    self.leave_small_calls(args)
                return settings.on_cpu(self.instance, args)
        if settings.open_blocks[0] and not settings.current().enabled:
            return self.function(*args, **kwargs)
        if tracing.is_watched():
            if tracing.is_traced(self.function.__code__):
                return self.function(*args, **kwargs)
            if not self.has_left_off() and tracing.asks_for_frame() and not self.is_left_to_python(args, kwargs):
                return self.in_frame()(*args, **kwargs)
        if settings.current().checked is not self.checked:
            return self.counterpart()(*args, **kwargs)
        if settings.current().exact and not self.exact:
            return self.in_exact_code()(*args, **kwargs)
        normal = self.normalize(args, kwargs)
        if normal is None:
            return self.function(*args, **kwargs)
        if self.refused.cover(normal) and not self.config().strict and not some_live_elsewhere(normal):
            if self.config().pays:
                self.raw = normal, args, kwargs
                try:
                    result = self.rent(normal, refused=True)
                finally:
                    self.raw = None
            else:
                if not self.refused.untold or self.refused.come_again(normal):
                    self.leave_to_gate(normal, args, kwargs)  # before the call, as it may lead to smaller ones
                result = self.function(*args, **kwargs)
            if self.refused.untold:
                self.went_well(normal)
            return result
        if self.inner is not None or kwargs or len(normal) != len(args):
            if self.forms.counted(args, kwargs):
                self.open_form(args, kwargs)
            self.raw = normal, args, kwargs
            tracing.go_on()
            try:
                return (self.inner or self.instance)(*normal)
            finally:
                self.raw = None
        return self.call_normal(normal)

    def is_left_to_python(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is it known that the plain function takes a call, of which profilers see the events?"""
        normal = self.normalize(args, kwargs)
        return normal is None or (self.refused.cover(normal) and not self.config().strict)

    def in_frame(self) -> Callable[..., Any]:
        """What makes a call in a frame that a profiler sees: always the same, as profilers go by the code of frames."""
        if self.framed is None:
            with self.lock:
                if self.framed is None and why_portable():
                    self.framed = tracing.framed(self.function, self.instance), None
                elif self.framed is None:
                    from parakeet_py.llvm.entry.framed_gate import frame_for

                    self.framed = frame_for(self.function, self.instance)
        framed, gate = self.framed
        if gate is not None and (self.specializations or self.general):  # where there is machine code, gates know it
            with self.lock:
                self.framed = framed, None
                set_framed(self.instance, gate)
        return framed  # type: ignore[no-any-return]

    def leave_small_calls(self, args: tuple[Any, ...]) -> None:
        """Let an entry stub take calls that are no larger than one that a team leaves to the CPU."""
        try:
            place = self.place_of(args) if self.plain else None
            if place is None or not self.left.are_small(args, place):
                return
            known = self.last_gate(self.signature(args))
        except Exception:  # of a global that is gone, say: the call itself raises what there is to raise
            return
        if known is not None:
            known.gate.small.take(settings.current(), args)

    def counterpart(self) -> Any:
        """The accelerated function with checked machine code if this is without, and without if this is with."""
        if self.other is None:
            with self.lock:
                if self.other is None:
                    other = self.make_other()
                    other._dispatcher.knowledge, other._dispatcher.compilations = self.knowledge, self.compilations
                    self.other = other
        return self.other

    def in_exact_code(self) -> Any:
        """The accelerated function with exact machine code, of one without."""
        if self.exactly is None:
            with self.lock:
                if self.exactly is None:
                    self.exactly = self.make_exact()
        return self.exactly

    def in_force(self) -> Dispatcher:
        """This dispatcher, or another one's where the settings ask for other machine code."""
        now = settings.current()
        if now.checked is not self.checked:
            checked: Dispatcher = self.counterpart()._dispatcher
            return checked.in_force()
        if now.exact and not self.exact:
            exact: Dispatcher = self.in_exact_code()._dispatcher
            return exact.in_force()
        return self

    @hidden
    def call_positional(self, *normal: Any) -> Any:
        """`call_normal`, given the arguments one by one, of a call that may have passed no dispatcher."""
        if self.raw is not None or not self.forms.forms:
            return self.call_normal(normal)
        self.raw = normal, *self.forms.of_last(normal)
        try:
            return self.call_normal(normal)
        finally:
            self.raw = None

    @hidden
    def call_normal(self, normal: tuple[Any, ...]) -> Any:
        """A call in positional form that no gate has taken: compile its signature, or run it in Python."""
        target = self.instance if self.inner is None else self.inner
        log = self.left_off() if self.hands_back else None
        if callable(log):
            return log(normal)
        if log is None and asks_for_errors():
            return self.run_for_errors(normal)
        if log is None and (modules := self.look_at_patches()) != "unchanged":
            return self.run_python_anywhere(normal) if modules == "patched" else target(*normal)
        if some_are_labelled(normal) and log is None:
            from parakeet_py.call.interop import labelled_arrays

            result = labelled_arrays.call(self, normal)
            if result is not labelled_arrays.NOT_LABELLED:
                return result
        if self.is_on_dask(normal):
            from parakeet_py.call.devices.cluster_calls import call as call_on_dask

            return call_on_dask(self, normal, not some_are_of_dask(normal))
        asked: dict[int, Any] = {}
        team = self.place_of(normal, asked)
        if team is not None:
            if self.left is None or not self.left.takes(normal, team):
                from parakeet_py.call.devices.calls import call

                return call(self, normal, team, asked)
            self.left.note(normal, settings.current())
        if not settings.current().on_cpu:  # gates ask for these settings, not for the function's own
            return settings.on_cpu(target, normal)
        tried = gates_of(target)
        if why_portable() and log is None:
            for known in self.takers_of(normal):
                if (done := known.run(normal)) is not MISSED:
                    return done
        pays = log is None and not sys.is_finalizing() and self.config().pays
        if log is None and not self.has_used_up_code() and self.refused.is_left(normal):
            if pays:
                return self.rent(normal, refused=True)
            self.leave_to_gate(normal, *self.as_made(normal))
            return self.run_python(normal)
        if pays and self.account.takes(normal, self.has_stored):
            return self.rent(normal)
        if pays and is_busy() and self.goes_on(normal):
            return self.rent(normal)
        with self.lock, deferring():
            try:
                signature = self.signature(normal)
                decision = decide(self, Call(normal, signature, tried, log))
            except Exception as found:
                if log is not None:
                    raise  # Python cannot begin a call again that compiled code has given up half-way
                decision = Decision(Action.REFUSE, None, error=self.failure(found))
        return self.act(normal, decision, log or ())

    @hidden
    def run_for_errors(self, normal: tuple[Any, ...]) -> Any:
        """A call while NumPy's error state asks for more than warnings."""
        try:
            return self.run_python_anywhere(normal)
        finally:
            if not (some_live_elsewhere(normal) or self.reads_elsewhere()):
                with self.after_python():
                    gate = self.error_states.gate_for(normal)
                    if gate is not None and self.lock.acquire(blocking=False):
                        try:
                            self.install_plain(gate)
                        finally:
                            self.lock.release()

    def takers_of(self, normal: tuple[Any, ...]) -> list[Any]:
        """What the portable entry tries for a call in positional form."""
        if not (self.specializations or self.general):
            return []
        with self.lock:
            try:
                return self.takers(self.signature(normal))
            except Exception:  # what is wrong is found once more, where it is told
                return []

    @hidden
    def act(self, normal: tuple[Any, ...], decision: Decision, log: Sequence[tuple[Any, Any]]) -> Any:
        """Run a call as it has been decided."""
        signature = decision.signature
        match decision.action:
            case Action.EVALUATE:
                assert signature is not None
                return self.observe(normal, signature, decision.missed, log)
            case Action.REFUSE:
                assert decision.error is not None
                return self.refuse(normal, signature, decision.error)
            case Action.RENT:
                return self.rent(normal)
            case Action.PYTHON:
                result = self.rent(normal, refused=True) if self.config().pays else self.run_python(normal)
                if self.refused.untold:
                    self.went_well(normal, signature)
                return result
            case Action.NATIVE:
                if signature is not None and (untried := self.untried.get(signature)) is not None:
                    return self.trial(untried, signature, normal).run(normal)
                tracing.go_on()
                return (self.instance if self.inner is None else self.inner)(*normal)

    @hidden
    def observe(
        self, normal: tuple[Any, ...], signature: Signature, missed: bool, log: Sequence[tuple[Any, Any]]
    ) -> Any:
        """Run a call in the evaluator, and note what that has shown; `missed`: code has reached what no call had."""
        before = self.known_of(signature) if missed else {}
        start = time.perf_counter()
        try:
            return self.evaluate(normal, signature, log)
        finally:
            self.has_observed(signature, time.perf_counter() - start, before if missed else None)

    def has_observed(self, signature: Signature, taken: float, before: dict[Any, Any] | None) -> None:
        """Note that the evaluator has run a call, in so many seconds; `before`: what was known, where code has reached
        what no call had."""
        with self.after_python():
            self.evaluated_for += taken
            self.account.has_waited(1e9 * taken)
            if before is not None:  # if nothing new was seen, the same code would be made, to no avail again
                runs = self.observed_runs.get(signature, 0)
                self.observed_runs[signature] = runs + 1 if before == self.known_of(signature) else 1
        self.observing.discard(signature)

    @hidden
    def rent(self, normal: tuple[Any, ...], refused: bool = False) -> Any:
        """Run a call in Python, until compiling pays, or because it is `refused`; when there are many, a gate takes
        them."""
        args, kwargs = self.as_made(normal)
        size = size_of(normal)  # the call may change it
        if self.account.running:  # a recursive call, which is not the last one
            self.open_gate(normal, args, kwargs, refused, size)
        try:
            return self.account.run(normal, partial(self.run_python, normal))
        finally:
            self.open_gate(normal, args, kwargs, refused, size)

    def as_made(self, normal: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How the call in progress, in positional form, was made."""
        raw = self.raw
        if raw is not None and len(raw[0]) == len(normal) and all(map(operator.is_, raw[0], normal)):
            return raw[1:]
        return normal, {}

    def open_gate(
        self, normal: tuple[Any, ...], args: Sequence[Any], kwargs: Mapping[str, Any], refused: bool, size: int
    ) -> None:
        """Let a gate take calls like this one, which runs in Python and had arguments of this size, if there are so
        many that it pays; not now if another thread is compiling."""
        with self.after_python(), not_of_the_call():
            gate = self.account.gate_for(normal, args, kwargs, size, self.inner is not None, refused)
            if gate is not None and self.lock.acquire(blocking=False):
                try:
                    self.install_plain(gate)
                finally:
                    self.lock.release()

    def leave_to_gate(self, normal: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let a gate take calls like this one, which is refused as others like it were, behind machine code."""
        with self.after_python():
            gate = self.account.gate_for_refused(args, kwargs, size_of((*normal, *args, *kwargs.values())))
            if gate is not None and self.lock.acquire(blocking=False):
                try:
                    self.install_plain(gate)
                finally:
                    self.lock.release()
                self.refused.pass_by(normal)

    def leave_for_ever(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Let a gate to Python take all calls with arguments of these classes, however large they are."""
        with self.after_python():
            from parakeet_py.llvm.entry.plain_gate import FOR_EVER, PlainGate, Shape

            shape = Shape.of(args, kwargs, closely=False)
            gate = None if shape is None else PlainGate(self.function, shape, FOR_EVER, FOR_EVER)
            if gate is not None and self.lock.acquire(blocking=False):
                try:
                    self.install_plain(gate)
                finally:
                    self.lock.release()

    def open_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let a gate bring calls of this form into positional form; not now if another thread is compiling."""
        with self.after_python():
            if self.lock.acquire(blocking=False):
                try:
                    self.forms.open(self.instance, self.inner, args, kwargs)
                finally:
                    self.lock.release()

    def open_first_gate(self) -> None:
        """Let a gate take the place of what has taken the first calls."""
        with self.after_python(), not_of_the_call():
            first = self.account.first
            if first is not None and (gate := self.account.gate_of(None, first.largest, ())) is not None:
                self.install_plain(gate)

    @put_off()
    def compile_now(self, normal: tuple[Any, ...]) -> None:
        """Compile a call in positional form, and let calls like it run the code; nothing if there is some."""
        from parakeet_py.typed_ir.specialize.restarts import NeedObservation

        with self.lock, deferring():
            signature = self.signature(normal)
            known = self.last_gate(signature)
            try:
                if known is None:
                    self.compile(normal, replace(self.config(), when="now", tiers=False), "usual", False)
                elif known.native.quick:
                    self.optimize(normal, signature)
                elif signature in self.untried:
                    self.end_trial(signature, self.trial(known, signature, normal), True)
            except NeedObservation as need:
                raise self.not_observed(need) from None
            except DoneByPython:
                self.refused.add(signature, HANDED_BACK)

    def install_plain(self, gate: Any) -> None:
        """Let a gate to Python take calls: before machine code if it does so for ever, else after it."""
        live = self.account.gates
        gates: list[Any] = [
            one for one in gates_of(self.instance) if not isinstance(one, Plain) or one.left > 0 or one in live
        ]
        if gate.is_lasting:
            like = [one for one in gates if isinstance(one, Plain) and one.shape == gate.shape]
            if any(one.is_lasting and one.largest >= gate.largest for one in like):
                return  # it has let the call pass, as gates do not look into equal dtypes
            gates = [gate, *(one for one in gates if one not in like)]
        elif gate not in gates:
            gates.append(gate)
        if self.inner is not None:
            gates.sort(key=self.forms.gates.__contains__)  # machine code is behind those
        self.leave_first_calls()
        install(self.instance, gates)

    def trial(self, loaded: Loaded, signature: Signature, normal: tuple[Any, ...]) -> Trial:
        """The comparison of machine code with Python that is going on for the calls of a signature."""
        found = self.trials.get(signature)
        if found is None:
            kind = kind_of(normal)
            python = self.function if self.plain else self.run_positional
            former, size = self.account.last.get(kind), self.account.code_size()
            found = self.trials[signature] = Trial(
                python, loaded, kind, former, size.loops, size.cost(normal), self.call_normal,
                partial(self.end_trial, signature),
            )  # fmt: skip
        return found

    def end_trial(self, signature: Signature, trial: Trial, native: bool) -> None:
        """Machine code has been compared with Python: let it take calls, or leave those of this size to Python."""
        with self.lock:
            for known in (signature, *self.signatures_of(trial.loaded)):
                self.trials.pop(known, None)
                if native:
                    self.untried.pop(known, None)
            if native:
                self.account.left.pop(trial.kind, None)
                self.account.has_won(trial.saved)
                self.add_gate(trial.loaded, "usual")
            else:
                self.account.left[trial.kind] = 2 * trial.size
                self.account.factor *= 2
            faster = "machine code" if native else "Python"
            self.account.decision = f"{faster} takes calls of this size: {trial}"
        log.info("%s: %s", self.function.__qualname__, self.account.decision)

    @hidden
    def refuse(self, normal: tuple[Any, ...], signature: Signature | None, error: Exception) -> Any:
        """Run a call that cannot be compiled in Python, and say so once.

        A call that Python refuses too (too many indices, a wrong type) just raises what Python raises.
        """
        if self.config().strict:
            error.__cause__ = error.__context__ = None  # how it was found out is no concern of the user's
            raise error.with_traceback(None)
        try:
            result = self.run_python(normal)
        except Exception:
            with self.after_python(), self.lock:
                if signature is not None:
                    self.refused.add_raised(normal, signature, str(error))
            raise
        with self.after_python():
            if signature is not None:
                self.refused.add(signature, str(error))
            self.refused.settle(normal)
            self.refused.everything = self.is_full(len(self.refused)) or not _is_readable(self.function)
        self.tell_fallback(str(error), signature)
        return result

    def went_well(self, normal: tuple[Any, ...], signature: Signature | None = None) -> None:
        """Python has run a call without an exception, maybe the first of those like it, which then have another chance:
        what an operation gives can be seen now, and if they are refused again, the user is warned."""
        reason = None
        if is_busy():  # the next one will do
            return
        with self.after_python(), self.lock:
            reason = self.refused.went_well(normal, signature)
            if reason is not None:
                self.observed_runs.clear()
        if reason:
            self.tell_fallback(reason, signature)

    def tell_fallback(self, reason: str, signature: Signature | None) -> None:
        """Say that the calls with a signature run in Python: always in the log, for the first one in a warning."""
        if shows_info():
            from parakeet_py.call.debug_log import tell_fallback

            tell_fallback(self.function, signature, reason)
        if self.fell_back is None:
            self.fell_back = reason
            text = f"{self.function.__qualname__} fell back to Python. {reason}"
            warnings.warn(FallbackWarning(text), stacklevel=user_level())

    @contextmanager
    def after_python(self) -> Iterator[None]:
        """Python has run a call: what it gave is given, whatever becomes of the notes made of it in this block."""
        try:
            yield
        except Exception as error:
            if self.config().check or came_from_outside(error):
                raise
            log.exception("the compiler has failed after a call of %s", self.function.__qualname__)

    @hidden
    def run_positional(self, *normal: Any) -> Any:
        """`run_python`, given the arguments one by one."""
        return self.run_python(normal)

    @hidden
    def run_python(self, normal: tuple[Any, ...]) -> Any:
        """The plain Python function on a call in positional form."""
        args, named = python_form(self.function, normal)
        return self.function(*args, **named)

    @hidden
    def run_python_anywhere(self, normal: tuple[Any, ...]) -> Any:
        """The same on arguments some of which may live on devices: Python works on what stands for them."""
        if some_live_elsewhere(normal) or self.reads_elsewhere():
            from parakeet_py.call.devices.calls import run_python

            return run_python(self, normal)
        return self.run_python(normal)

    def normalize(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The call in positional form; None when Python would refuse it (and will say so)."""
        if self.plain and not kwargs:
            missing = self.function.__code__.co_argcount - len(args)
            if missing == 0:
                return args
            defaults = self.function.__defaults__ or ()
            if 0 < missing <= len(defaults):
                return args + defaults[-missing:]
        return positional_form(self.function, args, kwargs)

    # ---- asked by explain and the text functions ---------------------------------------------------------------------

    def compiled_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        """The specialization that a call tries first, compiled (but not run) if it is new.

        Raises
        ------
        UnsupportedError
            The call runs in Python.
        """
        return self.compiled_for_normal(self.positional(args, kwargs), "usual")

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """A call in positional form; raises `TypeError` if the function does not take these arguments."""
        normal = self.normalize(args, kwargs)
        if normal is None:
            raise wrong_arguments(self.function, args, kwargs)
        return normal


@lru_cache(maxsize=1)
def _devices() -> Any:
    """`hybrid.devices`, imported when a device is named; a statement would ask for it anew in every call."""
    from parakeet_py.hybrid.devices import selection

    return selection


def _is_readable(function: types.FunctionType) -> bool:
    """Can a frontend read a function at all?"""
    from parakeet_py.frontend import to_ssa_cached

    try:
        to_ssa_cached(function)
    except Exception:
        return False
    return True
