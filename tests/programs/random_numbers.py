"""Numbers of NumPy's legacy generator: drawn by compiled code, from the stream that Python draws from."""

from __future__ import annotations

import random
from random import random as draw

import numpy as np

from tests.arrays import arr
from tests.corpus import case, program


def _seed():
    np.random.seed(12)
    random.seed(12)


@program([case(40, setup=_seed), case(0, setup=_seed)])
def points_in_a_circle(n):
    inside = 0
    for _ in range(n):
        x, y = np.random.rand(), np.random.random()
        inside += x * x + y * y < 1
    return inside, np.random.random_sample()


@program([case(700, setup=_seed)])
def more_than_the_state_holds(n):
    """Every 624 words the state is made anew, which may happen between the two words of a number."""
    last = np.random.randint(0, 5)
    for _ in range(n):
        last = np.random.uniform(-1, 2)
    return last, np.random.randint(1000)


@program([case(arr("f8", 7), setup=_seed), case(arr("i4", 1), setup=_seed)], mutates=(0,))
def shuffled_by_hand(a):
    for i in range(len(a) - 1, 0, -1):
        j = np.random.randint(0, i + 1)
        a[i], a[j] = a[j], a[i]


@program([case(2, 3, setup=_seed), case(0, 3, setup=_seed)])
def arrays_of_random_numbers(n, m):
    return np.random.rand(n, m), np.random.random(n), np.random.uniform(n, m, (m,)), np.random.random(size=(m, 1))


@program([case(n, setup=_seed) for n in (1, 2, 2**31, 2**32 - 1, 2**32, 2**40, 2**62)])
def integers_of_any_width(n):
    return [np.random.randint(n) for _ in range(5)], np.random.randint(-n, n)


@program(
    [
        case(0, setup=_seed, raises=ValueError),
        case(-3, setup=_seed, raises=ValueError),
        case(1, setup=_seed, raises=ValueError),
        case(2, setup=_seed),
    ]
)
def integers_of_an_empty_range(n):
    return np.random.randint(n) + np.random.randint(1, n)


@program([case(4, setup=_seed)], opaque=1)
def in_turns_with_python(n):
    """What Python draws comes out of the same state."""
    x = np.random.rand()
    y = np.random.standard_normal(n)
    return x, y, np.random.rand()


@program([case(700, setup=_seed), case(1, setup=_seed)])
def numbers_of_the_module_random(n):
    x = 0.0
    for _ in range(n):
        x += draw() * random.random()
    return x, [random.randint(0, i) for i in range(n)], random.uniform(2, -n), random.randrange(7), random.random()


@program([case(2**20, setup=_seed), case(2**32, setup=_seed), case(2**45, setup=_seed), case(0, setup=_seed)])
def wide_integers_of_the_module_random(n):
    return random.randint(-n, n), random.randrange(n + 1), random.randint(n, n + 1)


@program([case(5, setup=_seed)], fell_back=None)
def shuffled_by_the_module_random(n):
    """A method of an object that changes a list it is given."""
    places = list(range(n))
    random.shuffle(places)
    return places, random.random()
