"""`x[integer arrays] = values` where elements are stored to more than once: NumPy's order decides which value stays."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program

PLACES = (3, 1, 1, 0, 3, 2, 1, 0, 2, 1, 3, 3)


def windows(dtype="i4"):
    buffer = np.array([3, 9, 2, 0, 6, 1, 5, 3, 7, 2, 0, 8], dtype)
    return buffer.reshape(3, 4)[1], buffer.reshape(3, 4).T


PAIRS = [
    (arr("f8", 4), arr("i8", 3, 4, layout=places, values=PLACES), arr("f8", 3, 4, layout=values, values="ascending"))
    for places in ("C", "F", "reversed", "transposed")
    for values in ("C", "F", "transposed")
]


@program([windows, lambda: windows("u1")], mutates=(0, 1))
def among_windows_of_one_buffer(d, e):
    d[e % d.shape[0]] = d[e % d.shape[0]][::-1]


@program(PAIRS, mutates=(0,), fell_back=None)
def values_beside_places(x, places, values):
    x[places] = values
    return x


@program(PAIRS, mutates=(0,), fell_back=None)
def values_in_fortran_order(x, places, values):
    x[places.T] = np.asfortranarray(values).T
    x[places % 2] += values


@program(PAIRS, mutates=(0,), fell_back=None)
def both_reversed(x, places, values):
    x[places[::-1]] = values[:, ::-1]
    x[places[0, ::-1]] = values[0, ::-1]


@program(
    [
        (arr("i4", 4, n), arr("i4", 2, 6, layout="F", values=PLACES), arr("i4", 2, 6, 1, values="ascending"))
        for n in (1, 2)
    ],
    mutates=(0,),
    fell_back=None,
)
def beside_other_axes(x, places, values):
    """One element for each index: in memory order; several: in C order."""
    x[places] = values
    x[places, :1] = values * 3
    x[:, None, -1][places] = values


@program([(arr("i8", 3, 4, layout=layout, values=PLACES),) for layout in ("C", "F")], mutates=(0,), fell_back=None)
def places_that_are_stored_to(x):
    x[x % 3, x] = x * 10


@program(
    [(arr("f8", 4), arr("i8", 12, layout="reversed", values=PLACES), arr("f8", 12, values="ascending"))], mutates=(0,)
)
def one_axis_is_stored_in_order(x, places, values):
    x[places[::-1]] = values[::-1]
    return x
