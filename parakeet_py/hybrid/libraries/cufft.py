"""Transforms by cuFFT: through `nvmath-python` where it is installed, else by the library's own interface
(`cufft_library`).

NumPy's transforms of lines are routines, which the host does for devices that have none. On a CUDA device cuFFT does
them in the order of its stream where it takes the lines as they lie: of double or single precision, at any distances,
and of the length of the result. Kernels multiply by the factor of a norm afterwards (`library.math.fourier`).

Plans are kept; they own memory of the driver's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.libraries import cufft_library
from parakeet_py.hybrid.libraries.device_library import DeviceLibrary, bindings
from parakeet_py.hybrid.residency.arrays import DeviceView

KEPT = 16  # plans
LIMIT = 1 << 31  # of extents
FORWARD, INVERSE = -1, 1
C2C, R2C, C2R, Z2Z, D2Z, Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C  # cufftType
_TYPES = {
    ("complex128", "complex128"): (Z2Z, "exec_z2z"),
    ("float64", "complex128"): (D2Z, "exec_d2z"),
    ("complex128", "float64"): (Z2D, "exec_z2d"),
    ("complex64", "complex64"): (C2C, "exec_c2c"),
    ("float32", "complex64"): (R2C, "exec_r2c"),
    ("complex64", "float32"): (C2R, "exec_c2r"),
}
_ROUTINES = {
    "fft.fft": (C2C, FORWARD),
    "fft.ifft": (C2C, INVERSE),
    "fft.rfft_n_even": (R2C, FORWARD),
    "fft.rfft_n_odd": (R2C, FORWARD),
    "fft.irfft": (C2R, INVERSE),
}


class Lines(NamedTuple):
    """Lines in memory: how many elements are from one of a line to the next, and from line to line."""

    step: int
    distance: int


class Transform(NamedTuple):
    """What cuFFT is asked for.

    Attributes
    ----------
    type : of `cufftType`
    call : that executes a plan for it
    length, batch : of lines, and how many there are
    lines, results : how they lie
    direction : of transforms of complex numbers
    """

    type: int
    call: str
    length: int
    batch: int
    lines: Lines
    results: Lines
    direction: int

    @property
    def overwrites(self) -> bool:
        """Whether cuFFT may overwrite its input."""
        return self.type in (C2R, Z2D)

    @property
    def span(self) -> int:
        """The elements from the first to the last of the input, for transforms that overwrite it."""
        return (self.batch - 1) * self.lines.distance + self.length // 2 * self.lines.step + 1

    def plan(self) -> tuple[Any, ...]:
        """The arguments of `make_plan_many64`; the embedding extents of one axis are not looked at."""
        (step, distance), (out_step, out_distance) = self.lines, self.results
        own = [self.length]
        return 1, own, own, step, distance, own, out_step, out_distance, self.type, self.batch


class Cufft(DeviceLibrary):
    """The cuFFT of one device."""

    instead = "transforms are done by the CPU, not by cuFFT"

    def __init__(self) -> None:
        super().__init__()
        self._plans: OrderedDict[tuple[int, Transform], int] = OrderedDict()

    def open(self) -> Any:
        return bindings("cufft", lambda: cufft_library.find())

    def run(self, stream: int, transform: Transform, lines: int, results: int) -> bool:
        """Transform lines at one address to another, in the order of a stream; whether cuFFT could do it."""
        with self._lock:
            if self._library is None:
                return False
            try:
                plan = self._plan(stream, transform)
                more = (transform.direction,) if transform.type in (C2C, Z2Z) else ()
                getattr(self._library, transform.call)(plan, lines, results, *more)
            except Exception as error:
                self._give_up(error)
                return False
        return True

    def _plan(self, stream: int, transform: Transform) -> int:
        """A plan, whose memory is used in the order of one stream."""
        given, key = transform.plan(), (stream, transform)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= KEPT:
                self._library.destroy(self._plans.popitem(last=False)[1])
            plan = int(self._library.create())
            try:
                self._library.make_plan_many64(plan, *given)
                self._library.set_stream(plan, stream)
            except Exception:
                self._library.destroy(plan)
                raise
            self._plans[key] = plan
        self._plans.move_to_end(key)
        return plan


def transform_of(name: str, outs: Sequence[DeviceView], ins: Sequence[DeviceView]) -> Transform | None:
    """What cuFFT would be asked for in the place of a routine (see `base.routines`), given arrays of lines; None if it
    has nothing for it."""
    known = _ROUTINES.get(name)
    if known is None:
        return None
    (out,), (given, _) = outs, ins  # the other is a factor of 1
    kind, direction = known
    found = _TYPES.get((given.dtype, out.dtype))
    if found is None or found[0] & 0xF != kind & 0xF:  # of either precision
        return None
    count, length = out.shape[0], (given if kind == R2C else out).shape[1]
    half = length // 2 + 1
    shapes = {C2C: (length, length), R2C: (length, half), C2R: (half, length)}[kind]
    if (given.shape[1], out.shape[1]) != shapes or not 0 < length < LIMIT or not 0 < count < LIMIT:
        return None
    lines, results = _lines(given), _lines(out)
    if lines is None or results is None:
        return None
    return Transform(*found, length, count, lines, results, direction)


def _lines(array: DeviceView) -> Lines | None:
    """How the lines of an array of two axes lie; None if cuFFT does not take them, which wants real ones to begin where
    complex ones could."""
    dtype = np.dtype(array.dtype)
    size = dtype.itemsize
    (count, length), (between, along) = array.shape, array.strides
    if length == 1:
        along = size
    if count == 1:
        between = along * length
    if along <= 0 or between <= 0 or along % size or between % size:
        return None
    if array.address % (size if dtype.kind == "c" else 2 * size):
        return None
    return Lines(along // size, between // size)
