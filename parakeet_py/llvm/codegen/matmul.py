"""Matrix products: calls of BLAS, or loops where there is none.

BLAS reads a matrix whose rows or whose columns are contiguous. What C and F layouts promise is used directly; other
arrays are looked at when they run (`@pk.matrix`), and copied to a contiguous block if BLAS cannot read them. A result
that is not in C order is computed into such a block and copied out. Products over an empty inner axis are zeros, which
not every BLAS routine writes.

Where there is no BLAS, for dtypes it does not know (float16), and for sizes beyond its integers, the product is
written as Imp loops, row by row, which the loop vectorizer takes well.
"""

from __future__ import annotations

from parakeet_py.base.types import Array, itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.blas_products import (
    PLAIN,
    TRANSPOSED,
    EmitBlock,
    Matrix,
    Routines,
    at_least_one,
    matrix_times_matrix,
    matrix_times_vector,
)
from parakeet_py.llvm.codegen.builder import FunctionText
from parakeet_py.llvm.codegen.matmul_loops import copy, loops
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime import blas
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER, OUT_OF_MEMORY
from parakeet_py.typed_ir.ir import Var


def matmul(scope: Scope, statement: ir.Matmul, emit_block: EmitBlock) -> None:
    """Write out = left @ right."""
    out, left, right = (scope.array(var) for var in (statement.out, statement.left, statement.right))
    library = scope.f.module.blas()
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
        target = statement.out
        if out.type.layout != "C":
            contiguous = Array(dtype, out.type.rank)
            target = Var("product", contiguous)
            scope.values[target] = arrays.heap_array(f, contiguous, out.extents, lambda bit: _no_memory(scope, bit))
        _call(scope, library, target, statement.left, statement.right, emit_block)
        if target is not statement.out:
            emit_block(scope, copy(target, statement.out))
            _release(f, scope.array(target)["block"])
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


def _call(scope: Scope, library: blas.Blas, target: Var, left: Var, right: Var, emit_block: EmitBlock) -> None:
    """target = left @ right, where target is contiguous."""
    f = scope.f
    out = scope.array(target)
    inner = scope.array(right)["extent0"]
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
        a, b = (_matrix(scope, scope.array(operand)) for operand in (left, right))
        routines = Routines(library, out.type.dtype)
        if scope.array(left).type.rank == 1 or scope.array(right).type.rank == 1:
            matrix_times_vector(scope, routines, out, scope.array(left), scope.array(right), a, b)
        else:
            matrix_times_matrix(scope, routines, target, left, right, a, b, emit_block)
        for operand in (a, b):
            if operand.block is not None:
                _release(f, operand.block)
    f.branch(end)
    f.begin(end)


def _matrix(scope: Scope, array: Descriptor) -> Matrix:
    """An operand as BLAS takes it (a vector as a matrix of one column, whose leading dimension is the increment)."""
    f = scope.f
    kind = array.type
    if kind.layout in "CF" or (kind.rank == 1 and kind.layout == "S"):
        if kind.rank == 1:
            return Matrix(array["data"], "1", PLAIN)
        axis, order = (1, PLAIN) if kind.layout == "C" else (0, TRANSPOSED)
        return Matrix(array["data"], at_least_one(f, array[f"extent{axis}"]), order)
    size = itemsize(kind.dtype)
    columns, across = (array["extent1"], array["stride1"]) if kind.rank == 2 else ("1", str(size))
    numbers = ", ".join(f"i64 {n}" for n in (array["extent0"], columns, array["stride0"], across))
    struct = "{ptr, i64, i32, ptr}"
    found = f.value(f"call {struct} {_define_matrix(f, size)}(ptr %ctx, ptr {array['data']}, {numbers})")
    data, leading, order, block = (f.value(f"extractvalue {struct} {found}, {k}") for k in range(4))
    _no_memory(scope, f.binary("icmp eq", "ptr", data, "null"))
    return Matrix(data, leading, order, block)


def _define_matrix(f: FunctionText, size: int) -> str:
    """The function that finds out how BLAS can read a matrix, and copies it if it cannot."""
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
