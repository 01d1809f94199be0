"""Members of enums: arguments, globals and attributes that choose what is computed."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from tests.arrays import arr
from tests.corpus import program, raising


class Mode(enum.Enum):
    ADD = "add"
    SCALE = "scale"
    HALF = 0.5

    def describe(self) -> str:
        return f"by {self.value}"


class Level(enum.IntEnum):
    LOW = 3
    HIGH = 300


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Loose(enum.Enum):
    ONE = 1
    TWO = 2

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = enum.Enum.__hash__


class Own(enum.IntEnum):
    ONE = 1

    def __mul__(self, other: Any) -> Any:
        return other + 100


class Bits(enum.Flag):
    A = 1
    B = 2


@program([(arr("f8", 4), mode) for mode in Mode])
def by_identity(x, mode):
    if mode is Mode.ADD:
        return x + 1
    return x * 3 if mode is Mode.SCALE else x * mode.value


@program([(arr("f4", 4), mode) for mode in Mode])
def by_match(x, mode):
    match mode:
        case Mode.ADD:
            return x + 1
        case Mode.SCALE:
            return x * 3
    return x


@program([(arr("f8", 4), mode) for mode in (*Mode, 3, "add", None)], opaque=None)
def by_equality(x, mode):
    if mode == Mode.ADD:
        return x + 1
    if mode != Mode.SCALE:
        return x - 1
    return x * 3


@program([(arr("f8", 4), mode) for mode in Mode])
def names(x, mode):
    if mode.name == "ADD":
        return x, mode.name
    return x * 2, mode.value


@program([(mode,) for mode in Mode])
def given_back(mode):
    return mode, Mode.SCALE, mode in (Mode.ADD, Mode.HALF)


@program([(arr(kind, 4), level) for kind in ("i1", "f4", "c8", "u8") for level in Level])
def arithmetic(x, level):
    return x * level + Level.LOW, x < level, level - x


@program([(number, level) for number in (3, 2.5, np.int8(3), np.float32(2)) for level in Level])
def beside_scalars(n, level):
    return n * level, level * n, n == level, n > level, 0 - level if level is Level.LOW else level + Level.LOW


@program([(arr("i8", 5), level) for level in Level])
def in_loops(x, level):
    total = 0
    for value in x:
        if value > level:
            total += level
        else:
            total += value
    return total


@program([(arr("f8", 4), colour) for colour in Colour])
def of_strings(x, colour):
    if colour == "red":
        return x + 1
    return x * 2 if colour is Colour.BLUE else x


@program([(arr("f8", 3), one) for one in (*Loose, 5)], opaque=1)
def with_an_equality_of_its_own(x, one):
    return x + 1 if one == Loose.TWO else x


@program([(arr("f8", 3), Own.ONE), (2, Own.ONE)], opaque=1)
def with_operators_of_its_own(x, one):
    return one * x


@program([(arr("f8", 3), Bits.A | Bits.B), (arr("f8", 3), Bits.A)], opaque=1)
def flags(x, bits):
    if bits & Bits.B:
        x = x + 1
    return x * 2 if bits is Bits.A else x


@program([(arr("f8", 3), mode) for mode in Mode])
def tables(x, mode):
    factors = {Mode.ADD: 1.0, Mode.SCALE: 2.0, Mode.HALF: 0.5}
    return x * factors[mode]


@program([(arr("f8", 3), mode) for mode in Mode])
def methods(x, mode):
    return x + 1, mode.describe()


@program([raising(TypeError, arr("f8", 3), Mode.ADD)], opaque=None)
def sums_with_members(x, mode):
    return x.sum() + mode


@program([([Mode.ADD, Mode.SCALE], arr("f8", 3)), ((Mode.SCALE,), arr("f8", 3))])
def in_sequences(modes, x):
    for mode in modes:
        x = x + 1 if mode is Mode.ADD else x * 3
    return x


class Axis(enum.IntEnum):
    X = 0
    Y = 1
    LAST = -1


@program(
    [(arr("f8", 3, 2), axis, [1.0, 2.0, 3.5]) for axis in Axis] + [(arr("i4", 2, 3), Axis.Y, [1, 2, 3])], mutates=(0,)
)
def as_indices(x, axis, numbers):
    x[axis, Axis.Y] += 2
    counts = [0, 0, 0]
    counts[axis] += 1
    return x[axis], x[:, axis], x[0, axis], numbers[axis], (1, 2.5)[axis], counts, x.shape[axis], x.sum(axis)
