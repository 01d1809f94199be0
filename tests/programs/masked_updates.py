"""Elements chosen by a mask, computed with and stored back through it; and programs that only look like that."""

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, program, raising

NONE, SOME, EVERY, ONE = (arr("?", 9, values=flags) for flags in ([0], [0, 1, 0], [1], [0, 0, 0, 0, 1, 0, 0, 0, 0]))
MASKS = [NONE, ONE, SOME, EVERY]
ODD = arr("f8", 9, values="special")


@program(
    [(arr("f8", 9), arr("f8", 9, seed=1), m) for m in MASKS]
    + [(ODD, arr("f8", 9, layout="reversed", values="special"), SOME)],
    mutates=(0,),
)
def update_of_two(x, y, m):
    x[m] = x[m] * 2 + y[m]


@program(
    [(arr("c16", 4, 5), arr("c16", 4, 5, seed=1), 3), (arr("c16", 0, 3), arr("c16", 0, 3), 2)],
    mutates=(0,),
    ulp=16,  # NumPy's products of complex numbers are fused
)
def iterated(z, c, turns):
    count = np.zeros(z.shape, np.int64)
    for n in range(turns):
        inside = np.less(abs(z), 2.0)
        count[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    return count


@program([(arr("f8", 9), m) for m in MASKS] + [(arr("i4", 9), SOME)], mutates=(0,))
def update_in_turn(x, m):
    x[m] += 1
    x[m] *= x[m]
    kept = x[m]
    kept[:] = kept - 2
    x[m] = kept
    return kept


@program([(arr("f8", 9), arr("f8", 9, seed=2), SOME), (arr("f8", 9), arr("f8", 9, seed=2), NONE)], mutates=(0, 1, 2))
def written_in_between(x, y, m):
    chosen = y[m]
    y[3:5] = 7.0
    x[m] = chosen + x[m]
    other = x[m]
    m[4] = not m[4]
    x[m] = x[m] + other.sum()
    return chosen


@program([(arr("f8", 10), SOME), (arr("f8", 10), EVERY)], mutates=(0,))
def shifted_views(x, m):
    left, right = x[:-1], x[1:]
    left[m] = right[m] * 2 + left[m]


@program([(arr("f8", 9), SOME), (arr("f8", 9), EVERY)], mutates=(0,))
def in_another_order(x, m):
    x[m] = x[m][::-1] + x[::-1][m]


@program([(SOME,), (EVERY,), (NONE,)], mutates=(0,))
def mask_that_changes(m):
    m[m] = ~m[m]
    return m.sum()


@program(
    [(arr("f8", 9), arr("f8", 9, seed=3), SOME, ONE), (arr("f8", 9), arr("f8", 9, seed=3), ONE, ONE)], mutates=(0,)
)
def one_of_another_mask(x, y, m, k):
    x[m] = x[m] + y[k]  # equal lengths, or one


@program(
    [raising(ValueError, arr("f8", 9), SOME, EVERY), raising(IndexError, arr("f8", 8), SOME, SOME)],
    mutates=(0,),
    message=True,
)
def masks_of_other_lengths(x, m, k):
    x[0] = 5.0
    x[m] = x[m] + x[k]


@program([(arr("f8", 9), SOME), (ODD, SOME), (ODD, EVERY)], mutates=(0,))
def not_worth_it_for_all(x, m):
    x[m] = np.exp(x[m]) / (1 + x[m])


@program([(arr("f8", 9), arr("i8", 9), SOME)], mutates=(0,))
def through_an_index(x, i, m):
    x[m] = x[np.abs(i[m]) % 9] + x[m]


@program([(arr("f8", 9), arr("f8", 9, seed=4), 4), (arr("f8", 9), arr("f8", 9, seed=4), 0), (ODD, ODD, 3)])
def lists_of_work(z, c, turns):
    """Arrays that are as long as each other in every turn."""
    left = np.zeros(len(z), np.int64)
    places = np.arange(len(z))
    for turn in range(turns):
        if not len(z):
            break
        z = z * z + c
        done = np.abs(z) > 2
        left[places[done]] = turn + 1
        kept = ~done
        z, c, places = z[kept], c[kept], places[kept]
    return left, z, c, places


@program(
    [
        (arr("f8", 9), arr("f8", 9, seed=5), 2),
        raising(ValueError, arr("f8", 9), arr("f8", 9, seed=5), 3),
        (arr("f8", 1), arr("f8", 4), 2),
        (arr("f8", 4), arr("f8", 1), 1),
    ]
)
def of_one_length_or_not(x, y, turns):
    for turn in range(turns):
        x, y = y + x, x * 2
        if turn == 1:
            y = y[: len(y) - 1]
    return x, y


@program([(arr("f8", 7), arr("f8", 7, seed=6), 5), (arr("f8", 1), arr("f8", 1), 5)], mutates=(0, 1))
def exchanged(u, v, turns):
    while turns > 0:
        v[1:-1] = u[:-2] + u[2:]
        u, v = v.copy(), u
        turns -= 1
    return u, v


@program(
    [
        (arr("c16", 9), arr("c16", 9, seed=3), 5),
        (arr("c16", 3, 4), arr("c16", 3, 4, seed=3), 3),
        raising(IndexError, arr("c16", 9), arr("c16", 8, seed=3), 2),
    ],
    sums=256,
)
def escaping(z, c, turns):
    """Complex elements that change under a mask, and when they last did."""
    z, last = z.copy(), np.zeros(z.shape, np.int64)
    for turn in range(turns):
        inside = np.abs(z) < 2.0
        last[inside] = turn
        z[inside] = z[inside] ** 2 + c[inside]
    return z, last


@program([(np.array([0.5, 1e200, 1e300j, -0.1j, np.nan, complex(np.inf, 1)] * 3), 6)])
def left_as_they_are(z, turns):
    z = z.copy()
    for _ in range(turns):
        small = np.abs(z) < 1.0
        z[small] = z[small] * z[small] * 3
    return z


MOST = arr("f8", 9, values=[0.5, 2.0, 3.0, 4.0, 0.25, -1.0, 6.0, -0.0, 8.0])
FEW = arr("f8", 9, values=[-0.5, -2.0, 3.0, -4.0, 0.0, -1.0, -6.0, -0.0, 8.0])


@program(
    [
        (MOST,),
        (FEW,),
        (ODD,),
        (arr("f8", 0),),
        (arr("f8", 3, 4),),
        (arr("f8", 4, 3, layout="F"),),
        (arr("f8", 9, layout="reversed"),),
    ],
    mutates=(0,),
    ulp=2 * ELEMENTARY,
)
def the_same_comparison_twice(x):
    """What is dear is computed in place where most are selected."""
    x[x > 0] = x[x > 0] ** -1.5
    x[x < 1.0] = 1.0 / x[x < 1.0]
    return x[x > 0].size


@program(
    [(MOST, MOST, -3.0), (FEW, MOST, 2.0), (arr("f8", 9), arr("f8", 9, seed=1), 0.5)],
    mutates=(0, 1),
    ulp=2 * ELEMENTARY,
)
def comparisons_that_differ(x, y, limit):
    chosen = x[x > limit]
    x[2] = -x[2]
    try:
        x[x > limit] = np.sqrt(chosen)
    except ValueError:
        x[0] = 99.0
    y[y > limit] = np.exp(x[y > limit])
    flags = y > 0
    flags[0] = not flags[0]
    y[y > 0] = np.log(y[y > 0])
    x[flags] = np.log1p(abs(x[flags]))
    return flags, y > 0


@program([(arr("f8", 9, values=[4.0, 1.0, 9.0, 16.0, -1.0, 25.0, 36.0, -2.0, 49.0]),)], mutates=(0,), ulp=ELEMENTARY)
def shifted_in_one_memory(x):
    a, b = x[1:], x[:-1]
    a[b > 0] = np.sqrt(b[b > 0])
    b[a > 0] = np.exp(-b[a > 0])


@program(
    [
        (arr("f8", 1, values=[value]), arr("b1", 1, values=[flag]), arr("c16", 1, 1))
        for value in (2.0, -1.0)
        for flag in (True, False)
    ],
    mutates=(0,),
)
def selections_of_few(x, b, c):
    four = np.arange(4) * x[0]
    x[b] += 1.0
    return (
        x[b],
        (x * 2)[x > 0],
        c[c != 0],
        four[four > 2.0],
        four[np.array([True, False, b[0], True])],
        x[np.nonzero(b)],
    )
