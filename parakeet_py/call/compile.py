"""From a call to object code: the stages in the order they run, for one signature.

`compile_call` runs the stages: specialize (walks of the specializer until one misses no fact), passes, lower to Imp.
`make_native` goes on to object code. A `Compiled` keeps what each stage made, for `explain()`, the text functions and
the interpreters. What the compiler computes with constants gives no warnings about numbers: those of the call come
when it runs.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base.errors import (
    MemorySafetyError,
    UnsupportedError,
    name_of_exception,
    source_excerpt,
)
from parakeet_py.base.exact_loops import exact
from parakeet_py.base.interrupts import poll
from parakeet_py.call import library_ir_cache
from parakeet_py.call.compiled import Compiled, Extents
from parakeet_py.call.dispatch.tiers import budget_of, may_restart
from parakeet_py.call.give_back import (
    checks_of_no_return,
    kept_arguments,
    may_be_undone,
    places_of_late_checks,
    rerun_statuses,
    site_of_no_return,
    values_of,
)
from parakeet_py.call.load import Knowledge, call_signature, can_be_static, extended_signature, read_source
from parakeet_py.call.specialization_cache import FailureText, Native, Tier
from parakeet_py.frontend import keep_with, ssa, to_ssa_cached
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.function import lower
from parakeet_py.imp.schedule.effects import checks_before_effects
from parakeet_py.imp.schedule.host_loops import starts_only
from parakeet_py.imp.schedule.loop_branches import branches_alike
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.llvm.safety.faults import FAULT
from parakeet_py.llvm.safety.sites import Site
from parakeet_py.messages.arrays import with_array_named
from parakeet_py.signature import patches
from parakeet_py.signature.facts import (
    Fact,
    Facts,
    ItemsOfLists,
    KnownValue,
    ObjectsInList,
    Place,
    ValuesOfStrings,
    WholeList,
)
from parakeet_py.signature.positional import parameter_names
from parakeet_py.signature.results import sets_attributes
from parakeet_py.signature.specs import (
    MAX_ITEMS,
    FunctionSpec,
    ListSpec,
    Signature,
)
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.inlining import inlined
from parakeet_py.typed_ir.numerics import computes
from parakeet_py.typed_ir.passes.checks.small_ints import are_small, require_small_ints
from parakeet_py.typed_ir.passes.loops.signal_polls import without_polls
from parakeet_py.typed_ir.pipeline import PassReport, run_passes
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.specialize.instances import instance_columns
from parakeet_py.typed_ir.specialize.opaque.sites import seldom_sites
from parakeet_py.typed_ir.specialize.profitability import does_little_else
from parakeet_py.typed_ir.specialize.restarts import (
    NeedObservation,
    PythonMakesInstances,
    RecordsNeeded,
    RecordsOfPython,
    Restart,
)
from parakeet_py.typed_ir.specialize.specializer import Specialization, Specializer

if TYPE_CHECKING:
    from parakeet_py.llvm.codegen.module import GeneratedCode

keep_with(library_ir_cache)
MAX_WALKS = 64
MOST_CONTINUED = 64  # checks that Python goes on after
LLVM_SECONDS = 1.5e-6  # of CPU time at least that LLVM's optimization takes for a character of its text
CHECKED_LEVEL = 0  # of LLVM's optimization: checked code need not be fast, but there is much of it


def specialize_call(
    untyped: ssa.Function,
    function: FunctionType,
    args: Sequence[Any],
    knowledge: Knowledge,
    strict: bool = False,
    guess: bool = False,
    continued: Container[ssa.Pos] = (),
    polls: bool = False,
) -> Specialization:
    """Specialize for a call: walk the function until a walk finds no fact that it would have had to know before."""
    extended = partial(extended_signature, function, args, knowledge.facts)
    for _ in range(MAX_WALKS):
        signature = call_signature(function, args, knowledge)
        facts = knowledge.about(signature)
        observed = knowledge.observed.get(signature.params, {})
        walk = Specializer(untyped, function, signature, facts, observed, extended, strict, guess, continued, polls)
        try:
            made = walk.specialize()
        except Restart as restart:
            wanted = [_instead(fact, signature, args) for fact in restart.facts]
            knowledge.add(signature, walk.facts.learned)
            if not knowledge.add(signature, wanted):
                raise walk.missing(restart.what) from None
            for fact in wanted:
                _check_known(fact, restart.what, function, args, untyped)
        except (UnsupportedError, NeedObservation) as error:
            knowledge.add(signature, walk.facts.learned)
            retreat = _retreat(error, walk, args)
            if not knowledge.add(signature, retreat):
                raise _refusal(error, facts, function, args) from None
            if any(isinstance(fact, PythonMakesInstances) for fact in retreat) and not (strict or guess):
                _need_instances(walk)
        else:
            knowledge.add(signature, walk.facts.learned)
            return made
    raise UnsupportedError(f"{function.__name__} depends on too many values")


def _instead(fact: Fact, signature: Signature, args: Sequence[Any]) -> Fact:
    """The fact to add where one is missing: of a short list it is enough to know the items one by one."""
    if isinstance(fact, KnownValue | WholeList) and _reads_short_lists(signature, args, fact.place):
        return ItemsOfLists(long=False)
    return fact


def _check_known(fact: Fact, what: str, function: FunctionType, args: Sequence[Any], untyped: ssa.Function) -> None:
    """Refuse a call one of whose arguments has to be known, but is of a type that no signature has by value."""
    if isinstance(fact, KnownValue):
        value = args[fact.place] if isinstance(fact.place, int) else read_source(function, fact.place, args)
        if not can_be_static(value):
            raise UnsupportedError(what, untyped.filename)


def _retreat(error: UnsupportedError | NeedObservation, walk: Specializer, args: Sequence[Any]) -> list[Fact]:
    """Facts with which there is less to compile, for a walk that has failed: without instances, then without lists as
    arrays, strings as arrays, and functions that are not known by value."""
    if isinstance(error, NeedObservation):  # what is handed back may be compiled with items that are known one by one
        return [ItemsOfLists(long=False)] if _reads_short_lists(walk.arguments.signature, args) else []
    if isinstance(error, RecordsNeeded):
        return [RecordsOfPython(error.site)]
    params = walk.arguments.signature.params
    if lists := instance_columns.lists(walk.arguments.signature):
        return [ObjectsInList(place) for place in lists]
    if walk.instances.first is not None:
        return [PythonMakesInstances(error)]
    if _reads_short_lists(walk.arguments.signature, args):
        return [ItemsOfLists(long=False)]
    if any(isinstance(spec, ListSpec) for spec in (*params, *(one.spec for one in walk.arguments.signature.hidden))):
        return [ItemsOfLists(long=True)]  # Python may do what compiled code cannot, with the lists themselves
    if walk.facts.known.texts:
        return [ValuesOfStrings()]
    if short := instance_columns.short_lists(walk.arguments.signature):
        return [WholeList(place) for place in short]
    return [KnownValue(place) for place, spec in enumerate(params) if isinstance(spec, FunctionSpec)]


def _need_instances(walk: Specializer) -> None:
    """Raise what the next walk would, in which Python makes the instances, if no call has shown yet what they are."""
    key = walk.instances.first
    if key is not None and walk.python.observed.find(key) is None:
        reason = "an object that Python makes"
        raise NeedObservation(key, reason, walk.unsupported(f"{reason}, and no call has shown yet what it gives"))


def _refusal(
    error: UnsupportedError | NeedObservation, facts: Facts, function: FunctionType, args: Sequence[Any]
) -> Exception:
    """The error that the user gets."""
    if isinstance(error, NeedObservation):
        return error
    first = [one.error for one in facts.of(PythonMakesInstances)]
    return with_array_named((first or [error])[0], parameter_names(function.__code__), args)


def _reads_short_lists(signature: Signature, args: Sequence[Any], place: Place | None = None) -> bool:
    """Is the length of a list left open (of the one in parameter `place`, if it is given) that need not be?"""
    return any(
        isinstance(spec, ListSpec) and len(value) <= MAX_ITEMS and place in (None, index)
        for index, (spec, value) in enumerate(zip(signature.params, args, strict=True))
    )


@np.errstate(all="ignore")
def compile_call(
    function: FunctionType,
    args: Sequence[Any],
    knowledge: Knowledge,
    config: settings.Config,
    guess: bool = False,
    extents: Extents = "both",
) -> Compiled:
    """Everything up to Imp for the signature of a call.

    With `guess`, code that reaches an operation of unknown result type is compiled to give up; only a function that has
    done nothing until then that shows outside can be compiled like that. `extents` is that of `run_passes`; a function
    that hands operations back to Python, and may be entered again after one, is always compiled for all.

    Raises
    ------
    UnsupportedError
        The function cannot be compiled for these arguments.
    NeedObservation
        What an operation handed back to Python gives is not known.
    """
    times: dict[str, float] = {}
    continued: frozenset[ssa.Pos] = frozenset()
    if knowledge.continued:  # the code is made anew, as operations have given something else
        continued = knowledge.continued.get(call_signature(function, args, knowledge).params, continued)
    begun_again: Compiled | None = None  # where nothing is continued
    while True:
        made = _compiled(function, args, knowledge, config, guess, extents, continued, times)
        begun_again = begun_again if continued else made
        late = places_of_late_checks(made)
        if late <= continued or len(continued) > MOST_CONTINUED or made.specialization.assigns:
            break
        if not continued and extents == "usual":
            small = _of_small_ints(made, args)
            if small is not None:
                return small
        continued |= late
        knowledge.continued[made.specialization.signature.params] = continued
    undone = replace(made, overflows_late=True, kept=None)
    if not late:
        return made
    if not may_be_undone(undone):
        lost = checks_of_no_return(made)
        if lost and not made.specialization.assigns:
            place, what = lost[0]
            raise UnsupportedError.at(made.untyped, place, f"{what}, where Python could not take the call over")
        return made
    if continued:  # a call is either begun again or continued, whichever check fails
        if begun_again is None or begun_again.signature != made.signature:  # more is known by now
            begun_again = _compiled(function, args, knowledge, config, guess, extents, frozenset(), times)
        undone = replace(begun_again, overflows_late=True, kept=None)
    return undone


def _of_small_ints(made: Compiled, args: Sequence[Any]) -> Compiled | None:
    """The same for ints that are small, which is checked on entry, if nothing then has to be found out later."""
    if made.specialization.opaque_sites or made.specialization.guessed or not are_small(values_of(made, args)):
        return None
    function = require_small_ints(made.unfused)
    if function is made.unfused:
        return None
    clock, passes = Clock(made.times), PassReport()
    typed = run_passes(function, made.config, passes, "usual")
    passes.guarded = True
    clock.done("passes")
    small = replace(made, typed=typed, imp=_loops(typed, made.config), passes=passes, kept=None)
    clock.done("lower")
    return None if places_of_late_checks(small) else small


def compile_alone(
    function: FunctionType, args: Sequence[Any], knowledge: Knowledge, config: settings.Config
) -> Compiled:
    """The same for code that runs without Python: for all extents, and what only Python can go on with ends a call."""
    return _compiled(function, args, knowledge, config, False, "both", frozenset(), {}, alone=True)


def _compiled(
    function: FunctionType,
    args: Sequence[Any],
    knowledge: Knowledge,
    config: settings.Config,
    guess: bool,
    extents: Extents,
    continued: frozenset[ssa.Pos],
    times: dict[str, float],
    alone: bool = False,
) -> Compiled:
    """The same, where Python goes on if checks at the places `continued` fail."""
    clock = Clock(times)
    untyped = to_ssa_cached(function)
    clock.done("frontend")
    token = exact.set(config.exact)
    polls = not alone and config.on_cpu and not why_portable()
    try:
        specialization = specialize_call(untyped, function, args, knowledge, config.strict, guess, continued, polls)
    finally:
        exact.reset(token)
    signature = specialization.signature
    specialization.signature = _relaxed(specialization)
    clock.done("specialize")
    passes = PassReport()
    whole = bool(specialization.opaque_sites or specialization.guessed)
    typed = run_passes(specialization.function, config, passes, "both" if whole else extents)
    clock.done("passes")
    lowered = _loops(typed, config)
    if specialization.guessed:
        early = checks_before_effects(lowered)
        codes = (code for code, site in enumerate(lowered.failures) if site.failure.exception == "Deoptimize")
        if any(code not in early for code in codes):
            raise specialization.guessed[0]
    clock.done("lower")
    made = Compiled(function, untyped, signature, specialization, typed, lowered, config, passes, times)
    lost = site_of_no_return(made)
    if lost is not None:
        raise UnsupportedError.at(untyped, lost.key[-2], f"{lost.reason}, where Python could not take the call over")
    if specialization.assigns and not set(range(1, len(lowered.failures))) <= set(rerun_statuses(made)):
        raise UnsupportedError("exceptions after an assignment to an attribute", untyped.filename)
    return made


def _loops(typed: ir.Function, config: settings.Config) -> imp.Function:
    """A function as Imp, looked at by the checker if the settings say so."""
    lowered = lower(typed, config)
    if config.check:
        from parakeet_py.imp.check import check_function as check_imp

        check_imp(lowered)
    return lowered


def _relaxed(specialization: Specialization) -> Signature:
    """The signature without what does not matter: overlap, where nothing of the pair is ever written."""
    signature = specialization.signature
    stored = specialization.stored_params
    pairs = tuple(pair for pair in signature.pairs if pair[0] in stored or pair[1] in stored)
    if pairs == signature.pairs:
        return signature
    if signature.disjoint or not pairs:
        return Signature(signature.params, signature.hidden, True, pairs)
    return signature


def runs_in_python(compiled: Compiled) -> bool:
    """Does a call do so little beside what it hands back that Python is faster as a whole?"""
    sites = compiled.specialization.opaque_sites
    return bool(sites) and does_little_else(compiled.typed, seldom_sites(sites))


@np.errstate(all="ignore")
def for_devices(compiled: Compiled) -> Compiled:
    """A specialization without calls of the library's procedures, and without looks at signals, which devices do not
    know."""
    done = compiled.specialization
    if not done.looks and not any(one.library for one in compiled.typed.procedures):
        return compiled
    if compiled.written_out is None:
        function = inlined(compiled.unfused)
        if done.looks:
            function = replace(function, body=without_polls(function.body))
            done = replace(done, function=function, opaque_sites=done.opaque_sites if done.hands_back else ())
        typed = run_passes(function, compiled.config)
        lowered = lower(typed, compiled.config)
        compiled.written_out = replace(compiled, specialization=done, typed=typed, imp=lowered, kept=None)
    return compiled.written_out


class Clock:
    """Adds up the seconds of stages."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times = times
        self.start = time.perf_counter()

    def done(self, stage: str) -> None:
        """Everything since the last mark was this stage."""
        now = time.perf_counter()
        self.times[stage] = self.times.get(stage, 0.0) + now - self.start
        self.start = now


@np.errstate(all="ignore")
def generate_llvm(
    compiled: Compiled, checked: bool | None = None, limits: Mapping[int, int] | None = None
) -> tuple[str, GeneratedCode]:
    """The LLVM IR text of the compiled function and its gate, before optimization, and what the function needs.

    It is `checked` as the settings it was compiled for say, if that is not given. With `limits`, the gate takes calls
    as that of quick code does.
    """
    from parakeet_py.llvm.codegen.builder import Locations
    from parakeet_py.llvm.codegen.module import generate
    from parakeet_py.llvm.engine import compiler
    from parakeet_py.llvm.entry.stub_text import gate_ir

    config = compiled.config
    checked = config.checked if checked is None else checked
    located = Locations(compiled.untyped.filename, "FullDebug") if config.perf == "gdb" else None
    code = generate(
        compiled.imp,
        compiler.host(),
        contract=config.contract,
        fastmath=config.fastmath,
        checked=checked,
        locations=located,
        clocks=clocks_of(compiled),
    )
    gate = gate_ir(
        compiled.signature,
        compiled.specialization.result,
        code.entry,
        "gate",
        has_state=bool(compiled.specialization.opaque_sites or compiled.specialization.guessed),
        rerun=rerun_statuses(compiled),
        kept=kept_arguments(compiled),
        recursive=not all(one.library for one in compiled.imp.procedures),
        numeric=computes(compiled.typed),
        warns=_warns(compiled),
        watched=len(patches.modules_of(compiled.specialization.module_reads)),
        checked=checked,
        limits=limits,
        lends=compiled.specialization.hands_back,
        restarts=limits is not None and may_restart(compiled),
    )
    symbols = (*code.symbols, *patches.as_symbols(compiled.specialization.module_reads))
    return code.text + "\n" + gate, replace(code, symbols=symbols)


def clocks_of(compiled: Compiled) -> tuple[int, int, int] | None:
    """Where a function whose kernels are timed finds the time, which time that is (of one thread, its own), and the
    table that it keeps."""
    if not compiled.imp.timed:
        return None
    from parakeet_py.llvm.codegen.control import WORDS_OF_KERNEL
    from parakeet_py.llvm.engine import c_symbols

    if compiled.clocked is None:
        compiled.clocked = array("q", bytes(8 * WORDS_OF_KERNEL * len(compiled.imp.timed)))
    clock = c_symbols.resolve("clock_gettime")
    if clock is None:
        raise UnsupportedError("kernels are timed by clock_gettime, which is not here", compiled.untyped.filename)
    own = getattr(time, "CLOCK_THREAD_CPUTIME_ID", 1) if compiled.config.thread_count == 1 else 1
    which = own if own != 1 else getattr(time, "CLOCK_MONOTONIC", 1)
    return clock, which, compiled.clocked.buffer_info()[0]


def _warns(compiled: Compiled) -> bool:
    """May Python run a call once more, after it has set floating-point flags? Nothing of it may show outside."""
    from parakeet_py.llvm.runtime.error_state import HAS_FLAGS

    done = compiled.specialization
    shows = done.stored_params or done.hands_back or sets_attributes(done.result)
    return HAS_FLAGS and computes(compiled.typed) and not shows


def make_native(compiled: Compiled, checked: bool = False, limits: Mapping[int, int] | None = None) -> Native:
    """Object code for a specialization, `checked` or not; with `limits`, it is made quickly."""
    from parakeet_py.llvm.engine import compiler as engine

    clock = Clock(compiled.times)
    poll()
    text, code = generate_llvm(compiled, checked, limits)
    clock.done("generate")
    poll(LLVM_SECONDS * len(text) if limits is None else 0)
    whole = compiled.config.perf == "gdb"
    most = 1 if whole else min(compiled.config.thread_count, settings.available_cpus())
    effort: dict[str, Any] = {"level": CHECKED_LEVEL, "vectorize": False} if checked else {}
    if not (checked or whole or limits is not None):
        effort |= {"starts_only": starts_only(compiled.imp), "copies_loops": branches_alike(compiled.imp)}
    object_bytes = engine.compile_divided(text, most, code.library, quick=limits is not None, **effort)
    quick = None if limits is None else Tier(budget_of(text), dict(limits))
    clock.done("llvm")
    result = compiled.specialization.result
    failures = failures_of(compiled)
    if checked:
        sites = (*code.sites, Site("results", _place_of_results(compiled.untyped)))  # gates take the last one
        failures = (*failures, *(_unsafe(compiled, site) for site in sites))
    return Native(object_bytes, compiled.signature, result, failures, code.symbols, compiled.passes.guarded, quick)


def _place_of_results(untyped: ssa.Function) -> ssa.Pos:
    """Where a function makes its last value; where it begins, if it makes none."""
    places = [let.pos for let in untyped.statements()]
    return places[-1] if places else ssa.Pos(untyped.first_line, 0, untyped.first_line, 0)


def _unsafe(compiled: Compiled, site: Site) -> FailureText:
    """What a failed check of checked machine code raises."""
    untyped = compiled.untyped
    place, trace = untyped.filename, entries(site.pos)
    if site.pos is not None:
        place = source_excerpt(untyped, site.pos)
    if trace and trace[-1].filename != untyped.filename:
        place = ", called by ".join(f"{one.filename}:{one.line}" for one in reversed(trace))
    message = f"{site.operation}: {{0}}: {place.replace('{', '{{').replace('}', '}}')}"
    return FailureText(name_of_exception(MemorySafetyError) or "", message, FAULT, place, trace)


def failures_of(compiled: Compiled) -> tuple[FailureText, ...]:
    """What the statuses of the compiled function stand for."""
    library = {one.name: one for one in compiled.imp.procedures if one.library}
    formats: dict[int, str] = {}

    def read(body: imp.Block, first: int) -> None:
        for statement in imp.walk(body):
            if isinstance(statement, imp.Check):
                kinds = [ir.dtype_of(arg) for arg in statement.args]
                formats[first + statement.failure] = "".join("f" if kind.startswith("float") else "i" for kind in kinds)
            elif isinstance(statement, imp.Call) and statement.procedure in library:
                read(library[statement.procedure].body, first + statement.failure)

    for body in [compiled.imp.body, *(one.body for one in compiled.imp.procedures if not one.library)]:
        read(body, 0)
    return tuple(
        FailureText(
            site.failure.exception,
            site.failure.message,
            formats.get(code, ""),
            source_excerpt(compiled.untyped, site.pos) if site.failure.exception == "Deoptimize" else "",
            entries(site.pos),
        )
        for code, site in enumerate(compiled.imp.failures)
    )
