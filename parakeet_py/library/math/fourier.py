"""np.fft on top of the very loops that NumPy transforms lines with.

A transform takes the lines of an array along one axis, cuts them off or fills them up with zeros to the length asked
for, and multiplies by a factor. Those of several axes are one after the other.

The gufunc that NumPy calls chooses a loop by the dtypes of the array and of the factor: without a norm the factor is a
Python int and the loop that of double precision, also for single precision, which is rounded once at the end.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.base.routines import gufunc
from parakeet_py.library.arrays.shape import size_of
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    broadcast_view,
    cast,
    check,
    dtype_of,
    elementwise,
    hand_back,
    has_routine,
    layout_of,
    on_device,
    order_of,
    permute,
    prim,
    reshape,
    routine,
)
from parakeet_py.library.reductions.sorting import axis_last, memory_order
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, single_axis

SWAPPED = {"backward": "forward", None: "forward", "ortho": "ortho", "forward": "backward"}


@static
def swapped(norm):
    if norm not in SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return SWAPPED[norm]


@static
def known_norm(norm):
    return swapped(swapped(norm))


@static
def precision(kind):
    """The real dtype that is computed in."""
    return np.result_type(np.empty(0, kind).real.dtype, 1.0)


@static
def complex_of(kind):
    return np.result_type(kind, 1j)


@static
def member(name):
    return f"fft.{name}"


@static
def loop_kinds(name, kind, norm, given):
    """The dtypes of the loop that NumPy takes: of the lines, the factor and the result."""
    weak = norm in (None, "backward")
    return gufunc(member(name)).resolve_dtypes((kind, int if weak else precision(kind), given))


def factor(norm, n, kind):
    """What a transform of n points is multiplied by, a 0-d array."""
    if norm == "ortho":
        return as_array(np.reciprocal(np.sqrt(cast(n, kind))))
    if norm == "forward":
        return as_array(np.reciprocal(cast(n, kind)))
    return as_array(cast(1, kind))


def lines_into(name, out, a, scale):
    """Transform along the last axis; the others are run through."""
    if out.ndim == 1:
        routine(member(name), (out[None],), (a[None], broadcast_view(scale, (1,))))
    elif out.ndim == 2:
        routine(member(name), (out,), (a, broadcast_view(scale, (out.shape[0],))))
    elif layout_of(a) == "C" and layout_of(out) == "C":
        count = size_of(out.shape[:-1])
        lines_into(name, reshape(out, (count, out.shape[-1])), reshape(a, (count, a.shape[-1])), scale)
    else:
        for i in range(out.shape[0]):
            lines_into(name, out[i], a[i], scale)


def transform(name, a, n, count, axis, norm, given):
    """One routine along one axis: to `count` elements of dtype `given`, with the factor for n points."""
    taken, kind, made = loop_kinds(name, dtype_of(a), norm, given)
    if not has_routine(member(name), taken, kind, made):
        hand_back("a transform of numbers that this NumPy has no routine for")
    check(n >= 1, "ValueError", "Invalid number of FFT data points ({0}) specified.", n)
    shape = tuple([*a.shape[:axis], count, *a.shape[axis + 1 :]])
    out = allocate(shape, made, memory_order(order_of(a), a.ndim))
    axes = axis_last(axis, a.ndim)
    scale = converted(factor(norm, n, precision(dtype_of(a))), kind)
    if on_device():  # libraries do not multiply; bits are the same
        if multiplies(norm):
            lines_into(name, permute(out, axes), permute(converted(a, taken), axes), as_array(cast(1, kind)))
            return converted(times_real(out, scale), given)
    lines_into(name, permute(out, axes), permute(converted(a, taken), axes), scale)
    return converted(out, given)


@static
def multiplies(norm):
    """Whether there is a factor."""
    return norm in ("ortho", "forward")


def times_real(a, scale):
    if dtype_of(a).kind == "c":
        return elementwise(lambda v, s: prim("complex", prim("real", v) * s, prim("imag", v) * s), a, scale)
    return a * scale


def length(n, a, axis):
    return a.shape[axis] if n is None else n


def along(a, axis):
    """An axis that has to be there."""
    if a.ndim == 0:
        hand_back("a transform of a 0-d array")
    return single_axis(axis, a.ndim)


@implements(np.fft.fft)
def fft(a, n=None, axis=-1, norm=None, out=None):
    if out is not None:
        hand_back("out= of a transform")
    a = as_array(a)
    axis = along(a, axis)
    n, kind = length(n, a, axis), complex_of(dtype_of(a))
    return transform("fft", a, n, n, axis, known_norm(norm), kind)


@implements(np.fft.ifft)
def ifft(a, n=None, axis=-1, norm=None, out=None):
    if out is not None:
        hand_back("out= of a transform")
    a = as_array(a)
    axis = along(a, axis)
    n, kind = length(n, a, axis), complex_of(dtype_of(a))
    return transform("ifft", a, n, n, axis, swapped(norm), kind)


@implements(np.fft.rfft)
def rfft(a, n=None, axis=-1, norm=None, out=None):
    if out is not None:
        hand_back("out= of a transform")
    a = as_array(a)
    if dtype_of(a).kind == "c":
        hand_back("a real transform of complex numbers")
    axis = along(a, axis)
    n, given = length(n, a, axis), complex_of(dtype_of(a))
    if n % 2 == 0:
        return transform("rfft_n_even", a, n, n // 2 + 1, axis, known_norm(norm), given)
    return transform("rfft_n_odd", a, n, n // 2 + 1, axis, known_norm(norm), given)


@implements(np.fft.irfft)
def irfft(a, n=None, axis=-1, norm=None, out=None):
    if out is not None:
        hand_back("out= of a transform")
    a = as_array(a)
    axis = along(a, axis)
    if n is None:
        n = (a.shape[axis] - 1) * 2
    check(a.shape[axis] > 0, "Deoptimize", "the signal of a spectrum without elements")
    return transform("irfft", a, n, n, axis, swapped(norm), precision(dtype_of(a)))


@implements(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    return irfft(np.conjugate(as_array(a)), n, axis, swapped(norm), out)


@implements(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    return np.conjugate(rfft(a, n, axis, swapped(norm), out))


# ---- several axes ----------------------------------------------------------------------------------------------------


@static
def axes_of(axes, count, rank):
    """The axes of a transform, as they are asked for."""
    return tuple(range(-rank, 0)) if axes is None else tuple(axes)


@static
def places(axes):
    return tuple(range(len(axes)))


def lengths(a, s, axes, halved):
    """The lengths along some axes; `halved`: the last is that of half a spectrum."""
    if s is None:
        found = [a.shape[axis] for axis in axes]
        return (*found[:-1], (found[-1] - 1) * 2) if halved else tuple(found)
    if len(s) != len(axes):
        hand_back("lengths for some other number of axes")
    return tuple([a.shape[axis] if n == -1 else n for n, axis in zip(s, axes)])


def plan(a, s, axes, out):
    """The array and the axes of a transform."""
    if out is not None:
        hand_back("out= of a transform")
    a = as_array(a)
    if a.ndim == 0 or (s is not None and axes is None):
        hand_back("a transform without axes")
    axes = axes_of(axes, 0, a.ndim)
    if len(axes) == 0:
        hand_back("a transform without axes")
    return a, axes


@static
def last_first(axes):
    return tuple(reversed(range(len(axes))))


@implements(np.fft.fftn)
def fftn(a, s=None, axes=None, norm=None, out=None):
    a, axes = plan(a, s, axes, out)
    sizes = lengths(a, s, axes, False)
    for place in last_first(axes):
        a = fft(a, sizes[place], axes[place], norm)
    return a


@implements(np.fft.ifftn)
def ifftn(a, s=None, axes=None, norm=None, out=None):
    a, axes = plan(a, s, axes, out)
    sizes = lengths(a, s, axes, False)
    for place in last_first(axes):
        a = ifft(a, sizes[place], axes[place], norm)
    return a


@implements(np.fft.rfftn)
def rfftn(a, s=None, axes=None, norm=None, out=None):
    a, axes = plan(a, s, axes, out)
    sizes = lengths(a, s, axes, False)
    a = rfft(a, sizes[-1], axes[-1], norm)
    for place in last_first(axes[:-1]):
        a = fft(a, sizes[place], axes[place], norm)
    return a


@implements(np.fft.irfftn)
def irfftn(a, s=None, axes=None, norm=None, out=None):
    a, axes = plan(a, s, axes, out)
    sizes = lengths(a, s, axes, True)
    for place in places(axes[:-1]):
        a = ifft(a, sizes[place], axes[place], norm)
    return irfft(a, sizes[-1], axes[-1], norm)


@implements(np.fft.fft2)
def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return fftn(a, s, axes, norm, out)


@implements(np.fft.ifft2)
def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return ifftn(a, s, axes, norm, out)


@implements(np.fft.rfft2)
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return rfftn(a, s, axes, norm, out)


@implements(np.fft.irfft2)
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    return irfftn(a, s, axes, norm, out)
