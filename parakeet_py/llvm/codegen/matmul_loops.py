"""Matrix products as Imp loops, and the loops that go with calls of BLAS: copies and mirroring.

Products run row by row: a row of the result is the sum of the right matrix's rows times the left one's elements, a form
that the loop vectorizer takes well.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.types import Array, Scalar, is_complex
from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp import ir
from parakeet_py.typed_ir.ir import Cast, Const, Dim, Load, Operand, Prim, Var

_INT = Scalar("int64")
_ZERO, _ONE = Const(0, _INT), Const(1, _INT)
_NOWHERE = Pos(0, 0, 0, 0)


class _Loops:
    """Statements of Imp, written with as little ceremony as possible."""

    def __init__(self, pos: Pos) -> None:
        self.pos = pos
        self.statements: list[ir.Statement] = []

    def let(self, rhs: ir.Rhs, dtype: str = "int64", reassoc: bool = False) -> Var:
        out = Var("m", Scalar(dtype))
        self.statements.append(ir.Let(out, rhs, self.pos, reassoc))
        return out

    def block(self, write: Callable[[], None]) -> ir.Block:
        outer, self.statements = self.statements, []
        write()
        block = ir.Block(tuple(self.statements))
        self.statements = outer
        return block

    def loop(self, stop: Operand, write: Callable[[Var], None], kind: str = "serial", start: Operand = _ZERO) -> None:
        index = Var("i", _INT)
        self.statements.append(ir.For(index, start, stop, _ONE, self.block(lambda: write(index)), kind))


def loops(statement: ir.Matmul, parallel: bool) -> ir.Block:
    """The product as loops; `parallel` splits the rows among threads."""
    out, left, right, pos = statement.out, statement.left, statement.right, statement.pos
    assert isinstance(left.type, Array) and isinstance(right.type, Array) and isinstance(out.type, Array)
    left_rank, right_rank, dtype = left.type.rank, right.type.rank, out.type.dtype
    wide = "float32" if dtype == "float16" else dtype
    e = _Loops(pos)
    inner = e.let(Dim(right, 0))
    rows = e.let(Dim(left, 0)) if left_rank == 2 else None
    columns = e.let(Dim(right, 1)) if right_rank == 2 else None
    zero = Const(0j if is_complex(dtype) else 0.0, Scalar(dtype))

    def at(row: Operand | None, column: Operand | None) -> tuple[Operand, ...]:
        return tuple(index for index in (row, column) if index is not None)

    def element(row: Operand | None, column: Operand | None) -> None:
        """out[row, column] as one sum."""
        total = ir.Cell("total", Scalar(wide))
        e.statements.append(ir.Declare(total, Const(zero.value, Scalar(wide))))

        def step(k: Var) -> None:
            x = e.let(Cast(e.let(Load(left, at(row, k)), dtype)), wide)
            y = e.let(Cast(e.let(Load(right, at(k, column)), dtype)), wide)
            product = e.let(Prim("mul", (x, y)), wide)
            total_ = e.let(Prim("add", (e.let(ir.Read(total), wide), product)), wide, reassoc=True)
            e.statements.append(ir.Write(total, total_))

        e.loop(inner, step, "vector")
        value = e.let(Cast(e.let(ir.Read(total), wide)), dtype)
        e.statements.append(ir.Store(out, at(row, column), value, pos))

    def row_of_sums(row: Operand | None) -> None:
        """out[row, :], adding one row of `right` after the other."""
        assert columns is not None
        e.loop(columns, lambda j: e.statements.append(ir.Store(out, at(row, j), zero, pos)), "vector")

        def add_row(k: Var) -> None:
            factor = e.let(Load(left, at(row, k)), dtype)

            def step(j: Var) -> None:
                product = e.let(Prim("mul", (factor, e.let(Load(right, (k, j)), dtype))), dtype)
                value = e.let(Prim("add", (e.let(Load(out, at(row, j)), dtype), product)), dtype)
                e.statements.append(ir.Store(out, at(row, j), value, pos))

            e.loop(columns, step, "vector")

        e.loop(inner, add_row)

    def one_row(row: Operand | None) -> None:
        if columns is None:
            element(row, None)
        elif dtype == "float16":
            e.loop(columns, lambda j: element(row, j))
        else:
            row_of_sums(row)

    if rows is None:
        one_row(None)
    elif parallel:
        work = e.let(Prim("mul", (inner, columns or _ONE)))
        low, high = Var("lo", _INT), Var("hi", _INT)
        body = e.block(lambda: e.loop(high, one_row, start=low))
        e.statements.append(ir.Parallel(low, high, rows, _ONE, work, body, "matmul"))
    else:
        e.loop(rows, one_row)
    return ir.Block(tuple(e.statements))


def copy(source: Var, target: Var) -> ir.Block:
    """target[...] = source."""
    assert isinstance(source.type, Array)
    dtype = source.type.dtype
    e = _Loops(_NOWHERE)
    extents = [e.let(Dim(source, axis)) for axis in range(source.type.rank)]

    def nest(indices: tuple[Operand, ...]) -> None:
        if len(indices) == len(extents):
            value = e.let(Load(source, indices), dtype)
            e.statements.append(ir.Store(target, indices, value, e.pos))
        else:
            e.loop(extents[len(indices)], lambda index: nest((*indices, index)))

    nest(())
    return ir.Block(tuple(e.statements))


def mirror(matrix: Var) -> ir.Block:
    """matrix[i, j] = matrix[j, i] below the diagonal of a square matrix."""
    assert isinstance(matrix.type, Array)
    dtype = matrix.type.dtype
    e = _Loops(_NOWHERE)

    def row(i: Var) -> None:
        def element(j: Var) -> None:
            value = e.let(Load(matrix, (j, i)), dtype)
            e.statements.append(ir.Store(matrix, (i, j), value, e.pos))

        e.loop(i, element, "independent")

    e.loop(e.let(Dim(matrix, 0)), row)
    return ir.Block(tuple(e.statements))
