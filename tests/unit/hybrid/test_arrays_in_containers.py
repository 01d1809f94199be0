"""Arrays that live on devices in dicts, lists, objects, attributes and variables: as arguments, in results, changed."""

from __future__ import annotations

import collections
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.errors import FallbackWarning
from parakeet_py.hybrid.residency.device_array import DeviceArray
from tests.unit.hybrid.test_device_arguments import Mine

PLACES: dict[str, dict[str, Any]] = {
    "emulated": {"devices": "emulated"},
    "emulated*2": {"devices": "emulated*2"},
    "cpu,emulated": {"devices": "cpu,emulated", "split": 0.5},
}
MAKERS: list[tuple[str, Callable[..., Any]]] = [
    *((place, asdevice) for place in PLACES),
    ("emulated", Mine),
    ("emulated", lambda array: array),
]


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any


class Count:
    def __init__(self, w: Any) -> None:
        self.w, self.n = w, 0


Pair = collections.namedtuple("Pair", "w b")


def in_a_dict(a: Any) -> Any:
    return {"k": a + 1}


def in_a_dataclass(a: Any) -> Any:
    return Layer(a + 1, a * 2)


def in_an_object(a: Any) -> Any:
    return Count(a * 3)


def in_containers_of_containers(a: Any) -> Any:
    return ({"k": a + 1, "l": [a, a * 2]}, a)


def in_a_list(a: Any) -> Any:
    return [a * i for i in range(3)]


def views(a: Any) -> Any:
    return {"v": a[1:], "a": a, "t": (a[::2],)}


def appended(numbers: Any, a: Any) -> Any:
    numbers.append(2.0)
    return a + len(numbers)


def replaced(numbers: Any, a: Any) -> Any:
    numbers[0] = 7.0
    return a * numbers[0]


def array_appended(arrays: Any, a: Any) -> Any:
    arrays.append(a * 2)
    return a


def added_to_a_dict(found: Any, a: Any) -> Any:
    found["x"] = a + 1
    return a


def dict_read(params: Any, a: Any) -> Any:
    return params["w"] @ a + params["b"]


def dataclass_read(layer: Any, a: Any) -> Any:
    return layer.w * a + layer.b


def attributes_changed(count: Any, a: Any) -> Any:
    count.w = count.w + a
    count.n += 1
    return count.w


def named(pair: Any, a: Any) -> Any:
    return Pair(pair.w + a, pair.b)


def list_read(arrays: Any) -> Any:
    return arrays[0] + arrays[1]


def sorted_in_place(params: Any) -> Any:
    params["w"].sort()
    return params["w"][0]


def by_python(params: Any, a: Any) -> Any:
    exec("pass")
    params["w"] = params["w"] + 1
    return {"r": params["w"] + a, "same": a}


def updated(params: Any, gradients: Any) -> Any:
    for k in params:
        params[k] = params[k] - 0.1 * gradients[k]
    return params


def a() -> np.ndarray[Any, Any]:
    return np.arange(4.0)


CASES: list[tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = [
    *((f, lambda d: (d(a()),)) for f in (in_a_dict, in_a_dataclass, in_an_object, in_containers_of_containers)),
    *((f, lambda d: (d(a()),)) for f in (in_a_list, views)),
    (appended, lambda d: ([1.0], d(a()))),
    (replaced, lambda d: ([1.0, 2.0], d(a()))),
    (array_appended, lambda d: ([], d(a()))),
    (added_to_a_dict, lambda d: ({}, d(a()))),
    (dict_read, lambda d: ({"w": d(np.ones((3, 4))), "b": d(np.arange(3.0))}, d(a()))),
    (dict_read, lambda d: ({"w": d(np.ones((3, 4))), "b": d(np.arange(3.0))}, a())),
    (dataclass_read, lambda d: (Layer(d(a()), d(a())), d(a()))),
    (dataclass_read, lambda d: (Layer(d(a()), d(a())), 2.0)),
    (attributes_changed, lambda d: (Count(d(a())), d(a()))),
    (named, lambda d: (Pair(d(a()), d(a())), d(a()))),
    (list_read, lambda d: ([d(a()), d(a())],)),
    (sorted_in_place, lambda d: ({"w": d(a()[::-1].copy())},)),
    (by_python, lambda d: ({"w": d(a())}, d(a()))),
    (updated, lambda d: ({"w": d(a()), "b": d(a())}, {"w": d(a()), "b": d(a())})),
]


def plain(value: Any) -> Any:
    """A value as one of nested tuples, arrays by dtype, shape and elements."""
    if isinstance(value, DeviceArray | Mine):
        value = value.numpy() if isinstance(value, Mine) else np.asarray(value)
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.shape, value.tolist()
    if isinstance(value, dict):
        return "dict", tuple((key, plain(item)) for key, item in value.items())
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(map(plain, value))
    if isinstance(value, Layer | Count):
        return type(value).__name__, plain(vars(value))
    return type(value).__name__, value


@pytest.mark.parametrize(("function", "make"), CASES, ids=[function.__name__ for function, _ in CASES])
@pytest.mark.parametrize(("place", "maker"), MAKERS, ids=["one", "team", "with the CPU", "theirs", "of the host"])
def test_as_in_python(place: str, maker: Any, function: Callable[..., Any], make: Any) -> None:
    accelerated = accelerate(function)
    if maker is Mine and function is by_python:  # other libraries' arrays know what Python does with them; these do not
        with options(**PLACES[place]), warnings.catch_warnings(), pytest.raises(TypeError, match="unsupported operand"):
            warnings.simplefilter("ignore", FallbackWarning)
            accelerated(*make(maker))
        return
    with options(**PLACES[place]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(3):
            args, expected_args = make(maker), make(lambda array: array)
            expected = function(*expected_args)
            assert plain(accelerated(*args)) == plain(expected)
            assert plain(args) == plain(expected_args)


@pytest.mark.parametrize("place", PLACES)
def test_results_stay_there(place: str) -> None:
    with options(**PLACES[place]):
        there = asdevice(a())
        for _ in range(3):
            found = accelerate(in_containers_of_containers)(there)
            assert isinstance(found[0]["k"], DeviceArray) and found[0]["l"][0] is there and found[1] is there


SHARED: Any = None


def with_global(x: Any) -> Any:
    return x + SHARED


@pytest.mark.parametrize("place", PLACES)
def test_view_of_a_read_only_array_beside_a_list(place: str) -> None:
    function = accelerate(lambda b: (b[None], [b * x for x in range(3)]))
    with options(**PLACES[place]):
        array = asdevice(np.arange(4.0))
        for _ in range(2):
            view, several = function(array._view(False))
            assert view.base is array and not view.flags.writeable
            assert np.array_equal(several[2], np.arange(4.0) * 2)


@pytest.mark.filterwarnings("ignore::parakeet_py.base.errors.FallbackWarning")
@pytest.mark.parametrize("place", PLACES)
def test_what_python_stores_is_what_it_was_given(place: str) -> None:
    """In a dict and an object that were empty, a list beside, and a global that a helper of Python's changes."""

    def put(d: Any, holder: Any, items: Any, a: Any) -> Any:
        d["a"], holder.a = a, a
        items.append(a[1:])
        shown(a)
        return Layer(a[:2], a)

    def shown(a: Any) -> Any:
        changed[:] = a + changed

    changed: Any = None
    function = accelerate(put)
    with options(**PLACES[place]):
        for number in range(3):
            a, changed = asdevice(np.arange(3.0) + number), asdevice(np.ones(3))
            before, d, holder, items = changed, {}, Count(0), [0.0]
            found = function(d, holder, items, a)
            assert d["a"] is a and holder.a is a and found.b is a and changed is before
            a[1] = -1.0
            assert np.asarray(found.w).tolist() == [number, -1] and np.asarray(items[1]).tolist() == [-1, number + 2]
            assert np.asarray(changed).tolist() == [number + 1, number + 2, number + 3]


@pytest.mark.parametrize("place", PLACES)
def test_the_same_array_as_argument_and_global(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    with options(**PLACES[place]):
        function, there = accelerate(with_global), asdevice(a())
        monkeypatch.setattr(sys.modules[__name__], "SHARED", there)
        for _ in range(3):
            for argument in (there, asdevice(a()), a()):
                found = function(argument)
                assert isinstance(found, DeviceArray) and np.asarray(found).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("place", PLACES)
def test_the_same_array_in_a_closure_and_an_attribute(place: str) -> None:
    with options(**PLACES[place]):
        there = asdevice(a())

        def add(x: Any, layer: Any) -> Any:
            x += 1
            return x + there + layer.w

        function = accelerate(add)
        for number in range(3):
            found = function(there, Layer(there, None))
            assert np.asarray(found).tolist() == (3 * (a() + number + 1)).tolist()


def test_memory_of_ours_shown_by_another_library() -> None:
    """A view of a `DeviceArray` that another library has overlaps it."""

    @accelerate
    def smear(x: Any, y: Any) -> None:
        x[1:] = y[:-1] * 2

    with options(devices="emulated"):
        for _ in range(2):
            ours = asdevice(a())
            theirs = Mine(a())
            theirs.address = ours.on(theirs.owner).address
            smear(ours, theirs)
            assert np.asarray(ours).tolist() == [0, 0, 2, 4]


def _stores_and_raises(a: Any, k: int) -> Any:
    a[0] += 1
    if k > 1:
        raise MemoryError
    return exec("pass")


def raises_after_stores(a: Any) -> Any:
    total = 0.0
    for k in range(3):
        total += (a * 2).sum()
        _stores_and_raises(a, k)
    return total


@pytest.mark.parametrize(("place", "make"), MAKERS[:4])
def test_stores_before_an_exception_of_pythons(place: str, make: Callable[..., Any]) -> None:
    """What an operation that is handed back has stored before it raises is in the array, wherever that lives."""
    here = np.arange(5.0)
    with options(**PLACES[place]):
        there, work, more = make(here), accelerate(raises_after_stores), accelerate(lambda a: a + 1)
        for _ in range(3):
            for function, array in ((work, there), (raises_after_stores, here)):
                with pytest.raises(MemoryError):
                    function(array)
            assert np.array_equal(np.asarray(more(there)), here + 1)
