"""Small snapshots: copy the row and the column that are read, not the whole right-hand side.

    path[:] = minimum(path, path[:, k:k+1] + path[k, :])

reads row and column k while it overwrites the array, so the right-hand side must be complete before the first store.
But what other iterations may overwrite is only read through `path[i, k]` and `path[k, j]`, which depend on one index
each. Those are copied (n + m elements), the right-hand side reads the copies, and fusion can then put it into the `Map`
that stores (instead of storing n * m elements and reading them back).

Done where a storing `Map` reads what an earlier `Map` of its block made, and every read of that one which is in the way
depends on fewer indices than the `Map` has. A copy is empty if any axis of the index space it leaves out is: what would
never have been read is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import PYBOOL, PYINT, Array
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Load, Map, Op, Operand, Prim, Store, Var, walk
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Forms
from parakeet_py.typed_ir.passes.fusion.store_rules import Access, Space, accesses, independent
from parakeet_py.typed_ir.rewrite import Rewriter, bound_in, fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const


def narrow_snapshots(function: Function) -> Function:
    """Copy rows and columns so that what reads them need not be stored."""
    if not any(isinstance(let.op, Map) and _stores(let.op) for let in function.statements()):
        return function
    return _Narrower(function).function(function)


def _stores(op: Map) -> bool:
    return any(isinstance(let.op, Store) for let in walk(op.body))


class _Narrower(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.definitions: dict[Var, Op] = {
            let.outs[0]: let.op for let in function.statements() if isinstance(let.op, Prim)
        }
        self.forms = Forms(self.definitions)
        self.blocking: dict[int, list[Let]] = {}  # producer (by id) -> its loads that are in the way

    def block(self, block: Block) -> Block:
        makers = {out: let for let in block.statements if isinstance(let.op, Map) for out in let.outs}
        for let in block.statements:
            if isinstance(let.op, Map) and _stores(let.op):
                for inner in let.op.body.statements:
                    op = inner.op
                    maker = makers.get(op.array) if isinstance(op, Load) and op.indices == let.op.indices else None
                    if maker is not None:
                        self.note(maker, let.op)
        return super().block(block)

    def note(self, producer: Let, consumer: Map) -> None:
        """Remember the loads of the producer that keep it out of the consumer, if all of them can be narrowed."""
        made = producer.op
        assert isinstance(made, Map)
        space = Space(made.indices, bound_in(made.body) | bound_in(consumer.body))
        at = dict(zip(consumer.indices, made.indices, strict=True))
        stores = []
        for store in accesses(consumer.body, self.forms, Store):
            position = store.position
            for old, new in at.items():
                if position is not None:
                    position = tuple([form.substitute(old, self.forms.of(new)) for form in position])
            stores.append(Access(store.array, position))
        blocking = []
        for let in made.body.statements:
            op = let.op
            if not isinstance(op, Load):
                continue
            read = Access(op.array, tuple([self.forms.of(index) for index in op.indices]))
            for store in stores:
                if self.aliases.may_alias(read.array, store.array) and not independent(read, store, space):
                    blocking.append(let)
                    break
        if blocking and all(self.depends_on(let.op, made) is not None for let in blocking):
            self.blocking[id(producer)] = blocking

    def depends_on(self, op: Op, made: Map) -> list[int] | None:
        """The axes of the index space that a load depends on; None if all, or if on more than index arithmetic."""
        assert isinstance(op, Load)
        variables = {var for index in op.indices for var in self.forms.of(index).variables()}
        if variables & bound_in(made.body):
            return None
        axes = [axis for axis, index in enumerate(made.indices) if index in variables]
        return axes if len(axes) < len(made.indices) else None

    def statement(self, let: Let) -> Sequence[Let] | None:
        blocking = self.blocking.get(id(let))
        if blocking is None:
            return self.descend(let)
        made = let.op
        assert isinstance(made, Map)
        writer = Writer(let.pos)
        replaced: dict[int, Let] = {}
        for load in blocking:
            copy, indices = self.copy(writer, load, made)
            replaced[id(load)] = Let(load.outs, Load(copy, indices), load.pos)
        statements = tuple([replaced.get(id(inner), inner) for inner in made.body.statements])
        body = Block(statements, made.body.results)
        changed = Let(let.outs, Map(made.extents, made.indices, body), let.pos)
        return [*writer.statements, *(self.descend(changed) or (changed,))]

    def copy(self, writer: Writer, load: Let, made: Map) -> tuple[Var, tuple[Operand, ...]]:
        """A new array of what one load reads, and the indices to read it with."""
        op = load.op
        assert isinstance(op, Load)
        axes = self.depends_on(op, made)
        assert axes is not None
        some: Operand | None = None
        for axis, extent in enumerate(made.extents):
            if axis not in axes and not (isinstance(extent, Const) and extent.value != 0):
                test = writer.prim("ne", extent, index_const(0), type_=PYBOOL)
                some = test if some is None else writer.prim("and", some, test, type_=PYBOOL)
        extents: list[Operand] = [made.extents[axis] for axis in axes] or [index_const(1)]
        if some is not None:
            extents[0] = writer.prim("select", some, extents[0], index_const(0), type_=PYINT)
        needed = _defining(op.indices, made.body)
        indices = tuple([made.indices[axis] for axis in axes]) or (Var("i", PYINT),)
        element = Var("e", load.outs[0].type)
        body = Block((*needed, Let((element,), op, load.pos)), (element,))
        assert isinstance(op.array.type, Array)
        out = Var("snapshot", Array(op.array.type.dtype, len(extents)))
        mapping: dict[Var, Operand] = {}
        fresh = tuple([Var(index.name, index.type) for index in indices])
        mapping.update(zip(indices, fresh, strict=True))
        writer.let(Map(tuple(extents), fresh, fresh_copy(body, mapping)), out)
        return out, tuple([made.indices[axis] for axis in axes]) or (index_const(0),)


def _defining(operands: Sequence[Operand], body: Block) -> list[Let]:
    """The statements of a body that compute these operands, in order."""
    wanted = {operand for operand in operands if isinstance(operand, Var)}
    found: list[Let] = []
    for let in reversed(body.statements):
        if isinstance(let.op, Prim) and let.outs[0] in wanted:
            found.append(let)
            wanted.update(arg for arg in let.op.args if isinstance(arg, Var))
    return found[::-1]
