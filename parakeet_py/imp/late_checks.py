"""Checks that can wait: vector loops over bodies that may fail.

`math.log(x)` raises for what has no logarithm, so a loop of it could leave at any iteration, and such loops are not
widened. But where a check guards nothing that the iteration does after it, all iterations may run as if none failed,
and only remember whether one would have. If so, the loop runs once more with its checks where they stand, to fail as
it should. What the first run has stored by then nobody sees (see `lower_map`).

A check guards nothing if no element is accessed because of it. That is so where no index depends on what has been
loaded, and the check compares what has been loaded, or floats: bounds of indices are proved from comparisons of
integers alone (`_learned` are those that would be known after the check).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.schedule import Study, static_cost
from parakeet_py.typed_ir.ir import CHECKED, Cast, Check, Const, Operand, Prim, Var, dtype_of, walk
from parakeet_py.typed_ir.types import BOOL, is_float

LARGEST = 1000  # scalar operations of a body that is written twice


def can_wait(found: Study) -> bool:
    """Whether all checks of a body may be made after the iteration, or after all of them."""
    if not found.simple or found.has_opaque or static_cost(found.block) > LARGEST:
        return False
    if any(isinstance(definition, Prim) and definition.name in CHECKED for definition in found.definitions.values()):
        return False
    if any(_loaded(found, index) for access in found.accesses for index in access.indices):
        return False
    checks = [let.op for let in walk(found.block) if isinstance(let.op, Check)]
    return all(
        any(_loaded(found, operand) or is_float(dtype_of(operand)) for operand in comparison)
        for check in checks
        for comparison in _learned(found, check.condition, True)
    )


def _loaded(found: Study, operand: Operand) -> bool:
    """Whether a value depends on an element, or on how a branch went."""
    if not isinstance(operand, Var) or operand not in found.inside:
        return False
    match found.definitions.get(operand):
        case Prim(_, args):
            return any(_loaded(found, arg) for arg in args)
        case Cast(arg):
            return _loaded(found, arg)
    return True


def _learned(found: Study, condition: Operand, value: bool) -> Iterator[tuple[Operand, ...]]:
    """The operands of the comparisons that are known once a condition is."""
    match found.definitions.get(condition) if isinstance(condition, Var) else None:
        case Prim("not", (arg,)):
            yield from _learned(found, arg, not value)
        case Prim("and" | "or" as name, args) if dtype_of(condition) == "bool":
            if (name == "and") == value:
                for arg in args:
                    yield from _learned(found, arg, value)
        case Prim(_, args):
            yield args
        case _:
            yield (condition,)


def loop(lo: Lowering, index: Var, start: Operand, stop: Operand, point: Callable[[], None]) -> None:
    """Write a loop of which `point` writes an iteration, and the one that fails."""
    failed = lo.declare("failed", BOOL, Const(False, BOOL))
    with lo.noting(failed):
        lo.loop(lo.bind(index), start, stop, point, "vector")
    lo.when(lo.read(failed), lambda: lo.loop(lo.bind(index), start, stop, point, "independent"))
