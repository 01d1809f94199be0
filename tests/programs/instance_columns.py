"""Lists of many instances as arguments, whose attributes are read in loops in loops."""

import dataclasses
import math

import numpy as np

from tests.corpus import Case, case, program, raising


@dataclasses.dataclass
class Particle:
    x: float
    y: float
    charge: int = 1
    label: str = "p"

    @property
    def size(self):
        return math.sqrt(self.x * self.x + self.y * self.y)

    def to(self, other):
        return math.sqrt((self.x - other.x) ** 2 + (self.y - other.y) ** 2)


class Heavy(Particle):
    def to(self, other):
        return super().to(other) * self.charge


class Slotted:
    __slots__ = ("charge", "x", "y")

    def __init__(self, x, y, charge=1):
        self.x, self.y, self.charge = x, y, charge

    def __eq__(self, other):
        return (self.x, self.y, self.charge) == (other.x, other.y, other.charge)

    __hash__ = None

    def to(self, other):
        return abs(self.x - other.x)


class Cloud:
    def __init__(self, particles):
        self.particles = particles

    def energy(self):
        return pairs(self.particles)


def many(kind, count=40):
    return [kind(float(i * 7 % 11), 2.0 * i - 5, i % 3) for i in range(count)]


def of(*kinds, count=40):
    return [lambda kind=kind: (many(kind, count),) for kind in kinds]


KINDS = (Particle, Heavy, Slotted)


@program(of(*KINDS))
def pairs(ps):
    total = 0.0
    for i in range(len(ps)):
        for j in range(i):
            total += abs(ps[i].x - ps[j].y) * ps[j].charge
    return total


@program(of(*KINDS))
def methods_of_items(ps):
    total, largest = 0.0, 0.0
    for i, p in enumerate(ps):
        for q in ps:
            total += p.to(q) * i
            largest = max(largest, q.x)
    return total, largest, [sum(p.x * q.y for q in ps) for p in ps][:3], len(ps)


@program(of(Particle, Heavy))
def properties_of_items(ps):
    total, best = 0.0, ps[0]
    for _ in range(3):
        for p in ps:
            if p.size > best.size:
                best = p
            total += p.size
    return total, best.x, best.charge


@program([lambda: (Cloud(many(Particle)),), lambda: (Cloud(many(Slotted, 50)),)])
def list_in_an_attribute(cloud):
    return cloud.energy(), len(cloud.particles)


@program([case(*of(Particle)[0](), -1), case(*of(Particle)[0](), 39), raising(IndexError, *of(Particle)[0](), 40),
          raising(IndexError, *of(Particle)[0](), -41)], message=True, fell_back=None, opaque=None)  # fmt: skip
def item_at(ps, k):
    total = 0.0
    for _ in range(3):
        for p in ps:
            total += p.x * ps[k].y
    return total


def mixed():
    ps = many(Particle)
    ps[7] = Slotted(1.0, 2.0)
    return (ps,)


def with_ints():
    ps = many(Particle)
    ps[7].x = 3
    return (ps,)


@program([*of(Particle), mixed, with_ints, *of(Particle)], fell_back=None, opaque=None)
def of_several_classes_or_types(ps):
    total = 0
    for p in ps:
        for q in ps:
            total += p.x * q.y
    return total


def with_few_ints(*others):
    ps = many(Particle)
    ps[7].x, ps[9].y, ps[30].x = 3, 0, -(1 << 20)
    for place, other in enumerate(others):
        ps[place].x = other
    return (ps,)


@program([with_few_ints, *of(Particle), with_few_ints])
def ints_among_floats(ps):
    total, best = 0, ps[0]
    for p in ps:
        for q in ps:
            total += abs(p.x - q.y) * q.charge
            if q.x > best.x:
                best = q
    return total, best.x, best.y, ps[7].x, ps[8].x, ps[9].y, ps[30].x // 7, [p.x for p in ps for _ in range(2)][14:17]


@program([with_few_ints, lambda: with_few_ints(1 << 60), lambda: with_few_ints(True), lambda: with_few_ints(1, 2.5)],
         fell_back=None, opaque=None)  # fmt: skip
def ints_that_are_no_floats(ps):
    total = 0
    for p in ps:
        for q in ps:
            total += p.x - q.y
    return total, ps[0].x, ps[1].x


def shared():
    ps = many(Particle)
    return ps, ps[3]


@program([shared], fell_back=None, opaque=None, mutates=(0, 1))
def an_item_is_assigned(ps, one):
    one.x = 100.0
    total = 0.0
    for p in ps:
        for q in ps:
            total += p.x * q.y
    return total, one


class Change:
    def __init__(self, one):
        self.one = one

    def __eq__(self, other):
        return self.one == other.one

    __hash__ = None

    def __call__(self):
        self.one.x += 1.0
        exec("")
        return 1.0


def with_change():
    ps = many(Particle)
    return ps, Change(ps[3])


@program([with_change], fell_back=None, opaque=None, mutates=(0,))
def python_changes_an_item(ps, change):
    total = 0.0
    for p in ps:
        for q in ps:
            total += p.x * q.y
    change()
    for p in ps:
        for q in ps:
            total += p.x * q.y
    return total, np.float64(change.one.x)


@program(of(Particle), fell_back=None, opaque=None)
def items_as_objects(ps):
    total = 0.0
    for p in ps:
        for q in ps:
            total += p.x * q.y
    return total, ps[3], ps[0] == ps[1], ps[0] is ps[0], [p.label for p in ps][:2]


# ---- attributes that are assigned ------------------------------------------------------------------------------------


class Body:
    """A class whose objects may lack attributes of their own."""

    charge = 3

    def __init__(self, x, y, charge=None):
        self.x, self.y = x, y
        if charge:
            self.charge = charge

    def __eq__(self, other):
        mine, theirs = ({name: (type(held), held) for name, held in vars(one).items()} for one in (self, other))
        return type(self) is type(other) and mine == theirs

    __hash__ = None

    def push(self, force, dt):
        self.y += force / self.charge * dt

    @property
    def middle(self):
        return self.x - 1.0

    @middle.setter
    def middle(self, value):
        self.x = value + 1.0


ASSIGNED = (Body, Particle, Heavy, Slotted)


@program(of(*ASSIGNED), mutates=(0,))
def bodies(ps):
    for _ in range(2):
        for i, p in enumerate(ps):
            for j in range(i):
                q = ps[j]
                d = p.x - q.x
                force = d / (abs(d * d * d) + 1.0)
                p.y -= force * q.charge * 0.1
                q.y += force * p.charge * 0.1
        for p in ps:
            p.x += p.y * 0.1
    return ps


@program(of(Body))
def by_methods_and_properties(ps):
    for _ in range(3):
        for p in ps:
            p.push(2.0, 0.5)
            p.middle *= 0.5
            if p.middle < 2.0:
                p.charge += 1
    return sum(p.y for p in ps)


@program(of(*ASSIGNED), mutates=(0,))
def ints_assigned(ps):
    for _ in range(4):
        for p in ps:
            p.charge = 7 * p.charge + 1
    best = ps[0]
    for _ in range(2):
        for q in ps:
            if q.charge > best.charge:
                best = q
    best.x = -1.0
    return best.charge


@program([lambda: (many(Body), 0.6), Case(lambda: (many(Body), 1.0), raises=ZeroDivisionError)], message=True)
def until_it_fails(ps, k):
    for _ in range(3):
        for p in ps:
            p.y = 1.0 / (p.x - k)
            p.x += 0.25


@program([lambda: (many(Particle), 40), Case(lambda: (many(Particle), 41), raises=IndexError)],
         mutates=(0,), message=True)  # fmt: skip
def past_the_end(ps, n):
    for k in range(2):
        for i in range(n):
            ps[i].x += k


@program([lambda: (many(Particle), 1.0), lambda: (many(Slotted), 1e18)], mutates=(0,))
def beyond_64_bits(ps, factor):
    for _ in range(3):
        for p in ps:
            p.charge = p.charge * int(factor) + 1
            p.x += 1.0


def twice_the_same():
    ps = many(Particle)
    ps[9] = ps[4]
    return (ps,)


def several_classes():
    ps = many(Body)
    ps[3] = Particle(1.0, 2.0)
    return (ps,)


class Deaf:
    def __init__(self, x, y, charge):
        object.__setattr__(self, "x", x)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None


class Computed(Deaf):
    x = property(lambda self: self.held, lambda self, value: vars(self).update(held=value))
    __setattr__ = object.__setattr__


@program([twice_the_same, *of(Particle), twice_the_same, several_classes, *of(Deaf, Computed)],
         mutates=(0,), fell_back=None, opaque=None)  # fmt: skip
def in_other_ways(ps):
    for k in range(3):
        for p in ps:
            p.x += k
    return ps[4].x, ps[9].x


@program([lambda: (many(Particle),), with_ints], mutates=(0,), fell_back=None, opaque=None)
def of_other_types(ps):
    for k in range(3):
        for p in ps:
            p.x = k
            p.y = np.float64(k)
            p.charge = p.x > 1


def with_itself():
    ps = many(Particle)
    return ps, ps


def with_one():
    ps = many(Particle)
    return ps, [ps[4]]


def with_another():
    ps = many(Particle)
    return ps, many(Particle)


@program([with_itself, with_one, with_another], mutates=(0, 1), fell_back=None, opaque=None)
def with_other_names(ps, qs):
    total = 0.0
    for p in ps:
        for q in qs:
            p.x += 1.0
            total += q.x
    return total


def with_holder():
    ps = many(Particle)
    return ps, Change(ps[3])


@program([with_holder], mutates=(0,), fell_back=None, opaque=None)
def held_by_another(ps, holder):
    total = 0.0
    for p in ps:
        for _ in range(3):
            p.x += 1.0
            total += holder.one.x
    return total


@program(of(Body), fell_back=None, opaque=None)
def inside_try(ps):
    failed = 0
    for _ in range(2):
        for p in ps:
            try:
                p.y = 1.0 / (p.x - 3.0)
                p.x += 1.0
            except ZeroDivisionError:
                failed += 1
    return failed


@program(of(Body), fell_back=None, opaque=None)
def handed_back_between(ps):
    for k in range(2):
        for p in ps:
            p.x += 1.0
        print(end="")
        for p in ps:
            p.y += k * ps[0].x
    return ps[1]


@program([lambda: (Cloud(many(Particle)),)], fell_back=None, opaque=None)
def list_in_an_attribute_assigned(cloud):
    for k in range(2):
        for p in cloud.particles:
            p.x += k
    return cloud.particles[2].x


def few(*counts):
    return [lambda count=count: (many(Body, count), 3) for count in counts]


@program(few(5, 12, 5, 3, 40, 12), mutates=(), fell_back=None, opaque=None)
def few_bodies(ps, n):
    for _ in range(n):
        for i in range(len(ps)):
            p = ps[i]
            for j in range(i + 1, len(ps)):
                q = ps[j]
                d = p.x - q.x
                force = d / (abs(d * d * d) + 1.0)
                p.y -= force * q.charge * 0.1
                q.y += force * p.charge * 0.1
        for p in ps:
            p.x += p.y * 0.1
    return sum(p.x for p in ps)


class Changing(Body):
    """A class that changes in the midst of a call, and is as it was for the next one."""


def give_property():
    def shift(one, value):
        one.__dict__["x"] = value + 100

    Changing.x = property(lambda one: one.__dict__["x"] + 0.5, shift)


def give_setattr():
    def store(one, name, value):
        one.__dict__[name] = value - 100

    Changing.__setattr__ = store


def give_nothing():
    pass


def changing(change):
    for name in {"x", "__setattr__"} & vars(Changing).keys():
        delattr(Changing, name)
    return many(Changing), change


class Finalized:
    """Changes a class when it is dropped."""

    def __init__(self, change):
        self.change = change

    def __del__(self):
        self.change()


class Asked(type):
    """Classes of which an object is an instance if they say so."""

    def __instancecheck__(cls, value):
        cls.change()
        return True


class Any(metaclass=Asked):
    change = give_nothing


def with_finalizer(change):
    ps, _ = changing(change)
    ps[0].y = Finalized(change)
    return ps[0], 2.0


def with_asked_class(change):
    ps, _ = changing(change)
    Any.change = change
    return ps[0], Any


CHANGES = (give_nothing, give_property, give_setattr, give_nothing)


@program([lambda change=change: changing(change) for change in CHANGES], fell_back=None, opaque=None)
def callee_changes_the_class(ps, change):
    for p in ps:
        for k in range(3):
            p.x += k
    change()
    for p in ps:
        for k in range(3):
            p.x += k * ps[0].y


@program([lambda change=change: changing(change) for change in CHANGES], fell_back=None, opaque=None)
def closure_changes_the_class(ps, change):
    def counted(k):
        if k == 17:
            change()
        return k + 1

    k = 0
    for p in ps:
        for _ in range(3):
            p.x += 1.0
        k = counted(k)
    return k


@program([lambda change=change: with_finalizer(change) for change in CHANGES], fell_back=None, opaque=None)
def dropped_object_changes_the_class(p, dt):
    p.x = p.x + dt
    p.y = 3.0
    p.x = p.x + dt
    return p.x


@program([lambda change=change: with_asked_class(change) for change in CHANGES], fell_back=None, opaque=None)
def class_that_is_asked(p, cls):
    p.x = p.x + 1.0
    known = isinstance(3, cls), isinstance(p.x, (str, cls))
    p.x = p.x + 2.0
    return known
