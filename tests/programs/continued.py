"""Calls that compiled code cannot go on with: Python does the rest of them, from any state, and nothing twice.

In the last programs ints leave 64 bits, or powers are no ints, after something has been stored.

`share` is unknown to the compiler; what it gives has another type for large arguments. Each program has changed
something by then: its arguments, or the list `_told`.
"""

import numpy as np

from tests.arrays import arr
from tests.corpus import case, program

_scope = {"np": np}
exec(
    """
told = []
def share(k):
    told.append(k)
    return k * 0.5 if k < 10 else int(k)
def parts(k):
    told.append(k)
    return (k, k) if k < 10 else [k, k, k]
def push(items, k):
    if k > 10:
        items.append(k)
    return len(items)
level = 1.0
def raise_level(k):
    global level
    level += k > 10
    return 0
""",
    _scope,
)
share, parts, push, raise_level, _told = (_scope[name] for name in ("share", "parts", "push", "raise_level", "told"))


def _reset():
    _told.clear()
    _scope["level"] = 1.0


def continued(*kinds, sums=0.0, mutates=(0,), fell_back=None):
    """A program that is called with 2, 2 and then 12 after an argument of each kind."""
    numbers = (2, 2, 12, 3)
    return program(
        [case(*(kind() if callable(kind) else kind for kind in kinds), number, setup=_reset) for number in numbers],
        opaque=None,
        fell_back=fell_back,
        sums=sums,
        mutates=mutates,
    )


@continued(arr("f8", 5))
def memory_of_its_own(x, k):
    y = x * 2
    front, back = y[1:], y[::-2]
    x[0] += share(k)
    front[0] = 77
    back[1] += 1
    return y, front, back, np.shares_memory(y, front), x


@continued(arr("f8", 2, 3))
def views_of_an_argument(x, k):
    line, row = x.ravel(), x[1]
    x += share(k)
    row[0] = 50
    return line[3], row, np.shares_memory(x, row), _told


@continued(arr("f8", 5, seed=3), sums=4.0)
def sums_and_masks(x, k):
    total, large = np.sum(x), x > 2
    x[large] += share(k)
    return np.where(large, x, share(k)), total + x.max(), x[large]


def _inner(x, k):
    x += k
    y = share(k) + x[0]
    x -= 1
    return y * 2


def _around(x, k):
    z = np.sqrt(np.abs(x) + 5)
    for i in range(2):
        z[i] += _inner(x, k + i)
    return z, x


@continued(arr("f8", 5))
def inlined_functions(x, k):
    y = _inner(x, 1)
    z, same = _around(x, k)
    return y, z + x.sum(), same


@continued(arr("f8", 5))
def nested_functions(x, k):
    base = k + 1

    def add(value, weight=2):
        part = share(value) + base * weight
        x[0] += part
        return part

    return add(k), x, add(3, 4)


class _Scale:
    def __init__(self, by):
        self.by = by

    def grown(self, x, k):
        x[1] += share(k)
        return self.by + share(1)


@continued(arr("f8", 5))
def methods(x, k):
    scale = _Scale(3)
    x[0] += share(1)
    return scale.by + share(k), x


@continued(arr("f8", 6))
def lists_of_its_own(x, k):
    grown, pairs, rows = [], [], [[0] * 3 for _ in range(3)]
    for i in range(4):
        grown.append(i * k)
        pairs.append((i, x[i]))
        rows[i % 3][1] += i
    x[0] += share(k)
    grown.append(7)
    rows[2][2] = k
    return grown, pairs, rows, x


@continued(arr("f8", 6))
def dicts_and_sets_of_its_own(x, k):
    counts, seen = {}, set()
    for i in range(6):
        counts[i % 4] = counts.get(i % 4, 0) + k
        seen.add(i % 3)
    x[0] += share(k)
    counts[9] = 1
    seen.add(8)
    return counts, sorted(seen), x


@continued(arr("f8", 6))
def two_names_of_a_list(x, k):
    first = [1, 2]
    second = first
    first.append(k)
    x[0] += share(k)
    second.append(4)
    return first, second


@continued(arr("f8", 6), [1, 2, 3], mutates=(0, 1))
def a_list_that_is_given(x, items, k):
    x[0] += push(items, k)
    return items, len(items), x


@continued(arr("f8", 6))
def a_list_that_is_changed(x, k):
    items = [1.5, x[1]]
    x[0] += push(items, k)
    return items, len(items), x


@continued(arr("f8", 6))
def globals_that_are_replaced(x, k):
    x += _level()
    raise_level(k)
    return x * _level()


def _level():
    return _scope["level"]


@continued(arr("f8", 4, 5))
def loops_over_rows_and_pairs(x, k):
    total = 0.0
    for i, (row, other) in enumerate(zip(x, x * 2, strict=False), 3):
        for part in (row[:2], other[1:]):
            row += i
            total += np.sum(part * part)
        row[0] = share(k + i - 4)
    return total, x


@continued(arr("f8", 5), sums=4.0)
def loops_in_loops(x, k):
    i = 0
    while i < 4:
        for j in (1, 2, 4):
            x[j] += np.sqrt(np.sum(x * x))
            if j == 4 and i == 2:
                return share(k), i, j, x
        else:
            x[3] += 1
        i += 1
        if x[0] > 9:
            continue
        x[2] += share(k) + i
    return i, j, x


@continued(arr("f8", 5))
def states_of_errors(x, k):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x / 0
        x[0] += share(k)
        z = y / 0 + x
    return y, z


@continued(arr("f8", 5))
def handlers(x, k):
    try:
        x[0] += 1
        y = share(k)
        x[1] += 10 // (k - 12)
    except ZeroDivisionError:
        x[2] = 5
        y = share(3)
    finally:
        x[3] += 1
    return y, x


@continued(arr("f8", 5))
def tuples_and_texts(x, k):
    name = f"{k}:{x[0]}"
    held = (k, x * 2, (1.5, "a"))
    first, *rest = held
    x[0] += share(k)
    both = parts(k)
    return name + "!", held[1] + share(k), first, rest[1], both, x


@continued(arr("f8", 5))
def lambdas(x, k):
    by = lambda value: value * k  # noqa: E731
    x[0] += by(2)
    y = share(k)
    return y + by(3), x


@continued(arr("f8", 5), mutates=(0,))
def types_of_results(x, k):
    x *= 2
    made = np.empty((2, 2), dtype=object if k > 10 else np.int64)
    made[...] = k
    return made.dtype == object, made.sum(), x


@program([(arr("f8", 4), 8), (arr("f8", 4), 30)], mutates=(0,))
def factorials(x, n):
    product, seen = 1, []
    for i in range(1, n):
        x[i % 3] += i
        product = product * i
        seen.append(i)
    return product, seen


def _power(x, n):
    x += 1
    return n**30


@program([(arr("f8", 4), 2), (arr("f8", 4), 10)], mutates=(0,))
def powers_in_a_callee(x, n):
    y = x * 2
    front = y[1:]
    power = _power(x, n)
    front[0] = 7
    return power + 1, y, front, x


@program([(arr("f8", 4), 3), (arr("f8", 4), 80)], mutates=(0,))
def shifts(x, n):
    x[1] += 3
    return (1 << n) - 1


@program([(arr("f8", 4), 3, 4), (arr("f8", 4), 3, 2**62)], mutates=(0,))
def sums_and_differences(x, k, n):
    i, down = 0, 0
    while i < k:
        x[i] = i
        down -= n
        i += 1
    x[3] = down
    return down, -down + i


@program([(arr("f8", 4), 2, 3), (arr("f8", 4), 2, -1)], opaque=1, mutates=(0,))
def powers_of_ints(x, a, b):
    x += 1
    share(3)
    y = x * 2
    return a**b, y


@program([(6,), (24,)], opaque=None, fell_back=None)
def inverse_of_a_hilbert_matrix(n):
    """Its items are exact as long as ints are."""
    made = np.empty((n, n), dtype=object if n > 14 else np.int64)
    binomial = n
    for i in range(n):
        made[i, i] = binomial * (2 * i + 1)
        for j in range(i):
            made[i, j] = made[j, i] = (-1) ** (i + j) * binomial * (i + j)
        binomial = binomial * (n + i + 1) * (n - i - 1) // ((i + 1) * (i + 1))
    return made[0, 0], made[n - 1, n - 1], binomial


def _spread(x, i, amount):
    if i < len(x):
        x[i] += amount
        _spread(x, 2 * i + 1, amount * amount)
        _spread(x, 2 * i + 2, amount + 1)


@program([(arr("f8", 7), 3), (arr("f8", 7), 2**40)], overflow=True, mutates=(0,))
def recursion_with_stores(x, amount):
    _spread(x, 0, amount)
    return x[1]


@program([(arr("f8", 3), 3), (arr("f8", 3), 70)], mutates=(0,))
def handlers_around_ints(x, n):
    x[0] += 1
    try:
        y = 1 << n
        z = n**30
    except (OverflowError, ValueError):
        y = z = -1
    return y, z


@program([(arr("f8", 4), 3), (arr("f8", 4), 2**40), (arr("f4", 300), -(2**62))], mutates=(0,))
def leaves_64_bits_before_a_store(x, k):
    m = k * k
    x /= 2
    return [m, 1.5], x[0]


@program([(arr("f8", 4), 3), (arr("f8", 4), 2**40)], mutates=(0,))
def leaves_64_bits_behind_a_store(x, k):
    x /= 2
    m = k * k
    x += 1
    return [m, 1.5], x[0]


@program(
    [case(arr("f8", 3), k, setup=_reset) for k in (0, 1, 2, 0)] + [case(arr("i8", 3), k, setup=_reset) for k in (1, 2)],
    opaque=None,
    fell_back=None,
)
def slabs_of_a_type_by_the_path(x, k):
    """NumPy refuses or orders some slabs by their values, and the state before that cannot be described."""
    share(k)
    y = x.reshape(-1, 1) if k == 0 else (np.zeros((2, 0)) if k == 1 else np.array([[np.nan], [0.0]]))
    return np.unique(y, axis=0), len(_told)


@program([case(k, setup=_reset) for k in (1, 0, 1)], opaque=None, fell_back=None)
def a_generator_over_bits_by_the_path(k):
    bits = np.random.PCG64(3) if k else np.random.MT19937(3)
    share(k)
    rng = np.random.default_rng(bits)
    return rng.normal() + rng.random(), rng.integers(0, 9), len(_told)


@program([(arr("f8", 4), 1), (arr("f8", 4), 5)], mutates=(0,))
def cell_of_a_call_that_python_continues(x, k):
    """The product may be beyond 64 bits, behind a store, where a function inside binds a name."""

    def grown():
        nonlocal k
        k += 1
        return k * 4611686018427387904

    x[0] += 1
    total = grown()
    k += 1
    x[1] = k
    return total, k
