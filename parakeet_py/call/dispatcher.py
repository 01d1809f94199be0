"""From a call to the specialization that runs it.

A `Dispatcher` stands behind each accelerated function. Calls that none of the gates of the specializations takes arrive
at `Dispatcher.slow`, which brings keyword arguments and defaults into positional form, compiles the signature if it is
new (or loads it from the disk), and lets the call enter again. What hands operations back to Python is run by the
evaluator first, which sees what they give. What cannot be compiled runs as the plain Python function, with one
`FallbackWarning` that says why (`strict=True`: an error).

With `when="pays"`, calls run in Python until compiling pays, and compiled code is compared with Python before it takes
calls (see `renting`).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from parakeet_py.base import config as settings
from parakeet_py.base import extensions, tracing
from parakeet_py.base.errors import FallbackWarning, MissingValue, NoSourceError, NotObservedError, UnsupportedError
from parakeet_py.base.gc_pause import put_off
from parakeet_py.base.interrupts import OutOfTime, came_from_outside, deadline, held
from parakeet_py.base.tracebacks import shown, unseen, user_level
from parakeet_py.call import specialization_cache
from parakeet_py.call.fallback_cache import Refusals, kind_of
from parakeet_py.call.load import Knowledge, Loaded, call_signature, present, read_source
from parakeet_py.call.renting import Account, Trial
from parakeet_py.hybrid.devices.device_detection import some_live_elsewhere
from parakeet_py.llvm.entry.callable_type import Plain, gates_of, install
from parakeet_py.llvm.runtime.error_state import asks_for_errors
from parakeet_py.signature import patches
from parakeet_py.signature.attribute_sources import of_arguments
from parakeet_py.signature.facts import Facts
from parakeet_py.signature.positional import positional_form, python_form, takes_positions_only, wrong_arguments
from parakeet_py.signature.specs import Signature, Source

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled, Extents
    from parakeet_py.call.handed_back import OpaqueCalls
    from parakeet_py.call.specialization_cache import Native
    from parakeet_py.hybrid.devices.team import Team

log_ = logging.getLogger("parakeet_py")
EXTENTS: tuple[Extents, ...] = ("both", "usual", "general")
MAX_SPECIALIZATIONS = 256  # of one function; each takes a good part of a megabyte and a second
MAX_OBSERVED_RUNS = 8  # calls of a signature that may pass without showing what some operation gives
LONGEST_EVALUATIONS = 2.0  # seconds of the calls of a function that are observed; then Python runs them

# Compiling is one at a time: where it takes long it uses several CPUs by itself, and a process that forks meanwhile
# would leave its child with locks that no thread holds.
_compiling = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release
    )


class DoneByPython(Exception):
    """A call does little else than what Python does for it: Python runs it as a whole."""


class Dispatcher:
    """The Python side of one accelerated function."""

    def __init__(self, function: types.FunctionType, options: dict[str, Any], checked: bool = False) -> None:
        self.function = function
        self.given: Any = function  # what the decorator was given: a ufunc, a callable object
        self.options = options
        self.checked = checked  # is all machine code here checked? Calls under other settings go to the `other`
        self.make_other: Callable[[], Any] = lambda: self.instance
        self.other: Any = None
        self.configured: tuple[settings.Config | None, settings.Config | None] = None, None  # in force, with our own
        self.threads: int = options.get("threads") or 0
        self.knowledge = Knowledge()
        self.specializations: dict[Signature, Loaded] = {}
        self.general: dict[Signature, Loaded] = {}  # what runs where a guarded specialization lets a call pass
        self.compilations: dict[tuple[Signature, Extents], Compiled] = {}
        self.knowledge_read = False
        self.refused = Refusals()
        self.fell_back: str | None = None
        self.observing: set[Signature] = set()  # of calls that the evaluator is running now
        self.observed_runs: dict[Signature, int] = {}
        self.evaluated_for = 0.0  # seconds
        self.guessed: set[Signature] = set()  # compiled although some operation has never been reached
        self.watched: dict[Source, bool] = {}  # globals that operations handed back to Python must not replace; items?
        self.hands_back = False
        self.made = 0  # specializations, forgotten ones too
        self.account = Account(function)
        self.untried: dict[Signature, Loaded] = {}  # code that takes no calls before it has been compared with Python
        self.trials: dict[Signature, Trial] = {}
        self.raw: tuple[tuple[Any, ...], dict[str, Any]] | None = None  # a call in progress that is not positional
        self.lock = _compiling
        self.instance: Any = None
        self.plain = takes_positions_only(function.__code__)
        self.repeated: Any = None  # calls on arrays of devices that may come again, see `call.devices.call_cache`
        self.left: Any = None  # calls that teams have left to the CPU, see `cpu_only_calls`
        self.framed: Any = None  # takes calls while there is a profiler
        self.inner: Any = None  # takes calls in positional form, for functions whose own calls are not
        extensions.watchers.add(self)

    def config(self) -> settings.Config:
        """The settings in force, changed by the decorator's own."""
        now = settings.current()
        if not self.options:
            return now
        base, config = self.configured
        if base is not now or config is None:
            with settings.options(**self.options) as config:
                self.configured = now, config
        return config

    def device(self) -> Team | None:
        """The team, of one device or several, that calls run on here and now, opened; None for the CPU."""
        config = self.config()
        if config.on_cpu:
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

    def reads_elsewhere(self) -> bool:
        """Whether some global or free variable may hold an array on a device."""
        hidden = [source for source in self.knowledge.facts.hidden if source[0] in ("global", "cell")]
        return bool(hidden) and some_live_elsewhere([present(self.function, source) for source in hidden])

    # ---- calls -------------------------------------------------------------------------------------------------------

    @unseen
    def slow(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call that no gate has taken."""
        try:
            return self.enter(args, kwargs)
        except BaseException as error:
            error.__traceback__ = shown(error)
            raise

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if settings.open_blocks[0] and not settings.current().enabled:
            return self.function(*args, **kwargs)
        if tracing.is_watched():
            if tracing.is_traced():
                return self.function(*args, **kwargs)
            if tracing.asks_for_frame():
                if self.framed is None:
                    self.framed = tracing.framed(self.function, self.instance)
                return self.framed(*args, **kwargs)
        if settings.current().checked is not self.checked:
            return self.counterpart()(*args, **kwargs)
        normal = self.normalize(args, kwargs)
        if normal is None:
            return self.function(*args, **kwargs)
        if self.refused.cover(normal) and not self.config().strict:
            result = self.function(*args, **kwargs)
            if self.refused.untold:
                self.went_well(normal)
            return result
        if self.inner is not None or kwargs or len(normal) != len(args):
            self.raw = args, kwargs
            tracing.go_on()
            try:
                return (self.inner or self.instance)(*normal)
            finally:
                self.raw = None
        return self.call_normal(normal)

    def counterpart(self) -> Any:
        """The accelerated function with checked machine code if this is without, and without if this is with."""
        if self.other is None:
            with self.lock:
                if self.other is None:
                    other = self.make_other()
                    other._dispatcher.knowledge, other._dispatcher.compilations = self.knowledge, self.compilations
                    self.other = other
        return self.other

    def in_force(self) -> Dispatcher:
        """This dispatcher, or its counterpart's where the settings ask for the other machine code."""
        if settings.current().checked is self.checked:
            return self
        found: Dispatcher = self.counterpart()._dispatcher
        return found

    def call_normal(self, normal: tuple[Any, ...]) -> Any:
        """A call in positional form that no gate has taken: compile its signature, or run it in Python."""
        target = self.instance if self.inner is None else self.inner
        log = self.left_off() if self.hands_back else None
        if log is None and asks_for_errors():
            return self.run_python(normal)
        if log is None and (modules := self.look_at_patches()) != "unchanged":
            return self.run_python(normal) if modules == "patched" else target(*normal)
        asked: dict[int, Any] = {}
        team = self.place_of(normal, asked)
        if team is not None and not (self.left is not None and self.left.takes(normal, team)):
            from parakeet_py.call.devices.calls import call

            return call(self, normal, team, asked)
        if not settings.current().on_cpu:  # gates ask for these settings, not for the function's own
            return settings.on_cpu(target, normal)
        tried = gates_of(target)
        if log is None and self.refused.is_left(normal):
            return self.run_python(normal)
        pays = log is None and not sys.is_finalizing() and self.config().pays
        if pays and self.account.takes(normal, self.has_stored):
            return self.rent(normal)
        signature: Signature | None = None
        with self.lock, held():
            try:
                signature = self.signature(normal)
                action, signature, missed, error = self.decide(normal, signature, log, tried)
            except Exception as found:
                if log is not None:
                    raise  # Python cannot begin a call again that compiled code has given up half-way
                action, missed, error = "refuse", False, self.failure(found)
        if action == "evaluate" and signature is not None:
            before = self.known_of(signature) if missed else {}
            start = time.perf_counter()
            try:
                return self.evaluate(normal, signature, log or ())
            finally:
                with self.after_python():
                    self.evaluated_for += time.perf_counter() - start
                    if missed:  # if nothing new was seen, the same code would be made, to no avail again
                        runs = self.observed_runs.get(signature, 0)
                        self.observed_runs[signature] = runs + 1 if before == self.known_of(signature) else 1
                self.observing.discard(signature)
        if error is not None:
            return self.refuse(normal, signature, error)
        if action == "rent":
            return self.account.run(normal, lambda: self.run_python(normal))
        if action == "python":
            result = self.run_python(normal)
            if self.refused.untold:
                self.went_well(normal, signature)
            return result
        if signature is not None and self.untried and (untried := self.untried.get(signature)) is not None:
            return self.trial(untried, signature, normal).run(normal)
        tracing.go_on()
        return target(*normal)

    def decide(
        self, normal: tuple[Any, ...], signature: Signature, log: object, tried: Sequence[object]
    ) -> tuple[str, Signature, bool, Exception | None]:
        """What is to be done with a call that no gate has taken, after its signature has been compiled if it can be:
        `native`, `evaluate`, `rent`, `python` or `refuse`; the signature; whether code has missed something; why it is
        refused.
        """
        error: Exception | None = None
        missed = False
        if log is not None:
            action = "evaluate"  # compiled code has given the call up half-way
        elif signature in self.guessed and signature in self.specializations:
            action, missed = "evaluate", True  # it has reached what no call had reached before
            self.forget(self.specializations[signature])
        elif signature in self.refused:
            action = "python"
            self.refused.settle(normal)
        elif signature in self.observing:
            action = "python"
        elif signature in self.untried:
            action = "native"
        elif (known := self.last_gate(signature)) is not None and not known.native.guarded:
            # its gate has let the call pass; or another thread has compiled it just now
            action = "python" if known.gate in tried else "native"
            if action == "python":
                self.refused.leave(normal)
        elif known is None and self.refused.raises_again() and not self.config().strict:
            action = "python"
        elif known is None and self.config().pays and self.account.must_earn(normal, self.has_stored):
            action = "rent"
        else:
            try:
                extents: Extents = "usual" if known is None else "general"
                action = "native" if self.specialize(normal, signature, extents) is not None else "evaluate"
                self.refused.unsettle(normal)
            except patches.Patched:
                action = "python"
            except DoneByPython:
                action = "python"
                self.refused.add(signature, "almost all is handed back")
                log_.info("%s: Python runs such calls, as almost all is handed back", self.function.__qualname__)
                self.refused.settle(normal)
            except (UnsupportedError, NoSourceError) as found:
                action, error = "refuse", found
            except Exception as found:
                action, error = "refuse", self.failure(found)
        if action == "evaluate" and log is None and self.may_keep_closures():
            self.refused.add(signature, "functions made here may outlive what they use")
            action = "python"
        if action == "evaluate":
            signature = self.signature(normal)  # what is known by now may have changed it
            self.observing.add(signature)
        return action, signature, missed, error

    def look_at_patches(self) -> Literal["unchanged", "accepted", "patched"]:
        """Have modules changed since gates last knew them, and has what is compiled in been replaced?"""
        changed = False
        for loaded in (*self.specializations.values(), *self.general.values()):
            versions = loaded.gate.versions
            if not versions.are_known():
                if not versions.accept():
                    return "patched"
                changed = True
        return "accepted" if changed else "unchanged"

    def last_gate(self, signature: Signature) -> Loaded | None:
        """What a call with this signature meets last, before Python."""
        relaxed = Signature(signature.params, signature.hidden)
        for known in (signature, relaxed):
            found = self.general.get(known) or self.specializations.get(known)
            if found is not None:
                return found
        return None

    def known_of(self, signature: Signature) -> dict[Any, Any]:
        """What operations of calls with a signature have given, as far as it is known."""
        return dict(self.knowledge.observed.get(signature.params, {}))

    def left_off(self) -> Sequence[tuple[Any, Any]] | None:
        """What the present call has done already, if compiled code has given it up half-way."""
        from parakeet_py.call.handed_back import take_log

        return take_log(self.knowledge)

    def evaluate(self, normal: tuple[Any, ...], signature: Signature, log: Sequence[tuple[Any, Any]] = ()) -> Any:
        """Run a call in the evaluator, which finds out what operations handed back to Python give."""
        from parakeet_py.frontend import to_ssa_cached
        from parakeet_py.frontend.evaluate.evaluator import evaluate
        from parakeet_py.typed_ir.specialize.observed import Observations
        from parakeet_py.typed_ir.specialize.python.inlined_functions import looked_into

        run = evaluate(
            to_ssa_cached(self.function),
            self.function,
            observe=Observations(self.knowledge.observed.setdefault(signature.params, {})),
            inline=looked_into,
            replay=log,
            watch=self.watched_now,
        )
        args, named = python_form(self.function, normal)
        return run(*args, **named)

    def watch(self, hidden: Sequence[tuple[Source, bool]]) -> bool:
        """Watch these hidden arguments, and their items where that is asked for; False if all are watched already."""
        unwatched = {source: items for source, items in hidden if items > self.watched.get(source, -1)}
        self.watched |= unwatched
        return bool(unwatched)

    def watched_now(self) -> list[list[Any]]:
        from parakeet_py.frontend.evaluate.evaluator import with_items

        values = [(present(self.function, source), items) for source, items in self.watched.items()]
        return [with_items(value) if items else [value] for value, items in values]

    def may_keep_closures(self) -> bool:
        """Does the function make others that Python has to make, as unknown code may keep them?"""
        from parakeet_py.frontend import to_ssa_cached
        from parakeet_py.frontend.evaluate.kept_closures import may_keep

        return may_keep(to_ssa_cached(self.function), self.function)

    def give_up(self, loaded: Loaded, reason: str) -> None:
        """Let Python run the calls of a specialization from now on."""
        with self.lock:
            for signature in self.signatures_of(loaded):
                self.refused.add(signature, reason)
            self.fell_back = self.fell_back or reason
            self.forget(loaded)

    def forget(self, loaded: Loaded) -> None:
        """Let no further call run a specialization that has turned out to be wrong for some."""
        with self.lock:
            gone = []
            self.repeated = None
            for signature in self.signatures_of(loaded):
                gone += [found.pop(signature) for found in (self.specializations, self.general) if signature in found]
                for extents in EXTENTS:
                    self.compilations.pop((signature, extents), None)
                self.guessed.discard(signature)
                self.untried.pop(signature, None)
                self.trials.pop(signature, None)
            target = self.instance if self.inner is None else self.inner
            dead = [one.gate for one in gone]
            install(target, [gate for gate in gates_of(target) if gate not in dead])

    def reset(self) -> None:
        """Forget all that has been compiled and learned: functions mean something else to the compiler now."""
        with self.lock:
            for loaded in (*self.specializations.values(), *self.general.values()):
                self.forget(loaded)
            for found in (self.compilations, self.refused, self.observed_runs, self.guessed):
                found.clear()
            self.repeated = None
            self.knowledge, self.knowledge_read, self.fell_back = Knowledge(), False, None
            self.watched.clear()
            self.account.close()
            self.account = Account(self.function)
            for target in filter(None, (self.instance, self.inner)):
                install(target, [gate for gate in gates_of(target) if not isinstance(gate, Plain)])

    # ---- when it pays ------------------------------------------------------------------------------------------------

    def has_stored(self) -> bool:
        """Has an earlier process left code of this function on the disk?"""
        return self.config().uses_disk and specialization_cache.load_knowledge(self.function) is not None

    def rent(self, normal: tuple[Any, ...]) -> Any:
        """Run a call in Python, until compiling pays; when there are many, a gate takes them."""
        args, kwargs = self.raw or (normal, {})
        try:
            return self.account.run(normal, lambda: self.run_python(normal))
        finally:
            gate = self.account.gate_for(normal, args, kwargs)
            if gate is not None:
                with self.lock:
                    self.install_plain(gate)

    @put_off()
    def compile_now(self, normal: tuple[Any, ...]) -> None:
        """Compile a call in positional form, and let calls like it run the code; nothing if there is some."""
        from parakeet_py.typed_ir.specialize.restarts import NeedObservation

        with self.lock, held():
            signature = self.signature(normal)
            known = self.last_gate(signature)
            try:
                if known is None:
                    self.compile(normal, replace(self.config(), when="now"), "usual", False)
                elif signature in self.untried:
                    self.end_trial(signature, self.trial(known, signature, normal), True)
            except NeedObservation as need:
                raise NotObservedError.of(need.error, "call the function with such arguments first") from None
            except DoneByPython:
                self.refused.add(signature, "almost all is handed back")

    def install_plain(self, gate: Any) -> None:
        """Let a gate to Python take calls: before machine code if it does so for ever, else after it."""
        gates = list(gates_of(self.instance))
        if gate.is_lasting:
            gates = [gate, *(one for one in gates if not isinstance(one, Plain) or one.shape != gate.shape)]
        elif gate not in gates:
            gates.append(gate)
        install(self.instance, gates)

    def trial(self, loaded: Loaded, signature: Signature, normal: tuple[Any, ...]) -> Trial:
        """The comparison of machine code with Python that is going on for the calls of a signature."""
        found = self.trials.get(signature)
        if found is None:
            kind, python = kind_of(normal), self.function if self.plain else self.run_python
            former, loops = self.account.last.get(kind), self.account.code_size().loops
            end = partial(self.end_trial, signature)
            found = self.trials[signature] = Trial(python, loaded, kind, former, loops, self.call_normal, end)
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
                self.add_gate(trial.loaded, "usual")
            else:
                self.account.left[trial.kind] = 2 * trial.size
            faster = "machine code" if native else "Python"
            self.account.decision = f"{faster} takes calls of this size: {trial}"
        log_.info("%s: %s", self.function.__qualname__, self.account.decision)

    def signatures_of(self, loaded: Loaded) -> list[Signature]:
        """The signatures whose calls a specialization takes."""
        known = (*self.specializations.items(), *self.general.items())
        return list(dict.fromkeys(signature for signature, other in known if other is loaded))

    def signature(self, normal: tuple[Any, ...]) -> Signature:
        """The signature of a call; a global that is gone counts as unknown (Python will raise NameError)."""
        if not self.knowledge_read:
            self.knowledge_read = True
            self.read_knowledge()
        try:
            return call_signature(self.function, normal, self.knowledge)
        except MissingValue:
            return call_signature(self.function, normal, Knowledge())

    def read_knowledge(self) -> None:
        """Begin with what an earlier process has learned, if all that it speaks of is there."""
        data = specialization_cache.load_knowledge(self.function) if self.config().uses_disk else None
        if data is None:
            return
        try:
            self.knowledge = Knowledge(Facts.from_json(data))
            for source in self.knowledge.facts.hidden:
                if not of_arguments(source):
                    read_source(self.function, source, ())
        except (MissingValue, AssertionError, KeyError, TypeError, ValueError):
            self.knowledge = Knowledge()

    @put_off()
    def specialize(self, normal: tuple[Any, ...], signature: Signature, extents: Extents) -> Loaded | None:
        """Code for a call with a new signature, from the disk or compiled; None if calls must be observed first.

        First it is made for the `usual` extents; when a call turns up that has others, its `general` form.
        """
        config = self.config()
        if self.made >= MAX_SPECIALIZATIONS:
            text = f"{self.function.__qualname__} has met {self.made} signatures; from now on, new ones run in Python"
            raise UnsupportedError(text, self.function.__code__.co_filename)
        runs = self.observed_runs.get(signature, 0)
        worth_it = runs < MAX_OBSERVED_RUNS and self.evaluated_for < LONGEST_EVALUATIONS
        hopeful = (
            runs <= MAX_OBSERVED_RUNS and self.evaluated_for < LONGEST_EVALUATIONS
        )  # else calls reach again and again what none of them shows
        start = time.perf_counter()
        loaded = self.load(signature, config, extents) if config.uses_disk and hopeful else None
        if loaded is not None:
            if config.debug or log_.isEnabledFor(logging.INFO):
                from parakeet_py.call.debug_log import tell_loaded

                tell_loaded(self.function, signature, time.perf_counter() - start, config.debug)
            return loaded
        from parakeet_py.typed_ir.specialize.restarts import NeedObservation

        try:
            guess = runs > 0 and hopeful and not needs_its_frame(self.function)
            with deadline(self.account.longest if config.pays else None):
                return self.compile(normal, config, extents, guess)
        except OutOfTime:
            text = (
                f"compiling {self.function.__qualname__} takes over {self.account.longest:.3g} s; its calls take less"
            )
            raise UnsupportedError(text, self.function.__code__.co_filename) from None
        except NeedObservation as need:
            self.observed_runs[signature] = runs + 1
            if not worth_it or needs_its_frame(self.function):
                raise need.error from None
        return None

    def load(self, signature: Signature, config: settings.Config, extents: Extents) -> Loaded | None:
        """Install what an earlier process has left on the disk for a signature."""
        from parakeet_py.llvm.engine.object_loader import LoadError

        flags = self.flags(config, extents)
        state = None
        native = specialization_cache.load(self.function, signature, flags)
        if native is None:
            if config.strict:
                return None
            from parakeet_py.call import handed_back_cache
            from parakeet_py.call.handed_back import OpaqueCalls

            found = handed_back_cache.load(self.function, signature, flags, self.knowledge)
            if found is None:
                return None
            native, handed_back = found
            state = OpaqueCalls(self.function, signature.params, handed_back, self.knowledge)
        try:
            loaded = Loaded(
                self.function,
                native,
                self.slow,
                {},
                threads=self.threads,
                state=state,
                from_disk=True,
                checked=self.checked,
            )
        except LoadError:  # made by a version that had other symbols
            return None
        if state is not None:
            self.hand_back(loaded, state, signature)
        self.install(loaded, signature, extents, config.pays)
        return loaded

    def hand_back(self, loaded: Loaded, state: OpaqueCalls, signature: Signature) -> None:
        """A specialization does some operations in Python: be ready for what they turn out to give."""
        self.hands_back = True
        self.watch(state.hidden)
        state.forget = lambda: self.forget(loaded)
        if state.handed_back.guessed:
            self.guessed |= {signature, loaded.native.signature}

    def compile(self, normal: tuple[Any, ...], config: settings.Config, extents: Extents, guess: bool) -> Loaded | None:
        """Compile a call's signature and install it; None if something has to be observed first.

        With `guess`, operations that no call has reached yet are taken to be out of reach, if that can do no harm.
        """
        from parakeet_py.llvm.engine.warm_up import prepare

        prepare(min(config.thread_count, settings.available_cpus()))
        from parakeet_py.call.compile import compile_call, make_native, runs_in_python

        pays, start = config.pays, time.perf_counter_ns()
        if pays:
            self.account.close()
        known = None if guess else self.kept(self.signature(normal), extents)
        if known is not None and _would_be_the_same(known, config):
            compiled = known
        else:
            compiled = compile_call(self.function, normal, self.knowledge, config, guess, extents)
        if self.watch(compiled.read_after_opaque):
            own = self.signature(normal).params
            for params in [one for one in self.knowledge.observed if one != own]:
                del self.knowledge.observed[params]  # seen without a look at these
            return None
        if runs_in_python(compiled) and not config.check:  # where all is checked, so is the code for such calls
            self.keep(compiled, extents)
            raise DoneByPython
        native = make_native(compiled, self.checked)
        if pays:
            self.account.has_compiled(normal, time.perf_counter_ns() - start)
        if config.debug or log_.isEnabledFor(logging.INFO):
            from parakeet_py.call.debug_log import tell_compiled

            tell_compiled(compiled, config.debug, self.checked)
        signature = compiled.call_signature
        state = None
        if compiled.specialization.opaque_sites or compiled.specialization.guessed:
            from parakeet_py.call.handed_back import HandedBack, OpaqueCalls

            state = OpaqueCalls(self.function, signature.params, HandedBack.by(compiled), self.knowledge)
        loaded = Loaded(
            self.function,
            native,
            self.slow,
            compiled.times,
            threads=self.threads,
            state=state,
            checked=self.checked,
        )
        self.keep(compiled, extents)
        if state is not None:
            self.hand_back(loaded, state, signature)
        self.install(loaded, signature, extents, pays)
        if config.uses_disk:
            self.store(compiled, native, state, self.flags(config, extents))
        return loaded

    def flags(self, config: settings.Config, extents: Extents) -> tuple[object, ...]:
        """What code depends on beside the function and the signature."""
        return (config.contract, config.fastmath, extents, self.checked)

    def store(self, compiled: Compiled, native: Native, state: OpaqueCalls | None, flags: Sequence[object]) -> None:
        """Keep a specialization on the disk."""
        specialization_cache.store_knowledge(self.function, self.knowledge.facts.to_json())
        if state is None:
            specialization_cache.store(self.function, compiled.call_signature, flags, native)
        else:
            from parakeet_py.call import handed_back_cache as opaque_cache

            asked = compiled.specialization.asked
            opaque_cache.store(self.function, compiled.call_signature, flags, native, state.handed_back, asked)

    def install(self, loaded: Loaded, signature: Signature, extents: Extents, untried: bool = False) -> None:
        """Let calls run new code, or first a trial of it."""
        loaded.give_up = lambda reason: self.give_up(loaded, reason)
        self.made += 1
        tracing.look()
        found = self.general if extents == "general" else self.specializations
        if untried and extents != "general":
            self.untried[signature] = self.untried[loaded.native.signature] = loaded
        else:
            self.add_gate(loaded, extents)
        found[signature] = loaded  # what is found there has a gate that takes calls, or is tried out
        found[loaded.native.signature] = loaded

    def add_gate(self, loaded: Loaded, extents: Extents) -> None:
        """Let calls try a gate: before all others, but those to Python that last; the general one after the guarded."""
        target = self.instance if self.inner is None else self.inner
        gates = [gate for gate in gates_of(target) if gate is not loaded.gate]
        plain = [gate for gate in gates if isinstance(gate, Plain)]
        native = [gate for gate in gates if not isinstance(gate, Plain)]
        native = [*native, loaded.gate] if extents == "general" else [loaded.gate, *native]
        lasting = [gate for gate in plain if gate.is_lasting]
        install(target, [*lasting, *native, *(gate for gate in plain if gate not in lasting and gate.left > 0)])

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
            most = max(self.made, len(self.refused))
            self.refused.everything = most >= MAX_SPECIALIZATIONS or not _is_readable(self.function)
        self.tell_fallback(str(error), signature)
        return result

    def went_well(self, normal: tuple[Any, ...], signature: Signature | None = None) -> None:
        """Python has run a call without an exception, maybe the first of those like it, which then have another chance:
        what an operation gives can be seen now, and if they are refused again, the user is warned."""
        reason = None
        with self.after_python(), self.lock:
            reason = self.refused.went_well(normal, signature)
            if reason is not None:
                self.observed_runs.clear()
        if reason:
            self.tell_fallback(reason, signature)

    def tell_fallback(self, reason: str, signature: Signature | None) -> None:
        """Say that the calls with a signature run in Python: always in the log, for the first one in a warning."""
        if log_.isEnabledFor(logging.INFO):
            from parakeet_py.call.debug_log import tell_fallback

            tell_fallback(self.function, signature, reason)
        if self.fell_back is None:
            self.fell_back = reason
            text = f"{self.function.__qualname__} fell back to Python. {reason}"
            warnings.warn(FallbackWarning(text), stacklevel=user_level())

    def failure(self, error: Exception) -> UnsupportedError:
        """What a call is refused with on which the compiler has failed; what is no error of its own is raised."""
        if self.config().check or came_from_outside(error):
            raise error
        name = self.function.__qualname__
        log_.error("the compiler has failed on %s", name, exc_info=error)
        text = f"{name}: the compiler has failed ({type(error).__name__}: {error})"
        return UnsupportedError(text, self.function.__code__.co_filename)

    @contextmanager
    def after_python(self) -> Iterator[None]:
        """Python has run a call: what it gave is given, whatever becomes of the notes made of it in this block."""
        try:
            yield
        except Exception as error:
            if self.config().check or came_from_outside(error):
                raise
            log_.exception("the compiler has failed after a call of %s", self.function.__qualname__)

    def run_python(self, normal: tuple[Any, ...]) -> Any:
        """The plain Python function on a call in positional form."""
        args, named = python_form(self.function, normal)
        return self.function(*args, **named)

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

    def keep(self, compiled: Compiled, extents: Extents) -> None:
        """Remember a compilation; where the usual extents need no guard, they are all."""
        for which in EXTENTS if extents == "usual" and not compiled.passes.guarded else (extents,):
            self.compilations[compiled.call_signature, which] = compiled

    def kept(self, signature: Signature, extents: Extents) -> Compiled | None:
        """What has been compiled before for calls with a signature."""
        return self.compilations.get((signature, extents))

    @put_off()
    def compiled_for_normal(
        self, normal: tuple[Any, ...], extents: Extents = "both", signature: Signature | None = None
    ) -> Compiled:
        """`compiled_for` a call in positional form, whose signature may be known already (nothing is on devices then);
        by default for all extents."""
        if signature is None and some_live_elsewhere(normal):
            from parakeet_py.call.devices.calls import place_of, residents_of

            team = place_of(self, normal)
            if team is not None:
                with residents_of(self, normal, team):
                    return self.compiled_for_normal(normal, extents, self.signature(normal))
        with self.lock, held():
            if signature is None:
                signature = self.signature(normal)
            found = self.kept(signature, extents)
            if found is None:
                from parakeet_py.call.compile import compile_call
                from parakeet_py.typed_ir.specialize.restarts import NeedObservation

                try:
                    guess = signature in self.guessed
                    found = compile_call(self.function, normal, self.knowledge, self.config(), guess, extents)
                except NeedObservation as need:
                    raise NotObservedError.of(need.error, "call the function with such arguments first") from None
                self.keep(found, extents)
            return found

    def compiled_for_device(self, normal: tuple[Any, ...], signature: Signature | None = None) -> Compiled:
        """`compiled_for_normal` for a call on devices, which is refused where the compiler fails."""
        from parakeet_py.call.compile import for_devices

        with held():
            try:
                return for_devices(self.compiled_for_normal(normal, signature=signature))
            except (UnsupportedError, NoSourceError):
                raise
            except Exception as error:
                raise self.failure(error) from None


@lru_cache(maxsize=1)
def _devices() -> Any:
    """`hybrid.devices`, imported when a device is named; a statement would ask for it anew in every call."""
    from parakeet_py.hybrid.devices import selection

    return selection


def _would_be_the_same(compiled: Compiled, config: settings.Config) -> bool:
    """Whether compiling once more, under these settings, would give and show what has been compiled before.

    What is known of operations handed back to Python grows with every call, so code that has some is made anew.
    """
    of_code = ("contract", "fastmath", "libdevice", "stop_pass")
    same = all(getattr(compiled.config, name) == getattr(config, name) for name in of_code)
    same = same and bool(compiled.config.check) >= bool(config.check)  # the IRs have been checked
    specialization = compiled.specialization
    return same and not (config.print_passes or config.debug or specialization.opaque_sites or specialization.guessed)


def _is_readable(function: types.FunctionType) -> bool:
    """Can a frontend read a function at all?"""
    from parakeet_py.frontend import to_ssa_cached

    try:
        to_ssa_cached(function)
    except Exception:
        return False
    return True


def needs_its_frame(function: types.FunctionType) -> bool:
    """Does a function use `locals()` or the like, so that only Python itself can run it?"""
    from parakeet_py.frontend import to_ssa_cached
    from parakeet_py.frontend.evaluate.frames import reads_its_frame

    return reads_its_frame(to_ssa_cached(function))
