"""Slopes and areas of sampled functions: gradient, trapezoid."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from parakeet_py.library.intrinsics import as_array, cast, check, dtype_of, is_array, is_sequence, unsupported
from parakeet_py.library.registry import implements, static


@implements(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = as_array(y)
    gaps = dx
    if x is not None:
        points = as_array(x)
        gaps = np.diff(points) if points.ndim == 1 else np.moveaxis(np.diff(points, axis=axis), axis, -1)
    pairs = np.moveaxis(y, axis, -1)
    return (gaps * (pairs[..., 1:] + pairs[..., :-1]) / 2.0).sum(-1)


# ---- gradient --------------------------------------------------------------------------------------------------------


@static
def gradient_axes(axis, rank, spacings, single):
    """The axes of np.gradient, each with the position of its spacing (-1: there is none)."""
    axes = tuple(range(rank)) if axis is None else normalize_axis_tuple(axis, rank)
    if not (spacings == 0 or (spacings == 1 and single) or spacings == len(axes)):
        raise TypeError("invalid number of arguments")
    return tuple((own, -1 if spacings == 0 else n if spacings > 1 else 0) for n, own in enumerate(axes))


@static
def known_edge_order(order):
    if order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    return order


@implements(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    f = as_array(f)
    if dtype_of(f).kind == "b":
        unsupported("differences of bools")
    spacings = tuple([spacing_of(one) for one in varargs])
    places = gradient_axes(axis, f.ndim, len(spacings), len(spacings) == 1 and not is_array(spacings[0]))
    order = known_edge_order(edge_order)
    if dtype_of(f).kind not in "fc":
        f = cast(f, "float64")
    slopes = tuple([slope_along(f, own, 1.0 if place < 0 else spacings[place], order) for own, place in places])
    return slopes[0] if len(slopes) == 1 else slopes


def spacing_of(value):
    """A number, or the vector of coordinates."""
    value = as_array(value) if is_sequence(value) else value
    if not is_array(value):
        return value
    if value.ndim == 0:
        return value[()]
    if value.ndim != 1:
        unsupported("distances must be either scalars or 1d")
    return value if dtype_of(value).kind not in "iu" else cast(value, "float64")


def slope_along(f, axis, spacing, order):
    extent = f.shape[axis]
    if is_array(spacing):
        message = "when 1d, distances must match the length of the corresponding dimension"
        check(spacing.shape[0] == extent, "ValueError", message)
        # NumPy compares the distances with the first of them
        check(extent > 1, "IndexError", "index 0 is out of bounds for axis 0 with size 0")
    message = (
        "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
    )
    check(extent >= order + 1, "ValueError", message)
    out = np.empty_like(f)
    if is_array(spacing):
        steps = np.diff(spacing)
        if (steps == steps[0]).all():
            even_slopes(out, f, axis, steps[0], order)
        else:
            uneven_slopes(out, f, axis, steps, order)
    else:
        even_slopes(out, f, axis, spacing, order)
    return out


def part(axis, item):
    return (slice(None),) * axis + (item,)


def even_slopes(out, f, axis, step, order):
    """Slopes of samples at equal distances."""
    out[part(axis, slice(1, -1))] = (f[part(axis, slice(2, None))] - f[part(axis, slice(None, -2))]) / (2.0 * step)
    if order == 1:
        first_order_edges(out, f, axis, step, step)
    else:
        left = -1.5 / step, 2.0 / step, -0.5 / step
        right = 0.5 / step, -2.0 / step, 1.5 / step
        second_order_edges(out, f, axis, left, right)


def uneven_slopes(out, f, axis, steps, order):
    """Slopes of samples at these distances: of the parabola through three neighbours."""
    before, after = steps[:-1], steps[1:]
    along = (slice(None),) + (None,) * (f.ndim - axis - 1)
    a = (-after / (before * (before + after)))[along]
    b = ((after - before) / (before * after))[along]
    c = (before / (after * (before + after)))[along]
    inner = part(axis, slice(1, -1))
    out[inner] = a * f[part(axis, slice(None, -2))] + b * f[inner] + c * f[part(axis, slice(2, None))]
    if order == 1:
        first_order_edges(out, f, axis, steps[0], steps[-1])
    else:
        x, y = steps[0], steps[1]
        left = -(2.0 * x + y) / (x * (x + y)), (x + y) / (x * y), -x / (y * (x + y))
        x, y = steps[-2], steps[-1]
        right = y / (x * (x + y)), -(y + x) / (x * y), (2.0 * y + x) / (y * (x + y))
        second_order_edges(out, f, axis, left, right)


def first_order_edges(out, f, axis, first, last):
    out[part(axis, 0)] = (f[part(axis, 1)] - f[part(axis, 0)]) / first
    out[part(axis, -1)] = (f[part(axis, -1)] - f[part(axis, -2)]) / last


def second_order_edges(out, f, axis, left, right):
    """Both ends, from three elements and their weights."""
    a, b, c = left
    out[part(axis, 0)] = a * f[part(axis, 0)] + b * f[part(axis, 1)] + c * f[part(axis, 2)]
    a, b, c = right
    out[part(axis, -1)] = a * f[part(axis, -3)] + b * f[part(axis, -2)] + c * f[part(axis, -1)]
