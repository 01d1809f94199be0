"""Updates through a mask: what is computed of selected elements and stored back is stored where they are.

Of what `masks` shows, this follows the stored value back through operators over the length of the selection to the
elements that were selected, and makes of it

    map i < n:  if m[i]:  z[i] := z[i] ** 2 + c[i]

which no array of what is selected is needed for. Selections that something else reads stay.

*Dependences.* The update reads when the store was made. So nothing may have been written, since they were selected, to
what it reads; and what it reads of the memory that it stores to has to be the very element that it stores to.

*When.* The value has to be made of cheap operations (`_MOST_WORK`, up to two divisions, no loops): vector code computes
it for elements that are not selected, too, and few may be. What costs more is computed in place where the mask is true
for half of the elements, which is counted; else the selections are made as before, there.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.exact_loops import is_loop
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO, Block, Function, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.fusion.cost import ENDLESS, cost_of
from parakeet_py.typed_ir.passes.fusion.masks import Mask, mask_of
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op, fresh_copy, is_const
from parakeet_py.typed_ir.writer import Writer, index_const

_MOST_WORK = 40
_DIVISIONS = 16  # what two of them cost
_MOST_STATEMENTS = 80  # of a value


def update_in_place(function: Function) -> Function:
    """Store what is computed of selected elements, back through the mask, where they are."""
    if not any(isinstance(let.op, ir.Compress) for let in function.statements()):
        return function
    return _Updates(function).function(function)


@record
class _Selected:
    """What the elements of an array of selected ones are: `block` gives the one of the point `indices`, where the mask
    is true; `reads` is the memory it is made of."""

    mask: Mask
    count: Operand
    indices: tuple[Var, ...]
    block: Block
    reads: frozenset[Var]


class _Updates(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.values: dict[Var, _Selected] = {}
        self.ones: set[Var] = set()  # conditions
        self.definitions: dict[Var, ir.Prim] = {}
        self.made: dict[Var, Let] = {}  # selections and what is computed of them, in this block

    def block(self, block: Block) -> Block:
        outer = self.values, self.made
        self.values, self.made = {}, {}
        new = super().block(block)
        self.values, self.made = outer
        return new

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Prim):
            self.definitions[let.outs[0]] = op
            if any(one in self.made for one in op.args):
                self.made[let.outs[0]] = let
            return self.descend(let)
        if not isinstance(op, ir.PARALLEL):
            new = self.descend(let)
            self.forget(op)
            return new
        if isinstance(op, ir.Compress):
            self.select(let, op)
            self.made.update(dict.fromkeys(let.outs, let))
            return self.descend(let)
        if not isinstance(op, ir.Map) or len(op.extents) != 1:
            self.forget(op)
            return self.descend(let)
        if let.outs:
            found = self.follow(op, op.body.results)
            if found is not None and len(let.outs) == 1:
                self.values[let.outs[0]] = found
                self.made[let.outs[0]] = let
            self.forget(op)
            return self.descend(let)
        update = self.update(let, op)
        if update is None:
            whole = self.whole(op)
            self.forget(op)
            if whole is not None:
                self.values.update([whole])
                self.made.pop(whole[0], None)  # it is not what it was made
            return self.descend(let)
        self.forget(op)
        return update

    def forget(self, op: ir.Op) -> None:
        """Values that are made of memory which an operator may write, and arrays that it writes."""
        effects = self.aliases.effects(op)
        if effects.writes or effects.calls:
            written = effects.writes | (self.aliases.world if effects.calls else frozenset())
            self.values = {
                array: value
                for array, value in self.values.items()
                if value.reads.isdisjoint(written) and self.aliases.atoms(array).isdisjoint(written)
            }

    def reads_of(self, block: Block) -> frozenset[Var]:
        found: set[Var] = set()
        for let in ir.walk(block):
            for array in ir.arrays_read(let.op):
                found |= self.aliases.atoms(array)
        return frozenset(found)

    def select(self, let: Let, op: ir.Compress) -> None:
        """Note what the arrays are that a selection makes."""
        mask = mask_of(op)
        if mask is None or any(not isinstance(one.op, ir.Prim | ir.Cast | ir.Load) for one in op.body.statements):
            return
        count = let.outs[0]
        for known in self.values.values():  # lengths that `share_counts` has made one
            if known.mask == mask:
                count = known.count if isinstance(known.count, Var) else count
        reads = self.reads_of(op.body) | self.aliases.atoms(mask[0])
        for out, result in zip(let.outs[1:], op.body.results[1:], strict=True):
            self.values[out] = _Selected(mask, count, op.indices, Block(op.body.statements, (result,)), reads)

    def whole(self, op: ir.Map) -> tuple[Var, _Selected] | None:
        """An array of selected elements all of which are replaced, and by what."""
        stores = [one for one in op.body.statements if isinstance(one.op, ir.Store)]
        if len(stores) != 1 or stores[0] is not op.body.statements[-1]:
            return None
        store = stores[0].op
        assert isinstance(store, ir.Store)
        known = self.values.get(store.array)
        if known is None or store.indices != op.indices or not self.is_length(op.extents[0], known):
            return None
        found = self.follow(op, (store.value,))
        return None if found is None or found.mask != known.mask else (store.array, found)

    def is_length(self, extent: Operand, value: _Selected) -> bool:
        return extent == value.count

    def follow(self, op: ir.Map, results: Sequence[Operand], skip: Sequence[Var] = ()) -> _Selected | None:
        """A value that a `Map` over selected elements computes, as one of the point that each was selected at."""
        (k,) = op.indices
        around: _Selected | None = None
        statements: list[Let] = []
        known: dict[Var, Operand] = {}  # variables of the body -> those of the value
        for let in op.body.statements:
            inner = let.op
            if isinstance(inner, ir.Store) or any(out in skip for out in let.outs):
                continue
            if isinstance(inner, ir.Load) and inner.array in self.values:
                if not self.is_own(inner.indices, op):
                    return None
                value = self.values[inner.array]
                if not self.is_length(op.extents[0], value) or (around is not None and around.mask != value.mask):
                    return None
                if around is None:
                    around = value
                mapping: dict[Var, Operand] = dict(zip(value.indices, around.indices, strict=True))
                body = fresh_copy(value.block, mapping) if value is not around else fresh_copy(value.block)
                statements += body.statements
                known[let.outs[0]] = body.results[0]
                continue
            if not isinstance(inner, ir.Prim | ir.Cast | ir.Load):
                return None
            if isinstance(inner, ir.Prim) and self.is_choice_of(inner, op):
                known[let.outs[0]] = k
                continue
            copy = fresh_copy(Block((let,), let.outs), dict(known))
            statements += copy.statements
            known[let.outs[0]] = copy.results[0]
        if around is None or len(results) != 1 or len(statements) > _MOST_STATEMENTS:
            return None
        result = known.get(results[0], results[0]) if isinstance(results[0], Var) else results[0]
        block = _without_unused(Block(tuple(statements), (result,)))
        if k in _variables(block):
            return None
        return _Selected(around.mask, around.count, around.indices, block, self.reads_of(block) | around.reads)

    def is_own(self, indices: tuple[Operand, ...], op: ir.Map) -> bool:
        """Is this the place of the point itself?"""
        if indices == op.indices:
            return True
        chosen = [one.op for one in op.body.statements if one.outs == indices]
        return len(chosen) == 1 and isinstance(chosen[0], ir.Prim) and self.is_choice_of(chosen[0], op)

    def is_choice_of(self, prim: ir.Prim, op: ir.Map) -> bool:
        """select(length == 1, 0, k) for k < length is k."""
        if prim.name != "select" or not is_const(prim.args[1], 0) or prim.args[2] != op.indices[0]:
            return False
        condition = self.definitions.get(prim.args[0]) if isinstance(prim.args[0], Var) else None
        return (
            condition is not None
            and condition.name == "eq"
            and set(condition.args) >= {op.extents[0]}
            and any(is_const(arg, 1) for arg in condition.args)
        )

    def update(self, let: Let, op: ir.Map) -> Sequence[Let] | None:
        """A store of selected elements to where they were selected, as a `Map` over all points."""
        *before, last = op.body.statements
        store = last.op
        if not isinstance(store, ir.Store) or op.body.results:
            return None
        loads = {one.outs[0]: one.op for one in before if isinstance(one.op, ir.Load)}
        places: list[_Selected] = []
        for index in store.indices:
            load = loads.get(index) if isinstance(index, Var) else None
            place = None if load is None or not self.is_own(load.indices, op) else self.values.get(load.array)
            if place is None or not self.is_length(op.extents[0], place):
                return None
            places.append(place)
        # The places are those of the points themselves, in order.
        if any(place.block.results != (place.indices[axis],) for axis, place in enumerate(places)):
            return None
        if not places or len(places) != len(places[0].indices) or any(one.mask != places[0].mask for one in places):
            return None
        skip = [index for index in store.indices if isinstance(index, Var) and index != store.value]
        found = self.follow(op, (store.value,), skip)
        if found is None or found.mask != places[0].mask:
            return None
        cost = cost_of(found.block)
        dear = cost.heavy > _DIVISIONS
        if cost.heavy >= ENDLESS or cost.work - cost.heavy > _MOST_WORK:
            return None
        if dear and any(isinstance(one.op, ir.Prim) and is_loop(one.op.name) for one in found.block.statements):
            return None
        mask, extents = found.mask
        indices = tuple([Var(index.name, index.type) for index in found.indices])
        mapping: dict[Var, Operand] = dict(zip(found.indices, indices, strict=True))
        body = fresh_copy(found.block, mapping)
        if not self.reads_only(body, store.array, indices):
            return None
        if self.aliases.may_alias(mask, store.array) and mask is not store.array:
            return None
        writer = Writer(let.pos)
        flag = writer.load(mask, *indices)
        stored = Let((), ir.Store(store.array, indices, body.results[0]), last.pos)
        writer.let(ir.If(flag, Block((*body.statements, stored)), Block(())))
        update = Let((), ir.Map(extents, indices, writer.block()), let.pos)
        return [update] if not dear else self.where_most_are(mask, extents, update, let)

    def where_most_are(self, mask: Var, extents: ir.Indices, update: Let, let: Let) -> Sequence[Let] | None:
        """An update in place where a mask is true for half of the elements, else the store of what is selected."""
        selected: dict[int, Let] = {}
        waiting = [let]
        while waiting:
            for var in free_in_op(waiting.pop().op):
                one = self.made.get(var)
                if one is not None and id(one) not in selected:
                    selected[id(one)] = one
                    waiting.append(one)
                elif var in self.values and one is None:
                    return None
        writer = Writer(let.pos)
        (count,) = writer.reduce(
            (), extents, lambda inner, *point: inner.cast(inner.load(mask, *point), "int64"), "add", (ZERO,), "count"
        )
        points: Operand = ONE
        for extent in extents:
            points = writer.prim("mul", points, extent, type_=PYINT)
        twice = writer.prim("mul", count, index_const(2), type_=PYINT)
        order = {id(one): at for at, one in enumerate(self.made.values())}
        again = fresh_copy(Block((*sorted(selected.values(), key=lambda one: order[id(one)]), let)))
        writer.let(ir.If(writer.prim("ge", twice, points, type_=PYBOOL), Block((update,)), again))
        return writer.statements

    def reads_only(self, body: Block, target: Var, indices: tuple[Var, ...]) -> bool:
        """Does a body read, of the memory of `target`, at most the element with these indices?"""
        for let in body.statements:
            op = let.op
            same = isinstance(op, ir.Load) and op.array is target and op.indices == indices
            if isinstance(op, ir.Load) and not same and self.aliases.may_alias(op.array, target):
                return False
        return True


def _variables(block: Block) -> set[Var]:
    used = {one for let in block.statements for one in ir.operands_of(let.op) if isinstance(one, Var)}
    return used | {one for one in block.results if isinstance(one, Var)}


def _without_unused(block: Block) -> Block:
    """A block of statements without effects, without those that its results do not need."""
    needed = {one for one in block.results if isinstance(one, Var)}
    kept: list[Let] = []
    for let in reversed(block.statements):
        if needed.intersection(let.outs):
            kept.append(let)
            needed.update(one for one in ir.operands_of(let.op) if isinstance(one, Var))
    return Block(tuple(reversed(kept)), block.results)
