"""`finally`, and what is known around `try`: names that are unbound, the exception that is handled, statements that
cannot raise."""

import sys
import traceback

import numpy as np

from tests.arrays import arr
from tests.corpus import case, program, raising


@program([case(3), case(0)])
def finally_runs(n):
    total = 0
    try:
        total += 6 // n
    except ZeroDivisionError:
        total -= 1
    finally:
        total += 100
    return total


@program([(arr("f8", 3), 1), (arr("f8", 3), 7), (arr("f8", 3), 0)])
def finally_in_order(x, i):
    log = []
    try:
        log.append(1)
        x[i]
        if i == 0:
            return log
        log.append(2)
    except IndexError:
        log.append(3)
    else:
        log.append(4)
    finally:
        log.append(5)
    return log


@program([(arr("f8", 3), 1), raising(IndexError, arr("f8", 3), 7)], message=True, mutates=(0,))
def finally_binds_what_is_returned(x, i):
    y = 0.0
    try:
        y = x[i]
        return y
    finally:
        y = 99.0
        x[0] = y


@program([(arr("f8", 4), 1), (arr("f8", 4), 7), (arr("f8", 4), 3)])
def finally_forgets_the_exception(x, i):
    n = 0.0
    for k in range(3):
        try:
            n += x[i + k]
        finally:
            n += 1
            continue  # noqa: B012
    return n


@program([(arr("f8", 6),), (arr("f8", 2),)])
def finally_in_a_loop(x):
    total, rounds = 0.0, 0
    for i in range(9):
        try:
            if i == 2:
                continue
            if i == 7:
                break
            total += x[i]
        except IndexError:
            total += 1000
        finally:
            rounds += 1
    return total, rounds


# ---- `try` whose statements cannot raise -----------------------------------------------------------------------------


@program([(arr("f8", 5),)], mutates=(0,))
def continue_and_finally(x):
    for i in range(3):
        try:
            continue
        finally:
            x[i] += 1
    return x[2]


@program([(arr("f8", 5),)], mutates=(0,))
def break_and_finally(x):
    for i in range(3):
        try:
            break
        finally:
            x[i] += 1
    return x[2]


@program([(arr("f8", 5),)])
def nothing_in_a_try(x):
    try:
        pass
    except ValueError as error:
        return str(error)
    return x[0]


@program([(arr("f8", 5),)], mutates=(0,))
def a_function_in_a_try(x):
    x[0] += 1
    try:

        def three():
            return 3

    except ValueError:
        raise
    return three() + x[0]


@program([(arr("f8", 5),)], mutates=(0,))
def return_and_finally(x):
    try:
        return 1.5
    finally:
        x[0] += 1


@program([(arr("f8", 5),)], mutates=(0,), fell_back=None)
def nothing_in_a_try_inside_a_try(x):
    try:
        try:
            pass
        except ValueError as error:
            return str(error)
        finally:
            x[0] += 1
    except IndexError:
        raise
    return x[0]


@program([(1e308, 2), (2.0, 3), (2.0, 1e300), (0.0, -1), (-8.0, 1000)])
def arguments_of_a_power_out_of_range(a, b):
    try:
        return a**b
    except OverflowError as error:
        return error.args, str(error)
    except ZeroDivisionError as error:
        return error.args


@program([(np.array([1, 254], "u1"), k) for k in (0, 3)], opaque=None, fell_back=None)
def defaults_of_a_function_made_in_try(x, k):
    try:

        def pair(v, w=x[k], *, z=6 // (k - 3)):
            return v, w, z

        found = pair(2)
    except IndexError:
        found = "index"
    return found


@program([(0,), (1,), (2,)])
def a_name_of_before_is_unbound(k):
    """The name of an exception is unbound behind its handler, also if the handler does not look at it."""
    e = 1
    try:
        if k == 1:
            raise ValueError("a")
        if k == 2:
            raise KeyError("b")
    except ValueError as e:  # noqa: F811, F841
        pass
    except KeyError as e:  # noqa: F841
        e = 3
    else:
        e = 4
    try:
        return e
    except UnboundLocalError as error:
        return str(error)


@program([(arr("f8", 3), 2), (arr("f8", 3), 12)])
def a_name_is_unbound_by_continue(x, i):
    e = 0.5
    total = 0.0
    for _ in range(2):
        try:
            total += x[i] * e
        except IndexError as e:
            if len(e.args) == 1:
                total += 1
                continue
    try:
        return total, e
    except NameError as error:
        return total, str(error)


@program([(arr("f8", 3), 2), (arr("f8", 3), 12)])
def a_name_is_unbound_by_raising(x, i):
    e = 5
    try:
        try:
            total = x[i] + e
        except IndexError as e:
            raise ValueError("out of range: " + str(e)) from None
    except ValueError as error:
        found = str(error)
    else:
        found = str(total > 5)
    try:
        return e, found
    except NameError as error:
        return str(error), found


@program(
    [(n, k) for n in (3, None, 2.5) for k in (0, 1, 2)] + [(np.float64(2.0), 1), (np.int8(2), 1)],
    opaque=None,
    fell_back=None,
)
def range_of_what_may_be_no_int(n, k):
    m = n if k else None
    total = 0
    try:
        for i in range(m):
            total += i
    except TypeError:
        total = -1
    try:
        for i in range(k, m):
            total += i
    except (TypeError, ValueError) as error:
        return total, str(error)
    return total


@program([(arr("i8", 3, values=values),) for values in ([1, 2, 3], [1, 0, 3], [0, 0, 0])], mutates=(0,))
def leaving_a_loop_beside_a_handler_that_is_never_needed(x):
    n = 0
    for i in range(len(x)):
        try:
            if x[i] > 1:
                break
            n += 1
        except ZeroDivisionError as e:
            n += len(e.args)
        finally:
            x[i] = 7
    return n


@program([(arr("i8", 4, values=[5, 0, 7, -2]), k) for k in range(4)], mutates=(0,), opaque=None, fell_back=None)
def finally_around_what_raises(x, k):
    def work(i):
        try:
            try:
                return 10 // x[i]
            finally:
                x[0] = 50
        except ZeroDivisionError as error:
            x[1] = 60
            raise ValueError("no {} here {0}" + str(error)) from error

    found = []
    while k < 5:
        k += 1
        try:
            if x[k - 1] == 7:
                continue
            found.append(work(k - 1))
        except (ValueError, IndexError) as error:
            found.append(str(error))
            if k == 4:
                break
        finally:
            x[3] += k
    else:
        return "else", found
    return found, k


def handled():
    """The name of the class of the exception that is handled, which `logging.exception` asks for, too."""
    kind = sys.exc_info()[0]
    return "" if kind is None else kind.__name__


@program([(arr("f8", 4), 2), (arr("f8", 4), 7)], opaque=None, fell_back=None)
def handled_in_a_callee(x, i):
    try:
        y = x[i]
    except IndexError:
        return -1.0, handled(), traceback.format_exc().splitlines()[-1]
    return y, handled(), ""


@program([(arr("f8", 5), 3), (arr("f8", 5), 0), (arr("f8", 5), 9)], opaque=None, fell_back=None)
def handled_in_turns(x, n):
    """A handler that ends, in whatever way, handles nothing any more."""
    seen = []
    total = 0.0
    for i in range(n):
        try:
            total += x[i + 2] / (i - 1)
            total += 1 // (i - 1)
        except ZeroDivisionError:
            seen.append(handled())
            continue
        except IndexError:
            seen.append(handled())
            if i > 4:
                break
        finally:
            seen.append(handled())
    return total, seen, handled()


@program([(arr("f8", 4), 2, 0), (arr("f8", 4), 7, 0), (arr("f8", 4), 7, 1)], opaque=None, fell_back=None)
def handled_inside_a_handler(x, i, d):
    seen = []
    try:
        y = x[i]
    except IndexError:
        seen.append(handled())
        try:
            y = float(i // d)
        except ZeroDivisionError:
            seen.append(handled())
            y = 0.0
        seen.append(handled())
    seen.append(handled())
    return y, seen


def again():
    raise


@program([(arr("f8", 4), 2), raising(IndexError, arr("f8", 4), 7)], message=True, opaque=None, fell_back=None)
def handled_and_raised_by_a_callee(x, i):
    try:
        return x[i]
    except IndexError:
        again()


class Noting:
    """A manager that notes which exception is handled when it is entered and left."""

    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        self.seen.append(handled())

    def __exit__(self, *error):
        self.seen.append(handled())


@program([(arr("f8", 4), 2), (arr("f8", 4), 7)], opaque=None, fell_back=None)
def handled_around_a_manager(x, i):
    seen = []
    y = 0.0
    try:
        y = x[i]
    except IndexError:
        with Noting(seen):
            y += 1.0
    with Noting(seen):
        y += 1.0
    return y, seen


@program([(arr("f8", 4), 2), (arr("f8", 4), 7)], opaque=None, fell_back=None)
def handled_no_more_behind_the_handler(x, i):
    """What follows where only the handler comes to its end."""
    try:
        return x[i], ""
    except IndexError:
        seen = handled()
    return seen, handled()
