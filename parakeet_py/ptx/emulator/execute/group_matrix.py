"""wgmma: factors in shared memory, as matrix descriptors say where; products of float16, added as float32.

A descriptor has the start of a matrix, a leading and a stride offset, all in units of 16 bytes, and how pieces of 16
bytes are permuted: the bits of an address from the fourth on by those from the seventh on, so many as the width of a
line has pieces (PTX manual, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"). Matrices that lie along the
shared axis have eight lines together, and the next eight a stride offset further. Of matrices that lie along the other
axis, lines follow each other along the shared one; the next eight are a stride offset further, the next width of a line
a leading offset. As of `mma`, the product is formed in float64 and rounded once.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array

_PIECES = {1: 8, 2: 4, 3: 2}  # of a line, by how a descriptor says that they are permuted
DEPTH = 16


def places(descriptors: Array, first: Array, count: int, turned: bool) -> Array:
    """The addresses of the pieces of a matrix of each warp, of so many rows or columns from the first one on.

    Pieces are eight elements along the shared axis, two for each row or column one after the other; of matrices that
    are `turned`, eight along the other axis, all of one depth one after the other.
    """
    kinds = {int(kind) for kind in (descriptors >> np.uint64(62)).tolist()}
    (kind,) = kinds
    if kind not in _PIECES:
        raise NotImplementedError("matrices without permuted lines")
    width = _PIECES[kind]

    def field(bit: int) -> Array:
        found: Array = (descriptors >> np.uint64(bit) & np.uint64((1 << 14) - 1)).astype(np.int64)
        return found[:, None]

    start, leading, stride = field(0), field(16), field(32)
    if turned:
        depth, eights = np.divmod(np.arange(DEPTH * count // 8), count // 8)
        piece = first[:, None] // 8 + eights
        unit = piece % width + piece // width * leading + depth % 8 * width + depth // 8 * stride
    else:
        line, half = np.divmod(np.arange(2 * count), 2)
        line = first[:, None] + line
        unit = half + line % 8 * width + line // 8 * stride
    unit = start + unit
    unit = unit ^ (unit >> 3 & width - 1)
    return (unit << 4).astype(np.uint64)


def matrix(words: Array, turned: bool) -> Array:
    """Pieces, in the order of `places`, as matrices of float64: rows or columns by depth."""
    warps = words.shape[0]
    halves = np.ascontiguousarray(words).view(np.float16).astype(np.float64).reshape(warps, -1)
    return halves.reshape(warps, DEPTH, -1).swapaxes(1, 2) if turned else halves.reshape(warps, -1, DEPTH)


def multiply(a: Array, b: Array, sums: tuple[Array, ...], adds: Array) -> tuple[Array, ...]:
    """sums + a @ b.T, in the registers of lanes; sums count where they are added to."""
    lane, number = np.arange(32)[:, None], np.arange(len(sums))[None, :]
    row = lane // 4 + 8 * (number // 2 % 2)
    column = lane % 4 * 2 + number % 2 + 8 * (number // 4)
    count = len(adds)
    before = np.stack([np.broadcast_to(one, (count,)) for one in sums], 1).view(np.float32).astype(np.float64)
    before = np.where(adds[:, None], before, 0.0)
    made = (a @ b.swapaxes(1, 2))[:, row, column].reshape(count, -1) + before
    single = np.ascontiguousarray(made.astype(np.float32).T).view(np.uint32)
    return tuple(single[place] for place in range(len(sums)))
