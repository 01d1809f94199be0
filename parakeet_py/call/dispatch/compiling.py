"""Making the code of a function: a new signature is loaded from the disk, compiled, or has to be observed first."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parakeet_py.base import compiler_thread
from parakeet_py.base import config as settings
from parakeet_py.base.debug_log import log, shows_info
from parakeet_py.base.errors import NoSourceError, NotObservedError, UnsupportedError
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.gc_pause import put_off
from parakeet_py.base.interrupts import OutOfTime, came_from_outside, deadline, deferring
from parakeet_py.base.lazy_modules import loading, loads
from parakeet_py.call import specialization_cache
from parakeet_py.call.dispatch import tiers
from parakeet_py.call.dispatch.specializations import DoneByPython, NotEarned, Specializations
from parakeet_py.call.load import Loaded
from parakeet_py.call.pricing import compile_cost
from parakeet_py.hybrid.devices.device_detection import some_live_elsewhere
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.signature.positional import python_form
from parakeet_py.signature.specs import Signature

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled, Extents
    from parakeet_py.call.dispatch.signature_states import Decision
    from parakeet_py.call.handed_back import OpaqueCalls
    from parakeet_py.typed_ir.specialize.restarts import NeedObservation

MAX_OBSERVED_RUNS = 8  # calls of a signature that may pass without showing what some operation gives
LONGEST_EVALUATIONS = 2.0  # seconds of the calls of a function that are observed; then Python runs them


class Compiling(Specializations):
    """The compiled code of one function, and how it is made."""

    found: Decision | None = None  # what the next call of a signature does, found off the path of calls

    @put_off()
    def specialize(self, normal: tuple[Any, ...], signature: Signature, extents: Extents) -> Loaded | None:
        """Code for a call with a new signature, from the disk or compiled; None if calls must be observed first.

        First it is made for the `usual` extents; when a call turns up that has others, its `general` form.
        """
        from parakeet_py.llvm.runtime.object_layout import check_interpreter

        config = self.config()
        check_interpreter()
        if self.is_full():
            text = f"{self.function.__qualname__} has met {self.made} signatures; from now on, new ones run in Python"
            raise UnsupportedError(text, self.function.__code__.co_filename)
        runs = self.observed_runs.get(signature, 0)
        worth_it = runs < MAX_OBSERVED_RUNS and self.evaluated_for < LONGEST_EVALUATIONS
        hopeful = (
            runs <= MAX_OBSERVED_RUNS and self.evaluated_for < LONGEST_EVALUATIONS
        )  # else calls reach again and again what none of them shows
        start, before = compiler_thread.clock(), loading[0]
        loaded = self.load(signature, config, extents) if config.uses_disk and hopeful else None
        if loaded is not None:
            if config.debug or shows_info():
                from parakeet_py.call.debug_log import tell_loaded

                tell_loaded(self.function, signature, compiler_thread.clock() - start, config.debug)
            if config.pays:
                self.account.has_code(normal)
            return loaded
        if config.pays and self.account.only_loads():
            raise NotEarned
        from parakeet_py.typed_ir.specialize.restarts import NeedObservation

        with loads():
            import parakeet_py.call.compile  # noqa: F401
        waits = in_vain = False
        size = self.account.code_size()
        try:
            guess = runs > 0 and hopeful and not needs_its_frame(self.function)
            with deadline(self.account.longest if config.pays else None):
                loaded = self.compile(normal, config, extents, guess)
            waits = loaded is None
            return loaded
        except OutOfTime:
            in_vain = True
            compile_cost.learn(size, 1e9 * (compiler_thread.clock() - start - (loading[0] - before)))
            if self.account.longest < self.account.most / 1e9:
                raise NotEarned from None
            text = (
                f"compiling {self.function.__qualname__} takes over {self.account.longest:.3g} s; its calls take less"
            )
            raise UnsupportedError(text, self.function.__code__.co_filename) from None
        except NeedObservation as need:
            self.observed_runs[signature] = runs + 1
            if not worth_it or needs_its_frame(self.function):
                in_vain = True
                raise need.error from None
            waits = True
        except Exception:
            in_vain = True
            raise
        finally:
            self.account.has_waited(1e9 * (compiler_thread.clock() - start), 1e9 * (loading[0] - before))
            if config.pays and not waits:
                self.account.close(in_vain)
        return None

    def load(self, signature: Signature, config: settings.Config, extents: Extents) -> Loaded | None:
        """Install what an earlier process has left on the disk for a signature."""
        from parakeet_py.llvm.engine.object_loader import LoadError

        if why_portable():
            return None
        flags = self.flags(config, extents)
        state = None
        native = specialization_cache.load(self.function, signature, flags)
        if native is not None and native.quick and not tiers.has_tiers(config):
            return None
        if native is None:
            if config.strict or not specialization_cache.is_kept(self.function, signature, flags, "observed"):
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
                exact=self.exact,
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

        start = compiler_thread.clock() - loading[0]  # modules are imported once for all
        if why_portable():
            return self.compile_portably(normal, config, extents, guess, start)
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
        limits = tiers.limits_of(compiled, normal) if tiers.has_tiers(config) and not self.checked else None
        native = make_native(compiled, self.checked, limits)
        if config.pays:
            self.account.has_compiled(normal, 1e9 * (compiler_thread.clock() - loading[0] - start))
        if config.debug or shows_info():
            from parakeet_py.call.debug_log import tell_compiled

            tell_compiled(compiled, config.debug, self.checked)
        signature = compiled.call_signature
        state = None
        if compiled.specialization.opaque_sites or compiled.specialization.guessed:
            from parakeet_py.call.give_back import kept_arguments
            from parakeet_py.call.handed_back import HandedBack, OpaqueCalls

            state = OpaqueCalls(
                self.function, signature.params, HandedBack.by(compiled, bool(kept_arguments(compiled))), self.knowledge
            )
        loaded = Loaded(
            self.function,
            native,
            self.slow,
            compiled.times,
            threads=self.threads,
            state=state,
            checked=self.checked,
            exact=self.exact,
        )
        self.keep(compiled, extents)
        if state is not None:
            self.hand_back(loaded, state, signature)
        self.install(loaded, signature, extents, config.pays)
        if config.uses_disk:
            self.store(compiled, native, state, self.flags(config, extents))
        return loaded

    def compile_portably(
        self, normal: tuple[Any, ...], config: settings.Config, extents: Extents, guess: bool, start: float
    ) -> Loaded | None:
        """`compile`, begun at a time, where calls take the portable entry."""
        from parakeet_py.call.compile import compile_call, runs_in_python
        from parakeet_py.call.dispatch.portable_entry import PortableLoaded

        compiled = compile_call(self.function, normal, self.knowledge, config, guess, extents)
        if runs_in_python(compiled):
            raise DoneByPython
        loaded = PortableLoaded(self, compiled)
        if config.pays:
            self.account.has_compiled(normal, 1e9 * (compiler_thread.clock() - loading[0] - start))
        if config.debug or shows_info():
            from parakeet_py.call.debug_log import tell_compiled

            tell_compiled(compiled, config.debug, self.checked)
        self.keep(compiled, extents)
        self.install(loaded, compiled.call_signature, extents, config.pays)
        return loaded

    def optimize(self, normal: tuple[Any, ...], signature: Signature) -> None:
        """Let optimised code take the place of the quick code of a signature, once calls have used that up."""
        quick = self.last_gate(signature)
        assert quick is not None
        extents: Extents = "general" if quick in self.general.values() else "usual"
        config = replace(self.config(), tiers=False)
        loaded = self.load(signature, config, extents) if config.uses_disk else None
        loaded = loaded or self.compile(normal, config, extents, False)
        assert loaded is not None  # nothing has to be observed where there was quick code
        self.replace(quick, loaded, extents)

    def left_off(self) -> Sequence[tuple[Any, Any]] | Callable[[Sequence[Any]], Any] | None:
        """What the present call has done already, or what does the rest of it, if compiled code has given it up
        half-way."""
        from parakeet_py.call.handed_back import take_log

        return take_log(self.knowledge)

    def has_left_off(self) -> bool:
        """Has compiled code given up the present call half-way?"""
        from parakeet_py.call.handed_back import has_log

        return self.hands_back and has_log(self.knowledge)

    @hidden
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

    # ---- when it pays ------------------------------------------------------------------------------------------------

    def may_keep_closures(self) -> bool:
        """Does the function make others that Python has to make, as unknown code may keep them?"""
        from parakeet_py.frontend import to_ssa_cached
        from parakeet_py.frontend.evaluate.kept_closures import may_keep

        return may_keep(to_ssa_cached(self.function), self.function)

    def cpus(self) -> int:
        """How many CPUs calls and the compiler may use at once."""
        return min(self.config().thread_count, settings.available_cpus())

    def goes_on(self, normal: tuple[Any, ...]) -> bool:
        """Does a call run in Python while it is compiled?"""
        config = self.config()
        return config.pays and config.background and not sys.is_finalizing() and self.account.goes_on(normal)

    def has_found(self, decision: Decision) -> None:
        """What is to be done with the next call has been found off the path of calls."""
        self.found = decision
        self.account.close_gates()
        self.account.asks = True

    def found_for(self, signature: Signature) -> Decision | None:
        """What has been found off the path to be done with a call, if it has the signature."""
        found, self.found, self.account.asks = self.found, None, False
        return found if found is not None and found.signature == signature else None

    def failure(self, error: Exception) -> UnsupportedError:
        """What a call is refused with on which the compiler has failed; what is no error of its own is raised."""
        if self.config().check or came_from_outside(error):
            raise error
        name = self.function.__qualname__
        log.error("the compiler has failed on %s", name, exc_info=error)
        text = f"{name}: the compiler has failed ({type(error).__name__}: {error})"
        return UnsupportedError(text, self.function.__code__.co_filename)

    @put_off()
    def compiled_for_normal(
        self, normal: tuple[Any, ...], extents: Extents = "both", signature: Signature | None = None
    ) -> Compiled:
        """`compiled_for` a call in positional form, whose signature may be known already (nothing is on devices then);
        by default for all extents."""
        if signature is None and some_live_elsewhere(normal):
            from parakeet_py.call.devices.calls import place_of, residents_of

            own: Any = self  # all of a dispatcher
            team = place_of(own, normal)
            if team is not None:
                with residents_of(own, normal, team):
                    return self.compiled_for_normal(normal, extents, self.signature(normal))
        with self.lock, deferring():
            if signature is None:
                signature = self.signature(normal)
            found = self.kept(signature, extents)
            if found is None:
                from parakeet_py.call.compile import compile_call
                from parakeet_py.llvm.runtime.object_layout import check_interpreter
                from parakeet_py.typed_ir.specialize.restarts import NeedObservation

                check_interpreter()
                try:
                    guess = signature in self.guessed
                    found = compile_call(self.function, normal, self.knowledge, self.config(), guess, extents)
                except NeedObservation as need:
                    raise self.not_observed(need) from None
                self.keep(found, extents)
            return found

    def not_observed(self, need: NeedObservation) -> NotObservedError:
        """The error of what cannot be compiled before a call has been seen."""
        pays = ", under options(when='now'): calls run in Python until compiling pays" if self.config().pays else ""
        return NotObservedError.of(need.error, f"call the function with such arguments first{pays}")

    def compiled_for_device(self, normal: tuple[Any, ...], signature: Signature | None = None) -> Compiled:
        """`compiled_for_normal` for a call on devices, which is refused where the compiler fails."""
        found = None if signature is None else self.kept(signature, "both")
        if found is not None and not found.typed.procedures and not found.specialization.looks:
            return found
        from parakeet_py.call.compile import for_devices

        with deferring():
            try:
                return for_devices(found or self.compiled_for_normal(normal, signature=signature))
            except (UnsupportedError, NoSourceError):
                raise
            except Exception as error:
                raise self.failure(error) from None


def _would_be_the_same(compiled: Compiled, config: settings.Config) -> bool:
    """Whether compiling once more, under these settings, would give and show what has been compiled before.

    What is known of operations handed back to Python grows with every call, so code that has some is made anew.
    """
    of_code = ("contract", "fastmath", "exact", "libdevice", "stop_pass")
    same = all(getattr(compiled.config, name) == getattr(config, name) for name in of_code)
    same = same and bool(compiled.config.check) >= bool(config.check)  # the IRs have been checked
    specialization = compiled.specialization
    return same and not (config.print_passes or config.debug or specialization.hands_back)


def needs_its_frame(function: types.FunctionType) -> bool:
    """Does a function use `locals()` or the like, so that only Python itself can run it?"""
    from parakeet_py.frontend import to_ssa_cached
    from parakeet_py.frontend.evaluate.frames import reads_its_frame

    return reads_its_frame(to_ssa_cached(function))
