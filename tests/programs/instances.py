"""Instances of classes that a function makes: changed, asked, put into lists, returned."""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising


@dataclass
class Body:
    place: float
    speed: float = 2.0
    name: str = "a"

    def step(self, dt):
        self.place += self.speed * dt
        return self


@dataclass(frozen=True, order=True)
class Pair:
    first: int
    second: int = 0

    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second)

    @property
    def total(self):
        return self.first + self.second


@dataclass
class Measured:
    value: float
    count: int = 0
    scale: float = field(default_factory=lambda: 3.5)
    scaled: float = field(init=False)

    def __post_init__(self):
        self.scaled = self.value * self.scale


@dataclass(frozen=True, slots=True)
class Doubled:
    value: float
    twice: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "twice", self.value * 2)


class Mean:
    def __init__(self):
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value):
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)


class Base:
    factor = 3

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value * self.factor

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, value):
        self.value = value / 2

    @staticmethod
    def next(number):
        return number + 1

    @classmethod
    def half_more(cls, value):
        return cls(value + 0.5)


class Derived(Base):
    factor = 5

    def __init__(self, value, offset):
        super().__init__(value)
        self.offset = offset

    def get(self):
        return super().get() + self.offset


class Complex:
    __slots__ = ("im", "re")

    def __init__(self, re, im=0.0):
        self.re = re
        self.im = im

    def __add__(self, other):
        if not isinstance(other, Complex):
            return Complex(self.re + other, self.im)
        return Complex(self.re + other.re, self.im + other.im)

    __radd__ = __add__

    def __mul__(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __abs__(self):
        return math.sqrt(self.re * self.re + self.im * self.im)

    def __eq__(self, other):
        return self.re == other.re and self.im == other.im

    def __neg__(self):
        return Complex(-self.re, -self.im)

    def __call__(self, at):
        return self.re * at + self.im

    def __len__(self):
        return 2

    def __getitem__(self, place):
        return self.re if place == 0 else self.im

    def __setitem__(self, place, value):
        if place == 0:
            self.re = value
        else:
            self.im = value

    def __contains__(self, value):
        return value == self.re or value == self.im

    def __bool__(self):
        return self.re != 0


class Sides:
    def __init__(self, x):
        if x > 1:
            self.side = 5
        else:
            self.side = 6.5


def shown(*instances):
    """What instances hold, for a comparison."""
    return [(type(one), vars(one)) if hasattr(one, "__dict__") else (type(one), one) for one in instances]


@program([(9, 0.1), (0, 0.1), (2, -1.5)])
def instance_as_a_value(n, c):
    z, start = Complex(0.0, 0.0), Complex(c, 0.3)
    for k in range(n):
        z = z * z + start
        if abs(z) > 2:
            return k, z.re
    return n, z.im, len(z), (2.5 + z).re, -z == z, z != z, 7.5 in z, bool(z), z(3.0), z[0] + z[1]


@program([(arr("f8", 7),), (arr("f8", 1),), (arr("f8", 0),)])
def instance_that_changes(x):
    mean, other = Mean(), Mean()
    same = mean
    for value in x:
        same.add(value)
        if value > 0.5:
            other.add(1)
    z = Complex(1.0)
    z[1] = 4.0
    return mean.count, mean.mean, mean.squares, other.count, mean is same, mean is other, z.im


@program([(2.0,), (0.0,)])
def inherited_methods_and_properties(x):
    derived, base = Derived(x, 1.0), Base.half_more(x)
    before = derived.get()
    derived.double = 7.0
    sides = Sides(x)
    return before, derived.get(), base.get(), Base.next(3), derived.double, isinstance(derived, Base), sides.side


@program([(1, 2), (2, 2), (3, -1)])
def instances_compared(a, b):
    one, two = Pair(a), Pair(b, 1)
    best = None
    for k in range(5):
        other = Pair(k * a % 3, b)
        if best is None or other > best:
            best = other
    return one < two, one == two, one >= two, (one + two).total, best.total, one == 3, one is None


@program([(arr("f8", 3), 2.0), raising(ZeroDivisionError, 1.0, 0)])
def instances_returned(x, k):
    body, other = Body(k, name="zz"), Body(place=0.0)
    other.speed = body.speed / k
    nested = Body(body, x)
    nested.place.step(0.5)
    measured = Measured(2.0)
    measured.count += 3
    return nested, other, [measured, 1], Doubled(1.5), {"x": Pair(3)}


@program([(0,), (1,), (5,)])
def instance_under_changing_names(n):
    one, two = Body(0.0), Body(1.0)
    current = one
    for _ in range(n):
        current.place += 1.0
        current = two if current is one else one
    bodies = [Body(1.0), Body(2.0), one]
    for _ in range(n):
        for body in bodies:
            body.step(0.5)
    return one, two, bodies[0].place, bodies[2].place


@program([(arr("f8", 6),), (arr("f8", 0),)])
def instances_in_lists(x):
    kept = []
    for value in x:
        body = Body(value)
        body.speed = body.place * 2
        if value > 0:
            kept.append(body)
    values = [Pair(int(10 * value), k) for k, value in enumerate(x)]
    values.sort(key=lambda pair: pair.first)
    large = [pair for pair in values if pair.total > 2]
    best = max(values, key=lambda pair: pair.total).total if values else 0
    return sum(body.speed for body in kept), len(kept), values, [pair.second for pair in large], best


@program([(arr("f8", 6),), (arr("f8", 0),)])
def last_instance_that_changed(x):
    best = None
    for k in range(len(x)):
        body = Body(x[k], k)
        body.speed += 1
        if best is None or body.place > best.place:
            best = body
    return best


@program([(arr("f8", 4), 2), (arr("f8", 4), 9)], fell_back=None, opaque=None)
def instance_around_exceptions(x, k):
    body = Body(0.0)
    try:
        made = Body(x[k])
    except IndexError:
        made = Body(-1.0)
    try:
        body.place = 7.0
        body.speed = x[k]
    except IndexError:
        pass
    return made.place, body


@program([(3,), (60,)])
def instance_in_recursion(n):
    def down(pair, k):
        return pair if k == 0 else down(Pair(pair.first + k, pair.second + 1), k - 1)

    return down(Pair(1), n)


@program([(5, 3), (1, 2), (0, 1)])
def instances_that_change_in_lists(n, steps):
    bodies = [Body(float(k), 0.1 * k) for k in range(n)]
    more = []
    for k in range(n):
        body = Body(1.0 + k)
        body.speed *= 2
        more.append(body)
    for _ in range(steps):
        for one in bodies:
            for other in bodies:
                if one is not other:
                    distance = other.place - one.place
                    one.speed += distance / (abs(distance) + 0.1)
        for k in range(n):
            first = bodies[k]
            for j in range(k + 1, n):
                bodies[j].speed -= first.speed * 0.01
        for body in bodies:
            body.step(0.01)
    best = None
    for body, other in zip(bodies, more, strict=True):
        body.place, other.place = other.place, body.place
        if best is None or other.speed > best.speed:
            best = other
    if best is not None:
        best.place = -1.0
    return bodies, more


@program([(3, 1), raising(IndexError, 3, 7)], message=True)
def items_by_place_that_change(n, k):
    bodies = [Body(1.0) for _ in range(n)]
    bodies.append(Body(5.0))
    bodies[k].step(0.5)
    return bodies[k].place, [body.place for body in bodies]


@program([(4,), (1,)], fell_back=None, opaque=None)
def instances_in_two_lists_or_under_names(n):
    bodies = [Body(float(-k)) for k in range(n)]
    part, ordered = bodies[1:], sorted(bodies, key=lambda body: body.place)
    for body in part:
        body.speed = 7.0
    ordered[0].place = 100.0
    bodies[0], bodies[-1] = bodies[-1], bodies[0]
    twice = []
    for k in range(n):
        body = Body(float(k))
        twice.append(body)
        twice.append(body)
    for body in twice:
        body.place += 1
    return [(body.place, body.speed) for body in bodies], [body.place for body in twice]


@program([(4,), (20,)], fell_back=None, opaque=None)
def reference_into_a_list_that_grows(n):
    bodies = [Body(float(k)) for k in range(3)]
    first = bodies[0]
    last = None
    for k in range(n):
        first.place += 1
        new = Body(float(k))
        bodies.append(new)
        last = new
    bodies[-1].place = 50.0
    return [body.place for body in bodies], last.place


@program([(2.0,), (0.0,)], fell_back=None, opaque=None)
def instances_left_to_python(x):
    base = Base(x)
    if x > 1:
        base.extra = 5
    twice = Body(x)
    bodies = []
    for _ in range(3):
        bodies.append(twice)
        twice.place += 1
    return shown(base), twice, twice, [body.place for body in bodies], str(Pair(3)), hash(Pair(2)) == hash(Pair(2))


@program([(2.0,), raising(TypeError, "a")], fell_back=None, opaque=None)
def missing_arguments_and_frozen_fields(x):
    try:
        Pair()
    except TypeError as error:
        missing = str(error)
    try:
        Pair(1).first = 2
    except AttributeError as error:
        frozen = str(error)
    return missing, frozen, Pair(1).first + x


class Bar:
    """A rod that is heated: its properties are functions like any other, also where they set."""

    def __init__(self, n):
        self.u = np.ones(n)
        self._time = 0.0

    @property
    def dx(self):
        return 1.0 / len(self.u)

    @property
    def heat(self):
        return self.u.sum() * self.dx

    @property
    def time(self):
        return self._time

    @time.setter
    def time(self, new):
        if new < self._time:
            raise ValueError("time goes on")
        self._time = new

    def step(self, dt):
        self.u = self.u + dt * self.dx
        self.time += dt


class LongBar(Bar):
    @property
    def dx(self):
        return 10.0 / len(self.u)


@program([Case(lambda: (Bar(4), 3, 0.5)), Case(lambda: (LongBar(4), 2, 0.5))])
def properties_of_an_argument(bar, n, dt):
    heats = []
    for _ in range(n):
        bar.step(dt)
        heats.append(bar.heat)
    return heats, bar.time


@program([Case(lambda: (Bar(1), 2.5)), Case(lambda: (Bar(1), -1.0), raises=ValueError)], message=True)
def a_property_that_is_set(bar, time):
    bar.time = time
    return bar._time


@program([Case(lambda: (Bar(2), 3.0)), Case(lambda: (LongBar(2), 3.0)), Case(lambda: (Body(1.0), 3.0))])
def which_class(thing, x):
    if isinstance(thing, LongBar):
        return x
    return thing.heat * x if isinstance(thing, (int, Bar)) else -x
