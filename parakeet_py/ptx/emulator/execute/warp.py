"""Operations across the lanes of a warp, for all warps of a set of lanes at once."""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.front.kinds import Array

_U4 = np.uint32


def _segments(lanes: Lanes) -> tuple[Array, Array]:
    """Where each warp's lanes begin in the set, and the number of its warp's segment for each lane."""
    cache = lanes._cache
    starts = cache.get("segment_starts")
    if starts is None:
        change = np.diff(lanes.warps(), prepend=-1) != 0
        starts = cache["segment_starts"] = np.flatnonzero(change)
        cache["segment_of"] = np.cumsum(change) - 1
    return starts, cache["segment_of"]


def positions(lanes: Lanes) -> Array:
    """For each lane in flight its place in the set, or -1."""
    found = lanes._cache.get("positions")
    if found is None:
        found = np.full(lanes.machine.warp_count * 32, -1, dtype=np.int64)
        found[lanes.index] = np.arange(lanes.n)
        lanes._cache["positions"] = found
    return found


def sources(lanes: Lanes, mode: str, amount: Array, clamp: Array) -> tuple[Array, Array, Array]:
    """For a shuffle: the place of each lane's source (-1 if that does not take part), its lane, and the predicate."""
    key = None
    if amount.shape[0] == 1 and clamp.shape[0] == 1:
        key = f"shuffle {mode} {int(amount[0])} {int(clamp[0])}"
        if key in lanes._cache:
            return lanes._cache[key + " place"], lanes._cache[key], lanes._cache[key + " valid"]
    lane = (lanes.index & 31).astype(np.int64)
    b = (amount & _U4(31)).astype(np.int64)
    limit = (clamp & _U4(31)).astype(np.int64)
    segment = ((clamp >> _U4(8)) & _U4(31)).astype(np.int64)
    highest = (lane & segment) | (limit & ~segment)
    match mode:
        case "up":
            source = lane - b
            valid = source >= highest
        case "down":
            source = lane + b
            valid = source <= highest
        case "bfly":
            source = lane ^ b
            valid = source <= highest
        case _:
            source = (lane & segment) | (b & ~segment)
            valid = source <= highest
    source = np.where(valid, source, lane)
    place = positions(lanes).take((lanes.index & ~31) + source)
    if key is not None:
        lanes._cache[key], lanes._cache[key + " place"], lanes._cache[key + " valid"] = source, place, valid
    return place, source, valid


def ballot(lanes: Lanes, predicate: Array, mask: Array | None) -> Array:
    """For each lane the lanes of its mask whose predicate holds."""
    starts, segment = _segments(lanes)
    bits = lanes.bits()
    chosen = np.where(predicate, bits, _U4(0))
    found = np.bitwise_or.reduceat(chosen, starts).take(segment)
    return found if mask is None else found & mask


def present(lanes: Lanes) -> Array:
    """For each lane the lanes of its warp in the set."""
    return lanes.present().take(lanes.warps())


def vote(lanes: Lanes, mode: str, predicate: Array, mask: Array | None) -> Array:
    """all, any, uni or ballot."""
    votes = ballot(lanes, predicate, mask)
    if mode == "ballot":
        return votes
    if mode == "any":
        return votes != 0
    everyone = present(lanes) if mask is None else present(lanes) & mask
    if mode == "all":
        return votes == everyone
    return (votes == everyone) | (votes == 0)


def match_any(lanes: Lanes, value: Array, mask: Array) -> Array:
    """For each lane the lanes of its mask that hold the same value."""
    full = np.broadcast_to(value, (lanes.n,))
    base = lanes.index & ~31
    table = positions(lanes)
    result = np.zeros(lanes.n, dtype=np.uint32)
    for other in range(32):
        place = table.take(base + other)
        same = (place >= 0) & (full.take(np.maximum(place, 0)) == full)
        result |= np.where(same, _U4(1 << other), _U4(0))
    return result & mask


def match_all(lanes: Lanes, value: Array, mask: Array) -> tuple[Array, Array]:
    """The mask and true where all the lanes of a lane's mask hold one value, else 0 and false."""
    everyone = present(lanes) & mask
    equal = match_any(lanes, value, mask) == everyone
    return np.where(equal, everyone, _U4(0)), equal


def reduce(lanes: Lanes, operation: str, value: Array, mask: Array, absolute: bool, nan: bool) -> Array:
    """The reduction over the lanes of each lane's mask."""
    full = np.broadcast_to(value, (lanes.n,))
    if absolute:
        full = np.abs(full)
    key = (lanes.warps() << 32) | np.broadcast_to(mask, (lanes.n,)).astype(np.int64)
    order = np.argsort(key, kind="stable")
    change = np.diff(key[order], prepend=-1) != 0
    starts = np.flatnonzero(change)
    if full.dtype.kind == "f":
        if operation == "min":
            ufunc: np.ufunc = np.minimum if nan else np.fmin
        else:
            ufunc = np.maximum if nan else np.fmax
    else:
        ufunc = {
            "add": np.add,
            "min": np.minimum,
            "max": np.maximum,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
        }[operation]
    totals = ufunc.reduceat(full[order], starts)
    result = np.empty(lanes.n, dtype=full.dtype)
    result[order] = totals.take(np.cumsum(change) - 1)
    return result


def elect(lanes: Lanes, mask: Array) -> tuple[Array, Array]:
    """The lowest lane of each lane's mask that is there, and whether a lane is it."""
    members = present(lanes) & mask
    lowest = members & (~members + _U4(1))
    leader = np.bitwise_count(lowest - _U4(1)).astype(np.uint32)
    return leader, lowest == lanes.bits()
