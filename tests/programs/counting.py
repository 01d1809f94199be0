"""Histograms, counts, sorting and sets."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, large, program, raising

VECTORS = [*variants(arr("f8", 9), "f4 i4 u1 b1", "reversed stepped", "special"), arr("f8", 0), arr("f8", 1)]
LABELS = [arr("i8", 7, values="positive"), arr("u1", 7), arr("i8", 1, values=[0]), arr("i4", 5, values=[3, 0, 3, 1])]


@program(each(VECTORS), opaque=None)
def sorted_copies(x):
    """NaN comes last."""
    return np.sort(x), np.sort(x)[::-1]


@program(each([v for v in VECTORS if v.dtype != "b1"][:6]), opaque=None, mutates=(0,))
def sorted_in_place(x):
    x.sort()
    return x


@program(each([arr("f8", 4, 5), arr("i4", 4, 5), arr("f8", 4, 5, layout="F")]), opaque=None)
def sorted_by_axis(x):
    return np.sort(x, axis=0), np.sort(x), np.sort(x, axis=None)


@program(each([arr("f8", 9), arr("f8", 0), arr("f4", 9, values="special")]), opaque=None)
def sorting_permutation(x):
    return np.argsort(x, kind="stable"), x[np.argsort(x, kind="stable")]


@program(each([arr("i4", 3, 60), arr("f8", 60, layout="reversed"), arr("b1", 40)]), opaque=None, mutates=(0,))
def unstable_orders(x):
    """Which of equal elements comes first is NumPy's choice, on a CPU: unit/library/test_unspecified_orders.py."""
    few = x + x < 1
    inner, first, whole = np.argsort(few), few.argsort(0), np.argsort(few, axis=None, kind="heapsort")
    both = np.lexsort((few.ravel(), x.ravel()))
    taken = np.take_along_axis(few, inner, -1), np.take_along_axis(few, first, 0), few.ravel()[whole], x.ravel()[both]
    x.sort(0)
    return taken, np.sort(inner), np.sort(first, axis=0), np.sort(whole), np.sort(both)


@program(each([arr("f8", 6, 9), arr("f4", 0, 3), large(arr("f8", 3000, 40), host_only=True)]), opaque=None, regrouped=8)
def smallest_of_each_line(x):
    """Lines sorted in a loop."""
    total = np.zeros(len(x))
    for i in range(len(x)):
        order = np.argsort(x[i])
        total[i] = np.sort(x[i] * 2)[:3].sum() + x[i, order[0]]
    return total


@program(each([arr("f8", 8), arr("f8", 7), arr("i4", 6), arr("f8", 3, 4)]), opaque=None, regrouped=8)
def medians(x):
    return np.median(x), np.percentile(x, 25), np.quantile(x, 0.5)


@program(each([arr("i4", 9), arr("f8", 6, values=[2, 1, 2, 3, 1]), arr("i4", 0)]), opaque=None)
def distinct(x):
    return np.unique(x), len(np.unique(x))


@program(each([*LABELS, arr("i8", 0), large(arr("i8", 100_000, values="positive"))]))
def counts(x):
    return np.bincount(x)


@program(each(LABELS))
def counts_of_given_length(x):
    return np.bincount(x, minlength=12), np.bincount(x, minlength=2).sum()


@program([(arr("i8", 6, values="positive"), arr("f8", 6)), (arr("u1", 6), arr("f4", 6))], regrouped=8)
def weighted_counts(x, weights):
    return np.bincount(x, weights=weights)


@program([raising(ValueError, arr("i8", 3, values=[1, -1, 2]))], message=True)
def negative_labels(x):
    return np.bincount(x)


@program(
    [
        *((arr("f8", 20), 5), (arr("i4", 20), 4), (arr("f4", 20), 3)),
        *((arr("f8", 6, values=[1.0]), 4), (arr("f8", 0), 3), (arr("f8", 700), 30)),
    ],
    ulp=2,
)
def histogram(x, bins):
    counts, edges = np.histogram(x, bins)
    return counts, edges


@program([(arr("f8", 20, values="unit"), 4), (arr("f8", 9, values=[-1, -0.5, 0, 0.5, 1, 1.5, -2]), 4)])
def histogram_of_range(x, bins):
    return np.histogram(x, bins=bins, range=(-1.0, 1.0))[0]


@program([(arr("f8", 12), 3, arr("f8", 12, seed=1))], regrouped=8)
def weighted_histogram(x, bins, weights):
    return np.histogram(x, bins, weights=weights)[0] / np.histogram(x, bins)[0]


_FAR = np.array([-50.0, -1.0, 0.0, 0.5, 50.0])
_NOT_FINITE = np.array([1.0, np.inf, 2.0, np.nan, 1.0, 3.0])


@program(
    [
        large(arr("f8", 140_000), 3, arr("f4", 140_000, seed=1)),
        *((arr("f8", 6), bins, weights) for bins in (3, _FAR) for weights in (_NOT_FINITE, arr("bool", 6))),
        *((arr("f8", 6), bins, arr("u1", 6)) for bins in (3, _FAR)),
    ],
    opaque=None,
)
def weights_of_many_kinds(x, bins, weights):
    try:
        return np.histogram(x, bins, weights=weights)[0]
    except TypeError:
        return None


@program([(arr("u1", 9), 16), (arr("i4", 7, values="positive"), 10), large(arr("u1", 100_000), 16)])
def histogram_by_loop(x, bins):
    counts = np.zeros(bins, np.int64)
    for v in x:
        counts[v % bins] += 1
    return counts


@program([(arr("i8", 8, values=[0, 1, 0, 2, 1]), arr("f8", 8), 3)])
def sums_by_label(labels, values, n):
    sums, sizes = np.zeros(n), np.zeros(n, int)
    for i in range(len(labels)):
        sums[labels[i]] += values[i]
        sizes[labels[i]] += 1
    return sums, sizes


@program([(arr("i4", 9),), (arr("f8", 6),), (arr("i4", 1),)], mutates=(0,))
def insertion_sort(x):
    for i in range(1, len(x)):
        key, j = x[i], i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


@program([(arr("f8", 8, values="ascending"), 4.5), (arr("f8", 8, values="ascending"), -1), (arr("f8", 0), 3.0)])
def bisection(x, v):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


@program([(arr("i4", 6), 2), (arr("i4", 6), 100)], opaque=None)
def membership(x, v):
    return v in x, np.isin(x, [1, 2, v]), np.any(x == v)


@program(
    [(arr("f8", 5), arr("f8", 5)), (arr("f8", 5), arr("f8", 5, seed=1)), (arr("i4", 3), arr("f8", 3))], opaque=None
)
def equality(x, y):
    return np.array_equal(x, y), np.allclose(x, y), np.isclose(x, y).sum(), (x == y).all()


@program(each([arr("b1", 191), arr("b1", 385), arr("u1", 600), arr("i1", 4, 200), arr("b1", 400, layout="reversed")]))
def flags_in_bytes(m):
    """Bytes are counted in runs, whose lengths these straddle."""
    return np.count_nonzero(m), np.sum(m == 1), (m > 0).sum(axis=0), np.flatnonzero(m), m[m != 0]


@program([(arr("f8", 6, 30),), (arr("f4", 3, 8),), (arr("i4", 40, 5),)])
def quantiles_of_lines(x):
    missing = np.where(x > 0.5, np.nan, x)
    low, high = np.quantile(x, [0.25, 0.75], axis=1)
    return low, high, np.percentile(x, 30, axis=0, method="hazen"), np.nanquantile(missing, 0.4, axis=1, keepdims=True)


@program([(arr("f8", 6, 40, values="special"),), (arr("f8", 5, 7),)])
def medians_of_numbers(x):
    x = np.where(x > 0.5, np.nan, x)
    return np.nanmedian(x, axis=1), np.nanmedian(x), np.median(x, axis=(0, 1), keepdims=True)


@program([(arr("i8", 0),), (arr("i8", 4, values=[3, 1, 1, 0]),)], fell_back=None)
def weighed_or_nothing(x):
    """Nothing is counted as integers, whatever it weighs."""
    return np.bincount(x, weights=x * 0.5, minlength=2)


@program(
    [(arr("u1", 2), 1), (arr("u1", 2), 2), (np.array([2**64 - 1], "u8"), 2), (np.array([True]), 1), (arr("f4", 1), 1)],
    opaque=None,
    fell_back=None,
)
def counted_from_numbers_of_other_types(x, k):
    first = x[0] if k > 1 else True
    total = 0
    for i, _ in enumerate([1.5, 2], first):
        total = total + i * 2
    return total, list(enumerate([1.5, 2], first)), i


@program([(np.uint64(2**64 - 1),), (np.int8(-3),), (True,), (2**63,)], opaque=None, fell_back=None)
def counted_from_a_number(first):
    return [(i, v) for i, v in enumerate((1.5, 2), first)]


@program([(np.True_,), (1.5,), (None,)], opaque=None, fell_back=None, raises=TypeError, message=True)
def counted_from_what_is_no_integer(first):
    return list(enumerate((1.5, 2), start=first))


@program(
    [
        (arr("f8", 70, 4), arr("i8", 70, values=[0, 3, -1, 1, 1]), 5),
        (arr("f4", 9, 3, layout="F"), arr("i4", 9, values=[2, 0, 0]), 3),
        (arr("f8", 3, 0), arr("i8", 3, values=[1]), 2),
        raising(IndexError, arr("f8", 300, 4), arr("i8", 300, values=[0, 1, 5, 7]), 5),
        raising(IndexError, arr("f8", 3, 0), arr("i8", 3, values=[1, 2]), 2),
    ],
    message=True,
    regrouped=40,
)
def rows_added_to_new_sums(points, labels, count):
    """Nothing sees what has been added before an index that is out of bounds."""
    sums, sizes = np.zeros((count, points.shape[1])), np.zeros(count)
    np.add.at(sums, labels, points)
    np.add.at(sizes, labels, 1.0)
    return sums, sizes


@program(
    [
        (arr("f8", 700, values=[0.25, 0.5, 0.875]), 8),
        large(arr("f8", 40_000, values=[0.25, 0.5, 0.875, -0.25]), 8),
        large(arr("f8", 40_000, values=[0.25] * 39_001 + [1.5, 2.5]), 8, raises=IndexError),
        raising(IndexError, arr("f8", 259, values=[0.25] * 257 + [2.5, 1.5]), 8),
    ],
    message=True,
)
def places_counted_as_they_are_found(x, bins):
    counts = np.zeros(bins, np.int64)
    np.add.at(counts, (x * bins).astype(np.int64), 1)
    return counts


@program([raising(IndexError, arr("f8", 6), arr("i8", 5, values=[1, 1, 7, 1, 9]))], message=True)
def argument_before_an_index_that_fails(x, at):
    """What the caller sees has not been changed."""
    np.add.at(x, at, 1.0)


@program(
    [
        (arr("f8", 30), arr("f8", 30), 4),
        (arr("f8", 0), arr("f8", 0), 4),
        raising(ValueError, arr("f8", 30, values="special"), arr("f8", 30), 4),
        (arr("f4", 30), arr("f8", 30), 4),
        (arr("i4", 30), arr("f8", 30), 4),
        raising(ValueError, arr("f8", 30), arr("f8", 29), 4),
        large(arr("f8", 140_000), arr("f8", 140_000), 4),
    ],
    regrouped=40,
)
def counts_and_sums_of_one_array(x, weights, bins):
    """Both scatters are one loop; each target gets its values in order."""
    return np.histogram(x, bins)[0], np.histogram(x, bins, weights=weights)[0]


@program([(arr("f4", 0), 10), (arr("f2", 0), 10), (arr("f8", 0), 10), (arr("f4", 5), 10)])
def edges_of_histograms_of_nothing(x, bins):
    """They are computed in float64, and rounded to what the array has."""
    return np.histogram(x, bins)


@program([(arr("f8", 300, values="positive"), arr("f8", 300), 4)], mutates=(1,), regrouped=40)
def scatters_with_a_change_between(x, y, count):
    """The second one reads what the statements between have stored, the last one what the first one has added."""
    at = (1000 * np.sqrt(x) / np.sqrt(1 + x)).astype(np.int64) % count
    one, two, three = np.zeros(count), np.zeros(count), np.zeros(count)
    np.add.at(one, at, y)
    y[0] = 7.0
    np.add.at(two, at, y)
    np.add.at(three, at, one[at])
    return one, two, three


@program([(arr("f8", 60), arr("f8", 60, seed=1))], regrouped=8)
def histograms_that_share_in_pairs(x, y):
    """The first shares its places with the last, the second its weights: only two of them are one loop."""
    return (
        np.histogram(x, 7, (-2.0, 2.0))[0],
        np.histogram(y, 7, (-2.0, 2.0), weights=x / 3 / 4 / 5 / 6 / 7)[0],
        np.histogram(x, 7, (-2.0, 2.0), weights=(x / 3 / 4 / 5 / 6 / 7) * y)[0],
    )
