"""Transforms by cuFFT: what it is asked for, with a stand-in for nvmath's bindings that transforms so."""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.call.devices import calls as device_calls
from parakeet_py.doctor import examine
from parakeet_py.hybrid.libraries import cufft_library
from tests.helpers import fake_cuda

TYPES = {0x29: "FF", 0x2A: "fF", 0x2C: "Ff", 0x69: "DD", 0x6A: "dD", 0x6C: "Dd"}


class Bindings(types.ModuleType):
    """`nvmath.bindings.cufft`: transforms in the order of a stream, none of them with a factor; what may overwrite its
    input leaves nothing of it. `asked` has the calls, `plans` those that are alive."""

    def __init__(self) -> None:
        super().__init__("nvmath.bindings.cufft")
        self.asked: list[str] = []
        self.plans: dict[int, Any] = {}
        self.streams: dict[int, int] = {}

    def create(self) -> int:
        plan = 1 + max(self.plans, default=0)
        self.plans[plan] = None
        return plan

    def make_plan_many64(self, plan: int, rank: int, n: Any, inembed: Any, *given: Any) -> int:
        step, distance, onembed, out_step, out_distance, kind, count = given
        assert self.plans[plan] is None and rank == len(n) == len(inembed) == len(onembed) == 1
        self.plans[plan] = n[0], (step, distance), (out_step, out_distance), kind, count
        return 0

    def set_stream(self, plan: int, stream: int) -> None:
        self.streams[plan] = stream

    def destroy(self, plan: int) -> None:
        del self.plans[plan]

    def exec_c2c(self, plan: int, given: int, out: int, direction: int) -> None:
        self.transform((0x29, 0x69), plan, given, out, direction)

    def exec_r2c(self, plan: int, given: int, out: int) -> None:
        self.transform((0x2A, 0x6A), plan, given, out, -1)

    def exec_c2r(self, plan: int, given: int, out: int) -> None:
        self.transform((0x2C, 0x6C), plan, given, out, 1)

    exec_z2z, exec_d2z, exec_z2d = exec_c2c, exec_r2c, exec_c2r

    def transform(self, kinds: tuple[int, int], plan: int, given: int, out: int, direction: int) -> None:
        n, lines, results, kind, count = self.plans[plan]
        assert kind in kinds
        context = fake_cuda.Stream.streams[self.streams[plan]].context
        assert not context.capturing
        self.asked.append(f"{TYPES[kind]} {n} x {count}")
        of, to = map(np.dtype, TYPES[kind])
        size_in, size_out = (n // 2 + 1 if {of, to} > {one} and one.kind == "c" else n for one in (of, to))

        def memory(address: int, dtype: Any, size: int, lies: tuple[int, int]) -> tuple[Any, Any]:
            step, distance = lies
            whole = np.empty((count - 1) * distance + (size - 1) * step + 1, dtype)
            context.device.copy_out(address, whole.view(np.uint8))
            return whole, np.lib.stride_tricks.as_strided(
                whole, (count, size), (distance * dtype.itemsize, step * dtype.itemsize)
            )

        def work() -> None:
            source, from_ = memory(given, of, size_in, lines)
            target, into = memory(out, to, size_out, results)
            if of.kind == "f":
                into[:] = np.fft.rfft(from_, norm="backward")
            elif to.kind == "f":
                into[:] = np.fft.irfft(from_, n, norm="forward")
                source[:] = np.nan
                context.device.copy_in(given, source.view(np.uint8))
            else:
                into[:] = np.fft.fft(from_) if direction == -1 else np.fft.ifft(from_, norm="forward")
            context.device.copy_in(out, target.view(np.uint8))

        context.queue.append(work)


@pytest.fixture
def cufft(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bindings]:
    made = Bindings()
    package: Any = types.ModuleType("nvmath.bindings")
    package.cufft = made
    monkeypatch.setitem(sys.modules, "nvmath", types.ModuleType("nvmath"))
    monkeypatch.setitem(sys.modules, "nvmath.bindings", package)
    with fake_cuda.installed(), options(devices="cuda:0"):
        yield made


def spectra(*shape: int) -> Any:
    rng = np.random.default_rng(1)
    return rng.random(shape) + 1j * rng.random(shape)


X = spectra(6, 8)
CASES: dict[str, tuple[Any, list[str]]] = {
    "fft": (lambda x: np.fft.fft(x), ["DD 8 x 6"]),
    "columns": (lambda x: np.fft.ifft(x, axis=0), ["DD 6 x 8"]),
    "two axes": (lambda x: np.fft.fft2(x, norm="ortho"), ["DD 8 x 6", "DD 6 x 8"]),
    "one line": (lambda x: np.fft.fft(x[1]), ["DD 8 x 1"]),
    "every other": (lambda x: np.fft.fft(x[::2, ::2]), ["DD 4 x 3"]),
    "real": (lambda x: np.fft.rfft(x.real.copy()), ["dD 8 x 6"]),
    "odd": (lambda x: np.fft.rfft(x.real[:, :7].copy(), norm="forward"), ["dD 7 x 6"]),
    "back": (lambda x: (np.fft.irfft(x), x + 1), ["Dd 14 x 6"]),
    "there and back": (
        lambda x: np.fft.irfftn(np.fft.rfftn(x.real + 1)),
        ["dD 8 x 6", "DD 6 x 5", "DD 6 x 5", "Dd 8 x 6"],
    ),
    "single": (lambda x: np.fft.fft(x.astype(np.complex64), norm="ortho"), ["FF 8 x 6"]),
    "longer": (lambda x: np.fft.fft(x, 12), []),
    "shorter": (lambda x: np.fft.rfft(x.real.copy(), 5), []),
    "backwards": (lambda x: np.fft.fft(x[:, ::-1]), []),
    "repeated": (lambda x: np.fft.fft(np.broadcast_to(x[0], (3, 8))), []),
    "real parts": (lambda x: np.fft.rfft(x.real), ["dD 8 x 6"]),
    "three axes": (lambda x: np.fft.fftn(x.reshape(3, 4, 4)), ["DD 4 x 12"] + ["DD 4 x 4"] * 3 + ["DD 3 x 4"] * 4),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for(name: str, cufft: Bindings) -> None:
    work, wanted = CASES[name]
    function = accelerate(work)
    for _ in range(2):
        cufft.asked.clear()
        found, expected = function(X), work(X)
        for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            assert np.allclose(one, other, rtol=1e-5 if one.dtype.char in "fF" else 1e-12) and one.dtype == other.dtype
        assert cufft.asked == wanted


def test_arrays_that_stay(cufft: Bindings) -> None:
    """What lies on the device is transformed there, and is what it was; nothing is copied but factors of 1."""
    function = accelerate(lambda x: np.fft.irfft(x) * 2)
    there = asdevice(X)
    for _ in range(4):
        result = function(there)
        run = function.explain(there).device.last_run
        assert run.bytes_in <= 16 and run.bytes_out == 0 and run.libraries == ((("cuFFT", "fft.irfft"), 1),)
        assert np.allclose(np.asarray(result), np.fft.irfft(X) * 2) and np.array_equal(np.asarray(there), X)
    assert "1 fft.irfft by cuFFT" in str(function.explain(there).device)


@pytest.mark.usefixtures("unchecked")
def test_calls_that_come_again(cufft: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transforms are a part of schedules, also where an argument is stored to before."""
    calls: list[str] = []
    execute = device_calls.execute
    monkeypatch.setattr(device_calls, "execute", lambda *given: (calls.append("long"), execute(*given))[1])

    def work(x: Any) -> Any:
        x *= 2
        return np.fft.irfft(x) * 2

    function = accelerate(work)
    for factor in (1, 2, 3):
        there, plain = asdevice(X * factor), X * factor
        result = function(there)
        assert np.allclose(np.asarray(result), work(plain)) and np.array_equal(np.asarray(there), plain)
    assert len(calls) == 2 and np.array_equal(np.asarray(there), plain)


def test_plans_are_kept(cufft: Bindings) -> None:
    """Those of the last 16 kinds of transforms."""
    function = accelerate(lambda x: np.fft.fft(x))
    for _ in range(2):
        for count in range(1, 6):
            assert np.allclose(function(X[:count]), np.fft.fft(X[:count]))
    assert len(cufft.plans) == 5
    for count in range(2, 25):
        assert np.allclose(function(X[:, :1].repeat(count, 1)), np.fft.fft(X[:, :1].repeat(count, 1)))
    assert len(cufft.plans) == 16


@pytest.mark.parametrize("broken", ["create", "make_plan_many64", "exec_z2z"])
def test_a_library_that_fails_is_not_asked_again(broken: str, cufft: Bindings) -> None:
    tried: list[int] = []

    def fail(*given: Any) -> None:
        tried.append(1)
        raise RuntimeError("CUFFT_INTERNAL_ERROR")

    setattr(cufft, broken, fail)
    function = accelerate(lambda x: np.fft.fft(x))
    for _ in range(2):
        assert np.allclose(function(X), np.fft.fft(X))
    assert tried == [1]
    (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    assert "transforms by the CPU (RuntimeError: CUFFT_INTERNAL_ERROR)" in finding.text


class Loaded:
    """The shared library, as `ctypes` has it: functions of C that do what the bindings do."""

    def __init__(self, bindings: Bindings) -> None:
        integer, long, pointer = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
        self.result = 0

        def function(types: tuple[Any, ...], work: Any) -> Any:
            def call(*given: Any) -> int:
                work(*given)
                return self.result

            return ctypes.CFUNCTYPE(integer, *types)(call)

        def create(place: int) -> None:
            ctypes.c_int.from_address(place).value = bindings.create()

        def make_plan(plan: int, rank: int, n: int, inembed: int, *given: int) -> None:
            step, distance, onembed, *rest, size = given
            one = [[ctypes.c_longlong.from_address(place).value] for place in (n, inembed, onembed)]
            ctypes.c_size_t.from_address(size).value = bindings.make_plan_many64(
                plan, rank, one[0], one[1], step, distance, one[2], *rest
            )

        extents = pointer, long, long
        self.cufftCreate = function((pointer,), create)
        types = integer, integer, pointer, *extents, *extents, integer, long, pointer
        self.cufftMakePlanMany64 = function(types, make_plan)
        self.cufftSetStream = function((integer, pointer), bindings.set_stream)
        self.cufftDestroy = function((integer,), bindings.destroy)
        for name in ("c2c", "r2c", "c2r", "z2z", "d2z", "z2d"):
            types = integer, pointer, pointer, *((integer,) if name in ("c2c", "z2z") else ())  # type: ignore[assignment]
            setattr(self, f"cufftExec{name.upper()}", function(types, getattr(bindings, f"exec_{name}")))


@pytest.mark.parametrize("name", ["fft", "real", "back", "single"])
def test_the_library_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvmath: the same calls in C."""
    made = Bindings()
    loaded = Loaded(made)
    monkeypatch.setitem(sys.modules, "nvmath", None)
    monkeypatch.setattr(cufft_library, "find", lambda: cufft_library.Library(loaded))
    work, wanted = CASES[name]
    with fake_cuda.installed(), options(devices="cuda:0"):
        function = accelerate(work)
        found, expected = function(X), work(X)
        assert np.allclose(np.asarray(found[0]), np.asarray(expected[0]), rtol=1e-5) and made.asked == wanted
        loaded.result = 5
        function(X)
        (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
        assert "transforms by the CPU (LibraryError: cufft" in finding.text
