"""Operations handed back to Python, as data: what a site is, and what is known of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from parakeet_py.base import callee_effects
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.frames.tracebacks import TraceEntry
from parakeet_py.base.types import Array, Object, Type
from parakeet_py.frontend.evaluate.observed_values import Key
from parakeet_py.signature.object_assembly import ContainerT, Recipe, StaticT
from parakeet_py.signature.random_states import given_left, given_words
from parakeet_py.signature.specs import Source, Spec
from parakeet_py.typed_ir.specialize.observed import ANY
from parakeet_py.typed_ir.specialize.opaque.purity import is_pure, of_random


@record
class FrameState:
    """Where one function of those that are running stands, and what its variables hold.

    `function` is the number of the operand that is the Python function in whose source it stands (None: the decorated
    one), `nested` its number among the functions nested in that one (0: itself). `way` leads to the statement: for each
    statement on it, the number of its block in the one before, and its number in the block. `values` are the live
    variables, in the order of `live_at`: numbers of operands of the site, behind which come the arguments of the call.
    `items` are iterators of the `for` loops on the way, made of these.
    """

    function: int | None
    nested: int
    way: tuple[tuple[int, int], ...]
    values: tuple[int, ...]
    items: tuple[Recipe, ...]


@record
class OpaqueSite:
    """One operation handed back.

    `operands` rebuild its operands in the order of `perform`; `text` names it in messages; `trace` is where it happens,
    outermost function first. `regular`: whenever the evaluator does the operation of this key, compiled code does it
    here. With `catches`, what the handlers around it catch, the first result is the number of the handler that is to
    run (0: none; the other results are nothing if there is one); if it is `left`, Python does the rest of the call
    instead. `foreign`: it is given objects that may have methods in Python, which it may run. With `exits`, the first
    result is `EXIT` where compiled code cannot go on: it then comes to a site with `frames`, at which Python does the
    rest of the call. These are the functions that are running, outermost first; the innermost one goes on behind its
    statement, which has given what the operation gave, or with `again` does it anew, or raises what a handler of a
    signal has raised (`interrupted`). `given` are pairs: the number of
    an operand here, and of the operand of the operation that is the same object. `assigned` are the attributes of
    arguments that have been assigned until then, each with the number of what it holds: of an operand or, behind all
    operands, of an argument. Behind the operands come as many objects as there are `watched` paths: attributes that
    lead to lists whose items compiled code has read, and which the operation must not change; nor must it set the shape
    or dtype of `arrays`, by their numbers among the leaves of the operands.
    """

    operation: str
    operands: tuple[Recipe, ...]
    keywords: tuple[str, ...]
    result: Spec | None
    text: str
    reason: str
    line: int
    key: Key = ()
    trace: tuple[TraceEntry, ...] = ()
    regular: bool = True
    catches: tuple[tuple[type[BaseException], ...], ...] = ()
    foreign: bool = False
    exits: bool = False
    left: bool = False
    frames: tuple[FrameState, ...] = ()
    again: bool = False
    given: tuple[tuple[int, int], ...] = ()
    assigned: tuple[tuple[Source, int], ...] = ()
    watched: tuple[tuple[str, ...], ...] = ()
    interrupted: bool = False
    arrays: tuple[int, ...] = ()

    @property
    def has_flag(self) -> bool:
        """Does the first result say how compiled code goes on?"""
        return self.exits or bool(self.catches)


EXIT = -1
CONTINUE = "continue"  # the operation of sites with frames
_NOT_EVALUATED = ("same", "truth")  # no operations of the evaluator


def descriptions(sites: Iterable[OpaqueSite]) -> tuple[str, ...]:
    """What is handed back to Python, as text: "name (line n): reason"."""
    return tuple(f"{site.text} ({_place(site)}): {site.reason}" for site in shown_sites(sites))


def _place(site: OpaqueSite) -> str:
    """The line, for what is in a function that was inlined that of the call and its own."""
    if len(site.trace) < 2:
        return f"line {site.line}"
    first, last = site.trace[0], site.trace[-1]
    if last.filename == first.filename:
        return f"line {first.line}, in {last.name} at line {last.line}"
    file = "/".join(last.filename.replace(os.sep, "/").split("/")[-2:])
    return f"line {first.line}, in {last.name} at {file}:{last.line}"


def shown_sites(sites: Iterable[OpaqueSite]) -> tuple[OpaqueSite, ...]:
    """Those that a reader asks about."""
    return tuple(filter(_is_shown, sites))


def _is_shown(site: OpaqueSite) -> bool:
    if site.operation in ("same", CONTINUE):
        return False
    called = site.operands[0].value if isinstance(site.operands[0], StaticT) else None
    return called is not given_words and called is not given_left


def is_pure_site(site: OpaqueSite) -> bool:
    """Is this a call that changes nothing outside?"""
    if site.operation == CONTINUE:
        return True  # of compiled code, which it ends
    if site.operation != "call" or not isinstance(site.operands[0], StaticT) or site.foreign:
        return False
    return is_pure(site.operands[0].value, len(site.operands) - 1 - len(site.keywords), site.keywords)


def can_be_replayed(site: OpaqueSite, types: Iterable[Type]) -> bool:
    """Can a call be replayed with what the operation has given? `types` are those of the leaves of its operands.

    A replay makes arrays, lists and dicts anew. What an operation has kept, changed or given back would be those of the
    call that was given up.
    """
    if site.operation == CONTINUE or is_pure_site(site):
        return True
    return site.regular and not any(isinstance(kind, Array | Object) for kind in types)


def is_logged(site: OpaqueSite, types: Iterable[Type]) -> bool:
    """Is the operation done from the log when a call is replayed? Else the evaluator does not know it, or does it
    anew. `types` are those of the leaves of its operands.

    What may be a view of an operand is not in the log: it would be one of an array of the call that was given up.
    """
    if site.operation in _NOT_EVALUATED:
        return False
    return not is_pure_site(site) or (site.regular and not _may_give_view(site, types))


def _may_give_view(site: OpaqueSite, types: Iterable[Type]) -> bool:
    """May what a pure operation gives share memory with its operands?"""
    if site.operation == CONTINUE or not any(isinstance(kind, Array | Object) for kind in types):
        return False
    target = site.operands[0].value if isinstance(site.operands[0], StaticT) else None
    how = target, len(site.operands) - 1 - len(site.keywords), site.keywords
    return callee_effects.is_pure(*how) and not callee_effects.is_fresh(*how)


def is_harmless(site: OpaqueSite) -> bool:
    """Does this change nothing outside, if the call goes on after it? (What raises ends the call.)"""
    if is_pure_site(site):
        return True
    target = site.operands[0].value if site.operation == "call" and isinstance(site.operands[0], StaticT) else None
    return cannot_raise(site.operation) or any(target is one for one in RAISES)


def cannot_raise(operation: str) -> bool:
    """Does this operation give a result whatever its operands are?"""
    return operation in ("same", "compare:is", "compare:isnot")


def may_not_go_on(site: OpaqueSite, reads_late: bool) -> bool:
    """May compiled code have to be left at this operation, for another reason than an exception? `reads_late`: it reads
    globals that Python code could replace."""
    if site.operation in (CONTINUE, "same"):
        return False
    target = site.operands[0].value if isinstance(site.operands[0], StaticT) else None
    known = site.operation == "call" and (
        is_rare(target) or target is given_words or target is given_left or any(target is one for one in of_random())
    )
    if known:
        return False
    if makes_lists(site) or site.watched or (reads_late and not is_harmless(site)):
        return True
    return site.result is not None and site.result != ANY and site.operation not in TRUTHS


def _makes_lists(recipe: Recipe) -> bool:
    """Are there lists or dicts among operands that compiled code knows, too?"""
    if not isinstance(recipe, ContainerT):
        return False
    return recipe.kind in ("list", "list_of", "items_of", "dict") or any(map(_makes_lists, recipe.items))


def makes_lists(site: OpaqueSite) -> bool:
    """Is an operation given lists or dicts that compiled code knows, too?"""
    return any(map(_makes_lists, site.operands))


TRUTHS = ("truth", "compare:is", "compare:isnot", "compare:in", "compare:notin", "unary:not")
"""Operations that give a truth value whenever they return."""


def seldom_sites(sites: Sequence[OpaqueSite]) -> frozenset[int]:
    """The sites that make or raise exceptions, print, or are come to once at most."""
    return frozenset(
        number
        for number, site in enumerate(sites)
        if site.operation == CONTINUE
        or (site.operation == "call" and isinstance(site.operands[0], StaticT) and is_rare(site.operands[0].value))
    )


def is_rare(target: Any) -> bool:
    return any(target is one for one in (print, *RAISES)) or (
        isinstance(target, type) and issubclass(target, BaseException)
    )


def raises_again(site: OpaqueSite) -> bool:
    """Does an operation raise an exception that is handled?"""
    return isinstance(site.operands[0], StaticT) and site.operands[0].value is raise_again


def raise_it(error: BaseException) -> None:
    """Raise an exception that Python has made."""
    raise error


def raise_again(error: BaseException) -> None:
    """Raise an exception that is handled: its traceback stays what it is."""
    raise error


def raise_caused(error: BaseException, cause: BaseException) -> None:
    """Raise an exception that has a cause."""
    raise error from cause


RAISES = (raise_it, raise_again, raise_caused)


def caught_by(site: OpaqueSite, error: BaseException) -> int:
    """The number of the handler around an operation that catches this; 0: none."""
    for number, classes in enumerate(site.catches):
        if isinstance(error, classes):
            return number + 1
    return 0
