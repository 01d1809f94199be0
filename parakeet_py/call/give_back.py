"""Calls that compiled code gives back to Python: what is undone, what is done again, what is raised.

Compiled code, on whatever runs it, may find that only Python can go on with a call: an int has left 64 bits, a value
has another type than was taken for granted, an operation handed back to Python has given something new. If nothing of
the call shows outside, or all that does can be undone (the contents of `kept_arguments` are put back), Python begins
the call again. Else, if nothing but operations handed back has happened, the evaluator goes through the call with what
these have given (`Log`). Else the exception is raised.

The rules are the same for all: the entry stub has them as the statuses after which it calls Python
(`rerun_statuses`), interpreters and devices run compiled code by `run_compiled`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from parakeet_py.base.errors import HOLD_ALWAYS, DeoptimizedError
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import in_frames
from parakeet_py.call.compiled import Compiled
from parakeet_py.call.load import present, read_source
from parakeet_py.frontend import to_ssa_cached
from parakeet_py.frontend.evaluate.observed_values import Raised, contents, differ, with_items
from parakeet_py.frontend.ssa import Block, Let, Pos, blocks_of
from parakeet_py.imp import ir as imp
from parakeet_py.imp.schedule.effects import (
    checks_before_effects,
    shows_in_arguments_only,
    sites_after_stores,
    stores_only_into_its_own,
)
from parakeet_py.llvm.runtime.call_context import OPAQUE_AGAIN, OPAQUE_REST
from parakeet_py.llvm.runtime.watched_lists import WatchedLists
from parakeet_py.signature.attribute_sources import store_field
from parakeet_py.signature.object_assembly import ContainerT, Recipe, assembler
from parakeet_py.signature.results import Leaving, array_of_numpy, assemble
from parakeet_py.signature.specs import ArraySpec, Signature, Source, leaf_values, leaves, stand_in
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.semantics import OVERFLOW
from parakeet_py.typed_ir.specialize.observed import accepts, observed_spec
from parakeet_py.typed_ir.specialize.opaque.result_leaves import no_leaves, result_leaves_of
from parakeet_py.typed_ir.specialize.opaque.sites import (
    CONTINUE,
    EXIT,
    OpaqueSite,
    can_be_replayed,
    caught_by,
    is_harmless,
    is_logged,
    may_not_go_on,
)

Undo = Callable[[], None]

# ---- the rules -------------------------------------------------------------------------------------------------------

_PYTHON_RUNS = ("Deoptimize", GENERAL.exception)


def rerun_statuses(compiled: Compiled) -> tuple[int, ...]:
    """The statuses after which Python runs the call instead: nothing has happened yet that could be seen.

    What has been stored into `kept_arguments` is undone. Exceptions of NumPy's functions are left to these themselves,
    because of their messages, but not where Python would have to go through loops again.
    """
    quick = not compiled.specialization.has_loops
    codes = [
        code
        for code, failure in enumerate(site.failure for site in compiled.imp.failures)
        if (compiled.specialization.assigns and code)
        or failure.exception in _PYTHON_RUNS
        or failure.message == OVERFLOW
        or (failure.of_library and quick)
    ]
    if codes and not may_be_undone(compiled):
        early = checks_before_effects(compiled.imp, _harmless(compiled))
        codes = [code for code in codes if code in early]
    return (*codes, OPAQUE_AGAIN, OPAQUE_REST) if compiled.specialization.opaque_sites else tuple(codes)


def kept_arguments(compiled: Compiled) -> tuple[int, ...]:
    """The arguments (leaf positions) whose contents are kept during a call.

    What is read-only changes at most by way of an argument that overlaps it and is not.
    """
    if compiled.kept is None:
        stored = compiled.specialization.stored_params if may_be_undone(compiled) else ()
        specs = enumerate(leaf.spec for leaf in leaves(compiled.signature)) if stored else ()
        compiled.kept = tuple(at for at, spec in specs if at in stored and _is_writeable(spec))
    return compiled.kept


def _is_writeable(spec: object) -> bool:
    return isinstance(spec, ArraySpec) and spec.writeable


def may_be_undone(compiled: Compiled) -> bool:
    """May Python begin a call again that compiled code has given up half-way, with `kept_arguments` as they were?

    That is so where compiled code may find, after it has stored into arguments, that only Python knows how to go on,
    and nothing else shows of what it has done. Ints that leave 64 bits are a reason only where Python cannot go on
    then: that is rare, and copies cost time.
    """
    return not gives_up_early(compiled) and shows_in_arguments_only(compiled.imp, _harmless(compiled))


def gives_up_early(compiled: Compiled) -> bool:
    """Is it found before anything shows that only Python knows how to go on?"""
    assigns = compiled.specialization.assigns
    failures = [(code, site.failure) for code, site in enumerate(compiled.imp.failures) if code]
    codes = {
        code
        for code, failure in failures
        if assigns or failure.exception in _PYTHON_RUNS or (compiled.overflows_late and failure.message == OVERFLOW)
    }
    return not codes or codes <= checks_before_effects(compiled.imp, _harmless(compiled))


def python_may_begin_again(compiled: Compiled, error: Exception, unchanged: bool) -> bool:
    """After a call that was given up: may Python run it from the beginning? `unchanged`: no argument was stored to."""
    checked = compiled.specialization.assigns and not isinstance(error, MemoryError)
    if (isinstance(error, DeoptimizedError) or checked) and gives_up_early(compiled):
        return True
    if isinstance(error, OverflowError) and _overflows_early(compiled):
        return True
    return unchanged and (not compiled.specialization.opaque_sites or may_be_undone(compiled))


def _overflows_early(compiled: Compiled) -> bool:
    """Do ints leave 64 bits only where nothing has happened yet that could be seen?"""
    codes = {code for code, site in enumerate(compiled.imp.failures) if site.failure.message == OVERFLOW}
    return codes <= checks_before_effects(compiled.imp, _harmless(compiled))


def _harmless(compiled: Compiled) -> frozenset[int]:
    """The numbers of opaque sites that change nothing outside."""
    return frozenset(number for number, site in enumerate(compiled.specialization.opaque_sites) if is_harmless(site))


def sites_without_exit(compiled: Compiled) -> tuple[int, ...]:
    """The sites at which compiled code may have to be left, but has no way to: the call must be replayed then."""
    sites, reads_late = compiled.specialization.opaque_sites, bool(compiled.read_after_opaque)
    without = [number for number, site in enumerate(sites) if not site.exits and may_not_go_on(site, reads_late)]
    return tuple(number for number in without if number in {one.site for one in _opaque(compiled)}) if without else ()


def places_of_late_checks(compiled: Compiled) -> frozenset[Pos]:
    """Where compiled code may find, after something has shown that cannot be undone, that only Python can go on."""
    return frozenset(site.pos for site in _late_checks(compiled) if site.pos is not None)


def checks_of_no_return(compiled: Compiled) -> list[tuple[Pos, str]]:
    """The places and messages of those among them that may fail in a call that cannot be replayed, either."""
    if stores_only_into_its_own(compiled.imp):
        sites = compiled.specialization.opaque_sites
        if all(_can_be_replayed(sites[one.site], one) for one in _opaque(compiled)):
            return []
    return [
        (site.pos, site.failure.message)
        for site in _late_checks(compiled)
        if site.pos is not None and site.failure.message not in HOLD_ALWAYS
    ]


def _late_checks(compiled: Compiled) -> list[imp.FailureSite]:
    rerun = rerun_statuses(compiled)
    return [
        site
        for code, site in enumerate(compiled.imp.failures)
        if code and code not in rerun and (site.failure.exception in _PYTHON_RUNS or site.failure.message == OVERFLOW)
    ]


def site_of_no_return(compiled: Compiled) -> OpaqueSite | None:
    """A site that compiled code may have to be left at, with no way to go on and none to replay the call."""
    without, sites = sites_without_exit(compiled), compiled.specialization.opaque_sites
    if not without:
        return None
    changing = {one.site for one in _opaque(compiled) if not _can_be_replayed(sites[one.site], one)}
    late = changing | sites_after_stores(compiled.imp, changing)
    reads_late = bool(compiled.read_after_opaque)
    lost = [
        sites[number]
        for number in without
        if number in late or sites[number].watched or (reads_late and not is_harmless(sites[number]))
    ]
    return lost[0] if lost else None


def _opaque(compiled: Compiled) -> list[imp.Opaque]:
    return [one for one in imp.walk(compiled.imp.body) if isinstance(one, imp.Opaque)]


def _can_be_replayed(site: OpaqueSite, statement: imp.Opaque) -> bool:
    return can_be_replayed(site, [arg.type for arg in statement.args])


def is_for_python(compiled: Compiled, error: Exception) -> bool:
    """Does Python run a call again that has ended in this exception, as a gate has it?"""
    if isinstance(error, OverflowError) and str(error) == OVERFLOW:
        return True
    return isinstance(error, DeoptimizedError) or compiled.specialization.assigns


# ---- one call --------------------------------------------------------------------------------------------------------


class Dispatcher(Protocol):
    """What gives a call to Python."""

    def run_python(self, normal: tuple[Any, ...]) -> Any: ...

    def evaluate(self, normal: tuple[Any, ...], signature: Signature, log: Sequence[tuple[Any, Any]] = ()) -> Any: ...

    def signature(self, normal: tuple[Any, ...]) -> Signature: ...


class Left(BaseException):
    """Compiled code cannot go on with a call: Python does the rest of it, or (None) begins it again with the log."""

    def __init__(self, rest: Callable[[tuple[Any, ...]], Any] | None) -> None:
        self.rest = rest


class Log(list[tuple[Any, Any]]):
    """What operations handed back to Python have given in a call; `whole`: none of them may have changed an array."""

    whole = True

    def tells(self, error: Exception) -> bool:
        """May Python do the call, which compiled code has given up, without these operations?"""
        given_up = isinstance(error, DeoptimizedError) or (isinstance(error, OverflowError) and str(error) == OVERFLOW)
        return given_up and self.whole


ByPython = Callable[[Callable[[tuple[Any, ...]], Any], Sequence[Any]], Any]


@hidden
def by_python(work: Callable[[tuple[Any, ...]], Any], args: Sequence[Any]) -> Any:
    """Let Python do something with arguments that are all in the host's memory."""
    return work(tuple(args))


@hidden
def run_compiled(
    dispatcher: Dispatcher,
    compiled: Compiled,
    normal: Sequence[Any],
    leaves: Sequence[Any],
    execute: Callable[[Any], Sequence[Any]],
    unchanged: Callable[[], bool],
    *,
    in_python: ByPython = by_python,
    array: Leaving = array_of_numpy,
) -> Any:
    """The result of a call in positional form, by compiled code or by Python.

    Parameters
    ----------
    leaves : the leaf arguments
    execute : runs compiled code, given what does the operations handed back to Python; gives the leaves of the result
    unchanged : whether no argument has been stored to, asked when the call has been given up
    in_python : lets Python do something with the arguments
    array : makes of an array of the result what the caller gets
    """
    log = Log()

    @hidden
    def replay(args: tuple[Any, ...]) -> Any:
        return dispatcher.evaluate(args, dispatcher.signature(args), log)

    kept = contents_kept(compiled, leaves)
    try:
        results = execute(opaque_of(compiled, log) if compiled.specialization.opaque_sites else None)
    except Left as left:
        work = left.rest or replay
    except Exception as error:
        if not is_for_python(compiled, error):
            raise
        same = unchanged()
        if put_back(kept) or python_may_begin_again(compiled, error, same):
            work = dispatcher.run_python
        elif same and log.tells(error):
            work = replay
        else:
            raise
    else:
        return assemble(compiled.specialization.result, results, leaves, array)
    return in_python(work, normal)  # not above: the function would see an exception that is handled


def contents_kept(compiled: Compiled, leaves: Sequence[Any]) -> list[Undo]:
    """What gives Python the arguments back as they are now that it may want so; an array on devices says itself how."""
    found: list[Undo] = []
    if not kept_arguments(compiled):
        return found
    for leaf in (leaves[position] for position in kept_arguments(compiled)):
        if isinstance(leaf, np.ndarray):
            found.append(partial(leaf.__setitem__, ..., leaf.copy(order="K")))
        elif (undo := stand_in.kept(leaf)) is not None:
            found.append(undo)
        else:
            return []
    return found


def put_back(kept: Sequence[Undo]) -> bool:
    """Undo what a call has stored into its arguments; gives whether anything was kept."""
    for undo in kept:
        undo()
    return bool(kept)


def values_of(compiled: Compiled, normal: Sequence[Any]) -> list[Any]:
    """The leaf arguments of a call in positional form, hidden ones included."""
    hidden = [read_source(compiled.function, spec.source, normal) for spec in compiled.signature.hidden]
    return leaf_values(compiled.signature, [*normal, *hidden])


def opaque_of(compiled: Compiled, log: Log) -> Any:
    """What does the operations handed back to Python; `log` gets what they have given."""
    from parakeet_py.frontend.evaluate.operation_text import function_for

    made: dict[int, tuple[Callable[..., tuple[Any, ...]], Callable[..., Any]]] = {}
    read_late = compiled.read_after_opaque
    had = watched_now(compiled.function, read_late)
    sites = compiled.specialization.opaque_sites
    types = {one.site: [arg.type for arg in one.args] for one in _opaque(compiled)}
    safe = {number for number, kinds in types.items() if can_be_replayed(sites[number], kinds)}
    in_log = {number for number, kinds in types.items() if is_logged(sites[number], kinds)}
    pending: Callable[[], Any] | None = None
    held: Sequence[Any] = ()
    watched: WatchedLists | None = None

    @hidden
    def call(number: int, args: list[Any]) -> list[Any]:
        nonlocal pending, held, watched
        site = compiled.specialization.opaque_sites[number]
        if site.operation == CONTINUE:
            raise Left(partial(do_the_rest, compiled.function, site, args, pending, held))
        if number not in made:
            made[number] = (
                assembler(site.operands, len(args)),
                in_frames(
                    function_for(site.operation, len(site.operands), site.keywords), site.trace, compiled.function
                ),
            )
        if site.watched:
            watched = watched or WatchedLists(args[-len(site.watched) :], site.watched)
        assemble_operands, do = made[number]
        operands = assemble_operands(*args)
        logged = number in in_log
        log.whole = log.whole and (not logged or number in safe)
        lists = lists_in(site.operands, operands)
        before = list(map(contents, lists))
        arrays = [args[place] for place in site.arrays]
        forms = list(map(_form, arrays))
        try:
            result: Any = do(*operands)
            handler = 0
        except BaseException as error:
            handler, result = caught_by(site, error), Raised(error)
            if not handler:
                raise
        if logged:
            log.append((site.key, result))
        changed = (
            list(map(contents, lists)) != before
            or list(map(_form, arrays)) != forms
            or any(map(differ, watched_now(compiled.function, read_late), had))
            or bool(site.watched and watched and watched.have_changed())
        )
        if handler and site.left:
            pending, held = partial(_given, result), operands
            return [EXIT, *no_leaves(site.result)]
        fits = handler or site.result is None or accepts(site.result, observed_spec(result))
        if changed or not fits:
            if not changed and log.whole and number not in sites_after_stores(compiled.imp):
                raise Left(None)
            pending, held = partial(_given, result), operands
            return [EXIT, *no_leaves(site.result)]
        if handler:
            return [handler, *no_leaves(site.result)]
        return [*([0] * site.has_flag), *([] if site.result is None else result_leaves_of(site.result, result))]

    return call


def _given(result: Any) -> Any:
    """What an operation gives that has given this."""
    if isinstance(result, Raised):
        raise result.error
    return result


def _form(array: Any) -> tuple[Any, ...]:
    """What an operation may set of an array."""
    return (array.shape, array.strides, array.dtype) if type(array) is np.ndarray else ()


def lists_in(recipes: Sequence[Recipe], values: Iterable[Any]) -> list[Any]:
    """The lists and dicts among values whose contents compiled code knows, to see whether they are changed."""
    found: list[Any] = []
    for recipe, value in zip(recipes, values, strict=True):
        if isinstance(recipe, ContainerT):
            if type(value) in (list, dict):
                found.append(value)
            if recipe.kind in ("tuple", "list", "dict"):
                found += lists_in(recipe.items, value.values() if recipe.kind == "dict" else value)
    return found


def watched_now(function: FunctionType, hidden: Sequence[tuple[Source, bool]]) -> list[list[Any]]:
    """Hidden arguments as they are, with the items that compiled code reads; an array elsewhere and what stands for it,
    while Python has that, are one."""
    values = [(present(function, source), items) for source, items in hidden]
    return [list(map(_here, with_items(value) if items else [value])) for value, items in values]


def _here(value: Any) -> Any:
    found = None if type(value) is np.ndarray else stand_in.of(value)
    return value if found is None else found


@hidden
def do_the_rest(
    function: FunctionType,
    site: OpaqueSite,
    leaves: Sequence[Any],
    pending: Callable[[], Any] | None,
    operands: Sequence[Any],
    args: Sequence[Any],
) -> Any:
    """Go on in Python at a site with frames. `operands` are those of the operation that gives what is pending."""
    made = list(assembler(site.operands, len(leaves))(*leaves))
    for number, place in site.given:
        if operands:
            made[number] = operands[place]
    held = (*made, *args)
    for source, number in site.assigned:
        store_field(read_source(function, source[:-1], args), str(source[-1]), held[number])
    return _resumed(function, site, held, pending, 0)


@hidden
def _resumed(
    function: FunctionType, site: OpaqueSite, held: Sequence[Any], pending: Callable[[], Any] | None, depth: int
) -> Any:
    """What the function at a depth returns, when those that it has called have been finished."""
    from parakeet_py.frontend.evaluate.resumed_code import nested_functions, resume

    frame = site.frames[depth]
    python = function if frame.function is None else held[frame.function]
    untyped = next(itertools.islice(nested_functions(to_ssa_cached(python)), frame.nested, None))
    way: list[Let] = []
    blocks: tuple[Block, ...] = (untyped.body,)
    for block, place in frame.way:
        way.append(blocks[block].statements[place])
        blocks = blocks_of(way[-1].op)
    if depth + 1 < len(site.frames):
        pending = partial(_resumed, function, site, held, pending, depth + 1)
    elif site.again:
        pending = None
    items = assembler(frame.items, len(held))(*held)
    return resume(untyped, python, tuple(way), [held[number] for number in frame.values], pending, items)
