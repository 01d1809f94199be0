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

from parakeet_py.imp import ir
from parakeet_py.llvm import blas, codegen_arrays
from parakeet_py.llvm.codegen_arrays import Descriptor
from parakeet_py.llvm.codegen_builder import LLVM_TYPE, FunctionText, float_literal
from parakeet_py.llvm.codegen_matmul_loops import copy, loops, mirror
from parakeet_py.llvm.codegen_scope import Scope
from parakeet_py.llvm.context import BLOCK_HEADER, OUT_OF_MEMORY
from parakeet_py.record import record
from parakeet_py.typed_ir.ir import Var
from parakeet_py.typed_ir.types import Array, is_complex, itemsize, real_dtype

EmitBlock = Callable[[Scope, ir.Block], None]

_PLAIN, _TRANSPOSED = "111", "112"


@record(frozen=False)
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
        target = statement.out
        if out.type.layout != "C":
            contiguous = Array(dtype, out.type.rank)
            target = Var("product", contiguous)
            scope.values[target] = codegen_arrays.heap_array(
                f, contiguous, out.extents, lambda bit: _no_memory(scope, bit)
            )
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
        routines = _Routines(f, library, out.type.dtype)
        if scope.array(left).type.rank == 1 or scope.array(right).type.rank == 1:
            _matrix_times_vector(scope, routines, out, scope.array(left), scope.array(right), a, b)
        else:
            _matrix_times_matrix(scope, routines, target, left, right, a, b, emit_block)
        for operand in (a, b):
            if operand.block is not None:
                _release(f, operand.block)
    f.branch(end)
    f.begin(end)


class _Routines:
    """The routines of a BLAS for one dtype: `unit` and `nothing` are 1 and 0 as arguments."""

    def __init__(self, f: FunctionText, library: blas.Blas, dtype: str) -> None:
        self.f = f
        self.library = library
        self.letter = blas.LETTERS[dtype]
        if is_complex(dtype):
            self.unit, self.nothing = (f"ptr {address}" for address in _complex_constants(f, dtype))
        else:
            kind = LLVM_TYPE[dtype]
            self.unit, self.nothing = (f"{kind} {float_literal(value, kind)}" for value in (1.0, 0.0))

    def size(self, value: str) -> str:
        """A size or increment as an argument."""
        kind = self.library.integer
        narrow = kind == "i32" and value.startswith("%")
        return f"{kind} {self.f.value(f'trunc i64 {value} to i32') if narrow else value}"

    def call(self, name: str, *arguments: str) -> None:
        """Call a routine for row-major matrices, with the threads that this call may use; each argument is a type and
        a value."""
        module, limited = self.f.module, None
        if self.library.limits is not None:
            get = module.declare("i32", self.library.limits[0], "")
            set_ = module.declare("void", self.library.limits[1], "i32")
            begin = module.declare("i32", "pk_blas_begin", "ptr, ptr, ptr")
            limited = self.f.value(f"call i32 {begin}(ptr %ctx, ptr {get}, ptr {set_})")
        passed = ("i32 101", *arguments)
        kinds = ", ".join(argument.split(" ", 1)[0] for argument in passed)
        function = module.declare("void", self.library.symbol(self.letter + name), kinds)
        self.f.effect(f"call void {function}({', '.join(passed)})")
        if limited is not None:
            self.f.effect(f"call void {module.declare('void', 'pk_blas_end', 'i32')}(i32 {limited})")


def _matrix_times_matrix(
    scope: Scope,
    routines: _Routines,
    target: Var,
    left: Var,
    right: Var,
    a: _Matrix,
    b: _Matrix,
    emit_block: EmitBlock,
) -> None:
    """gemm; or syrk where both factors turn out to be one matrix and its transpose: half the work, and the result is
    exactly symmetric, as NumPy's."""
    f = scope.f
    out, size = scope.array(target), routines.size
    rows, columns, inner = out["extent0"], out["extent1"], scope.array(right)["extent0"]
    result = f"ptr {out['data']}", size(_at_least_one(f, columns))
    end = None
    roots = scope.unit.function.roots
    if left not in roots or right not in roots or roots[left] & roots[right]:
        square, general, end = f.label("square"), f.label("general"), f.label("end")
        f.branch_if(_is_transpose(f, scope.array(left), scope.array(right)), square, general)
        f.begin(square)
        with f.inner():
            routines.call(
                "syrk",
                "i32 121",  # the upper triangle
                f"i32 {a.order}",
                size(rows),
                size(inner),
                routines.unit,
                f"ptr {a.data}",
                size(a.leading),
                routines.nothing,
                *result,
            )
            emit_block(scope, mirror(target))
        f.branch(end)
        f.begin(general)
    with f.inner():
        routines.call(
            "gemm",
            f"i32 {a.order}",
            f"i32 {b.order}",
            size(rows),
            size(columns),
            size(inner),
            routines.unit,
            f"ptr {a.data}",
            size(a.leading),
            f"ptr {b.data}",
            size(b.leading),
            routines.nothing,
            *result,
        )
    if end is not None:
        f.branch(end)
        f.begin(end)


def _is_transpose(f: FunctionText, left: Descriptor, right: Descriptor) -> str:
    """Whether two matrices are each other's transpose, by address and shape."""
    same = f.binary("icmp eq", "ptr", left["data"], right["data"])
    for ours, theirs in (("extent0", "extent1"), ("stride0", "stride1"), ("stride1", "stride0")):
        equal = f.binary("icmp eq", "i64", left[ours], right[theirs])
        same = f.binary("and", "i1", same, equal)
    return same


def _matrix_times_vector(
    scope: Scope, routines: _Routines, out: Descriptor, left: Descriptor, right: Descriptor, a: _Matrix, b: _Matrix
) -> None:
    """gemv, which multiplies a stored matrix or its transpose by a column: x @ B is the transpose of B times x."""
    f, size = scope.f, routines.size
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
    routines.call(
        "gemv",
        f"i32 {order}",
        size(rows),
        size(columns),
        routines.unit,
        f"ptr {matrix.data}",
        size(matrix.leading),
        f"ptr {vector.data}",
        size(vector.leading),
        routines.nothing,
        f"ptr {out['data']}",
        size("1"),
    )


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
