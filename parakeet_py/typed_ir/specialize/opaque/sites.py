"""Operations handed back to Python, as data: what a site is, and what is known of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.tracebacks import TraceEntry
from parakeet_py.frontend.evaluate.evaluator import Key
from parakeet_py.signature.object_assembly import StaticT, Template
from parakeet_py.signature.random_states import given_left, given_words
from parakeet_py.signature.specs import Spec
from parakeet_py.typed_ir.specialize.opaque.purity import is_pure


@record
class Rest:
    """How Python goes on after an operation.

    `way` leads to the statement: for each statement on it, the number of its block in the one before, and its number
    in the block. `values` are the live variables, in the order of `live_at`, and `items` the iterators of `for` loops,
    made of the leaves of the operation and the arguments of the call.
    """

    way: tuple[tuple[int, int], ...]
    values: tuple[Template, ...]
    items: tuple[Template, ...]


@record
class OpaqueSite:
    """One operation handed back.

    `operands` rebuild its operands in the order of `perform`; `text` names it in messages; `trace` is where it happens,
    outermost function first. `regular`: whenever the evaluator does the operation of this key,
    compiled code does it here. With `catches`, what the handlers around it catch, the first result is the number of the
    handler that is to run (0: none; the other results are nothing if there is one). `foreign`: it is given objects that
    may have methods in Python, which it may run. `rest`: what is needed to go on in Python after it.
    """

    operation: str
    operands: tuple[Template, ...]
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
    rest: Rest | None = None


def descriptions(sites: Iterable[OpaqueSite]) -> tuple[str, ...]:
    """What is handed back to Python, as text: "name (line n): reason"."""
    return tuple(f"{site.text} (line {site.line}): {site.reason}" for site in sites if _is_shown(site))


def _is_shown(site: OpaqueSite) -> bool:
    called = site.operands[0].value if isinstance(site.operands[0], StaticT) else None
    return site.operation != "same" and called is not given_words and called is not given_left


def is_pure_site(site: OpaqueSite) -> bool:
    """Is this a call that changes nothing outside?"""
    if site.operation != "call" or not isinstance(site.operands[0], StaticT) or site.foreign:
        return False
    return is_pure(site.operands[0].value, len(site.operands) - 1 - len(site.keywords), site.keywords)


def is_harmless(site: OpaqueSite) -> bool:
    """Does this change nothing outside, if the call goes on after it? (What raises ends the call.)"""
    if is_pure_site(site):
        return True
    target = site.operands[0].value if site.operation == "call" and isinstance(site.operands[0], StaticT) else None
    return site.operation in ("same", "compare:is", "compare:isnot") or any(
        target is one for one in (raise_it, raise_caused)
    )


def seldom_sites(sites: Sequence[OpaqueSite]) -> frozenset[int]:
    """The sites that make or raise exceptions, or print."""
    return frozenset(
        number
        for number, site in enumerate(sites)
        if site.operation == "call" and isinstance(site.operands[0], StaticT) and is_rare(site.operands[0].value)
    )


def is_rare(target: Any) -> bool:
    return any(target is one for one in (print, raise_it, raise_caused)) or (
        isinstance(target, type) and issubclass(target, BaseException)
    )


def raise_it(error: BaseException) -> None:
    """Raise an exception that Python has made."""
    raise error


def raise_caused(error: BaseException, cause: BaseException) -> None:
    """Raise an exception that has a cause."""
    raise error from cause
