"""The array API standard (2024.12) for `DeviceArray`: what ``x.__array_namespace__()`` gives.

NumPy's own functions follow the standard, and dispatch on `DeviceArray`, so most of it is NumPy. What makes arrays from
nothing, or from others' data, is here: it makes them on the device named, else where the array lives that was asked.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from parakeet_py.base import cuda_probe
from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_NAMES = (
    "abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and "
    "bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays broadcast_to "
    "can_cast ceil clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod "
    "cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor "
    "floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag inf int16 int32 int64 int8 "
    "isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not "
    "logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan "
    "negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal "
    "remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square squeeze "
    "stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 "
    "unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like"
)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array with another dtype."""
    made = x.astype(dtype, copy=copy)
    return made if device is None else asdevice(made, device)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays of a grid."""
    grid: Any = np.meshgrid
    return list(grid(*arrays, indexing=indexing))


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """The arrays as views of their common shape."""
    return list(np.broadcast_arrays(*arrays))


def finfo(kind: Any, /) -> Any:
    """The limits of a floating-point dtype, as numbers of Python."""
    found = np.finfo(kind.dtype if isinstance(kind, DeviceArray) else kind)
    numbers = {name: float(getattr(found, name)) for name in ("eps", "max", "min", "smallest_normal")}
    return types.SimpleNamespace(bits=found.bits, dtype=found.dtype, **numbers)


def iinfo(kind: Any, /) -> Any:
    return np.iinfo(kind.dtype if isinstance(kind, DeviceArray) else kind)


def can_cast(source: Any, to: Any, /) -> bool:
    return np.can_cast(source.dtype if isinstance(source, DeviceArray) else source, to)


class _Of:
    """What the namespace of arrays at one place has beside NumPy's functions.

    Parameters
    ----------
    place : the names of the devices where new arrays go if none are named
    """

    def __init__(self, place: str) -> None:
        self.place = place

    def maker(self, function: Any) -> Callable[..., Any]:
        """A function of NumPy's that makes an array, on a device."""

        def make(*args: Any, device: Any = None, **kwargs: Any) -> DeviceArray:
            return asdevice(function(*args, **kwargs), device or self.place)

        return _named(make, function)

    def frequencies(self, function: Any) -> Callable[..., Any]:
        """A function that gives the frequencies of a transform, on a device."""

        def make(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> DeviceArray:
            found = function(n, d)
            return asdevice(found if dtype is None else found.astype(dtype), device or self.place)

        return _named(make, function)

    def asarray(self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> DeviceArray:
        """An array on a device, of numbers, sequences or other arrays."""
        if isinstance(obj, DeviceArray) and device in (None, obj.device):
            found: DeviceArray = obj if dtype is None else obj.astype(dtype, copy=False)
            return found.copy() if copy and found is obj else found
        if copy is False:
            raise ValueError("what is not on the device comes there by a copy")
        made = asdevice(obj, device or self.place)
        return made if dtype is None else made.astype(dtype, copy=False)

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: bool | None = None) -> DeviceArray:
        """An array of another library as one on a device."""
        if copy is False and not isinstance(x, DeviceArray):
            raise BufferError("an array comes to a device by a copy")
        return self.asarray(x if isinstance(x, DeviceArray) else np.from_dlpack(x), device=device, copy=copy)

    # ---- `__array_namespace_info__` ----------------------------------------------------------------------------------

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return self.place

    def devices(self) -> list[str]:
        cuda = [f"cuda:{number}" for number in range(cuda_probe.probe().devices)]
        return list(dict.fromkeys((self.place, *cuda, "emulated:0")))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        return dict(np.__array_namespace_info__().default_dtypes())

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        return dict(np.__array_namespace_info__().dtypes(kind=kind))


def _named(made: Any, function: Any) -> Callable[..., Any]:
    made.__name__, made.__doc__ = function.__name__, f"As `numpy.{function.__name__}`, on a device."
    return cast("Callable[..., Any]", made)


def _like(function: Any) -> Callable[..., Any]:
    def make(x: Any, /, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        made = function(x, *args, **kwargs)
        return made if device is None else asdevice(made, device)

    return _named(make, function)


@functools.lru_cache(maxsize=16)
def _build(place: str) -> types.ModuleType:
    made: Any = types.ModuleType("parakeet_py.array_api", f"The array API standard for arrays on {place}.")
    for name in _NAMES.split():
        setattr(made, name, getattr(np, name))
    here = _Of(place)
    for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
        setattr(made, name, here.maker(getattr(np, name)))
    for name in ("empty_like", "full_like", "ones_like", "zeros_like"):
        setattr(made, name, _like(getattr(np, name)))
    for given in (astype, meshgrid, broadcast_arrays, finfo, iinfo, can_cast, here.asarray, here.from_dlpack):
        setattr(made, given.__name__, given)
    made.linalg, made.fft = np.linalg, types.SimpleNamespace(**{name: getattr(np.fft, name) for name in np.fft.__all__})
    made.fft.fftfreq, made.fft.rfftfreq = here.frequencies(np.fft.fftfreq), here.frequencies(np.fft.rfftfreq)
    made.__array_namespace_info__ = lambda: here
    made.__array_api_version__ = VERSIONS[-1]
    return cast("types.ModuleType", made)


def namespace_of(array: DeviceArray, version: str | None) -> types.ModuleType:
    """The namespace for arrays that live where this one does.

    Raises
    ------
    ValueError
        There is no such version of the standard here.
    """
    if version is not None and version not in VERSIONS:
        raise ValueError(f"version {version!r} of the array API standard is not one of {', '.join(VERSIONS)}")
    return _build(array.device)
