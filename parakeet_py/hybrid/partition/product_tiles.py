"""Products of matrices in tiles: each member has rows and columns of the result, and is brought these of the operands.

Cut into rows, a product needs the whole right operand everywhere; cut into columns, the whole left one. If members
stand side by side in columns, one above the other in each, the sum of what all need is smaller: for n devices about
2 sqrt(n) operands instead of n + 1. Tiles are as large as their members are fast: a column is as wide as the shares of
those in it are together, and each of them is as high as its own share of that (Beaumont, Boudet, Rastello and Robert,
"Matrix multiplication on heterogeneous platforms", IEEE Trans. Parallel Distrib. Syst. 12(10), 2001). Members stay in
their order, the CPU first, so which of them share a column is found by going through all places where one can end.

Of rows, columns and tiles the one is chosen that moves the fewest bytes, if it takes hardly longer than the others.
That stays for all products of the same extents in a call, so that blocks stay where they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.execute.team_call import TeamCall
from parakeet_py.hybrid.partition.division import Bounds, Division
from parakeet_py.hybrid.plan.part_cost import Cost, device_speed
from parakeet_py.hybrid.plan.placement_cost import beginning, missing
from parakeet_py.hybrid.residency.blocks import HOST
from parakeet_py.typed_ir.ir import Matmul, Var

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.team import Range
    from parakeet_py.hybrid.partition.regions import Region

NEARLY = 1.02  # times that differ by less are alike


class Tile(NamedTuple):
    """The rows and columns of a product that a member has."""

    who: int
    rows: Bounds
    columns: Bounds


class Cutting(NamedTuple):
    """How products of some extents are cut in a call."""

    division: int  # of the region's; -1: tiles
    ranges: tuple[Range, ...]
    across: tuple[Bounds, ...]


def product_parts(call: TeamCall, region: Region, values: dict[Var, Any]) -> Parts | None:
    """The parts of a product of two matrices that move the fewest bytes; None if it is none, or no member has any."""
    if region.tiled is None:
        return None
    assert isinstance(region.op, Matmul)
    shapes = *values[region.op.left].shape, values[region.op.right].shape[1]
    known: Cutting | None = call.products.get(shapes)
    if known is not None:
        division = region.tiled if known.division < 0 else region.divisions[known.division]
        return Parts(call, region, division, values, known.ranges, known.across)
    found = _Product(call, region, region.tiled, values, shapes).best()
    if found is None:
        return None
    call.products[shapes], parts = found
    return parts


class _Product:
    """One product in one call.

    Attributes
    ----------
    computing : what an element costs each member, whatever has to be brought for it
    """

    def __init__(
        self, call: TeamCall, region: Region, tiled: Division, values: dict[Var, Any], shapes: tuple[int, int, int]
    ) -> None:
        self.call, self.region, self.tiled, self.values = call, region, tiled, values
        self.rows, self.inner, self.columns = shapes
        self.steady = call.steady(tiled)
        team = call.team
        self.computing = {who: self._computing(who) for who in range(0 if team.cpu else 1, len(team.devices) + 1)}

    def best(self) -> tuple[Cutting, Parts] | None:
        """Of the ways that take the least time, or nearly, the one that moves the fewest bytes."""
        call, found = self.call, []
        for number, division in enumerate(self.region.divisions):
            ranges = call.ranges(division, self.values, remember=False)
            if ranges:
                parts = Parts(call, self.region, division, self.values, ranges)
                found.append((Cutting(number, ranges, ()), parts))
        tiles = self.tiles() if found and len(call.team.devices) > 1 else ()
        if len(tiles) > 2:  # two stand above or beside each other
            ranges = tuple((tile.who, *tile.rows) for tile in tiles)
            across = tuple(tile.columns for tile in tiles)
            parts = Parts(call, self.region, self.tiled, self.values, ranges, across)
            found.append((Cutting(-1, ranges, across), parts))
        if not found:
            return None
        if call.team.split is None:
            seconds = [self._seconds(parts) for _, parts in found]
            found = [one for one, taken in zip(found, seconds, strict=True) if taken <= NEARLY * min(seconds)]
        return min(found, key=lambda one: sum(self._moved(one[1], number) for number in range(len(one[1].ranges))))

    def tiles(self) -> tuple[Tile, ...]:
        """Tiles as large as computing them takes, then as computing and bringing what these need takes."""
        team, points = self.call.team, self.rows * self.columns
        costs = [*self.computing.values()]
        for last in (team.split is not None, True):
            areas = team.ranges(points, partial(tuple[Cost, ...], costs))
            tiles = arranged([(who, (hi - lo) / points) for who, lo, hi in areas], self.rows, self.columns)
            if last:
                break
            ranges, across = [(tile.who, *tile.rows) for tile in tiles], [tile.columns for tile in tiles]
            parts = Parts(self.call, self.region, self.tiled, self.values, ranges, across)
            bringing = {one.who: self._bringing(parts, n) / parts.points(n) for n, one in enumerate(tiles)}
            costs = [Cost(one.fixed, one.each + bringing.get(who, 0.0)) for who, one in self.computing.items()]
        return tiles

    def _computing(self, who: int) -> Cost:
        call = self.call
        device = None if who == HOST else call.team.devices[who - 1]
        speed = call.plan.cpu_speed(call.threads) if device is None else device_speed(device)
        ways = (self.tiled, 1), (self.region.divisions[0], self.columns), (self.region.divisions[1], self.rows)
        for division, elements in ways if not self.steady else ():
            measured = call.plan.rates.cost(id(division.part), "cpu" if device is None else device.name)
            if measured is not None and elements:
                return Cost(measured.fixed, measured.each / elements)
        return Cost(beginning(speed, who), 2.0 * self.inner / speed.operations)

    def _moved(self, parts: Parts, number: int) -> int:
        """Bytes that have to be brought for a part."""
        return missing(parts.needed[number], parts.ranges[number][0], self.steady)

    def _bringing(self, parts: Parts, number: int) -> float:
        """Seconds that that takes."""
        who = parts.ranges[number][0]
        speed = None if who == HOST else device_speed(self.call.team.devices[who - 1])
        return self._moved(parts, number) / speed.link if speed is not None and speed.link else 0.0

    def _elements(self, parts: Parts, number: int) -> int:
        if parts.across:
            return parts.points(number)
        return parts.points(number) * (self.rows if parts.division.axis else self.columns)

    def _seconds(self, parts: Parts) -> float:
        """When the last of these parts would be done."""
        return max(
            self._bringing(parts, number) + self.computing[who].of(self._elements(parts, number))
            for number, (who, _, _) in enumerate(parts.ranges)
        )


def arranged(weights: Sequence[tuple[int, float]], rows: int, columns: int) -> tuple[Tile, ...]:
    """Tiles of these shares of a product, of which the devices need as few rows and columns as they can."""
    shares = [weight for _, weight in weights]
    before = [0.0, *itertools.accumulate(shares)]
    best: list[tuple[float, int]] = [
        (0.0, 0)
    ]  # of the first so many members: what they need, where their last column begins
    for end in range(1, len(shares) + 1):
        candidates = []
        for start in range(end):
            width = before[end] - before[start]
            devices = [
                share for (who, _), share in zip(weights[start:end], shares[start:end], strict=True) if who != HOST
            ]
            needed = len(devices) * width * columns + sum(devices) / width * rows if width else 0.0
            candidates.append((best[start][0] + needed, start))
        best.append(min(candidates))
    ends, end = [len(shares)], len(shares)
    while end:
        end = best[end][1]
        ends.append(end)
    tiles = []
    for start, end in itertools.pairwise(reversed(ends)):
        wide = _range(before[start], before[end], columns)
        width, done = before[end] - before[start], 0.0
        for who, share in weights[start:end]:
            high = _range(done / width, (done + share) / width, rows) if width else (0, 0)
            done += share
            if wide[0] < wide[1] and high[0] < high[1]:
                tiles.append(Tile(who, high, wide))
    return tuple(tiles)


def _range(start: float, stop: float, extent: int) -> Bounds:
    return round(start * extent), round(stop * extent)
