"""Two products of one matrix and vectors in one pass over the matrix.

    t := matmul a, x                for each block of some rows of a:
    r := matmul t, a          ->        t[rows] := matmul a[rows], x
                                        r += matmul t[rows], a[rows]

The time of such a product is that of reading its matrix. A block stays in the second-level cache between the two, so
that memory is read once. Both products may go along the rows or across them; the second one may take what the first
one gives (above), unless that needs all of it.

*Moving.* The second product is computed where the first one is. What it needs is computed there, too, if that is
arithmetic or memory; what stands between them must not write what it reads. Checks between them may be what
makes it legal: where they will fail, and where the matrix is small, both products stay as they are.

*Threads* take parts of the rows, one for each CPU there is (`product_parts`), and each part has sums of its own: cut as
single products are, by rows along the matrix and by columns across it, the second one would find its part of a block
in the caches of other CPUs.

*Sums* across the rows are added up block by block, then part by part (by a product with ones). NumPy leaves their
order to BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.config import product_parts
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, PYBOOL, PYINT, Array, Scalar, is_complex, itemsize
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO, Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.rewrite import Rewriter, free_in_op
from parakeet_py.typed_ir.writer import Writer, index_const

BLOCK = 512 * 1024  # bytes of a block of rows, for each thread
LEAST = 16  # blocks: below, the matrix stays in a cache; and the most parts
NARROWEST = 32  # columns: below, calls cost as much as what is read
ROWS = 8  # a block has a multiple of so many, which BLAS's kernels take together


def share_matrices(function: Function) -> Function:
    """Compute products of the same matrix and two vectors block by block."""
    products = [let.op for let in function.statements() if isinstance(let.op, ir.Matmul)]
    if len(products) < 2:
        return function
    return _Sharer(function).function(function)


@record
class _Product:
    """A product of a matrix and a vector: along the rows of the matrix (a @ x), or across them (x @ a)."""

    at: int
    op: ir.Matmul
    matrix: Var
    vector: Var
    along: bool


@record
class _Pair:
    first: _Product
    second: _Product
    needed: frozenset[int]  # what between them the second one needs, by its place
    conditions: tuple[Var, ...]  # of the checks between them


def _product(at: int, op: ir.Op) -> _Product | None:
    if not isinstance(op, ir.Matmul):
        return None
    assert isinstance(op.left.type, Array) and isinstance(op.right.type, Array)
    along = op.left.type.rank == 2
    matrix, vector = (op.left, op.right) if along else (op.right, op.left)
    assert isinstance(matrix.type, Array) and isinstance(vector.type, Array)
    fits = matrix.type.rank == 2 and vector.type.rank == 1 and matrix.type.layout == "C"
    return _Product(at, op, matrix, vector, along) if fits else None


class _Sharer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)

    def block(self, block: Block) -> Block:
        last: dict[Var, _Product] = {}
        pairs: dict[int, _Pair] = {}
        for at, let in enumerate(block.statements):
            second = _product(at, let.op)
            if second is None:
                continue
            first = last.pop(second.matrix, None)
            pair = None if first is None else self.pair(block.statements, first, second)
            if pair is None:
                last[second.matrix] = second
            elif not any(one.first.at < at and pair.first.at < one.second.at for one in pairs.values()):
                pairs[pair.first.at] = pair
        for at in sorted(pairs, reverse=True):
            block = Block(tuple(_together(block.statements, pairs[at])), block.results)
        return super().block(block)

    def pair(self, statements: Sequence[Let], first: _Product, second: _Product) -> _Pair | None:
        """Two products that can be computed together."""
        between = range(first.at + 1, second.at)
        if second.vector is first.op.out and (second.along or not first.along):
            return None
        conditions = [
            one.op.condition
            for one in statements[first.at + 1 : second.at]
            if isinstance(one.op, ir.Check) and isinstance(one.op.condition, Var)
        ]
        wanted = {second.op.out, *conditions}
        if second.vector is not first.op.out:
            wanted.add(second.vector)
        needed = set()
        for at in reversed(between):
            let = statements[at]
            if wanted.isdisjoint(let.outs):
                continue
            effects = self.aliases.effects(let.op)
            if not _movable(let.op) or effects.overflows or effects.fails:
                return None
            needed.add(at)
            wanted.update(free_in_op(let.op))
        if first.op.out in wanted or not any(second.op.out in statements[at].outs for at in needed):
            return None
        read = self.aliases.atoms(second.matrix) | self.aliases.atoms(second.vector)
        for at in between:
            effects = self.aliases.effects(statements[at].op)
            if not effects.writes.isdisjoint(read):
                return None
            if effects.calls or (effects.fails and not isinstance(statements[at].op, ir.Check)):
                return None
            if at not in needed and second.op.out in free_in_op(statements[at].op):
                return None
        return _Pair(first, second, frozenset(needed), tuple(dict.fromkeys(conditions)))


def _movable(op: ir.Op) -> bool:
    """Whether an operator can be computed before the checks that stand above it."""
    return isinstance(op, ir.Prim | ir.Dim | ir.Cast | ir.Alloc)


def _together(statements: Sequence[Let], pair: _Pair) -> list[Let]:
    """A block whose products are computed block by block of their matrix's rows, where that pays."""
    first, second = pair.first, pair.second
    writer = Writer(statements[first.at].pos)
    rows, columns = writer.dim(first.matrix), writer.dim(first.matrix, 1)
    size = BLOCK // itemsize(dtype_of(first.matrix))
    most = writer.prim("floordiv", index_const(size // ROWS), writer.prim("maximum", columns, ONE))
    step = writer.prim("mul", writer.prim("maximum", most, ONE), index_const(ROWS))
    paying = writer.prim("ge", rows, writer.prim("mul", step, index_const(LEAST)), type_=PYBOOL)
    on_device = writer.prim(ir.ON_DEVICE, Const(False, BOOL), type_=BOOL)  # where each product is a kernel
    tests = [
        writer.prim("not", on_device, type_=BOOL),
        writer.prim("ge", columns, index_const(NARROWEST), type_=PYBOOL),
        writer.prim("le", columns, index_const(size // ROWS), type_=PYBOOL),
        *pair.conditions,
    ]
    for test in tests:
        paying = writer.prim("and", paying, test, type_=PYBOOL)
    blocks = Writer(writer.pos)
    _all_blocks(blocks, pair, rows, columns, step)
    before, between, behind = (
        statements[: first.at],
        statements[first.at + 1 : second.at],
        statements[second.at + 1 :],
    )
    moved = [statements[at] for at in sorted(pair.needed)]
    kept = [let for at, let in enumerate(between, first.at + 1) if at not in pair.needed]
    alone = [
        Let((), ir.If(paying, taken, Block((statements[product.at],), ())), statements[product.at].pos)
        for product, taken in ((first, blocks.block()), (second, Block((), ())))
    ]
    return [*before, *moved, *writer.statements, alone[0], *kept, alone[1], *behind]


def _all_blocks(writer: Writer, pair: _Pair, rows: Operand, columns: Operand, step: Operand) -> None:
    """Both products, by parts of the rows that threads share, block by block."""
    both = (pair.first, pair.second)
    parts, part = index_const(min(product_parts(), LEAST)), Var("part", PYINT)
    above = writer.prim("add", rows, writer.prim("mul", parts, index_const(ROWS)))
    share = writer.prim("floordiv", above, writer.prim("mul", parts, index_const(ROWS)))
    share = writer.prim("mul", share, index_const(ROWS))
    across = [product for product in both if not product.along]
    sums: dict[Var, Var] = {}
    for product in across:
        dtype = dtype_of(product.op.out)
        sums[product.op.out] = _filled(writer, dtype, 0, parts, columns)
    body = Writer(writer.pos)
    first = body.prim("minimum", body.prim("mul", part, share), rows)
    last = body.prim("minimum", body.prim("add", first, share), rows)
    start, block = Var("i", PYINT), Writer(writer.pos)
    length = block.prim("minimum", block.prim("sub", last, start, type_=PYINT), step, type_=PYINT)
    matrix = block.view(pair.first.matrix, (start, ZERO), (_axis(0, length), _axis(1, columns)), "C")
    for product in both:
        _one_block(block, product, matrix, (start, length), sums.get(product.op.out), part)
    body.let(ir.For(start, first, last, step, (), (), block.block()))
    writer.let(ir.Map((parts,), (part,), body.block()))
    for product in across:
        ones = _filled(writer, dtype_of(product.op.out), 1, parts)
        writer.let(ir.Matmul(product.op.out, ones, sums[product.op.out]))


def _filled(writer: Writer, dtype: str, value: int, *extents: Operand) -> Var:
    """An array full of zeros or ones."""
    number = Const(complex(value) if is_complex(dtype) else float(value), Scalar(dtype))
    return writer.map1(extents, lambda inner, *indices: number, "sums")


def _one_block(
    body: Writer, product: _Product, matrix: Var, rows: tuple[Var, Var], sums: Var | None, part: Var
) -> None:
    """What some rows of the matrix, a start and how many, are for a product; `sums[part]` collects it across them."""
    op = product.op
    start, length = rows
    if sums is None:
        some = body.view(op.out, (start,), (_axis(0, length),), "C")
        body.let(ir.Matmul(some, matrix, product.vector))
        return
    kind = product.vector.type
    assert isinstance(kind, Array)
    some = body.view(product.vector, (start,), (_axis(0, length),), kind.layout if kind.layout in "CS" else "A")
    columns = body.dim(matrix, 1)
    own = body.alloc(dtype_of(op.out), columns, title="own")
    body.let(ir.Matmul(own, some, matrix))

    def add(inner: Writer, j: Var) -> None:
        inner.store(sums, (part, j), inner.prim("add", inner.load(sums, part, j), inner.load(own, j)))

    body.map((columns,), add)


def _axis(source: int, extent: Operand) -> ir.ViewAxis:
    return ir.ViewAxis(source, extent, ONE)
