"""Views: results that share memory with arguments, writing through them, rebinding names to views."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, program, raising

VECTORS = variants(arr("f8", 8), "i4", "reversed stepped readonly")
MATRICES = variants(arr("f8", 4, 6), "f4", "F stepped")


@program(each(VECTORS + MATRICES + [arr("f8"), arr("f8", 0)]))
def argument_returned(x):
    return x


@program(each([*VECTORS, MATRICES[0]]))
def same_array_twice(x):
    y = x
    return x, y, (x, y is x)


@program(each(VECTORS))
def slices_returned(x):
    return x[2:6], x[::-2], x[:0], x[-1:]


@program(each(MATRICES))
def parts_returned(x):
    return x[1], x[:, 2], x[1:3, ::2], x.T[1:], x[None, 0]


@program(each(MATRICES), fell_back=None)
def reshaped_or_copied(x):
    """Whether it is a view depends on the memory order of the argument."""
    return x.reshape(6, 4), x.ravel(), x.T.reshape(-1)


@program(each(VECTORS[:4]), mutates=(0,))
def write_shows(x):
    y = x[1:5]
    y[0] = 100
    y += 1
    x[2] = -1
    return y, x[1:3]


@program(each(VECTORS[:4]))
def copy_does_not_show(x):
    y = x[1:5].copy()
    y[0] = 100
    z = x + 0
    z[:] = 3
    return y


@program(each(MATRICES), mutates=(0,))
def row_written(x):
    for row in x:
        row[0] = row[1] + 1
        row[2:] *= 2


@program(each(MATRICES), mutates=(0,))
def transposed_written(x):
    t = x.T
    t[0] = 5
    t[1:, 0] += t[:-1, 1]
    return t


@program(each(MATRICES[:3]), mutates=(0,))
def diagonal_by_stride(x):
    flat = x.reshape(-1)
    flat[:: x.shape[1] + 1] = 9
    return flat.size


@program([(arr("f8", 5), 3), (arr("f4", 5), 2)])
def rebound_to_a_view(x, steps):
    """The name is bound to a new view in every round."""
    y = x
    for _ in range(steps):
        y = y[:-1]
    return y


@program([(arr("f8", 5), True), (arr("f8", 5), False)])
def view_or_fresh(x, flag):
    """Which of the two is known at run time only."""
    if flag:
        y = x[1:]
    else:
        y = x[1:] + 1
    return y


@program([(arr("f8", 5), arr("f8", 5, seed=1), True), (arr("f8", 5), arr("f8", 5, seed=1), False)], mutates=(0, 1))
def one_of_two_written(x, y, flag):
    target = x if flag else y
    target[0] = 50
    target += 1
    return target


@program([(arr("f8", 4), arr("f8", 4, seed=1), 3), (arr("f8", 4), arr("f8", 4, seed=1), 4)], mutates=(0, 1))
def ping_pong(x, y, steps):
    for _ in range(steps):
        y[:] = x * 0.5 + 1
        x, y = y, x
    return x


@program(each([arr("f8", 6), arr("f8", 6, layout="reversed")]), mutates=(0,))
def view_of_a_view_written(x):
    y = x[1:][::2]
    y[1:] = 4
    return y[::-1]


@program([(arr("f8", 2, 3), arr("f8", 2)), (arr("f4", 2, 3), arr("f4", 2))], mutates=(0,))
def column_views(x, y):
    first, second = x[:, 0], x[:, 1]
    first += y
    second[:] = first * 2
    return first.sum()


@program(each([arr("f8", 3, 4), arr("i4", 3, 4)]))
def tuple_of_views(x):
    a, b, c = x
    return b, (a, c[1:])


@program([(arr("f8", 3, 4),), (arr("f8", 3, 4, layout="F"),)], fell_back=None)
def list_of_views(x):
    rows = [row for row in x]
    return rows[0], rows[-1]


@program([(arr("c16", 4),), (arr("c8", 2, 2),)], mutates=(0,), opaque=None)
def real_part_is_a_view(z):
    z.real[...] = 1
    z.imag *= 2
    return z.real, z.imag


@program([(arr("f8", 4), arr("f8", 4, seed=1)), (arr("i4", 2, 2), arr("i4", 2, 2))], mutates=(0,))
def in_place_keeps_identity(x, y):
    z = x
    z += y
    z = z + y
    return z, x


@program([(arr("f8", 4),)], mutates=(0,))
def ufunc_into_view(x):
    np.multiply(x[1:], 2, out=x[1:])
    return np.add(x[:2], 1, out=x[2:])


@program([(arr("f8", 6), 2), (arr("f8", 6), 0)])
def conditional_view(x, k):
    return x[k:] if k else x


@program(each([arr("f8", 4, 4)]), mutates=(0,))
def saved_before_write(x):
    """A view shows later writes, a copy does not."""
    view, kept = x[0], x[0].copy()
    x[0] = 1
    return view, kept, kept - view


@program(each([arr("f8", 5), arr("i4", 5)]))
def as_array_is_the_argument(x):
    return np.asarray(x), np.atleast_1d(x), np.ravel(x)[1:]


@program(
    each([arr("f8", 4, 1, layout="inner"), arr("f8", 3, 4, 1, layout="inner"), arr("c16", 1, 1, layout="inner")]),
    regrouped=4,
)
def column_of_one(x):
    """The last axis has the unit stride also where its extent is 1."""
    return x[..., 0], x[1:, 0] + 1, x[..., 0].sum()


@program(
    each(
        [
            arr("f8", 3, 3, 3),
            arr("f8", 3, 3, 3, layout="F"),
            arr("i4", 1, 3, 3, layout="F"),
        ]
    )
)
def orders_of_axes(x):
    """New arrays have their axes in the order of their operands."""
    v = x.transpose(1, 0, 2)
    w = v * 2
    return w, v.copy(), np.sum(v, axis=2), np.cumsum(w, axis=0), w[::-1, None, 1:] + 1, w.astype(np.float64), w - x[:1]


@program(
    [
        (arr("i8"), arr("i8", 2, 2, 1), arr("i8", 2, 2, 2, layout="F")),
        (arr("f8", 2), arr("f8", 3, 1, 2), arr("f8", 3, 3, 2, layout="F")),
        (arr("f8", 3, 2, layout="F"), arr("f8", 3, 1, 1), arr("f8", 3, 3, 2)),
    ]
)
def orders_of_broadcast_axes(x, y, z):
    return (x + y) * z, x - z, np.where(y > 0, x, z)


@program(each([arr("f8", 3, 4, 4), arr("f8", 3, 4, 4, layout="F"), arr("f8", 1, 3, 3, layout="F")]))
def orders_of_selected_axes(x):
    """The axes of an index come first; the others keep the order of the array."""
    i = np.array([0])
    j = np.array([[0, -1, 0], [-1, 0, 0]])
    return x[i], x[:, i], x[..., j], x[j], x.transpose(1, 0, 2)[i], x[i, :, 1], x[j.T, 0, j.T]


@program(each([arr("f8", 3, 3, 2, layout="F")]))
def orders_through_loops(x):
    y = x
    for _ in range(2):
        y = y * 2
    if x[0, 0, 0] > 0:
        z = x + 1
    else:
        z = x - 1
    return y + 1, z * y


@program([(arr("f8", 3), 3), (arr("f8", 3), 0)])
def two_names_of_one_array(x, n):
    """They are one object still after branches and loops."""
    if n > 2:
        y = x + 1
        z = y
    else:
        y = z = x - 1
    v = w = y + 1
    for i in range(n):
        v = v + i
        w = v
    return y, z, v, w


@program(each([arr("f8", 2, 3, 4, layout="F"), arr("f4", 2, 3, 4)]))
def orders_of_new_arrays(x):
    v = x.transpose(1, 2, 0)
    w = v[:, 1:] * 1
    return np.zeros_like(v), np.full_like(w, 2), v.copy(), v.copy("K"), np.roll(v, 1, axis=0), np.roll(w, 1, axis=2)


@program(each([arr("f8", 2, 3, 4, layout="F"), arr("f4", 2, 3, 4)]))
def orders_of_joined_arrays(x):
    v = x.transpose(1, 2, 0)
    return (
        np.concatenate([v, v]),
        np.stack([x, x]),
        np.stack([v, v], axis=1),
        np.stack([v, v], axis=-1),
        np.hstack([v, x.T[:3]]),
    )


@program([(arr("f8", 3), True), (arr("f8", 3), False)])
def names_bound_late(x, more):
    y = x + x
    for _ in range(2):
        z = y
    if more:
        w = y
    else:
        w = y
    n = 0
    while n < 2:
        v = y
        n += 1
    return y, z, w, v


READ_ONLY = arr("f8", 3, 4, layout="readonly")


@program([raising(ValueError, READ_ONLY, 1), raising(ValueError, READ_ONLY, 0), (arr("f8", 3, 4), 0)], mutates=(0,))
def sorted_in_place(x, axis):
    x.sort(axis)
    return x


@program([raising(ValueError, READ_ONLY)], message=True)
def summed_into_read_only(x):
    return np.cumsum(np.ones((3, 4)), axis=0, out=x)


@program([(arr("f8", 4),)], opaque=None)
def python_sees_read_only(x):
    """What is made read-only is so for Python, too."""
    return np.broadcast_to(x, (3, 4)).flags.num, np.broadcast_to(x, (2, 4)), np.broadcast_to(x * 2, (3, 4)).flags.num


@program(each([*variants(arr("f8", 3, 4), "f4", "F stepped"), arr("f8", 5, layout="stepped"), arr("f4", 5)]))
def orders_asked_for(x):
    return (
        [x.astype("f8", order=order, copy=False) for order in ("C", "F", "A", "K")],
        [x.astype("f4", order) for order in ("C", "f", "A")],
        [np.asarray(x, order=order) for order in ("C", "F", "A", None)],
        [np.array(x, order=order) for order in ("c", "F", "A", "K")],
        [x.copy(order) for order in ("C", "F", "A", "k")],
    )


@program(each([*variants(arr("f8", 4, 6), "f4 i8", "F readonly"), arr("f8", 6, 3), arr("c16", 3, 3), arr("f8", 0, 3)]))
def diagonals(x):
    """Read-only views of contiguous memory."""
    return x.diagonal(), np.diag(x, 1), np.diagonal(x, -2)[::-1], (x * 2).diagonal(), np.diag(x).flags.writeable


@program(each([arr("f8", 2, 4, 3), arr("f4", 3, 1, 5, layout="readonly")]), sums=4)
def diagonals_of_planes(x):
    return x.diagonal(), np.diagonal(x, 1, 2, 1), np.diagonal(x, -1, 1, 2), x.diagonal(0, 0, 2).sum()


@program(each([arr("f8", 4, 4), arr("i4", 4, 4, layout="F")]), mutates=(0,))
def diagonal_shows_stores(x):
    d = x.diagonal()
    y = d + 1
    x[1:, 1:] = 7
    return d, d + y


@program(each(variants(arr("f4", 7), "f8 f2", "stepped readonly reversed", "special")))
def bits_of_floats(x):
    """The same bits as integers, and as floats again."""
    wide = np.dtype(f"i{x.itemsize}")
    bits = x.view(wide)
    halved = (bits - (bits >> 3)).view(x.dtype)
    return bits & 7, halved * 1, x.view(np.dtype(f"u{x.itemsize}")) >> 1, x.view(), x.view(x.dtype)[1:], x[2].view(wide)


@program([(arr("f4", 5, values="positive"),)])
def fast_inverse_root(x):
    y = (np.int32(0x5F3759DF) - (x.view(np.int32) >> 1)).view(np.float32)
    return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)


@program([(arr("f8", 4),), (arr("c16", 4),)], opaque=None, mutates=(0,))
def other_views_of_memory(x):
    """What is returned, or stored to, is the real view."""
    y = x.view(np.int64)
    y[:1] = 3
    return y, x.view("f4")


@program(each(variants(arr("f8", 3, 4), "f4", "F stepped")), mutates=(0,))
def flat_elements(x):
    total = x.flat[3] - x.flat[-2]
    for i, one in enumerate(x.flat):
        total += one * i
    x.flat[5] = total
    x.flat[-1] += 1
    part = x.flat[2:9:3]
    x.flat[:] = x[0, 0]
    return part, len(x.flat), sum(z for z in x.flat)


@program([(arr("f8", 3, 4), arr("i4", 2)), (arr("i4", 12), arr("f8", 5))], mutates=(0,))
def flat_repeats_what_is_stored(x, y):
    x.flat[2:7] = y
    x.flat[::6] += 1
    x.flat[7:] = [1, 2, 3]
    x.flat = y[:0]
    return x


@program(
    [
        raising(IndexError, arr("f8", 3, 4), 12),
        raising(IndexError, arr("f8", 3, 4), -13),
        raising(IndexError, arr("f8", 3, 4), np.int32(12)),
        raising(IndexError, arr("f8", 3, 4), np.uint8(200)),
        (arr("f8", 3, 4), np.int8(-12)),
    ],
    message=True,
    mutates=(0,),
)
def flat_out_of_bounds(x, i):
    x.flat[i] = 3
    return x.flat[i]


@program([raising(ValueError, READ_ONLY)], message=True)
def flat_of_read_only(x):
    x.flat[1] = 3


@program(
    each([*variants(arr("f8", 4, 4), "", "F stepped readonly transposed"), *variants(arr("f8", 4), "", "stepped")])
)
def contiguity(x):
    flags = x.flags
    y = np.array(x * 2, order="F", ndmin=2)
    return (
        (flags.c_contiguous, flags.f_contiguous, flags.forc, flags.fnc, flags["C"], x.flags["F_CONTIGUOUS"]),
        (x.T.flags.writeable, y.flags.f_contiguous, y.flags.c_contiguous, y.flags["FNC"], np.isfortran(x)),
    )


@program(each([arr("f8", 4, 4), arr("f8", 1, 4), arr("f8", 0, 4)]), opaque=None)
def contiguity_by_path(x):
    """An array that is in both orders stays itself."""
    y = np.asfortranarray(x * 2)
    return y, y.flags.f_contiguous


@program(each([arr("f8", 9), arr("f8", 9, layout="stepped"), arr("f4", 6)]), regrouped=4)
def sliding_windows(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, 3)
    return windows.mean(axis=-1), windows[::2].max(1), windows @ np.arange(3.0), windows.shape


@program(each([arr("f8", 4, 5), arr("f4", 4, 5, layout="F")]), regrouped=4)
def windows_of_planes(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3))
    return windows.sum(axis=(2, 3)), windows * 2, np.lib.stride_tricks.sliding_window_view(x, 2, axis=0).min(axis=-1)


@program([raising(ValueError, arr("f8", 4), 5), raising(ValueError, arr("f8", 4), -1)], message=True)
def windows_too_long(x, n):
    return np.lib.stride_tricks.sliding_window_view(x, n).sum(axis=1)


@program([(arr("f8", 3),), (arr("i4", 3),), (arr("f4", 2, 2),)])
def scalar_types_of_arrays(x):
    """What has the dtype already is given back as it is."""
    return np.float64(x), np.int32(x)


@program([(arr("f8", 4), 3), (arr("f8", 4), 0)], fell_back=None, opaque=None)
def itself_or_nothing(x, w):
    y = None
    if w:
        y = x
    return y, x


@program([(arr("i8", 5),), (arr("f8", 1),), (arr("f4", 0),), (arr("f8", 6),)])
def views_of_one_new_array(a):
    made, order = a + 1, np.argsort(a)
    return made[1:], made[::-1], made, order, order.T, order[::2]


@program([(arr("f8", 1, 1),), (arr("f8", 3, 3),)], mutates=(0,))
def read_only_beside_writeable(a):
    made = a * 2
    first = made[0]
    first += 1
    a[0] = first
    return np.diagonal(made), made[0], np.expand_dims(np.diagonal(made), 0), made


@program([(arr("i4", 3, 2), 2)], opaque=None)
def row_beside_a_dict(a, k):
    made = a + k
    return made[0], {0: k}, made


@program([(arr("f8", 4, 6), 1), (arr("f8", 4, 6), 3), (arr("i4", 1, 5), 4)], mutates=(0,), opaque=None)
def raveled_window(a, k):
    """A window of one element, or of whole rows, is raveled without a copy."""
    row, column, whole = np.ravel(a[:k, :k]), a[:1, k:].ravel("F"), np.ravel(a[:, k - 1 :], "A")
    row[0] = 77
    column[...] -= 5
    whole *= 2
    return row, column, whole


@program([(arr("f8", 4, 6), 2), (arr("f8", 4, 1), 3)])
def raveled_window_read(a, k):
    """As long as nothing shows whether it is a view, none has to be made."""
    made = np.ravel(a[:k, :k], "F") + 1
    return made, a[::2].ravel().max()


@program([(arr("f8", 4, 6, layout="stepped"),), (arr("f4", 3, 2, layout="inner"),), (arr("f4", 3, 2, layout="F"),)])
def raveled_argument(a):
    """What surely lies elsewhere is copied, as in NumPy."""
    made = a.ravel()
    made[0] = -1
    return made, np.ravel(a + 0, "F")


@program(each([np.int32(2), np.float64(0.5), 3, arr("f4", 3, 2)]))
def turned_scalar(a):
    return np.permute_dims(a), np.transpose(a)


@program([(arr("f8", 3, 2), 2), (arr("f8", 3, 2, layout="readonly"), 1)])
def read_only_from_a_loop(a, k):
    for row in a:
        wide = np.broadcast_to(row, (2, *row.shape))
    other = np.broadcast_to(a[0], (3, 2)) if k > 1 else np.broadcast_to(a[1], (3, 2))
    return row, wide, other


@program([(*[arr("f8", 3, layout="readonly")] * 2, 2), (*[arr("f8", 3, layout="readonly")] * 2, 0)])
def one_of_two_read_only(a, b, k):
    return a if k else b


@program([(arr("i4", 4), 0), (arr("i4", 4), 2), (arr("f8", 2, 3, layout="F"), 1)], mutates=(0,), opaque=None)
def contiguous_when_it_runs(a, k):
    """One element, and one column of a matrix in Fortran order, lie in C order as they are."""
    made, turned = np.ascontiguousarray(a[k::-1]), np.asarray(a[:k].T, order="C")
    made[...] = 9
    return made, turned, np.asfortranarray(a[k::-1])


@program(
    [(arr("f8", 3, 4), 2), (arr("f8", 3, 1), 0), (arr("f8", 1, 4), 1), (arr("i4", 3, 4, layout="F"), 2)], mutates=(0,)
)
def column_copied(a, k):
    """A whole column of several surely is a copy; of one column, or one row, it is a view."""
    for j in range(k):
        column = np.ascontiguousarray(a[:, j])
        a[:, j] = 2 * column[::-1]
    return a[:, k].ravel()


@program(
    [(arr("f8", 4, 4), k) for k in (4, 2, 1)] + [(arr("f8", 4, 4, layout="F"), 1), (arr("f8", 1, 1), 1)],
    mutates=(0,),
    regrouped=4,
)
def views_made_in_a_loop(a, k):
    """A view or a copy, as the strides have it, that is stored to after the loop."""
    for _ in range(2):
        r = a[:k, :k].reshape(-1)
    r[0] = 55
    return a.sum(), r


@program([(arr("f8", 4, 4), k) for k in (4, 2, 1)], mutates=(0,))
def views_handed_on_in_a_loop(a, k):
    r = a.ravel()
    for _ in range(3):
        s = r
        r = a[:k, :k].ravel()
        s[0] += 1
    r[0] = 4
    return a, s


@program([(arr("f8", 4, 4), k) for k in (4, 2, 0)], mutates=(0,), regrouped=4)
def memory_changed_after_views_in_nested_loops(a, k):
    r = a[:1].ravel()
    for _ in range(2):
        for _ in range(2):
            r = np.ravel(a[:k, :k])
    a += 1
    return r.sum()


INNER = each([arr("f8", 4, 5), arr("f4", 3, 3), arr("f8", 3, 6, layout="F"), arr("i4", 5, 3, layout="stepped")])


@program(INNER[:3], mutates=(0,))
def view_or_copy_as_it_lies(a):
    """Whether memory lies in order is known when the program runs."""
    inner, column = a[1:-1, 1:-1].ravel(), a[:, 1:2]
    inner[:] = 3
    return inner, column.ravel(), column.reshape(-1), a.T.reshape(-1), a[1:].reshape(-1, 1, a.shape[1]), a.ravel("K")


@program(INNER)
def as_it_lies_asked_and_required(a):
    rows, columns = a[1:], a[:, 1:]
    flags = rows.flags.c_contiguous, columns.T.flags.f_contiguous, columns.flags.forc, rows.flags.fnc
    made = np.ascontiguousarray(columns)
    made[0] = 5
    return flags, np.require(rows, requirements="C"), np.asfortranarray(columns), rows.copy("A"), made


@program(INNER)
def strides_of_views(a):
    return a.strides, a.T.strides, a[1:].strides, a[::2, ::-1].strides, (a + 1).strides, a[None].strides


@program(each([arr("c16", 4, 5), arr("c8", 2, 3, layout="F"), arr("c8", 6, layout="reversed")]), mutates=(0,))
def parts_stored_in_place(c):
    """The parts of complex numbers, stored to and returned."""
    c.imag[...] += 1
    for i in range(len(c)):
        part = c[i:].real
        part += i
    y = c.imag
    return y.squeeze(), y, c.T.real[1:]


@program(each([arr("f8", 4, 5), arr("f4", 3, 3), arr("f8", 3, 6, layout="F"), arr("f8", 3, 3, 4)]), mutates=(0,))
def diagonals_in_a_loop(a):
    total = 0.0
    for k in range(2):
        d = a.diagonal(k - 1)
        a[0] += k
        total += np.sum(d[:1])
    return d, a.T[1:].diagonal(), total


@program(each([arr("f8", 5), arr("i4", 6, layout="stepped")]), mutates=(0,))
def windows_in_a_loop(x):
    for i in range(3):
        w = np.lib.stride_tricks.sliding_window_view(x, 3)
        x[i] = w[i, 2] + 1
    return w


@program(each([arr("f8", 3, 4), arr("i8", 2, 6), arr("c16", 4)]), mutates=(0,))
def items_of_another_size(x):
    halves = x.view(np.int32)
    halves[..., 0] = 1
    return halves, x.view(np.uint8)[..., ::2]


@program([raising(ValueError, arr("f8", 3, 4, layout="F")), raising(ValueError, arr("f4", 3, 4, layout="stepped"))])
def items_apart(x):
    return x.view(np.int16)


@program([(arr("f8", 6), 4, 3), (arr("i4", 9), 3, 7)])
def strides_of_ones_own(x, n, w):
    rows = np.lib.stride_tricks.as_strided(x, (n, w), (x.strides[0], x.strides[0]))
    return rows.max(axis=1), rows, np.lib.stride_tricks.as_strided(x, (2,), (16,), writeable=False)


@program([(arr("f8", 6), 4), (arr("f4", 7, layout="stepped"), 3)])
def strides_of_ones_own_in_a_loop(x, n):
    total = 0.0
    for i in range(n):
        rows = np.lib.stride_tricks.as_strided(x, (2, x.size // 2), 2 * x.strides)
        total += rows[i % 2, -1]
    return rows, total


@program([(arr("f8", 6), 4)], opaque=None, mutates=(0,))
def strides_stored_through_in_a_loop(x, n):
    for i in range(n):
        rows = np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))
        rows[1] += i
    return rows


@program([(arr("f8", 6), 4, 30)], opaque=None, mutates=(0,))
def strides_stored_through(x, n, w):
    rows = np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))
    rows[0] = w
    return x


@program([(arr("f8", 3, 3), True), (arr("f8", 4, 4, layout="F"), False)], mutates=(0,))
def diagonal_by_einsum(a, w):
    d = np.einsum("ii->i", a[1:, 1:])
    d[...] = 5
    return d, np.einsum("iij->ji" if w else "jii->ij", np.array([a, a, a])[:, :3, :3])


@program([(arr("c16", 4), 2), (arr("c16", 1), 0), (arr("c8", 5), 0)], mutates=(0,))
def parts_made_in_a_try(c, k):
    try:
        t = np.real(c[::-2])
        t[0] = 3 // k
    except ZeroDivisionError:
        t = np.ogrid[0:3] * np.float32(1) if c.itemsize == 8 else np.ogrid[0:3] * 1.0
    t.swapaxes(0, -1)[0] = 7
    return t, c


@program(each([arr("f8", 4, 5), arr("f8", 3, 3, layout="F"), arr("f8", 4, 4, layout="stepped")]))
def facts_of_views_that_nobody_else_sees(a):
    """Flags and strides are those of the view, where a copy would do for its elements."""
    windows, line, part = np.lib.stride_tricks.sliding_window_view(a, 2, axis=0), np.diag(a[:, :3]), (a + 1j).imag
    asked = windows.flags.c_contiguous, line.flags.forc, part.flags.c_contiguous, a[1:, 1:].ravel().flags.c_contiguous
    return asked, windows.strides, part.strides, a.view(np.int64).strides


@program(each([arr("f8", 3, 4), arr("i4", 2, 3, layout="F"), arr("f8", 6, layout="stepped")]), regrouped=8)
def flat_as_a_line(a):
    line = np.asarray(a.flat) if a.flags.c_contiguous else np.sort(a.flat)
    return list(a.flat), sum(a.flat), max(a.T.flat), sorted(a.flat)[:2], np.sum(a.flat), np.argmax(a.T.flat), line


@program([(arr("f8", 4, 5), 2), (arr("f4", 3, 4), 1), (arr("f8", 4, 6, layout="F"), 3)], mutates=(0,), regrouped=4)
def patches_as_rows(a, k):
    """Windows as the rows of a matrix: a copy, unless windows of one element are views."""
    rows = np.lib.stride_tricks.sliding_window_view(a, (k, k)).reshape(-1, k * k)
    a[0, 0] = 100
    return rows @ np.ones(k * k, a.dtype), rows.flags.writeable


@program([lambda: (np.ones((2, 3)),)], fell_back=True)
def equal_views_are_two_objects(a):
    first, second = a.T, a.T
    return first is second, first is first


@program(each([arr("f8", 3, 3), arr("i4", 2, 2, layout="F")]))
def equal_views_in_a_result(a):
    """Each is an object of its own, writeable or not, also where they are views of one new array."""
    rows, same, line = a[1:], a[1:], np.arange(9).reshape(3, 3)
    parts = np.diag(line), np.einsum("ii->i", line), np.diag(line)
    return rows, rows, same, a.T, a.T, parts, [part.flags.writeable for part in parts], rows is rows


@program([(arr("f8", 4, 3),), (arr("f8", 2, 3),)], opaque=None, fell_back=None)
def parts_that_python_gives(a):
    """Where a call is begun again, as there are fewer parts than in the last, they are views of the new array."""
    own = a.copy()
    parts = np.unstack(own)
    own[0] = 5
    return parts[0] * 2, len(parts)


@program([(arr("f8", 5),), (arr("i4", 1),), (arr("f8", 0),)])
def new_arrays_stored_to_beside_their_views(x):
    first = np.empty(len(x))
    first[:] = x
    backwards = first[::-1]
    first += 1
    second = np.zeros(len(x))
    second[:] = x * 2
    every_other = second[::2]
    second[:] = x
    return first, backwards, second, every_other
