"""Arguments that live on a device: used in place, results of the same kind. Stand-ins for CuPy's and other arrays have
memory of an emulated device."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.errors import FallbackWarning
from parakeet_py.call.devices import call_cache, calls
from parakeet_py.call.fallback_cache import kind_of
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.device_detection import lives_elsewhere
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.residency import dlpack
from parakeet_py.hybrid.residency.array_interfaces import interface_of
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.llvm.entry.plain_gate import Shape
from parakeet_py.signature import device_classes
from parakeet_py.signature.small_arguments import are_small
from tests.helpers import fake_cuda


class Mine:
    """An array of a library that knows `__cuda_array_interface__`, on an emulated device."""

    def __init__(self, array: np.ndarray[Any, Any], device: Any = None, readonly: bool = False) -> None:
        self.owner = device or open_devices("emulated")[0]
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        base = array if array.base is None else array.base
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        self.address = self.owner.allocate(max(base.nbytes, 16))
        self.size = base.nbytes
        self.owner.copy_in(self.address, np.frombuffer(base.tobytes(), np.uint8))
        self.offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.readonly = readonly
        self.stream: int | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address + self.offset, self.readonly),
            "strides": self.strides,
            "stream": self.stream,
        }

    def view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Mine:
        made = object.__new__(type(self))
        made.__dict__ = dict(self.__dict__, offset=self.offset + offset, shape=shape, strides=strides)
        return made

    def numpy(self) -> np.ndarray[Any, Any]:
        data = np.empty(self.size, np.uint8)
        self.owner.copy_out(data, self.address)
        return np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)


@pytest.fixture(autouse=True)
def on_emulated() -> Iterator[None]:
    with options(devices="emulated"):
        yield


def last_run(function: Any, *args: Any) -> Any:
    run = calls.device_plan_of(function._dispatcher.compiled_for_normal(args)).last_run
    assert run is not None
    return run


BASE = np.arange(60.0)


@pytest.mark.parametrize(
    "array",
    [
        BASE.reshape(3, 4, 5),
        BASE.reshape(3, 4, 5).T,
        BASE[::-1],
        BASE[5::7],
        np.zeros((0, 3)),
        np.array(2.5),
        np.arange(7, dtype=np.int16),
        np.arange(6) > 2,
        np.arange(5.0).astype(np.complex64),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_used_in_place(array: np.ndarray[Any, Any]) -> None:
    function = accelerate(lambda x: (x + x, x.sum(), x.T))
    mine = Mine(array)
    double, total, turned = function(mine)
    assert np.array_equal(np.asarray(double), array + array) and double.dtype == (array + array).dtype
    assert type(total) is type(array.sum()) and np.allclose(total, array.sum())
    assert np.array_equal(np.asarray(turned), array.T)
    if array.size and array.ndim:
        assert isinstance(double, DeviceArray) and turned.strides == array.T.strides
        assert turned.on(mine.owner).address == mine.address + mine.offset
        run = last_run(function, array)
        assert run.bytes_in == 0 and run.bytes_out <= 16


SCALE = 2.0


def scaled(x: Any, y: Any, a: Any) -> Any:
    y[1:] += a * x[:-1] * SCALE
    return y, x[::2], x.sum() > 3, (y.mean(), None)


@pytest.mark.parametrize("make", [lambda array: asdevice(array, "emulated"), Mine], ids=["ours", "theirs"])
def test_calls_like_one_before(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of calls is what decides them: forms, overlaps, types, globals, settings."""
    function = accelerate(scaled)
    took: list[bool] = []
    known = call_cache.Repeated.known

    def note(*given: Any) -> Any:
        found = known(*given)
        took.extend([True] * (found is not None))
        return found

    monkeypatch.setattr(call_cache.Repeated, "known", note)

    def agree(x: Any, y: Any, a: Any, again: bool) -> None:
        mine = [make(x)] * 2 if x is y else [make(x), make(y)]
        x, y = [x.copy()] * 2 if x is y else [x.copy(), y.copy()]
        del took[:]
        found, expected = function(*mine, a), scaled(x, y, a)
        assert bool(took) == again
        assert found[0] is mine[1] and found[2:] == expected[2:] and type(found[3][0]) is type(expected[3][0])
        assert np.array_equal(np.asarray(mine[1] if make is not Mine else mine[1].numpy()), y)
        assert np.array_equal(np.asarray(found[1]), expected[1])
        assert isinstance(found[1], DeviceArray) and found[1].strides == expected[1].strides

    one, other = np.arange(6.0), np.arange(6.0) + 1
    agree(one, other, 3.0, False)
    agree(other, one, 4.0, True)
    agree(one, other, np.float32(0.1), False)
    agree(one[1:], other[1:], 3.0, make is not Mine)  # of other extents; theirs are otherwise aligned
    agree(one[2:], other[2:], 3.0, False)  # short ones are known by these
    agree(one.astype(np.float32), other, 3.0, False)
    agree(other, one, -4.5, True)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3)
    agree(one, other, 3.0, False)
    agree(one, other, 2.0, True)
    with options(contract=True):
        agree(one, other, 2.0, False)
    agree(one, one, 2.0, False)
    agree(one, one, 2.5, make is not Mine)
    readonly = make(other)
    if make is Mine:
        readonly.readonly = True
        for _ in range(2):
            with pytest.raises(ValueError, match="read-only"):
                function(make(one), readonly, 1.0)


def test_exceptions_of_calls_like_one_before() -> None:
    @accelerate
    def taken(x: Any, k: Any) -> Any:
        x += 1
        return x[k] * 2

    function = accelerate(lambda x, n: x[: n * n] + 1)
    x, k = asdevice(np.arange(5.0), "emulated"), asdevice(np.array([1, 2]), "emulated")
    for number in range(3):
        assert np.asarray(taken(x, k)).tolist() == [2 * (number + 2), 2 * (number + 3)]
        assert np.asarray(function(x, 1)).tolist() == [number + 2]
    bad = asdevice(np.array([1, 7]), "emulated")
    for _ in range(2):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            taken(x, bad)
    assert np.asarray(x).tolist() == [5, 6, 7, 8, 9]
    assert np.asarray(function(x, 1 << 40)).tolist() == [6, 7, 8, 9, 10]  # beyond int64: Python's own numbers


def test_loops_of_calls_copy_nothing() -> None:
    step = accelerate(lambda x: 0.5 * (x + np.roll(x, 1)))
    x: Any = Mine(np.arange(1000.0))
    plain = np.arange(1000.0)
    for _ in range(4):
        x, plain = step(x), 0.5 * (plain + np.roll(plain, 1))
    run = last_run(step, plain)
    assert run.bytes_in == run.bytes_out == 0
    assert np.array_equal(np.asarray(x), plain)


def test_explained_in_place() -> None:
    function = accelerate(lambda x: np.cumsum(x) * 2)
    mine = Mine(np.arange(100.0))
    assert ".entry" in function.ptx(mine) and "double" in function.llvm(mine)
    report = function.explain(mine).device
    assert report is not None and report.complete and report.foreseen.bytes_in == report.foreseen.bytes_out == 0
    function(mine)
    again = function.explain(mine).device
    assert again is not None and again.last_run == again.foreseen
    with options(devices="cpu"), fake_cuda.installed():
        there = Mine(np.arange(100.0), open_devices("cuda:0")[0])
        function(there)
        text = str(function.explain(there))
    assert "runs on cuda:0" in text and "32 registers, 100% of the threads fit" in text


def test_stored_to_in_place() -> None:
    @accelerate
    def scale(x: Any, y: Any) -> Any:
        x *= 2
        y[1:] = y[:-1]
        return x

    array, host = Mine(np.arange(6.0)), np.arange(4.0)
    assert scale(array, host) is array
    assert array.numpy().tolist() == [0, 2, 4, 6, 8, 10] and host.tolist() == [0, 0, 1, 2]


def test_overlapping_arguments() -> None:
    @accelerate
    def shift(x: Any, y: Any) -> None:
        x[:] = y + 1

    whole, plain = Mine(np.arange(8.0)), np.arange(8.0)
    shift(whole.view(8, (7,), (8,)), whole.view(0, (7,), (8,)))
    plain[1:] = plain[:-1] + 1
    assert whole.numpy().tolist() == plain.tolist()


def test_read_only() -> None:
    @accelerate
    def clear(x: Any) -> None:
        x[:] = 0

    array = Mine(np.ones(5), readonly=True)
    with pytest.raises(ValueError, match="read-only"):
        clear(array)
    assert array.numpy().sum() == 5
    assert accelerate(lambda x: x[1:])(array).on(array.owner).readonly


def test_structure_of_results() -> None:
    function = accelerate(lambda pair, n: {"a": 1} and (pair[0] + pair[1], [pair[0], n], None))
    one, other = Mine(np.ones(3)), np.arange(3.0)
    total, (same, n), nothing = function((one, other), 5)
    assert np.asarray(total).tolist() == [1, 2, 3] and same is one and n == 5 and nothing is None


def test_exceptions() -> None:
    pick = accelerate(lambda x, i: x[i])
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        pick(Mine(np.ones(5)), Mine(np.array([0, 7])))
    assert np.asarray(pick(Mine(np.ones(5)), np.array([0, 1]))).tolist() == [1, 1]


def test_handed_back_to_python() -> None:
    def norms(x: Any, y: Any) -> Any:
        x += 1
        values = np.partition(x * 2, 1)
        return values * 2, y.sum()

    function = accelerate(norms)
    plain = np.arange(6.0).reshape(2, 3)
    mine, other, big = Mine(plain.copy()), plain.copy(), np.ones(1000)
    for _ in range(3):  # the first call observes
        found, total = function(mine, Mine(big))
        expected, _ = norms(other, big)
        assert np.allclose(np.asarray(found), expected) and total == 1000
        assert np.array_equal(mine.numpy(), other)
    assert isinstance(found, DeviceArray)
    assert last_run(function, other, big).bytes_out < 200


def test_python_stores_into_an_argument() -> None:
    def sort(x: Any) -> Any:
        np.random.default_rng(3).shuffle(x)
        return x * 2

    function = accelerate(sort)
    for _ in range(3):
        mine, plain = Mine(np.arange(9.0)), np.arange(9.0)
        assert np.array_equal(np.asarray(function(mine)), sort(plain)) and np.array_equal(mine.numpy(), plain)


def test_what_cannot_be_compiled_is_pythons() -> None:
    def strange(x: Any) -> Any:
        exec("y = x.shape")
        return x.shape, type(x).__name__, locals() and 0

    function = accelerate(strange)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(2):
            assert function(Mine(np.ones(3))) == ((3,), "Mine", 0)


def test_without_a_setting() -> None:
    """Arrays of a CUDA device run there whatever the setting."""
    with fake_cuda.installed() as context, options(devices="cpu"):
        cuda = open_devices("cuda:0")[0]
        double = accelerate(lambda x: x * 2)
        found = double(Mine(np.arange(5.0), cuda))
        assert found.device == "cuda:0" and np.asarray(found).tolist() == [0, 2, 4, 6, 8]
        assert double(np.arange(3.0)).tolist() == [0, 2, 4]
        del found
        gc.collect()
        context.finish()


def test_streams() -> None:
    with fake_cuda.installed() as context:
        cuda: Any = open_devices("cuda:0")[0]
        theirs = fake_cuda.Stream(context)
        mine = Mine(np.ones(4), cuda)
        mine.stream = int(theirs)
        found = accelerate(lambda x: x + 1)(mine)
        assert cuda._stream.waited == [theirs]
        assert found.__cuda_array_interface__["stream"] == int(cuda._stream)
        found.__dlpack__(stream=int(theirs))
        assert theirs.waited == [cuda._stream]
        found.__dlpack__(stream=-1)
        found.__dlpack__()
        assert fake_cuda.Stream.from_handle(1).waited == [cuda._stream]


def test_two_devices() -> None:
    one, two = open_devices("emulated*2")
    function = accelerate(lambda x, y: x + y)
    with pytest.raises(DeviceError, match=r"do not all live on emulated:1"), options(devices="emulated*2"):
        function(Mine(np.ones(3), two), Mine(np.ones(3), one))
    with options(devices="emulated*2"):
        assert function(Mine(np.ones(3), two), np.ones(3)).device == "emulated:1"


# ---- DLPack ----------------------------------------------------------------------------------------------------------


class Packed(Mine):
    """An array that knows DLPack only."""

    __cuda_array_interface__ = None  # type: ignore[assignment]
    versions = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, *, stream: int | None = None, **more: Any) -> Any:
        if more and not self.versions:
            raise TypeError("no argument max_version")
        steps = [stride // self.dtype.itemsize for stride in self.strides]
        address = self.address + self.offset
        kind = self.dtype.str[1:]
        return dlpack.capsule_of(address, kind, self.shape, steps, (2, 0), self, self.versions, self.readonly)


class Old(Packed):
    versions = False


@pytest.mark.parametrize("kind", [Packed, Old])
def test_dlpack(kind: type[Packed]) -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4).T
    mine = kind(array)
    found = accelerate(lambda x: x + 1)(mine)
    assert np.array_equal(np.asarray(found), array + 1)
    del mine
    gc.collect()
    assert not dlpack._kept


def test_dlpack_with_numpy_as_the_other_side() -> None:
    """Capsules are what NumPy reads and writes."""
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    tensor = dlpack.read(array.__dlpack__(max_version=(1, 0)))
    assert tensor is not None and tensor.shape == (3, 2) and tensor.strides == array.strides
    assert tensor.address == array.__array_interface__["data"][0] and np.dtype(tensor.dtype) == array.dtype

    class Ours:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, max_version: Any = None, **more: Any) -> Any:
            steps = [stride // 8 for stride in array.strides]
            return dlpack.capsule_of(tensor.address, "f8", array.shape, steps, (1, 0), array, True, False)

    back = np.from_dlpack(Ours())
    assert np.array_equal(back, array) and np.shares_memory(back, array) and len(dlpack._kept) == 1
    del back
    gc.collect()
    assert not dlpack._kept


def test_of_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are made by the library of the arguments."""
    monkeypatch.setattr(device_classes, "has_driver", lambda: True)

    class Theirs:
        def __init__(self, array: DeviceArray) -> None:
            self.array, self.capsule = array, array.__dlpack__(stream=1)

    def made(name: str) -> Any:
        kind = type("ndarray", (Mine,), {"__module__": name})
        module = types.ModuleType(name.partition(".")[0])
        module.from_dlpack = Theirs  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(sys.modules, f"{module.__name__}.dlpack", module)
        return kind

    reverse = accelerate(lambda x: x[::-1])
    for name, contiguous in (("cupy", False), ("torch", True), ("jaxlib.xla_extension", True)):
        made("jax") if name.startswith("jax") else None
        found = reverse(made(name)(np.arange(4.0)))
        assert type(found) is Theirs
        assert found.array.strides == ((8,) if contiguous else (-8,))
        assert np.asarray(found.array).tolist() == [3, 2, 1, 0]


def test_what_lives_elsewhere() -> None:
    assert lives_elsewhere(Mine(np.ones(1))) and lives_elsewhere([1, (Packed(np.ones(1)),)])
    for value in (1, 2.5, np.ones(3), np.float32(1), None, "text", (1, np.ones(2)), np.ma.masked_array([1])):
        assert not lives_elsewhere(value)


@pytest.mark.parametrize("driver", [False, True])
def test_arrays_of_libraries_with_both(monkeypatch: pytest.MonkeyPatch, driver: bool) -> None:
    """Those in the host's memory are Python's; a gate takes them where there can be no others of their class."""
    monkeypatch.setattr(device_classes, "has_driver", lambda: driver)
    for module, own in (
        ("torch", {"is_cpu": property(lambda self: not self.there), "__cuda_array_interface__": property(len)}),
        ("jaxlib", {}),
        ("mine", {"__cuda_array_interface__": property(len), "is_cpu": property(lambda self: not self.there)}),
        ("other", {}),
    ):
        said = {"__dlpack_device__": lambda self: (2 if self.there else 1, 0), "__module__": module}
        base = type("Tensor", (), {"__module__": "torch"}) if module == "mine" else object
        kind = type("Tensor", (base,), {"there": False, **said, **own})
        here, there = kind(), kind()
        there.there = True
        always = not driver and module != "other"
        assert not lives_elsewhere(here) and not lives_elsewhere([here] * 40)
        assert lives_elsewhere(there) is not always and lives_elsewhere((1, [here] * 40 + [there])) is not always
        assert kind_of((here, 2)) == (kind, int) and (kind_of((there,)) is None) is not always
        assert (Shape.of((here,), {}) is not None) is always and are_small((here,)) is always
    broken = type("Tensor", (), {"__dlpack_device__": lambda self: 1 / 0})()
    assert lives_elsewhere(broken)


def test_what_is_no_interface() -> None:
    class Odd:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    class Graph(Odd):
        @property
        def __cuda_array_interface__(self) -> Any:
            raise RuntimeError("requires grad")

    assert interface_of(Odd()) is None and interface_of(Graph()) is None


def test_nothing_is_left() -> None:
    device: Any = open_devices("emulated")[0]
    gc.collect()
    before = device._device.free_bytes
    mine = Mine(np.ones(1000))
    function = accelerate(lambda x: (x + 1, np.cumsum(x)))
    for _ in range(3):
        found = function(mine)
    del found
    mine.owner.free(mine.address)
    gc.collect()
    assert device._device.free_bytes == before
