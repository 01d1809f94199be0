"""`with` statements: managers are Python's, the body is compiled, and left by exceptions and otherwise as in Python."""

import contextlib
import io
import threading

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising

LOCK = threading.Lock()


class Journal:
    """A manager that says what has been done with it, and swallows what it is told to."""

    def __init__(self, swallows=()):
        self.said, self.swallows = [], swallows

    def __enter__(self):
        self.said.append("entered")
        return 2.0

    def __exit__(self, kind, error, traceback):
        self.said.append((kind, str(error), traceback is not None))
        return kind is not None and issubclass(kind, self.swallows)


def journal(*args, swallows=(), **options):
    return Case(lambda: (Journal(swallows), *(one.make() if hasattr(one, "make") else one for one in args)), **options)


@contextlib.contextmanager
def strict():
    with np.errstate(all="raise"):
        yield


@program([(arr("f8", 9),)], opaque=3)
def loop_under_a_lock(x):
    with LOCK:
        total = 0.0
        for i in range(len(x)):
            total += x[i] * x[i]
    return total, LOCK.locked()


@program([(arr("f8", 9),)], opaque=None)
def written_to_a_file(x):
    with io.StringIO() as file:
        file.write(str((x * 2 > 1).sum()))
        total = 0.0
        for v in x:
            total += v > 0
        file.write(str(total))
        text = file.getvalue()
    return text, file.closed


@program(
    [
        journal(arr("f8", 5), 2),
        journal(arr("f8", 5), 9, raises=IndexError),
        journal(arr("f8", 5), 9, swallows=IndexError),
        journal(arr("f8", 5), 9, swallows=KeyError, raises=IndexError),
    ],
    opaque=None,
)
def element_under_a_manager(manager, x, i):
    y = -1.0
    with manager:
        y = x[i] * 3
    return y, manager.said


@program([journal(arr("f8", 5), 2), journal(arr("f8", 5), 9, raises=IndexError)], opaque=None, fell_back=None)
def returns_and_breaks(manager, x, n):
    for k in range(3):
        with LOCK, manager as factor:
            if k == 1:
                break
            total = 0.0
            for i in range(n):
                total += x[i] * 2
            if total > 1e9:
                return factor
    with manager:
        return total, manager.said


@program(
    [journal(arr("f8", 5), 2), journal(arr("f8", 5), 9), journal(arr("f8", 5), 7, swallows=IndexError)],
    mutates=(1,),
    opaque=None,
)
def caught_around_a_manager(manager, x, i):
    try:
        with manager:
            x[i] = x[i] * 2
    except IndexError:
        return -7.0, manager.said
    return x.sum(), manager.said


@program([journal(arr("f8", 3), 1), journal(arr("f8", 3), 5, raises=KeyError)], opaque=None, fell_back=None)
def raised_under_a_manager(manager, x, i):
    with manager:
        if i > 2:
            raise KeyError(i)
        y = x[i]
    return y


@program(
    [
        journal(arr("f8", 3), 1),
        journal(arr("f8", 3), 5, raises=ValueError),
        journal(arr("f8", 3), -1, raises=IndexError),
        journal(arr("f8", 3), 7, swallows=ValueError),
    ],
    opaque=None,
    message=True,
)
def messages_raised_under_a_manager(manager, x, i):
    y = 0.0
    with manager:
        if i > 2:
            raise ValueError(f"{i} of {len(x)} is too much")
        elif i < 0:
            raise IndexError("negative")
        y = (x * 2)[i]
    return y, manager.said


@program([(arr("f8", 5),)], opaque=None, fell_back=None)
def managers_that_change_operators(x):
    with np.errstate(all="ignore"), contextlib.nullcontext(2.0):
        y = (x / 0).sum()
    with contextlib.suppress(FloatingPointError), strict():
        y = (x / (x - x)).sum()
    return y


@program([raising(TypeError, arr("f8", 3))], opaque=None, fell_back=None)
def no_manager(x):
    with 5:
        return x.sum()
