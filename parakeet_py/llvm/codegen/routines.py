"""Calls of NumPy's compiled loops (`numpy_loops`), with the arrays' own addresses, extents and strides.

A gufunc's loop takes everything in three tables, written on the stack: the addresses of its arrays; how many times it
is to run, then its sizes; the strides of the arrays' first axes, then of their others. A sorting function is called for
one line after the other; it fails only for lack of memory.

And of our own for pairwise sums (`pairwise_library`).
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base import machine, numpy_loops, routines
from parakeet_py.base.types import is_complex, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.builder import MEMORY_TYPE, FunctionText, Value, global_name
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime.call_context import OUT_OF_MEMORY
from parakeet_py.llvm.runtime.pairwise_library import PREFIX
from parakeet_py.typed_ir.ir import dtype_of


def routine(scope: Scope, statement: ir.Routine) -> None:
    """Write the call of a routine."""
    outs = [scope.array(var) for var in statement.outs]
    ins = [scope.array(var) for var in statement.ins]
    dtypes = tuple(array.type.dtype for array in (*ins, *outs))
    if routines.family(statement.name) in ("sort", "argsort"):
        _sort(scope, statement.name, dtypes, outs[0], ins)
        return
    f = scope.f
    limited = None
    if routines.on_own_threads(statement.name):
        limited = _limit_threads(f)
    status = _run_loop(f, statement.name, dtypes, ins, outs)
    if limited is not None:
        f.effect(f"call void {f.module.declare('void', 'pk_blas_end', 'i32')}(i32 {limited})")
    if statement.failed is not None:
        scope.values[statement.failed] = f.binary("icmp ne", "i32", status, "0")


def _declare(f: FunctionText, result: str, name: str, dtypes: tuple[str, ...], parameters: str, what: str) -> str:
    full = numpy_loops.symbol(name, dtypes, what)
    f.module.declare(result, full, parameters)
    return global_name(full)


def _limit_threads(f: FunctionText) -> str | None:
    """Let LAPACK use no more threads than this call may, if its BLAS is known."""
    library = f.module.blas()
    if library is None or library.limits is None:
        return None
    get = f.module.declare("i32", library.limits[0], "")
    set_ = f.module.declare("void", library.limits[1], "i32")
    begin = f.module.declare("i32", "pk_blas_begin", "ptr, ptr, ptr")
    return f.value(f"call i32 {begin}(ptr %ctx, ptr {get}, ptr {set_})")


def _run_loop(
    f: FunctionText, name: str, dtypes: tuple[str, ...], ins: Sequence[Descriptor], outs: Sequence[Descriptor]
) -> str:
    """Call a gufunc's loop; gives the flag that is set by a failure, an i32."""
    shapes = routines.shapes(name)
    arrays, axes = [*ins, *outs], [*shapes.ins, *shapes.outs]
    sizes: dict[int, str] = {}
    for array, own in zip(arrays, axes, strict=True):
        for axis, size in enumerate(own, 1):
            sizes.setdefault(size, array[f"extent{axis}"])
    strides = [array["stride0"] for array in arrays]
    for array, own in zip(arrays, axes, strict=True):
        strides += [array[f"stride{axis}"] for axis in range(1, len(own) + 1)]
    data = "null"
    if numpy_loops.has_data(name, dtypes):
        data = _declare(f, "void", name, dtypes, "", "data")
    tables = (
        _table(f, "ptr", [array["data"] for array in arrays]),
        _table(f, "i64", [outs[0]["extent0"], *(sizes[number] for number in range(shapes.sizes))]),
        _table(f, "i64", strides),
        data,
    )
    loop = _declare(f, "void", name, dtypes, "ptr, ptr, ptr, ptr", "loop")
    if f.module.is_new("pk.run.loop"):
        for name in ("feclearexcept", "fetestexcept"):
            f.module.declare("i32", name, "i32")
        f.module.functions.append(_RUN)
    return f.value(f"call i32 @pk.run.loop(ptr {loop}, {', '.join(f'ptr {table}' for table in tables)})")


# A loop leaves the flag as it was unless it fails. Never inlined: no arithmetic of the caller's may come in between.
_RUN = f"""
define internal i32 @pk.run.loop(ptr %loop, ptr %arrays, ptr %sizes, ptr %strides, ptr %data) noinline nounwind {{
  %cleared = call i32 @feclearexcept(i32 {machine.INVALID})
  call void %loop(ptr %arrays, ptr %sizes, ptr %strides, ptr %data)
  %raised = call i32 @fetestexcept(i32 {machine.INVALID})
  ret i32 %raised
}}"""


def _table(f: FunctionText, kind: str, values: Sequence[str]) -> str:
    place = f.alloca(f"[{len(values)} x i64]", 8)
    for number, value in enumerate(values):
        own = f.value(f"getelementptr inbounds i8, ptr {place}, i64 {8 * number}") if number else place
        f.effect(f"store {kind} {value}, ptr {own}")
    return place


def _sort(scope: Scope, name: str, dtypes: tuple[str, ...], out: Descriptor, ins: Sequence[Descriptor]) -> None:
    f = scope.f
    parameters = "ptr, i64, ptr" if not ins else "ptr, ptr, i64, ptr"
    function = _declare(f, "i32", name, dtypes, parameters, "loop")
    lines, count = out["extent0"], out["extent1"]
    steps = [(array["data"], array["stride0"]) for array in (*ins, out)]
    head, body, end = f.label("lines"), f.label("line"), f.label("end")
    before = f.block
    f.branch(head)
    f.begin(head)
    counting = f.reserve()
    line = f.fresh("line")
    f.branch_if(f.binary("icmp slt", "i64", line, lines), body, end)
    f.begin(body)
    with f.inner():
        places = []
        for data, stride in steps:
            offset = f.value(f"mul nsw i64 {line}, {stride}")
            places.append(f.value(f"getelementptr inbounds i8, ptr {data}, i64 {offset}"))
        arguments = ", ".join(f"ptr {place}" for place in places)
        status = f.value(f"call i32 {function}({arguments}, i64 {count}, ptr null)")
        scope.leave_if(f.binary("icmp ne", "i32", status, "0"), scope.failure(OUT_OF_MEMORY, "0", []))
        following = f.value(f"add nuw nsw i64 {line}, 1")
    latch = f.block
    f.fill(counting, f"{line} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
    f.branch(head)
    f.begin(end)


def pairwise(scope: Scope, op: ir.Pairwise) -> Value:
    """Combine adjacent elements of an array."""
    f, dtype = scope.f, dtype_of(op.array)
    kind = MEMORY_TYPE[real_dtype(dtype)]
    result = f"<2 x {kind}>" if is_complex(dtype) else kind
    name = f.module.declare(result, f"{PREFIX}{op.name}_{dtype}", "ptr, i64", "nounwind memory(argmem: read)")
    place = arrays.address(f, scope.array(op.array), [scope.scalar(index) for index in op.start])
    count = scope.scalar(op.count)
    if not is_complex(dtype):
        return f.value(f"call {kind} {name}({f.pointer(place)}, i64 {count})")
    both = f.value(f"call {result} {name}({f.pointer(place)}, i64 {f.binary('shl', 'i64', count, '1')})")
    return f.value(f"extractelement {result} {both}, i32 0"), f.value(f"extractelement {result} {both}, i32 1")
