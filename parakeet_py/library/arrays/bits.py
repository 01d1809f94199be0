"""Bits in bytes: packbits and unpackbits."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import positions, ravel
from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    constant,
    dtype_of,
    generate,
    layout_of,
    load,
    reshape,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import single_axis


@static
def is_big(bitorder):
    """Whether the first of eight numbers is the highest bit."""
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return bitorder == "big"


def along(a, axis):
    """The array and the axis along which bits lie: flattened without an axis."""
    if axis is None:
        return ravel(a), 0
    a = a[None] if a.ndim == 0 else a
    return a, single_axis(axis, a.ndim)


def generated(a, axis, extent, function):
    """A new array like another, but for its extent along an axis: in Fortran order only where the other is."""
    shape = a.shape[:axis] + (extent,) + a.shape[axis + 1 :]
    if a.ndim > 1 and layout_of(a) == "F":
        return np.transpose(generate(shape[::-1], lambda *at: function(*at[::-1])))
    return generate(shape, function)


def shifted(value, place, big):
    """A number that is not zero as a bit of a byte."""
    return cast(cast(value, "bool"), "uint8") << cast(7 - place if big else place, "uint8")


@implements(np.packbits)
def packbits(a, /, axis=None, bitorder="big"):
    a, axis = along(as_array(a), axis)
    if dtype_of(a).kind not in "biu":
        unsupported("Expected an input array of integer or boolean data type")
    big = is_big(bitorder)
    whole, rest = a.shape[axis] // 8, a.shape[axis] % 8

    def byte(*at):
        start = at[axis] * 8
        packed = constant(0, "uint8")
        for j in positions(8):
            packed = packed | shifted(load(a, *at[:axis], start + j, *at[axis + 1 :]), j, big)
        return packed

    def last_byte(*at):
        packed = constant(0, "uint8")
        for j in range(rest):
            packed = packed | shifted(load(a, *at[:axis], whole * 8 + j, *at[axis + 1 :]), j, big)
        return packed

    bytes_ = generated(a, axis, whole, byte)
    return np.concatenate((bytes_, generated(a, axis, 1, last_byte)), axis) if rest > 0 else bytes_


@implements(np.unpackbits)
def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    a, axis = along(as_array(a), axis)
    if dtype_of(a) != np.uint8:
        unsupported("Expected an input array of unsigned byte data type")
    big = is_big(bitorder)
    if count is None and axis == a.ndim - 1 and (a.ndim == 1 or layout_of(a) != "F"):
        all_bits = generate(
            (*a.shape, 8),
            lambda *at: (load(a, *at[:-1]) >> cast(7 - at[-1] if big else at[-1], "uint8")) & constant(1, "uint8"),
        )
        return reshape(all_bits, a.shape[:axis] + (a.shape[axis] * 8,))
    given = a.shape[axis] * 8
    wanted = given if count is None else int(count)
    if wanted < 0:
        check(wanted + given >= 0, "ValueError", "-count larger than number of elements")
        wanted = wanted + given

    def bit(*at):
        k = at[axis]
        place = k % 8
        if k >= given:
            return constant(0, "uint8")
        whole = load(a, *at[:axis], k // 8, *at[axis + 1 :])
        return (whole >> cast(7 - place if big else place, "uint8")) & constant(1, "uint8")

    return generated(a, axis, wanted, bit)
