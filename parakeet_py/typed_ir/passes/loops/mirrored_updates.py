"""Updates of an array by its own mirror image take both elements of a pair at once.

    t := map i < n: f(a[n - 1 - i])              map j < (n + 1) // 2:
    map i < n: a[i] := g(a[i], t[i])      ->         x, y = a[j], a[n - 1 - j]
                                                     a[j], a[n - 1 - j] := g(x, f(y)), g(y, f(x))

That is what `a += k * a[::-1]`, Levinson's recursion and a reversal in place come to: what is read has to be kept,
as the update overwrites it. Two elements that are each other's image depend on nothing but both, so nothing is kept,
and the array is read and written once. Each element is computed by the same expression as before; the one in the
middle is computed twice.

Done where both bodies are arithmetic and loads of this array, which is contiguous, or of others that share no memory
with it. Devices keep both kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, Block, Const, Function, Let, Map, Operand, Store, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear, atom
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const

_SCALARS = ir.Prim | ir.Cast | ir.Dim


def pair_updates(function: Function) -> Function:
    """Update arrays by their mirror images in place."""
    if not any(_store_of(let.op) is not None for let in function.statements()):
        return function
    return _Pairer(function).function(function)


def _store_of(op: ir.Op) -> Store | None:
    """The only store of a `Map` over one axis, at its index."""
    if not isinstance(op, Map) or len(op.indices) != 1 or op.body.results:
        return None
    stores = [let.op for let in op.body.statements if isinstance(let.op, Store)]
    return stores[0] if len(stores) == 1 and stores[0].indices == op.indices else None


@record
class _Update:
    kept: Let  # the `Map` that reads the mirror image
    update: Map
    store: Store


class _Pairer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.forms = Forms({let.outs[0]: let.op for let in function.statements() if isinstance(let.op, ir.Prim)})
        self.uses = Counter(operand for let in function.statements() for operand in ir.operands_of(let.op))
        for let in function.statements():
            self.uses.update(result for one in ir.blocks_of(let.op) for result in one.results)
        self.uses.update(function.body.results)

    def block(self, block: Block) -> Block:
        block = super().block(block)
        statements: list[Let] = []
        kept: Let | None = None  # the last operator, with scalars behind it
        for let in block.statements:
            found = None if kept is None else self.update(kept, let)
            if found is not None:
                statements.remove(found.kept)
                statements += _in_pairs(found, let)
                kept = None
                continue
            statements.append(let)
            if not isinstance(let.op, _SCALARS):
                kept = let if isinstance(let.op, Map) and len(let.outs) == 1 else None
        return block if statements == list(block.statements) else Block(tuple(statements), block.results)

    def update(self, kept: Let, let: Let) -> _Update | None:
        made, op, store = kept.op, let.op, _store_of(let.op)
        assert isinstance(made, Map)
        if store is None or not isinstance(op, Map) or made.extents != op.extents or store.array in kept.outs:
            return None
        effects = [self.aliases.effects(one) for one in (made, op)]
        if any(one.fails or one.overflows or one.calls for one in effects) or effects[0].writes:
            return None
        (index,), array, (out,) = op.indices, store.array, kept.outs
        last = self.forms.of(op.extents[0]) - Linear(1)
        mirror = last - atom(made.indices[0])
        reads = 0
        for inner in op.body.statements:
            if isinstance(inner.op, ir.Load):
                own = inner.op.array is array or inner.op.array is out
                reads += inner.op.array is out
                if own and inner.op.indices != (index,):
                    return None
                if not own and self.aliases.may_alias(inner.op.array, array):
                    return None
            elif not isinstance(inner.op, _SCALARS | Store):
                return None
        if self.uses[out] != reads or not reads:
            return None
        for inner in made.body.statements:
            if isinstance(inner.op, ir.Load):
                own = inner.op.array is array
                if own and self.forms.of(inner.op.indices[0]) - mirror != Linear(0):
                    return None
                if not own and self.aliases.may_alias(inner.op.array, array):
                    return None
            elif not isinstance(inner.op, _SCALARS):
                return None
        (result,) = made.body.results
        plain, contiguous = Scalar(dtype_of(out)), isinstance(array.type, Array) and array.type.layout == "C"
        return _Update(kept, op, store) if result.type == plain and contiguous else None


def _in_pairs(found: _Update, let: Let) -> list[Let]:
    """The update by pairs; on devices both operators."""
    writer = Writer(let.pos)
    pairs = Writer(let.pos)
    extent, array = found.update.extents[0], found.store.array
    half = pairs.prim("floordiv", pairs.prim("add", extent, ONE, type_=PYINT), index_const(2), type_=PYINT)
    last = pairs.prim("sub", extent, ONE, type_=PYINT)

    def both(inner: Writer, place: Var) -> None:
        mirror = inner.prim("sub", last, place, type_=PYINT)
        x, y = inner.load(array, place), inner.load(array, mirror)
        values = [_one(inner, found, *one) for one in ((place, x, y), (mirror, y, x))]
        for at, value in zip((place, mirror), values, strict=True):
            inner.store(array, (at,), value)

    pairs.map((half,), both)
    on_device = writer.prim(ir.ON_DEVICE, Const(False, BOOL), type_=BOOL)
    writer.let(ir.If(on_device, Block((found.kept, let)), pairs.block()))
    return writer.statements


def _one(writer: Writer, found: _Update, place: Var, own: Operand, image: Operand) -> Operand:
    """What an element becomes, by itself and by its image."""
    made, array, (out,) = found.kept.op, found.store.array, found.kept.outs
    assert isinstance(made, Map)
    known: dict[Var, Operand] = {made.indices[0]: place}
    (kept,) = _copied(writer, made.body, {array: image}, known, made.body.results)
    known = {found.update.indices[0]: place}
    (value,) = _copied(writer, found.update.body, {array: own, out: kept}, known, (found.store.value,))
    return value


def _copied(
    writer: Writer, body: Block, values: dict[Var, Operand], known: dict[Var, Operand], results: Sequence[Operand]
) -> tuple[Operand, ...]:
    """Write a body's arithmetic, with the values of some arrays' elements; gives its results."""
    rest = []
    for let in body.statements:
        if isinstance(let.op, ir.Load) and let.op.array in values:
            known[let.outs[0]] = values[let.op.array]
        elif not isinstance(let.op, Store):
            rest.append(let)
    copy = fresh_copy(Block(tuple(rest), tuple(results)), known)
    writer.statements += copy.statements
    return copy.results
