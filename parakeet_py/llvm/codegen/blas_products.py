"""Calls of BLAS's routines for products, on our own threads.

A BLAS with several threads would share a product out to them by itself. But its threads spin after a product
(OpenBLAS's for 0.1 s) and ours spin for a while after a region: in a function that has products and loops in turn, each
pool would find the CPUs taken by the other, and what should take half the time would take all of it. So a product is a
parallel region like any other: each chunk is a part of the result, for which BLAS is called with one thread.

The result is cut into one part for each CPU there is, or for each thread if the environment allows fewer
(`PARAKEET_NUM_THREADS`), at bounds that BLAS's kernels like: by rows, unless there are over twice as many columns. Two
parts one after the other take 1.02 to 1.04 times as long as the whole if they are ranges of rows, and 1.15 to 1.3 if
they are ranges of columns (OpenBLAS packs the left factor anew for each, its kernels leave remainders). The parts do
not depend on how many threads a call may use, so neither does the result, in which BLAS adds up differently near the
edges of what it is given. Products with fewer than `LEAST_WORK` multiplications are one part, and called directly: no
BLAS wakes its threads for them. Products inside of regions are not cut.

Platforms on which we have no threads leave the sharing to BLAS.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.config import product_parts
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import is_complex, itemsize, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText, float_literal, global_name
from parakeet_py.llvm.codegen.matmul_loops import mirror
from parakeet_py.llvm.codegen.parallel import share, threads
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime import blas, thread_pool
from parakeet_py.typed_ir.ir import Var

EmitBlock = Callable[[Scope, ir.Block], None]

PLAIN, TRANSPOSED = "111", "112"
LEAST_WORK = {"gemm": 200_000, "gemv": 40_000}  # OpenBLAS takes several threads from 262,144 and from 9,216 on
MOST_PARTS = 64
LEAST_PART = {"gemm": 64, "gemv": 16}  # elements along the axis that is cut
ALIGNMENT = {"gemm": 32, "gemv": 16}  # of its parts' bounds


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


def _share(scope: Scope, routines: Routines, name: str, extent: str, work: str, part: Part) -> None:
    """Write what computes a result of some extent along an axis: `part(scope, first, length)` writes a part of it."""
    f = scope.f
    if not _shares(routines):
        limited = routines.limit(f, threads(f))
        part(scope, "0", extent)
        routines.unlimit(f, limited)
        return
    if scope.parent is not None:  # in a region, whose threads are busy
        limited = routines.limit(f, f.select(f.binary("icmp slt", "i64", work, str(LEAST_WORK[name])), "i32", "0", "1"))
        part(scope, "0", extent)
        routines.unlimit(f, limited)
        return
    above = f.add(extent, str(_most_parts() - 1))
    even = f.add(f.binary("udiv", "i64", above, str(_most_parts())), str(ALIGNMENT[name] - 1))
    length = f.intrinsic("smax", "i64", f.binary("and", "i64", even, str(-ALIGNMENT[name])), str(LEAST_PART[name]))
    small = f.binary("icmp slt", "i64", work, str(LEAST_WORK[name]))
    length = f.select(small, "i64", f.intrinsic("smax", "i64", extent, "1"), length)
    parts = f.binary("udiv", "i64", f.add(extent, f.add(length, "-1")), length)

    def even_part(inner: Scope, number: str) -> None:
        see = _view(scope, inner)
        every = see(length, "i64")
        first = inner.f.multiply(number, every)
        rest = inner.f.binary("sub", "i64", see(extent, "i64"), first)
        part(inner, first, inner.f.intrinsic("smin", "i64", rest, every))

    _run(scope, routines, name, (parts, work, small), even_part)


def _run(
    scope: Scope, routines: Routines, name: str, sizes: tuple[str, str, str], part: Callable[[Scope, str], None]
) -> None:
    """Write a region that computes so many parts of a product of so many multiplications: here if it is small, which is
    the third of the `sizes`, else on all threads where that takes less time."""
    f, (parts, work, small) = scope.f, sizes
    region, frame = _region(scope, name, part)
    shared, alone, end = f.label("share"), f.label("alone"), f.label("end")
    f.branch_if(small, alone, shared)
    f.begin(alone)
    f.effect(f"call void {region}(ptr %ctx, ptr {frame}, i64 0, i64 {parts})")
    f.branch(end)
    f.begin(shared)
    with f.inner():
        most = threads(f)
        limited = routines.limit(f, "1")
        each = f.binary("udiv", "i64", work, parts)
        share(f, region, frame, (parts, "1", each), most)
        routines.unlimit(f, limited)
    f.branch(end)
    f.begin(end)


def _shares(routines: Routines) -> bool:
    """Whether products are shared out by us."""
    return thread_pool.has_pool() and routines.library.limits is not None


def _most_parts() -> int:
    return min(product_parts(), MOST_PARTS)


def _region(scope: Scope, name: str, part: Callable[[Scope, str], None]) -> tuple[str, str]:
    """The function that computes parts [lo, hi), and its frame."""
    unit = scope.unit
    inner = Scope(unit, FunctionText(unit.module), parent=scope)
    g = inner.f
    head, body, done = g.label("head"), g.label("body"), g.label("done")
    g.branch(head)
    g.begin(head)
    line = g.reserve()
    more = g.value("icmp slt i64 %part, %hi")
    g.branch_if(more, body, done)
    g.begin(body)
    with g.inner():
        part(inner, "%part")
    g.effect("%part.next = add nsw i64 %part, 1")
    g.fill(line, f"%part = phi i64 [ %lo, %entry ], [ %part.next, %{g.block} ]")
    g.branch(head)
    g.begin(done)
    g.effect("ret void")

    def new_name() -> str:
        unit.regions += 1
        return global_name(f"{unit.function.name}.{name}.{unit.regions}")

    signature = "define internal void @(ptr %ctx, ptr noalias readonly %frame, i64 %lo, i64 %hi)"
    region = unit.module.define(g, signature, f"noinline {unit.attributes(g)}", new_name)
    return region, scope.fill_frame(inner)


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
            _syrk(scope, routines, out, (rows, columns, inner), a)
            emit_block(scope, mirror(target))
        f.branch(end)
        f.begin(general)
    with f.inner():
        _gemm(scope, routines, out, (rows, columns, inner), a, b)
    if end is not None:
        f.branch(end)
        f.begin(end)


def _syrk(scope: Scope, routines: Routines, out: Descriptor, sizes: tuple[str, str, str], a: Matrix) -> None:
    """The upper triangle of a @ a.T: parts are ranges of rows of about equal areas, each a triangle and a rectangle."""
    f = scope.f
    n, _, inner = sizes
    apart = at_least_one(f, n)

    def triangle(s: Scope, first: str, length: str) -> None:
        g, see = s.f, _view(scope, s)
        order, leading, step = see(a.order, "i32"), see(a.leading, "i64"), see(apart, "i64")
        start = g.multiply(first, str(routines.size))
        routines.call(
            g,
            "syrk",
            "i32 121",  # the upper triangle
            f"i32 {order}",
            Size(length),
            Size(see(inner, "i64")),
            1,
            f"ptr {g.moved(see(a.data, 'ptr'), 'i8', g.multiply(start, _if_plain(g, order, leading, '1')))}",
            Size(leading),
            0,
            f"ptr {g.moved(see(out['data'], 'ptr'), 'i8', g.multiply(start, g.add(step, '1')))}",
            Size(step),
        )

    def rectangle(s: Scope, first: str, length: str) -> None:
        g, see = s.f, _view(scope, s)
        order, leading, step = see(a.order, "i32"), see(a.leading, "i64"), see(apart, "i64")
        along = g.multiply(str(routines.size), _if_plain(g, order, leading, "1"))
        after = g.add(first, length)
        there = g.multiply(g.add(g.multiply(first, step), after), str(routines.size))
        rest = g.binary("sub", "i64", see(n, "i64"), after)
        some, done = g.label("some"), g.label("done")
        g.branch_if(g.binary("icmp sgt", "i64", rest, "0"), some, done)
        g.begin(some)
        with g.inner():
            routines.call(
                g,
                "gemm",
                f"i32 {order}",
                f"i32 {_turned(g, order)}",
                Size(length),
                Size(rest),
                Size(see(inner, "i64")),
                1,
                f"ptr {g.moved(see(a.data, 'ptr'), 'i8', g.multiply(first, along))}",
                Size(leading),
                f"ptr {g.moved(see(a.data, 'ptr'), 'i8', g.multiply(after, along))}",
                Size(leading),
                0,
                f"ptr {g.moved(see(out['data'], 'ptr'), 'i8', there)}",
                Size(step),
            )
        g.branch(done)
        g.begin(done)

    if not _shares(routines):
        limited = routines.limit(f, threads(f))
        triangle(scope, "0", n)
        routines.unlimit(f, limited)
        return
    parts = _most_parts()
    work = f.multiply(f.multiply(n, n), inner)
    small = f.binary("icmp slt", "i64", work, str(LEAST_WORK["gemm"]))

    def part(s: Scope, number: str) -> None:
        g, see = s.f, _view(scope, s)
        whole, extent = see(small, "i1"), see(n, "i64")
        first, after = (
            g.select(whole, "i64", at_once, _row_of_part(g, parts, extent, place))
            for at_once, place in (("0", number), (extent, g.add(number, "1")))
        )
        length = g.binary("sub", "i64", after, first)
        some, done = g.label("rows"), g.label("none")
        g.branch_if(g.binary("icmp sgt", "i64", length, "0"), some, done)
        g.begin(some)
        with g.inner():
            triangle(s, first, length)
            rectangle(s, first, length)
        g.branch(done)
        g.begin(done)

    _run(scope, routines, "syrk", (f.select(small, "i64", "1", str(parts)), work, small), part)


def _row_of_part(f: FunctionText, parts: int, extent: str, number: str) -> str:
    """The row at which a part of a triangle begins, such that parts have about the same area; after the last, the
    extent."""
    name = f"pk.triangle.{parts}"
    if f.module.is_new(name):
        shares = (round((1 - (1 - k / parts) ** 0.5) * (1 << 20)) for k in range(parts + 1))
        numbers = ", ".join(f"i64 {share}" for share in shares)
        f.module.functions.append(f"@{name} = internal constant [{parts + 1} x i64] [{numbers}]")
    share = f.value(f"load i64, ptr {f.moved(f'@{name}', 'i64', number)}")
    row = f.binary("lshr", "i64", f.binary("mul", "i64", extent, share), "20")
    aligned = f.binary("and", "i64", f.add(row, str(ALIGNMENT["gemm"] - 1)), str(-ALIGNMENT["gemm"]))
    last = f.binary("icmp eq", "i64", number, str(parts))
    return f.select(last, "i64", extent, f.intrinsic("smin", "i64", aligned, extent))


def _gemm(scope: Scope, routines: Routines, out: Descriptor, sizes: tuple[str, str, str], a: Matrix, b: Matrix) -> None:
    """out = a @ b, cut by rows unless there are more than twice as many columns."""
    f = scope.f
    rows, columns, inner = sizes
    by_rows = f.binary("icmp sge", "i64", f.multiply(rows, "2"), columns)
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

    cut = f.select(by_rows, "i64", rows, columns)
    _share(scope, routines, "gemm", cut, f.multiply(f.multiply(rows, columns), inner), part)


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
        order = _turned(f, order)

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


def _turned(f: FunctionText, order: str) -> str:
    """The order of the transpose."""
    return f.binary("sub", "i32", "223", order) if order.startswith("%") else str(223 - int(order))


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
