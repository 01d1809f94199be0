"""Matrix products: calls of BLAS, or loops where there is none.

BLAS reads a matrix whose rows or whose columns are contiguous. What C and F layouts promise is used directly; other
arrays are looked at when they run (`@pk.matrix`), and copied to a contiguous block if BLAS cannot read them. A result
that is not in C order is computed into such a block and copied out. Products over an empty inner axis are zeros, which
not every BLAS routine writes.

Where there is no BLAS, for dtypes it does not know (float16), and for sizes beyond its integers, the product is
written as Imp loops, row by row, which the loop vectorizer takes well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parakeet_py.frontend.ssa import Pos
from parakeet_py.imp import ir
from parakeet_py.llvm import blas, codegen_arrays
from parakeet_py.llvm.codegen_arrays import Descriptor
from parakeet_py.llvm.codegen_builder import LLVM_TYPE, FunctionText, float_literal
from parakeet_py.llvm.codegen_scope import Scope
from parakeet_py.llvm.context import BLOCK_HEADER, OUT_OF_MEMORY
from parakeet_py.typed_ir.ir import Cast, Const, Dim, Load, Operand, Prim, Var
from parakeet_py.typed_ir.types import Array, Scalar, is_complex, itemsize, real_dtype

EmitBlock = Callable[[Scope, ir.Block], None]

_ROW_MAJOR, _PLAIN, _TRANSPOSED = "i32 101", "111", "112"
_INT = Scalar("int64")
_ZERO, _ONE = Const(0, _INT), Const(1, _INT)


@dataclass(slots=True)
class _Matrix:
    """A matrix as BLAS takes it: `order` is the literal or value 111 (rows contiguous) or 112 (columns)."""

    data: str
    leading: str
    order: str
    block: str | None = None


def matmul(scope: Scope, statement: ir.Matmul, emit_block: EmitBlock) -> None:
    """Write out = left @ right."""
    out, left, right = (scope.array(var) for var in (statement.out, statement.left, statement.right))
    library = blas.find()
    dtype = out.type.dtype
    if library is None or dtype not in blas.LETTERS:
        emit_block(scope, loops(statement, parallel=scope.parent is None))
        return
    f = scope.f
    if library.integer == "i32":
        small, large, end = f.label("small"), f.label("large"), f.label("end")
        f.branch_if(_fits_i32(f, left, right), small, large)
        f.begin(large)
        emit_block(scope, loops(statement, parallel=False))
        f.branch(end)
        f.begin(small)
    with f.inner():
        target, result = statement.out, out
        if out.type.layout != "C":
            contiguous = Array(dtype, out.type.rank)
            target = Var("product", contiguous)
            result = codegen_arrays.heap_array(f, contiguous, out.extents, lambda bit: _no_memory(scope, bit))
            scope.values[target] = result
        _call(scope, library, result, left, right)
        if target is not statement.out:
            emit_block(scope, _copy(target, statement.out))
            _release(f, result["block"])
    if library.integer == "i32":
        f.branch(end)
        f.begin(end)


def _no_memory(scope: Scope, bit: str) -> None:
    scope.leave_if(bit, scope.failure(OUT_OF_MEMORY, "0", []))


def _release(f: FunctionText, block: str) -> None:
    function = f.module.declare("void", "pk_release", "ptr, ptr")
    f.effect(f"call void {function}(ptr %ctx, ptr {block})")


def _fits_i32(f: FunctionText, left: Descriptor, right: Descriptor) -> str:
    """Whether BLAS with 32-bit integers can count the elements of these arrays along any axis or stride."""
    limit = str((1 << 31) - 1)
    fits = "true"
    for array in (left, right):
        for size in [*array.extents, *array.strides]:
            small = f.binary("icmp slt", "i64", size, limit)
            fits = small if fits == "true" else f.binary("and", "i1", fits, small)
    return fits


def _call(scope: Scope, library: blas.Blas, out: Descriptor, left: Descriptor, right: Descriptor) -> None:
    f = scope.f
    inner = right["extent0"]
    zeros, product, end = f.label("zeros"), f.label("product"), f.label("end")
    f.branch_if(f.binary("icmp eq", "i64", inner, "0"), zeros, product)

    f.begin(zeros)
    with f.inner():
        size = str(itemsize(out.type.dtype))
        for extent in out.extents:
            size = f.multiply(size, extent)
        memset = f.module.declare("void", "llvm.memset.p0.i64", "ptr, i8, i64, i1", "")
        f.effect(f"call void {memset}(ptr {out['data']}, i8 0, i64 {size}, i1 false)")
    f.branch(end)

    f.begin(product)
    with f.inner():
        _multiply(scope, library, out, left, right)
    f.branch(end)
    f.begin(end)


def _multiply(scope: Scope, library: blas.Blas, out: Descriptor, left: Descriptor, right: Descriptor) -> None:
    """Call gemm or gemv; no extent of the inner axis is 0."""
    f = scope.f
    dtype = out.type.dtype
    letter = blas.LETTERS[dtype]
    inner = right["extent0"]
    a, b = _matrix(scope, left), _matrix(scope, right)
    whole = library.integer

    def number(value: str) -> str:
        return f"{whole} {value if whole == 'i64' or not value.startswith('%') else _narrow(f, value)}"

    if is_complex(dtype):
        unit, nothing = _complex_constants(f, dtype)
        scalar = "ptr"
    else:
        scalar = LLVM_TYPE[dtype]
        unit, nothing = float_literal(1.0, scalar), float_literal(0.0, scalar)
    if left.type.rank == 2 and right.type.rank == 2:
        routine = f.module.declare(
            "void",
            library.symbol(f"{letter}gemm"),
            f"i32, i32, i32, {whole}, {whole}, {whole}, {scalar}, ptr, {whole}, ptr, {whole}, {scalar}, ptr, {whole}",
        )
        columns = out["extent1"]
        f.effect(
            f"call void {routine}({_ROW_MAJOR}, i32 {a.order}, i32 {b.order}, {number(out['extent0'])}, "
            f"{number(columns)}, {number(inner)}, {scalar} {unit}, ptr {a.data}, {number(a.leading)}, ptr {b.data}, "
            f"{number(b.leading)}, {scalar} {nothing}, ptr {out['data']}, {number(_at_least_one(f, columns))})"
        )
    else:
        routine = f.module.declare(
            "void",
            library.symbol(f"{letter}gemv"),
            f"i32, i32, {whole}, {whole}, {scalar}, ptr, {whole}, ptr, {whole}, {scalar}, ptr, {whole}",
        )
        # BLAS multiplies a stored matrix or its transpose by a column: x @ B is the transpose of B times x
        matrix, vector, array = (a, b, left) if left.type.rank == 2 else (b, a, right)
        order = matrix.order
        rows, columns = array["extent0"], array["extent1"]
        if order == _TRANSPOSED:
            rows, columns = columns, rows
        elif order != _PLAIN:
            plain = f.binary("icmp eq", "i32", order, _PLAIN)
            rows, columns = f.select(plain, "i64", rows, columns), f.select(plain, "i64", columns, rows)
        if left.type.rank == 1:
            order = f.binary("sub", "i32", "223", order)
        f.effect(
            f"call void {routine}({_ROW_MAJOR}, i32 {order}, {number(rows)}, {number(columns)}, {scalar} {unit}, "
            f"ptr {matrix.data}, {number(matrix.leading)}, ptr {vector.data}, {number(vector.leading)}, "
            f"{scalar} {nothing}, ptr {out['data']}, {whole} 1)"
        )
    for operand in (a, b):
        if operand.block is not None:
            _release(f, operand.block)


def _narrow(f: FunctionText, value: str) -> str:
    return f.value(f"trunc i64 {value} to i32")


def _at_least_one(f: FunctionText, extent: str) -> str:
    """A leading dimension, which BLAS wants to be positive even where it is not used."""
    if not extent.startswith("%"):
        return str(max(int(extent), 1))
    return f.intrinsic("smax", "i64", extent, "1")


def _complex_constants(f: FunctionText, dtype: str) -> tuple[str, str]:
    """Addresses of 1 and 0, which complex BLAS takes by reference."""
    part = LLVM_TYPE[real_dtype(dtype)]
    for name, value in (("one", 1.0), ("zero", 0.0)):
        if f.module.is_new(f"pk.{name}.{part}"):
            f.module.functions.append(
                f"@pk.{name}.{part} = internal constant [2 x {part}] [{part} {float_literal(value, part)}, "
                f"{part} {float_literal(0.0, part)}]"
            )
    return f"@pk.one.{part}", f"@pk.zero.{part}"


def _matrix(scope: Scope, array: Descriptor) -> _Matrix:
    """An operand as BLAS takes it (a vector as a matrix of one column, whose leading dimension is the increment)."""
    f = scope.f
    kind = array.type
    if kind.layout in "CF" or (kind.rank == 1 and kind.layout == "S"):
        if kind.rank == 1:
            return _Matrix(array["data"], "1", _PLAIN)
        axis, order = (1, _PLAIN) if kind.layout == "C" else (0, _TRANSPOSED)
        return _Matrix(array["data"], _at_least_one(f, array[f"extent{axis}"]), order)
    size = itemsize(kind.dtype)
    columns, across = (array["extent1"], array["stride1"]) if kind.rank == 2 else ("1", str(size))
    numbers = ", ".join(f"i64 {n}" for n in (array["extent0"], columns, array["stride0"], across))
    struct = "{ptr, i64, i32, ptr}"
    found = f.value(f"call {struct} {_define_matrix(f, size)}(ptr %ctx, ptr {array['data']}, {numbers})")
    data, leading, order, block = (f.value(f"extractvalue {struct} {found}, {k}") for k in range(4))
    _no_memory(scope, f.binary("icmp eq", "ptr", data, "null"))
    return _Matrix(data, leading, order, block)


def _define_matrix(f: FunctionText, size: int) -> str:
    """The function that tells how BLAS can read a matrix, and copies it if it cannot."""
    name = f"pk.matrix.{size}"
    if f.module.is_new(name):
        f.module.declare("ptr", "pk_block_new", "ptr, i64")
        f.module.declare("i64", "llvm.smax.i64", "i64, i64", "")
        values = {
            "name": name,
            "group": f.module.attributes("noinline nounwind"),
            "size": str(size),
            "mask": str(size - 1),
            "shift": str(size.bit_length() - 1),
            "kind": f"i{8 * size}",
            "align": str(min(size, 8) if size != 8 else 4),
            "header": str(BLOCK_HEADER),
        }
        text = _MATRIX
        for key, value in values.items():
            text = text.replace(f"${key}$", value)
        f.module.functions.append(text)
    return f"@{name}"


_MATRIX = """\
define internal {ptr, i64, i32, ptr} @$name$(ptr %ctx, ptr %data, i64 %rows, i64 %columns, i64 %s0, i64 %s1) $group$ {
entry:
  %one.row = icmp sle i64 %rows, 1
  %one.column = icmp sle i64 %columns, 1
  %rows1 = call i64 @llvm.smax.i64(i64 %rows, i64 1)
  %columns1 = call i64 @llvm.smax.i64(i64 %columns, i64 1)
  %row.bytes = shl i64 %columns1, $shift$
  %column.bytes = shl i64 %rows1, $shift$
  ; rows contiguous, and far enough apart
  %unit1 = icmp eq i64 %s1, $size$
  %along = or i1 %unit1, %one.column
  %odd0 = and i64 %s0, $mask$
  %whole0 = icmp eq i64 %odd0, 0
  %apart0 = icmp sge i64 %s0, %row.bytes
  %fine0 = and i1 %whole0, %apart0
  %any0 = or i1 %fine0, %one.row
  %readable = and i1 %along, %any0
  %no.rows = icmp sle i64 %rows, 0
  %no.columns = icmp sle i64 %columns, 0
  %empty = or i1 %no.rows, %no.columns
  %plain = or i1 %readable, %empty
  %elements0 = ashr i64 %s0, $shift$
  %leading0 = select i1 %fine0, i64 %elements0, i64 %columns1
  br i1 %plain, label %as.rows, label %turn
as.rows:
  %p0 = insertvalue {ptr, i64, i32, ptr} {ptr null, i64 0, i32 111, ptr null}, ptr %data, 0
  %p1 = insertvalue {ptr, i64, i32, ptr} %p0, i64 %leading0, 1
  ret {ptr, i64, i32, ptr} %p1
turn:
  %unit0 = icmp eq i64 %s0, $size$
  %down = or i1 %unit0, %one.row
  %odd1 = and i64 %s1, $mask$
  %whole1 = icmp eq i64 %odd1, 0
  %apart1 = icmp sge i64 %s1, %column.bytes
  %fine1 = and i1 %whole1, %apart1
  %any1 = or i1 %fine1, %one.column
  %turned = and i1 %down, %any1
  %elements1 = ashr i64 %s1, $shift$
  %leading1 = select i1 %fine1, i64 %elements1, i64 %rows1
  br i1 %turned, label %as.columns, label %copy
as.columns:
  %t0 = insertvalue {ptr, i64, i32, ptr} {ptr null, i64 0, i32 112, ptr null}, ptr %data, 0
  %t1 = insertvalue {ptr, i64, i32, ptr} %t0, i64 %leading1, 1
  ret {ptr, i64, i32, ptr} %t1
copy:
  %bytes = mul i64 %rows, %row.bytes
  %block = call ptr @pk_block_new(ptr %ctx, i64 %bytes)
  %none = icmp eq ptr %block, null
  br i1 %none, label %failed, label %begin
failed:
  ret {ptr, i64, i32, ptr} zeroinitializer
begin:
  %payload = getelementptr i8, ptr %block, i64 $header$
  br label %row
row:
  %i = phi i64 [0, %begin], [%i1, %row.end]
  %io = mul i64 %i, %s0
  %from = getelementptr i8, ptr %data, i64 %io
  %to.o = mul i64 %i, %row.bytes
  %to = getelementptr i8, ptr %payload, i64 %to.o
  br label %column
column:
  %j = phi i64 [0, %row], [%j1, %column]
  %jo = mul i64 %j, %s1
  %source = getelementptr i8, ptr %from, i64 %jo
  %x = load $kind$, ptr %source, align $align$
  %target = getelementptr $kind$, ptr %to, i64 %j
  store $kind$ %x, ptr %target, align $align$
  %j1 = add nuw nsw i64 %j, 1
  %more.columns = icmp slt i64 %j1, %columns
  br i1 %more.columns, label %column, label %row.end
row.end:
  %i1 = add nuw nsw i64 %i, 1
  %more.rows = icmp slt i64 %i1, %rows
  br i1 %more.rows, label %row, label %done
done:
  %c0 = insertvalue {ptr, i64, i32, ptr} {ptr null, i64 0, i32 111, ptr null}, ptr %payload, 0
  %c1 = insertvalue {ptr, i64, i32, ptr} %c0, i64 %columns1, 1
  %c2 = insertvalue {ptr, i64, i32, ptr} %c1, ptr %block, 3
  ret {ptr, i64, i32, ptr} %c2
}"""

# ---- loops -----------------------------------------------------------------------------------------------------------


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


def _copy(source: Var, target: Var) -> ir.Block:
    """target[...] = source."""
    assert isinstance(source.type, Array)
    dtype = source.type.dtype
    e = _Loops(Pos(0, 0, 0, 0))
    extents = [e.let(Dim(source, axis)) for axis in range(source.type.rank)]

    def nest(indices: tuple[Operand, ...]) -> None:
        if len(indices) == len(extents):
            value = e.let(Load(source, indices), dtype)
            e.statements.append(ir.Store(target, indices, value, e.pos))
        else:
            e.loop(extents[len(indices)], lambda index: nest((*indices, index)))

    nest(())
    return ir.Block(tuple(e.statements))
