"""What blocks tell each other while a kernel runs: values that come with the mark that says they are there.

A value travels in words of 64 bits, of which each has 32 of its bits and, above them, a mark. A word is stored and
loaded at once, so who sees the mark sees the bits: neither a fence nor an acquire is needed, which would empty the
caches of the multiprocessor, and one load is all that a look costs. (A word of 128 bits would be stored at once only by
the newest architectures; where a value takes several of these words, each says of itself whether it is there.)
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import BOOL, INT64, Scalar, is_complex, is_float, itemsize, real_dtype
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.writer import ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Var, dtype_of

BITS = 32  # of a value in a word
_HALF, _MARK, _SHIFT = (Const(value, INT64) for value in ((1 << BITS) - 1, 1 << BITS, BITS))


def words_of(dtype: str) -> int:
    """Words that a value takes."""
    return max(itemsize(dtype) * 8 // BITS, 1)


def publish(lo: Lowering, state: Var, place: Operand, values: Sequence[Operand]) -> None:
    """Store values with their marks into the words of `state` (int64, zero where nothing is there) from `place` on."""
    halves = [half for value in values for half in _halves(lo, value)]
    for number, half in enumerate(halves):
        word = lo.prim("or", half, _MARK)
        lo.let("done", INT64, imp.Atomic("relaxed_store", state, (lo.add(place, Const(number, INT64)),), word))


def awaited(lo: Lowering, state: Var, place: Operand, dtypes: Sequence[str]) -> list[Operand]:
    """The values of such types that are published from `place` on, as soon as they are there."""
    cells = [lo.declare("word", INT64, ZERO) for dtype in dtypes for _ in range(words_of(dtype))]
    lo.push()
    all_of_them: Operand = _MARK
    for number, cell in enumerate(cells):
        here = (lo.add(place, Const(number, INT64)),)
        word = lo.let("word", INT64, imp.Atomic("relaxed_load", state, here, ZERO))
        lo.write(cell, word)
        all_of_them = lo.prim("and", all_of_them, word)
    missing = lo.compare("eq", all_of_them, ZERO)
    head = lo.pop()
    lo.emit(imp.While(head, missing, imp.Block(())))
    words = [lo.read(cell) for cell in cells]
    found: list[Operand] = []
    for dtype in dtypes:
        own, words = words[: words_of(dtype)], words[words_of(dtype) :]
        found.append(_value(lo, dtype, own))
    return found


def _halves(lo: Lowering, value: Operand) -> list[Operand]:
    """The bits of a value, 32 in each int64."""
    dtype = dtype_of(value)
    if is_complex(dtype):
        parts = [lo.prim(name, value, type_=Scalar(real_dtype(dtype))) for name in ("real", "imag")]
        return [half for part in parts for half in _halves(lo, part)]
    size = itemsize(dtype)
    if is_float(dtype):
        value = lo.prim("bits", value, type_=Scalar(f"int{8 * size}"))
    whole = value if dtype_of(value) == "int64" else lo.let("bits", INT64, Cast(value))
    low = lo.prim("and", whole, _HALF)
    return [low, lo.prim("and", lo.prim("shr", whole, _SHIFT), _HALF)] if 8 * size > BITS else [low]


def _value(lo: Lowering, dtype: str, words: Sequence[Operand]) -> Operand:
    """The value whose bits words have."""
    kind = Scalar(dtype)
    if is_complex(dtype):
        half = len(words) // 2
        parts = [_value(lo, real_dtype(dtype), own) for own in (words[:half], words[half:])]
        return lo.prim("complex", *parts, type_=kind)
    whole = words[0]
    if len(words) > 1:
        low = lo.prim("and", words[0], _HALF)
        whole = lo.prim("or", lo.prim("shl", words[1], _SHIFT), low)
    if dtype == "bool":
        return lo.prim("ne", lo.prim("and", whole, Const(1, INT64)), ZERO, type_=BOOL)
    carrier = f"int{8 * itemsize(dtype)}" if is_float(dtype) else dtype
    bits = whole if carrier == "int64" else lo.let("bits", Scalar(carrier), Cast(whole))
    return lo.prim("from_bits", bits, type_=kind) if is_float(dtype) else bits
