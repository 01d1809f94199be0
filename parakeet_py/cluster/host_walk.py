"""The host part of a function, walked on the client: it makes the graph of a call.

What depends on extents and scalars alone is computed here and now. What depends on elements is lazy: arithmetic with a
lazy scalar is a task, a check of one is a task that raises and that the results wait for. Where control depends on one,
or an extent, the client has to know it: that is a *round*, in which it is computed, together with the chunks that it
comes from and that are still needed. Loops whose bounds are known unroll into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dask._task_spec import TaskRef

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import Scalar, itemsize
from parakeet_py.cluster.arrays import LazyArray, LazyScalar, Root
from parakeet_py.cluster.call_settings import CallSettings
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.host_ops.elements import load, store
from parakeet_py.cluster.host_ops.reshape import reshaped
from parakeet_py.cluster.host_ops.routine_tasks import run_routine
from parakeet_py.cluster.host_ops.strided import check_order, strided
from parakeet_py.cluster.plan import ClusterPlan, Extents
from parakeet_py.cluster.planned_call import given
from parakeet_py.cluster.products import run_product
from parakeet_py.cluster.region_tasks import run_region
from parakeet_py.cluster.report import ClusterReport, RegionReport
from parakeet_py.cluster.worker import scalars, tasks
from parakeet_py.cluster.worker.given_up import is_failure_for_python
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.hybrid.partition.block_parts import BlockPart
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ELEMENTARY, Const, Function, Operand, Var, dtype_of
from parakeet_py.typed_ir.semantics import OTHER_TYPE

_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_SMALL = 1 << 62


class _Break(Exception):
    """A loop of the host part ends."""


class HostWalk:
    """One call whose graph is being made; fulfils `PlannedCall`.

    Attributes
    ----------
    chunk_bytes, hints, layouts : see `PlannedCall`
    large : some argument is
    checks : keys of checks that the results wait for
    may_raise : keys of parts of regions that may raise
    regions : what has become of regions so far
    scopes, held : values of variables, and others that are still needed
    """

    def __init__(
        self, plan: ClusterPlan, graph: Graph, settings: CallSettings, hints: Mapping[int, Sequence[int]]
    ) -> None:
        self.plan, self.graph, self.settings, self.hints = plan, graph, settings, hints
        self.chunk_bytes = settings.chunk_bytes
        self.checks: list[Hashable] = []
        self.may_raise: list[Hashable] = []
        self.layouts = plan.layouts
        self.regions: list[RegionReport] = []
        self.scopes: list[dict[Any, Any]] = []
        self.held: list[Any] = []
        self.roots: list[Root] = []
        self.function = plan.function
        self.large = False

    def report(self) -> ClusterReport:
        """What the call does, as far as it has got."""
        regions = [
            replace(region, moved=region.moved + self.graph.corrections[number])
            for number, region in enumerate(self.regions)
        ]
        return ClusterReport(tuple(regions), self.graph.rounds, self.graph.made or len(self.graph.tasks))

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """The results of the host part for its leaf arguments."""
        self.held += leaves
        self.large = any(isinstance(leaf, LazyArray) and self.is_large(leaf.root) for leaf in leaves)
        results = self._function(self.plan.function, leaves)
        self.held += results
        self.plan.keep_layouts()
        return results

    def _function(self, function: imp.Function, values: Sequence[Any]) -> list[Any]:
        before = self.function
        self.function = function
        self.scopes.append(dict(zip(function.params, values, strict=True)))
        try:
            self._block(function.body)
            return [self._operand(result) for result in function.results]
        finally:
            self.scopes.pop()
            self.function = before

    # ---- what regions need -------------------------------------------------------------------------------------------

    def number(self, value: Any) -> Any:
        """A scalar that may have to be computed first."""
        if not isinstance(value, LazyScalar):
            return value
        if not value.known:
            self.round([value])
        return value.value

    def ready(self, array: LazyArray) -> LazyArray:
        root = array.root
        if root.counts is not None:
            self._settle(root)
        if root.refresh is not None:
            root.refresh()
        if any(isinstance(extent, LazyScalar) for extent in array.shape):
            return LazyArray(root, array.starts, array.axes, [self.number(extent) for extent in array.shape])
        return array

    def part(self, region: Region, cut: tuple[int, ...], private: bool) -> BlockPart:
        return self.plan.part(region, cut, private)

    def kernel(self, function: Function, apart: bool, extents: Extents = ()) -> tuple[Kernel, Hashable]:
        kernel, key = self.plan.kernel(function, apart, extents)
        self.graph.data(key, kernel)
        return kernel, key

    def check_size(self, line: int, nbytes: int) -> None:
        self.settings.check_size(self.plan.name, self.plan.filename, line, nbytes)

    def is_large(self, root: Root) -> bool:
        return self.settings.is_large(root)

    def may_store(self, root: Root, line: int) -> None:
        self.settings.may_store(root, self.plan.name, self.plan.filename, line)

    def unsupported(self, text: str) -> UnsupportedError:
        message = f"{self.plan.name} {text}"
        return UnsupportedError(message, self.plan.filename)

    def told(self, report: RegionReport) -> None:
        self.regions.append(report)
        self.graph.regions += 1

    # ---- rounds ------------------------------------------------------------------------------------------------------

    def _live(self) -> Iterator[Any]:
        for scope in self.scopes:
            yield from scope.values()
        yield from self.held

    def round(self, wanted: Sequence[LazyScalar], more: Sequence[Hashable] = ()) -> list[Any]:
        """Compute scalars, and what else is wanted; gives the latter."""
        self.settings.check_rounds(self.plan.name, self.plan.filename, self.graph)
        live: dict[Hashable, None] = {}
        for value in self._live():
            if isinstance(value, LazyScalar) and not value.known:
                live[value.key] = None
            elif isinstance(value, LazyArray):
                live.update(dict.fromkeys(value.root.keys.values()))
                live.update(dict.fromkeys(value.root.counts or ()))
                source = value.root.source
                while source is not None:  # it may have changed since
                    live.update(dict.fromkeys(source.keys.values()))
                    source = source.source
                extents = [one for one in (*value.shape, *value.root.shape) if isinstance(one, LazyScalar)]
                live.update((one.key, None) for one in extents if not one.known)
        values = self.graph.values([*(one.key for one in wanted), *more, *self.checks], list(live))
        for one, value in zip(wanted, values, strict=False):
            one.settle(value)
        self.checks.clear()
        self.graph.drop_unneeded([*live, *self.may_raise])
        return values[len(wanted) : len(wanted) + len(more)]

    def _settle(self, root: Root) -> None:
        """Compute how many elements are in each chunk."""
        assert root.counts is not None
        extent: Any = root.shape[0]
        counts = [int(count) for count in self.round([], root.counts)]
        if isinstance(extent, LazyScalar) and not extent.known:
            extent.settle(sum(counts))
        for value in self._live():
            if isinstance(value, LazyArray) and value.root.counts is not None and value.root.shape[0] is extent:
                value.root.shape = (sum(counts),)
                value.root.cut((tuple(counts),))
                value.root.counts = None
        if root.counts is not None:
            root.shape = (sum(counts),)
            root.cut((tuple(counts),))
            root.counts = None

    # ---- values ------------------------------------------------------------------------------------------------------

    def _operand(self, operand: Operand) -> Any:
        if isinstance(operand, Const):
            return scalars.kept(operand.value, operand.type.dtype)
        value = self.scopes[-1][operand]
        return value.value if isinstance(value, LazyScalar) and value.known else value

    def _int(self, operand: Operand) -> int:
        return int(self.number(self._operand(operand)))

    def _ints(self, operands: Sequence[Operand]) -> tuple[int, ...]:
        return tuple([self._int(operand) for operand in operands])

    def _set(self, place: Any, value: Any) -> None:
        self.scopes[-1][place] = value

    def lazy(self, kind: Scalar, name: str, function: Any, *args: Any) -> LazyScalar:
        """A scalar that a task gives."""
        doubt = name.endswith("_checked") or (name == "check" and is_failure_for_python(args[0]))
        key = self.graph.add((self.graph.prefix(name),), function, *map(given, args), gives_up=doubt, nbytes=16)
        return LazyScalar(key, kind.dtype, kind.python)

    # ---- statements --------------------------------------------------------------------------------------------------

    def _block(self, block: imp.Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, statement: imp.Statement) -> None:
        match statement:
            case imp.Let(out, rhs):
                self._set(out, self._rhs(out, rhs))
            case imp.Declare(cell, init):
                self._set(cell, _unset(cell.type) if init is None else self._operand(init))
            case imp.Write(cell, value):
                self._set(cell, self._operand(value))
            case imp.Store(array, indices, value, pos):
                store(self, self._array(array), self._ints(indices), self._operand(value), pos.line)
            case imp.If(condition, then, orelse):
                self._block(then if self.number(self._operand(condition)) else orelse)
            case imp.For(index, start, stop, step, body):
                try:
                    for at in range(*self._ints((start, stop, step))):
                        self._set(index, at)
                        self._block(body)
                except _Break:
                    pass
            case imp.While(head, condition, body):
                try:
                    while True:
                        self._block(head)
                        if not self.number(self._operand(condition)):
                            break
                        self._block(body)
                except _Break:
                    pass
            case imp.Break():
                raise _Break
            case imp.Check(condition, failure, args):
                self._check(self._operand(condition), failure, args)
            case imp.Release(place):
                self.scopes[-1].pop(place, None)
            case imp.Retain():
                pass
            case imp.Opaque(outs, site, args, pos):
                results = self._opaque(site, [self._operand(arg) for arg in args], pos.line)
                for out, value in zip(outs, results, strict=True):
                    self._set(out, value)
            case _:
                raise AssertionError(f"{statement!r} in a host part")

    def _check(self, condition: Any, failure: int, args: Sequence[Operand]) -> None:
        values = [self._operand(arg) for arg in args]
        found = self.function.failures[failure].failure
        if found.message == OTHER_TYPE:  # results may have other types than tasks can be said to give
            condition = self.number(condition)
        if not isinstance(condition, LazyScalar):
            if not condition:
                self._pass_checks()
                known = [self.number(value) for value in values]
                raise exception_of(self.function, [self.function.body], failure, known)
            return
        kinds = tuple(dtype_of(arg) for arg in args)
        before = TaskRef(self.checks[-1]) if self.checks else None  # the first one that fails is the one that raises
        made = self.lazy(Scalar("bool"), "check", scalars.checked, found, kinds, before, condition, *values)
        self.checks.append(made.key)

    def _pass_checks(self) -> None:
        """Wait for what may have failed before something else that does."""
        left = [key for key in (*self.checks, *self.may_raise) if key in self.graph.tasks]
        if left:
            self.round([], [self.graph.add((self.graph.prefix("passed"),), tasks.after, None, *map(TaskRef, left))])

    def _rhs(self, out: Var, rhs: imp.Rhs) -> Any:
        match rhs:
            case ir.Prim(name, args):
                return self._prim(out, name, args)
            case ir.Cast(arg):
                value = self._operand(arg)
                if isinstance(value, LazyScalar):
                    return self.lazy(_kind(out), "cast", scalars.converted, dtype_of(arg), dtype_of(out), value)
                return scalars.converted(dtype_of(arg), dtype_of(out), value)
            case imp.Read(cell):
                return self.scopes[-1][cell]
            case ir.Load(array, indices):
                return load(self, self._array(array), self._ints(indices), _kind(out))
            case ir.Dim(array, axis):
                return self._array(array).shape[axis]
            case imp.NewArray(extents):
                dtype = dtype_of(out)
                return LazyArray.of(Root(self._ints(extents), dtype, itemsize(dtype)))
            case ir.View(base, starts, axes):
                shown = [(axis.source, self._int(axis.extent), self._int(axis.step)) for axis in axes]
                return self.ready(self._array(base)).view(self._ints(starts), shown)
            case ir.Reshape(base, extents):
                return reshaped(self, self.ready(self._array(base)), self._ints(extents))
            case ir.Stride(array, axis):
                found = self.ready(self._array(array))
                check_order(self, found.root)
                return found.stride(axis)
            case ir.Strided(base, offset, extents, strides):
                return strided(
                    self,
                    self.ready(self._array(base)),
                    self._int(offset),
                    self._ints(extents),
                    self._ints(strides),
                    dtype_of(out),
                )
        raise AssertionError(f"{rhs!r} in a host part")

    def _array(self, operand: Operand) -> LazyArray:
        value = self._operand(operand)
        assert isinstance(value, LazyArray)
        return value

    def _prim(self, out: Var, name: str, args: tuple[Operand, ...]) -> Any:
        values = [self._operand(arg) for arg in args]
        if name == ir.ON_DEVICE:  # where tasks work side by side: ways without loops over all elements
            return values[0] or self.large
        if name == "select" and not isinstance(values[0], LazyScalar):
            return values[1] if values[0] else values[2]
        dtypes = tuple(map(dtype_of, args))
        if not any(isinstance(value, LazyScalar) for value in values):
            if name in _INTEGERS and set(dtypes) == {"int64"}:
                found = _INTEGERS[name](*values)
                if -_SMALL < found < _SMALL:
                    return found
            return scalars.primitive(name, dtypes, dtype_of(out), *values)
        assert name not in ELEMENTARY or dtypes
        return self.lazy(_kind(out), name, scalars.primitive, name, dtypes, dtype_of(out), *values)

    # ---- regions -----------------------------------------------------------------------------------------------------

    def _takes_elements(self, region: Region, values: Mapping[Var, Any]) -> bool:
        """Whether a branch of the host takes single elements of large arrays: where its condition is known, that is
        nothing but slices of these."""
        if not isinstance(region.op, ir.If):
            return False
        if not any(isinstance(value, LazyArray) and self.is_large(value.root) for value in values.values()):
            return False
        loops = [let.op for let in region.whole.statements() if isinstance(let.op, ir.For | ir.While)]
        return all(isinstance(op, ir.For) and op.start == op.stop for op in loops)  # without turns

    def _opaque(self, site: int, args: list[Any], line: int) -> Sequence[Any]:
        found = self.plan.at(site)
        if isinstance(found, Region):
            values = dict(zip(found.args, args, strict=True))
            if isinstance(found.op, ir.Matmul):
                run_product(self, found, values)
                return []
            if self._takes_elements(found, values):
                return self._function(self.plan.steps(found), args)
            return run_region(self, found, values)
        if found is not None:
            values = dict(zip(found.args, args, strict=True))
            results: list[Any] = []
            before = len(self.held)
            for task in found.tasks:
                own = self._function(task.function, [values[arg] for arg in task.args])
                results += own
                self.held += own
            del self.held[before:]
            return results
        routine = self.plan.routines.get(site)
        if routine is None:
            raise UnsupportedError(
                f"line {line} of {self.plan.name} is handed back to Python, which does not know what Dask arrays hold",
                self.plan.filename,
            )
        return run_routine(self, routine, args)


def _kind(out: Var) -> Scalar:
    assert isinstance(out.type, Scalar)
    return out.type


def _unset(kind: Any) -> Any:
    """What a cell holds before it is written."""
    return scalars.kept(0, kind.dtype) if isinstance(kind, Scalar) else None
