"""What a slice of a product of float16 costs a multiprocessor of compute capability 9.0, in cycles: warp by warp
(`mma.sync`) or by groups of four warps (`wgmma`).

Both are bounded by tensor cores and by what is read of shared memory at the same time. By `mma.sync` warps read
fragments into registers, each its own, so that blocks read their slices several times; tensor cores reach some 60 % of
their rate ("Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", Luo et al., 2024). By `wgmma` they read
shared memory themselves, but the group waits for them once a slice, which others hide as long as they have enough to
do.

These are estimates: no GPU has been measured.
"""

from __future__ import annotations

from parakeet_py.imp.ir import WarpTile

RATE = 2048  # fused multiply-adds a cycle, of float16
SHARE = 0.6  # of it that is reached by `mma.sync`
SHARED_RATE = 128  # bytes a cycle
WAIT = 60  # cycles for which a group does nothing, once a slice
GROUP = 4  # warps
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
    rows, columns = _ROWS * tile.rows, _COLUMNS * tile.columns * GROUP
    groups = warps // GROUP
    multiplied = rows * columns * tile.depth / RATE
    read = (rows + columns) * tile.depth * _SIZE / SHARED_RATE
    own = max(multiplied, read)
    hidden = (resident - 1) * own
    return groups * own + max(WAIT - hidden, 0)
