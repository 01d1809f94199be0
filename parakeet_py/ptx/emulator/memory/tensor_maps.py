"""Tensor maps: what the driver makes of an array, so that bulk copies can bring boxes of it into shared memory.

On a GPU the 128 bytes of a map are opaque; here they are what `encode` packs, and `decode` reads. `encode` refuses what
the driver refuses (CUDA driver API, "Tensor Map Object Management"). Dimensions are counted from the innermost one, in
which neighbours are neighbours in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array

SIZE = 128  # bytes of a map
ALIGNMENT = 64
_MAGIC = b"tensors\1"
_LAYOUT = struct.Struct("<8sBBBBBBQ5I4Q5H5B")
_ITEM_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)  # by the driver's numbers of types
_SWIZZLED = {0: 0, 1: 32, 2: 64, 3: 128}  # bytes of a line in which pieces are permuted


@dataclass(frozen=True, slots=True)
class TensorMap:
    """An array of global memory and the boxes that are copied of it.

    Attributes
    ----------
    extents, box, steps : in elements; an element of a box is so many of the array further than the one before
    strides : bytes from one place of each dimension but the innermost to the next
    width : bytes of a line of a box in which pieces of 16 bytes are permuted, 0 if none are
    """

    item: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    width: int

    @property
    def bytes(self) -> int:
        """Of a box."""
        return self.item * int(np.prod(self.box))

    def places(self, at: Sequence[int]) -> tuple[Array, Array]:
        """Of a box that begins at these coordinates: the addresses of its elements, and which are inside the array."""
        address: Array = np.full((1,) * len(self.box), self.address, np.int64)
        inside: Array = np.ones((1,) * len(self.box), np.bool_)
        for axis, (first, count, extent) in enumerate(zip(at, self.box, self.extents, strict=True)):
            shape = [1] * len(self.box)
            shape[len(self.box) - 1 - axis] = count
            index = (first + np.arange(count)).reshape(shape)
            address = address + index * (self.strides[axis - 1] if axis else self.item)
            inside = inside & (index >= 0) & (index < extent)
        return address.reshape(-1), inside.reshape(-1)


def encode(
    kind: int,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> bytes:
    """The bytes of a map; numbers are those of the driver.

    Raises
    ------
    ValueError
        The driver would not make it.
    """
    rank = len(extents)
    if not 1 <= rank <= 5 or not 0 <= kind < len(_ITEM_SIZES) or len(strides) != rank - 1 or swizzle not in _SWIZZLED:
        raise ValueError("no such type, rank or way to permute")
    item = _ITEM_SIZES[kind]
    if interleave or fill or any(step != 1 for step in steps):
        raise ValueError("interleaved arrays, fills with NaN and steps are not executed")
    if address % 16 or any(not 0 < stride < 1 << 40 or stride % 16 for stride in strides):
        raise ValueError("the array does not begin, or lie in lines that begin, at multiples of 16 bytes")
    if any(not 0 < extent <= 1 << 32 for extent in extents) or any(not 0 < count <= 256 for count in box):
        raise ValueError("an extent of the array or of the box is out of range")
    reach = item * extents[0]
    for stride, extent in zip(strides, extents[1:], strict=True):
        if stride < reach:
            raise ValueError("lines of the array overlap")
        reach = stride * extent
    if item * box[0] % 16 or (swizzle and item * box[0] > _SWIZZLED[swizzle]):
        raise ValueError("a line of the box is not of whole pieces, or longer than what is permuted")
    padded = [[*some, *[0] * (5 - len(some))] for some in (extents, box, steps)]
    counted = [extent - 1 if extent else 0 for extent in padded[0]]
    numbers = [*counted, *strides, *[0] * (5 - rank), *padded[1], *padded[2]]
    return _LAYOUT.pack(_MAGIC, kind, rank, interleave, swizzle, promotion, fill, address, *numbers).ljust(SIZE, b"\0")


def decode(data: bytes) -> TensorMap | None:
    """The map that these bytes are; None if they are none."""
    magic, kind, rank, _, swizzle, _, _, address, *numbers = _LAYOUT.unpack(data[: _LAYOUT.size])
    if magic != _MAGIC:
        return None
    extents = tuple(extent + 1 for extent in numbers[:rank])
    strides, box = tuple(numbers[5 : 4 + rank]), tuple(numbers[9 : 9 + rank])
    return TensorMap(_ITEM_SIZES[kind], address, extents, strides, box, _SWIZZLED[swizzle])


def moved(data: bytes, address: int) -> bytes:
    """A map of the same array elsewhere."""
    fields = list(_LAYOUT.unpack(data[: _LAYOUT.size]))
    fields[7] = address
    return _LAYOUT.pack(*fields).ljust(SIZE, b"\0")


def permuted(offset: Array, width: int) -> Array:
    """Where bytes of a box come in shared memory: bits of an address from the fourth on are changed by those from the
    seventh on, so many as a line has pieces."""
    return offset ^ (offset >> 3 & width - 16) if width else offset
