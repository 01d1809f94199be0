"""Stores that read what they write: NumPy's answer is that of a right-hand side evaluated in full first."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import Case, large, program

VECTORS = [*variants(arr("f8", 9), "f4 i4", "reversed stepped"), arr("f8", 1), arr("f8", 0), arr("f8", 2)]
ONE = [(v,) for v in VECTORS]
LARGE = [large(arr("f8", 100_000)), large(arr("i4", 70_001))]
MATRICES = [(m,) for m in variants(arr("f8", 5, 6), "f4 i4", "F stepped reversed")]
SQUARES = [(m,) for m in [*variants(arr("f8", 5, 5), "i4", "F reversed"), arr("f8", 1, 1)]]


@program(ONE + LARGE, mutates=(0,))
def shifted_up(a):
    a[1:] += a[:-1]


@program(ONE + LARGE, mutates=(0,))
def shifted_down(a):
    a[:-1] += a[1:]


@program(ONE + LARGE, mutates=(0,))
def reversed_added(a):
    """numba#230."""
    a += a[::-1]


@program(ONE + LARGE[:1], mutates=(0,))
def reversed_stored(a):
    a[:] = a[::-1]


@program(ONE, mutates=(0,))
def copied_within(a):
    a[1:] = a[:-1]
    a[:-2] = a[2:]


@program(ONE[:5], mutates=(0,))
def strided_onto_itself(a):
    # += and not =: NumPy 2.4 itself reads what it has overwritten in a[::2] = a[:n] (see docs/semantics.md)
    a[::2] += a[: (len(a) + 1) // 2]
    a[1::3] += a[: len(a[1::3])]


@program(ONE, mutates=(0,))
def three_point_mean(a):
    a[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3 if a.dtype.kind == "f" else a[:-2] + a[2:]


@program(MATRICES, mutates=(0,))
def row_above_added(a):
    for i in range(1, a.shape[0]):
        a[i, 1:-1] += a[i - 1, 1:-1]


@program([m for m in MATRICES if m[0].dtype != "i4"], mutates=(0,))
def seidel_row(a):
    for i in range(1, a.shape[0] - 1):
        a[i, 1:-1] += a[i - 1, 1:-1] + a[i, 2:] + a[i + 1, 1:-1]
        for j in range(1, a.shape[1] - 1):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 9.0


@program([(arr("f8", 8), 0.5), (arr("f4", 7), 0.25), (arr("f8", 2), 2.0), large(arr("f8", 50_000), 0.5)], mutates=(0,))
def durbin_update(y, c):
    k = len(y) - 1
    y[:k] += c * y[:k][::-1]


@program([(arr("f8", 7),), (arr("f4", 5),)], mutates=(0,))
def durbin_by_flip(y):
    for k in range(1, len(y)):
        y[:k] += 0.25 * np.flip(y[:k])


@program(
    [
        (arr("i4", 6, 6, values="positive"),),
        (arr("f8", 5, 5, values="positive"),),
        (arr("f4", 4, 4, values="positive", layout="F"),),
    ],
    mutates=(0,),
)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@program(SQUARES, mutates=(0,))
def transposed_in_place(a):
    a[:] = a.T


@program(SQUARES, mutates=(0,))
def transpose_added(a):
    a += a.T
    a[:] = a[::-1, ::-1] - a


@program(MATRICES, mutates=(0,))
def block_moved(a):
    a[1:, 1:] = a[:-1, :-1]
    a[:-1, 1:] += a[1:, :-1]


@program(MATRICES, mutates=(0,))
def first_row_taken_from_all(a):
    a -= a[0]
    a[:] = a - a[:, :1]


@program(MATRICES[:4], mutates=(0,))
def pivot_row_eliminated(a):
    for k in range(3):
        a[k + 1 :] -= np.floor(a[k + 1 :, k : k + 1] * 0.5).astype(a.dtype) * a[k]


@program([(arr("f8", 6),), (arr("i4", 6),)], mutates=(0,))
def self_scaled(a):
    """a[0] is changed by the store that reads it."""
    a *= a[0]
    a[:] = a - a[:1]
    a[:] = a + a[-1]


@program(
    [(arr("f8", 6), arr("i8", 6, values=[5, 0, 0, 1, 2, 3])), (arr("i4", 4), arr("i8", 4, values=[1, 2, 3, 0]))],
    mutates=(0,),
)
def permuted_in_place(a, p):
    a[:] = a[p]
    a[p] = a


@program([(arr("i8", 5, values=[4, 2, 0, 1, 3]),)], mutates=(0,))
def indexed_by_itself(a):
    a[a] = a[::-1]
    a[:] = a[a]


@program([(arr("f8", 8), 0.0), (arr("f4", 8), 1.0)], mutates=(0,))
def masked_onto_itself(a, limit):
    a[1:][a[:-1] > limit] = 7
    a[a > limit] = a[a > limit][::-1]


def _shifted_pair():
    buffer = arr("f8", 10).make()
    return buffer[:-2], buffer[2:]


def _reversed_pair():
    buffer = arr("f8", 10).make()
    return buffer, buffer[::-1]


def _same_twice():
    buffer = arr("f8", 10).make()
    return buffer, buffer


def _interleaved_pair():
    buffer = arr("f8", 10).make()
    return buffer[::2], buffer[1::2]


def _touching_pair():
    buffer = arr("f8", 10).make()
    return buffer[:5], buffer[5:]


def _transposed_pair():
    buffer = arr("f8", 4, 4).make()
    return buffer, buffer.T


def _row_of_matrix():
    buffer = arr("f8", 4, 4).make()
    return buffer, buffer[1]


def _different_dtypes():
    buffer = arr("f8", 8).make()
    return buffer, buffer.view("f4")[8:]


PAIRS = [
    Case(make)
    for make in (_shifted_pair, _reversed_pair, _same_twice, _interleaved_pair, _touching_pair, _transposed_pair)
]


@program([*PAIRS, (arr("f8", 5), arr("f8", 5, seed=1))], mutates=(0, 1))
def overlapping_arguments(x, y):
    """The arguments may be views of one buffer: that is part of the signature."""
    x[:] = x + 2 * y
    x += y


@program([*PAIRS, (arr("f8", 5), arr("f8", 5, seed=1))], mutates=(0, 1))
def two_stores_to_overlapping_arguments(x, y):
    x[1:] = y[:-1]
    y[1:] = x[:-1] + 1
    return x[0] + y[-1]


@program([*PAIRS, (arr("f8", 5), arr("f8", 5, seed=1))], mutates=(0, 1))
def loop_over_overlapping_arguments(x, y):
    for i in range(1, len(x)):
        x[i] = y[i - 1] + 1
    return x


@program([Case(_row_of_matrix)], mutates=(0, 1))
def row_argument_of_matrix_argument(a, row):
    a += row
    a[0] = row - a[1]
    return a - row


@program([Case(_different_dtypes)], mutates=(0, 1))
def one_buffer_as_two_dtypes(x, y):
    y[:] = 1.5
    x[:] = x + 1
    return y.sum() != 12


@program([(arr("f8", 6, 6), 0.25), (arr("f4", 6, 6), 0.25)], mutates=(0,))
def view_of_the_same_buffer(big, c):
    """Gray-Scott: u is the inside of the array its neighbours are read from."""
    u = big[1:-1, 1:-1]
    u += c * (big[:-2, 1:-1] + big[2:, 1:-1] + big[1:-1, :-2] + big[1:-1, 2:] - 4 * u)


@program([(arr("f8", 6),), (arr("i4", 6),)], mutates=(0,))
def read_again_after_store(a):
    b = a[1:] * 2
    a[:-1] = b
    return b - a[1:], a[:2] + b[:2]


@program([(arr("f8", 4, 5),)], mutates=(0,))
def rows_swapped(a):
    a[0], a[1] = a[1].copy(), a[0].copy()
    a[[2, 3]] = a[[3, 2]]


@program([(arr("f8", 4, 5),)], mutates=(0,))
def rows_swapped_wrongly(a):
    """Both right-hand sides are views: the second store reads what the first wrote."""
    a[0], a[1] = a[1], a[0]


@program([(arr("f8", 6),), (arr("f8", 6, layout="stepped"),)], mutates=(0,))
def out_overlaps_input(a):
    np.add(a[:-1], a[1:], out=a[1:])
    np.multiply(a[::-1], 2, out=a)


@program([(arr("f8", 6),), (arr("i8", 6),)], mutates=(0,), regrouped=4)
def scan_onto_itself(a):
    a[:] = np.cumsum(a)
    a[1:] = np.cumsum(a)[:-1]


def _swapped() -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    a, b = np.arange(8.0), np.arange(8.0) * 3
    return a, b, b, 4


@program([_swapped, (arr("f8", 6), arr("f8", 6), arr("f8", 6), 3)], mutates=(0, 1, 2), order=False)
def stored_under_swapped_names(a, b, c, n):
    for i in range(n):
        a[1:] = c[:-1] + i
        a, b = b, a
    return a


@program([(arr("f8", 4), arr("f8", 4, seed=1)), lambda: (np.arange(4) / 3,) * 2], mutates=(0, 1), opaque=None)
def two_outputs_that_share_memory(a, b):
    np.divmod(a, 0.4, out=(b, b))
    np.modf(b[1:], out=(a[:-1], a[1:]))
    np.divmod(b, 3, out=(a, b))


@program([(arr("f8", 4, 2),), (arr("i4", 4, 2, layout="stepped"),)], mutates=(0,), opaque=None)
def rows_of_itself_in_a_list(a):
    """NumPy stores what stands in a sequence one after the other; nothing is copied first."""
    a[:] = [a[3], a[0], a[1], a[2]]
    a[1:3] = a[2], a[1]
    a[[0, 1]] = [a[1], a[0]]


@program([(arr("f8", 3, 1),)], mutates=(0,), opaque=None)
def rows_of_itself_sorted(a):
    a[0, 0] = 4
    a[:] = sorted(a)


@program([(arr("f8", 9), 0), (arr("f8", 9), 1), (arr("i4", 8), 4)])
def buffers_that_change_places(x, times):
    """Two arrays that a loop exchanges stay two."""
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u, v


@program([(arr("f8", 9), 3)])
def names_of_one_array_that_change_places(x, times):
    u = v = x.copy()
    for _ in range(times):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u + 0, v + 0


@program([(arr("f8", 9), 3)])
def buffers_that_become_one(x, times):
    """From the second iteration on both names are of one array."""
    u, v, w = x.copy(), x.copy(), x.copy()
    for _ in range(times):
        v[1:] = u[:-1] + w[1:]
        w, u = u, v
    return u + 0, v + 0, w + 0


@program([(arr("f8", 9), 5)])
def three_buffers_that_change_places(x, times):
    a, b, c = x.copy(), x + 1, x * 2
    for i in range(times):
        c[1:-1] = a[:-2] + b[2:]
        if i % 2:
            a, b = b, a
        a, b, c = b, c, a
    return a, b, c


@program([(arr("f8", 2, 9), 3)], mutates=(0,))
def views_that_change_places(x, times):
    """Rows of one array, and parts of it that overlap."""
    u, v = x[0], x[1]
    for _ in range(times):
        v[1:] = u[:-1] + 1
        u, v = v, u
    p, q = x[0, :-1], x[0, 1:]
    for _ in range(times):
        q[:] = p + 1
        p, q = q, p


@program([(arr("f8", 9), 2)])
def buffers_that_inner_loops_exchange(x, times):
    u, v = x.copy(), x.copy()
    for _ in range(times):
        for _ in range(times):
            v[1:] = u[:-1] * 2
            u, v = v, u
        u[:-1] = v[1:] + 1
        u, v = v, u + 0
    return u, v


@program([*ONE, (arr("f8", 9, values="special"),)], mutates=(0,))
def plus_its_mirror_image(x):
    """Both elements of a pair change at once; the one in the middle is its own image."""
    x += 3 * x[::-1]
    for k in range(1, len(x)):
        x[:k] -= np.flip(x[:k]) * x[k]
    x[1:] = x[1:] * 2 + x[1:][::-1] * np.arange(len(x[1:]))
    y = x.copy()
    y[:] = y[::-1] + x
    return y


@program(ONE, mutates=(0,))
def mirrored_beside_what_overlaps(x):
    """What is read beside the image is written, too."""
    x[:-1] = x[-2::-1] + x[1:]
    half = x[: len(x) // 2]
    half *= half[::-1] - x[len(half) : 2 * len(half)]
    half += half[::-1] * x[: len(half)]
