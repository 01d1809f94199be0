"""`@record` behaves as a frozen, slotted data class."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from parakeet_py.base import fast_dataclass
from parakeet_py.base.fast_dataclass import record


@record
class Point:
    x: int
    y: int = 0


@record
class Path(Point):
    """A subclass with a default that is made anew."""

    rest: list[Point] = dataclasses.field(default_factory=list, compare=False)
    name: str = dataclasses.field(default="path", repr=False)


@record
class Even:
    half: int

    def __post_init__(self) -> None:
        if self.half % 2:
            raise ValueError("odd")


@record(eq=False)
class Label:
    text: str


@record
class Nothing:
    pass


def test_construction() -> None:
    assert (Point(1).x, Point(1).y, Point(y=2, x=1).y) == (1, 0, 2)
    path = Path(1, name="n")
    assert (path.x, path.y, path.rest, path.name) == (1, 0, [], "n")
    assert Path(1).rest is not Path(1).rest
    assert Nothing() == Nothing()
    assert list(inspect.signature(Path).parameters) == ["x", "y", "rest", "name"]
    with pytest.raises(ValueError, match="odd"):
        Even(1)
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=2)  # type: ignore[call-arg]


def test_equality_hash_and_text() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Path(1)
    assert Path(1, rest=[Point(1)]) == Path(1)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Label("a") != Label("a")
    assert repr(Path(1)) == "Path(x=1, y=0, rest=[])"


def test_records_are_frozen_and_have_slots() -> None:
    point: Any = Point(1)
    for name in ("x", "new"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


def test_fields_are_stored_at_once_where_nothing_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_dataclass, "_METHODS_OF_FROZEN", fast_dataclass._METHODS)

    @record
    class Segment:
        start: Any
        hash: int
        rest: list[int] = dataclasses.field(default_factory=list, compare=False)
        length: int = 1

        def __post_init__(self) -> None:
            assert self.length >= 0

    assert repr(Segment(1, 2, length=3)).endswith("Segment(start=1, hash=2, rest=[], length=3)")
    assert Segment(1, 2, [5]) == Segment(1, 2) != Segment(1, 3)
    assert Segment(1, 2).rest is not Segment(1, 2).rest
    assert Segment(1, 2) != (1, 2, 1) and Segment(1, 2).__eq__(None) is NotImplemented
    nan = float("nan")
    assert Segment(nan, 0) == Segment(nan, 0)  # as tuples are compared
    assert len({Segment(1, 2, [5]), Segment(1, 2), Segment(1, 2, length=0)}) == 2
    with pytest.raises(AssertionError):
        Segment(1, 2, length=-1)


def test_copies() -> None:
    path = Path(1, 2, [Point(3)])
    assert dataclasses.replace(path, y=5).y == 5
    assert [field.name for field in dataclasses.fields(Path)] == ["x", "y", "rest", "name"]
    for other in (copy.copy(path), copy.deepcopy(path), pickle.loads(pickle.dumps(path))):
        assert other == path and other.rest == path.rest
    match path:
        case Path(x, y):
            assert (x, y) == (1, 2)


def test_fields_without_default_come_first() -> None:
    with pytest.raises(TypeError, match="b follows fields with defaults"):

        @record
        class Wrong:
            a: int = 0
            b: int  # type: ignore[misc]


@record(frozen=False)
class Counter:
    count: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    later: str = dataclasses.field(init=False, compare=False)


def test_records_that_change() -> None:
    counter = Counter(1)
    counter.count += 1
    counter.names.append("a")
    assert counter == Counter(2, ["a"]) != Counter(2)
    counter.later = "x"
    assert counter.count == 2 and counter.later == "x"
    assert list(inspect.signature(Counter).parameters) == ["count", "names"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(AttributeError):
        counter.other = 1  # type: ignore[attr-defined]
