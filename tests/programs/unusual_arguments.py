"""Arguments outside the plain case: right by handing back, by falling back or by compiling, never wrong."""

import decimal
import fractions
from typing import NamedTuple

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising

UNSTATED = {"opaque": None, "fell_back": None}


def made(function):
    return Case(lambda: function())


@program(
    [
        made(lambda: (np.arange(4.0).astype(">f8"),)),
        made(lambda: (np.arange(4).astype(">i4"),)),
        made(lambda: (np.arange(4).astype(object),)),
        made(lambda: (np.array([fractions.Fraction(1, 3), 2], dtype=object),)),
        made(lambda: (np.matrix([[1.0, 2.0], [3.0, 4.0]]),)),
        made(lambda: (np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]).filled(0),)),
        made(lambda: (np.arange(3, dtype=np.longdouble),)),
        (fractions.Fraction(1, 3),),
        (decimal.Decimal("0.5"),),
        (2**70,),
        (-(2**64),),
    ],
    **UNSTATED,
)
def times_two_plus_itself(x):
    return x * 2 + x


@program(
    [
        made(lambda: (np.array(["2020-01-01", "2021-06-01"], dtype="M8[D]"),)),
        made(lambda: (np.array([5, 7], dtype="m8[s]"),)),
    ],
    **UNSTATED,
)
def dates(x):
    return x - x[0], x == x[1]


@program([made(lambda: (np.array([(1, 2.5), (3, 4.5)], dtype=[("n", "i4"), ("v", "f8")]),))], **UNSTATED)
def structured(x):
    return x["v"] * 2 + x["n"]


@program(
    [
        made(lambda: (np.zeros(3, dtype=[("n", "i4"), ("v", "f8")])["v"],)),
        (arr("f8", 4, layout="unaligned"),),
        (arr("i4", 4, layout="unaligned"),),
    ],
    fell_back=None,
    opaque=None,
    mutates=(0,),
)
def unaligned_or_packed(x):
    x += 1
    return x * 2


@program(
    [
        made(lambda: (np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),)),
        made(lambda: (np.lib.stride_tricks.as_strided(np.arange(6.0), (4, 3), (8, 8)),)),
    ],
    **UNSTATED,
)
def overlapping_with_itself(x):
    return x + 1, x.sum(axis=0)


@program(
    [made(lambda: (np.lib.stride_tricks.as_strided(np.arange(5.0), (4,), (0,)),))],
    mutates=(0,),
    fell_back=None,
    opaque=None,
)
def written_through_zero_stride(x):
    x[:] = np.arange(4)
    return x


@program([([1, 2, 3],), ([1.5, 2],), ([],), ([[1, 2], [3, 4]],), ((1, 2),)], **UNSTATED)
def list_argument_to_numpy(x):
    return np.asarray(x) * 2, np.sum(x), np.array(x).shape


@program([([1, 2, 3],), ([1.5],)], **UNSTATED, mutates=(0,))
def list_argument_mutated(x):
    x[0] = x[-1] * 2
    x.append(5)
    return x, len(x)


@program([({"a": 1, "b": 2.5},)], **UNSTATED)
def dictionary_argument(d):
    return d["a"] + d["b"]


@program([("abc",), ("",)], **UNSTATED)
def text_argument(s):
    return len(s), s + "d", s == "abc"


@program([(None, 3), (2, None)], **UNSTATED)
def none_argument(a, b):
    return b if a is None else a * 2


@program([(arr("f8", 2, 1, 2, 1, 2, 1),), (arr("i4", *[1] * 12),)])
def many_axes(x):
    return x + 1, x.sum(axis=-1), x.T.shape


@program([(arr("f8", 3, 0, 2),), (arr("f4", 0, 0),)])
def empty_arrays(x):
    return x * 2 + 1, x.sum(), x.T.shape, x.reshape(-1), x[:0]


@program([(np.float64("nan"),), (np.float32("inf"),), (float("-inf"),), (-0.0,)])
def special_scalars(x):
    return x + 1, x * 0, x == x, -x, abs(x), x < 1


@program([raising(RecursionError, 3)], **UNSTATED)
def endless_recursion(n):
    return endless_recursion(n)


@program([(3,), (0,)], **UNSTATED)
def generator_returned(n):
    def squares():
        for i in range(n):
            yield i * i

    return list(squares()), sum(squares())


@program([(3,)], **UNSTATED)
def class_inside(n):
    class Point:
        def __init__(self, x):
            self.x = x

    return Point(n).x * 2


@program([([1, 2, 3],)], **UNSTATED)
def star_target(items):
    head, *tail = items
    return head, tail


@program([(3, 4)], **UNSTATED)
def set_and_dictionary(a, b):
    return len({a, b, 3}), {a: b}[a], sorted({b: 1, a: 2})


@program([(2,), (5,), ("x",)], **UNSTATED)
def match_statement(x):
    match x:
        case 2:
            return "two"
        case int():
            return "int"
        case _:
            return "other"


class Step(NamedTuple):
    width: float
    values: np.ndarray


@program([made(lambda: (Step(0.5, np.arange(4.0)),))])
def named_tuple_unpacked(step):
    width, values = step
    total = step.width
    for v in values:
        total += v * width
    return total


@program([(arr("f8", 4), k) for k in (0, 1)], opaque=None)
def named_tuple_of_an_argument(x, k):
    step = Step(k, x) if k else Step(k, x + 1)
    out = np.empty(2)
    kept = np.partition(x, 1).max(), np.add.reduceat(x, [0, 2], out=out), out
    return step, kept


@program([(arr("f8", 2, 2), k) for k in (0, 1, 2)], opaque=None, regrouped=8)
def named_tuple_on_one_path(x, k):
    if k == 0:
        return np.linalg.qr(x), k
    step = Step(x + k, k)
    if k == 1:
        return step, k
    return x, type(step) is tuple, isinstance(step, Step), type(step) is Step


@program([(arr("f8", 1, 3, layout=layout),) for layout in ("swapped", "unaligned")], opaque=None, fell_back=None)
def one_row_of_unusual_layout(x):
    return np.squeeze(x)


RANGES = [(range(5, 100),), (range(3),), (range(0),), (range(9, 2, -3),), (range(7, 3),)]
HELD_RANGE = range(1, 6)


@program([*RANGES, (range(2**62, 2**62 + 9, 4),), (range(2**70, 2**70 + 3),)], **UNSTATED)
def goes_through_a_range(r):
    total = 0
    for i in r:
        total += i % 7
    for i, j in zip(r, reversed(r), strict=True):
        total += (i - j) % 5
    return total, r.start, r.stop, r.step


@program(RANGES)
def what_a_range_holds(r):
    return len(r), 5 in r, list(r), r[1:3], r, np.array(r).sum(), [i * 2 for i in r if i in HELD_RANGE]


@program([(arr("f8", 9), range(0, 9, 2)), (arr("f8", 9), range(7, 1, -2))])
def elements_of_a_range(x, r):
    total = 0.0
    for i in r:
        total += x[i]
    return total, x[r]
