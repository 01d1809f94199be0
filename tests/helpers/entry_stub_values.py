"""Values and layouts that several tests of gates use."""

from __future__ import annotations

import collections
import struct
from typing import Any

import numpy as np

from parakeet_py.signature.results import ResultLeaf
from tests.helpers.entry_stub_programs import (
    bits,
)

Point = collections.namedtuple("Point", "x y")
OBJECT = ResultLeaf(0, "object")
CALLS = 10_000


def array_leaf(index: int = 0, rank: int = 1, dtype: str = "float64") -> ResultLeaf:
    return ResultLeaf(index, "array", dtype, rank=rank)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


SCALARS: list[tuple[Any, list[int]]] = [
    (True, [1]),
    (False, [0]),
    (-5, [-5]),
    (2**63 - 1, [2**63 - 1]),
    (-(2**63), [-(2**63)]),
    (-0.0, [bits(-0.0)]),
    (1.5 - 2j, [bits(1.5), bits(-2.0)]),
    (np.True_, [1]),
    (np.int8(-1), [0xFF]),
    (np.uint8(200), [200]),
    (np.int16(-2), [0xFFFE]),
    (np.uint16(65535), [0xFFFF]),
    (np.int32(-3), [0xFFFFFFFD]),
    (np.uint32(7), [7]),
    (np.int64(-4), [-4]),
    (np.uint64(2**64 - 1), [-1]),
    (np.float16(1.5), [0x3E00]),
    (np.float32(1.5), [0x3FC00000]),
    (np.float64(1.5), [bits(1.5)]),
    (np.complex64(1 + 2j), [0x40000000_3F800000]),
    (np.complex128(1 + 2j), [bits(1.0), bits(2.0)]),
]
scale = 2.0
table = np.ones(4)


def reads_globals() -> Any:
    return scale, table, np, len
