"""Products of a computed matrix and a vector become sums, in which the matrix is computed where it is read.

    m = map i, j: alpha * a[i, j]               y = reduce i over k: (alpha * a[i, k]) * x[k]
    y := matmul m, x                    ->

A matrix-vector product reads its matrix once, so that its time is that of reading it. Storing the matrix first means
writing it and reading it again: three times the traffic, and memory that is mapped anew. As an operator of its own the
sum fuses with what makes the matrix (`vertical`), and with other sums over the same index space (`horizontal`).

This is done where a `Map` makes the matrix and the product is all that reads it. Products of matrices read each element
many times, and stay BLAS's; so do those of a vector and a matrix, whose sums run across the rows.

*Sums.* NumPy leaves the order to BLAS; these have none either (`imp.lower.free_sums`).
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Scalar, is_complex
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Operand, Var, dtype_of
from parakeet_py.typed_ir.rewrite import Rewriter, Uses, free_in_op
from parakeet_py.typed_ir.writer import Writer


def sum_computed_products(function: Function) -> Function:
    """Make sums of the products of vectors and matrices that are computed for them."""
    if not any(isinstance(let.op, ir.Matmul) for let in function.statements()):
        return function
    return _Summer(function).function(function)


@record
class _Making:
    """Where the statements of a block make an array."""

    at: int
    op: ir.Op


class _Summer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.uses = Uses(function.body)

    def block(self, block: Block) -> Block:
        makers: dict[Var, _Making] = {}
        replaced: dict[int, Sequence[Let]] = {}
        for at, let in enumerate(block.statements):
            if isinstance(let.op, ir.Map | ir.Alloc | ir.Dim):
                makers.update(dict.fromkeys(let.outs, _Making(at, let.op)))
            elif isinstance(let.op, ir.Matmul):
                made = makers.get(let.op.out)
                if made is None or not isinstance(made.op, ir.Alloc):
                    continue
                between = block.statements[made.at + 1 : at]
                if any(let.op.out in free_in_op(one.op) for one in between):
                    continue
                total = self.sum(let, let.op, made.op, makers)
                if total is not None:
                    replaced[made.at], replaced[at] = (), total
        if replaced:
            statements = [one for at, let in enumerate(block.statements) for one in replaced.get(at, (let,))]
            block = Block(tuple(statements), block.results)
        return super().block(block)

    def sum(self, let: Let, op: ir.Matmul, new: ir.Alloc, makers: dict[Var, _Making]) -> Sequence[Let] | None:
        """The product as a `Reduce`, if its matrix is computed for it."""
        making = makers.get(op.left)
        if making is None or not isinstance(making.op, ir.Map) or self.uses.data.get(op.left) != 1:
            return None
        assert isinstance(op.left.type, Array) and isinstance(op.right.type, Array)
        if op.left.type.rank != 2 or op.right.type.rank != 1:
            return None
        writer = Writer(let.pos)
        dtype = dtype_of(op.out)

        def product(inner: Writer, i: Var, k: Var) -> Operand:
            return inner.prim("mul", inner.load(op.left, i, k), inner.load(op.right, k))

        zero = Const(0j if is_complex(dtype) else 0.0, Scalar(dtype))
        writer.reduce(new.extents, (making.op.extents[1],), product, "add", (zero,))
        *before, last = writer.statements
        return [*before, Let((op.out,), last.op, last.pos)]
