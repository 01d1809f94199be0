"""Vertical fusion: compute an element where it is read instead of storing it first.

Where a body reads `A[i, j]` and `A` is the out of an earlier `Map`, the `Map`'s body is put there, at that index. This
is done when

* nothing wrote, between the two places, what the producer reads (the order of effects);
* it raises nothing, or the consumer does what it does for the same points in the same order, and nothing else that is
  seen comes between; where something does, the checks of a body of scalars stay where they are, and what may be
  computed once they have passed is put into the consumer;
* the element is read once: all reads of the producer's outs are at one place and index, and no loop between producer
  and read visits an element twice (each loop index is alone in some coordinate). Uses of extents do not count.
  Otherwise only if computing it again is cheap, or *light*: the places of a stencil that read it, each visiting an
  element once, repeat less than storing and loading it costs where arrays leave the cache (`Cost.light`); never
  through a broadcast;
* the read is not in a serial loop deeper than the producer, where the producer would lose its parallelism.

A `Reduce` is put inside its consumer as a loop when the consumer reduces further (k-means: the distances that `argmin`
looks at are summed on the spot and never stored). After a `Map` consumer nothing would be gained, and the reduction
would lose its own schedule.

Producers come before consumers, so one walk fuses a chain of any length; what only becomes fusible when other copies
have been merged (`(t + 1) * (t - 1)`) is found in the next round.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases, Effects
from parakeet_py.typed_ir.passes.analysis.linear import Forms
from parakeet_py.typed_ir.passes.analysis.unescaped_arrays import private_arrays
from parakeet_py.typed_ir.passes.fusion.cost import Cost, cost_of
from parakeet_py.typed_ir.passes.fusion.store_rules import harmless_stores
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy, is_const, substitute

_LARGEST_COEFFICIENT = 1 << 20  # times an index below 2^43 stays an int64
_LONGEST_CHAIN = 40  # operators deferred one after the other; each is a level of recursion
_MULTIPASS_WORK = 40  # most work worth repeating by operators that run their body twice (Scan, Compress)


def fuse_vertically(function: Function, deferring: bool = False) -> Function:
    """Inline producers into the bodies that read them, once over the program.

    With `deferring`, chains of operators with one reader each are fused in linear time; where such a chain turns out
    not to fuse with its end, a call without has to follow.
    """
    return _Fuser(function, deferring).function(function)


def fuse_into_scatters(function: Function) -> Function:
    """Put producers that may fail, such as checked indices, into the scatters that read them, where what those have
    stored by then is not visible (see `unescaped_arrays`). Kernels for GPUs check before they scatter."""
    if not any(isinstance(let.op, ir.Scatter) for let in function.statements()):
        return function
    return _Fuser(function, False, private_arrays(function)).function(function)


@record
class Producer:
    """An operator whose outs may be computed where they are read."""

    let: Let
    level: int  # how many scopes were open around it
    time: int
    memory: frozenset[Var]  # the atoms of what it reads and of its outs
    cost: Cost
    single: bool  # all its outs are read at one place and index, and not otherwise used
    fails: bool  # a check in it may raise


@record(frozen=False)
class Scope:
    """An operator being descended into."""

    op: Op
    indices: tuple[Var, ...]
    writes: set[Var]


class _Sites:
    """Where each array is read: one entry for each block and index; `escaping` are used other than by loads."""

    def __init__(self, function: Function) -> None:
        self.places: dict[Var, set[tuple[int, tuple[Operand, ...]]]] = {}
        self.escaping: set[Var] = set()
        self._block(function.body)

    def _block(self, block: Block) -> None:
        for let in block.statements:
            op = let.op
            if op.__class__ is ir.Load:
                self.places.setdefault(op.array, set()).add((id(block), op.indices))
            elif op.__class__ is not ir.Dim and op.__class__ is not ir.Prim:
                self._escape(ir.operands_of(op))
            for inner in ir.blocks_of(op):
                self._block(inner)
        self._escape(block.results)

    def _escape(self, operands: Sequence[Operand]) -> None:
        for operand in operands:
            if operand.__class__ is Var and operand.type.__class__ is Array:
                self.escaping.add(operand)

    def single(self, outs: Sequence[Var]) -> bool:
        return self.escaping.isdisjoint(outs) and self.places_of(outs) <= 1

    def places_of(self, outs: Sequence[Var]) -> int:
        """At how many places outs are read."""
        return len(set[tuple[int, tuple[Operand, ...]]]().union(*(self.places.get(out, ()) for out in outs)))


class _Fuser(Rewriter):
    def __init__(self, function: Function, deferring: bool, private: Collection[Var] | None = None) -> None:
        super().__init__()
        self.deferring = deferring
        self.private = private  # if given: what scatters may fill before a check; only into these is fused
        self.deferred: dict[Var, int] = {}  # outs of deferred operators -> how many of them there are in a chain
        self.aliases = Aliases(function)
        self.sites = _Sites(function)
        self.definitions: dict[Var, Op] = {}
        self.forms = Forms(self.definitions)
        self.level_of: dict[Var, int] = {}  # how many scopes were open where a variable was bound
        self.producers: dict[Var, tuple[Producer, int]] = {}  # array -> what makes it, as which result
        self.scopes: list[Scope] = []
        self.inlined: list[dict[tuple[Var, tuple[Operand, ...]], list[Operand]]] = []  # for each open block
        self.moved: set[Var] = set()  # outs of producers that raise and are no longer where they were
        self.checking: set[Var] = set()  # outs of producers of which nothing but checks is left
        self.last_effect = 0  # when something was last written or checked
        self.repeating = False  # is what is being emitted one of several copies?
        self.time = 0
        self.written_at: dict[Var, int] = {}

    # ---- the walk ----

    def block(self, block: Block) -> Block:
        self.inlined.append({})
        new = super().block(block)
        self.inlined.pop()
        for let in block.statements:
            for out in let.outs:
                self.producers.pop(out, None)
        if any(out in self.moved for let in block.statements for out in let.outs):
            kept = tuple([let for let in new.statements if not self.moved.intersection(let.outs)])
            new = Block(kept, new.results)
        if self.checking:
            kept = tuple([self.without_results(let) for let in new.statements])
            new = Block(kept, new.results)
        return new

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        self.time += 1
        level = len(self.scopes)
        for out in let.outs:
            self.level_of[out] = level
        if isinstance(op, ir.Load):
            return self.load(let, op)
        if op.__class__ is ir.Prim:
            new = self.descend(let)
            self.definitions[let.outs[0]] = (new[0] if new else let).op
            return new
        if not ir.blocks_of(op):
            if not isinstance(op, ir.Cast | ir.Dim):
                self.note_effects(op)
            return self.descend(let)
        return self.enter(let)

    def note_effects(self, op: Op) -> None:
        effects = self.aliases.effects(op)
        for atom in effects.writes:
            self.written_at[atom] = self.time
        if not effects.pure:
            self.last_effect = self.time

    def enter(self, let: Let) -> Sequence[Let] | None:
        """Rewrite an operator with blocks, then see whether it is a producer itself."""
        op = let.op
        effects = self.aliases.effects(op)
        if self.deferring and isinstance(op, ir.Map) and effects.pure and self.sites.single(let.outs):
            deferred = self.defer(let, op, effects)
            if deferred is not None:
                return deferred
        indices: tuple[Var, ...] = (op.index,) if isinstance(op, ir.For) else ()
        if isinstance(op, ir.PARALLEL):
            indices = op.indices + (op.reduced_indices if isinstance(op, ir.Reduce) else ())
        # Writes of a branch come in order with its reads; those of a loop may come before reads in later rounds.
        self.scopes.append(Scope(op, indices, set() if isinstance(op, ir.If) else effects.writes))
        for var in ir.binders_of(op):
            self.level_of[var] = len(self.scopes)
        new = self.descend(let)
        self.scopes.pop()
        self.time += 1
        for atom in effects.writes:
            self.written_at[atom] = self.time
        made = new[0] if new else let
        if new:
            effects = self.aliases.effects(made.op)
        if not effects.pure:
            self.last_effect = self.time
        if not effects.writes and not effects.calls and self.inlinable(made.op):
            self.offer(made, effects, cost_of(made.op.body))  # type: ignore[union-attr]
        return new

    def offer(self, let: Let, effects: Effects, cost: Cost) -> None:
        """From here on the operator may be computed where its outs are read."""
        memory = frozenset(effects.reads).union(let.outs)
        single = self.sites.single(let.outs)
        producer = Producer(let, len(self.scopes), self.time, memory, cost, single, effects.fails)
        for position, out in enumerate(let.outs):
            self.producers[out] = (producer, position)

    def defer(self, let: Let, op: ir.Map, effects: Effects) -> Sequence[Let] | None:
        """Leave a producer that will probably be put into its only reader as it is, until that happens.

        Its own producers are put into it there. Doing it here as well would copy the front of a long chain again for
        every link.
        """
        depth = 1 + max([self.deferred.get(atom, 0) for atom in effects.reads], default=0)
        if depth > _LONGEST_CHAIN:
            return None
        cost = cost_of(op.body)
        for atom in effects.reads:
            if atom in self.deferred:
                cost.work += self.producers[atom][0].cost.work
        made = rebuild(op, self.operand, block=lambda block: substitute(block, self.replacement))
        assert isinstance(made, ir.Map)
        for inner in made.body.statements:
            if inner.op.__class__ is ir.Prim:
                self.definitions[inner.outs[0]] = inner.op
        self.time += 1
        new = let if made is op else Let(let.outs, made, let.pos)
        self.offer(new, effects, cost)
        self.deferred.update((out, depth) for out in let.outs)
        return (new,)

    def inlinable(self, op: Op) -> bool:
        return isinstance(op, ir.Map) or (isinstance(op, ir.Reduce) and bool(op.extents) and _reads_along_rows(op))

    # ---- one read ----

    def load(self, let: Let, op: ir.Load) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, ir.Load)
        inlined = self.inline(Let(let.outs, new, let.pos), new)
        if inlined is not None:
            return inlined
        return None if new is op else (Let(let.outs, new, let.pos),)

    def inline(self, let: Let, op: ir.Load) -> list[Let] | None:
        """The producer's body in place of a load; None to keep the load."""
        found = self.producers.get(op.array)
        if found is None or (self.private is not None and not self.in_scatter()):
            return None
        producer, position = found
        key = (producer.let.outs[0], op.indices)
        known = next((seen[key] for seen in self.inlined if key in seen), None)
        if known is not None:  # ladders read each rung twice: copying it for each would double it at each
            return self.read_as(known[position], let) if self.unchanged_since(producer, op.indices) else None
        apart = not self.repeating and self.reads_each_once(producer, op.indices)
        once = producer.single and apart
        checked_before = producer.fails and not (once and self.visits_all(producer, op))
        if checked_before and not (once and self.can_check_before(producer)):
            return None
        if not self.worthwhile(producer, once, apart) or not self.unchanged_since(producer, op.indices):
            return None
        made = producer.let.op
        if producer.fails:
            (self.checking if checked_before else self.moved).update(producer.let.outs)
        statements: list[Let] = []
        results: list[Operand]
        if isinstance(made, ir.Map):
            mapping: dict[Var, Operand] = dict(zip(made.indices, op.indices, strict=True))
            body = made.body
            if checked_before:
                body = Block(tuple([one for one in body.statements if not isinstance(one.op, ir.Check)]), body.results)
            body = fresh_copy(body, mapping)
            statements += self.copied(body, not once)
            results = [self.operand(result) for result in body.results]
        else:
            assert isinstance(made, ir.Reduce)
            mapping = dict(zip(made.indices, op.indices, strict=True))
            loop = Let(producer.let.outs, _without_kept_axes(made), let.pos)
            copy = fresh_copy(Block((loop,)), mapping).statements[0]
            self.aliases.add(Block((copy,)))
            scalars = tuple([Var(var.name, Scalar(dtype_of(var))) for var in copy.outs])
            statements += self.statement(Let(scalars, copy.op, let.pos)) or (Let(scalars, copy.op, let.pos),)
            results = [*scalars]
        self.inlined[-1][key] = results
        return statements + self.read_as(results[position], let)

    def read_as(self, result: Operand, let: Let) -> list[Let]:
        """What is left of a read whose value has been computed."""
        (out,) = let.outs
        if result.type != out.type:
            return [Let((out,), ir.Cast(result), let.pos)]
        self.replacement[out] = result
        return []

    def copied(self, body: Block, repeated: bool) -> list[Let]:
        """The statements of a copied body, with its own loads fused where they are now."""
        self.aliases.add(body)
        outer, self.repeating = self.repeating, self.repeating or repeated
        statements: list[Let] = []
        for let in body.statements:
            new = self.statement(let)
            statements += (let,) if new is None else new
        self.repeating = outer
        return statements

    # ---- conditions ----

    def unchanged_since(self, producer: Producer, position: tuple[Operand, ...]) -> bool:
        """Would the producer read the same now as it did where it stands, and has its out not been changed?"""
        if any(self.written_at.get(atom, 0) > producer.time for atom in producer.memory):
            return False
        scopes = self.scopes[producer.level :]
        if all(scope.writes.isdisjoint(producer.memory) for scope in scopes):
            return True
        if len(scopes) != 1:
            return False
        return harmless_stores(scopes[0].op, producer.let, position, self.forms, self.aliases)

    def visits_all(self, producer: Producer, load: ir.Load) -> bool:
        """Would a check in the producer be made for the same points, in the same order, with nothing before it?"""
        if len(self.scopes) != producer.level + 1 or len(producer.let.outs) != 1 or self.last_effect > producer.time:
            return False
        scope, made = self.scopes[-1], producer.let.op
        if not isinstance(made, ir.Map) or not isinstance(scope.op, ir.Map | ir.Reduce | ir.Scan | ir.Scatter):
            return False
        if isinstance(scope.op, ir.Scatter) and (not self.in_scatter() or producer.cost.work > _MULTIPASS_WORK):
            return False
        effects = self.aliases.effects(scope.op)
        unseen = effects.pure or (isinstance(scope.op, ir.Scatter) and not effects.fails)
        return unseen and load.indices == scope.indices and made.extents == self.operands(_extents(scope.op))

    def can_check_before(self, producer: Producer) -> bool:
        """Can a producer's checks stay in place, and what they guard be computed in the operator that reads it?"""
        scopes, made = self.scopes[producer.level :], producer.let.op
        if self.private is not None or len(producer.let.outs) != 1 or len(scopes) != 1:
            return False
        if not isinstance(scopes[0].op, ir.Map | ir.Reduce) or not scopes[0].writes.isdisjoint(producer.memory):
            return False
        scalars = ir.Prim | ir.Cast | ir.Dim | ir.Load | ir.Check
        return isinstance(made, ir.Map) and all(isinstance(let.op, scalars) for let in made.body.statements)

    def without_results(self, let: Let) -> Let:
        """A statement, or nothing but its checks."""
        if self.checking.isdisjoint(let.outs):
            return let
        assert isinstance(let.op, ir.Map)
        return Let((), replace(let.op, body=Block(let.op.body.statements)), let.pos)

    def in_scatter(self) -> bool:
        """Is this in a scatter whose target is not visible if it fails?"""
        op = self.scopes[-1].op if self.scopes else None
        return self.private is not None and isinstance(op, ir.Scatter) and op.target in self.private

    def worthwhile(self, producer: Producer, once: bool, apart: bool) -> bool:
        """Is an element better computed at a read? It may be read `once` in all, or once at each place (`apart`)."""
        scopes = [scope.op for scope in self.scopes[producer.level :]]
        cost = producer.cost
        if cost.trivial:
            return True
        if any(isinstance(op, ir.For | ir.While) for op in scopes):
            return False
        multipass = any(isinstance(op, ir.Scan | ir.Compress) for op in scopes)
        if multipass and cost.work > _MULTIPASS_WORK:
            return False
        if isinstance(producer.let.op, ir.Reduce):
            return once and any(isinstance(op, ir.Reduce) for op in scopes)
        if once or self.sites.escaping.intersection(producer.let.outs):
            return once
        return cost.cheap or (apart and not multipass and cost.light(self.sites.places_of(producer.let.outs)))

    def reads_each_once(self, producer: Producer, position: tuple[Operand, ...]) -> bool:
        """Do the loops between the producer and this read visit each element at most once?"""
        scopes = self.scopes[producer.level :]
        if any(isinstance(scope.op, ir.While) for scope in scopes):
            return False
        needed = {
            index
            for scope in scopes
            for index, extent in zip(scope.indices, _extents(scope.op), strict=True)
            if not is_const(extent, 1)
        }
        if not needed:
            return True
        inner = {index for scope in scopes for index in scope.indices}
        for operand in position:
            form = self.forms.of(operand)
            varying = [(var, k) for var, k in form.terms if var in inner or self.level_of.get(var, 0) > producer.level]
            if len(varying) == 1 and abs(varying[0][1]) <= _LARGEST_COEFFICIENT:
                needed.discard(varying[0][0])
        return not needed


def _extents(op: Op) -> tuple[Operand, ...]:
    if isinstance(op, ir.For):
        return (Const(-1, ir.scalar_type(op.index)),)
    if isinstance(op, ir.Reduce):
        return op.extents + op.reduced_extents
    return op.extents if isinstance(op, ir.PARALLEL) else ()


def _without_kept_axes(op: ir.Reduce) -> ir.Reduce:
    return replace(op, extents=(), indices=())


def _reads_along_rows(op: ir.Reduce) -> bool:
    """Is the innermost loop of an inlined reduction over the last axis of what it reads?"""
    last = op.reduced_indices[-1]
    definitions = {let.outs[0]: let.op for let in op.body.statements if isinstance(let.op, ir.Prim)}
    forms = Forms(definitions)
    for let in op.body.statements:
        if isinstance(let.op, ir.Load) and len(let.op.indices) > 1:
            along = set(forms.of(let.op.indices[-1]).variables())
            if last not in along and not along.isdisjoint(op.indices):
                return False
    return True
