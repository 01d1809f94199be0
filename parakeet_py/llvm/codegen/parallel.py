"""Parallel regions: bodies over a range [lo, hi), run by the thread pool.

    void region(ptr ctx, ptr frame, i64 lo, i64 hi)

A region too small to share is called here and now over its whole range; otherwise it is handed to `pk_share`, which
shares it where that has been found to pay, by `pk_parallel`. In all cases it is the same function, so there is one copy
of its code and one result. The body reports failures through `pk_fail`; the caller of the region looks at the status
after it.

Regions that copy adjacent elements, or fill adjacent elements with a constant, are those of the runtime, `pk_copy` and
`pk_fill`. Lists that grow, copies and new arrays need them in nearly every program; as code of their own, each would be
a vector loop with its remainders: several milliseconds of LLVM for what `memmove` does as fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.imp import ir
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.llvm.codegen.access_checks import check_zones
from parakeet_py.llvm.codegen.arrays import unit_axis
from parakeet_py.llvm.codegen.builder import FunctionText, global_name, is_literal
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.typed_ir.ir import Const, Load, Prim, Var

WORTH_SHARING = 40_000  # scalar operations below which waking other threads costs more than it gains
IN_VECTORS = 150_000  # the same where they are done on vectors of 8-byte elements


def emit_region(scope: Scope, region: ir.Parallel, emit_block: Callable[[Scope, ir.Block], None]) -> None:
    """Write the region as a function of its own, if the runtime has none for it, and, here, its start."""
    f = scope.f
    extent, grain, work = (scope.scalar(operand) for operand in (region.extent, region.grain, region.work))
    ready = _ready_region(scope, region)
    if ready is not None:
        _start(scope, *ready, (extent, grain, work), WORTH_SHARING, may_fail=False)
        return
    name, inner = _define(scope, region, emit_block)
    may_fail = f.module.checks is not None or inner.polled or _may_fail(region.body)
    _start(scope, name, scope.fill_frame(inner), (extent, grain, work), _worth_sharing(region.body), may_fail)


def _define(scope: Scope, region: ir.Parallel, emit_block: Callable[[Scope, ir.Block], None]) -> tuple[str, Scope]:
    """Write the region as a function; gives its name and what is known of it."""
    unit = scope.unit
    inner = Scope(unit, FunctionText(unit.module), parent=scope, order="%lo")
    inner.values[region.lo], inner.values[region.hi] = "%lo", "%hi"
    inner.f.bounds |= {"%lo": 0, "%hi": 0}
    emit_block(inner, region.body)
    if not inner.f.dead:
        check_zones(inner)
        inner.f.effect("ret void")
    inner.aliases.finish()
    signature = "define internal void @(ptr %ctx, ptr noalias readonly %frame, i64 %lo, i64 %hi)"

    def new_name() -> str:
        unit.regions += 1
        return global_name(f"{unit.function.name}.{region.name}.{unit.regions}")

    return unit.module.define(inner.f, signature, f"noinline {unit.attributes(inner.f)}", new_name), inner


def _start(scope: Scope, name: str, frame: str, sizes: tuple[str, str, str], worth: int, may_fail: bool) -> None:
    """Run a region over its extent, here or, if there is as much to do as is `worth` it, on several threads."""
    f, (extent, _, work) = scope.f, sizes
    alone_call = f"call void {name}(ptr %ctx, ptr {frame}, i64 0, i64 {extent})"
    if is_literal(extent) and is_literal(work) and int(extent) < _least(int(work), worth):
        f.effect(alone_call)
        if may_fail:
            _leave_if_failed(scope)
        return
    shared, alone, end = f.label("share"), f.label("alone"), f.label("end")
    f.branch_if(_is_enough(f, extent, work, worth), shared, alone)
    f.begin(alone)
    f.effect(alone_call)
    f.branch(end)
    f.begin(shared)
    with f.inner():
        share(f, name, frame, sizes, threads(f))
    if not may_fail and scope.unit.polls:  # the pool polls between parts of the region
        _leave_if_failed(scope)
    f.branch(end)
    f.begin(end)
    if may_fail:
        _leave_if_failed(scope)


def threads(f: FunctionText) -> str:
    """How many threads this call may use."""
    place = f.value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.MAX_THREADS}")
    return f.value(f"load i32, ptr {place}")


def share(f: FunctionText, name: str, frame: str, sizes: tuple[str, str, str], most: str) -> None:
    """Run a region on up to so many threads where that takes less time than here (`sizes`: extent, grain, work of an
    index)."""
    function = f.module.declare("void", "pk_share", "ptr, ptr, ptr, i64, i64, i32, i64")
    extent, grain, work = sizes
    given = f"ptr %ctx, ptr {name}, ptr {frame}, i64 {extent}, i64 {grain}, i32 {most}, i64 {work}"
    f.effect(f"call void {function}({given})")


def _leave_if_failed(scope: Scope) -> None:
    f = scope.f
    status = f.value("load atomic i64, ptr %ctx monotonic, align 8")
    narrow = f.value(f"trunc i64 {status} to i32")
    scope.leave_if(f.binary("icmp ne", "i64", status, "0"), [scope.leave(narrow)])


def _is_enough(f: FunctionText, extent: str, work: str, worth: int) -> str:
    if is_literal(work):
        return f.binary("icmp sge", "i64", extent, str(_least(int(work), worth)))
    some = f.intrinsic("smax", "i64", work, "1")
    rounded = f.binary("udiv", "i64", f.binary("add", "i64", some, str(worth - 1)), some)
    return f.binary("icmp sge", "i64", extent, rounded)


def _least(work: int, worth: int) -> int:
    """The extent from which on a region is worth sharing."""
    return -(-worth // max(work, 1))


def _worth_sharing(body: ir.Block) -> int:
    """The scalar operations from which on a region is worth sharing: more where vectors of them are done at once, by a
    few instructions."""
    bytes_ = 0
    for one in ir.walk(body):
        match one:
            case ir.Let(rhs=Prim(name=name)) if is_dear(name):
                return WORTH_SHARING
            case ir.While(few=False) | ir.For(kind="serial" | "independent") if not _has_loop(one):
                return WORTH_SHARING
            case ir.Let(rhs=Load(array, _)) | ir.Store(array, _):
                bytes_ = max(bytes_, np.dtype(_dtype(array)).itemsize)
    return IN_VECTORS * 8 // max(bytes_, 2) if _has_loop(body) else WORTH_SHARING


def _has_loop(within: ir.Block | ir.Statement) -> bool:
    blocks = (within,) if isinstance(within, ir.Block) else ir.blocks_of(within)
    return any(isinstance(one, ir.For | ir.While) for block in blocks for one in ir.walk(block))


def _may_fail(body: ir.Block) -> bool:
    for statement in ir.walk(body):
        match statement:
            case ir.Check() | ir.Opaque() | ir.Routine() | ir.Let(rhs=ir.NewArray(space="heap")):
                return True
            case ir.Let(rhs=Prim(name=name)) if name.endswith("_checked"):
                return True
    return False


# ---- copies and fills ------------------------------------------------------------------------------------------------


def _ready_region(scope: Scope, region: ir.Parallel) -> tuple[str, str] | None:
    """The function of the runtime that does what a region does, and its frame; None if there is none."""
    if scope.f.module.checks is not None:
        return None
    match region.body.statements:
        case (ir.For(index, start, stop, Const(value=1), body),) if start == region.lo and stop == region.hi:
            pass
        case _:
            return None
    match body.statements:
        case (ir.Let(out, Load(source, places)), ir.Store(target, stored_at, value)) if out == value:
            if places != (index,) or stored_at != (index,) or _dtype(source) != _dtype(target):
                return None
            if not (_is_run(source) and _is_run(target)):
                return None
            return _ready(scope, "pk_copy", target, scope.array(source)["data"], "ptr")
        case (ir.Store(target, stored_at, Const() as value),) if stored_at == (index,):
            pattern = _pattern(value, _dtype(target))
            return (
                None
                if pattern is None or not _is_run(target)
                else _ready(scope, "pk_fill", target, str(pattern), "i64")
            )
    return None


def _ready(scope: Scope, name: str, target: Var, source: str, kind: str) -> tuple[str, str]:
    f = scope.f
    frame = f.alloca("[3 x i64]", 8)
    words = ((kind, source), ("ptr", scope.array(target)["data"]), ("i64", str(np.dtype(_dtype(target)).itemsize)))
    for slot, (word, value) in enumerate(words):
        place = f.value(f"getelementptr inbounds i8, ptr {frame}, i64 {8 * slot}") if slot else frame
        f.effect(f"store {word} {value}, ptr {place}")
    return f.module.declare("void", name, "ptr, ptr, i64, i64"), frame


def _is_run(array: Var) -> bool:
    """Whether its elements are adjacent, in the order of their one index."""
    return isinstance(array.type, Array) and unit_axis(array.type) == 0 and array.type.rank == 1


def _dtype(array: Var) -> str:
    assert isinstance(array.type, Array)
    return array.type.dtype


def _pattern(value: Const, dtype: str) -> int | None:
    """Eight bytes of an array of this constant, as an integer; None where an element is longer."""
    element = np.array(value.value, dtype).tobytes()
    return int.from_bytes(element * (8 // len(element)), "little", signed=True) if len(element) <= 8 else None
