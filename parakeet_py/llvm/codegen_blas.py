"""Calls of BLAS's routines for products, on our own threads.

A BLAS with several threads would share a product out to them by itself. But its threads spin after a product
(OpenBLAS's for 0.1 s) and ours spin for a while after a region: in a function that has products and loops in turn, each
pool would find the CPUs taken by the other, and what should take half the time would take all of it. So a product is a
parallel region like any other: each chunk is a part of the result, for which BLAS is called with one thread.

The result is cut along its longer axis, so that as little as possible is packed or read by several threads, into one
part for each thread, at bounds that BLAS's kernels like. Products with fewer than `LEAST_WORK` multiplications are
called directly: no BLAS wakes its threads for them.

`syrk`, whose triangle has no equal parts, and platforms on which we have no threads leave the sharing to BLAS.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.imp import ir
from parakeet_py.llvm import blas, threads
from parakeet_py.llvm.codegen_arrays import Descriptor
from parakeet_py.llvm.codegen_builder import LLVM_TYPE, FunctionText, float_literal, global_name
from parakeet_py.llvm.codegen_matmul_loops import mirror
from parakeet_py.llvm.codegen_scope import Scope
from parakeet_py.llvm.context import Context
from parakeet_py.record import record
from parakeet_py.typed_ir.ir import Var
from parakeet_py.typed_ir.types import is_complex, itemsize, real_dtype

EmitBlock = Callable[[Scope, ir.Block], None]

PLAIN, TRANSPOSED = "111", "112"
LEAST_WORK = {"gemm": 200_000, "gemv": 9_000}  # OpenBLAS takes several threads from 262,144 and from 9,216 on
LEAST_PART = 64  # elements along the axis that is cut
ALIGNMENT = 32  # of its parts' bounds


@record(frozen=False)
class Matrix:
    """A matrix as BLAS takes it: `order` is the literal or value 111 (rows contiguous) or 112 (columns)."""

    data: str
    leading: str
    order: str
    block: str | None = None


class Routines:
    """The routines of a BLAS for one dtype, for row-major matrices."""

    def __init__(self, library: blas.Blas, dtype: str) -> None:
        self.library = library
        self.letter = blas.LETTERS[dtype]
        self.size = itemsize(dtype)
        self.dtype = dtype

    def call(self, f: FunctionText, name: str, *arguments: str | int | Size) -> None:
        """Call a routine. An argument is a type and a value, a `Size`, or 0 or 1 of the routine's dtype."""
        passed = ["i32 101", *(self._argument(f, argument) for argument in arguments)]
        kinds = ", ".join(argument.split(" ", 1)[0] for argument in passed)
        function = f.module.declare("void", self.library.symbol(self.letter + name), kinds)
        f.effect(f"call void {function}({', '.join(passed)})")

    def _argument(self, f: FunctionText, argument: str | int | Size) -> str:
        if isinstance(argument, str):
            return argument
        if isinstance(argument, Size):
            kind, value = self.library.integer, argument.value
            narrow = kind == "i32" and value.startswith("%")
            return f"{kind} {f.value(f'trunc i64 {value} to i32') if narrow else value}"
        if is_complex(self.dtype):
            return f"ptr {_complex_constant(f, self.dtype, argument)}"
        kind = LLVM_TYPE[self.dtype]
        return f"{kind} {float_literal(float(argument), kind)}"

    def limit(self, f: FunctionText, threads: str) -> str | None:
        """Keep the library to so many threads; gives what `unlimit` takes."""
        if self.library.limits is None:
            return None
        get = f.module.declare("i32", self.library.limits[0], "")
        set_ = f.module.declare("void", self.library.limits[1], "i32")
        begin = f.module.declare("i32", "pk_blas_begin", "i32, ptr, ptr")
        return f.value(f"call i32 {begin}(i32 {threads}, ptr {get}, ptr {set_})")

    def unlimit(self, f: FunctionText, limited: str | None) -> None:
        if limited is not None:
            f.effect(f"call void {f.module.declare('void', 'pk_blas_end', 'i32')}(i32 {limited})")


@record
class Size:
    """A size or increment as an argument of a routine, which has BLAS's own kind of integers."""

    value: str


Part = Callable[[Scope, str, str], None]


def _threads(f: FunctionText) -> str:
    """How many threads this call may use."""
    place = f.value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.MAX_THREADS}")
    return f.value(f"load i32, ptr {place}")


def _share(scope: Scope, routines: Routines, name: str, extent: str, work: str, part: Part) -> None:
    """Write a region over [0, extent) in which `part(scope, first, length)` computes a part of the result."""
    f, unit = scope.f, scope.unit
    if not (threads.has_pool() and routines.library.limits):
        limited = routines.limit(f, _threads(f))
        part(scope, "0", extent)
        routines.unlimit(f, limited)
        return
    inner = Scope(unit, FunctionText(unit.module), parent=scope)
    part(inner, "%lo", inner.f.binary("sub", "i64", "%hi", "%lo"))
    inner.f.effect("ret void")

    def new_name() -> str:
        unit.regions += 1
        return global_name(f"{unit.function.name}.{name}.{unit.regions}")

    signature = "define internal void @(ptr %ctx, ptr noalias readonly %frame, i64 %lo, i64 %hi)"
    region = unit.module.define(inner.f, signature, f"noinline {unit.attributes(inner.f)}", new_name)
    frame = scope.fill_frame(inner)
    share, alone, end = f.label("share"), f.label("alone"), f.label("end")
    f.branch_if(f.binary("icmp sge", "i64", work, str(LEAST_WORK[name])), share, alone)
    f.begin(alone)
    f.effect(f"call void {region}(ptr %ctx, ptr {frame}, i64 0, i64 {extent})")
    f.branch(end)
    f.begin(share)
    with f.inner():
        most = _threads(f)
        parts = f.value(f"zext i32 {most} to i64")
        above = f.add(extent, f.add(parts, "-1"))
        even = f.add(f.binary("udiv", "i64", above, parts), str(ALIGNMENT - 1))
        grain = f.intrinsic("smax", "i64", f.binary("and", "i64", even, str(-ALIGNMENT)), str(LEAST_PART))
        limited = routines.limit(f, "1")
        function = f.module.declare("void", "pk_parallel", "ptr, ptr, ptr, i64, i64, i32")
        f.effect(f"call void {function}(ptr %ctx, ptr {region}, ptr {frame}, i64 {extent}, i64 {grain}, i32 {most})")
        routines.unlimit(f, limited)
    f.branch(end)
    f.begin(end)


def matrix_times_matrix(
    scope: Scope,
    routines: Routines,
    target: Var,
    left: Var,
    right: Var,
    a: Matrix,
    b: Matrix,
    emit_block: EmitBlock,
) -> None:
    """gemm; or syrk where both factors turn out to be one matrix and its transpose: half the work, and the result is
    exactly symmetric, as NumPy's."""
    f = scope.f
    out = scope.array(target)
    rows, columns, inner = out["extent0"], out["extent1"], scope.array(right)["extent0"]
    end = None
    roots = scope.unit.function.roots
    if left not in roots or right not in roots or roots[left] & roots[right]:
        square, general, end = f.label("square"), f.label("general"), f.label("end")
        f.branch_if(_is_transpose(f, scope.array(left), scope.array(right)), square, general)
        f.begin(square)
        with f.inner():
            limited = routines.limit(f, _threads(f))
            routines.call(
                f,
                "syrk",
                "i32 121",  # the upper triangle
                f"i32 {a.order}",
                Size(rows),
                Size(inner),
                1,
                f"ptr {a.data}",
                Size(a.leading),
                0,
                f"ptr {out['data']}",
                Size(at_least_one(f, columns)),
            )
            routines.unlimit(f, limited)
            emit_block(scope, mirror(target))
        f.branch(end)
        f.begin(general)
    with f.inner():
        _gemm(scope, routines, out, (rows, columns, inner), a, b)
    if end is not None:
        f.branch(end)
        f.begin(end)


def _gemm(scope: Scope, routines: Routines, out: Descriptor, sizes: tuple[str, str, str], a: Matrix, b: Matrix) -> None:
    """out = a @ b, cut by rows if there are more of them than columns."""
    f = scope.f
    rows, columns, inner = sizes
    by_rows = f.binary("icmp sge", "i64", rows, columns)
    apart = at_least_one(f, columns)

    def part(s: Scope, first: str, length: str) -> None:
        g, see = s.f, _view(scope, s)
        tall = see(by_rows, "i1")
        m, n, k, leading, left_leading, right_leading = (
            see(value, "i64") for value in (rows, columns, inner, apart, a.leading, b.leading)
        )
        left_order, right_order = see(a.order, "i32"), see(b.order, "i32")
        steps = (
            g.select(tall, "i64", _if_plain(g, left_order, left_leading, "1"), "0"),
            g.select(tall, "i64", "0", _if_plain(g, right_order, "1", right_leading)),
            g.select(tall, "i64", leading, "1"),
        )
        start = g.multiply(first, str(routines.size))
        left, right, result = (
            g.moved(see(data, "ptr"), "i8", g.multiply(start, step))
            for data, step in zip((a.data, b.data, out["data"]), steps, strict=True)
        )
        routines.call(
            g,
            "gemm",
            f"i32 {left_order}",
            f"i32 {right_order}",
            Size(g.select(tall, "i64", length, m)),
            Size(g.select(tall, "i64", n, length)),
            Size(k),
            1,
            f"ptr {left}",
            Size(left_leading),
            f"ptr {right}",
            Size(right_leading),
            0,
            f"ptr {result}",
            Size(leading),
        )

    longer = f.select(by_rows, "i64", rows, columns)
    _share(scope, routines, "gemm", longer, f.multiply(f.multiply(rows, columns), inner), part)


def matrix_times_vector(
    scope: Scope, routines: Routines, out: Descriptor, left: Descriptor, right: Descriptor, a: Matrix, b: Matrix
) -> None:
    """gemv, which multiplies a stored matrix or its transpose by a column: x @ B is the transpose of B times x.

    The result is cut: by the rows of the stored matrix, or by its columns if it is the transpose that is multiplied.
    """
    f = scope.f
    matrix, vector, array = (a, b, left) if left.type.rank == 2 else (b, a, right)
    stored = matrix.order
    rows, columns = (
        _if_plain(f, stored, array[x], array[y]) for x, y in (("extent0", "extent1"), ("extent1", "extent0"))
    )
    order = stored
    if left.type.rank == 1:
        order = str(223 - int(order)) if not order.startswith("%") else f.binary("sub", "i32", "223", order)

    def part(s: Scope, first: str, length: str) -> None:
        g, see = s.f, _view(scope, s)
        kind = see(order, "i32")
        m, n, leading, increment = (see(value, "i64") for value in (rows, columns, matrix.leading, vector.leading))
        start = g.multiply(first, str(routines.size))
        data = g.moved(see(matrix.data, "ptr"), "i8", g.multiply(start, _if_plain(g, kind, leading, "1")))
        routines.call(
            g,
            "gemv",
            f"i32 {kind}",
            Size(_if_plain(g, kind, length, m)),
            Size(_if_plain(g, kind, n, length)),
            1,
            f"ptr {data}",
            Size(leading),
            f"ptr {see(vector.data, 'ptr')}",
            Size(increment),
            0,
            f"ptr {g.moved(see(out['data'], 'ptr'), 'i8', start)}",
            Size("1"),
        )

    _share(scope, routines, "gemv", _if_plain(f, order, rows, columns), f.multiply(rows, columns), part)


def _view(scope: Scope, inner: Scope) -> Callable[[str, str], str]:
    """How a region sees a value of `scope`, given its type."""
    return inner.capture if inner is not scope else lambda value, kind: value


def _if_plain(f: FunctionText, order: str, then: str, orelse: str) -> str:
    """One value for a matrix whose rows are contiguous, another for one whose columns are."""
    if not order.startswith("%"):
        return then if order == PLAIN else orelse
    return f.select(f.binary("icmp eq", "i32", order, PLAIN), "i64", then, orelse)


def _is_transpose(f: FunctionText, left: Descriptor, right: Descriptor) -> str:
    """Whether two matrices are each other's transpose, by address and shape."""
    same = f.binary("icmp eq", "ptr", left["data"], right["data"])
    for ours, theirs in (("extent0", "extent1"), ("stride0", "stride1"), ("stride1", "stride0")):
        equal = f.binary("icmp eq", "i64", left[ours], right[theirs])
        same = f.binary("and", "i1", same, equal)
    return same


def at_least_one(f: FunctionText, extent: str) -> str:
    """A leading dimension, which BLAS wants to be positive even where it is not used."""
    if not extent.startswith("%"):
        return str(max(int(extent), 1))
    return f.intrinsic("smax", "i64", extent, "1")


def _complex_constant(f: FunctionText, dtype: str, value: int) -> str:
    """The address of a number, which complex BLAS takes by reference."""
    part = LLVM_TYPE[real_dtype(dtype)]
    name = f"pk.{value}.{part}"
    if f.module.is_new(name):
        parts = ", ".join(f"{part} {float_literal(number, part)}" for number in (float(value), 0.0))
        f.module.functions.append(f"@{name} = internal constant [2 x {part}] [{parts}]")
    return f"@{name}"
