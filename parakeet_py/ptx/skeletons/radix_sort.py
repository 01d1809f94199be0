"""Sorting on a GPU: by radix, eight bits at a time from the lowest, which is stable whatever was asked for.

Elements travel as they are, so that equal keys can still be distinguished. With `argsort`, places travel along. How a
block orders a tile by one digit: see `sort_ranks`.

**Short lines**: a block brings one or several into shared memory and makes all passes there. Of several lines, a last
pass by their numbers puts each one's elements together again.

**Long lines**: one pass through memory for each digit (Adinets and Merrill, "Onesweep: A Faster Least Significant Digit
Radix Sort for GPUs", 2022). How often each digit occurs in each place of the keys is counted beforehand; what all
elements have alike, as the upper digits of small integers, takes no pass, for which the host waits once. A block draws
a tile by ticket, publishes its counts, and looks back for those of the tiles before it, a thread for each digit; who
knows all before it publishes that. Counts are integers, so it does not matter how far a thread has to look. A word
holds a count and what it stands for, and of which pass it is, so that nothing is cleared between passes, and relaxed
loads and stores do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from parakeet_py.base import routines
from parakeet_py.base.types import BOOL, INT64, Array, Scalar, is_complex, is_float, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.combining import stride
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid, grid_of_blocks, split32
from parakeet_py.ptx.skeletons.scan_tiles import WARPS
from parakeet_py.ptx.skeletons.sort_ranks import COUNT, DIGIT_BITS, DIGITS, Keys, Ranks, exclusive, shared
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Routine, Var

LIGHT_BYTES = 4  # of an element up to which threads have many of them in a pass through memory
LIGHT, HEAVY = 16, 8  # elements of a thread in such a pass
SHORT = 4  # elements of a thread that sorts short lines
COUNTING_BLOCKS = 528  # blocks that count digits, at least, where there is enough to do
COUNTED = 1 << 12  # elements that are worth a block which counts them
TOTAL, THROUGH = 1, 2  # what a published count stands for: its tile; all tiles up to it
WORD_SHIFT = 8  # of a count in a published word


def is_sorted_here(op: Routine) -> bool:
    """Whether a routine is a sort that is done on the device."""
    if routines.family(op.name) not in ("sort", "argsort"):
        return False
    return not is_complex(array_type((*op.ins, *op.outs)[0]).dtype)


def lower_sort(lo: Lowering, outs: tuple[Var, ...], op: Routine) -> None:
    """Sort the lines of a matrix, or places by them, as GPU regions."""
    lo.need_host()
    if lo.hidden is not None and not all(map(lo.hidden, op.outs)):
        return
    if op.ins:
        _Sort(lo, lo.array(op.ins[0]), lo.array(op.outs[0])).run()
    else:
        _Sort(lo, lo.array(op.outs[0]), None).run()


class _Sort:
    """One sort: of the lines of `keys`, or of `places` by them."""

    def __init__(self, lo: Lowering, keys: Var, places: Var | None) -> None:
        self.lo, self.keys, self.places = lo, keys, places
        self.dtype = array_type(keys).dtype
        self.dtypes = [self.dtype] if places is None else [self.dtype, "int64"]
        self.rounds = LIGHT if sum(map(itemsize, self.dtypes)) <= LIGHT_BYTES else HEAVY
        self.tile = THREADS * self.rounds  # of a pass through memory
        self.block = THREADS * SHORT  # elements of short lines that a block takes
        self.passes = Keys(lo, self.dtype).passes
        self.lines, self.length = lo.extent(keys, 0), lo.extent(keys, 1)

    def run(self) -> None:
        short: Operand = self.lo.compare("le", self.length, Const(self.block, INT64))
        if isinstance(self.length, Const):
            short = Const(self.length.whole <= self.block, BOOL)
        self.lo.when(short, self._by_blocks, self._by_passes)

    # ---- short lines -------------------------------------------------------------------------------------------------

    def _by_blocks(self) -> None:
        """A block for as many lines as it holds."""
        lo, length = self.lo, self.length
        fit = lo.floor_div(Const(self.block, INT64), lo.maximum(length, ONE))
        most = lo.minimum(fit, Const(DIGITS, INT64))

        def some(block: Var, thread: Var) -> None:
            keys, ranks = Keys(lo, self.dtype), Ranks(lo, thread, SHORT)
            slots = [shared(lo, "slots", dtype, self.block) for dtype in (*self.dtypes, "uint8")]
            first = lo.multiply(block, most)
            lines = lo.minimum(most, lo.subtract(self.lines, first))
            count = lo.multiply(lines, length)

            def each(visit: Callable[[Operand, Operand, Operand], None]) -> None:
                """Visit the elements of the block: their numbers, lines in the block, and places in these."""
                number = lo.index("k")

                def one() -> None:
                    element = lo.add(lo.multiply(number, Const(THREADS, INT64)), thread)

                    def inside() -> None:
                        line, place = split32(lo, element, length)
                        visit(element, line, place)

                    lo.when(lo.compare("lt", element, count), inside)

                lo.loop(number, ZERO, Const(SHORT, INT64), one)

            def bring(element: Operand, line: Operand, place: Operand) -> None:
                row = lo.add(first, line)
                own = lo.let("line", Scalar("uint8"), Cast(line))
                lo.store_outs(slots, (element,), [*self._element(row, place), own])

            def leave(element: Operand, line: Operand, place: Operand) -> None:
                result = self.keys if self.places is None else self.places
                kept = slots[0 if self.places is None else 1]
                lo.store(result, (lo.add(first, line), place), lo.load(kept, element))

            def rearrange(digit_of: Callable[[Sequence[Operand]], Operand]) -> None:
                """One pass. What is no element has the last digit, and stays behind all others."""
                inside = [lo.compare("lt", element, count) for element in ranks.elements]
                held = [self._unset((*self.dtypes, "uint8")) for _ in ranks.elements]
                digits = [lo.declare("digit", INT64, Const(DIGITS - 1, INT64)) for _ in ranks.elements]

                def take(element: Operand, cells: Sequence[imp.Cell], digit: imp.Cell) -> None:
                    values = [lo.load(array, element) for array in slots]
                    lo.write_all([*zip(cells, values, strict=True), (digit, digit_of(values))])

                def put(place: Operand, cells: Sequence[imp.Cell]) -> None:
                    lo.store_outs(slots, (place,), [lo.read(cell) for cell in cells])

                for known, element, cells, digit in zip(inside, ranks.elements, held, digits, strict=True):
                    lo.when(known, partial(take, element, cells, digit))
                places, _ = ranks.rank([lo.read(digit) for digit in digits])
                for known, place, cells in zip(inside, places, held, strict=True):
                    lo.when(known, partial(put, place, cells))
                lo.emit(imp.Barrier("block"))

            each(bring)
            lo.emit(imp.Barrier("block"))
            shift = lo.index("shift")

            def by_digit() -> None:
                rearrange(lambda values: keys.digit(keys.of(values[0]), shift))

            lo.loop(shift, ZERO, Const(8 * keys.size, INT64), by_digit, "vector", Const(DIGIT_BITS, INT64))
            by_line = lambda: rearrange(lambda values: lo.let("line", INT64, Cast(values[-1])))  # noqa: E731
            lo.when(lo.compare("gt", lines, ONE), by_line)
            each(leave)

        grid_of_blocks(lo, lo.ceil_div(self.lines, lo.maximum(most, ONE)), "sort lines", some)

    def _unset(self, dtypes: Sequence[str]) -> list[imp.Cell]:
        """Cells for the element of a thread, which may have none."""
        zeros = [Const(False if dtype == "bool" else 0.0 if is_float(dtype) else 0, Scalar(dtype)) for dtype in dtypes]
        return [self.lo.declare("value", zero.type, zero) for zero in zeros]

    def _element(self, line: Operand, place: Operand) -> list[Operand]:
        """An element as it travels."""
        lo = self.lo
        if self.places is None:
            return [lo.load(self.keys, line, place)]
        there = lo.load(self.places, line, place)
        return [lo.load(self.keys, line, there), there]

    # ---- long lines --------------------------------------------------------------------------------------------------

    def _by_passes(self) -> None:
        lo = self.lo
        tiles = lo.ceil_div(self.length, Const(self.tile, INT64))
        per_line = Const(self.passes * DIGITS, INT64)
        counts = lo.multiply(self.lines, per_line)
        blocks = lo.multiply(self.lines, tiles)
        first_word = lo.add(Const(self.passes, INT64), counts)
        end = lo.add(first_word, lo.multiply(blocks, Const(DIGITS, INT64)))
        room = lo.add(end, Const(1 + self.passes, INT64))
        # tickets of all passes; counts of digits by line and pass; what tiles publish; which passes change nothing, as
        # bits, and of how many lines each of them
        state = lo.new_array("state", Array("int64", 1, "C"), (room,))
        grid(lo, room, "clear", lambda number: lo.store(state, (number,), ZERO))
        self._count(state)
        self._add_up(state, end)
        shape = self.lines, self.length
        matrix = [Array(dtype, 2, "C") for dtype in self.dtypes]
        if self.places is None:
            given = [self.keys]
        else:
            gathered, places = lo.new_array("keys", matrix[0], shape), self.places
            given = [gathered, places]

            def gather(line: Operand, place: Operand) -> None:
                lo.store(gathered, (line, place), self._element(line, place)[0])

            self._points("sort gather", gather)
        spare = [lo.new_array("spare", kind, shape) for kind in matrix]
        idle = lo.load(state, end)
        away = lo.declare("away", BOOL, Const(False, BOOL))  # whether what is sorted so far is in the spare arrays
        number = lo.index("pass")

        def back() -> None:
            self._pass(state, first_word, tiles, number, spare, given)
            lo.write(away, Const(False, BOOL))

        def forth() -> None:
            self._pass(state, first_word, tiles, number, given, spare)
            lo.write(away, Const(True, BOOL))

        def one() -> None:
            bit = lo.prim("and", lo.prim("shr", idle, number), ONE)
            lo.when(lo.compare("eq", bit, ZERO), lambda: lo.when(lo.read(away), back, forth))

        lo.loop(number, ZERO, Const(self.passes, INT64), one)
        copy = lambda *at: lo.store(given[-1], at, lo.load(spare[-1], *at))  # noqa: E731
        lo.when(lo.read(away), lambda: self._points("copy", copy))

    def _points(self, name: str, visit: Callable[[Operand, Operand], None]) -> None:
        """A thread for each element."""
        lo = self.lo
        chunks = lo.ceil_div(self.length, Const(THREADS, INT64))

        def some(block: Var, thread: Var) -> None:
            line, chunk = split32(lo, block, chunks)
            place = lo.add(lo.multiply(chunk, Const(THREADS, INT64)), thread)
            lo.when(lo.compare("lt", place, self.length), lambda: visit(line, place))

        grid_of_blocks(lo, lo.multiply(self.lines, chunks), name, some)

    def _count(self, state: Var) -> None:
        """How often each digit occurs in each place of the keys of a line."""
        lo = self.lo
        wanted = lo.ceil_div(Const(COUNTING_BLOCKS, INT64), lo.maximum(self.lines, ONE))
        worth = lo.ceil_div(self.length, Const(COUNTED, INT64))
        blocks = lo.maximum(lo.minimum(wanted, worth), ONE)
        share = lo.ceil_div(self.length, blocks)

        def some(block: Var, thread: Var) -> None:
            keys = Keys(lo, self.dtype)
            line, part = split32(lo, block, blocks)
            own = shared(lo, "counts", "uint32", self.passes * DIGITS)
            slots = [lo.add(thread, Const(number * DIGITS, INT64)) for number in range(self.passes)]
            for slot in slots:
                lo.store(own, (slot,), Const(0, COUNT))
            lo.emit(imp.Barrier("block"))
            first = lo.multiply(part, share)
            stop = lo.minimum(lo.add(first, share), self.length)

            def one(place: Operand) -> None:
                key = keys.of(lo.load(self.keys, line, place))
                for number in range(self.passes):
                    digit = keys.digit(key, Const(number * DIGIT_BITS, INT64))
                    slot = lo.add(digit, Const(number * DIGITS, INT64))
                    lo.let("old", COUNT, imp.Atomic("add", own, (slot,), Const(1, COUNT)))

            stride(lo, lo.add(first, thread), stop, Const(THREADS, INT64), 1, one)
            lo.emit(imp.Barrier("block"))
            base = lo.add(Const(self.passes, INT64), lo.multiply(line, Const(self.passes * DIGITS, INT64)))
            for slot in slots:
                found = lo.let("found", INT64, Cast(lo.load(own, slot)))
                lo.let("old", INT64, imp.Atomic("add", state, (lo.add(base, slot),), found))

        grid_of_blocks(lo, lo.multiply(self.lines, blocks), "sort counts", some)

    def _add_up(self, state: Var, idle: Operand) -> None:
        """Counts of digits become those of all lower ones: where the elements of a digit start in the line. Where all
        elements of all lines have one digit, the pass is noted in the word `idle` of the state."""
        lo = self.lo

        def same(number: Operand) -> None:
            place = lo.add(idle, lo.add(ONE, number))
            before = lo.let("lines", INT64, imp.Atomic("add", state, (place,), ONE))
            bit = lo.prim("shl", ONE, number)
            last = lo.compare("eq", before, lo.subtract(self.lines, ONE))

            def note() -> None:
                lo.let("old", INT64, imp.Atomic("or", state, (idle,), bit))

            lo.when(last, note)

        def some(block: Var, thread: Var) -> None:
            lane = lo.let("lane", INT64, imp.Lane("lane"))
            sums = shared(lo, "sums", "int64", WARPS)
            slot = lo.add(Const(self.passes, INT64), lo.add(lo.multiply(block, Const(DIGITS, INT64)), thread))
            warp = lo.floor_div(thread, Const(WARP, INT64))
            count = lo.load(state, slot)
            _, number = split32(lo, block, Const(self.passes, INT64))
            lo.when(lo.compare("eq", count, self.length), lambda: same(number))
            lo.store(state, (slot,), exclusive(lo, count, lane, warp, sums))

        grid_of_blocks(lo, lo.multiply(self.lines, Const(self.passes, INT64)), "sort starts", some)

    def _pass(
        self, state: Var, first_word: Operand, tiles: Operand, number: Operand, source: list[Var], target: list[Var]
    ) -> None:
        """Order the lines of some arrays by one digit, into others."""
        lo = self.lo
        shift = lo.multiply(number, Const(DIGIT_BITS, INT64))
        marks = [lo.add(lo.multiply(number, Const(THROUGH, INT64)), Const(what, INT64)) for what in (TOTAL, THROUGH)]

        def tile(block: Var, thread: Var) -> None:
            keys = Keys(lo, self.dtype)
            drawn = shared(lo, "ticket", "int64", 1)

            def draw() -> None:
                lo.store(drawn, (ZERO,), lo.let("ticket", INT64, imp.Atomic("add", state, (number,), ONE)))

            lo.when(lo.compare("eq", thread, ZERO), draw)
            lo.emit(imp.Barrier("block"))
            ticket = lo.load(drawn, ZERO)
            line, own = split32(lo, ticket, tiles)
            start = lo.multiply(own, Const(self.tile, INT64))
            ranks = Ranks(lo, thread, self.rounds)
            slots = [shared(lo, "slots", dtype, self.tile) for dtype in self.dtypes]
            offsets = shared(lo, "offsets", "int64", DIGITS)
            cells = [self._unset(self.dtypes) for _ in ranks.elements]
            digits = [lo.declare("digit", INT64, Const(DIGITS - 1, INT64)) for _ in ranks.elements]

            def bring(place: Operand, held: Sequence[imp.Cell], digit: imp.Cell) -> None:
                values = [lo.load(array, line, place) for array in source]
                lo.write_all([*zip(held, values, strict=True), (digit, keys.digit(keys.of(values[0]), shift))])

            for element, held, digit in zip(ranks.elements, cells, digits, strict=True):
                place = lo.add(start, element)
                lo.when(lo.compare("lt", place, self.length), partial(bring, place, held, digit))
            places, total = ranks.rank([lo.read(digit) for digit in digits])
            before = self._look_back(state, first_word, ticket, own, thread, total, marks)
            counts = lo.add(lo.multiply(line, Const(self.passes, INT64)), number)
            slot = lo.add(lo.multiply(counts, Const(DIGITS, INT64)), thread)
            lower = lo.load(state, lo.add(Const(self.passes, INT64), slot))
            in_tile = lo.let("start", INT64, Cast(lo.load(ranks.starts, thread)))
            lo.store(offsets, (thread,), lo.subtract(lo.add(lower, before), in_tile))
            for place, held in zip(places, cells, strict=True):
                lo.store_outs(slots, (place,), [lo.read(cell) for cell in held])
            lo.emit(imp.Barrier("block"))

            def put(element: Operand) -> None:
                values = [lo.load(array, element) for array in slots]
                digit = keys.digit(keys.of(values[0]), shift)
                lo.store_outs(target, (line, lo.add(lo.load(offsets, digit), element)), values)

            for number_ in range(self.rounds):
                element = lo.add(thread, Const(number_ * THREADS, INT64))
                lo.when(lo.compare("lt", lo.add(start, element), self.length), partial(put, element))

        grid_of_blocks(lo, lo.multiply(self.lines, tiles), "sort pass", tile)

    def _look_back(
        self,
        state: Var,
        first_word: Operand,
        ticket: Operand,
        own: Operand,
        thread: Operand,
        total: Operand,
        marks: Sequence[Operand],
    ) -> Operand:
        """How many elements of the line's earlier tiles have the digit of this thread; publishes what it knows."""
        lo = self.lo
        here = lo.let("total", INT64, Cast(total))

        def word_of(tile: Operand) -> Operand:
            return lo.add(first_word, lo.add(lo.multiply(tile, Const(DIGITS, INT64)), thread))

        def publish(count: Operand, mark: Operand) -> None:
            word = lo.add(lo.multiply(count, Const(1 << WORD_SHIFT, INT64)), mark)
            lo.let("done", INT64, imp.Atomic("relaxed_store", state, (word_of(ticket),), word))

        before = lo.declare("before", INT64, ZERO)

        def look() -> None:
            publish(here, marks[0])
            left = lo.declare("left", INT64, own)  # tiles that are not counted yet
            first = lo.subtract(ticket, own)
            lo.push()
            going = lo.compare("gt", lo.read(left), ZERO)
            head = lo.pop()
            lo.push()
            at = lo.subtract(lo.read(left), ONE)
            word = lo.let("word", INT64, imp.Atomic("relaxed_load", state, (word_of(lo.add(first, at)),), ZERO))
            mark = lo.prim("and", word, Const((1 << WORD_SHIFT) - 1, INT64))
            count = lo.prim("shr", word, Const(WORD_SHIFT, INT64))
            is_there = lo.compare("ge", mark, marks[0])
            is_all = lo.compare("ge", mark, marks[1])
            more = lo.prim("select", is_there, count, ZERO)
            lo.write(before, lo.add(lo.read(before), more))
            rest = lo.prim("select", is_there, at, lo.read(left))
            lo.write(left, lo.prim("select", is_all, ZERO, rest))
            lo.emit(imp.While(head, going, lo.pop()))

        lo.when(lo.compare("gt", own, ZERO), look)
        found = lo.read(before)
        publish(lo.add(found, here), marks[1])
        return found
