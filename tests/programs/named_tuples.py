"""Named tuples that a function makes, changes, asks and returns."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising

Peak = namedtuple("Peak", "place height", defaults=(0.5,))


class Motion(NamedTuple):
    position: np.ndarray
    velocity: np.ndarray
    time: float = 0.0

    def energy(self):
        return 0.5 * np.sum(self.velocity**2)

    def after(self, step):
        return self._replace(position=self.position + step * self.velocity, time=self.time + step)

    @staticmethod
    def at_rest(n):
        return Motion(np.zeros(n), np.zeros(n))

    @property
    def speed(self):
        return np.abs(self.velocity)


class Vector(NamedTuple):
    x: float
    y: float

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)


@program([(arr("f8", 5),)])
def named_results(x):
    return Peak(x.argmax(), x.max()), Peak(height=2, place=x), Peak(1), [Peak(x, 1.5)]


@program([(arr("f8", 5),)])
def named_items(x):
    peak = Peak(3, x.sum())
    changed = peak._replace(place=x[0])
    place, height = changed
    whole = (len(peak), peak[0], peak[-1] == height, peak[:1], (*peak, 1), peak + peak, 3 in peak, max(peak[:1]))
    return changed, place, whole, peak == (3, x.sum()), type(peak) is Peak, isinstance(peak, tuple), peak._fields


@program([(arr("f8", 4), 3), (arr("f8", 4), 0)], regrouped=4)
def named_state_in_loop(x, n):
    state = Motion(x, 2 * x)
    for _ in range(n):
        state = state.after(0.25)
        state = Motion(state.position, state.velocity * 0.5, state.time)
    return state, state.energy()


@program([(arr("f8", 6),)])
def named_best(x):
    best = Peak(-1, -np.inf)
    for i in range(len(x)):
        if x[i] > best.height:
            best = Peak(i, float(x[i]))
    return best


@program([(arr("f8", 6), 3)])
def named_made_otherwise(x, n):
    return Peak._make([x, n]), Peak(1, x)._asdict(), Motion.at_rest(n), Peak(*(x[0], x[1])), Peak(**{"place": n})


@program([(arr("f8", 6),)])
def named_in_lists(x):
    peaks = [Peak(i, v) for i, v in enumerate(x.tolist())]
    more = []
    for i in range(len(x)):
        more.append(Peak(float(i), x[i]))
    return peaks, more, sum([p.place * p.height for p in more]), more[-1].height, sorted([Peak(3, 1), Peak(2, 2)])


@program([Case(lambda: (Motion(np.arange(4.0), np.ones(4), 2.0), 0.5))], regrouped=4)
def named_argument(state, step):
    later = state._replace(time=state.time + step)
    return later, state[0] + 1, len(state), state.energy(), later.after(step)._asdict(), state


@program([(arr("f8", 4),)], opaque=None)
def named_property(x):
    return Motion(x, x - 1).speed


@program([(arr("f8", 4),)], opaque=None)
def named_with_operators(x):
    return Vector(1.0, 2.0) + Vector(x[0], x[1])


@program([raising(TypeError, arr("f8", 4))], opaque=None, fell_back=None)
def named_with_too_many(x):
    return Peak(x, 1, 2)


Bag = namedtuple("Bag", "place held", defaults=([],))


@program([(arr("f8", 4),)], opaque=None, fell_back=None)
def named_default_that_is_an_object(x):
    return Bag(x), Bag(x).held is Bag(x).held, Bag(x, 2)


@program(
    [Case(lambda: (Motion(np.ones(3), np.ones(3)), np.arange(3.0)), raises=AttributeError)],
    mutates=(0,),
    opaque=None,
    fell_back=None,
)
def field_changed_in_place_and_set(motion, step):
    motion.position += step
    return motion.position
