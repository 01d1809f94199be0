"""DLPack capsules: what another library says of an array in a device's memory, and saying it of ours.

A capsule holds a pointer to a `DLManagedTensor` (or, from version 1 on, to one with a head of its own): address,
device, extents, strides in elements. A capsule that has not been consumed frees what it holds when it dies, so reading
one is a matter of keeping it. A consumer renames the capsule and calls `deleter` when it is done.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from parakeet_py.hybrid.residency.arrays import strides_of

CPU = 1  # kDLCPU
CUDA = 2  # kDLCUDA
MANAGED = 13  # kDLCUDAManaged
_READ_ONLY = 1
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_LETTERS = {code: letter for letter, code in _KINDS.items()}
_TENSOR = struct.Struct("PiiiBBHPPQ")  # `_Tensor`, as Python reads it at once
_VERSIONED = struct.Struct("IIPPQ" + _TENSOR.format)  # `_Versioned`


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_api = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))


class Tensor(NamedTuple):
    """An array as a capsule describes it; `strides` in bytes, `dtype` as NumPy names it."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: tuple[int, int]
    readonly: bool


def read(capsule: Any) -> Tensor | None:
    """What a capsule describes; None if that is nothing NumPy has a dtype for. The capsule stays unconsumed."""
    place = id(capsule)
    if _is_valid(place, b"dltensor_versioned"):
        words = _VERSIONED.unpack(ctypes.string_at(_pointer(place, b"dltensor_versioned"), _VERSIONED.size))
        readonly = bool(words[4] & _READ_ONLY)
    elif _is_valid(place, b"dltensor"):
        words, readonly = _TENSOR.unpack(ctypes.string_at(_pointer(place, b"dltensor"), _TENSOR.size)), False
    else:
        return None
    data, kind, number, rank, code, bits, lanes, extents, steps, byte_offset = words[-10:]
    letter, size = _LETTERS.get(code), bits // 8
    if letter is None or lanes != 1 or bits % 8:
        return None
    shape = _integers(extents, rank)
    if steps:
        strides = tuple(step * size for step in _integers(steps, rank))
    else:
        strides = strides_of(shape, size)
    return Tensor((data or 0) + byte_offset, f"{letter}{size}", shape, strides, (kind, number), readonly)


def _integers(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}q", ctypes.string_at(address, 8 * count)) if count else ()


_kept: dict[int, tuple[Any, ...]] = {}  # what capsules in use hold, by the address of their structure


def _delete(address: int) -> None:
    _kept.pop(address, None)


def _dies(capsule: int) -> None:
    """A capsule dies; if it has not been consumed, so does what it holds."""
    for name in (b"dltensor", b"dltensor_versioned"):
        if _is_valid(capsule, name):
            _delete(_pointer(capsule, name))


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)  # may be called without the GIL
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_dies)


def capsule_of(
    address: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    device: tuple[int, int],
    keep: Any,
    versioned: bool,
    readonly: bool,
) -> Any:
    """A capsule; `strides` in elements, `dtype` as NumPy writes it (``"f8"``). It holds `keep`."""
    extents, steps = ((ctypes.c_int64 * len(values))(*values) for values in (shape, strides))
    tensor = _Tensor(
        address,
        _Device(*device),
        len(shape),
        _Type(_KINDS[dtype[0]], 8 * int(dtype[1:]), 1),
        ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64)),
        ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)),
        0,
    )
    deleter = ctypes.cast(_deleter, ctypes.c_void_p)
    structure: Any
    if versioned:
        structure = _Versioned(1, 0, None, deleter, _READ_ONLY if readonly else 0, tensor)
    else:
        structure = _Managed(tensor, None, deleter)
    place = ctypes.addressof(structure)
    _kept[place] = structure, extents, steps, keep
    name = b"dltensor_versioned" if versioned else b"dltensor"
    return _new(place, name, ctypes.cast(_destructor, ctypes.c_void_p))
