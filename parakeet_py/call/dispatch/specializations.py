"""The compiled code of one function: what is known of it, and the specializations that take its calls.

`Specializations` is what stands behind the entry stubs of a function: facts and observations (`load.Knowledge`), the
code that has been loaded or compiled for each signature, which stubs take calls in which order, and the signatures
whose calls Python runs.
"""

from __future__ import annotations

import os
import threading
import types
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from parakeet_py.base import config as settings
from parakeet_py.base.errors import MissingValue
from parakeet_py.base.frames import tracing
from parakeet_py.call import specialization_cache
from parakeet_py.call.dispatch.first_calls import FirstCalls
from parakeet_py.call.dispatch.tiers import is_outgrown
from parakeet_py.call.fallback_cache import Refusals
from parakeet_py.call.load import Knowledge, Loaded, call_signature, present, read_source
from parakeet_py.call.renting import Account, Trial
from parakeet_py.llvm.entry.callable_type import Plain, gates_of, install, set_slow
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.signature.attribute_sources import of_arguments
from parakeet_py.signature.facts import Facts
from parakeet_py.signature.specs import Signature, Source

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled, Extents
    from parakeet_py.call.handed_back import OpaqueCalls
    from parakeet_py.call.specialization_cache import Native

EXTENTS: tuple[Extents, ...] = ("both", "usual", "general")
MAX_SPECIALIZATIONS = 256  # of one function; each takes a good part of a megabyte and a second

# Compiling is one at a time: where it takes long it uses several CPUs by itself, and a process that forks meanwhile
# would leave its child with locks that no thread holds.
_compiling = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release
    )


class NotEarned(Exception):
    """There is no code on the disk, and calls have not cost enough yet to compile some."""


class DoneByPython(Exception):
    """A call does little else than what Python does for it: Python runs it as a whole."""


class Specializations(ABC):
    """The compiled code of one function."""

    def __init__(
        self, function: types.FunctionType, options: dict[str, Any], checked: bool, first: FirstCalls | None = None
    ) -> None:
        self.function = function
        self.options = options
        self.exact = settings.environment().exact or bool(options.get("exact"))  # the same, of NumPy's bits
        self.checked = checked  # is all machine code here checked? Calls under other settings go elsewhere
        self.configured: tuple[settings.Config | None, settings.Config | None] = None, None  # in force, with our own
        self.threads: int = options.get("threads") or 0
        self.knowledge = Knowledge()
        self.knowledge_read = False
        self.specializations: dict[Signature, Loaded] = {}
        self.general: dict[Signature, Loaded] = {}  # what runs where a guarded specialization lets a call pass
        self.compilations: dict[tuple[Signature, Extents], Compiled] = {}
        self.refused = Refusals()
        self.fell_back: str | None = None
        self.observing: set[Signature] = set()  # of calls that the evaluator is running now
        self.observed_runs: dict[Signature, int] = {}
        self.evaluated_for = 0.0  # seconds
        self.guessed: set[Signature] = set()  # compiled although some operation has never been reached
        self.watched: dict[Source, bool] = {}  # globals that operations handed back to Python must not replace; items?
        self.hands_back = False
        self.made = 0  # specializations, forgotten ones too
        self.account = Account(function, first)
        self.untried: dict[Signature, Loaded] = {}  # code that takes no calls before it has been compared with Python
        self.trials: dict[Signature, Trial] = {}
        self.lock = _compiling
        self.repeated: Any = None  # calls on arrays of devices that may come again, see `call.devices.call_cache`
        self.recorded: Any = None  # calls that are done from schedules, see `call.devices.recorded_calls`
        self.instance: Any = None
        self.inner: Any = None  # takes calls in positional form, for functions whose own calls are not

    @abstractmethod
    def slow(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call that no entry stub has taken."""

    def config(self) -> settings.Config:
        """The settings in force, changed by the decorator's own."""
        now = settings.current()
        if not self.options:
            return now
        base, config = self.configured
        if base is not now or config is None:
            config = settings.with_own(self.options)
            self.configured = now, config
        return config

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

    def is_patched(self) -> bool:
        """Has something that compiled code reads of a module been replaced, or may it have been?"""
        return bool(self.specializations or self.general) and self.look_at_patches() != "unchanged"

    def last_gate(self, signature: Signature) -> Loaded | None:
        """What a call with this signature meets last, before Python."""
        relaxed = Signature(signature.params, signature.hidden)
        for known in (signature, relaxed):
            found = self.general.get(known) or self.specializations.get(known)
            if found is not None:
                return found
        return None

    def takers(self, signature: Signature) -> list[Loaded]:
        """The specializations that a call with this signature may be given to, in order; none that is on trial."""
        relaxed = Signature(signature.params, signature.hidden)
        named = [known.get(one) for known in (self.specializations, self.general) for one in (signature, relaxed)]
        untried = [*self.untried.values()]
        return [one for one in dict.fromkeys(named) if one is not None and one not in untried]

    def is_used_up(self, known: Loaded, normal: Sequence[Any]) -> bool:
        """Does quick code take no more calls like this one?"""
        tier = known.native.quick
        if tier is None:
            return False
        hidden = known.native.signature.hidden
        values = [*normal, *(read_source(self.function, one.source, normal) for one in hidden)]
        return known.gate.left <= 0 or is_outgrown(tier, known.native.signature, values)

    def has_used_up_code(self) -> bool:
        """Is there quick code that takes no more calls, so that the next one has to have it optimised?"""
        return any(known.native.quick is not None and known.gate.left <= 0 for known in self.specializations.values())

    def replace(self, quick: Loaded, other: Loaded, extents: Extents) -> None:
        """Let other code, which is installed, take all calls of quick code."""
        found = self.general if extents == "general" else self.specializations
        found.update(dict.fromkeys(self.signatures_of(quick), other))
        self.made -= 1
        target = self.instance if self.inner is None else self.inner
        install(target, [gate for gate in gates_of(target) if gate is not quick.gate])

    def known_of(self, signature: Signature) -> dict[Any, Any]:
        """What operations of calls with a signature have given, as far as it is known."""
        return dict(self.knowledge.observed.get(signature.params, {}))

    def watch(self, hidden: Sequence[tuple[Source, bool]]) -> bool:
        """Watch these hidden arguments, and their items where that is asked for; False if all are watched already."""
        unwatched = {source: items for source, items in hidden if items > self.watched.get(source, -1)}
        self.watched |= unwatched
        return bool(unwatched)

    def watched_now(self) -> list[list[Any]]:
        from parakeet_py.frontend.evaluate.observed_values import with_items

        values = [(present(self.function, source), items) for source, items in self.watched.items()]
        return [with_items(value) if items else [value] for value, items in values]

    def signatures_of(self, loaded: Loaded) -> list[Signature]:
        """The signatures whose calls a specialization takes."""
        known = (*self.specializations.items(), *self.general.items())
        return list(dict.fromkeys(signature for signature, other in known if other is loaded))

    def is_full(self, refused: int = 0) -> bool:
        """Have so many signatures been compiled, or refused, that Python runs calls with further ones?"""
        return max(self.made, refused) >= MAX_SPECIALIZATIONS

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

    def has_stored(self) -> bool:
        """Has an earlier process left code of this function on the disk?"""
        if why_portable():
            return False
        return self.config().uses_disk and specialization_cache.load_knowledge(self.function) is not None

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

    def flags(self, config: settings.Config, extents: Extents) -> tuple[object, ...]:
        """What code depends on beside the function and the signature."""
        located = ("gdb",) if config.perf == "gdb" else ()
        return (config.contract, config.fastmath, config.exact, extents, self.checked, *located)

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
        self.leave_first_calls()
        found = self.general if extents == "general" else self.specializations
        if untried and extents != "general":
            self.untried[signature] = self.untried[loaded.native.signature] = loaded
        else:
            self.add_gate(loaded, extents)
        found[signature] = loaded  # what is found there has a gate that takes calls, or is tried out
        found[loaded.native.signature] = loaded

    def leave_first_calls(self) -> None:
        """Let the dispatcher get all calls that gates do not take."""
        if self.instance._slow != self.slow:
            set_slow(self.instance, self.slow)

    def add_gate(self, loaded: Loaded, extents: Extents) -> None:
        """Let calls try a gate: before all others, but those to Python that last; the general one after the guarded."""
        target = self.instance if self.inner is None else self.inner
        gates = [gate for gate in gates_of(target) if gate is not loaded.gate]
        plain = [gate for gate in gates if isinstance(gate, Plain)]
        native = [gate for gate in gates if not isinstance(gate, Plain)]
        native = [*native, loaded.gate] if extents == "general" else [loaded.gate, *native]
        lasting = [gate for gate in plain if gate.is_lasting]
        install(target, [*lasting, *native, *(gate for gate in plain if gate not in lasting and gate.left > 0)])

    def keep(self, compiled: Compiled, extents: Extents) -> None:
        """Remember a compilation; where the usual extents need no guard, they are all."""
        for which in EXTENTS if extents == "usual" and not compiled.passes.guarded else (extents,):
            self.compilations[compiled.call_signature, which] = compiled

    def kept(self, signature: Signature, extents: Extents) -> Compiled | None:
        """What has been compiled before for calls with a signature."""
        return self.compilations.get((signature, extents))
