"""Horizontal fusion: operators over one index space that read the same memory become one operator with all results.

A put and a call price from the same inputs, a sum and a sum of squares, three components of a force: one pass over
memory instead of several. A later `Map` may also read, at its own index, what an earlier one makes (which stays an out
if others need it), and both may store where no iteration touches another's elements.

The statements of a block form a graph: definitions before uses, and effects in order (reads and writes of one memory;
a check after the stores before it, and before everything that loads or stores after it). Two operators can be one
if no path between them leads through a third statement. Ancestors are kept as bit sets; merged blocks are emitted in an
order that respects the graph and otherwise stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases, Effects
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear, atom
from parakeet_py.typed_ir.passes.fusion.store_rules import Access, Space, accesses, disjoint, own_element
from parakeet_py.typed_ir.rewrite import Rewriter, bound_in, free_in_op, substitute

_WINDOW = 6  # how many earlier operators of the same space are tried
_MOST_ARRAYS = 16  # arrays one merged operator may touch: more streams than caches and registers like


def fuse_horizontally(function: Function) -> Function:
    """Merge operators over equal index spaces."""
    return _Merger(function).function(function)


@record(frozen=False)
class _Group:
    """Operators merged so far; a group of one to begin with."""

    members: list[int]
    mask: int
    ancestors: int
    arrays: set[Var]
    outs: set[Var]


@record(frozen=False)
class _Node:
    let: Let
    effects: Effects
    needs: list[int]  # statements of the block that must come before
    free: dict[Var, None]
    arrays: set[Var]  # that it loads from or stores to
    group: _Group | None = None
    ancestors: int = 0  # all statements that must come before, as bits
    emitted: bool = False

    def all_ancestors(self) -> int:
        return self.ancestors if self.group is None else self.group.ancestors


@record(frozen=False)
class _Order:
    """Effects so far, to find which earlier statements a statement must follow."""

    writer: dict[Var, int] = field(default_factory=dict)
    readers: dict[Var, list[int]] = field(default_factory=dict)
    guard: int | None = None
    stores: list[int] = field(default_factory=list)

    def follow(self, position: int, op: Op, effects: Effects) -> list[int]:
        needs: list[int] = []
        for atom_ in effects.reads | effects.writes:
            if atom_ in self.writer:
                needs.append(self.writer[atom_])
        for atom_ in effects.writes:
            needs += self.readers.pop(atom_, ())
            self.writer[atom_] = position
        for atom_ in effects.reads - effects.writes:
            self.readers.setdefault(atom_, []).append(position)
        if self.guard is not None and not isinstance(op, ir.Pure):
            needs.append(self.guard)
        if effects.fails:
            needs += self.stores
            self.stores = []
            self.guard = position
        elif effects.writes:
            self.stores.append(position)
        return needs


class _Merger(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.definitions: dict[Var, Op] = {
            let.outs[0]: let.op for let in ir.walk(function.body) if let.op.__class__ is ir.Prim
        }
        self.forms = Forms(self.definitions)

    def block(self, block: Block) -> Block:
        block = super().block(block)
        keys = [key for let in block.statements if (key := _space(let.op)) is not None]
        if len(set(keys)) == len(keys):
            return block
        nodes = self.graph(block)
        merged = False
        open_groups: dict[object, list[_Group]] = {}
        for position, node in enumerate(nodes):
            for earlier in node.needs:
                group = nodes[earlier].group
                if group is None:
                    node.ancestors |= nodes[earlier].ancestors | 1 << earlier
                else:
                    node.ancestors |= group.ancestors | group.mask
            key = _space(node.let.op)
            if key is None or node.effects.fails:
                continue
            groups = open_groups.setdefault(key, [])
            for group in reversed(groups[-_WINDOW:]):
                if self.mergeable(nodes, group, position):
                    self.merge(nodes, group, position)
                    merged = True
                    break
            else:
                node.group = _Group([position], 1 << position, node.ancestors, set(node.arrays), set(node.let.outs))
                groups.append(node.group)
        if not merged:
            return block
        return Block(tuple(self.emit(nodes)), block.results)

    def graph(self, block: Block) -> list[_Node]:
        nodes = []
        order = _Order()
        defined: dict[Var, int] = {}
        for position, let in enumerate(block.statements):
            effects = self.aliases.effects(let.op)
            needs = order.follow(position, let.op, effects)
            free = free_in_op(let.op)
            needs += [defined[var] for var in free if var in defined]
            arrays = _touched(let.op) if _space(let.op) is not None else set()
            nodes.append(_Node(let, effects, list(dict.fromkeys(needs)), free, arrays))
            for out in let.outs:
                defined[out] = position
        return nodes

    # ---- conditions ----

    def mergeable(self, nodes: list[_Node], group: _Group, position: int) -> bool:
        node = nodes[position]
        for earlier in node.needs:
            if not group.mask >> earlier & 1 and nodes[earlier].all_ancestors() & group.mask:
                return False
        if node.arrays.isdisjoint(group.arrays) and node.arrays.isdisjoint(group.outs):
            return False
        if len(node.arrays | group.arrays) > _MOST_ARRAYS:
            return False
        if isinstance(node.let.op, ir.Reduce):
            first = nodes[group.members[0]].let.op
            assert isinstance(first, ir.Reduce)
            if not (_is_simple(first) and _is_simple(node.let.op)):
                return False
            reductions = [node.let.op, *(nodes[member].let.op for member in group.members)]
            if len({(op.runs, _unit(op)) for op in reductions if isinstance(op, ir.Reduce) and op.runs}) > 1:
                return False
        return all(self.compatible(nodes[member], node) for member in group.members)

    def compatible(self, first: _Node, second: _Node) -> bool:
        """May one iteration run both bodies, `first` before `second`?"""
        one, two = first.let.op, second.let.op
        if isinstance(one, ir.Reduce):
            return second.free.keys().isdisjoint(first.let.outs)
        assert isinstance(one, ir.Map) and isinstance(two, ir.Map)
        made = set(first.let.outs)
        if not made.isdisjoint(second.free):
            for let in _lets(two):
                op = let.op
                if isinstance(op, ir.Load) and op.array in made:
                    if op.indices != two.indices:
                        return False
                elif made.intersection(free_in_op(op)):
                    return False
        conflicts = (first.effects.writes & (second.effects.reads | second.effects.writes)) | (
            second.effects.writes & first.effects.reads
        )
        if not conflicts:
            return True
        if conflicts & (made | set(second.let.outs)):
            return False
        rename = {old: atom(new) for old, new in zip(two.indices, one.indices, strict=True)}
        space = Space(one.indices, bound_in(one.body) | bound_in(two.body))
        for kind, other in ((ir.Load, ir.Store), (ir.Store, ir.Load), (ir.Store, ir.Store)):
            for left in accesses(one.body, self.forms, kind):
                for right in accesses(two.body, self.forms, other):
                    if self.aliases.may_alias(left.array, right.array) and not _separate(left, right, rename, space):
                        return False
        return True

    # ---- merging ----

    def merge(self, nodes: list[_Node], group: _Group, position: int) -> None:
        node = nodes[position]
        group.members.append(position)
        group.mask |= 1 << position
        group.ancestors = (group.ancestors | node.ancestors) & ~group.mask
        group.arrays |= node.arrays
        group.outs.update(node.let.outs)
        node.group = group
        for between in range(group.members[0] + 1, position):
            other = nodes[between]
            if other.group is None:
                if other.ancestors & group.mask:
                    other.ancestors |= group.ancestors | group.mask
            elif other.group is not group and other.group.ancestors & group.mask:
                other.group.ancestors |= group.ancestors | group.mask

    def emit(self, nodes: list[_Node]) -> list[Let]:
        statements: list[Let] = []

        def place(position: int) -> None:
            node = nodes[position]
            if node.emitted:
                return
            members = node.group.members if node.group is not None else [position]
            for member in members:
                nodes[member].emitted = True
            for member in members:
                for earlier in sorted(nodes[member].needs):
                    place(earlier)
            statements.append(_merged([nodes[member].let for member in members]))

        for position in range(len(nodes)):
            place(position)
        return statements


def _touched(op: Op) -> set[Var]:
    return {let.op.array for let in _lets(op) if isinstance(let.op, ir.Load | ir.Store)}


def _lets(op: Op) -> list[Let]:
    assert isinstance(op, ir.Map | ir.Reduce)
    return list(ir.walk(op.body))


def _space(op: Op) -> object | None:
    """Operators with equal keys run over the same points."""
    if isinstance(op, ir.Map):
        return ("map", op.extents)
    if isinstance(op, ir.Reduce):
        return ("reduce", op.extents, op.reduced_extents)
    return None


def _unit(op: ir.Reduce) -> bool:
    """Complex numbers are added in units of four, others of eight."""
    return any(is_complex(dtype_of(init)) for init in op.inits)


def _is_simple(op: ir.Reduce) -> bool:
    """Is each result combined on its own, by one primitive? (What vectorises, and goes on to after merging.)"""
    count = len(op.inits)
    accumulators, contributions = op.combine.params[:count], op.combine.params[count:]
    body = op.combine.body
    if len(body.statements) != count:
        return False
    for let, result, acc, new in zip(body.statements, body.results, accumulators, contributions, strict=True):
        if not isinstance(let.op, ir.Prim) or let.outs != (result,) or set(let.op.args) != {acc, new}:
            return False
    return True


def _separate(left: Access, right: Access, rename: dict[Var, Linear], space: Space) -> bool:
    """Does `left` in one iteration never touch what `right` touches in another?"""
    if left.array is not right.array or left.position is None or right.position is None:
        return False
    moved = tuple([_renamed(form, rename) for form in right.position])
    return (left.position == moved and own_element(moved, space)) or disjoint(left.position, moved, space)


def _renamed(form: Linear, rename: dict[Var, Linear]) -> Linear:
    for var in form.variables():
        if var in rename:
            form = form.substitute(var, rename[var])
    return form


def _merged(lets: Sequence[Let]) -> Let:
    if len(lets) == 1:
        return lets[0]
    first = lets[0]
    outs = tuple([out for let in lets for out in let.outs])
    if isinstance(first.op, ir.Map):
        return Let(outs, ir.Map(first.op.extents, first.op.indices, _merged_maps(lets, first.op.indices)), first.pos)
    op = first.op
    assert isinstance(op, ir.Reduce)
    statements: list[Let] = []
    combining: list[Let] = []
    results: list[Operand] = []
    inits: list[Operand] = []
    accumulators: list[Var] = []
    contributions: list[Var] = []
    combined: list[Operand] = []
    for let in lets:
        other = let.op
        assert isinstance(other, ir.Reduce)
        rename: dict[Var, Operand] = dict(
            zip((*other.indices, *other.reduced_indices), (*op.indices, *op.reduced_indices), strict=True)
        )
        body = substitute(other.body, rename)
        statements += body.statements
        results += body.results
        inits += other.inits
        count = len(other.inits)
        accumulators += other.combine.params[:count]
        contributions += other.combine.params[count:]
        combining += other.combine.body.statements
        combined += other.combine.body.results
    combine = ir.Lambda((*accumulators, *contributions), Block(tuple(combining), tuple(combined)))
    body = Block(tuple(statements), tuple(results))
    reduced, indices = op.reduced_extents, op.reduced_indices
    runs = next((let.op.runs for let in lets if isinstance(let.op, ir.Reduce) and let.op.runs), ())
    return Let(outs, ir.Reduce(op.extents, op.indices, reduced, indices, body, tuple(inits), combine, runs), first.pos)


def _merged_maps(lets: Sequence[Let], indices: tuple[Var, ...]) -> Block:
    """The bodies one after the other; what an earlier one makes is read as a value."""
    statements: list[Let] = []
    results: list[Operand] = []
    made: dict[Var, Operand] = {}
    for let in lets:
        op = let.op
        assert isinstance(op, ir.Map)
        body = substitute(op.body, dict(zip(op.indices, indices, strict=True)))
        body = _Forward(made).block(body)
        statements += body.statements
        results += body.results
        made.update(zip(let.outs, body.results, strict=True))
    return Block(tuple(statements), tuple(results))


class _Forward(Rewriter):
    """Reads of what this iteration makes become the value."""

    def __init__(self, made: dict[Var, Operand]) -> None:
        super().__init__()
        self.made = made

    def statement(self, let: Let) -> Sequence[Let] | None:
        op = let.op
        if isinstance(op, ir.Load) and op.array in self.made:
            value = self.made[op.array]
            if value.type == let.outs[0].type:
                self.replacement[let.outs[0]] = value
                return ()
            return (Let(let.outs, ir.Cast(value), let.pos),)
        return self.descend(let)
