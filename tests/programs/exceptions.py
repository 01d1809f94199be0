"""Exceptions: the type plain Python raises, its message, and the state in which arguments are left."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import large, program, raising


@program(
    [raising(IndexError, arr("f8", 4), 4), raising(IndexError, arr("f8", 4), -5), raising(IndexError, arr("f8", 0), 0)],
    message=True,
)
def element_out_of_range(x, i):
    return x[i]


@program([raising(IndexError, arr("f8", 3, 4), 1, 4), raising(IndexError, arr("f8", 3, 4), -4, 0)], message=True)
def matrix_element_out_of_range(a, i, j):
    return a[i, j]


@program([raising(IndexError, arr("f8", 3, 4), 3)], message=True)
def row_out_of_range(a, i):
    return a[i]


@program([raising(IndexError, arr("f8", 3), 1)], fell_back=None)
def too_many_indices(x, i):
    return x[i, 0]


@program([raising(IndexError, arr("f8", 4), 4), raising(IndexError, arr("f8", 4), -5)], message=True)
def store_out_of_range(x, i):
    x[i] = 1


@program(
    [(arr("f8", 4), 3), raising(IndexError, arr("f8", 4), 5), raising(IndexError, arr("f8", 0), 1)],
    message=True,
    mutates=(0,),
)
def loop_stores_until_out_of_range(x, n):
    """The stores before the exception are visible after it."""
    for i in range(n):
        x[i] = i * 10


@program([raising(IndexError, arr("f8", 6), arr("f8", 4))], message=True, mutates=(0,))
def loop_reads_out_of_range(x, y):
    for i in range(len(x)):
        x[i] = 5
        x[i] += y[i]


@program([raising(IndexError, arr("f8", 4, 5), arr("i8", 4, values=[0, 3, 9, 1]))], message=True, mutates=(0,))
def nested_loop_out_of_range(a, at):
    for i in range(a.shape[0]):
        a[i] = -1
        for j in range(a.shape[1]):
            a[i, at[i]] += j


@program(
    [
        raising(IndexError, arr("f8", 4), arr("i8", 3, values=[0, 4, 1])),
        raising(IndexError, arr("f8", 4), arr("i8", 1, values=[-5])),
    ],
    message=True,
)
def gather_out_of_range(x, at):
    return x[at] * 2


_STARTS = arr("i8", 4, values=[0, 2, 3, 5])


@program(
    [
        (
            arr("f8", 5, values=[1, 2, -3, 4, 0.5]),
            arr("i8", 5, values=[0, -1, 2, 3, -4]),
            _STARTS,
            arr("f8", 4, values=[1, 0.25, -8, 3]),
        ),
        raising(IndexError, arr("f8", 5), arr("i8", 5, values=[0, 1, 4, -9, 1]), _STARTS, arr("f8", 4)),
        raising(IndexError, arr("f8", 4), arr("i8", 5, values=[0, 1, 2, 3, 7]), _STARTS, arr("f8", 4)),
        raising(ValueError, arr("f8", 4), arr("i8", 5, values=[0, 1, 2, 3, 1]), _STARTS, arr("f8", 4)),
        raising(IndexError, arr("f8", 4), arr("i8", 5, values=[0, 1, 2, 3, 1]), _STARTS, arr("f8", 0)),
    ],
    message=True,
)
def rows_that_gather(values, columns, starts, x):
    """An index is looked at before the lengths are, and nothing is added up before both are."""
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        some = slice(starts[i], starts[i + 1])
        y[i] = values[some] @ x[columns[some]]
    return y


@program(
    [
        (arr("f8", 3), arr("i8", 2, values=[0, -3]), arr("f8", 2)),
        raising(IndexError, arr("f8", 3), arr("i8", 3, values=[0, 3, 7]), arr("f8", 2)),
        raising(ValueError, arr("f8", 3), arr("i8", 3, values=[0, 2, 1]), arr("f8", 2)),
    ],
    message=True,
    mutates=(0,),
)
def gathered_then_stored_over(x, at, y):
    """What has been gathered is read after some of it has changed."""
    taken = x[at]
    total = taken + y
    x[:2] = taken * 2
    x[0] += total.sum()
    return total


@program(
    [raising(IndexError, arr("f8", 4), arr("i8", 3, values=[0, 4, 1])), (arr("f8", 4), arr("i8", 2, values=[0, 1]))],
    message=True,
    mutates=(0,),
)
def scatter_out_of_range(x, at):
    """A scatter checks all places before it stores."""
    x[at] = 9


@program([raising(IndexError, arr("f8", 4), arr("b1", 3))], message=True)
def mask_of_wrong_length(x, mask):
    return x[mask]


@program([raising(IndexError, arr("f8", 4), 1.0)], fell_back=None)
def float_as_index(x, i):
    return x[i]


@program(
    [raising(ZeroDivisionError, 5, 0), raising(ZeroDivisionError, 5.0, 0), raising(ZeroDivisionError, 0, 0.0)],
    message=True,
)
def division_by_zero(a, b):
    return a / b


@program(
    [raising(ZeroDivisionError, 5, 0), raising(ZeroDivisionError, 5.0, 0.0), raising(ZeroDivisionError, True, 0)],
    message=True,
)
def floor_division_by_zero(a, b):
    return a // b


@program([raising(ZeroDivisionError, 5, 0), raising(ZeroDivisionError, 5.0, 0)], message=True)
def remainder_by_zero(a, b):
    return a % b


@program([raising(ZeroDivisionError, 5, 0)], message=True)
def divmod_by_zero(a, b):
    return divmod(a, b)


@program([raising(ZeroDivisionError, 0, -1), raising(ZeroDivisionError, 0.0, -2)])
def zero_to_negative_power(a, b):
    return a**b


@program([(np.float64(5), 0), (np.float32(0), 0.0), (np.int64(5), 0), (arr("i8", 3), 0), (arr("f8", 3), 0)])
def numpy_does_not_raise(a, b):
    return a / b, a // b, a % b


@program([(4,), raising(ZeroDivisionError, 0)], message=True)
def division_in_loop(n):
    total = 0.0
    for i in range(3):
        total += i / n
    return total


@program(
    [
        raising(ValueError, arr("f8", 3), arr("f8", 4)),
        raising(ValueError, arr("f8", 2, 3), arr("f8", 2)),
        raising(ValueError, arr("f8", 0), arr("f8", 3)),
    ],
    message=True,
)
def shapes_do_not_broadcast(x, y):
    return x + y


@program(
    [raising(ValueError, arr("f8", 3), arr("f8", 4)), raising(ValueError, arr("f8", 3), arr("f8", 2, 3))], message=True
)
def in_place_does_not_broadcast(x, y):
    x += y


@program([raising(ValueError, arr("f8", 3), arr("f8", 4))], message=True, mutates=(0,))
def statements_before_mismatch(x, y):
    x *= 2
    x[0] = 7
    return x * y


@program([raising(ValueError, arr("f8", 6), arr("f8", 3))], mutates=(0,))
def mismatch_in_second_round(x, y):
    for k in range(3, 5):
        x[:k] += y


@program([raising(UnboundLocalError, 0), (3,)], message=True)
def unbound_after_loop(n):
    for i in range(n):
        value = i
    return value


@program([raising(UnboundLocalError, False), (True,)], message=True)
def unbound_after_branch(flag):
    if flag:
        value = 1
    return value


@program([raising(UnboundLocalError, 3)], message=True)
def read_before_assignment(n):
    total = count + n  # noqa: F821
    count = 1
    return total + count


@program([raising(NameError, 0), (3,)], message=True)
def unbound_in_closure(n):
    def read():
        return value

    if n:
        value = 1.0
    return read()


@program([raising(NameError, 0), (3,)], message=True)
def unbound_in_generator(n):
    if n:
        value = 2
    return sum(i * value for i in range(3))


@program([raising(NameError, 3)], message=True, fell_back=None)
def unknown_name(n):
    return n + no_such_name  # noqa: F821


@program([raising(AttributeError, arr("f8", 3))], message=True, fell_back=None)
def unknown_attribute(x):
    return x.no_such_attribute


@program([(3,), raising(ValueError, -1), raising(ValueError, -1.5)], message=True)
def raised_with_message(n):
    if n < 0:
        raise ValueError("n must not be negative")
    return n * 2


@program([(arr("f8", 3), 1), raising(ValueError, arr("f8", 3), 7), raising(IndexError, arr("f8", 3), -1)], message=True)
def raised_with_f_string(x, k):
    if k < 0:
        raise IndexError(f"{k} is below 0, shape {x.shape}")
    if k >= len(x):
        raise ValueError(f"{k} of {len(x)}, {k * 0.5:.2f}")
    return x[k]


@program([raising(RuntimeError, 2), raising(NotImplementedError, 0)], message=True)
def raised_without_arguments(n):
    if n:
        raise RuntimeError
    raise NotImplementedError


@program([(3,), raising(AssertionError, 0), raising(AssertionError, -4)], message=True)
def assertion(n):
    assert n, "n is zero"
    assert n > 0
    return n


@program(
    [raising(ValueError, arr("f8", 5, values=[1, 2, -3, 4])), (arr("f8", 3, values="positive"),)],
    message=True,
    mutates=(0,),
)
def raised_in_loop(x):
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError("negative element")
        x[i] = x[i] * 2


@program([raising(ValueError, arr("f8", 3)), raising(ValueError, arr("b1", 2)), (arr("f8", 1),)], message=True)
def truth_of_array(x):
    if x > 0:
        return 1
    return 0


@program([raising(TypeError, arr("f8", 3)), (2.5,), (np.int64(3),)])
def scalar_of_array(x):
    return float(x)


@program([raising(TypeError, None), raising(TypeError, (1, 2))], fell_back=None)
def wrong_operand_type(x):
    return x - 1


@program([raising(TypeError, 3), raising(TypeError, 2.5)], message=True, fell_back=None)
def number_is_not_subscriptable(x):
    return x[0]


@program([raising(TypeError, 3)], message=True, fell_back=None)
def number_is_not_iterable(x):
    total = 0
    for v in x:
        total += v
    return total


@program([raising(ValueError, arr("f8", 2, 3), arr("f8", 2, 3))])
def matmul_mismatch(a, b):
    return a @ b


@program(
    [
        large(arr("f8", 50_000), arr("i8", 50_000, values="ascending")),
        large(arr("f8", 50_000), arr("i8", 50_001, values="ascending"), raises=IndexError),
        large(arr("f8", 49_000), arr("i8", 50_000, values="ascending"), raises=IndexError),
    ],
    message=True,
)
def first_error_in_order(x, at):
    """Of several bad places the first in iteration order is reported, whatever thread met it."""
    return x[at] * 2.0


@program([raising(np._core._exceptions._UFuncNoLoopError, arr("f8", 3), "a")], fell_back=None, opaque=None)
def array_plus_string(x, s):
    return x + s


@program([raising(ValueError, arr("f8", 4), arr("f8", 4))], fell_back=None, opaque=None)
def caught(x, y):
    """try is refused: the function runs in plain Python."""
    try:
        x[0] = 1 / 0
    except ZeroDivisionError:
        raise ValueError("caught") from None


@program([(4,), (0,)], fell_back=None, opaque=None)
def handled(n):
    try:
        return 1 / n
    except ZeroDivisionError:
        return -1
    finally:
        n += 1


@program(
    [raising(ValueError, arr("f8", 2, 3, 4), arr("f8", 5, 6)), raising(ValueError, arr("f8", 0, 0, 3), arr("f8", 3))]
)
def long_message_of_shapes(x, v):
    x[..., :2] += v


@program(
    [
        raising(ValueError, arr("f8", 3), arr("f8", 1, 3)),
        raising(ValueError, arr("i4", 0), arr("i4", 1, 0)),
        raising(ValueError, arr("i4"), arr("i4", 1)),
    ],
    message=True,
)
def output_of_fewer_axes(x, y):
    """An output is never broadcast, not even by axes of extent 1."""
    x += y


class NotPositive(ValueError):
    """An exception of the user's."""


class At(Exception):
    """One with several arguments."""

    def __init__(self, place, value):
        super().__init__(place, value)
        self.place = place


@program([(arr("f8", 3),), raising(np.linalg.LinAlgError, -1.0), raising(NotPositive, 0)], message=True)
def exceptions_found_by_name(x):
    if np.ndim(x) == 0:
        if x < 0:
            raise np.linalg.LinAlgError("negative")
        raise NotPositive(f"{x} is not positive")
    return x


@program(
    [
        raising(ValueError, 1, 2.5),
        raising(ValueError, 10**9, -0.5),
        raising(ValueError, -3, 1e300),
        raising(ValueError, 2, math.nan),
    ],
    message=True,
)
def percent_formats(i, x):
    raise ValueError(
        "%d|%5d|%-5d|%05d|%+d|%i|%f|%8.3f|%.0e|%g|%s|%s|%r|100%%|{}" % (i, i, i, i, i, i, x, x, x, x, i, x, x)
    )


@program([raising(ValueError, 1, 2.5), raising(ValueError, -7, 0.1)], message=True)
def str_formats(i, x):
    raise ValueError("{:4d}|{x:.3e}|{}|{{}}|{y!r}".format(i, x, x=x, y=x))


@program([(4, 3), raising(ValueError, 4, 2), raising(ValueError, 4, 0)], message=True)
def percent_in_a_loop(n, m):
    for i in range(n):
        if i > m:
            raise ValueError("row %d of %d" % (i, n) + f" is beyond {m}")
    return n


@program(
    [(arr("f8", 3), 5.0), (arr("f8", 3), 9.0)],
    opaque=None,
    mutates=(0,),
)
def not_raised_with_arguments(x, limit):
    for i in range(len(x)):
        x[i] *= 2
        if x[i] > 1e6 * limit:
            raise At(i, x[i])
        if x[i] < -1e6 * limit:
            raise At(i, x)
    return x


@program([raising(At, 3), raising(At, 0)], opaque=None)
def raised_with_arguments(i):
    raise At(i, np.zeros(i))


@program([(1.5, 2), (-0.0, 3), (math.inf, 0)], opaque=None)
def strings_given_back(x, n):
    return f"{x:.2f}|{n:3d}", f"{x}{n!r}", "constant"


@program([(arr("f8", 4),), (arr("i4", 2, 3),)], opaque=None, regrouped=8)
def dicts_given_back(x):
    """Each call gives dicts of its own, with the very arrays."""
    y = x * 2
    return {"mean": y.mean(), "x": x, "y": y, "view": x[1:], "inner": {"n": len(x)}, "none": None}, y


_shown: list[str] = []


def _show(text, *more):
    _shown.append(text % more if more else text)


@program([(arr("f8", 3), 3, True), (arr("f8", 3), 3, False), (arr("f4", 3), 2, True)], opaque=None)
def told_on_the_way(x, n, verbose):
    """Formatted strings are handed to Python as they are made."""
    for i in range(n):
        x = x * 0.5
        if verbose:
            _shown.append(f"{i:3d} {x.max():.3e} {x.shape} {x}")
            _show("step %d of %s", i, n)
    return x


@program([(5, True), (5, False)], opaque=1)
def printed_in_a_loop(n, verbose):
    """A loop of scalars is compiled although it may print."""
    s = 0.0
    for i in range(n):
        s += i * 0.5
        if verbose and s > 1e9:
            print(f"step {i}: {s:.3f}")
    return s


@program([raising(ValueError, arr("f8", n)) for n in (0, 2)] + [(arr("f8", 1),)], message=True)
def truth_of_an_array(x):
    return 1 if x else 2


@program(
    [raising(ValueError, arr("f8", *s)) for s in ((0, 1), (0, 3), (1, 2), (2, 1))] + [(arr("f8", 1, 1),)], message=True
)
def truth_of_a_matrix(x):
    return not x


@program(
    [raising(ValueError, arr("i8", 3), arr("i8", n)) for n in (4, 2)] + [(arr("i8", 3), arr("i8", 3))], message=True
)
def three_shapes(x, y):
    return np.where(x > 0, np.int8(3), y), np.clip(x, 0, y)


@program(
    [
        raising(ValueError, arr("i8", 3), arr("i8", 4)),
        raising(ValueError, arr("i8", 2, 3), arr("i8", 2, 5)),
        raising(ValueError, arr("i8", 3, 3), arr("i8", 2, 5)),
    ],
    message=True,
)
def array_of_unequal_parts(x, y):
    return np.array([x, y])


@program([raising(IndexError, arr("f8", 0)), raising(IndexError, arr("f8", 0, 2)), (arr("f8", 2, 2),)], message=True)
def taken_from_nothing(x):
    return np.take(x, [0])


@program([raising(TypeError, arr("f8", 1), 1.5), raising(TypeError, arr("f8", 1), 2.0)], message=True, opaque=None)
def shape_of_a_float(x, n):
    return np.zeros(n)


@program([raising(ZeroDivisionError, x) for x in (2.5, 3, 0.0)], message=True)
def divmod_by_float_zero(x):
    return divmod(x, 0.0)


@program([(arr("f8", 2, 2),), (arr("i8", 0),)], opaque=None)
def what_python_refuses(x):
    """Operators that raise, whatever they are given, raise where they are reached."""
    n = 0
    try:
        return 1 << -1
    except ValueError:
        n += 1
    try:
        return np.power(-1, -1)
    except ValueError:
        n += 10
    try:
        return int("x")
    except ValueError:
        n += 100
    try:
        return [1, 2, 3][::0]
    except ValueError:
        n += 1000
    if x.ndim > 2:
        return 1 < "a"
    return n


@program(
    [raising(TypeError, arr("f8", 1, values=[2.0])), (1,), raising(IndexError, 3), (-1,)], message=True, opaque=None
)
def item_of_a_range(i):
    return range(3)[i]


@program([raising(IndexError, 7), raising(IndexError, -6), (2,)], message=True)
def item_of_a_list(i):
    return [x * 2 for x in range(5)][i]


@program([raising(ValueError, 0), (2,)], message=True)
def steps_of_a_range(step):
    return [i for i in range(0, 3, step)]


@program(
    [
        raising(OverflowError, arr("u1", 3), -1),
        raising(OverflowError, arr("u1", 3), 300),
        raising(OverflowError, arr("i1", 3), np.int64(300)),
        (arr("u1", 3), 200),
        (arr("i8", 3), 2.5),
        raising(OverflowError, arr("u1", 3), -1.5),
        raising(OverflowError, arr("u8", 3), -1.0),
        raising(OverflowError, arr("i1", 3), 128.0),
        (arr("u1", 3), -0.9),
        (arr("i1", 3), -128.9),
    ],
    message=True,
    opaque=None,
)
def reduced_from_an_initial_value(x, first):
    return np.max(x, initial=first), np.subtract.reduce(x, initial=first)


@program([raising(TypeError, [1, 2], [3, 4]), (arr("i8", 2), [3, 4]), ([1, 2], arr("f8", 2))], fell_back=None)
def product_of_lists(x, y):
    return x @ y


@program([raising(ValueError, arr("f8", 3)), raising(ValueError, arr("f8", 3, 3)), (arr("f8", 2, 7),)], message=True)
def reshaped_with_an_unknown_extent(x):
    return x.reshape(-1, 7), np.reshape(x, (7, -1, 2))


@program([(arr("f8", 0),), (arr("f8", 0, 3),), (arr("f8", 2, 3),)])
def largest_of_nothing(x):
    return np.linalg.norm(x, np.inf), np.linalg.norm(x, np.inf, axis=0)


@program(
    [raising(ValueError, arr("i4", 2, 0), arr("f8", 3)), (arr("i4", 2, 3), arr("f8", 3))], mutates=(1,), regrouped=4
)
def a_call_that_only_python_makes_before_a_store(a, b):
    signal = np.fft.irfftn(a)
    b[...] = 2
    return signal


@program([raising(TypeError, [1j, 2 + 0j]), ([0.5, 2.0, -1.0],)], message=True, fell_back=None)
def largest_without_an_order(numbers):
    return max(numbers)


@program([raising(TypeError, 2j, 1.5), raising(TypeError, 1.5, 2j), (1.0, 0.25)], message=True, fell_back=None)
def functions_of_real_numbers(x, y):
    return math.isfinite(x), math.copysign(1, y), math.pow(x, y), math.fmod(x, y)


@program(
    [raising(TypeError, np.int8(2)), raising(TypeError, np.float32(2.5)), (2.5,), (3,), (True,), (np.float64(-2.5),)],
    message=True,
    fell_back=None,
)
def truncated(x):
    return math.trunc(x)


@program(
    [
        raising(TypeError, np.bool_(True)),
        raising(TypeError, np.array([2])),
        (np.int8(4),),
        (True,),
    ],
    message=True,
    opaque=None,
)
def functions_of_ints(n):
    return math.factorial(n), math.gcd(n, 6), math.isqrt(n)


@program(
    [
        raising(TypeError, arr("u1", 4), 300, 0),
        raising(TypeError, np.uint8(3), 2, 0),
        (arr("u1", 4), np.uint8(3), 300),
        (arr("i4", 4), 2, 0),
        (arr("f4", 4), 2.5, 0),
    ],
    message=True,
    fell_back=None,
)
def selected_from_ints(x, y, otherwise):
    return np.select([x > 2, x < 1], [x, y], otherwise)


@program(
    [raising(IndexError, arr("f8", n), arr("f8", n)) for n in (0, 1)]
    + [raising(ValueError, arr("f8", 3), arr("f8", 2))],
    message=True,
)
def slopes_over_too_few_places(y, x):
    return np.gradient(y, x)


@program(
    [raising(ValueError, arr("i1", 2, 5, 4), arr("f8", 12)), (arr("i1", 2, 5, 4), arr("f8", 4))],
    message=True,
    regrouped=3,
)
def shapes_of_many_axes_in_a_parallel_loop(a, b):
    return np.sum([b * a for _ in range(3)], axis=0)


def changed(a):
    a[0] += 5
    return a[0]


@program([(arr("f8", 3),)], opaque=None, fell_back=None, mutates=(0,))
def percent_formats_in_order(a):
    """Values are formatted one after the other where there are only strings among them, all at once else."""
    return "%s, %r%% %-5s|" % (a, changed(a), a[1]), "%d %s" % (int(a[0]), changed(a)), "%5s|%.2s" % (a[0], "abc")


@program([(arr("f8", 3), 4)], fell_back=None)
def inner_loop_over_what_no_path_has_bound(a, k):
    try:
        b = a[:]
    except Exception:
        rows = np.zeros(k + 1)
    if not k:
        b = [(x, y) for x in range(2) for y in rows]
    return b
