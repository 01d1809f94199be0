"""Scatter on a GPU: a thread for each point, elements changed by atomics.

* A combine that is an addition, extremum or bit operation is one atomic, a product or difference a loop of compare and
  swap (`atomics`). A small target is first filled in shared memory, a copy for each block, which is combined into the
  target once; very small ones have several copies there, and warps take turns with them, so that fewer threads wait
  for each other's element. Points that lie side by side are loaded 16 bytes at a time. Points that are only counted are
  counted in 32 bits there: shared memory has no additions of 64.
* A combine that just takes the new value: of several points of one element the last one wins, as in NumPy. A first pass
  finds out which point that is, a second one stores.
* Any other combine is done in order, by one thread.

Where a body may fail, a kernel makes its checks before anything is changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from parakeet_py.base.types import BOOL, INT64, Array, Scalar, is_complex, is_float, is_unsigned, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower import scatter as on_cpu
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.lower.loops import Axis, axes_of
from parakeet_py.imp.lower.map import check_then_store
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.atomics import WORD
from parakeet_py.ptx.kernels.combining import TOGETHER, stride
from parakeet_py.ptx.kernels.points_per_thread import at_points, neighbours
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid, grid_of_blocks, index_of, split32, unravel
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Prim, Scatter, Var

COUNT = Scalar("uint32")
COUNTED = 1 << 32  # points that are so few that 32 bits hold their number
SHARED_BYTES = 16 << 10  # of a target that is filled in shared memory
BLOCKS = 528  # blocks that fill copies of a small target
COPIES = 8  # of a very small target in a block
ATOMICS = frozenset({"add", "mul", "minimum", "maximum", "fmin", "fmax", "and", "or", "xor"})


def lower_scatter(lo: Lowering, outs: tuple[Var, ...], op: Scatter) -> None:
    """A scatter as GPU regions; inside of others as on the CPU."""
    found = study(op)
    kind = array_type(op.target)
    change = _change(op, kind.dtype)
    takes_new = not op.combine.body.statements and op.combine.body.results[0] is op.combine.params[1]
    axes = axes_of(op.indices, lo.operands(op.extents))
    plain = not (found.has_opaque or found.has_array or found.visible_stores())
    if lo.in_region or not axes or not plain or not (change or takes_new) or lo.hidden is not None:
        on_cpu.lower_scatter(lo, outs, op)
        return
    kernels = _Kernels(lo, op, found, axes, kind)

    def check(number: Var) -> None:
        kernels.point(number)

    def write(storing: bool) -> None:
        if not storing:
            grid(lo, kernels.points, "checks", check)
        elif takes_new or change is None:
            kernels.last_wins()
        elif is_complex(kind.dtype):
            kernels.to_target(change)
        else:
            shared = _InShared(kernels, change)
            lo.when(shared.fits(), shared.emit, lambda: kernels.to_target(change))

    check_then_store(lo, found, write, stores=True)


class _Kernels:
    """The kernels of one scatter whose points go to the target one by one."""

    def __init__(self, lo: Lowering, op: Scatter, found: Study, axes: Sequence[Axis], kind: Array) -> None:
        self.lo, self.op, self.found, self.axes, self.kind = lo, op, found, axes, kind
        self.target = lo.array(op.target)
        self.points = lo.product(axis.extent for axis in axes)

    def extents(self) -> list[Operand]:
        return [self.lo.extent(self.target, axis) for axis in range(self.kind.rank)]

    def point(self, number: Operand) -> tuple[Operand, list[Operand], Operand]:
        """Of a point: whether it is kept, its place in the target, and its value."""
        unravel(self.lo, self.axes, number)
        keep, *place, value = self.lo.lower_block(self.op.body)
        return keep, place, value

    def update(self, name: str, array: Var, place: Sequence[Operand], value: Operand) -> None:
        """One atomic operation."""
        self.lo.let("old", value.type, imp.Atomic(name, array, tuple(place), value))

    def to_target(self, change: str) -> None:
        """Each point changes the target at once."""

        def run(number: Var) -> None:
            keep, place, value = self.point(number)
            self.lo.when(keep, lambda: self.update(change, self.target, place, value))

        grid(self.lo, self.points, "scatter", run)

    def last_wins(self) -> None:
        """The greatest number of a point that goes to an element is found first; it alone is stored."""
        lo, extents = self.lo, self.extents()
        winners = lo.new_array("winners", Array("int64", self.kind.rank, "C"), extents)
        flat = axes_of([Var("j", INT64) for _ in extents], extents)

        def clear(number: Var) -> None:
            unravel(lo, flat, number)
            lo.store(winners, [lo.operand(axis.index) for axis in flat], Const(-1, INT64))

        def claim(number: Var) -> None:
            keep, place, _ = self.point(number)
            lo.when(keep, lambda: self.update("maximum", winners, place, number))

        def put(number: Var) -> None:
            keep, place, value = self.point(number)

            def store() -> None:
                won = lo.compare("eq", lo.load(winners, *place), number)
                lo.when(won, lambda: lo.store(self.target, place, value))

            lo.when(keep, store)

        grid(lo, lo.product(extents), "clear", clear)
        grid(lo, self.points, "scatter claims", claim)
        grid(lo, self.points, "scatter", put)


class _InShared:
    """The kernel of a small target: each block fills copies of it in shared memory, and combines them into it."""

    def __init__(self, kernels: _Kernels, change: str) -> None:
        self.of, self.lo, self.change = kernels, kernels.lo, change
        dtype, value = kernels.kind.dtype, kernels.op.body.results[-1]
        self.counts = change == "add" and dtype in ("int64", "uint64") and value == Const(1, Scalar(dtype))
        self.dtype = COUNT.dtype if self.counts else dtype  # of the copies
        self.nothing = identity(change, self.dtype)
        self.room = SHARED_BYTES // itemsize(self.dtype)  # elements of all copies of a block

    def fits(self) -> Operand:
        """Is the target so small, and are the points so many, that this pays?"""
        lo, points = self.lo, self.of.points
        size = lo.product(self.of.extents())
        small = lo.compare("le", size, Const(self.room, INT64))
        many = lo.compare("ge", points, lo.multiply(size, Const(4, INT64)))
        both = lo.prim("and", small, many, type_=BOOL)
        if self.counts:
            both = lo.prim("and", both, lo.compare("lt", points, Const(COUNTED, INT64)), type_=BOOL)
        return both

    def emit(self) -> None:
        lo, op, axes = self.lo, self.of.op, self.of.axes
        self.extents = self.of.extents()
        self.size = lo.product(self.extents)
        words = Const(max(WORD // itemsize(self.dtype), 1), INT64)  # elements that share a word are set together
        self.whole = lo.multiply(lo.ceil_div(self.size, words), words)
        self.copies: Operand = ONE
        for several in (2, 4, COPIES):
            fits = lo.compare("le", lo.multiply(self.whole, Const(several, INT64)), Const(self.room, INT64))
            self.copies = lo.prim("select", fits, Const(several, INT64), self.copies)
        self.width = neighbours(self.of.found, op.body, axes[0].index) if len(axes) == 1 else 1
        wanted = lo.ceil_div(self.of.points, Const(THREADS * TOGETHER, INT64))
        self.blocks = lo.minimum(lo.maximum(wanted, ONE), Const(BLOCKS, INT64))
        grid_of_blocks(lo, self.blocks, "scatter shared", self._block)

    def _block(self, block: Var, thread: Var) -> None:
        """What a thread does: it clears its part of the copies, adds its points, combines its part of the target."""
        lo = self.lo
        self.own = lo.let("own", Array(self.dtype, 1, "C"), imp.NewArray((Const(self.room, INT64),), "shared"))
        step = Const(THREADS, INT64)
        every = lo.multiply(self.whole, self.copies)
        stride(lo, thread, every, step, 1, lambda element: lo.store(self.own, (element,), self.nothing))
        lo.emit(imp.Barrier("block"))
        self._add_points(block, thread, step)
        lo.emit(imp.Barrier("block"))
        stride(lo, thread, self.size, step, 1, self._combine)

    def _add_points(self, block: Var, thread: Var, step: Const) -> None:
        """Points that lie side by side together, then those behind the last such run."""
        lo, of, width = self.lo, self.of, Const(self.width, INT64)
        warp = lo.floor_div(thread, Const(WARP, INT64))
        start = lo.multiply(lo.prim("and", warp, lo.subtract(self.copies, ONE)), self.whole)

        def changed(given: Sequence[Operand]) -> None:
            keep, *place, value = given
            self._change(start, keep, place, value)

        def run(number: Operand) -> None:
            first = lo.multiply(number, width)
            places = [lo.add(first, Const(step, INT64)) for step in range(self.width)]
            visits = [partial(unravel, lo, of.axes, place) for place in places]
            at_points(lo, of.found, of.op.body, visits, changed)

        member, members = index_of(lo, block, thread), lo.multiply(self.blocks, step)
        runs = lo.floor_div(of.points, width)
        stride(lo, member, runs, members, static_cost(of.op.body) * self.width, run)
        if self.width > 1:
            behind = lo.add(lo.multiply(runs, width), member)
            lo.when(lo.compare("lt", behind, of.points), lambda: self._change(start, *of.point(behind)))

    def _change(self, start: Operand, keep: Operand, place: Sequence[Operand], value: Operand) -> None:
        """One point, in the copy that begins at `start`."""
        lo = self.lo

        def here() -> None:
            element: Operand = ZERO
            for index, extent in zip(place, self.extents, strict=True):
                element = lo.add(lo.multiply(element, extent), index)
            self.of.update(self.change, self.own, (lo.add(start, element),), Const(1, COUNT) if self.counts else value)

        lo.when(keep, here)

    def _combine(self, element: Operand) -> None:
        """An element of all copies into the target."""
        lo, name = self.lo, self.change
        place: list[Operand] = []
        rest = element
        for extent in self.extents[:0:-1]:
            rest, index = split32(lo, rest, extent)
            place.insert(0, index)
        total = lo.declare("acc", Scalar(self.dtype), self.nothing)
        copy = lo.index("copy")

        def one() -> None:
            part = lo.load(self.own, lo.add(lo.multiply(copy, self.whole), element))
            both = lo.prim(_together(name, self.dtype), lo.read(total), part, type_=Scalar(self.dtype))
            lo.write(total, both)

        lo.loop(copy, ZERO, self.copies, one, "vector")
        result: Operand = lo.read(total)
        if self.counts:
            result = lo.let("found", Scalar(self.of.kind.dtype), Cast(result))
        self.of.update("add" if name == "sub" else name, self.of.target, (rest, *place), result)


def _together(name: str, dtype: str) -> str:
    """The primitive that combines what two copies hold."""
    if dtype == "bool":
        return {"add": "or", "maximum": "or", "fmax": "or", "or": "or", "xor": "xor"}.get(name, "and")
    return "add" if name == "sub" else name


def identity(name: str, dtype: str) -> Const:
    """What an element is set to that has not been changed yet: combined with any other, it gives that one."""
    kind = Scalar(dtype)
    if dtype == "bool":
        return Const(name in ("mul", "and", "minimum", "fmin"), kind)
    if is_float(dtype):
        extreme = {"fmin": math.nan, "fmax": math.nan, "minimum": math.inf, "maximum": -math.inf, "mul": 1.0}
        return Const(extreme.get(name, -0.0), kind)
    bits = 8 * itemsize(dtype)
    least, greatest = (0, (1 << bits) - 1) if is_unsigned(dtype) else (-1 << bits - 1, (1 << bits - 1) - 1)
    all_ones = greatest if is_unsigned(dtype) else -1
    limits = {"minimum": greatest, "fmin": greatest, "maximum": least, "fmax": least, "and": all_ones, "mul": 1}
    return Const(limits.get(name, 0), kind)


def _change(op: Scatter, dtype: str) -> str | None:
    """The atomic that does what a combine does, whose points may come in any order; None if there is none."""
    names = primitives(op.combine)
    if names is not None:
        return names[0] if names[0] in ATOMICS and (not is_complex(dtype) or names == ("add",)) else None
    body = op.combine.body
    lets = body.statements
    subtracts = len(lets) == 1 and lets[0].op == Prim("sub", op.combine.params) and body.results == lets[0].outs
    return "sub" if subtracts and not is_complex(dtype) and dtype != "bool" else None
