"""Names that are None, a number, an array or a tuple, depending on the path."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising

SOME = arr("f8", 6, values=[3.0, -1.0, 4.0, 1.0, -5.0, 9.0])


@program([(SOME,), (arr("f8", 0),), (arr("i4", 5),)])
def largest(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best


@program([(SOME,), (arr("f8", 1),), (arr("f8", 0),)])
def first_and_second(x):
    first = second = None
    for v in x:
        if first is None or v > first:
            first, second = v, first
        elif second is None or v > second:
            second = v
    return first, second


@program([(SOME, 0.0), (SOME, 10.0)])
def runs_above(x, limit):
    start = None
    longest = 0
    for i in range(len(x)):
        if x[i] > limit:
            start = i if start is None else start
        elif start is not None:
            longest = max(longest, i - start)
            start = None
    return longest if start is None else max(longest, len(x) - start)


@program([(SOME,), (arr("f8", 0),)])
def where_and_how_much(x):
    best = None
    for i in range(len(x)):
        if best is None or x[i] > best[0]:
            best = (x[i], i)
    return best


@program([(SOME, 2.0), raising(TypeError, SOME, 20.0)], message=True)
def not_found_is_unpacked(x, limit):
    found = None
    for i in range(len(x)):
        if x[i] > limit:
            found = (x[i], i)
    v, i = found
    return v * i


@program([(SOME, 2.0), raising(TypeError, SOME, 20.0)], message=True, mutates=(0,))
def not_found_after_a_store(x, limit):
    found = None
    for v in x:
        if v > limit:
            found = v
    x[0] = 100.0
    return abs(found) + 1


@program([(SOME,), (arr("f8", 1, values=[-1.0]),)])
def state_machine(x):
    state = "start"
    ups = 0
    for v in x:
        if state == "start":
            state = "low" if v < 0 else "high"
        elif state == "low" and v > 0:
            state = "high"
            ups += 1
        elif v < 0:
            state = "low"
    return state, ups


@program([(arr("f8", 3, 4), 0.0), (arr("f8", 3, 4), 1e9), (arr("f8", 0, 4), 0.0)], mutates=(0,))
def row_or_none(a, limit):
    """A view that is stored through when it is there."""
    found = None
    for i in range(a.shape[0]):
        if a[i].sum() > limit:
            found = a[i]
    if found is not None:
        found[0] = -1.0
        return found.sum()
    return 0.0


@program([(SOME, True), (SOME, False)])
def argument_or_none(x, wanted):
    y = None
    if wanted:
        y = x
    return y


@program([(4,), (0,)])
def number_or_array(n):
    y = 0
    for i in range(n):
        y = y + np.full(3, i)
    return y


@program([(3, True), (3, False)])
def rank_by_path(n, square):
    y = np.ones((n, n)) if square else np.ones(n)
    return (y * 2).sum(axis=0)


@program([(SOME, True), (SOME, False)])
def bounds_or_none(x, wanted):
    stop = axis = None
    if wanted:
        stop, axis = 2, 0
    return x[:stop], np.sum(x, axis), x[None, :stop].sum(axis=axis)


@program([(SOME,), (arr("f8", 0),)])
def differences(x):
    previous = None
    found = []
    for v in x:
        if previous is not None:
            found.append(v - previous)
        previous = v
    return np.array(found, dtype=float)


@program([(3,), (0,)])
def none_as_an_exception(n):
    found = n if n else None
    try:
        return found + 1
    except TypeError:
        return -1


@program([(SOME,), raising(ValueError, arr("f8", 2, values=[-1.0, -2.0]))], message=True)
def refused_if_none(x):
    least = None
    for v in x:
        if v > 0 and (least is None or v < least):
            least = v
    if least is None:
        raise ValueError("nothing is positive")
    return least * 2


@program([(SOME,), (arr("f8", 0),)])
def none_in_text(x):
    found = None
    for v in x:
        if v > 3:
            found = v
    return f"found {found}", {"found": found}


@program([(3, True), (0, True), (0, False)])
def types_in_a_dict(n, wanted):
    """What has several types keeps them in what Python puts together."""
    total = 0
    for i in range(n):
        total += i * 0.5
    found = n if wanted else None
    return {"total": total, "found": found}, (total, found)


@program(
    [(arr("f8", 3), arr("f8", 3), 1), (arr("f8", 3), arr("f8", 3), 0), (arr("f8", 0), arr("f8", 0), 0)],
    mutates=(1,),
)
def same_on_both_paths(x, y, k):
    c = np.zeros(len(x))
    for _ in y:
        c = np.vstack([y, x])
    if k > 0:
        try:
            y[k:] += x[k:]
        except IndexError:
            c += y
    return c * 2, y


@program([(arr("f8", 3, 4), kept, other) for kept in (True, False) for other in (True, False)], regrouped=4)
def flags_of_calls(a, kept, other):
    """Where a flag decides what kind of array there is, it is known by its value."""
    axis = 0 if kept else None
    made = np.sum(a, axis=1, keepdims=kept), np.mean(a, axis=axis), np.unique(a, return_counts=not kept)
    return *made, np.linspace(0, 1, 5, retstep=other), np.cumulative_sum(a[0], include_initial=other)


@program([(arr("f8", 2, 3, 4), [0, 1], [2, 0]), (arr("f8", 2, 3, 4), [1], [0])])
def axes_in_lists(a, source, target):
    """What lists hold is known by value where it has to be."""
    return np.moveaxis(a, source, target), np.expand_dims(a, target)


@program([(1.0, 2.5, 4), (1.0, 2.0, 0), (3, 4, 3)])
def none_until_the_first_turn_ends(a, step, n):
    """The first turn does not come to the operation on None: a flag keeps it away."""
    first, last, path = True, None, []
    for _ in range(n):
        if first or abs(a - last) > 2:
            first, new = False, a + step
        else:
            new = a * 2
        last, a = a, new
        path.append(new)
    return path, last


@program([(0,), raising(TypeError, 2)], message=True)
def none_in_the_first_turn(n):
    last, total = None, 0.0
    for i in range(n):
        total += last * 2
        last = i
    return total


@program([(k, j) for k in (0, 1, 2) for j in (0, 1)], opaque=None)
def counted_among_other_kinds(k, j):
    m = None if k == 1 else 3 if k == 0 else 1j
    n = None if j == 1 else 3
    return [m, j].count(m), [m, 1].count(None), (m, n).count(3), [m, n].count(m), (m, n) == (n, m), m in (n,)


@program([(k, j) for k in (0, 1, 2) for j in (0, 1)], opaque=None)
def texts_counted_among_other_kinds(k, j):
    m = "a" if k == 1 else 3 if k == 0 else None
    return [m, j].count(m), [m, "a"].count("a"), m in [m, "a"], (m,) == (None,), [None, m].count(m)


# ---- variables of loops whose types grow, and which the bodies do not read -------------------------------------------

STEPS = arr("f8", 4, values=[4.0, 2.0, 0.5, 0.25])


@program([(STEPS, 1.0), (STEPS, 5), (STEPS, 0.3), (STEPS, 1)], mutates=(0,))
def until_it_is_small(x, tol):
    err = 1
    k = 0
    while err >= tol:
        x[k] += 1
        err = x[k] / 5
        k += 1
        if k == 4:
            break
    return err, k, x.sum()


@program([(STEPS, 3), (STEPS, 0)], mutates=(0,))
def last_of_each(x, n):
    last, largest = 0, True
    for i in range(n):
        x[i] *= 2
        last = x[i]
        largest = i
    return last, largest, x


@program([(STEPS, None), (STEPS, 2)])
def until_one_is_there(x, first):
    err, i = 1, 0
    other = first
    while (err > 0 and other is None) or i < 2:
        if i == 1:
            other = i
        err = x[i] - 1
        i += 1
    return err, other, i


@program([(STEPS, 3), (STEPS, 0)], mutates=(0,))
def nested_and_unread(x, n):
    total, seen = 0.0, 0
    for i in range(n):
        err = 2
        while err > 1:
            total += x[i]
            err = x[i] / 4
            x[i] /= 2
        seen = err
    return total, seen


@program([(STEPS, 2), (STEPS, 9), (STEPS, 0)])
def grown_to_an_array(x, n):
    found = 0
    k = 0
    while k < n and k < 4:
        found = x[k:] + 1
        k += 1
    return found


@program([(STEPS, 3.0), (STEPS, 9.0), (STEPS, 0.0)])
def whether_it_is_whole(x, bound):
    err, k = 1, 0
    while (isinstance(err, int) or err < bound) and k < 4:
        err = x[k] + k
        k += 1
    return err, k, isinstance(err, int)


@program([(STEPS, 0.3), (STEPS, 1), raising(ValueError, STEPS, -2.0)], opaque=None)
def until_it_is_small_or_too_often(x, tol):
    err = 1
    k = 0
    while err > tol:
        err = x[k] - 1
        k += 1
        if k == 4:
            raise ValueError(k, x)
    return err, k
