"""Calls of NumPy's compiled loops (`numpy_loops`), with the arrays' own addresses, extents and strides.

A gufunc's loop takes everything in three tables, written on the stack: the addresses of its arrays; how many times it
is to run, then its sizes; the strides of the arrays' first axes, then of their others. A sorting function is called for
one line after the other; it fails only for lack of memory.

And of our own for pairwise sums (`pairwise_library`). Primitives of exact code (`base.exact_loops`) are called for one
element: where loops over many call NumPy's for blocks (`imp/schedule/blocked_loops.py`), single numbers are left, and
loops of which each iteration needs the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base import exact_loops, machine, routines
from parakeet_py.base.config import product_parts
from parakeet_py.base.foreign_code import native_functions, numpy_loops
from parakeet_py.base.types import is_complex, itemsize, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays, cholesky
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.blas_products import MOST_PARTS, Routines
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, MEMORY_TYPE, PURE, FunctionText, Value, global_name
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime.call_context import OUT_OF_MEMORY, Context
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
    if statement.name in routines.BLOCKED and cholesky.has(f.module.blas(), dtypes[0]):
        status = _in_blocks(f, statement.name, dtypes, ins[0], outs[0])
    else:
        status = _run_loop(f, statement.name, dtypes, ins, outs)
    if statement.failed is not None:
        scope.values[statement.failed] = f.binary("icmp ne", "i32", status, "0")


def _declare(f: FunctionText, result: str, name: str, dtypes: tuple[str, ...], parameters: str, what: str) -> str:
    full = numpy_loops.symbol(name, dtypes, what)
    f.module.declare(result, full, parameters)
    return global_name(full)


def _data(f: FunctionText, name: str, dtypes: tuple[str, ...]) -> str:
    """What a loop is called with beside its tables."""
    return _declare(f, "void", name, dtypes, "", "data") if numpy_loops.has_data(name, dtypes) else "null"


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
    plain = routines.family(name) in exact_loops.FAMILIES
    tables = (
        _table(f, "ptr", [array["data"] for array in arrays]),
        _table(f, "i64", [outs[0]["extent0"], *(sizes[number] for number in range(shapes.sizes))]),
        _table(f, "i64", strides),
        _data(f, name, dtypes),
    )
    loop = _declare(f, "void", name, dtypes, "ptr, ptr, ptr, ptr", "loop")
    if plain:
        f.effect(f"call void {loop}({', '.join(f'ptr {table}' for table in tables)})")
        return "0"
    if f.module.is_new("pk.run.loop"):
        for name in ("feclearexcept", "fetestexcept"):
            f.module.declare("i32", name, "i32")
        f.module.functions.append(_RUN)
    return f.value(f"call i32 @pk.run.loop(ptr {loop}, {', '.join(f'ptr {table}' for table in tables)})")


def _in_blocks(f: FunctionText, name: str, dtypes: tuple[str, ...], given: Descriptor, out: Descriptor) -> str:
    """A Cholesky factor by blocks, where it is one large matrix with contiguous rows, else by NumPy's loop."""
    library = f.module.blas()
    assert library is not None
    enough = f.binary("icmp sge", "i64", out["extent1"], str(cholesky.LEAST))
    for value, wanted in ((out["extent0"], "1"), (given["stride2"], "8")):
        enough = f.binary("and", "i1", enough, f.binary("icmp eq", "i64", value, wanted))
    blocks, loop, end = f.label("blocks"), f.label("loop"), f.label("end")
    result = f.alloca("i32", 4)
    f.branch_if(enough, blocks, loop)
    f.begin(blocks)
    with f.inner():
        place = f.value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.MAX_THREADS}")
        threads = f.value(f"load i32, ptr {place}")
        parallel = f.module.declare("void", "pk_parallel", "ptr, ptr, ptr, i64, i64, i32")
        routine = _declare(f, "void", name, dtypes, "ptr, ptr, ptr, ptr", "loop")
        fields = [
            *(f"ptr {out['data']}", f"ptr {given['data']}", f"i64 {out['extent1']}", f"i64 {given['stride1']}"),
            f"i64 {min(product_parts(), MOST_PARTS)}",
            *(
                f"ptr {f.module.declare('void', library.symbol(one), kinds)}"
                for one, kinds in cholesky.ROUTINES.items()
            ),
            *(f"ptr {routine}", f"ptr {_data(f, name, dtypes)}", f"ptr {parallel}"),
            *("double -1.0", "double 1.0", "i64 0", "i64 0"),
        ]
        table = f.alloca(f"[{len(fields)} x i64]", 8)
        for number, field in enumerate(fields):
            place = f.value(f"getelementptr inbounds i8, ptr {table}, i64 {8 * number}") if number else table
            f.effect(f"store {field}, ptr {place}")
        blas = Routines(library, dtypes[0])
        limited = blas.limit(f, "1")
        factor = f.module.declare("i32", cholesky.NAME, "ptr, ptr, i32")
        failed = f.value(f"call i32 {factor}(ptr %ctx, ptr {table}, i32 {threads})")
        blas.unlimit(f, limited)
        f.effect(f"store i32 {failed}, ptr {result}")
    f.branch(end)
    f.begin(loop)
    with f.inner():
        status = _run_loop(f, name, dtypes, [given], [out])
        f.effect(f"store i32 {status}, ptr {result}")
    f.branch(end)
    f.begin(end)
    return f.value(f"load i32, ptr {result}")


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


# ---- single elements -------------------------------------------------------------------------------------------------


def element(f: FunctionText, name: str, operands: tuple[Value, ...], dtypes: tuple[str, ...], result: str) -> Value:
    """The value of `name(*operands)`, which are of `dtypes`."""
    if name.startswith("libm."):
        return _of_c(f, name, [operand for operand in operands if isinstance(operand, str)], result)
    if native_functions.is_native(name):
        return _of_numba(f, name, [operand for operand in operands if isinstance(operand, str)])
    places = [_kept(f, operand, dtype) for operand, dtype in zip(operands, dtypes, strict=True)]
    out = f.alloca(_memory(result), 16)
    steps = [
        itemsize(dtype) if moves else 0 for dtype, moves in zip((*dtypes, result), exact_loops.moves(name), strict=True)
    ]
    routine, kinds = name.rpartition(".")[0], (*dtypes, result)
    loop = _declare(f, "void", routine, kinds, "ptr, ptr, ptr, ptr", "loop")
    tables = (
        _table(f, "ptr", [*places, out]),
        _constant(f, [1]),
        _constant(f, steps),
        _data(f, routine, kinds),
    )
    f.effect(f"call void {loop}({', '.join(f'ptr {table}' for table in tables)})")
    if not is_complex(result):
        kind = MEMORY_TYPE[result]
        loaded = f.value(f"load {kind}, ptr {out}")
        return f.value(f"trunc i8 {loaded} to i1") if result == "bool" else loaded
    part = LLVM_TYPE[real_dtype(result)]
    second = f.value(f"getelementptr inbounds i8, ptr {out}, i64 {itemsize(result) // 2}")
    return f.value(f"load {part}, ptr {out}"), f.value(f"load {part}, ptr {second}")


def _of_c(f: FunctionText, name: str, operands: list[str], dtype: str) -> str:
    """A call of the C library, by a symbol under which LLVM does not know it: it would compute squares by itself."""
    kind = LLVM_TYPE[dtype]
    full = numpy_loops.symbol(name, (dtype,))
    f.module.declare(kind, full, ", ".join([kind] * len(operands)), PURE)
    return f.value(f"call {kind} {global_name(full)}({', '.join(f'{kind} {operand}' for operand in operands)})")


def _of_numba(f: FunctionText, name: str, operands: list[str]) -> str:
    """What a function of numba's gives, or whether it has returned: both of one call, which LLVM makes once."""
    found = native_functions.function_of(name)
    place = name.split(".")[1]
    kinds = [LLVM_TYPE[dtype] for dtype in found.operands]
    caller, kind, memory = f"pk.numba.{place}", LLVM_TYPE[found.result], MEMORY_TYPE[found.result]
    if f.module.is_new(caller):
        full = numpy_loops.symbol(f"{native_functions.FAMILY}.{place}", ())
        f.module.declare("i32", full, ", ".join(["ptr, ptr", *kinds]))
        params = [f"{one} %x{number}" for number, one in enumerate(kinds)]
        loaded = "%value = trunc i8 %held to i1" if found.result == "bool" else f"%value = freeze {kind} %held"
        head = f"define internal {{ {kind}, i1 }} @{caller}({', '.join(params)}) noinline {_NO_EFFECTS}"
        f.module.functions.append(f"""{head} {{
entry:
  %result = alloca i64
  %exception = alloca ptr
  store i64 0, ptr %result
  %status = call i32 {global_name(full)}({", ".join(["ptr %result, ptr %exception", *params])})
  %held = load {memory}, ptr %result
  {loaded}
  %done = icmp eq i32 %status, 0
  %one = insertvalue {{ {kind}, i1 }} poison, {kind} %value, 0
  %both = insertvalue {{ {kind}, i1 }} %one, i1 %done, 1
  ret {{ {kind}, i1 }} %both
}}""")
    given = ", ".join(f"{one} {operand}" for one, operand in zip(kinds, operands, strict=True))
    both = f.value(f"call {{ {kind}, i1 }} @{caller}({given}) {_NO_EFFECTS}")
    return f.value(f"extractvalue {{ {kind}, i1 }} {both}, {int(name.endswith(native_functions.DONE))}")


_NO_EFFECTS = "nounwind memory(none)"


def _memory(dtype: str) -> str:
    return f"[{itemsize(dtype)} x i8]"


def _kept(f: FunctionText, operand: Value, dtype: str) -> str:
    """A place on the stack that holds a number."""
    place = f.alloca(_memory(dtype), 16)
    if isinstance(operand, str):
        stored = f.value(f"zext i1 {operand} to i8") if dtype == "bool" else operand
        f.effect(f"store {MEMORY_TYPE[dtype]} {stored}, ptr {place}")
        return place
    part = LLVM_TYPE[real_dtype(dtype)]
    second = f.value(f"getelementptr inbounds i8, ptr {place}, i64 {itemsize(dtype) // 2}")
    f.effect(f"store {part} {operand[0]}, ptr {place}")
    f.effect(f"store {part} {operand[1]}, ptr {second}")
    return place


def _constant(f: FunctionText, values: list[int]) -> str:
    """A table of numbers, written once."""
    place = f.alloca(f"[{len(values)} x i64]", 8)
    f.entry_effect(f"store [{len(values)} x i64] [{', '.join(f'i64 {value}' for value in values)}], ptr {place}")
    return place
