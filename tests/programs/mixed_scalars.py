"""Names that hold scalars of different types on different paths, in results, stores, indices, containers and tests."""

import math
import operator

import numpy as np

from tests.arrays import arr
from tests.corpus import large, program, raising

BYTES = arr("u1", 3, values=[104, 2, 200])
SIGNED = arr("i1", 3, values=[-3, 2, 100])
LONG = arr("u8", 3, values=[2, 3, 4])
WORDS = arr("i8", 3, values=[-1, 2, 3])
FLOATS = arr("f8", 3, values=[2.5, -1.0, 7.0])
SHORT = arr("f4", 3, values=[0.1, -1.0, 7.0])
FLAGS = arr("b1", 3, values=[1, 0, 1])
NO_FLOATS = arr("f8", 0)
ANY = (BYTES, SIGNED, LONG, WORDS, FLOATS, SHORT, FLAGS)


@program([(3,), (2,), (1,), (2.0,), (True,)])
def larger_beside_its_float(k):
    m = max(k, 2.5)
    return m, float(m)


@program([(3,), (1,)])
def larger_in_a_list_twice(k):
    m = max(k, 2.5)
    return [m, m], m, float(m)


@program([(3,), (1,)])
def its_float_before(k):
    m = max(k, 2.5)
    return float(m), m, {"m": m, "whole": int(m)}


@program([(3, 0.5, 7.5), (0, 0.5, 7.5), (9, 0.5, 7.5), (True, 0, 1)])
def clipped_number(v, lo, hi):
    c = min(max(v, lo), hi)
    return c, float(c)


@program([(x,) for x in (*ANY, NO_FLOATS)])
def best_as_float(x):
    best = 0
    for i in range(len(x)):
        if x[i] > best:
            best = float(x[i])
    return best, float(best)


@program([(arr("i8", 3, values=[5, 0, 7]),), (arr("f8", 3, values=[5, 0, np.nan]),)])
def where_of_two_truths(x):
    return np.where(x > 0, x == x, True), np.where(x > 0, x != x, False), np.where(x > 0, False, x != x)


@program([(x, r) for x in (BYTES, SIGNED, WORDS, FLOATS) for r in (arr("f8", 2), arr("i2", 2))], mutates=(1,))
def best_is_stored(x, r):
    best = -1
    for i in range(len(x)):
        if x[i] > 100:
            best = x[i]
    r[0] = best


@program([(BYTES, WORDS, c) for c in (0, 1, 6)] + [(SIGNED, SHORT, c) for c in (0, 1, 6)])
def three_types(a, b, c):
    v = a[0]
    if c > 0:
        v = 1000
    if c > 5:
        v = b[0]
    return v


@program(
    [(np.uint8(5),), raising(OverflowError, np.uint8(0)), raising(OverflowError, np.int8(-3)), (7,), (0.5,)],
    message=True,
)
def smaller_times_a_thousand(m):
    k = min(m, 1)
    return k * 1000


@program([(BYTES, 3, c) for c in (0, 1, 2)] + [(SHORT, 3, c) for c in (0, 1, 2)])
def multiplied_after_the_test_for_none(x, d, c):
    m = None
    if c > 0:
        m = x[0]
    if c > 1:
        m = d
    if m is None:
        return 0
    return m * 100


@program([(x, k) for x in (BYTES, FLOATS, FLAGS) for k in (0, 1)])
def is_an_int(x, k):
    v = 5
    if k:
        v = x[0]
    if isinstance(v, int):
        return isinstance(v, float), v + 1000
    return isinstance(v, float), v + 1


@program([(x, k) for x in (LONG, WORDS, BYTES) for k in (0, 1)])
def cut_at_a_place(x, k):
    c = x[-1]
    if k:
        c = -1
    return x[c:], x[:c], x[::c]


@program([(x, arr("f8", 5), k) for x in (LONG, WORDS) for k in (0, 1)], mutates=(0, 1))
def stored_at_a_place(x, y, k):
    c = x[-1]
    if k:
        c = -1
    y[c] = 77
    y[c:] += 1
    x[:c] = 7


@program([(x, k) for x in (BYTES, SIGNED, SHORT, FLAGS) for k in (0, 1)])
def sum_of_a_list(x, k):
    v = x[0]
    if k:
        v = 1000
    return sum([v, v]), v + v, sum([v], 0.5)


@program([(1j, arr("f8", 4), 3), (1j, arr("f8", 4), 0), (2, arr("f4", 3), 3), (2j, arr("f8", 0), 3)])
def complex_beside_float64(c, x, k):
    start = c if k > 2 else bool(k)
    items = [c] * len(x)
    return (
        sum(x, start),
        sum([v for v in x], c),
        sum((v * 2 for v in x), start),
        list(map(operator.add, items, x)),
        start,
    )


@program(
    [
        (BYTES, np.uint8(7)),
        raising(OverflowError, BYTES, np.uint8(0)),
        raising(OverflowError, BYTES, 0),
        (BYTES, np.int64(290)),
        (BYTES, True),
    ],
    message=True,
    mutates=(0,),
)
def stored_or_too_large(x, m):
    x[0] = m if m else 300


@program([raising(OverflowError, np.int8(0)), (np.uint8(3),), (np.int64(-3),)], message=True)
def unsigned_or_negative(m):
    return np.uint64(m if m else -2)


@program([(x, k) for x in ANY for k in (0, 1)])
def doubled_and_rounded(x, k):
    c = x[0] if k else 1
    return sum([c, c]), c + c, c == 1, 3 * c


@program([(x, k) for x in ANY for k in (0, 1)])
def truth_and_conversions(x, k):
    c = x[0] if k else True
    return [c, c, float(c)], (c, [c]), {"a": c}, int(c), bool(c), complex(c), not c, c is True


@program([(x, y, k) for x in (BYTES, FLOATS, WORDS) for y in (BYTES, SHORT) for k in (0, 1, 2)], opaque=None)
def two_names(x, y, k):
    c = x[0] if k else 2
    d = y[0] if k > 1 else 0.5
    return max(c, d), min(c, d, 1), sorted([c, d]), sum([c, d]), np.array([c, d]), c < d


@program([(x, k) for x in (BYTES, FLOATS, WORDS) for k in (0, 1)], opaque=None)
def texts_of_it(x, k):
    c = x[0] if k else 2
    return f"{c} {c:.2f} {c!r}", str(c)


def _half(v=1):
    return v / 2 if v > 1 else v


@program([(x, k) for x in ANY[:-1] for k in (0, 1)])
def through_a_helper(x, k):
    c = _half(x[0]) if k else _half()
    d = _half(c)
    return c, d, [c, d]


@program([(x, k) for x in ANY for k in (0, 1, 2)])
def none_too(x, k):
    c = None
    if k == 1:
        c = 3
    if k > 1:
        c = x[0]
    return c, [c], (c is None, c == 3, not c)


@program([(x,) for x in (*ANY, NO_FLOATS)])
def sums_from_zero(x):
    s = 0
    m = -1.0
    for v in x:
        s = s + v
        if v > m:
            m = v
    return s, m, [s, m], s == m, max(s, m)


@program([(x, k) for x in (SHORT, FLOATS) for k in (0, 1)])
def compared_with_a_decimal(x, k):
    v = x[0] if k else 0.1
    return v == 0.1, v < 0.1, x == v, [v] == [0.1], v in (0.1, 2.5)


@program([(k, j) for k in (2**53 + 1, 3) for j in (0, 1)])
def large_ints_and_floats(k, j):
    v = k if j else 2.0**53
    return v == 2.0**53, v == 2**53 + 1, v > 2.0**53, [v], v - 1, float(v), int(v)


@program([(x, k) for x in (BYTES, SHORT, FLAGS) for k in (0, 1)])
def appended(x, k):
    found = []
    c = x[0] if k else 300
    for i in range(3):
        found.append(c if i else 2.5)
    found[0] = c
    return found, len(found), found[k]


@program([(x, n) for x in (BYTES, FLOATS) for n in (0, 2)])
def computed_list(x, n):
    return [v if v > 3 else 0.5 for v in x], [x[i] if i else True for i in range(n)]


@program([(x, k) for x in (WORDS, BYTES) for k in (0, 1)])
def extents_and_ranges(x, k):
    n = x[1] if k else 3
    return np.zeros(n), np.ones((n, 2)), list(range(n)), [0] * n, np.arange(n)


@program([(x, k) for x in ANY for k in (0, 1)], opaque=None)
def properties(x, k):
    v = x[0] if k else x[0].item()
    return v.real, v.imag, type(v) is int, isinstance(v, np.generic), hasattr(v, "dtype"), type(v).__name__


@program([(x, i, k) for x in (FLOATS, SHORT) for i in (WORDS, FLAGS) for k in (0, 1)], opaque=None)
def functions_of_it(x, i, k):
    v = x[2] if k else i[2]
    return np.sqrt(v), np.float32(v), abs(v), np.maximum(v, 3), np.where(x > 0, v, x), round(v, 1) if k else v


@program([(x, k) for x in (BYTES, WORDS, SHORT) for k in (0, 1)], mutates=(0,))
def changed_in_place(x, k):
    v = 3 if k else x[1]
    y = x.copy()
    y += v
    x *= v
    x[1:] = v
    return y


@program([(x, k) for x in ANY for k in (0, 1)])
def order_of_tuples(x, k):
    m = x[0] if k else 2
    return (m, 1) < (2, 0), (x[0], 1) <= (2, 3), (1, m) > (1, 2), (m, 1) == (2, 1)


@program([(x, k) for x in (SIGNED, FLOATS, FLAGS) for k in (0, 1)], opaque=None, fell_back=None)
def repeated_by_an_element_or_a_float(x, k):
    m = x[0] if k else 3.0
    try:
        return "ab" * m
    except TypeError as error:
        return str(error)


@program([(SIGNED, 0), (SIGNED, 1)], opaque=None)
def repeated_by_an_element_or_an_int(x, k):
    m = x[1] if k else 3
    return "ab" * m, m


@program(
    [(arr("c8", 2, values=[1 + 2j, 3j]), FLOATS, SHORT, k) for k in (0, 1)],
    mutates=(0,),
    ulp=8,
)
def powers_by_elements_of_two_arrays(r, x, y, k):
    m = y[0] if k else x[0]
    r **= m


@program([(one, other, k) for one, other in ((BYTES, FLOATS), (SIGNED, SHORT), (FLAGS, WORDS)) for k in (0, 1)])
def loops_of_a_function_for_each_type(x, y, k):
    def grown(v, n):
        t = v
        for _ in range(n):
            t = t * 2 + v
        while t > 100:
            t = t // 3
        return t

    m = x[0] if k else y[0]
    return grown(m, 2), grown(m, 1), m


@program([(2**53 + 1, 3, True), (2**53 + 1, 3, False), (3, 3, True), (3, -3, True)], opaque=None, fell_back=None)
def overflow_beside_a_power_of_floats(n, d, k):
    m = n if k else 2.5
    return m**d


@program([(np.arange(3, dtype="u8"), k) for k in (2, 1)], mutates=(), fell_back=None, opaque=None)
def taken_where_nothing_knows_the_kind(r, k):
    m = None
    for _ in range(k):
        m = False
    r[m] += m
    try:
        some = [1, 2, 3]
        some.pop(m)
    except (OverflowError, TypeError, IndexError):
        some = "caught"
    return some, m


@program([(np.array([200, 3], "u1"), k, j) for k in (0, 1, 2) for j in (0, 1)], opaque=None)
def more_types_than_one_name_has(x, k, j):
    m = 1j if k == 0 else 2 if k == 1 else x[0]
    n = 0.1 if j == 0 else np.float32(3)
    return m + n, n * m


@program([(np.uint32(100), 7, k) for k in (0, 1)] + [(np.int8(100), -100, k) for k in (0, 1)], opaque=None)
def ranges_from_what_wraps_around(s, t, k):
    m = s
    if k:
        m = t
    m = 1 - m
    return np.arange(m, 4)[:5], len(np.arange(m, 4))


TIMES = [np.array([-1.5, most, 0.0]) for most in (2.0, 3.9)]
TOO_OFTEN = [np.array([-1.5, 0.0, most]) for most in (np.inf, 1e19, np.nan)]


@program([(x,) for x in TIMES] + [raising(ValueError, x) for x in TOO_OFTEN], opaque=None, fell_back=None)
def repeats_of_the_greatest(x):
    most = 0
    for v in x:
        if not v < most:
            most = v
    return np.repeat(x, most)


@program([(k, end) for k in (0, 1, 2) for end in (4, -4)] + [raising(ValueError, 0, 1e30), raising(ValueError, 4, 4)])
def ranges_with_far_ends(k, end):
    m = k / 2
    for _ in range(k):
        m = m + 2**62
    return np.arange(m, end), np.arange(m, 4)


@program([raising(TypeError, None, arr("f8", 3), k) for k in (-9, 1, 9)], message=True, opaque=None, fell_back=None)
def least_of_numbers_of_two_types_and_none(m, x, k):
    least = k - 1.5
    for v in x:
        least = min(v, least, m)
    return least


@program(
    [raising(OverflowError, far, arr("u4", 2)) for far in (1e19, -1e19, 4e19, 1e10)] + [(2.5, arr("u4", 2))],
    message=True,
    mutates=(1,),
)
def floats_beyond_an_unsigned_element(m, r):
    r[0] = np.uint32(m)
    r[1] = m


@program([raising(KeyError, m) for m in (3, 2.5)], message=True)
def key_error_of_a_text(m):
    raise KeyError(f"{m}")


@program([raising(TypeError, 0.0), raising(TypeError, 0), (2.5,), (7,)], message=True, opaque=None)
def formats_that_none_has_not(m):
    n = m if m else None
    return f"{n:.3f}"


@program([(k,) for k in (0, 1, 2)], fell_back=None, opaque=None)
def formats_that_raise_are_caught(k):
    m = k * 2.5
    try:
        text = f"{m:d}"
        text = "none"
    except ValueError as error:
        text = str(error)
    return text


@program(
    [(np.int32(3), 1), (np.int32(2**31 - 1), 2), raising(TypeError, None, 3), (0.5, 1), (np.float16(1), 0)],
    opaque=None,
    fell_back=None,
    message=True,
)
def close_by_a_tolerance(m, k):
    return math.isclose(1, 2, rel_tol=m), math.isclose(m, 2, abs_tol=k), math.isclose(k, m)


@program([(np.int32(2**31 - 1), 1), large(np.int32(-3), 1), large(np.int32(0), 2)], opaque=None)
def least_of_a_sorted_mixture(m, k):
    found = [sorted([m, -1, np.int32(-2)])[0] for _ in (k,)]
    return np.allclose(k, k, rtol=found[0])


@program(
    [(arr("i8", 3), None), (arr("u1", 3), True), (arr("f8", 3), None)],
    opaque=None,
    fell_back=None,
    message=True,
)
def reduced_with_keepdims(x, m):
    try:
        return x.sum(keepdims=m)
    except TypeError:
        return sorted(x.tolist(), reverse=not m)


@program(
    [(start, end, step) for start in (-0.0, 0.0, 1.5, np.float32(-0.0), np.float16(2)) for end, step in ((3.0, 0.7),)]
    + [(0.0, 5.0, np.inf), (-0.0, -5.0, -np.inf), (np.float64(5e-324), 0.0, -1e16), (-0.0, 0.0, 1.0)],
)
def ranges_from_zeros_of_both_signs(start, end, step):
    return np.arange(start, end, step), np.arange(-0.0, end, step), np.arange(0.0, end, step)


@program(
    [(x, m, k) for x in (WORDS, FLOATS) for m, k in ((0, None), (2, 3))] + [raising(ZeroDivisionError, WORDS, 0, 1)]
)
def elements_of_a_known_condition(x, m, k):
    wanted = [5 // m for v in x if k is not None]
    return wanted, [v if v > 1 else 5 // m for v in x if k is not None], sum(5 // m for v in x if k is not None)


@program(
    [
        (arr(dtype, 3), m)
        for dtype in ("i4", "u1", "f4")
        for m in (2.5, np.int64(7), np.int64(2**40), np.nan, True, 3, np.float32(9), 300, -1, 2**62)
    ],
    opaque=None,
    mutates=(0,),
)
def stored_through_flat(r, m):
    try:
        r.flat[0] = m
        r.flat[1:] = m
    except ValueError:
        return "not stored"
    return r.sum()


@program([(np.int32(1), k) for k in (0, 1)] + [(1, 1)], opaque=None, fell_back=None)
def text_beside_a_number(m, k):
    named = "a" if k else m
    try:
        return named < m
    except TypeError:
        return k


@program([(m,) for m in (2, 2.0, np.float32(3), np.uint8(1), True)], opaque=None)
def triangles_of_numbers(m):
    return np.tri(m), m


@program([(arr("i1", n), m) for n in (0, 2) for m in (3, 2.5, np.float32(7))], opaque=None)
def arrays_of_rows_that_may_be_empty(x, m):
    return np.array([x, [m] * len(x)]), np.array([[m] * len(x), [1] * len(x)])


@program([(k, arr("i8", 2, values=[2**60 + 1, -7]), n) for k in (0, 1) for n in (2**60 + 1, -(2**62) - 1)])
def whole_numbers_of_python_and_numpy(k, x, n):
    """Python's ints have `__floor__`; NumPy's are made floats before."""
    m = n
    if k:
        m = x[0]
    return math.floor(m), math.ceil(m), math.gcd(m, 3), math.fabs(m)


@program([(k, z) for k in (0, 1, 2) for z in (1j, complex(-0.0, math.inf), complex(2.0, -0.0))])
def real_or_complex_beside_complex(k, z):
    m = -0.0 if k else math.inf
    if k == 2:
        m = z
    return m * z, m + z, z - m, m * 2.5


@program([(arr("u2", 3), k) for k in (0, 2)], opaque=None)
def sum_of_numbers_that_may_be_none_of_them(x, k):
    """What it begins with is another type's: who promises arrays of one dtype has to know before whether it is that."""
    total = sum((v * np.complex128(complex(0.5, 3.0)) for v in range(k)), np.uint64(18446744073709551615))
    if total is None:
        total = "none"
    return {"all": (total, total)}, x + 1


@program([(BYTES, k) for k in range(4)], opaque=None, fell_back=None)
def keys_and_members_of_two_types(x, k):
    found = {}
    for i in range(3):
        key = x[i] if i % 2 else (int(x[i]) if k else float(x[i]))
        found[key] = found.get(key, 0) + i
    m = (x[0], 3, None, -0.0)[k]
    members = {m, 3, 2.5}
    return found, max(found), len(members), m in members, hash(m) == hash(3), 3.0 in members


@program([(FLOATS, k) for k in range(4)] + [(BYTES, k) for k in range(4)], opaque=None, fell_back=None)
def patterns_of_numbers_of_two_types(x, k):
    m = 5 if k == 1 else x[1] if k == 2 else 3.5
    match m:
        case bool():
            found = "bool"
        case int():
            found = "int"
        case float(v):
            found = v * 2
        case np.generic():
            found = m
        case _:
            found = None
    return found, m, f"{m:6.2f}|{m!r}", (m, k) < (3.5, 1), sorted([(m, k), (2, 7)])


@program([(BYTES, k) for k in range(4)], opaque=None, fell_back=None)
def what_narrow_numbers_refuse(x, k):
    m = 300 if k == 1 else -1 if k == 2 else x[0] if k == 3 else 2.0
    found = []
    for work in (lambda: np.uint8(m), lambda: np.array(m, "u1"), lambda: x * m, lambda: np.minimum(x, m)):
        try:
            found.append(work())
        except OverflowError as error:
            found.append(str(error))
    y = x.copy()
    try:
        y[2:] = m
    except OverflowError:
        y[0] += 1
    return found, y


class Sum:
    def __init__(self, start):
        self.total, self.count = start, 0

    def add(self, v):
        self.total += v
        self.count += 1
        return self.total

    @property
    def mean(self):
        return self.total / self.count if self.count else None


@program([(BYTES, k) for k in range(4)], opaque=None, fell_back=None)
def attributes_of_two_types(x, k):
    s = Sum(0 if k else 0.5)
    totals = [s.add(v if k != 2 else int(v)) for v in x[: k + 1]]
    return totals, s.total, s.mean, s.total == 104, -s.total if k != 3 else None
