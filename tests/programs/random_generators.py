"""Numbers of `np.random.Generator`: drawn by compiled code, from the state that NumPy draws from."""

from __future__ import annotations

import numpy as np

from tests.corpus import Case, case, program

ELSEWHERE = np.random.default_rng(1)


def _with(*args, seed=4, raises=None):
    """A case whose first argument is a new generator."""
    return Case(lambda: (np.random.default_rng(seed), *args), raises=raises)


def _begin():
    ELSEWHERE.bit_generator.state = np.random.PCG64(5).state


@program([_with(300), _with(0), Case(lambda: (np.random.Generator(np.random.PCG64(9)), 3))])
def uniform_numbers(rng, n):
    inside = 0
    for _ in range(n):
        x, y = rng.random(), rng.uniform(-1, 2)
        inside += x * x + y * y < 1
    return inside, rng.random(n), rng.uniform(size=(2, n)), rng.uniform(3, n + 3.5), rng.random()


@program([_with(4000), _with(0, seed=5)])
def normal_and_exponential_numbers(rng, n):
    """Some of four thousand words fall into the wedges of the layers, two or three into the tail."""
    x = rng.standard_normal(n)
    for i in range(n // 8):
        x[i] += rng.normal(1, 2.5) * rng.exponential(0.5)
    return x, rng.normal(0.5, size=3), rng.standard_exponential(n), rng.standard_exponential()


@program([_with(n) for n in (1, 2, 7, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**62 + 1)])
def integers_of_any_width(rng, n):
    found = [rng.integers(n) for _ in range(5)]
    return found, rng.integers(-n, n, 4), rng.integers(n, size=(2, 2)), rng.integers(0, n, endpoint=True, dtype=int)


@program([_with(700, 10), _with(257, 3_000_000_000), _with(1, 2**31 + 1), _with(0, 5), _with(600, 1)])
def many_at_once(rng, n, high):
    """More than a run of 256 words; of integers below three thousand million every third is drawn again. What is left
    over of a word is used before, between and behind."""
    first = rng.integers(high), rng.integers(0, high, n), rng.integers(-high, high, (n, 1))
    some = rng.random((n, 2)), rng.uniform(-2.5, 7.0, n), rng.random(), rng.normal(-1.0, 0.5, (1, n))
    return first, rng.integers(6, size=3), some, rng.exponential(3, n), rng.choice(9, n)


@program([_with()])
def integers_of_all_widths(rng):
    return rng.integers(-(2**63), 2**63 - 1, endpoint=True), rng.integers(-(2**63), 2**63 - 1, 3), rng.integers(5)


@program(
    [
        _with(3, 3, 1.0, raises=ValueError),
        _with(0, -2, 1.0, raises=ValueError),
        _with(0, 3, -0.0, raises=ValueError),
        _with(0, 3, -1.0, raises=ValueError),
        _with(0, 3, np.inf, raises=OverflowError),
        _with(0, 3, np.nan, raises=OverflowError),
        _with(0, 3, 1.0),
    ],
    message=True,
)
def bounds_that_are_looked_at(rng, low, high, width):
    x = rng.integers(low, high) if low else rng.integers(high)
    return x, rng.normal(0, width), rng.uniform(-width, width), rng.integers(high, low, size=0)


@program([_with(200), _with(2), _with(1)])
def orders_and_choices(rng, n):
    places = np.arange(n) * 0.5
    rng.shuffle(places)
    turned = places[::-1]
    rng.shuffle(turned)
    return places, rng.permutation(n), rng.permutation(places), rng.choice(n), rng.choice(places), rng.choice(n, 3)


@program([case(7, 200, setup=_begin)], opaque=1)
def a_generator_made_inside(seed, n):
    rng = np.random.default_rng(seed)
    place, path = 0, []
    for _ in range(n):
        place += 1 if rng.random() < 0.5 else -1
        path.append(place)
    return path, rng.integers(100), ELSEWHERE.random(), ELSEWHERE.normal()


@program([_with(5), Case(lambda: (np.random.Generator(np.random.MT19937(1)), 5))], opaque=None)
def in_turns_with_python(rng, n):
    """What Python draws comes out of the same state; over other bits, Python draws all."""
    return rng.random(), rng.poisson(3.0, n), rng.random(n), rng.bytes(4), rng.integers(9), rng.normal(size=(n, 1))


class Walker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.place = 0

    def walk(self, n):
        for _ in range(n):
            self.place += self.rng.integers(-1, 2)
        return self.place


@program([Case(lambda: (Walker(3), 50))])
def a_generator_that_an_object_holds(walker, n):
    return walker.walk(n), walker.rng.random()


def _twice():
    rng = np.random.default_rng(8)
    return rng, rng, 5


@program([Case(_twice), Case(lambda: (np.random.default_rng(8), np.random.default_rng(9), 5))])
def one_generator_under_two_names(rng, other, n):
    total = 0.0
    for _ in range(n):
        total += rng.random() - 2 * other.random()
    return total, rng.integers(9), other.integers(9)


@program([_with(-1), _with(3)])
def numbers_that_are_drawn_again(rng, n):
    """Where Python runs the call from the beginning, it draws what compiled code has drawn."""
    x = rng.random() + rng.integers(9)
    return x, 2**n


@program([(2,), (3,)], opaque=None)
def generators_that_only_their_numbers_need(k):
    rng = np.random.default_rng(k)
    first = rng.random()
    total = 0.0
    for seed in range(k):
        other = np.random.default_rng(seed)
        total += other.random() + other.integers(9)
    last = np.random.default_rng(k + 1)
    return first, total, last.random(), rng.random(), rng.integers(9), last.random()


# ---- generators that the function seeds ------------------------------------------------------------------------------


@program([(1, 40), (2, 0)], opaque=1)
def seeded_inside(seed, n):
    rng = np.random.default_rng(seed)
    inside = 0
    for _ in range(n):
        x = rng.random()
        y = rng.random()
        if x * x + y * y < 1:
            inside += 1
    return inside, rng.random()


@program([(1, 40), (2, 0)], opaque=1)
def steps_of_a_seed(seed, n):
    rng = np.random.default_rng(seed=seed)
    x = 0.0
    most = 0.0
    for _ in range(n):
        x += rng.normal() + rng.integers(0, 3)
        most = max(most, x)
    return x, most


@program([(1, 10), (2, 0)], opaque=2)
def bits_of_a_seed(seed, n):
    rng = np.random.Generator(np.random.PCG64(seed))
    total = 0.0
    for _ in range(n):
        total += rng.random()
    return total


@program([(1, 10), (2, 0)], fell_back=None, opaque=None)
def other_bits_of_a_seed(seed, n):
    rng = np.random.Generator(np.random.MT19937(seed))
    total = 0.0
    for _ in range(n):
        total += rng.random()
    return total


class OwnGenerator(np.random.Generator):
    pass


@program([(1,), ([1, 2],), Case(lambda: (OwnGenerator(np.random.PCG64(3)),))], fell_back=None, opaque=None)
def seeded_by_anything(seed):
    rng = np.random.default_rng(seed)
    return type(rng).__name__, rng.random()
