"""Reading by index: integers, slices with any step, ellipsis, newaxis, integer and boolean arrays, mixtures."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, program, raising

VECTORS = variants(arr("f8", 8), "f4 i4 b1", "reversed stepped readonly")
MATRICES = variants(arr("f8", 4, 5), "f4 i4", "F stepped reversed")
CUBES = [arr("f8", 2, 3, 4), arr("i4", 2, 3, 4, layout="F")]


@program(
    [(v, i) for v in VECTORS[:4] for i in (0, 3, -1)]
    + [(VECTORS[0], np.int32(2)), (VECTORS[0], -8), (VECTORS[0], np.uint8(5))]
)
def element(x, i):
    """Elements are NumPy scalars."""
    return x[i]


@program([(MATRICES[0], 1, -2), (MATRICES[3], 3, 0), (MATRICES[4], -4, 4), (MATRICES[1], np.int64(2), 2)])
def element_of_matrix(x, i, j):
    return x[i, j], x[i][j], x[(i, j)]


@program([(x, flag) for x in (arr("f8", 3, 3), arr("i4", 3, 3, layout="F")) for flag in (True, np.False_)])
def bool_adds_an_axis(x, flag):
    """A truth value selects all or nothing, and is broadcast with other arrays of indices."""
    return x[flag], x[0, flag, 1:], x[x[:, 0] > 9, flag], x[[2], ..., flag, [1]], x[None, x[0, 0] > 0]


@program([raising(IndexError, arr("f8", 2, 3, 4), True)], message=True)
def axes_are_counted_without_truth_values(x, flag):
    return x[flag, 0, [2, 3]]


@program(each([*MATRICES, arr("f8", 4, 1), CUBES[0]]))
def rows_and_columns(x):
    return x[0], x[-1], x[:, 0], x[..., -1]


@program([(VECTORS[0], 2, 6), (VECTORS[1], -3, -1), (VECTORS[4], 0, 100), (VECTORS[5], 5, 2), (VECTORS[0], -100, 3)])
def slice_bounds(x, a, b):
    return x[a:b], x[:b], x[a:], x[a:b] * 2


@program([(v, s) for v in (VECTORS[0], VECTORS[4], VECTORS[5]) for s in (2, -1, -3, 100)])
def slice_steps(x, step):
    return x[::step], x[1:7:step], x[6:1:step]


@program([raising(ValueError, arr("f8", 4), 0)], message=True, fell_back=None)
def slice_step_zero(x, step):
    return x[::step]


@program(each(MATRICES))
def slices_of_matrix(x):
    return x[1:3, ::2], x[::-1, ::-1], x[1:-1, 1:-1], x[3:0:-2]


@program(each(CUBES))
def ellipsis_and_newaxis(x):
    return x[..., 0], x[0, ...], x[:, None], x[..., None, 1], x[np.newaxis, ..., 1:]


@program(each([arr("f8"), arr("f8", 3)]))
def whole(x):
    return x[...], x[()] if x.ndim == 0 else x[:]


@program(
    [
        (VECTORS[0], arr("i8", 4, values=[0, 3, -1, 3])),
        (VECTORS[2], arr("i4", 3, values=[-8, 7, 0])),
        (VECTORS[5], arr("u1", 2, values=[1, 2])),
        (VECTORS[0], arr("i8", 0)),
        (VECTORS[0], arr("i8", 2, 2, values=[0, 1, 2, 3])),
    ]
)
def gather(x, at):
    return x[at], x[at] + 1


@program(
    [(MATRICES[0], arr("i8", 3, values=[2, 0, -1])), (MATRICES[3], arr("i4", 2, 2, values=[1, 1, 0, 3]))], order=False
)
def gather_rows(x, at):
    return x[at], x[:, at], x[at, 1], x[at, ::2]


@program(
    [
        (MATRICES[0], arr("i8", 3, values=[2, 0, -1]), arr("i8", 3, values=[4, -5, 1])),
        (MATRICES[1], arr("i8", 2, 1, values=[0, 3]), arr("i8", 3, values=[0, 1, 2])),
    ]
)
def gather_points(x, i, j):
    return x[i, j]


@program([(arr("f8", 3, 4, 5), arr("i8", 2, values=[0, 2]), arr("i8", 2, values=[1, 3]))], order=False)
def separated_index_arrays(x, i, j):
    """Index arrays separated by a slice move their axes to the front."""
    return x[i, :, j], x[:, i, j], x[i, j], x[0, :, j]


@program(
    [
        (VECTORS[0], arr("b1", 8)),
        (VECTORS[3], arr("b1", 8, seed=5)),
        (VECTORS[5], arr("b1", 8, values=[False])),
        (arr("f8", 0), arr("b1", 0)),
    ]
)
def compress(x, mask):
    return x[mask], x[~mask]


@program([(MATRICES[0], 0.0), (MATRICES[3], 0.5), (MATRICES[2], 100)])
def compress_by_condition(x, limit):
    return x[x > limit], x[(x > -1) & (x <= limit)].size


def _many(dtype, length, *, step):
    """So many elements, and a mask with one true flag in `step`, those of the first 64 false."""
    mask = [at >= 64 and at % step == 0 for at in range(length)]
    return arr(dtype, length), arr("b1", length, values=mask), 0.5


@program(
    [
        _many("f8", 200, step=70),
        _many("c16", 191, step=2),
        _many("c8", 256, step=1),
        _many("f4", 64, step=1),
        _many("i2", 130, step=3),
        _many("u1", 320, step=9),
        _many("b1", 129, step=5),
    ]
)
def compress_many(x, mask, limit):
    """Whole groups of elements are packed from where they are; behind them some are left."""
    kept = x[abs(x) > limit]
    return x[mask], x[~mask], kept, x[1:][mask[:-1]], (x[::2] * 2)[mask[::2]], x[::-1][mask]


@program([(MATRICES[0], arr("b1", 4)), (MATRICES[3], arr("b1", 4, seed=2))])
def compress_rows(x, mask):
    return x[mask], x[mask, 1], x[mask][:, ::2]


@program([(VECTORS[0], 0.0), (VECTORS[1], 100.0), (VECTORS[2], 0)])
def sums_of_compressed(x, limit):
    chosen = x[x > limit]
    return chosen.sum() if chosen.size else 0.0, len(chosen)


@program([(MATRICES[0], [0, 2]), (VECTORS[0], [1, 1, -1])])
def list_as_index(x, at):
    return x[at], x[[0, 1]]


@program([(VECTORS[0], arr("i8", 3, values=[0, 3, -1])), (MATRICES[3], arr("i8", 2, values=[5, 19]))])
def taken(x, at):
    return np.take(x, at), x.take(at)


@program([(MATRICES[0], arr("i8", 3, values=[0, 3, 1])), (MATRICES[4], arr("i8", 2, values=[2, -1]))], order=False)
def taken_by_axis(x, at):
    return np.take(x, at, axis=0), np.take(x, at, axis=1), x.take(at, axis=-1)


@program(
    each([arr("f8", 6, values=[0, 1, 0, -2, np.nan, 0]), arr("i4", 5), arr("b1", 6), arr("f8", 0), arr("b1", 2, 3)])
)
def positions(x):
    return np.nonzero(x), np.flatnonzero(x), np.argwhere(x), x.nonzero()


@program([(VECTORS[0], 0.0), (MATRICES[3], 0.5), (arr("f8"), 0.0)])
def where_positions(x, limit):
    return np.where(np.atleast_1d(x) > limit)


@program(
    [
        (arr("b1", 5), arr("f8", 5), arr("f8", 5, seed=1)),
        (arr("b1", 3, 1), arr("f4", 4), arr("f8", 3, 4)),
        (arr("i4", 4), 1, 2.5),
        (True, arr("f8", 2), 0),
    ]
)
def choose_where(c, x, y):
    return np.where(c, x, y)


@program(
    [
        (arr("f8", 6), -1, 1),
        (arr("i4", 6), 0, 3),
        (arr("f4", 6), -0.5, np.float64(0.5)),
        (arr("f8", 11, values="special"), -1.0, 1.0),
        (arr("u1", 5), 2, 300),
        (5.5, 0, 3),
    ]
)
def clipped(x, low, high):
    return np.clip(x, low, high if high != 300 else 6)


@program([(arr("f8", 6), arr("f8", 6, seed=1)), (arr("f4", 3), arr("f4", 3))])
def clipped_one_side(x, y):
    return np.clip(x, None, 0.5), x.clip(0), np.clip(x, y, y + 1), x.clip(min=y)


@program([(arr("i8", 5, values=[0, 2, 1, 1, 0]), arr("f8", 5), arr("f8", 5, seed=1))], opaque=None)
def choose_and_select(k, x, y):
    return np.choose(k, [x, y, x + y]), np.select([k == 0, k == 1], [x, y], default=-1)


@program(
    [
        (arr("u1", 5), 300),
        (arr("u1", 5), -1),
        (arr("u1", 5), 2.5),
        (arr("f4", 5), 1e300),
        (arr("f4", 5), 2j),
        (np.uint8(1), 5),
        (True, 2),
        (arr("u1", 5), [1, 2, 3, 4, 5]),
    ]
)
def chosen_from_arrays_and_numbers(x, y):
    return np.choose([0, 1, 1, 0, 1], [x, y])


@program([(MATRICES[0], 2), (MATRICES[3], -1)])
def scalar_index_arithmetic(x, i):
    n = x.shape[0]
    return x[i % n, (i + 1) % n], x[n - 1, -n], x[i // 2]


@program(each([arr("i8", 6, values=[3, 5, 1, 0, 2, 4]), arr("i4", 3, values=[2, 0, 1])]))
def inverse_permutation(p):
    inverse = np.empty_like(p)
    for i in range(len(p)):
        inverse[p[i]] = i
    return inverse, p[inverse], p[p]


@program(
    [(arr("f8", 8), arr("i8", 5, values=[0, 2, 4, 6, 8])), (arr("f4", 4), arr("u4", 3, values=[0, 0, 4]))], regrouped=4
)
def sums_of_segments(x, starts):
    """Slices whose bounds are data."""
    out = np.zeros(len(starts) - 1)
    for k in range(len(starts) - 1):
        out[k] = np.sum(x[starts[k] : starts[k + 1]])
    return out


@program([(MATRICES[0], slice(1, 3)), (VECTORS[0], slice(None, None, -2)), (VECTORS[5], slice(2))])
def slice_as_argument(x, s):
    return x[s] + 1


@program(each([arr("f8", 4, 4), arr("i4", 3, 3, layout="F")]), opaque=None)
def item_and_tolist(x):
    return x.item(0), x[1, 1].item(), x[0].tolist(), float(x[0, 0])


@program([(arr("f8", 5), arr("f8", 3)), (arr("i4", 4), arr("f8", 1))], opaque=None)
def interpolated(x, at):
    return np.interp(at, np.arange(x.size), x), np.searchsorted(np.arange(5.0), at)


@program(
    [
        (arr("f8", 70, values="ascending"), arr("f8", 4, 75), True),  # some numbers are in order, some beside a NaN
        (arr("f8", 70, values="ascending"), arr("f8", 300, values="special"), False),
    ],
    opaque=None,
)
def places_in_long_tables(bins, x, right):
    falling = bins[::-1] - 20
    return np.digitize(x, bins, right), np.digitize(x, falling, right), np.digitize(np.sort(x, axis=None), bins, right)


@program(
    [
        (arr("f8", 3), arr("b1", 0)),
        (arr("f8", 0, 1), arr("b1", 0)),
        (arr("f8", 2, 2), arr("b1", 0, 2)),
        raising(IndexError, arr("f8", 2, 2), arr("b1", 0, 3)),
        raising(IndexError, arr("f8", 4), arr("b1", 3)),
    ],
    mutates=(),
)
def mask_without_elements(x, m):
    """A mask of extent 0 is a mask for any extent."""
    y = x + 1
    y[m] = 0
    return x[m], y


@program([(arr("f8"),), (arr("i4", values=[3]),)], opaque=None)
def mask_of_no_axes(x):
    """A bool is an index that adds an axis."""
    return x[x > 1], x[...][x[...] <= 1]


@program(
    [(arr("i8", 2, 3), arr("i8", values=[1])), (arr("i8", 2, 3), 1), (arr("f8", 3, 2, 2), np.int64(-1))], mutates=(0,)
)
def row_by_any_integer(a, i):
    """By an integer it is a view, by an array without axes a copy."""
    row = a[i]
    row += 5
    return a, row, a[..., i]


@program(
    [
        *((arr("f8", 300), k) for k in (np.int8(100), np.int16(299), np.int64(3))),
        *(raising(IndexError, arr("f8", 300), k) for k in (np.uint8(200), np.int8(-6))),
        raising(ValueError, arr("f8", 300), -7),
    ],
    opaque=None,
    message=True,
    mutates=(0,),
)
def integers_of_other_types(x, k):
    """Numbers of NumPy as offsets, counts, extents and places."""
    found = np.diag(x[:3], k)[:2, -3:].copy(), np.tri(3, 3, k), np.eye(3, 4, k)
    x[0] = 3
    if k > 250:
        return found, np.broadcast_to(x, (k, 300))[1]
    if k > 150:
        return found, (1, 2, 3)[k]
    if k > 50:
        return found, x.reshape(k, -1).shape, np.pad(x, k).shape
    if k > 0:
        return found, np.tile(x, k).size, [1, 2, 3, 4][k]
    return found, x.reshape(k, -1) if k == -7 else [1, 2][k]


HUGE = np.uint64((1 << 63) + 1), np.uint64((1 << 64) - 1)


@program(
    [(arr("f8", 5), np.uint64(i)) for i in (0, 3)] + [raising(OverflowError, arr("f8", 5), i) for i in HUGE],
    message=True,
)
def places_without_a_sign(x, i):
    return x[i], x[i::-1], (1, 2.5, 3.0, 4.0)[i]


@program([(arr("f8", 5), i) for i in (*map(np.uint64, (0, 3, 5)), *HUGE)])
def slices_without_a_sign(x, i):
    return x[i:], x[:i], x[i::-1], x[:i:-2], x[1:i:2]


@program(
    [
        (arr("f8", 5), -1, 0),
        (arr("f8", 5), 2, 1),
        raising(ValueError, arr("f8", 5), -1, 1),
        raising(IndexError, arr("f8", 5), 7, 0),
    ],
    message=True,
)
def checked_only_on_a_path(x, k, n):
    """What a check in a branch or loop has shown of a number does not hold where it is not reached."""
    size = 0
    if n > 0:
        size = len(np.zeros(k))
    for _ in range(n):
        size += len(np.ones((k, 2)))
    try:
        size += np.zeros(k)[0]
    except ValueError:
        size -= 1
    return x[k], x[k:].copy(), size


@program([(arr("f8", 3),), raising(IndexError, arr("f8", 0))], message=True)
def last_one_if_there_is_one(x):
    last = len(x) - 1
    total = 0.0
    if len(x) > 2:
        total = x[-1]
    return x[last] + total


@program([(np.bool_(True),), (np.bool_(False),)], raises=TypeError, message=True)
def truth_as_an_extent(flag):
    for _ in range(2):
        np.ones((flag, 2))


@program(
    [
        (arr("f8", 3, 4, 2), arr("i4", 2, 2, values=[0, -1, 3, 1])),
        (arr("u1", 2, 3, layout="F"), arr("i8", 5, values=[2, 0])),
        (arr("f8", 0, 3), arr("i8", 2, values=[7])),
        raising(IndexError, arr("f8", 2, 3), arr("u1", 2, values=[0, 3])),
        raising(IndexError, arr("f8", 2, 3, 0), arr("i8", 1, values=[7])),
    ]
)
def taken_along_a_later_axis(a, places):
    return np.take(a, places, axis=1), a.take(places, 1, mode="clip" if len(a) else "raise")


@program([(arr("f8", 5), np.uint64(m)) for m in (2, 2**63, 2**64 - 1)])
def slices_of_large_unsigned_bounds(x, m):
    return x[::m], x[m:], x[:m]


@program(
    [
        raising(IndexError, arr("f8", 3, 4), arr("i8", 2, values=one), arr("i8", 2, values=other))
        for one, other in [([0, 1], [1, 9]), ([5, 0], [1, 9]), ([0, -4], [-5, 0]), ([0, 2], [0, 4]), ([0, 7], [-5, 0])]
    ],
)
def several_index_arrays(x, i, j):
    return x[i[:, None], j], x[i, j]


NOT_THERE = [
    raising(IndexError, arr("f8", 0, 0), arr("i8", 3, values=[0, -1, 0])),
    raising(IndexError, arr("f8", 2, 0), arr("i8", 1, values=[5])),
    raising(IndexError, arr("f4", 0, 2, 0), arr("i8", 2, values=[1, -1])),
    (arr("f8", 2, 0), arr("i8", 2, values=[1, -2])),
    (arr("f8", 0, 0), arr("i8", 0)),
    (arr("f8", 3, 2), arr("i8", 2, values=[2, -3])),
]


@program(NOT_THERE, message=True, fell_back=None)
def indices_beside_an_axis_without_elements(x, i):
    """NumPy looks at all indices, also where what they select is empty."""
    return x[i]


@program(NOT_THERE, message=True, fell_back=None, mutates=(0,))
def stores_beside_an_axis_without_elements(x, i):
    x[i] = 3
    x[i] += 1
    return np.take(x, i, axis=0)
