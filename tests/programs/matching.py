"""`match`: constants, alternatives, sequences, captures, classes, guards."""

import numpy as np

from tests.arrays import arr
from tests.corpus import program


@program([(0, 3.0), (1, 3.0), (2, 3.0), (3, 3.0), (-1, 2.0)])
def constants(kind, x):
    match kind:
        case 0:
            return x
        case 1 | 2:
            y = x * 10 + kind
        case -1:
            y = -x
        case _:
            y = 0.5
    return y


@program([("sum", arr("f8", 4)), ("mean", arr("f8", 4)), ("nothing", arr("f8", 4)), (None, arr("f8", 4))], regrouped=8)
def by_name(how, x):
    match how:
        case "sum":
            return x.sum()
        case "mean" | "average":
            return x.sum() / len(x)
        case None:
            return x[0]
    return np.float64(-1)


@program([(arr("f8", 7, values=[0.0, 1.0, -2.0, 3.5, np.nan, 9.0, -0.0]),)])
def guards_in_a_loop(x):
    counts = np.zeros(4, np.int64)
    last = -1.0
    for v in x:
        match v:
            case 0:
                counts[0] += 1
            case small if small < 1:
                counts[1] += 1
            case other if other < 5:
                counts[2] += 1
                last = small
            case _:
                counts[3] += 1
                continue
        last += v
    return counts, last


@program(
    [((1, 2.0),), ((0, 5.0),), ((3, 4.0),), ((1, 2.0, 3.0, 4.0),), ((),), (5,), ("ab",), ([0, 5.0],), ((1, (2, 3)),)],
    fell_back=None,
)
def sequences(point):
    match point:
        case ():
            return "empty", 0.0
        case (0, y):
            return "axis", y
        case [1, [a, b]]:
            return "nested", a + b
        case (x, y) if x > y - 2 and x == 3:
            return "guarded", x + y
        case (x, y):
            return "pair", x * y
        case [first, *rest, last]:
            return "long", first + last + len(rest)
        case str():
            return "text", 0.0
        case int(n):
            return "number", n
    return "else", 0.0


@program([(3, 4), (0, 4), (3, 0), (0, 0)])
def pair_of_values(a, b):
    match a, b:
        case 0, 0:
            r = 0
        case 0, n:
            r = n
        case m, 0:
            r = -m
        case whole:
            r = whole[0] * whole[1]
    return r


class _Point:
    def __init__(self, x):
        self.x = x


@program([lambda: (_Point(3),), (4,)], fell_back=None, opaque=None)
def looks_into_a_class(p):
    match p:
        case _Point(x=x):
            return x
    return 0
