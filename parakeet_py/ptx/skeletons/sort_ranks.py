"""Sorting on a GPU, in a tile: the digits of keys, and the ranks of elements by a digit.

A key is the number without sign that has the order of its element: bits of floats are turned so that they grow with the
value, zeros of both signs are one key, and every NaN is the greatest.

The lanes of a warp find out which of them have the same digit (`Peers`); the first of these adds them to the warp's
counts, so every element learns how many came before it in its warp. Counts of warps and of digits are summed up then, a
thread for each digit.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import BOOL, INT64, Array, Scalar, is_float, is_unsigned, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import combination
from parakeet_py.imp.writer import ZERO
from parakeet_py.ptx.kernels.regions import THREADS, WARP
from parakeet_py.ptx.skeletons.scan_tiles import WARPS, scan_warp
from parakeet_py.typed_ir.ir import Block, Cast, Const, Lambda, Let, Operand, Prim, Var, scalar_type

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
COUNT = Scalar("uint32")

assert DIGITS == THREADS  # a thread for each digit


class Keys:
    """The digits of elements of a dtype."""

    def __init__(self, lo: Lowering, dtype: str) -> None:
        self.lo, self.dtype = lo, dtype
        self.size = itemsize(dtype)
        self.word = Scalar(f"uint{8 * self.size}")
        self.top = Const(1 << 8 * self.size - 1, self.word)

    @property
    def passes(self) -> int:
        return 8 * self.size // DIGIT_BITS

    def of(self, value: Operand) -> Operand:
        """The key of an element."""
        lo, word = self.lo, self.word
        if not is_float(self.dtype):
            plain = lo.let("key", word, Cast(value)) if value.type != word else value
            unsigned = self.dtype == "bool" or is_unsigned(self.dtype)
            return plain if unsigned else lo.prim("xor", plain, self.top, type_=word)
        signed = Scalar(f"int{8 * self.size}")
        bits = lo.prim("bits", value, type_=signed)
        plain = lo.let("key", word, Cast(bits))
        negative = lo.compare("lt", bits, Const(0, signed))
        turned = [lo.prim("not", plain, type_=word), lo.prim("xor", plain, self.top, type_=word)]
        key = lo.prim("select", negative, *turned, type_=word)
        zero = lo.compare("eq", value, Const(0.0, Scalar(self.dtype)))
        key = lo.prim("select", zero, self.top, key, type_=word)
        greatest = Const((1 << 8 * self.size) - 1, word)
        return lo.prim("select", lo.prim("isnan", value, type_=BOOL), greatest, key, type_=word)

    def digit(self, key: Operand, shift: Operand) -> Operand:
        """A digit of a key, from so many bits on, as an int64."""
        lo, word = self.lo, self.word
        if isinstance(shift, Const):
            by: Operand = Const(shift.value, word)
        else:
            by = lo.let("by", word, Cast(shift))
        rest = lo.prim("shr", key, by, type_=word)
        return lo.let("digit", INT64, Cast(lo.prim("and", rest, Const(DIGITS - 1, word), type_=word)))


class Ranks:
    """The threads of a block, who rank the elements of a tile by a digit.

    Attributes
    ----------
    starts : in shared memory, how many elements of the tile have a lower digit than each
    """

    def __init__(self, lo: Lowering, thread: Operand, rounds: int) -> None:
        self.lo, self.thread = lo, thread
        self.lane = lo.let("lane", INT64, imp.Lane("lane"))
        self.warp = lo.floor_div(thread, Const(WARP, INT64))
        self.counts = shared(lo, "counts", "uint32", WARPS * DIGITS)
        self.starts = shared(lo, "starts", "uint32", DIGITS)
        self.sums = shared(lo, "sums", "uint32", WARPS)
        first = lo.add(lo.multiply(self.warp, Const(WARP * rounds, INT64)), self.lane)
        self.elements = [lo.add(first, Const(number * WARP, INT64)) for number in range(rounds)]

    def rank(self, digits: Sequence[Operand]) -> tuple[list[Operand], Operand]:
        """Where in the tile each of this thread's elements comes to be, and how many of the tile have the digit that
        this thread has the number of."""
        lo = self.lo
        for warp in range(WARPS):
            lo.store(self.counts, (lo.add(self.thread, Const(warp * DIGITS, INT64)),), Const(0, COUNT))
        lo.emit(imp.Barrier("block"))
        own = lo.multiply(self.warp, Const(DIGITS, INT64))
        slots = [lo.add(own, digit) for digit in digits]
        ranks = [self._next(digit, slot) for digit, slot in zip(digits, slots, strict=True)]
        lo.emit(imp.Barrier("block"))
        total: Operand = Const(0, COUNT)
        for warp in range(WARPS):
            slot = lo.add(self.thread, Const(warp * DIGITS, INT64))
            here = lo.load(self.counts, slot)
            lo.store(self.counts, (slot,), total)
            total = lo.prim("add", total, here, type_=COUNT)
        lo.store(self.starts, (self.thread,), exclusive(lo, total, self.lane, self.warp, self.sums))
        lo.emit(imp.Barrier("block"))
        places: list[Operand] = []
        for digit, slot, rank in zip(digits, slots, ranks, strict=True):
            before = lo.prim("add", lo.load(self.starts, digit), lo.load(self.counts, slot), type_=COUNT)
            places.append(lo.let("place", INT64, Cast(lo.prim("add", before, rank, type_=COUNT))))
        return places, total

    def _next(self, digit: Operand, slot: Operand) -> Operand:
        """How many elements of the warp with this digit have come before; counts this one."""
        lo = self.lo
        peers = lo.let("peers", INT64, imp.Peers(digit))
        before = lo.prim("and", peers, Const(imp.PEERS - 1, INT64))
        known = lo.load(self.counts, slot)
        lo.emit(imp.Barrier("warp"))

        def count() -> None:
            found = lo.let("found", COUNT, Cast(lo.floor_div(peers, Const(imp.PEERS, INT64))))
            lo.store(self.counts, (slot,), lo.prim("add", known, found, type_=COUNT))

        lo.when(lo.compare("eq", before, ZERO), count)
        lo.emit(imp.Barrier("warp"))
        return lo.prim("add", known, lo.let("before", COUNT, Cast(before)), type_=COUNT)


def shared(lo: Lowering, name: str, dtype: str, count: int) -> Var:
    return lo.let(name, Array(dtype, 1, "C"), imp.NewArray((Const(count, INT64),), "shared"))


def exclusive(lo: Lowering, value: Operand, lane: Var, warp: Operand, sums: Var) -> Operand:
    """The sum of the values of all threads of the block before this one; `sums` is shared memory, a word a warp."""
    kind = scalar_type(value)
    old, new, both = (Var(name, kind) for name in ("old", "new", "sum"))
    add = Lambda((old, new), Block((Let((both,), Prim("add", (old, new)), lo.pos),), (both,)))
    cell = lo.declare("sum", kind, value)
    scan_warp(lo, combination(lo, add, (Const(0, kind),)), [cell], lane)
    through = lo.read(cell)
    lo.when(lo.compare("eq", lane, Const(WARP - 1, INT64)), lambda: lo.store(sums, (warp,), through))
    lo.emit(imp.Barrier("block"))
    before: Operand = lo.prim("sub", through, value, type_=kind)
    for number in range(WARPS - 1):
        here = lo.load(sums, Const(number, INT64))
        earlier = lo.compare("gt", warp, Const(number, INT64))
        counted = lo.prim("select", earlier, here, Const(0, kind), type_=kind)
        before = lo.prim("add", before, counted, type_=kind)
    return before
