"""Calls that NumPy refuses, or takes otherwise than one would think: axes, counts, dtypes that are not quite right."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

CUBE, LINE, SQUARE = arr("f8", 2, 3, 4), arr("f8", 7), arr("f8", 3, 3)


@program([raising(TypeError, CUBE)], message=True, fell_back=None)
def a_list_of_axes(a):
    return np.maximum.reduce(a, [1], keepdims=True)


@program([raising(TypeError, CUBE)], message=True, fell_back=None)
def true_as_an_axis(a):
    return np.var(a, axis=True)


@program([raising(TypeError, CUBE)], message=True, opaque=None)
def half_a_digit(a):
    return a.round(1.5)


@program([raising(TypeError, SQUARE)], message=True, opaque=None)
def half_a_diagonal(a):
    return np.eye(3, k=1.5) + a


@program([(SQUARE, SQUARE)], opaque=1)
def product_in_single_precision(a, b):
    """The dtype of a product used to be ignored."""
    return np.matmul(a, b, dtype="f4"), np.matmul(a, b).dtype


@program([raising(ValueError, LINE, arr("f8", 1)), raising(ValueError, LINE, arr("f8", 3))], message=True)
def lines_that_do_not_fit(a, b):
    return np.vecdot(a, b)


@program([raising(IndexError, arr("f8", 3), SQUARE)], message=True, fell_back=None)
def more_axes_than_there_are(a, b):
    return np.tensordot(a, b)


@program([(1j,), (2,), (2.5,)])
def real_python_numbers(x):
    return np.isreal(x), np.iscomplex(x)


@program([(CUBE,)])
def places_listed(a):
    """`where` as a list."""
    return np.max(a, axis=2, where=[True, False, True, True], initial=-1)


@program([(arr("f8", 4, 5),)], opaque=2)
def workspaces(a):
    """What is in an array that may be overwritten depends on how NumPy orders it."""
    b, c = a.copy(), a.copy()
    return np.median(b, axis=None, overwrite_input=True), np.percentile(c, 30, 1, None, True), b.size, c.size


@program([(arr("f8", 4, 6),)], fell_back=True)
def resized_in_place(a):
    b = a.copy()
    b.resize((3, 8), refcheck=False)
    return b.shape, b.sum()


@program([raising(ValueError, arr("f8", 4))], fell_back=None)
def made_read_only(a):
    b = a.copy()
    b.setflags(write=False)
    b[0] = 1
    return b


@program([raising(ValueError, LINE)], message=True)
def matrix_transpose_of_a_line(a):
    return a.mT


@program([raising(IndexError, arr("f8", 0), LINE), raising(IndexError, LINE, arr("f8", 0))], message=True)
def division_of_no_polynomial(a, b):
    return np.polydiv(a, b)


@program([(2,), ("two",), (2.5,), (LINE,), (np.float32(2),)], fell_back=None)
def scalars(x):
    return np.isscalar(x), np.isscalar(None), np.isscalar([1])


@program([(SQUARE, CUBE), (SQUARE, LINE)])
def message_of_a_caught_exception(a, b):
    try:
        return np.broadcast_arrays(a, b)[0].shape
    except ValueError as error:
        return str(error)


@program([raising(ValueError, arr("f8", 4), (1, 2)), (arr("f8", 2), (1, 2)), (arr("f8", 3), [0, 0, 0])], message=True)
def tuple_before_an_array(a, t):
    """The array's operator does it, and names itself first."""
    return t < a


@program([raising(TypeError, 2)], message=True, fell_back=None)
def minus_a_list(n):
    return -[n, 1]


@program([raising(TypeError, 2)], message=True, fell_back=None)
def size_of_a_list(n):
    return abs([n, 1])


@program([raising(TypeError, 1)], message=True, fell_back=None)
def quotient_and_rest_of_a_tuple(n):
    return divmod(n, (1, 2, 3))


@program([raising(IndexError, LINE, 1.5), raising(ValueError, LINE, True)], opaque=None)
def deleted_at_no_position(a, place):
    return np.delete(a, place)


@program([raising(TypeError, LINE)], message=True, opaque=None)
def choices_by_floats(a):
    return a.choose([a, a])


@program(
    [raising(TypeError, arr("f8", 4)), raising(TypeError, arr("c16", 4)), (arr("i4", 4),)],
    message=True,
)
def together_in_small_integers(a):
    return np.concatenate([a, a[:2]], dtype=np.int8)


@program([raising(ValueError, arr("f8", 3, 4)), (arr("f4", 3, 4),)], message=True, opaque=None)
def no_copy_where_one_is_needed(a):
    return np.asarray(a, dtype=np.float32, copy=False)


@program(
    [(arr("f8", 3, 3), arr("f8", 3, 3)), raising(ValueError, arr("i8", 3, 3), arr("f8", 3, 3))],
    opaque=None,
    mutates=(1,),
)
def product_into_another_dtype(a, out):
    return a.dot(a, out)


OUTPUTS = [(arr(kind, 4, 3, values="positive"), arr(out, 3)) for kind in ("f2", "f8", "i4") for out in ("f4", "c16")]


@program(OUTPUTS, opaque=None, mutates=(1,), regrouped=64)
def means_into_another_dtype(a, out):
    """NumPy computes in the dtype of `out` here."""
    return np.mean(a, 0, out=out).copy(), np.max(a, axis=0, out=out).copy()


@program([(arr("f2", 4), arr("f8", 4)), (arr("f8", 4), arr("f4", 4))], opaque=None, mutates=(1,))
def rounded_into_another_dtype(a, out):
    np.round(a, 1, out=out)
    return out + 1


@program([lambda: (np.arange(7.0), np.array([2, 5])), lambda: (np.arange(7.0), np.array([], int))], opaque=None)
def handed_back_alone(a, places):
    """What is not compiled of a call is no reason to leave the function to Python."""
    parts = np.split(a * 2, places)
    return np.delete(a, np.zeros((1, 1), int)) + 1, len(parts)


REFUSED = {  # what used to give something
    TypeError: [
        lambda a: np.nanstd(a, axis=0, dtype=np.int8),
        lambda a: np.insert(a, 1.0, 9),
        lambda a: np.ravel_multi_index((1.0, 2), (3, 4)),
    ],
    ValueError: [
        lambda a: np.zeros((2, 3), order="K"),
        lambda a: np.ones_like(a, device="gpu"),
        lambda a: np.reshape(a, -1, order="K"),
        lambda a: np.take(a, 0, mode="bad"),
        lambda a: np.std(a, ddof=1, correction=1),
        lambda a: np.int64(a.max().item() * np.nan),
    ],
    OverflowError: [
        lambda a: np.sum(a.astype(int), initial=np.inf),
        lambda a: np.int8(a.max().item() + 500.0),
    ],
}
for error, calls in REFUSED.items():
    for place, refused in enumerate(calls):
        name = f"refused_{error.__name__}_{place}"
        program([raising(error, arr("f8", 3, 4))], opaque=None, fell_back=None, name=name)(refused)


@program([lambda: (np.asfortranarray(np.ones((3, 4))), np.array([[0, 2, 1], [3, 1, 0]]))])
def odd_options(a, places):
    """Of an array given alone `np.block` makes a copy in C order."""
    return np.block(a), np.indices(()), np.arange(stop=5), np.arange(5, step=2), np.ravel_multi_index(places, (3, 4))
