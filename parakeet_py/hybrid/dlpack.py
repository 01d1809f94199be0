"""DLPack capsules: what another library says of an array in a device's memory, and saying it of ours.

A capsule holds a pointer to a `DLManagedTensor` (or, from version 1 on, to one with a head of its own): address,
device, extents, strides in elements. A capsule that nobody has consumed frees what it holds when it dies, so reading
one is a matter of keeping it. A consumer renames the capsule and calls `deleter` when it is done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

CPU = 1  # kDLCPU
CUDA = 2  # kDLCUDA
MANAGED = 13  # kDLCUDAManaged
_READ_ONLY = 1
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_LETTERS = {code: letter for letter, code in _KINDS.items()}


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
        versioned = _Versioned.from_address(_pointer(place, b"dltensor_versioned"))
        tensor, readonly = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    elif _is_valid(place, b"dltensor"):
        tensor, readonly = _Managed.from_address(_pointer(place, b"dltensor")).tensor, False
    else:
        return None
    letter, size = _LETTERS.get(tensor.dtype.code), tensor.dtype.bits // 8
    if letter is None or tensor.dtype.lanes != 1 or tensor.dtype.bits % 8:
        return None
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * size for axis in range(tensor.ndim))
    else:
        strides, step = (), size
        for extent in reversed(shape):
            strides = (step, *strides)
            step *= extent
    address = (tensor.data or 0) + tensor.byte_offset
    return Tensor(address, f"{letter}{size}", shape, strides, (tensor.device.type, tensor.device.id), readonly)


_kept: dict[int, tuple[Any, ...]] = {}  # what capsules in use hold, by the address of their structure


def _delete(address: int) -> None:
    _kept.pop(address, None)


def _dies(capsule: int) -> None:
    """A capsule dies; if nobody has consumed it, so does what it holds."""
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
