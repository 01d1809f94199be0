"""The stages of a loop's iterations: what is computed before which call of NumPy's loops (see `blocked_loops`).

A stage has what the next call needs. Statements with an effect have no stage: they come after all calls, in their
order, with what depends on them. A load that may read what an earlier statement of the same turn stores stays behind
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parakeet_py.base import exact_loops
from parakeet_py.base.types import INT64, Array, Scalar
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Cell, For, Let, Statement
from parakeet_py.imp.writer import ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Dim, Load, Operand, Prim, Stride, Var

CHEAP = 3  # operations and loads that are done again rather than kept
_DEAR = frozenset({"div", "sqrt", "floordiv", "mod", "fmod"})

Roots = Mapping[Var | Cell, frozenset[int]]
# An array, indices in it, and what is added to the loop's index in the place of the last one.
Line = tuple[Var, tuple[Operand, ...], Operand]


def _is_loop(statement: Statement) -> bool:
    return isinstance(statement, Let) and isinstance(statement.rhs, Prim) and _can_run(statement.rhs.name)


def _can_run(name: str) -> bool:
    return exact_loops.is_loop(name) and not exact_loops.is_c_function(name) and exact_loops.moves(name)[-1]


class Stages:
    """What the iterations of a loop can be cut into."""

    def __init__(self, loop: For, roots: Roots) -> None:
        self.loop, self.roots = loop, roots
        self.body = loop.body.statements
        self.made: dict[Var, int] = {}  # where in the body a variable is bound
        for place, statement in enumerate(self.body):
            for out in ir.binders_of(statement):
                if isinstance(out, Var):
                    self.made[out] = place
        self.calls = [place for place, one in enumerate(self.body) if _is_loop(one) and self.may_run(one)]
        self.stage: dict[int, int] = {}  # of the statements that may come early, or are calls

    # ---- what comes when ---------------------------------------------------------------------------------------------

    def may_run(self, statement: Statement) -> bool:
        """Whether operands whose memory stands still are the same in all iterations."""
        assert isinstance(statement, Let) and isinstance(statement.rhs, Prim)
        steps = exact_loops.moves(statement.rhs.name)
        return not any(self.varies(arg) for arg, step in zip(statement.rhs.args, steps, strict=False) if not step)

    def varies(self, operand: Operand) -> bool:
        return operand in self.made or operand is self.loop.index

    def plan(self) -> bool:
        """Find the stages; whether there are calls left that can have one."""
        while self.calls:
            self.stage.clear()
            dropped = self.stages()
            if dropped is None:
                return True
            self.calls.remove(dropped)
        return False

    def stages(self) -> int | None:
        """The stage of all that may come early; gives a call whose operands may not, if there is one."""
        stored: list[Var] = []
        unknown = False  # whether a statement before may have stored anywhere
        for place, statement in enumerate(self.body):
            operands = [
                self.made[one] for one in ir.operands_in(statement) if isinstance(one, Var) and one in self.made
            ]
            early = all(one in self.stage for one in operands)
            stage = max((self.stage[one] + (one in self.calls) for one in operands if one in self.stage), default=0)
            if place in self.calls:
                if not early:
                    return place
                self.stage[place] = stage
            elif isinstance(statement, Let) and early and not unknown and self.is_pure(statement, stored):
                self.stage[place] = stage
            for inner in (statement, *inside(statement)):
                stored += ir.arrays_written(inner)
                unknown |= isinstance(inner, ir.Call | ir.Opaque)
        return None

    def is_pure(self, let: Let, stored: Sequence[Var]) -> bool:
        match let.rhs:
            case Prim(name):
                return not name.endswith("_checked") and isinstance(let.out.type, Scalar)
            case Load(array):
                return not any(self.may_meet(array, other) for other in stored)
            case Cast() | Dim() | Stride():
                return isinstance(let.out.type, Scalar)
        return False

    def may_meet(self, one: Var, other: Var) -> bool:
        left, right = self.roots.get(one), self.roots.get(other)
        return left is None or right is None or bool(left & right)

    # ---- lines -------------------------------------------------------------------------------------------------------

    def line(self, array: Var, indices: Sequence[Operand]) -> Operand | None:
        """What is added to the loop's index along the last axis, if elements of successive turns lie side by side."""
        kind = array.type
        if not isinstance(kind, Array) or kind.layout not in ("C", "S") or not indices or array in self.made:
            return None
        if any(self.varies(index) for index in indices[:-1]):
            return None
        last = indices[-1]
        if last is self.loop.index:
            return ZERO
        if not isinstance(last, Var) or last not in self.made:
            return None
        match self.body[self.made[last]]:
            case Let(_, Prim("add", (left, right))) if left is self.loop.index and not self.varies(right):
                return right
            case Let(_, Prim("add", (left, right))) if right is self.loop.index and not self.varies(left):
                return left
            case Let(_, Prim("sub", (left, Const() as right))) if left is self.loop.index:
                return Const(-right.whole, INT64)
        return None

    def source(self, operand: Operand) -> Line | None:
        """The line of an array that an operand's elements are."""
        if not isinstance(operand, Var) or operand not in self.made:
            return None
        place = self.made[operand]
        match self.body[place]:
            case Let(_, Load(array, indices)) if place in self.stage:
                offset = self.line(array, indices)
                return None if offset is None else (array, indices, offset)
        return None

    def target(self, place: int) -> tuple[int, Line] | None:
        """The store that is all that is done with a call's results, into a line that nothing else meets."""
        out, own = self.result(place), [self.source(arg) for arg in self.args(place)]
        users = [number for number, one in enumerate(self.body) if out in uses(one)]
        if len(users) != 1 or any(isinstance(one, ir.Check) for one in self.body):
            return None
        match self.body[users[0]]:
            case ir.Store(array, indices, value) if value is out:
                offset = self.line(array, indices)
            case _:
                return None
        if offset is None:
            return None
        for number, one in enumerate(self.body):
            for inner in (one, *inside(one)):
                touched = list(ir.arrays_written(inner)) if number != users[0] else []
                if isinstance(inner, Let) and isinstance(inner.rhs, Load):
                    in_place = any(found and found[:2] == (array, indices) for found in own) and inner.rhs == Load(
                        array, indices
                    )
                    sole = sum(inner.out in uses(other) for other in self.body) == 1
                    touched += [] if in_place and sole else [inner.rhs.array]
                if any(self.may_meet(array, other) for other in touched):
                    return None
        return users[0], (array, indices, offset)

    # ---- what is kept ------------------------------------------------------------------------------------------------

    def kept(self, wanted: Sequence[Var], last: Sequence[int], stages: int) -> list[Var]:
        """The values that go to buffers: operands of calls, and what later stages use and do not compute again."""
        kept = dict.fromkeys(wanted)
        needs = [list(last)]
        for stage in reversed(range(stages)):
            while True:
                own = self.needed(
                    [self.made[one] for one in kept if one in self.made and self.stage_of(one) == stage], stage
                )
                more = [
                    one
                    for need in (*needs, own)
                    for one in self.crossing(need)
                    if one not in kept and not self.is_call(one)
                ]
                if not more:
                    break
                kept |= dict.fromkeys(more)
            needs.append(own)
        return list(kept)

    def is_call(self, operand: Operand) -> bool:
        return isinstance(operand, Var) and self.made.get(operand) in self.calls

    def needed(self, roots: Sequence[int], stage: int) -> list[int]:
        """The statements of a stage's loop, in order: those given, and what they need that is computed again here."""
        found: dict[int, None] = {}
        waiting = list(roots)
        while waiting:
            place = waiting.pop()
            if place in found:
                continue
            found[place] = None
            for operand in uses(self.body[place]):
                if isinstance(operand, Var) and operand in self.made:
                    other = self.made[operand]
                    if other in self.stage and other not in self.calls and self.is_made_here(other, stage):
                        waiting.append(other)
        return sorted(found)

    def is_made_here(self, place: int, stage: int) -> bool:
        """Whether a stage computes a value itself: its own, and earlier ones that are next to nothing."""
        return self.stage[place] == stage or self.cost(place, CHEAP + 1) <= CHEAP

    def cost(self, place: int, enough: int) -> int:
        """What it costs to compute a value once more, counted up to `enough`; results of calls are in buffers."""
        statement = self.body[place]
        if place in self.calls:
            return 0
        rhs = statement.rhs if isinstance(statement, Let) else None
        cost = 2 if isinstance(rhs, Load) else enough if isinstance(rhs, Prim) and rhs.name in _DEAR else 1
        for operand in uses(statement):
            if cost < enough and isinstance(operand, Var) and operand in self.made:
                cost += self.cost(self.made[operand], enough - cost)
        return cost

    def crossing(self, need: Sequence[int]) -> list[Var]:
        """The values that statements of a stage use and that it does not compute."""
        own = set(need)
        return [
            operand
            for place in need
            for operand in uses(self.body[place])
            if isinstance(operand, Var) and operand in self.made and self.made[operand] not in own
            and self.made[operand] in self.stage
        ]  # fmt: skip

    def stage_of(self, value: Var) -> int:
        return self.stage[self.made[value]] if value in self.made else 0  # the loop's index

    def args(self, place: int) -> tuple[Operand, ...]:
        """The operands of a call."""
        statement = self.body[place]
        assert isinstance(statement, Let) and isinstance(statement.rhs, Prim)
        return statement.rhs.args

    def result(self, place: int) -> Var:
        statement = self.body[place]
        assert isinstance(statement, Let)
        return statement.out


def inside(statement: Statement) -> list[Statement]:
    """The statements in the blocks of a statement."""
    return [inner for block in ir.blocks_of(statement) for inner in ir.walk(block)]


def uses(statement: Statement) -> list[Operand]:
    """The operands of a statement and of all inside it."""
    found = list(ir.operands_in(statement))
    for inner in inside(statement):
        found += ir.operands_in(inner)
    return found
