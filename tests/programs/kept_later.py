"""Callees that keep a list or dict, and change it when they are asked to, later in the same call: lists that are
arguments, that Python gives, and that the function itself makes.

What the function goes on with has to be the very object. Most of these are left to Python as a whole; that is as right
as compiling them.
"""

import contextlib
import functools

import numpy as np

from tests.corpus import Case, program


class Later(dict):
    """Keeps what it is given, and changes it when it is asked to."""

    def __init__(self, kept):
        self.kept = kept

    def change(self):
        found = self.kept
        while isinstance(found, tuple):
            found = found[0]
        if callable(found):
            found(4)
        else:
            found.append(4)


@contextlib.contextmanager
def noted(log):
    log.append("in")
    try:
        yield 5
    finally:
        log.append("out")


def given(*lists):
    """Calls with lists that are short and long, of numbers and texts, and an array."""
    return [functools.partial(lambda values: (list(values), np.arange(3.0)), one) for one in lists]


SHORT_AND_LONG = given([], [1.5, 2.0], [1, 2], ["a"], range(50))


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def argument_given_to_a_keeper(values, x):
    later = Later(values)
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total, len(values)


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def argument_in_a_tuple_given_to_a_keeper(values, x):
    later = Later(((values, 1), x))
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def method_of_an_argument_given_to_a_keeper(values, x):
    later = Later(values.append)
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def function_over_an_argument_given_to_a_keeper(values, x):
    later = Later(lambda value: values.append(value))
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total, len(values)


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def argument_given_to_a_manager(values, x):
    with noted(values) as k:
        total = 0.0
        for v in x:
            total += v * k
        if total < 0:
            raise ValueError("negative")
    return total


@program(given([[1, 2], [3]], [[], [2.5]]), opaque=None, fell_back=None, mutates=(0,))
def item_of_an_argument_given_to_a_keeper(values, x):
    later = Later(values[0])
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total, len(values)


@program(SHORT_AND_LONG, opaque=None, fell_back=None)
def argument_given_back(values, x):
    later = Later(values)
    total = 0.0
    for v in x:
        total += v
    return total, later.kept is values


@program([lambda: (([1.5, 2.0], 3), np.arange(3.0))], opaque=None, fell_back=None, mutates=(0,))
def list_in_a_tuple_given_to_a_keeper(pair, x):
    later = Later((pair[0], 1.0))
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total, len(later.kept[0])


KEPT = {}


def the_same(value):
    """Gives what it is given, in code that is not compiled."""
    KEPT["last"] = value
    eval("1")
    return value


@program(SHORT_AND_LONG, opaque=None, fell_back=None, mutates=(0,))
def argument_under_the_name_of_a_result(values, x):
    other = the_same(values)
    packed = the_same((values, 1))[0]
    total = 0.0
    for v in x:
        total += v
    values.append(9)
    return total, len(other), len(packed), other is values, packed is values


@program(SHORT_AND_LONG, opaque=None, fell_back=None)
def result_beside_the_argument_it_is(values, x):
    other = the_same(values)
    total = 0.0
    for v in x:
        total += v
    return total, values, other, other is values


# ---- what the function makes -----------------------------------------------------------------------------------------

ARRAYS = [lambda: (np.arange(3.0),), lambda: (np.arange(3),)]


@program(ARRAYS, opaque=None, fell_back=None)
def display_given_to_a_keeper(x):
    values = [1.0, 2.0]
    later = Later(values)
    total = x.sum()
    later.change()
    return total, len(values), later.kept is values


@program(ARRAYS, opaque=None, fell_back=None)
def lists_of_many_kinds_given_to_keepers(x):
    made = [v * 2 for v in x]
    copied = list(x)
    counted = list(range(3))
    ordered = sorted(x)
    repeated = [0.0] * 3
    joined = repeated + repeated
    cut = [0.0, 1.0, 2.0][1:]
    of_array = x.tolist()
    pairs = list(zip(x, x, strict=True))
    laters = (Later(made), Later(copied), Later(counted), Later(ordered), Later(repeated), Later(joined), Later(cut))
    for later in laters:
        later.change()
    first, second = Later(of_array), Later(pairs)
    first.change()
    second.change()
    return made, copied, counted, ordered, repeated, joined, cut, of_array, pairs


@program(ARRAYS, opaque=None, fell_back=None)
def comprehension_given_to_a_keeper(x):
    values = [v * 2 for v in x]
    later = Later(values)
    total = 0.0
    for v in x:
        total += v
    later.change()
    return total, values, len(values)


@program(ARRAYS, opaque=None, fell_back=None)
def counts_given_to_a_keeper(x):
    values = list(range(3))
    later = kept_in_a_closure(values)
    total = (x * 2).sum()
    later()
    return total, values


def kept_in_a_closure(kept):
    def change():
        eval("1")
        kept.append(7)

    return change


@program(ARRAYS, opaque=None, fell_back=None)
def dict_given_to_a_keeper(x):
    values = {"a": 1.0, "b": [1.0]}
    later = Later(values["b"])
    added = Later(functools.partial(values.setdefault, "c"))
    total = x.sum()
    later.change()
    added.change()
    return total, len(values), values


@program(ARRAYS, opaque=None, fell_back=None)
def list_of_one_branch_or_another(x):
    if x[0] > 3:
        values = [1.0, 2.0]
    else:
        values = [2.0, 3.0]
    later = Later(values)
    total = x.sum()
    later.change()
    return total, values


@program(ARRAYS, opaque=None, fell_back=None)
def list_under_a_tuple_and_a_closure(x):
    values = [1.0, 2.0]
    pair = values, 1
    later = Later(pair[0])

    def length():
        return len(values)

    total = x.sum()
    later.change()
    return total, len(pair[0]), length()


@program(ARRAYS, opaque=None, fell_back=None)
def row_of_a_list_that_is_made(x):
    rows = [[1.0], [2.0]]
    later = Later(rows[0])
    total = x.sum()
    later.change()
    return total, rows


@program(ARRAYS, opaque=None, fell_back=None)
def method_of_a_list_that_is_made(x):
    values = [1.0, 2.0]
    later = Later(values.append)
    total = x.sum()
    later.change()
    return total, values


@program(ARRAYS, opaque=None, fell_back=None)
def list_of_a_caller(x):
    values = [1.0, x[0]]
    later = kept_by_an_inlined_function(values)
    total = x.sum()
    later.change()
    return total, len(values)


def kept_by_an_inlined_function(values):
    return Later(values)


@program(ARRAYS, opaque=None, fell_back=None)
def list_assigned_to_an_attribute(x):
    later = Later(None)
    values = [1.0]
    later.kept = values
    total = x.sum()
    later.change()
    return total, len(values)


@program(ARRAYS, opaque=None, fell_back=None)
def list_grown_by_each_iteration(x):
    values = [1.0, 2.0]
    count = 0
    for _ in range(3):
        count += grown(values)
    return count, x.sum()


def grown(values):
    eval("1")
    values.append(1.0)
    return len(values)


SETS = [Case(lambda: ({1, 2}, 4, 2)), Case(lambda: (set(), 4, 2))]
GROWING = [([1], 3, 2)]


@program(SETS, opaque=1, mutates=[0])
def set_or_a_set_written_out(s, x, n):
    s |= {x, 9, x}
    return x + n


@program(SETS, opaque=3, mutates=[0])
def methods_given_sets_written_out(s, x, n):
    s.update({x, -1, n})
    s.difference_update({n})
    return s & {x, -1}, x + n


@program(GROWING, opaque=1, mutates=[0])
def sets_written_out_in_a_loop_and_kept(found, n, x):
    for i in range(n):
        found.append({i, x})
    return n


@program(GROWING, opaque=None, fell_back=None, mutates=[0])
def set_kept_and_read(found, n, x):
    made = {n, x}
    found.append(made)
    return len(made), found[-1] is made


@program(GROWING, opaque=None, fell_back=None, mutates=[0])
def set_kept_and_changed(found, n, x):
    made = {x}
    same = made
    found.append(made)
    for i in range(n):
        same.add(i)
    return found


@program(GROWING, opaque=None, fell_back=None, mutates=[0])
def set_in_a_tuple_kept_and_returned(found, n, x):
    made = ({n, x}, 1)
    found.append(made)
    return made
