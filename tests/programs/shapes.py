"""Functions of shape: views stay views, copies are copies, in NumPy's memory order."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, program, raising

VECTOR = [*variants(arr("f8", 12), "i4", "reversed stepped"), arr("f8", 0)]
MATRICES = variants(arr("f8", 3, 4), "f4 i4", "F stepped reversed transposed readonly")
CUBES = variants(arr("f8", 2, 3, 4), "f4", "F stepped")


@program(each(MATRICES[:7] + CUBES + [arr("f8"), arr("f8", 0, 3), [1, 2, 3], (1.5, 2), 3]))
def inquiries(x):
    return np.shape(x), np.ndim(x), np.size(x)


@program(each(MATRICES + CUBES + [arr("f8"), arr("c8", 0, 3)]))
def attributes(x):
    return x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.T.shape


@program(each([*MATRICES, arr("f8", 0, 4), arr("f8", 5, 1)]))
def lengths(x):
    n, m = x.shape
    return len(x), n * m, x.shape[0], x.shape[-1], x.shape[1] // 2


@program(each(MATRICES), fell_back=None)
def reshaped(x):
    return x.reshape(4, 3), np.reshape(x, (2, 6)), x.reshape((12,)), x.reshape(-1), x.reshape(2, -1)


@program(each(VECTOR[:4]), fell_back=None)
def reshaped_in_order(x):
    return x.reshape(3, 4), x.reshape((3, 4), order="F"), np.reshape(x, (2, 2, 3)), x.reshape(12, 1)


@program([(arr("f8", 12), 3), (arr("i4", 12), 4)], regrouped=8)
def reshape_by_argument(x, n):
    return x.reshape(n, x.size // n), x.reshape(n, -1).sum()


@program([raising(ValueError, arr("f8", 12), 5), raising(ValueError, arr("f8", 0), 5)], message=True)
def reshape_of_wrong_size(x, n):
    return x.reshape(n, 2)


@program(each([*MATRICES, arr("f8"), arr("f8", 3)]), fell_back=None)
def flattened(x):
    """ravel is a view where it can be, flatten never."""
    return x.ravel(), x.flatten(), np.ravel(x)


@program(each(MATRICES + CUBES + [arr("f8", 3), arr("f8")]))
def transposed(x):
    return x.T, np.transpose(x), x.transpose()


@program(each(CUBES))
def permuted(x):
    return x.transpose(2, 0, 1), np.transpose(x, (1, 0, 2)), x.transpose((0, 2, 1)), np.permute_dims(x, (-1, 0, 1))


@program(each(CUBES))
def axes_moved(x):
    return np.swapaxes(x, 0, 2), x.swapaxes(1, -1), np.moveaxis(x, 0, -1), np.moveaxis(x, 2, 1)


@program(each([*MATRICES[:4], arr("f8", 3)]))
def dimensions_added(x):
    return np.expand_dims(x, 0), np.expand_dims(x, -1), x[None], x[..., np.newaxis]


@program(each([arr("f8", 1, 3, 1), arr("f8", 1, 1), arr("i4", 3, 1)]))
def dimensions_removed(x):
    return np.squeeze(x), x.squeeze(), x.squeeze(axis=-1)


@program([raising(ValueError, arr("f8", 2, 3))], message=True)
def squeeze_of_wide_axis(x):
    return np.squeeze(x, axis=0)


@program(each([arr("f8", 3), arr("f8", 1, 3), arr("i4", 1)]), regrouped=8)
def broadcast(x):
    """A broadcast is a read-only view."""
    return np.broadcast_to(x, (2, 3)), np.broadcast_to(x, (4, 2, 3)).sum()


@program([raising(ValueError, arr("f8", 2)), raising(ValueError, arr("f8", 2, 3, 4))], fell_back=None)
def broadcast_to_wrong_shape(x):
    return np.broadcast_to(x, (2, 3))


@program(
    [
        (arr("f8", 3), arr("f8", 2)),
        (arr("f4", 3), arr("f8", 3)),
        (arr("i4", 0), arr("f4", 2)),
        (arr("b1", 1), arr("i4", 1)),
    ]
)
def joined(x, y):
    return np.concatenate((x, y)), np.concatenate([y, x, y]), np.hstack((x, y)), np.append(x, y)


@program(
    [
        (arr("f8", 2, 3), arr("f8", 2, 3, seed=1)),
        (arr("i4", 2, 3), arr("f4", 2, 3)),
        (arr("f8", 2, 3, layout="F"), arr("f8", 2, 3, layout="F")),
    ]
)
def joined_by_axis(x, y):
    return np.concatenate((x, y), axis=0), np.concatenate((x, y), axis=1), np.vstack((x, y)), np.hstack((x, y))


@program([raising(ValueError, arr("f8", 2, 3), arr("f8", 2, 2))], message=True)
def joined_with_wrong_extent(x, y):
    return np.concatenate((x, y))


@program([(arr("f8", 3), arr("f8", 3, seed=1)), (arr("i4", 2, 2), arr("f8", 2, 2))])
def stacked(x, y):
    return np.stack((x, y)), np.stack([x, y], axis=-1), np.stack((x, y, x), axis=1)


@program([(arr("f8", 3), arr("f8", 3, seed=1)), (arr("i4", 3), arr("f8", 3))])
def column_stacked(x, y):
    return np.column_stack((x, y)), np.vstack((x, y)), np.vstack([x, 2 * y])


@program(each([*MATRICES, arr("f8", 5)]))
def flipped(x):
    """Flips are views with negative strides."""
    return np.flip(x), np.flip(x, 0), np.flip(x, axis=-1), np.flipud(x)


@program(each(MATRICES[:5]))
def flipped_and_turned(x):
    return np.fliplr(x), np.rot90(x), np.rot90(x, 2)


@program([(arr("f8", 5), 2), (arr("f8", 5), -1), (arr("i4", 5), 7), (arr("f8", 0), 3), (arr("f8", 3, 2), 1)])
def rolled(x, k):
    return np.roll(x, k)


@program([(arr("f8", 3, 4), 1), (arr("f4", 3, 4, layout="F"), -2), (arr("f8", 1, 4), 5)])
def rolled_by_axis(x, k):
    return np.roll(x, k, axis=0), np.roll(x, -1, axis=1), np.roll(x, (1, k), axis=(0, 1))


COUNTS = arr("i8", 3, values=[2, 0, 1])
MANY_COUNTS = arr("i4", 40, values=[0, 3, 20, 1, 8])


@program(
    [
        *((arr("f8", 3), 2), (arr("i4", 2, 3), 3), (arr("f8", 3), 0), (4.5, 3)),
        *((arr("f8", 3), COUNTS), (arr("f8", 40), MANY_COUNTS)),
    ]
)
def repeated(x, n):
    return np.repeat(x, n)


ODD_INTEGERS = [1, True, np.True_, np.uint64(1), np.int8(-1), 1.0, np.array(1), np.array(np.uint64(1)), np.array(1.0)]


@program([(arr("f8", 2, 3), c) for c in ODD_INTEGERS], opaque=None, fell_back=None)
def integers_of_other_kinds(x, c):
    """Each function has its own idea of what is an int."""
    found = []
    for use in (
        lambda: np.repeat(x, c),
        lambda: np.trace(x, c),
        lambda: x.diagonal(c),
        lambda: np.choose(c, [1, 2, 3]),
        lambda: np.histogram(x, c)[0],
        lambda: np.bincount(np.array([1, 2]), minlength=c),
        lambda: np.tri(c == 2),
        lambda: np.tri(2, c),
        lambda: np.tri(-c, 2),
    ):
        try:
            found.append(use())
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return found


@program([(arr("f8", 2, 3), c) for c in ODD_INTEGERS if isinstance(c, (int, np.integer))], opaque=None)
def places_of_diagonals(x, c):
    return np.trace(x, c), np.diagonal(x, c), x.trace(c), np.diag(x, c)


@program([raising(TypeError, arr("f8", 3), c) for c in (np.array(np.uint64(2)), np.array(1.5))], opaque=None)
def repeated_by_an_array_without_axes(x, c):
    return np.repeat(x, c)


@program([(arr("f8", 2, 3), 2), (arr("i4", 2, 3, layout="F"), 3), (arr("f8", 3, 3), COUNTS)])
def repeated_by_axis(x, n):
    return np.repeat(x, n, axis=0), np.repeat(x, n, axis=1), x.repeat(n, axis=-1)


@program(
    [
        (arr("u1", 7), 2),
        (arr("f8", 20), 11),
        (arr("c16", 5), 0),
        (arr("f4", 0), -3),
        raising(ValueError, arr("b1", 3), -1),
    ]
)
def repeated_some_times(x, n):
    return np.repeat(x, n), np.repeat(x, 3), x.repeat(20), np.repeat(x, 0)


@program([(arr("f8", 3), 2), (arr("i4", 2, 3), 2), (arr("f8", 3), 0)])
def tiled(x, n):
    return np.tile(x, n), np.tile(x, (n, 2))


@program(each([arr("f8", 3, 4), arr("i4", 3, 3), arr("f8", 2, 5, layout="F")]), opaque=None)
def diagonals(x):
    """A diagonal is a read-only view."""
    return np.diag(x), x.diagonal(), np.diagonal(x, 1)


@program([(arr("f8", 6),), (arr("i4", 2, 6),)], opaque=None)
def split_in_parts(x):
    return np.split(x, 2, axis=-1), np.array_split(x, 4, axis=-1)


@program([(arr("f8", 4), 1), (arr("f8", 3), 0), (arr("i4", 2), 3)], opaque=None)
def padded(x, n):
    return np.pad(x, n), np.pad(x, (1, n), mode="edge")


@program(each([arr("f8", 3, 4), arr("f4", 2, 3, layout="F"), arr("f8", 0, 4)]))
def view_of_a_view(x):
    return x.T[1:].T, x[::-1].T[::2], x.T.reshape(-1)[:2]


@program([(arr("f8", 6),), (arr("i4", 6),)], mutates=(0,))
def reshape_is_a_view(x):
    grid = x.reshape(2, 3)
    grid[1] = 5
    grid.T[0, 0] = -1
    return grid


@program(each([arr("f8", 4), arr("f8", 1), arr("f8", 2, 2)]))
def atleast(x):
    return np.atleast_1d(x), np.atleast_2d(x)


@program([(arr("f8", 6), arr("f8", 6)), (arr("f8", 2, 3), arr("f8", 3, 2))])
def same_shape(x, y):
    return x.shape == y.shape, x.shape == (6,), x.ndim < 2 and x.shape[0] == 6


@program(
    [
        (arr("f8", 0, 3), arr("i8", 1, values=(-1,)), 3),
        raising(ValueError, arr("f8", 2, 3), arr("i8", 1, values=(-1,)), 3),
        raising(ValueError, arr("f8", 2, 3), arr("i8", 1, values=(1,)), 4),
    ],
    mutates=(0,),
    message=True,
)
def repeats_of_nothing(a, counts, k):
    a[...] = 1
    return np.repeat(a, counts[0], axis=0), np.repeat(a, counts, axis=0), np.broadcast_to(a, (2, *a.shape[:1], k))


@program([(arr("f8", 4, 5), (10, 2)), (arr("i4", 2, 6), (3, -1)), raising(ValueError, arr("f8", 4, 5), (3, 3))])
def shape_assigned(a, shape):
    """Whatever name the array has, it has the new shape from there on."""
    b = a.copy()
    c = b
    pair = (b, a + 1)
    x, y = np.mgrid[0:2, 0:3]
    x.shape = y.shape = 6
    b.shape = shape
    c[0] = 7
    pair[0].shape = (-1,)
    return b, c, pair, x + y, np.asarray(b)


@program(
    [(arr("f8", 4, 5),), (arr("f8", 4, 5, layout="F"),), (arr("f8", 5, 4, layout="stepped"),)],
    fell_back=None,
    mutates=(0,),
)
def shape_of_argument_assigned(a):
    b = np.array(a * 2, order="C")
    if b[0, 0] > -100:
        b.shape = (10, 2)
    try:
        a.shape = (20,)
    except AttributeError:
        return b
    return b, a


@program(
    [(arr("f8", 6), 3), (arr("i4", 6), 0), (arr("c16", 0), 2), raising(ValueError, arr("f8", 6), -1)],
)
def repeated_along_a_new_axis(x, count):
    d = np.empty((2, 3, max(count, 1)), x.dtype)
    d[:] = np.repeat(np.reshape(x[: 6 * (len(x) > 0)], (2, -1, 1)), count, axis=2) if count == 3 else 0
    return np.repeat(x[:, None], count, axis=1), np.repeat(x[None], count, axis=0), d


@program([(arr("f8", 64), 2, 6), (arr("f8", 27), 3, 3), raising(ValueError, arr("f8", 64), 3, 3)], mutates=(0,))
def shapes_of_powers(y, r, k):
    """The same powers again and again are extents that are equal."""
    for i in range(k):
        d = np.empty((r, r**i, r ** (k - i - 1)))
        d[:] = np.repeat(np.reshape(np.arange(r ** (i + 1)) / 8, (r, r**i, 1)), r ** (k - i - 1), axis=2)
        turned = np.transpose(np.reshape(y, (r**i, r, r ** (k - i - 1))), axes=(1, 0, 2))
        y[:] = np.reshape(turned, (r**k,)) + np.reshape(d, (r**k,))
        d[0, 0, 0] = 100.0
        y[-1] += d[0].sum()
