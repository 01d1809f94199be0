"""Read-modify-write of memory words by many lanes at once.

Lanes that go to different words are one vector operation. Lanes that meet in a word take their turns in the order of
their numbers, which is one of the orders a device may choose: for operations that NumPy can accumulate, a word's lanes
are one accumulation, so a counter that every thread of a grid increments costs no more than a sum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import floats, half_floats
from parakeet_py.ptx.emulator.front.kinds import Array

_FEW = 4


def _fmin(a: Array, b: Array) -> Array:
    return floats.minimum(a, b, nan=False, xorsign=False)


def _fmax(a: Array, b: Array) -> Array:
    return floats.maximum(a, b, nan=False, xorsign=False)


def _increment(a: Array, limit: Array) -> Array:
    return np.where(a >= limit, a.dtype.type(0), a + a.dtype.type(1))


def _decrement(a: Array, limit: Array) -> Array:
    return np.where((a == 0) | (a > limit), limit, a - a.dtype.type(1))


def _add_f16x2(a: Array, b: Array) -> Array:
    return half_floats.close_x2(half_floats.open_f16x2(a) + half_floats.open_f16x2(b), np.dtype(np.uint32))


def _add_bf16(a: Array, b: Array) -> Array:
    return half_floats.to_bf16(half_floats.from_bf16(a) + half_floats.from_bf16(b))


_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_OTHERS: dict[str, Callable[[Array, Array], Array]] = {
    "exch": lambda a, b: np.broadcast_to(b, a.shape),
    "inc": _increment,
    "dec": _decrement,
    "add_f16x2": _add_f16x2,
    "add_bf16": _add_bf16,
}


def _function(operation: str, words: Array) -> Callable[[Array, Array], Array]:
    if words.dtype.kind == "f" and operation in ("min", "max"):
        return _fmin if operation == "min" else _fmax
    return _UFUNCS.get(operation) or _OTHERS[operation]


def apply(words: Array, index: Array, operation: str, values: tuple[Array, ...], wanted: bool) -> tuple[Array, bool]:
    """Change words in place.

    Parameters
    ----------
    words : array
        The memory, as words of the operation's kind.
    index : array
        The word of each lane.
    values : tuple of arrays
        The operand, one for each lane; for "cas" the value compared with and the new one.
    wanted : bool
        Whether the old values are wanted.

    Returns
    -------
    tuple
        The old values (anything if not wanted), and whether any word may have changed.
    """
    n = index.shape[0]
    operands = tuple(np.broadcast_to(v, (n,)) for v in values)
    if (operation in _UFUNCS and not wanted and words.dtype.kind != "f") or (operation == "add" and not wanted):
        _UFUNCS[operation].at(words, index, operands[0])
        return words[:1], True
    if n > 1:
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        first = np.ones(n, dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        if not first.all():
            return _with_turns(words, ordered, order, first, operation, operands)
    old = words[index]
    if operation == "cas":
        new = np.where(old == operands[0], operands[1], old)
        words[index] = new
        return old, bool((old == operands[0]).any())
    words[index] = _function(operation, words)(old, operands[0])
    return old, True


def _with_turns(
    words: Array, ordered: Array, order: Array, first: Array, operation: str, operands: tuple[Array, ...]
) -> tuple[Array, bool]:
    """Lanes sorted by word, of which some share one; `first` marks where each word's lanes begin."""
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], ordered.shape[0])
    counts = ends - starts
    values = tuple(v[order] for v in operands)
    old = np.empty(ordered.shape[0], dtype=words.dtype)
    changed = operation != "cas"
    long = counts > _FEW
    for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True):
        word = int(ordered[start])
        changed |= _accumulate(words, word, old[start:end], operation, tuple(v[start:end] for v in values))
    starts, counts = starts[~long], counts[~long]
    for turn in range(int(counts.max()) if counts.size else 0):
        places = starts[counts > turn] + turn
        index = ordered[places]
        before = words[index]
        old[places] = before
        if operation == "cas":
            equal = before == values[0][places]
            words[index] = np.where(equal, values[1][places], before)
            changed |= bool(equal.any())
        else:
            words[index] = _function(operation, words)(before, values[0][places])
    result = np.empty_like(old)
    result[order] = old
    return result, changed


def _accumulate(words: Array, word: int, old: Array, operation: str, values: tuple[Array, ...]) -> bool:
    """All the lanes of one word, in turn; fills in what each found."""
    ufunc = _UFUNCS.get(operation)
    if ufunc is not None and not (words.dtype.kind == "f" and operation in ("min", "max")):
        chain = ufunc.accumulate(np.concatenate([words[word : word + 1], values[0]]), dtype=words.dtype)
        old[:] = chain[:-1]
        words[word] = chain[-1]
        return True
    if operation == "exch":
        old[0] = words[word]
        old[1:] = values[0][:-1]
        words[word] = values[0][-1]
        return True
    if operation == "cas":
        return _compare_and_swap(words, word, old, values)
    function = _function(operation, words)
    current = words[word : word + 1].copy()
    for turn in range(old.shape[0]):
        old[turn] = current[0]
        current = np.asarray(function(current, values[0][turn : turn + 1]))
    words[word] = current[0]
    return True


def _compare_and_swap(words: Array, word: int, old: Array, values: tuple[Array, ...]) -> bool:
    """In turn: but between two successes every lane sees the same value, so only successes are steps."""
    compare, new = values
    place, changed, n = 0, False, old.shape[0]
    while place < n:
        current = words[word]
        hits = np.flatnonzero(compare[place:] == current)
        if not hits.size:
            old[place:] = current
            break
        hit = place + int(hits[0])
        old[place : hit + 1] = current
        words[word] = new[hit]
        changed = True
        place = hit + 1
    return changed
