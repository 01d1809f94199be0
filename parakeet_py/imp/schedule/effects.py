"""What a function does that shows outside, and which of its checks come before that.

A store shows unless it goes into memory that the function has made; a call back into Python shows unless it is known to
change nothing. When a check fails before anything has shown, the whole call can be run again by Python, as if it had
never been begun. After that it can, too, if all that shows are stores into arguments, and the caller has kept what was
in them (`shows_in_arguments_only`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from parakeet_py.imp.ir import (
    Block,
    Call,
    Check,
    For,
    Function,
    Let,
    Opaque,
    Parallel,
    Statement,
    While,
    arrays_written,
    blocks_of,
    walk,
)
from parakeet_py.imp.storage.may_alias import PYTHON
from parakeet_py.typed_ir.ir import CHECKED, Prim
from parakeet_py.typed_ir.semantics import OVERFLOW

_UNKNOWN = frozenset({-1, PYTHON})


def own_memory(function: Function) -> frozenset[int]:
    """The memory roots that the function makes, itself or by the procedures that it calls."""
    roots = function.roots
    given = frozenset((PYTHON,)).union(*(roots.get(param, frozenset()) for param in function.params))
    return frozenset().union(*roots.values()) - given


def stores_only_into_its_own(function: Function) -> bool:
    """Does a function store nowhere but into memory that it has made?"""
    made = own_memory(function)
    return not any(_stores_outside(function, made, statement) for statement in walk(function.body))


def _stores_outside(function: Function, made: frozenset[int], statement: Statement) -> bool:
    written = arrays_written(statement)
    return bool(written) and not all(function.roots.get(array, _UNKNOWN) <= made for array in written)


def shows_in_arguments_only(function: Function, harmless: Collection[int]) -> bool:
    """Are stores into the arguments' own memory all that a function does that shows?

    `harmless` are the numbers of opaque sites that change nothing.
    """
    statements = list(walk(function.body))
    if any(isinstance(one, Opaque) and one.site not in harmless for one in statements):
        return False
    stored = (array for statement in statements for array in arrays_written(statement))
    return not any(PYTHON in function.roots.get(array, _UNKNOWN) for array in stored)


def _codes(procedure: Function, overflows: list[tuple[int, object]], library: Mapping[str, int]) -> set[int]:
    """The failures that a procedure may end in."""
    found: set[int] = set()
    for statement in walk(procedure.body):
        if isinstance(statement, Call) and statement.procedure in library:
            found |= _of_library(statement, library)
        elif isinstance(statement, Check | Call):
            found.add(statement.failure)
        elif isinstance(statement, Let) and isinstance(statement.rhs, Prim) and statement.rhs.name in CHECKED:
            found.update(code for code, pos in overflows if pos == statement.pos)
    return found


def _of_library(call: Call, library: Mapping[str, int]) -> set[int]:
    """The failures that a procedure of the library may end in, of which it has so many."""
    return {call.failure + number for number in range(1, library[call.procedure])}


def _in_order(block: Block, shows: Callable[[Statement], bool], visit: Callable[[Statement, bool], None]) -> None:
    """Visit all statements of a block with whether something that `shows` may come before."""
    showing: set[int] = set()  # identities of the statements that show, or hold one that does

    def find(block: Block) -> bool:
        found = False
        for statement in block.statements:
            inside = [find(part) for part in blocks_of(statement)]
            if any(inside) or shows(statement):
                showing.add(id(statement))
                found = True
        return found

    def go(block: Block, shown: bool) -> None:
        for statement in block.statements:
            visit(statement, shown)
            later = shown or id(statement) in showing
            start = later if isinstance(statement, For | While | Parallel) else shown  # what comes again comes before
            for part in blocks_of(statement):
                go(part, start)
            shown = later

    find(block)
    go(block, shown=False)


def checks_before_effects(function: Function, harmless: Collection[int] = ()) -> frozenset[int]:
    """The failures that can only happen while nothing has shown outside yet; `harmless` as above."""
    made = own_memory(function)
    before: set[int] = set()
    after: set[int] = set()
    overflows: list[tuple[int, object]] = [
        (code, site.pos) for code, site in enumerate(function.failures) if site.failure.message == OVERFLOW
    ]
    library = {one.name: len(one.failures) for one in function.procedures if one.library}
    inner = [one for one in function.procedures if not one.library]
    inner_codes = {code for one in inner for code in _codes(one, overflows, library)}

    def shows(statement: Statement) -> bool:
        if isinstance(statement, Opaque):
            return statement.site not in harmless
        return _stores_outside(function, made, statement)

    def sort(statement: Statement, shown: bool) -> None:
        if isinstance(statement, Let):
            if isinstance(statement.rhs, Prim) and statement.rhs.name in CHECKED:
                here = {code for code, pos in overflows if pos == statement.pos} or {code for code, _ in overflows}
                (after if shown else before).update(here)
        elif isinstance(statement, Check):
            (after if shown else before).add(statement.failure)
        elif isinstance(statement, Call):  # all that may fail in it comes after all that it may store
            own = statement.procedure in library
            codes = _of_library(statement, library) if own else {statement.failure, *inner_codes}
            (after if shown or shows(statement) else before).update(codes)

    _in_order(function.body, shows, sort)
    return frozenset(before - after)


def sites_after_stores(function: Function, changing: Collection[int] = ()) -> frozenset[int]:
    """The opaque sites that may be reached after a store outside the function's own memory, or after one of those that
    are `changing` something."""
    made = own_memory(function)
    found: set[int] = set()

    def changes(statement: Statement) -> bool:
        if isinstance(statement, Opaque):
            return statement.site in changing
        return _stores_outside(function, made, statement)

    def collect(statement: Statement, stored: bool) -> None:
        if isinstance(statement, Opaque) and stored:
            found.add(statement.site)

    _in_order(function.body, changes, collect)
    return frozenset(found)
