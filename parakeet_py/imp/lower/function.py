"""From the typed IR to loops: every operator becomes a loop nest, every join of paths a cell.

`lower` walks the statements of a function in order. Scalar statements pass through unchanged (their variables keep
their names); control is in `control`, the operators in `map`, `reductions`, `scans`, `compress` and `scatter`. An
operator at the host level becomes a `Parallel` region; inside the body of another it becomes loops of one iteration.
What results has no reference counting yet: `reference_counts.manage` adds that, and `may_alias.find_roots` finds which
arrays may share memory.

    typed function --lower--> loops --storage.manage--> loops that retain and release
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from parakeet_py.base import exact_loops, routines
from parakeet_py.base.grammar import rebuild
from parakeet_py.base.interrupts import poll
from parakeet_py.base.types import BOOL, INT64, PYINT, Array, Scalar, Type
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower import compress, control, reductions, scans, scatter
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.map import lower_map
from parakeet_py.imp.lower.timed_kernels import timed
from parakeet_py.imp.schedule import blocked_loops
from parakeet_py.imp.schedule.fused_checks import Run, lower_run, run_at
from parakeet_py.imp.schedule.jammed_updates import jam_updates
from parakeet_py.imp.schedule.joined_scatters import Scatters, join_scatters
from parakeet_py.imp.schedule.packed_columns import pack_columns
from parakeet_py.imp.storage import reference_counts
from parakeet_py.imp.storage.may_alias import find_roots
from parakeet_py.imp.storage.memory_reuse import reuse
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Const, Operand, Var, ViewAxis
from parakeet_py.typed_ir.passes.analysis.traffic import OPERATORS
from parakeet_py.typed_ir.passes.analysis.unescaped_arrays import private_arrays
from parakeet_py.typed_ir.passes.fusion.vertical import fuse_into_scatters
from parakeet_py.typed_ir.rewrite import Uses
from parakeet_py.typed_ir.semantics import OVERFLOW, TOO_DEEP

INT_OVERFLOW = typed.Failure("OverflowError", OVERFLOW)
RECURSION = typed.Failure("RecursionError", TOO_DEEP)


def lower(function: typed.Function, config: object = None) -> imp.Function:
    """Lower one specialization to loops with explicit storage.

    Parameters
    ----------
    function
        The typed function, after fusion.
    config
        The settings in force: with `perf="kernels"`, kernels are timed.
    """
    timed: list[typed.Let] | None = [] if getattr(config, "perf", "") == "kernels" else None
    library = _Library(function)
    lo, body, results, roots = _managed(function, None, library, timed)
    parts = [(one, _managed(one, lo, library)) for one in function.procedures if not one.library]
    failures = tuple(lo.failures)
    procedures = tuple(
        imp.Function(one.name, one.params, body, results, failures, roots) for one, (_, body, results, roots) in parts
    )
    every = (*procedures, *library.called.values())
    made = imp.Function(function.name, function.params, body, results, failures, roots, every)
    return replace(made, timed=tuple(timed)) if timed else made


_known: dict[int, tuple[typed.Function, imp.Function]] = {}  # procedures of the library, by `id`


class _Library(Mapping[str, imp.Function]):
    """The procedures of the library that a function may call, lowered when a call of one is: some are for GPUs only.

    Attributes
    ----------
    called : those that are called; those that one calls come before it
    """

    def __init__(self, function: typed.Function) -> None:
        self._all = {one.name: one for one in function.procedures if one.library}
        self.called: dict[str, imp.Function] = {}

    def __getitem__(self, name: str) -> imp.Function:
        if name not in self.called:
            made = _of_library(self._all[name], self)
            for one in imp.walk(made.body):
                if isinstance(one, imp.Call) and one.procedure in self._all and one.procedure != name:
                    self[one.procedure]
            self.called[name] = made
        return self.called[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _of_library(function: typed.Function, library: Mapping[str, imp.Function]) -> imp.Function:
    """A procedure of the library, which is lowered once."""
    known = _known.get(id(function))
    if known is None:
        lo, body, results, roots = _managed(function, None, library)
        failures = tuple(lo.failures)
        made = imp.Function(function.name, function.params, body, results, failures, roots, library=True)
        known = _known[id(function)] = (function, made)
    return known[1]


def _has_exact_loops(block: imp.Block) -> bool:
    """Whether NumPy's own loops compute something, which they do in blocks."""
    lets = (one.rhs for one in imp.walk(block) if isinstance(one, imp.Let))
    return any(isinstance(rhs, typed.Prim) and exact_loops.is_loop(rhs.name) for rhs in lets)


def _managed(
    function: typed.Function,
    caller: Lowering | None,
    library: Mapping[str, imp.Function],
    timed: list[typed.Let] | None = None,
) -> tuple[Lowering, imp.Block, tuple[Operand, ...], dict[Any, frozenset[int]]]:
    """The loops of a function or, with the failures of its caller, of a procedure."""
    lo, results = _lowered(function, {}, caller, library, timed)
    body = imp.Block(tuple(lo.sink))
    if _has_exact_loops(body):
        body = blocked_loops.in_blocks(body, find_roots(body, function.params, function.disjoint))
    body = jam_updates(body, lambda: find_roots(body, function.params, function.disjoint))
    body, results = reuse(body, results)
    body = reference_counts.manage(body, results)
    return lo, body, results, find_roots(body, function.params, function.disjoint)


def lower_unmanaged(
    function: typed.Function, special: dict[type, Callable[[Lowering, tuple[Var, ...], Any], None]]
) -> imp.Function:
    """Lower a function with other ways to lower some operators, and without reference counting."""
    lo, results = _lowered(function, special)
    body = imp.Block(tuple(lo.sink))
    roots = find_roots(body, function.params, function.disjoint)
    return imp.Function(function.name, function.params, body, results, tuple(lo.failures), roots)


def _lowered(
    function: typed.Function,
    special: dict[type, Callable[[Lowering, tuple[Var, ...], Any], None]],
    caller: Lowering | None = None,
    library: Mapping[str, imp.Function] | None = None,
    timed: list[typed.Let] | None = None,
) -> tuple[Lowering, tuple[Operand, ...]]:
    if not special:
        function = join_scatters(pack_columns(fuse_into_scatters(function)))
    lo = Lowering(Uses(function.body).variables)
    lo.timed = timed
    lo.library = library or {}
    if caller is not None:
        lo.share_failures(caller)
    lo.special = special
    lo.private = private_arrays(function)
    lo.lower_block = lambda block: lower_block(lo, block)
    for param in function.params:
        lo.bound[param] = False
    _settle_extents(lo, function)
    return lo, lower_block(lo, function.body)


def _settle_extents(lo: Lowering, function: typed.Function) -> None:
    """Give parameters the extents that the signature settles: contiguous ones get constant strides by a reshape."""
    settled: dict[Var, dict[int, Operand]] = {}
    for param, axis, extent in function.static_extents:
        settled.setdefault(param, {})[axis] = Const(extent, INT64)
    for param, known in settled.items():
        assert isinstance(param.type, Array)
        if param.type.layout != "C" or param.type.rank < 2:
            for axis, operand in known.items():
                lo.shapes.learn_dim(param, axis, operand)
            continue
        axes = range(param.type.rank)
        extents = [known.get(axis) or lo.let("n", PYINT, typed.Dim(param, axis)) for axis in axes]
        shaped = lo.let(param.name, param.type, typed.Reshape(param, tuple(extents)))
        lo.shapes.define(shaped, extents)
        lo.shaped[param] = shaped


def lower_block(lo: Lowering, block: typed.Block) -> tuple[Operand, ...]:
    """Write the statements of a block where `lo` is; gives its results."""
    made: dict[Var, typed.Prim] = {}
    run: Run | None = None
    for place, let in enumerate(block.statements):
        poll()
        op = let.op
        lo.pos = let.pos
        if isinstance(op, typed.Prim):
            made[let.outs[0]] = op
        elif isinstance(op, typed.Check) and lo.checking:
            run = run or run_at(block, place, made)
            if run is not None:
                if place == run.end:
                    lower_run(lo, run, _check)
                    run = None
                continue
        if lo.timed is not None and not lo.in_region and isinstance(op, OPERATORS):
            with timed(lo, let):
                _LOWERINGS[type(op)](lo, let.outs, op)
            continue
        (lo.special.get(type(op)) or _LOWERINGS[type(op)])(lo, let.outs, op)
    return lo.operands(block.results)


def _prim(lo: Lowering, outs: tuple[Var, ...], op: typed.Prim) -> None:
    if outs[0] in lo.decided:
        lo.alias(outs[0], lo.decided[outs[0]])
        return
    args = lo.operands(op.args)
    if op.name == typed.ON_DEVICE:
        lo.alias(outs[0], Const(True, BOOL) if lo.special else args[0])
        return
    out = lo.bind(outs[0])
    if not lo.checking and op.name.endswith("_checked"):
        op = typed.Prim(op.name.removesuffix("_checked"), args)
    elif args != op.args:
        op = typed.Prim(op.name, args)
    if op.name.endswith("_checked"):
        lo.failure(INT_OVERFLOW)  # codegen looks its code up by position
    lo.shapes.learn_prim(out, op)
    lo.sink.append(imp.Let(out, op, lo.pos))


def _cast(lo: Lowering, outs: tuple[Var, ...], op: typed.Cast) -> None:
    arg = lo.operand(op.arg)
    kind, wanted = arg.type, outs[0].type
    if getattr(kind, "dtype", None) == getattr(wanted, "dtype", "") and not isinstance(kind, Array):
        lo.alias(outs[0], arg)
        return
    lo.sink.append(imp.Let(lo.bind(outs[0]), typed.Cast(arg), lo.pos))


def _dim(lo: Lowering, outs: tuple[Var, ...], op: typed.Dim) -> None:
    array = lo.array(op.array)
    known = lo.shapes.extent(array, op.axis)
    if known is not None and (isinstance(known, Const) or lo.shapes.extents(array) is not None):
        lo.alias(outs[0], known)
        return
    out = lo.bind(outs[0])
    lo.shapes.learn_dim(array, op.axis, out)
    lo.sink.append(imp.Let(out, typed.Dim(array, op.axis), lo.pos))


def _interrupted(lo: Lowering, outs: tuple[Var, ...], op: typed.Interrupted) -> None:
    lo.need_host()
    lo.sink.append(imp.Let(lo.bind(outs[0]), op, lo.pos))


def lower_load(lo: Lowering, outs: tuple[Var, ...], op: typed.Load) -> None:
    array, indices = lo.element(op.array, op.indices)
    lo.sink.append(imp.Let(lo.bind(outs[0]), typed.Load(array, indices), lo.pos))


def _store(lo: Lowering, outs: tuple[Var, ...], op: typed.Store) -> None:
    if lo.hidden is not None and not lo.hidden(op.array):
        return
    array, indices = lo.element(op.array, op.indices)
    lo.sink.append(imp.Store(array, indices, lo.operand(op.value), lo.pos))


def _alloc(lo: Lowering, outs: tuple[Var, ...], op: typed.Alloc) -> None:
    out = outs[0]
    assert isinstance(out.type, Array)
    lo.new_array(out.name, out.type, lo.operands(op.extents), lo.bind(out))


def _view(lo: Lowering, outs: tuple[Var, ...], op: typed.AnyView) -> None:
    view = replace(rebuild(op, lo.operand), base=lo.array(op.base))
    out = lo.bind(outs[0])
    lo.shapes.define(out, view.extents)
    lo.sink.append(imp.Let(out, view, lo.pos))


def _stride(lo: Lowering, outs: tuple[Var, ...], op: typed.Stride) -> None:
    lo.sink.append(imp.Let(lo.bind(outs[0]), typed.Stride(lo.array(op.array), op.axis), lo.pos))


def _check(lo: Lowering, outs: tuple[Var, ...], op: typed.Check) -> None:
    condition = lo.operand(op.condition)
    if not lo.checking or (isinstance(condition, typed.Const) and condition.value):
        return
    if lo.noted is not None:
        fails = lo.prim("not", condition, type_=BOOL)
        lo.write(lo.noted, lo.prim("or", lo.read(lo.noted), fails, type_=BOOL))
        return
    lo.check(condition, op.failure, lo.operands(op.args))
    lo.shapes.learn_check(condition)


def _matmul(lo: Lowering, outs: tuple[Var, ...], op: typed.Matmul) -> None:
    if lo.hidden is None or lo.hidden(op.out):
        lo.sink.append(imp.Matmul(lo.array(op.out), lo.array(op.left), lo.array(op.right), lo.pos))


_WORK = 32  # scalar operations that a routine does with one element, about


def _routine(lo: Lowering, outs: tuple[Var, ...], op: typed.Routine) -> None:
    """Lines and transforms are shared between threads; LAPACK sees to that itself."""
    if outs or routines.on_own_threads(op.name):
        lo.need_host()
        _run(lo, op, [lo.array(var) for var in op.outs], [lo.array(var) for var in op.ins], outs)
        return
    written, read = [lo.array(var) for var in op.outs], [lo.array(var) for var in op.ins]
    if lo.hidden is not None and not all(map(lo.hidden, op.outs)):
        return
    first = (read or written)[0]
    kind = first.type
    assert isinstance(kind, Array)
    lines, length = lo.extent(first, 0), lo.product(lo.extent(first, axis) for axis in range(1, kind.rank))

    def some(low: Operand, high: Operand) -> None:
        views = [[_rows(lo, array, low, high) for array in side] for side in (written, read)]
        _run(lo, op, views[0], views[1])

    lo.region(lines, ONE, lo.multiply(length, Const(_WORK, INT64)), some, lambda: ZERO, "routine")


def _rows(lo: Lowering, array: Var, low: Operand, high: Operand) -> Var:
    """The part of an array between two places of its first axis."""
    kind = array.type
    assert isinstance(kind, Array)
    extents = [lo.subtract(high, low), *(lo.extent(array, axis) for axis in range(1, kind.rank))]
    axes = tuple(ViewAxis(axis, extent, ONE) for axis, extent in enumerate(extents))
    view = typed.View(array, (low, *[ZERO] * (kind.rank - 1)), axes)
    rows = lo.let(array.name, Array(kind.dtype, kind.rank, "A" if kind.layout == "F" else kind.layout), view)
    lo.shapes.define(rows, extents)
    return rows


def _run(
    lo: Lowering, op: typed.Routine, written: Sequence[Var], read: Sequence[Var], outs: tuple[Var, ...] = ()
) -> None:
    failed = lo.bind(outs[0]) if outs else None
    lo.sink.append(imp.Routine(failed, op.name, tuple(written), tuple(read), lo.pos))


def _boxed_as(lo: Lowering, arg: Operand, wanted: Type) -> Operand:
    """An operand for Python, where a float is not an np.float64: casts between them are nothing elsewhere."""
    if arg.type == wanted or not isinstance(arg.type, Scalar):
        return arg
    if isinstance(arg, Const):
        assert isinstance(wanted, Scalar)
        return Const(arg.value, wanted)
    out = Var(arg.name, wanted)
    lo.sink.append(imp.Let(lo.bind(out), typed.Cast(arg), lo.pos))
    return out


def _opaque(lo: Lowering, outs: tuple[Var, ...], op: typed.Opaque) -> None:
    lo.need_host()
    args = tuple([_boxed_as(lo, arg, wanted.type) for arg, wanted in zip(lo.operands(op.args), op.args, strict=True)])
    lo.sink.append(imp.Opaque(tuple(lo.bind(out) for out in outs), op.site, args, lo.pos, op.leaves))


def _call(lo: Lowering, outs: tuple[Var, ...], op: typed.Call) -> None:
    lo.need_host()
    callee = lo.library.get(op.procedure)
    failure = lo.failure(RECURSION) if callee is None else lo.failures_of(callee.name, callee.failures)
    args = lo.operands(op.args)
    made = tuple(lo.bind(out) for out in outs)
    lo.sink.append(imp.Call(made, op.procedure, args, op.stores, op.levels, failure, lo.pos, op.fresh))


def _by(module: ModuleType, name: str) -> Callable[[Lowering, tuple[Var, ...], Any], None]:
    """A function of a module that few functions need: it is executed when there is such an operator."""
    return lambda lo, outs, op: getattr(module, name)(lo, outs, op)


_LOWERINGS: dict[type, Callable[[Lowering, tuple[Var, ...], Any], None]] = {
    typed.Prim: _prim,
    typed.Cast: _cast,
    typed.Dim: _dim,
    typed.Load: lower_load,
    typed.Store: _store,
    typed.Alloc: _alloc,
    **dict.fromkeys(typed.VIEWS, _view),
    typed.Stride: _stride,
    typed.Check: _check,
    typed.Matmul: _matmul,
    typed.Routine: _routine,
    typed.Opaque: _opaque,
    typed.Interrupted: _interrupted,
    typed.Call: _call,
    typed.If: _by(control, "lower_if"),
    typed.For: _by(control, "lower_for"),
    typed.While: _by(control, "lower_while"),
    typed.Map: lower_map,
    typed.Reduce: _by(reductions, "lower_reduce"),
    typed.Scan: _by(scans, "lower_scan"),
    typed.Compress: _by(compress, "lower_compress"),
    typed.Scatter: _by(scatter, "lower_scatter"),
    Scatters: _by(scatter, "lower_scatters"),
}
