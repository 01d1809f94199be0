"""Writing by index: elements, slices, broadcasts, integer and boolean arrays, with and without an operator."""

import math

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import Case, case, large, program, raising

VECTORS = variants(arr("f8", 8), "f4 i4", "reversed stepped")
MATRICES = variants(arr("f8", 4, 5), "f4 i4", "F stepped reversed transposed")


@program([(v, i) for v in VECTORS for i in (0, -1)] + [(VECTORS[0], np.int32(3))], mutates=(0,))
def element(x, i):
    x[i] = 5
    x[i] += x[i - 3]


@program([(MATRICES[0], 1, -2), (MATRICES[3], 3, 0), (MATRICES[4], -4, 2)], mutates=(0,))
def element_of_matrix(x, i, j):
    x[i, j] = x[j, i] = 3
    x[i][j] *= 2


@program([(MATRICES[0], 2.5), (MATRICES[3], 2.5), (MATRICES[2], 2), (MATRICES[6], np.float32(1))], mutates=(0,))
def scalar_to_slices(x, a):
    x[0] = a
    x[:, -1] = a + 1
    x[1:-1, 1:-1] = 0
    x[::2, ::-2] -= a


@program([(m, arr("f8", 5)) for m in MATRICES], mutates=(0,))
def row_to_slices(x, row):
    x[1] = row
    x[2:, 1:] = row[1:]
    x[-1, ::-1] = row


@program(
    [(arr("f8", 3, 4), arr("f8", 3, 1)), (arr("f4", 3, 4, layout="F"), arr("f8", 1, 1)), (arr("f8", 3, 4), arr("f8"))],
    mutates=(0,),
)
def broadcast_store(x, y):
    x[:] = y
    x[1:] += y[-1:] if y.ndim else y


@program(
    [raising(ValueError, arr("f8", 3, 4), arr("f8", 3)), raising(ValueError, arr("f8", 3, 4), arr("f8", 2, 4))],
    message=True,
)
def store_of_wrong_shape(x, y):
    x[:] = y


@program(
    [
        (arr("f8", 6), arr("f8", 6, seed=1)),
        (arr("i4", 6), arr("i4", 6, seed=1)),
        (arr("f4", 6, layout="stepped"), arr("f8", 6)),
    ],
    mutates=(0,),
)
def all_augmented_operators(x, y):
    x[1:] += y[1:]
    x[:3] -= y[3:]
    x[::2] *= 2
    x[1] **= 2
    x[4:] //= 3
    x[3:] %= 5


@program([(arr("f8", 5, values="nonzero"), 2), (arr("f4", 5), 3), (arr("f8", 5, layout="reversed"), 0.5)], mutates=(0,))
def divided_in_place(x, a):
    x /= a
    x[2:] **= 2


@program([(arr("i4", 6), 3), (arr("u1", 6), 1), (arr("i8", 6, layout="stepped"), 2)], mutates=(0,))
def bit_operators_in_place(x, k):
    x <<= k
    x |= 1
    x ^= 6
    x >>= 1
    x &= 0x7F


@program(
    [
        (arr("f8", 6), arr("i8", 3, values=[4, 0, -1])),
        (arr("i4", 6), arr("i4", 2, values=[1, 5])),
        (arr("f8", 6), arr("i8", 0)),
    ],
    mutates=(0,),
)
def scatter(x, at):
    x[at] = 7
    x[at] += np.arange(len(at))


@program(
    [
        (arr("f8", 6), arr("i8", 5, values=[1, 1, 2, 1, -1]), arr("f8", 5)),
        (arr("f4", 4), arr("i8", 3, values=[0, 0, 0]), arr("f4", 3)),
    ],
    mutates=(0,),
)
def scatter_to_equal_places(x, at, y):
    """The last of equal places wins; += reads before it writes, so it adds once."""
    x[at] = y
    x[at] += y


@program(
    [
        (arr("f8", 6), arr("i8", 5, values=[1, 1, 2, 1, -1]), arr("f8", 5)),
        (arr("i8", 3), arr("i8", 4, values=[0, 0, 2, 0]), 1),
    ],
    mutates=(0,),
)
def unbuffered_add(x, at, y):
    np.add.at(x, at, y)


@program(
    [
        (
            arr(dtype, 5, values=[1, 2, 4, 8, 3]),
            arr("i8", 40, values=[1, 1, 2, 0, -1]),
            arr(dtype, 40, values=[2, 1, 4]),
        )
        for dtype in ("f8", "f4", "f2", "i8", "i2", "u1")
    ]
    + [
        (
            arr(dtype, 5, values=[1, 2, 4, 8, 3]),
            arr("i8", 12, values=[1, 1, 2, 0, -1]),
            arr(dtype, 12, values=[2, 1, 4]),
        )
        for dtype in ("f8", "f2", "i2")
    ]
)
def unbuffered_updates(x, at, y):
    """On a GPU: atomics where it has them, loops of compare-and-swap on the word around an element where not."""
    products, least, greatest, rest, any_of = x.copy(), x.copy(), x.copy(), x.copy(), x > 2
    np.multiply.at(products, at, y)
    np.fmin.at(least, at, y)
    np.maximum.at(greatest, at, y)
    np.subtract.at(rest, at, y)
    np.add.at(rest, at, x.dtype.type(3))
    np.logical_or.at(any_of, at, y > 3)
    np.multiply.at(any_of, at, y > 0)
    np.fmin.at(any_of, at, y > 1)
    np.fmax.at(any_of, at, y > 3)
    return products, least, greatest, rest, any_of


@program(
    [
        (
            arr(dtype, 2, 3, values=special),
            arr("i8", 40, values=[1, 1, 0]),
            arr("i8", 40, values=[2, 1]),
            arr(dtype, 40),
        )
        for dtype, special in (
            ("f8", [-0.0, np.nan, 2.5, 1.5, -7.0, 0.0]),
            ("f4", [-0.0, np.inf, 1.0]),
            ("i4", [5, -9]),
        )
    ],
    regrouped=40,
)
def unbuffered_updates_along_two_axes(x, i, j, y):
    """What is not touched stays what it is: zeros their sign, NaN."""
    added, least, greatest, rest, number = x.copy(), x.copy(), x.copy(), x.copy(), x.copy()
    np.add.at(added, (i, j), y)
    np.minimum.at(least, (i, j), y)
    np.fmax.at(greatest, (i, j), y)
    np.subtract.at(rest, (i, j), y)
    np.fmin.at(number, (i * 0 + 1, j), y)
    return added, least, greatest, rest, number


@program(
    [
        (arr("f8", 4, 5), arr("i8", 2, values=[3, 1]), arr("f8", 5)),
        (arr("f4", 4, 5, layout="F"), arr("i8", 3, values=[0, 0, 2]), arr("f8", 3, 5)),
    ],
    mutates=(0,),
)
def scatter_rows(x, at, rows):
    x[at] = rows
    x[at, 0] = 9
    x[1:3, at] *= 2


@program([(arr("f8", 4, 5), arr("i8", 3, values=[3, 1, 0]), arr("i8", 3, values=[0, -1, 2]))], mutates=(0,))
def scatter_points(x, i, j):
    x[i, j] = [1, 2, 3]
    x[i, j] -= 0.5


@program(
    [
        (arr("f8", 8), 0.5),
        (arr("i4", 8), 2),
        (arr("f8", 3, 4, layout="F"), 0.0),
        (arr("f8", 11, values="special"), 0.0),
    ],
    mutates=(0,),
)
def mask_with_scalar(x, limit):
    x[x > limit] = limit
    x[x < -1] += 10
    return x


@program([(arr("f8", 8), arr("f8", 8, seed=1)), (arr("f4", 2, 3), arr("f4", 2, 3, seed=1))], mutates=(0,))
def mask_with_compressed(x, y):
    mask = x < y
    x[mask] = y[mask]
    x[~mask] = x[~mask] ** 2


@program(
    [(arr("f8", 5), arr("b1", 5), arr("f8", 5)), (arr("f8", 4), arr("b1", 4, values=[False]), arr("f8", 4))],
    mutates=(0,),
)
def mask_with_values(x, mask, y):
    x[mask] = y[: np.count_nonzero(mask)]


@program([raising(ValueError, arr("f8", 5), arr("b1", 5, values=[True]), arr("f8", 3))], message=True)
def mask_with_too_few_values(x, mask, y):
    x[mask] = y


@program([(arr("f8", 4, 5), arr("b1", 4)), (arr("f4", 4, 5, layout="F"), arr("b1", 4, seed=3))], mutates=(0,))
def masked_rows(x, mask):
    x[mask] = 0
    x[~mask, 1:3] += 1


@program([(arr("f8", 4, 5), 3.0), (arr("i4", 4, 5, layout="stepped"), 3)], mutates=(0,))
def chained_targets(x, a):
    first = x[0, 1:] = x[1:, 0][0]
    x[2, 2] = x[3, 3] = first + a
    return first


@program([(arr("f8", 4), arr("f8", 3)), (arr("i4", 4), arr("f4", 3))], mutates=(0, 1))
def tuple_targets(x, y):
    x[0], y[0] = y[1], x[1]
    (x[2], x[3]), last = (y[2], 8), x[0]
    return last


@program([(arr("f8", 5),), (arr("i4", 5),)], mutates=(0,))
def swap_elements(x):
    x[0], x[-1] = x[-1], x[0]
    for i in range(len(x) - 1):
        if x[i] > x[i + 1]:
            x[i], x[i + 1] = x[i + 1], x[i]


@program([(arr("f8", 6), 2.5), (arr("i4", 2, 3, layout="F"), 2), (arr("f8"), 1.0)], mutates=(0,))
def filled(x, a):
    x.fill(a)
    x[...] += 1
    return x


@program([(arr("f8", 3, 4), arr("f8", 3, 4, seed=1)), (arr("f4", 3, 4), arr("f8", 4))], mutates=(0,))
def copied_to(x, y):
    np.copyto(x, y)
    x[0] = -1


@program(
    [
        (arr("f8", 3, 4), arr("f8", 1, 1, 4), arr("b1", 3, 1)),
        (arr("f4", 4), arr("f8", 4, seed=1), arr("b1", 4)),
        (arr("i4", 3, 4), 7, arr("b1", 4)),
        raising(ValueError, arr("f8", 3), arr("f8", 4), arr("b1", 5)),
        raising(ValueError, arr("f8", 3), arr("f8", 1, 2, 3), arr("b1", 3)),
        raising(ValueError, arr("f8", 3), arr("f8", 3), arr("b1", 4)),
        raising(ValueError, arr("f8", 3), 2.0, arr("b1", 2, 3)),
        raising(ValueError, arr("f8", 3), arr("f8", 3), arr("b1", 1, 3)),
    ],
    message=True,
    mutates=(0,),
)
def copied_where(x, y, mask):
    for _ in range(2):  # a loop that stores is not begun again in Python: the messages are the compiler's own
        np.copyto(x, y, where=mask)


@program([(arr("f8", 5), arr("b1", 5)), (arr("i4", 5), arr("b1", 5, seed=4))], opaque=None, mutates=(0,))
def put_and_place(x, mask):
    np.putmask(x, mask, 3)
    np.put(x, [0, -1], 9)


@program([(arr("f8"), 2.0), (arr("i4"), 3)], mutates=(0,))
def zero_dimensional(x, a):
    x[()] = a
    x += 1
    x[...] *= 2
    return x


@program([(arr("f8", 0), 1.0), (arr("f8", 0, 3), 2.0)])
def stores_to_nothing(x, a):
    x[:] = a
    x += a
    x[x > 0] = 3
    return x


@program(
    [raising(ValueError, arr("f8", 4, layout="readonly")), raising(ValueError, arr("f8", 4, layout="broadcast"))],
    message=True,
)
def read_only(x):
    x[0] = 1


@program([raising(ValueError, arr("f8", 4, layout="readonly"))], message=True)
def read_only_in_place(x):
    x += 1


@program(
    [(arr("f8", n, 3, layout="readonly"), k) for n in (0, 2) for k in (0, 7)],
    raises=ValueError,
    message=True,
    opaque=None,
)
def read_only_is_asked_before_the_index(x, k):
    x[k] = 1


@program([(arr("f8", 2, layout="readonly"), arr("i8", 3))], raises=ValueError, message=True)
def read_only_is_asked_before_the_indices(x, places):
    x[places * 9] = 1


@program([(arr("f8", 3, 3), arr("i8", 3, values=[1, 2, 3])), (arr("i4", 2, 3), [5, 6, 7])], mutates=(0,))
def list_stored(x, v):
    x[0] = v
    x[1] = [1, x[0, 1], 3]


@program([(arr("f8", 6), arr("f8", 3)), (arr("f4", 6), arr("f4", 3))], mutates=(0,))
def scalars_from_arrays(x, y):
    x[0] = y[0] * 2 + 1
    x[1] = float(y[1])
    x[2] = int(y[2])
    x[3] = y.sum() > 0


@program([(arr("f8"), arr("f8", 1, seed=1)), (arr("i4"), arr("i4", 1, 1)), (arr("f8"), arr("f8"))], mutates=(0,))
def store_to_no_axes(x, y):
    """Leading axes of extent 1 are dropped."""
    x[...] = y + 0
    return x[...]


_INTEGERS = ["i8", "i1", "u1", "u8", "i4"]
_FLOATS = [2.5, -1.5, 300.7, math.nan, math.inf, 1e30, 2.0**63, np.float64(300.7), np.float64("nan"), np.float32(-1.5)]
_INTS = [np.int64(300), np.uint8(200), np.int64(-1), np.uint64(2**63), 300, -1, 2**40]


def _into_integers(index, values):
    """A case for each kind of integers and each value; it raises what NumPy raises here and now."""
    cases = []
    for dtype in _INTEGERS:
        for value in values:
            try:
                np.zeros(4, dtype)[index] = value
            except (ValueError, OverflowError) as error:
                cases.append(raising(type(error), arr(dtype, 4), value))
            else:
                cases.append(case(arr(dtype, 4), value))
    return cases


@program(_into_integers(1, _FLOATS), mutates=(0,), message=True)
def float_into_an_integer_element(a, v):
    """It is made an int first, which has to exist and to fit; NumPy's floats in unsigned arrays are cast."""
    a[1] = v
    return a


@program(_into_integers(1, _INTS), mutates=(0,), message=True)
def integer_into_an_integer_element(a, v):
    a[1] = v
    return a


@program(_into_integers(slice(1, 4), _FLOATS + _INTS), mutates=(0,), message=True)
def scalar_into_all_integers(a, v):
    a[1:] = v
    return a


@program(
    _into_integers([0, 2], [2.5, 300.7, math.nan, 1e30, np.float64(300.7), np.int64(300)]), mutates=(0,), message=True
)
def scalar_into_chosen_integers(a, v):
    """As an array that is broadcast, which is cast."""
    a[[0, 2]] = v
    a[a > 100] = v
    return a


@program(_into_integers(slice(None), _FLOATS + _INTS), mutates=(0,), message=True)
def filled_integers(a, v):
    a.fill(v)
    return a


@program([lambda: (np.zeros(4, "i1"), np.array(300.7)), lambda: (np.zeros(4, "i2"), np.array(-3))], mutates=(0,))
def array_without_axes_into_an_element(a, v):
    a[1] = v
    return a


@program([(arr("f8", 1), arr("i8", 1)), (arr("f8", 5), arr("i8", 5))])
def counts_of_few(x, i):
    """A scatter over a known number of points."""
    counts = np.zeros(9, dtype=np.int64)
    np.add.at(counts, abs(i) % 9, 1)
    return counts, np.histogram(x, 3)[0]


@program([(1, arr("i8", 10)), raising(IndexError, 3, arr("i8", 10))], message=True)
def index_from_what_was_stored(n, table):
    """The check of an iteration depends on its own store: it cannot be made before."""
    out = np.zeros((n, 3), np.int64)
    for i in range(n):
        out[i, 0] = i * 100
        out[i, 1] = table[out[i, 0]]
    return out


@program([(0, arr("f8", 4)), (40, arr("f8", 9)), raising(IndexError, 40, arr("f8", 8))])
def loop_until_what_was_stored(n, table):
    """A loop in an iteration ends by what the iteration stores."""
    out = np.zeros((n, 2), np.int64)
    total = np.empty(n)
    for i in range(n):
        out[i, 0] = i * 37
        while out[i, 0] > 9:
            out[i, 1] += out[i, 0] % 10
            out[i, 0] //= 10
        total[i] = table[out[i, 0] - 1]
    return out, total


@program(
    [(6, arr("f8", 6), arr("i8", 6, values=[2, 0, 1])), raising(IndexError, 6, arr("f8", 2), arr("i8", 6, values=[2]))]
)
def sums_beside_checked_indices(n, x, places):
    """What is added up in memory decides nothing: checks may be made before."""
    out = np.zeros(n)
    for i in range(n):
        for j in range(3):
            out[i] += x[places[i]] * j
    return out


@program([(arr("f8", 3, 3, 3), arr("f4", 2)), raising(ValueError, arr("f8", 3, 3, 2), arr("f4", 2))], mutates=(0,))
def filled_diagonal_of_a_cube(a, v):
    np.fill_diagonal(a, v)


@program([(arr("f8", 4, 5), arr("i8", 4, 5)), (arr("i8", 4, 5, layout="F"), arr("i4", 4, 5))], mutates=(0,))
def put_and_taken_along_axes(a, b):
    order = np.argsort(b, axis=1, kind="stable")
    np.put_along_axis(a, order[:, :2], a[:, -2:], 1)
    np.putmask(a, a > 1, b)
    np.place(a, b < 0, [7, 8, 9])
    return np.take_along_axis(b, order, 1), np.take_along_axis(a.T, order.T, 0)


@program([(arr("f8", 6), arr("f8", 2)), raising(IndexError, arr("f8", 4), arr("f8", 2))], mutates=(0,))
def put_until_out_of_range(a, b):
    np.put(a, [0, -1, 5, 1], b)


READ_ONLY = raising(ValueError, arr("f8", 2, 2, layout="readonly"))


@program([READ_ONLY], message=True)
def put_into_read_only(a):
    np.put(a, [0], 1)


@program([READ_ONLY], message=True)
def putmask_into_read_only(a):
    np.putmask(a, a > 0, 1)


@program([READ_ONLY], message=True)
def place_into_read_only(a):
    np.place(a, a > 9, 1)


@program([READ_ONLY], message=True)
def diagonal_of_read_only(a):
    np.fill_diagonal(a, 1)


@program(
    [
        raising(ValueError, arr("f8", 3), arr("f8", 4), arr("f8", 3, layout="readonly")),
        raising(ValueError, arr("f4", 3), arr("f8", 4), arr("f8", 3)),
    ],
    message=True,
)
def what_is_wrong_first(x, y, out):
    """NumPy looks at whether an output can be stored to, then at shapes."""
    return np.multiply(x, y, out=out)


@program([(arr("c16", 3), arr("f8", 4), arr("f8", 3))], fell_back=None)
def dtypes_before_shapes(x, y, out):
    try:
        np.multiply(x, y, out=out)
    except ValueError:
        return 1
    except TypeError:
        return 2


@program([(arr("u1"), arr("b1", 5, 3), 3), (arr("u1"), arr("b1", 5, 3), 0)], mutates=(0,), fell_back=None)
def stored_before_it_is_known_what_is_sorted(a, b, k):
    a.fill(3)
    if not k and not k:
        return b, a
    sorted(range(k))
    return k


SOME_PLACES = arr("i8", 9, values=[0, 3, -2, 4])


@program(
    [(arr("f8", 5), SOME_PLACES), raising(IndexError, arr("f8", 4), SOME_PLACES)],
    message=True,
)
def into_own_memory_while_checking(x, places):
    made = np.zeros(len(places))
    backwards = made[::-1]
    for k in range(len(places)):
        backwards[k] = x[places[k]] + 1
    return made


@program([(arr("f8", 6), 6), (arr("f8", 6), 4), raising(IndexError, arr("f8", 5), 9)])
def every_element_of_new_memory(x, n):
    made, other = np.zeros(n), np.zeros((n, 2))
    for i in range(n):
        made[i] = x[i] * 2
        other[i, 0] = x[-1]
    return made, other


@program(
    [
        (arr("f8", 6, 6), arr("i8", 6), 4),
        (arr("f4", 5, 7), arr("i8", 5), -1),
        (arr("f8", 3, 3, layout="reversed"), arr("i8", 0), -1),
        (arr("i8", 4, 4), arr("i8", 4), 0),
    ],
    mutates=(0, 1),
)
def stored_in_every_turn(t, v, last):
    """One element in all turns of a loop, beside others of its array, beside itself, beside none."""
    n = min(t.shape)
    best = np.zeros((n, n), t.dtype)
    for i in range(n - 2, -1, -1):
        for j in range(i + 1, n):
            for k in range(i + 1, j):
                best[i, j] = np.maximum(best[i, j], best[i, k] + best[k + 1, j] + t[k, i])
            for k in range(i, j + 1):
                best[i, j] = best[i, j] * 0.5 + best[i, k]
            for k in range(j):
                t[i, j] -= t[i, k]
                t[i, j] *= 2
    for k in range(1, len(v)):
        v[0] += v[k] * k
        v[0] ^= v[k]
    for k in range(len(v), last):
        v[last] += v[k]
    return best


@program(
    [case(arr("f8", 3, 2), (1.0, 2.0), k, raises=None if k == 3 else ValueError) for k in range(4)],
    mutates=(0,),
    message=True,
    opaque=None,
    fell_back=None,
)
def nested_sequences_stored(a, row, k):
    """A sequence has no more axes than a place of basic indices; an array may."""
    if k == 0:
        a[1] = [row]
    if k == 1:
        a[:] = [[row]]
    a[0] = np.array([row])
    a[1:2] = [row]
    a[[0, 1]] = [[row]]
    if k == 2:
        a[..., 0] = [[1.0, 2.0, 3.0]]


@program(
    [
        (arr("f8", 4, 3), arr("f8", 4), arr("f8", 3)),
        (arr("i4", 4, 3, layout="F"), arr("i4", 4), arr("i4", 3)),
        (arr("f8", 0, 3), arr("f8", 0), arr("f8", 3)),
        (arr("f8", 4, 0, layout="stepped"), arr("f8", 4), arr("f8", 0)),
        large(arr("f8", 300, 200), arr("f8", 300), arr("f8", 200)),
        lambda: (lambda a: (a, a[:, 0], a[0]))(arr("f8", 4, 4).make()),
    ],
    mutates=(0, 1, 2),
)
def columns_one_by_one(a, q, r):
    kept = np.zeros(a.shape[1], a.dtype)
    for j in range(a.shape[1]):
        kept[j] = r[j]
        a[:, j] -= q * r[j]
        kept[j] += 1
    return kept


@program([(arr("f8", 4, 3),), (arr("f8", 0, 0),), large(arr("f8", 300, 200))], mutates=(0,))
def columns_by_their_own_elements(a):
    for j in range(a.shape[1]):
        a[:, j] += a[-1, j]
        first = a[0, j]
        a[:, j] -= first
        a[0, j] = first


@program([(arr("f8", 4, 3),), (arr("f8", 0, 3),), large(arr("f8", 300, 200))], mutates=(0,))
def columns_and_what_they_become(a):
    sums = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        before = sums[j] + 2
        a[:, j] *= before
        if a.shape[0] > 0:
            sums[j] = a[0, j] + before
    return sums


@program(
    [
        raising(OverflowError, arr("i8", 4), np.inf, 0),
        raising(ValueError, arr("u1", 4), np.nan, 1),
        raising(OverflowError, arr("u8", 4), -1.5, 2),
        raising(OverflowError, arr("i2", 4), 1e30, 3),
        case(arr("i8", 4), np.float64(2.5), 0),
        case(arr("u1", 4), 7.5, 3),
    ],
    mutates=(0,),
    message=True,
)
def number_by_a_function_of_numpys(x, v, how):
    if how == 0:
        np.put_along_axis(x, np.array([1]), v, 0)
    elif how == 1:
        np.fill_diagonal(x.reshape(2, 2), v)
    elif how == 2:
        x[:] = np.piecewise(x, [x > 300], [v, 1])
    else:
        x[:] = np.pad(x[1:-1], 1, constant_values=((v, 1),))


@program(
    [
        raising(OverflowError, arr("i8", 2, 2), [np.inf, 1.0]),
        raising(OverflowError, arr("u1", 2, 2), (1, -1)),
        case(arr("u1", 2, 2), [np.float64(-1.0), np.float64(2.5)]),
        case(arr("f4", 2, 3), [1, 2.5]),
    ],
    mutates=(0,),
    message=True,
)
def diagonal_of_a_list(x, values):
    np.fill_diagonal(x, values)


@program(
    [(arr(kind, 3, 2), np.float64(v)) for kind in ("i2", "f4", "c8") for v in (2.7, -1.0, float("inf"))], mutates=(0,)
)
def diagonals_of_numpys_scalars(a, v):
    """They are converted as arrays are: what no integer can be is one, of no value that is told."""
    np.fill_diagonal(a, np.abs(v) if v > 0 else v)
    np.fill_diagonal(a[1:], np.float32(300.5))


def _counting(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)


@program([lambda: (_counting(40), 0.125), Case(lambda: (_counting(40), 9.0), raises=ZeroDivisionError)], message=True)
def changed_before_a_check_fails(a, k):
    x, y = a.copy(), a.copy()
    for i in range(len(x)):
        y[i] = 1.0 / (float(x[i]) - k)
        x[i] += 0.25
    return x, y


@program([lambda: (_counting(40), 0.125), Case(lambda: (_counting(40), 9.0), raises=ZeroDivisionError)], message=True)
def changed_through_a_view_before_a_check_fails(a, k):
    x = a.copy()
    v = x[1:]
    for i in range(len(v)):
        x[i + 1] = 1.0 / (float(v[i]) - k)
    return x


@program([lambda: (_counting(5, 8), 0.125), Case(lambda: (_counting(5, 8), 9.0), raises=ZeroDivisionError)],
         message=True)  # fmt: skip
def changed_in_rows_before_a_check_fails(a, k):
    x = a * 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = math.floor(1.0 / (float(x[i, j]) - k))
    return x
