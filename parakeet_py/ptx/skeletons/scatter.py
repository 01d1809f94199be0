"""Scatter on a GPU: a thread for each point, elements changed by atomics.

* A combine that is an addition, extremum or bit operation is one atomic, a product or difference a loop of compare and
  swap (`atomics`). A small target is first filled in shared memory, a copy for each block, which is combined into the
  target once; very small ones have several copies there, and warps take turns with them, so that fewer threads wait
  for each other's element. Points that lie side by side are loaded 16 bytes at a time. Points that are only counted are
  counted in 32 bits there: shared memory has no additions of 64.
* A combine that just takes the new value: of several points of one element the last one wins, as in NumPy. A first pass
  finds out which point that is, a second one stores.
* Any other combine is done in order, by one thread.
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
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.schedule.loop_order import static_cost, study
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
    """A scatter as GPU regions; inside of others, and where it may fail, as on the CPU."""
    found = study(op)
    axes = axes_of(op.indices, lo.operands(op.extents))
    kind = array_type(op.target)
    change = _change(op, kind.dtype)
    takes_new = not op.combine.body.statements and op.combine.body.results[0] is op.combine.params[1]
    plain = not (found.has_check or found.has_opaque or found.has_array or found.visible_stores())
    if lo.in_region or not axes or not plain or not (change or takes_new) or lo.hidden is not None:
        on_cpu.lower_scatter(lo, outs, op)
        return
    target = lo.array(op.target)
    counts = (
        change == "add" and kind.dtype in ("int64", "uint64") and op.body.results[-1] == Const(1, Scalar(kind.dtype))
    )
    own_dtype = COUNT.dtype if counts else kind.dtype  # of copies in shared memory
    points = lo.product(axis.extent for axis in axes)
    cost = static_cost(op.body)

    def body(number: Operand) -> tuple[Operand, list[Operand], Operand]:
        unravel(lo, axes, number)
        keep, *place, value = lo.lower_block(op.body)
        return keep, place, value

    def update(name: str, array: Var, place: Sequence[Operand], value: Operand) -> None:
        lo.let("old", value.type, imp.Atomic(name, array, tuple(place), value))

    def to_target() -> None:
        assert change is not None

        def point(number: Var) -> None:
            keep, place, value = body(number)
            lo.when(keep, lambda: update(change, target, place, value))

        grid(lo, points, "scatter", point)

    def through_shared(name: str) -> None:
        extents = [lo.extent(target, axis) for axis in range(kind.rank)]
        size = lo.product(extents)
        words = Const(max(WORD // itemsize(own_dtype), 1), INT64)  # elements that share a word are set together
        count = SHARED_BYTES // itemsize(own_dtype)
        whole = lo.multiply(lo.ceil_div(size, words), words)
        copies: Operand = ONE
        for several in (2, 4, COPIES):
            fits = lo.compare("le", lo.multiply(whole, Const(several, INT64)), Const(count, INT64))
            copies = lo.prim("select", fits, Const(several, INT64), copies)
        width = neighbours(found, op.body, axes[0].index) if len(axes) == 1 else 1
        wanted = lo.ceil_div(points, Const(THREADS * TOGETHER, INT64))
        blocks = lo.minimum(lo.maximum(wanted, ONE), Const(BLOCKS, INT64))
        nothing = identity(name, own_dtype)

        def some(block: Var, thread: Var) -> None:
            own = lo.let("own", Array(own_dtype, 1, "C"), imp.NewArray((Const(count, INT64),), "shared"))
            step = Const(THREADS, INT64)
            every = lo.multiply(whole, copies)
            stride(lo, thread, every, step, 1, lambda element: lo.store(own, (element,), nothing))
            lo.emit(imp.Barrier("block"))
            warp = lo.floor_div(thread, Const(WARP, INT64))
            start = lo.multiply(lo.prim("and", warp, lo.subtract(copies, ONE)), whole)

            def change_own(keep: Operand, place: Sequence[Operand], value: Operand) -> None:
                def here() -> None:
                    element: Operand = ZERO
                    for index, extent in zip(place, extents, strict=True):
                        element = lo.add(lo.multiply(element, extent), index)
                    update(name, own, (lo.add(start, element),), Const(1, COUNT) if counts else value)

                lo.when(keep, here)

            def run(number: Operand) -> None:
                first = lo.multiply(number, Const(width, INT64))
                places = [lo.add(first, Const(step, INT64)) for step in range(width)]
                visits = [partial(unravel, lo, axes, place) for place in places]
                at_points(lo, found, op.body, visits, lambda given: change_own(given[0], given[1:-1], given[-1]))

            member, members = index_of(lo, block, thread), lo.multiply(blocks, step)
            runs = lo.floor_div(points, Const(width, INT64))
            stride(lo, member, runs, members, cost * width, run)
            if width > 1:
                behind = lo.add(lo.multiply(runs, Const(width, INT64)), member)
                lo.when(lo.compare("lt", behind, points), lambda: change_own(*body(behind)))
            lo.emit(imp.Barrier("block"))

            def leave(element: Operand) -> None:
                place: list[Operand] = []
                rest = element
                for extent in extents[:0:-1]:
                    rest, index = split32(lo, rest, extent)
                    place.insert(0, index)
                total = lo.declare("acc", Scalar(own_dtype), nothing)
                copy = lo.index("copy")

                def one() -> None:
                    part = lo.load(own, lo.add(lo.multiply(copy, whole), element))
                    both = lo.prim(_together(name, own_dtype), lo.read(total), part, type_=Scalar(own_dtype))
                    lo.write(total, both)

                lo.loop(copy, ZERO, copies, one, "vector")
                result: Operand = lo.read(total)
                if counts:
                    result = lo.let("found", Scalar(kind.dtype), Cast(result))
                update("add" if name == "sub" else name, target, (rest, *place), result)

            stride(lo, thread, size, step, 1, leave)

        grid_of_blocks(lo, blocks, "scatter shared", some)

    def last_wins() -> None:
        extents = [lo.extent(target, axis) for axis in range(kind.rank)]
        winners = lo.new_array("winners", Array("int64", kind.rank, "C"), extents)
        flat = [axis for axis in axes_of([Var("j", INT64) for _ in extents], extents)]

        def clear(number: Var) -> None:
            unravel(lo, flat, number)
            lo.store(winners, [lo.operand(axis.index) for axis in flat], Const(-1, INT64))

        grid(lo, lo.product(extents), "clear", clear)

        def claim(number: Var) -> None:
            keep, place, _ = body(number)
            lo.when(keep, lambda: update("maximum", winners, place, number))

        grid(lo, points, "scatter claims", claim)

        def put(number: Var) -> None:
            keep, place, value = body(number)

            def store() -> None:
                won = lo.compare("eq", lo.load(winners, *place), number)
                lo.when(won, lambda: lo.store(target, place, value))

            lo.when(keep, store)

        grid(lo, points, "scatter", put)

    if takes_new:
        last_wins()
    elif change is not None and not is_complex(kind.dtype):
        size = lo.product(lo.extent(target, axis) for axis in range(kind.rank))
        small = lo.compare("le", size, Const(SHARED_BYTES // itemsize(own_dtype), INT64))
        many = lo.compare("ge", points, lo.multiply(size, Const(4, INT64)))
        both = lo.prim("and", small, many, type_=BOOL)
        if counts:
            both = lo.prim("and", both, lo.compare("lt", points, Const(COUNTED, INT64)), type_=BOOL)
        lo.when(both, lambda: through_shared(change), to_target)
    else:
        to_target()


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
