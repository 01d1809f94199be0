"""What a slice of a product of float16 costs a multiprocessor of compute capability 9.0, in cycles: warp by warp
(`mma.sync`) or by groups of four warps (`wgmma`), from slices that threads copy or from boxes that bulk copies bring.

Both are bounded by tensor cores and by what is read of shared memory at the same time. By `mma.sync` warps read
fragments into registers, each its own, so that blocks read their slices several times; tensor cores reach some 60 % of
their rate ("Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", Luo et al., 2024). By `wgmma` they read
shared memory themselves, but the group waits for them once a slice, which others hide as long as they have enough to
do.

Threads that copy take part of the time in which they could multiply: some four instructions for each piece of 16 bytes.
Bulk copies take one thread, and the group waits only once, but a block begins later: barriers are made first, and the
tensor map is fetched.

These are estimates: no GPU has been measured.
"""

from __future__ import annotations

from parakeet_py.imp.ir import WarpTile

RATE = 2048  # fused multiply-adds a cycle, of float16
SHARE = 0.6  # of it that is reached by `mma.sync`
SHARED_RATE = 128  # bytes a cycle
WAIT = 60  # cycles for which a group does nothing, once a slice
GROUP = 4  # warps
BEGIN = 300  # cycles until the first box is there, beyond those until the first pieces are
ISSUE = 4  # instructions for a piece, of which a multiprocessor begins four a cycle, one for each of 32 lanes
_PIECE = 16  # bytes
_SIZE = 2  # bytes of an element
_ROWS, _COLUMNS = 16, 8  # of a fragment of the result


def by_warps(tile: WarpTile, warps: int) -> float:
    """Cycles for a slice, where each of so many warps multiplies a tile."""
    rows, columns = _ROWS * tile.rows, _COLUMNS * tile.columns
    multiplied = warps * rows * columns * tile.depth / (RATE * SHARE)
    read = warps * (rows + columns) * tile.depth * _SIZE / SHARED_RATE
    return max(multiplied, read)


def by_groups(tile: WarpTile, warps: int, resident: int) -> float:
    """Cycles for a slice, where groups multiply the same tiles side by side; `resident` groups share a
    multiprocessor."""
    groups, own = warps // GROUP, _own(tile)
    hidden = (resident - 1) * own
    return groups * own + max(WAIT - hidden, 0)


def by_slices(depth: int, tile: WarpTile, warps: int, resident: int) -> float:
    """Cycles for a tile, by groups from slices that their threads copy."""
    slices = -(-depth // tile.depth)
    pieces = (_ROWS * tile.rows * warps // GROUP + _COLUMNS * tile.columns * GROUP) * tile.depth * _SIZE / _PIECE
    return slices * (by_groups(tile, warps, resident) + pieces * ISSUE / 128)


def by_boxes(depth: int, box_depth: int, tile: WarpTile, warps: int) -> float:
    """Cycles for a tile, by groups from boxes of so many elements of the shared axis."""
    box = WarpTile(tile.rows, tile.columns, box_depth)
    multiplied = by_groups(box, warps, warps // GROUP) - max(WAIT - (warps // GROUP - 1) * _own(box), 0)
    return BEGIN + WAIT + -(-depth // box_depth) * multiplied


def _own(tile: WarpTile) -> float:
    """Cycles of one group for a slice."""
    rows, columns = _ROWS * tile.rows, _COLUMNS * tile.columns * GROUP
    return max(rows * columns * tile.depth / RATE, (rows + columns) * tile.depth * _SIZE / SHARED_RATE)
