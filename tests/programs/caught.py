"""Exceptions that a function catches itself: which handler, and the state of every name where they came."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import case, program, raising


@program([(arr("f8", 4), 2), (arr("f8", 4), 7), (arr("f8", 4), -5), (arr("f8", 0), 0)])
def element_or_default(x, i):
    try:
        return x[i]
    except IndexError:
        return -1.0


@program([([1, 2, 3, 4], [1, 0, 2, 0]), ([], []), ([5], [0])], fell_back=None)
def quotients(x, y):
    total = 0
    failed = []
    for i in range(len(x)):
        try:
            total += x[i] // y[i]
        except ZeroDivisionError:
            failed.append(i)
    return total, failed


@program([(arr("f8", 3), 2), (arr("f8", 3), 5), (arr("f8", 3), 0)], mutates=(0,))
def loop_until_out_of_range(x, n):
    """What was stored and bound before the exception stays."""
    total = 0.0
    i = -1
    try:
        for i in range(n):
            total += x[i]
            x[i] = i
    except IndexError:
        return total, i
    return total, n


def _root(v):
    if v < 0:
        raise ValueError("negative")
    if v == 0:
        return 0.0
    return math.sqrt(v)


@program([(arr("f8", 5, values=[1.0, -4.0, 9.0, 0.0, -0.0]),), (arr("f8", 0),)])
def raised_by_a_function(x):
    out = np.zeros(len(x))
    bad = 0
    for i in range(len(x)):
        try:
            out[i] = _root(x[i])
        except ValueError:
            bad += 1
            continue
        else:
            out[i] += 1
        bad += 10
    return out, bad


@program(
    [
        ([0, 1, 2, 3], 0, 1),
        ([0, 1, 2, 3], 9, 1),
        ([0, 1, 2, 3], 2, 0),
        ([0, 1, 2, 3], 2, 7),
        ([0, 1, 2, 3], 9, 7),
    ],
    fell_back=None,
)
def several_handlers(x, i, j):
    y = z = 0
    try:
        y = x[i]
        z = y / x[j]
        y += 100
    except IndexError:
        z = -1.0
    except (ZeroDivisionError, ValueError):
        z = -2.0
    return y, z


@program([(arr("f8", 5),), (arr("f8", 2, values=[9.0, 9.0]),), (arr("f8", 0),)])
def search_without_a_bound(x):
    k = 0
    while True:
        try:
            if x[k] > 8:
                break
            k += 1
        except IndexError:
            k = -1
            break
    return k


@program([(arr("f8", 5),), (arr("f8", 5, values=[100.0] * 5),), (arr("f8", 2, 3),)])
def raise_as_a_jump(x):
    try:
        if x.sum() > 100:
            raise RuntimeError("big")
        y = x * 2
    except Exception:
        y = x - 1
    return y


@program(
    [(arr("f8", 3), 1), (arr("f8", 3), 4), raising(ZeroDivisionError, arr("f8", 3), 0), raising(TypeError, "abc", 1)],
    message=True,
    fell_back=None,
    mutates=(0,),
)
def others_pass(x, n):
    """Exceptions that no handler names leave the function, and so do those of handlers and of else."""
    k = 6
    try:
        k = k // n
        x[n] = k
    except IndexError:
        k = -k
    else:
        x[0] += k
    return k


@program([raising(KeyError, arr("f8", 3), 5), (arr("f8", 3), 1)], message=True, opaque=2)
def handler_raises(x, n):
    try:
        y = x[n]
    except IndexError:
        raise KeyError(n) from None
    return y


@program([(arr("f8", 3), 1), (arr("f8", 3), 5), (arr("f8", 3), 2), (arr("f8", 3), 0)])
def leaving_in_every_way(x, n):
    total = 0.0
    for k in range(4):
        for i in range(3):
            try:
                if k == n:
                    break
                if i > n:
                    continue
                for j in range(i, 5):
                    if j == 4 and k == 3:
                        return total, "end"
                    total += x[j] * (k + 1)
            except IndexError:
                total += 0.5
            total += 0.25
        else:
            total += 1000
    return total, "all"


@program([(arr("f8", 3, 4), 2), (arr("f8", 3, 4), 3), (arr("f8", 3, 4), -4)])
def row_or_zeros(a, i):
    try:
        row = a[i] * 2
    except IndexError:
        row = np.zeros(a.shape[1])
    return row + 1


@program([(5, 0), (5, 2), (0, 0)])
def nested_in_a_handler(n, k):
    try:
        r = n % k
    except ZeroDivisionError:
        try:
            r = k // n
        except ZeroDivisionError:
            r = -1
    return r


@program([(arr("f8", 3), 1), (arr("f8", 3), 0)])
def unbound_where_it_came(x, n):
    try:
        y = 1 // n
        z = x[y]
    except Exception:
        try:
            return y
        except UnboundLocalError:
            return -1
    return z


@program([(arr("f8", 3), arr("f8", 3)), (arr("f8", 3), arr("f8", 4))], mutates=(0,), regrouped=8)
def shapes_that_do_not_fit(x, y):
    try:
        x += 1
        x += y
        return x.sum(), "fits"
    except ValueError:
        return x[0], "does not"


@program([(arr("f8", 4), 3), (arr("f8", 4), 6), (arr("f8", 0), 1)])
def default_of_a_nested_function(x, n):
    def at(k):
        try:
            return x[k]
        except IndexError:
            return 0.0

    total = 0.0
    for k in range(n):
        total += at(k)
    return total


@program([(arr("f8", 4), arr("i8", 2, values=[0, 3])), (arr("f8", 4), arr("i8", 2, values=[0, 4]))], fell_back=None)
def gather_out_of_range_caught(x, at):
    """An exception that comes out of an array operator."""
    try:
        return x[at]
    except IndexError:
        return x[:0]


@program([(arr("f8", 2, 2),), (arr("f8", 2, 2, values=[1.0, 2.0, 2.0, 4.0]),)], ulp=64)
def singular_or_not(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.zeros_like(a)


class _Odd(ValueError):
    def __init__(self, number):
        super().__init__(f"{number} is odd")


def _even(x, k):
    """Python's alone; it changes its argument before it raises."""
    x[0] = eval("k + 0.5")
    if k % 2:
        raise _Odd(k)
    if k > 5:
        raise MemoryError
    return x[k:] * 2


@program([case(arr("f8", 6), 5), case(arr("f8", 6), 0), raising(MemoryError, arr("f8", 6), 8)], opaque=1, mutates=(0,))
def raised_by_python(x, n):
    """Of what Python does, only exceptions that a handler names are caught; what had happened has happened."""
    total, odd = 0.0, 0
    for k in range(n):
        row = np.sort(x * k)
        for i in range(len(x)):
            total += row[i]
        try:
            total += _even(x, k).sum()
        except (KeyError, _Odd):
            odd += 1
        except IndexError:
            odd += 100
        total += x[0]
    return total, odd


_noted = []


def _note(k):
    _noted.append(k)
    return eval("1 // (len(_noted) - 1)")


def _changing(k):
    return eval("k if k == 1 else k * 0.5")


@program([case(k, setup=_noted.clear) for k in (1, 1, 1, 2, 2, 1)], opaque=None, fell_back=None)
def told_again_after_one_was_caught(k):
    """When a result has another type than before, what has raised is not done again."""
    r = 5
    try:
        r = _note(k)
    except ZeroDivisionError:
        r = -1
    s = _note(k)
    return _changing(k), r, s, len(_noted)


def _first(items, at):
    return eval("items[at]")


@program([(2, 1), (2, 3), (-5, -1)], opaque=2)
def tuples_from_python(k, at):
    """Nothing that Python gives is there if it has raised."""
    number, pair = 1.5, (k, 2.5)
    try:
        number = _first((k, 7, 9), at)
        pair = _first(((k, 0.5), (1, 2.5)), at)
    except IndexError:
        number += 10
    return number, pair


@program([("12",), ("x",)])
def exception_looked_at(text):
    try:
        return int(text), ""
    except ValueError as error:
        return 0, str(error)


@program([(arr("f8", 2, 2),), (arr("f8", 3, 1, values=[-1.0, 2.0, 3.0]),), (arr("f8", 2, 0),), (arr("f8", 0, 1),)])
def ambiguous_condition(a):
    try:
        if a[0] < 0:
            return 1
    except ValueError:
        return -1
    except IndexError:
        return -2
    return 0


@program([(arr("i8", 3), 2), (arr("i8", 1, values=[3]), 0), (arr("i8", 1, values=[2]), -1), (arr("i8", 0), 1)])
def ambiguous_conditions_of_loops(a, k):
    steps = 0
    try:
        for i in range(2):
            if a and i:
                steps += 10
            while not (a + k) or a > 0:
                a = a - 1
                steps += 1
        assert a or k > 0
    except ValueError:
        return -1 - steps
    except AssertionError:
        return 100 + steps
    return steps


@program([(3, 0), (0, 1), (-1, 5), (9, 7), (2, 2)])
def one_inside_the_other(n, k):
    t = 0
    for i in range(3):
        try:
            try:
                try:
                    t += 10 // n
                    if k == i:
                        raise KeyError("k")
                except IndexError:
                    t += 1
                t += 1
                if k == 5:
                    raise IndexError("five")
            except ZeroDivisionError:
                t += 100
                if k == 1:
                    continue
            else:
                t += 7
        except KeyError:
            t += 1000
            if i == k:
                break
        except IndexError:
            t += 50000
    return t


@program(
    [(arr("f8", 3), 1), raising(IndexError, arr("f8", 3), 7), raising(ValueError, arr("f8", 3), -1)],
    message=True,
    mutates=(0,),
)
def raised_again(x, i):
    try:
        if i < 0:
            raise ValueError(f"negative: {i}")
        return x[i]
    except (IndexError, ValueError):
        x[0] = -1
        raise


@program([(3,), (0,), (-2,)])
def told_apart(n):
    try:
        if n < 0:
            raise ValueError(f"{n} is negative")
        return 1 // n
    except Exception as error:
        if isinstance(error, ZeroDivisionError):
            return type(error).__name__
        return str(error), error.args


@program([(arr("f8", 3), arr("f8", 3)), (arr("f8", 3), arr("f8", 4))])
def text_of_an_exception(x, y):
    try:
        text = ""
        z = x + y
    except ValueError as error:
        z, text = x, f"not added: {error}"
    return z, text


@program([(3,), raising(ValueError, 0)], message=True, opaque=3)
def raised_from_another(n):
    try:
        return 6 // n
    except ZeroDivisionError as error:
        raise ValueError("bad n") from error


@program([(2,), (0,), (-1,)])
def catches_where_it_is_called_in_try(n):
    def inverse(v):
        try:
            return 10 // (v - 1)
        except ZeroDivisionError:
            return 100 // v

    try:
        return inverse(n) + inverse(n + 1)
    except ZeroDivisionError:
        return -7


@program([(2,), (0,)])
def name_of_the_exception_is_unbound_afterwards(n):
    try:
        return 1 // n
    except ZeroDivisionError as error:
        text = str(error)
    try:
        return str(error)  # noqa: F821
    except UnboundLocalError:
        return text


@program([(2,), (0,), (-3,)])
def loops_that_raise_by_themselves(n):
    t = 0
    try:
        for i in range(0, 10, n):
            t += i
        while t < 100:
            t += 100 // (n + 3)
        else:
            t += 7
    except ValueError:
        t = -1
    except ZeroDivisionError:
        t = -2
    return t


@program([(arr("f8", 4), arr("f8", 3)), (arr("f8", 4), arr("f8", 4))], fell_back=True)
def a_loop_whose_step_raises(x, y):
    total = 0.0
    try:
        for one, other in zip(x, y, strict=True):
            total += one * other
    except ValueError:
        return -total
    return total


@program(
    [(arr("f8", 5), 1), (arr("f8", 5), 7), (arr("f8", 5), 2), (arr("f8", 5), -9)],
    mutates=(0,),
    opaque=None,
    fell_back=None,
)
def name_of_what_was_caught(x, n):
    """One compiled function for all the calls: the name is another one from call to call."""
    x[0] = 3
    try:
        x[n] = 1
        if n == 1:
            raise ValueError("one")
    except (ValueError, IndexError) as error:
        return type(error).__name__, str(error)
    return "", ""


@program([(arr("i8", 2), arr("f8", 2), 3, 1), (arr("i8", 2), arr("f8", 2), 5, 1)], opaque=None, fell_back=None)
def caught_around_an_array_of_either_type(a, c, k, m):
    found = 0
    if k > 3:
        a = a + c
    try:
        found = a[a % a.shape[0]]
        found = a[[m % a.shape[0]]]
    except IndexError:
        m = c + 1
    return found, m


@program([(arr("f8", 3, 4), 1), (arr("f8", 3, 4), 7)], opaque=None)
def caught_around_python_then_used(a, k):
    try:
        parted = np.partition(a, k)
    except ValueError:
        return a.shape
    return parted * 2
