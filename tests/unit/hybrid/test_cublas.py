"""Products of matrices by cuBLAS: what it is asked for, with a stand-in for nvmath's bindings that multiplies so."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices import calls
from parakeet_py.doctor import examine
from parakeet_py.hybrid.libraries import cublas_library
from tests.helpers import fake_cuda

DTYPES = {"sgemm": "f4", "dgemm": "f8", "cgemm": "c8", "zgemm": "c16"}


class Bindings(types.ModuleType):
    """`nvmath.bindings.cublas`: matrices in column-major order, in the order of a stream; `asked` has the calls."""

    def __init__(self) -> None:
        super().__init__("nvmath.bindings.cublas")
        self.asked: list[str] = []
        self.mode = self.stream = -1

    def create(self) -> int:
        return 7

    def set_stream(self, handle: int, stream: int) -> None:
        assert handle == 7
        self.stream = stream

    def set_math_mode(self, handle: int, mode: int) -> None:
        self.mode = mode

    def __getattr__(self, name: str) -> Any:
        if name == "gemm_ex":
            return self.gemm_ex
        single, batched, _ = name.partition("_strided_batched")
        if single not in DTYPES:
            raise AttributeError(name)
        if batched:
            return lambda *given: self.batched(single, np.dtype(DTYPES[single]), *given)
        return lambda *given: self.gemm(name, np.dtype(DTYPES[name]), *given)

    def gemm_ex(self, handle: int, *given: int) -> None:
        """Of float16, summed in float32: `cudaDataType_t`, `cublasComputeType_t` and the like are where cuBLAS has
        them."""
        *sizes, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm = given
        assert (a_type, b_type, c_type, compute, algorithm) == (2, 2, 0, 68, -1)
        self.gemm("gemm_ex", np.dtype("f4"), handle, *sizes, a, lda, b, ldb, beta, c, ldc, of=np.dtype("f2"))

    def batched(self, name: str, dtype: np.dtype[Any], handle: int, *given: int) -> None:
        """So many products, one after the other."""
        *turned_and_sizes, alpha, a, lda, far_a, b, ldb, far_b, beta, c, ldc, far_c, count = given
        assert far_c >= 0 < count
        for number in range(count):
            step = number * dtype.itemsize
            places = a + step * far_a, b + step * far_b, c + step * far_c
            self.gemm(
                name, dtype, handle, *turned_and_sizes, alpha, places[0], lda, places[1], ldb, beta, places[2], ldc
            )
        self.asked[-count:] = [f"{name} {count}"]

    def gemm(self, name: str, dtype: np.dtype[Any], handle: int, *given: int, of: np.dtype[Any] | None = None) -> None:
        of = of or dtype
        turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = given
        for place, value in ((alpha, 1), (beta, 0)):
            assert np.frombuffer((ctypes.c_uint8 * dtype.itemsize).from_address(place), dtype)[0] == value
        context = fake_cuda.Stream.streams[self.stream].context
        assert not context.capturing
        self.asked.append(name)

        def matrix(address: int, rows: int, columns: int, distance: int, dtype: np.dtype[Any] = of) -> tuple[Any, Any]:
            """The memory of a matrix, and the matrix in it."""
            assert distance >= rows
            memory = np.empty(distance * (columns - 1) + rows, dtype)
            context.device.copy_out(address, memory.view(np.uint8))
            return memory, np.ndarray((rows, columns), dtype, memory, 0, (dtype.itemsize, distance * dtype.itemsize))

        def work() -> None:
            left = matrix(a, k, m, lda)[1].T if turn_a else matrix(a, m, k, lda)[1]
            right = matrix(b, n, k, ldb)[1].T if turn_b else matrix(b, k, n, ldb)[1]
            memory, result = matrix(c, m, n, ldc, dtype)
            result[:] = left.astype(dtype) @ right.astype(dtype)
            context.device.copy_in(c, memory.view(np.uint8))

        context.queue.append(work)


@pytest.fixture
def cublas(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bindings]:
    made = Bindings()
    package: Any = types.ModuleType("nvmath.bindings")
    package.cublas = made
    monkeypatch.setitem(sys.modules, "nvmath", types.ModuleType("nvmath"))
    monkeypatch.setitem(sys.modules, "nvmath.bindings", package)
    with fake_cuda.installed(), options(devices="cuda:0"):
        yield made


def product(x: Any, y: Any) -> Any:
    return x @ y


def numbers(dtype: str, *shape: int) -> Any:
    return (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_dtypes(dtype: str, cublas: Bindings) -> None:
    x, y = numbers(dtype, 5, 7), numbers(dtype, 7, 3)
    found = accelerate(product)(x, y)
    assert np.array_equal(found, x @ y) and found.dtype == x.dtype and cublas.mode == 0
    assert [DTYPES[name] for name in cublas.asked] == [dtype]


@pytest.mark.parametrize("shape", [(20, 24, 18), (20, 600, 18), (17, 33, 19)])
def test_float16(shape: tuple[int, int, int], cublas: Bindings) -> None:
    x, y = numbers("f2", *shape[:2]), numbers("f2", *shape[1:])
    found = accelerate(product)(x, y)
    assert np.array_equal(found, x @ y) and found.dtype == np.float16
    assert cublas.asked == ["gemm_ex"]


def test_float16_without_its_last_columns(cublas: Bindings) -> None:
    """The arrays that kernels take are deeper than the product."""
    x, y = numbers("f2", 24, 32), numbers("f2", 32, 16)
    function = accelerate(lambda x, y: x[:, :24] @ y[:24])
    assert np.array_equal(function(x, y), x[:, :24] @ y[:24])
    assert not cublas.asked


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_long_shared_axis(dtype: str, cublas: Bindings) -> None:
    """Kernels would compute it in parts; nothing of that is launched."""
    x, y = numbers(dtype, 6, 1040), numbers(dtype, 1040, 5)
    function = accelerate(product)
    assert np.array_equal(function(x, y), x @ y)
    assert [DTYPES[name] for name in cublas.asked] == [dtype]
    plan = calls.device_plan_of(function._dispatcher.compiled_for_normal((x, y)))
    assert plan.last_run is not None and [blocks for (_, blocks), _ in plan.last_run.launches] == [0]


@pytest.mark.parametrize(
    ("x", "y", "taken"),
    [
        (numbers("f8", 7, 5).T, numbers("f8", 7, 3), True),
        (numbers("f8", 7, 5).T, numbers("f8", 3, 7).T, True),
        (numbers("f8", 9, 12)[1:6, 2:9], numbers("f8", 9, 8)[:7, 4:], True),
        (numbers("f8", 1, 7), numbers("f8", 7, 1), True),
        (numbers("f8", 5, 7)[::-1], numbers("f8", 7, 3), False),
        (numbers("f8", 5, 14)[:, ::2], numbers("f8", 7, 3), False),
        (numbers("f8", 5, 0), numbers("f8", 0, 3), False),
        (np.broadcast_to(numbers("f8", 7), (5, 7)), numbers("f8", 7, 3), False),
        (numbers("i8", 5, 7), numbers("i8", 7, 3), False),
    ],
    ids=["turned", "both", "inner", "single", "backwards", "steps", "empty", "repeated", "integers"],
)
def test_layouts(x: Any, y: Any, taken: bool, cublas: Bindings) -> None:
    assert np.array_equal(accelerate(product)(x, y), x @ y)
    assert bool(cublas.asked) == taken


BATCHES: list[tuple[str, Any, Any, list[str]]] = [
    ("one axis", numbers("f4", 3, 9, 10), numbers("f4", 3, 10, 8), ["sgemm 3"]),
    ("two axes", numbers("f8", 2, 3, 9, 10), numbers("f8", 2, 3, 10, 8), ["dgemm 6"]),
    ("complex", numbers("c16", 3, 9, 10) * 1j, numbers("c16", 3, 10, 8), ["zgemm 3"]),
    ("turned", numbers("f8", 3, 10, 9).swapaxes(1, 2), numbers("f8", 3, 8, 10).swapaxes(1, 2), ["dgemm 3"]),
    ("one left for all", numbers("f8", 9, 10), numbers("f8", 3, 10, 8), ["dgemm 3"]),
    ("of two axes one stands still", numbers("f8", 2, 3, 9, 10), numbers("f8", 3, 10, 8), ["dgemm 3", "dgemm 3"]),
    ("a part of each", numbers("f8", 4, 12, 14)[1:, 2:11, 3:13], numbers("f8", 3, 10, 8), ["dgemm 3"]),
    ("every other", numbers("f8", 6, 9, 10)[::2], numbers("f8", 3, 10, 8), ["dgemm 3"]),
    ("backwards", numbers("f8", 3, 9, 10)[::-1], numbers("f8", 3, 10, 8), []),
    ("steps", numbers("f8", 3, 9, 20)[:, :, ::2], numbers("f8", 3, 10, 8), []),
    ("none", numbers("f8", 0, 9, 10), numbers("f8", 0, 10, 8), []),
    ("integers", numbers("i8", 3, 9, 10), numbers("i8", 3, 10, 8), []),
]


@pytest.mark.parametrize(("x", "y", "asked"), [one[1:] for one in BATCHES], ids=[one[0] for one in BATCHES])
def test_batches(x: Any, y: Any, asked: list[str], cublas: Bindings) -> None:
    assert np.array_equal(accelerate(product)(x, y), x @ y)
    assert cublas.asked == asked


def test_batches_of_einsum(cublas: Bindings) -> None:
    """Also where the axis of the batch is the last one, and the library has no product of matrices that lie so."""
    x, y = numbers("f8", 3, 9, 10), numbers("f8", 3, 8, 10)
    function = accelerate(lambda x, y: np.einsum("bij,bkj->bik", x, y))
    for _ in range(2):
        assert np.array_equal(function(x, y), np.einsum("bij,bkj->bik", x, y))
    assert cublas.asked == ["dgemm 3"] * 2
    x, y = np.moveaxis(numbers("f8", 9, 10, 3), 2, 0), np.moveaxis(numbers("f8", 10, 8, 3), 2, 0)
    assert np.array_equal(accelerate(product)(x, y), x @ y) and len(cublas.asked) == 2


def test_between_kernels(cublas: Bindings) -> None:
    """In the order of the stream, whatever is kept for later; its results are what later kernels read."""
    function = accelerate(lambda x, y: ((x + 1) @ y * 2, x @ y + 1))
    x, y = numbers("f8", 6, 6), numbers("f8", 6, 6)
    for _ in range(3):
        for one, other in zip(function(x, y), ((x + 1) @ y * 2, x @ y + 1), strict=True):
            assert np.array_equal(one, other)
    assert len(cublas.asked) == 6


def test_rounding_to_tf32_is_asked_for(cublas: Bindings) -> None:
    x, y = numbers("f4", 5, 7), numbers("f4", 7, 3)
    accelerate(fastmath=True)(product)(x, y)
    assert cublas.mode == 3


def test_explain_and_doctor(cublas: Bindings) -> None:
    function = accelerate(product)
    x, y = numbers("f4", 5, 7), numbers("f4", 7, 3)
    function(x, y)
    plan = calls.device_plan_of(function._dispatcher.compiled_for_normal((x, y)))
    assert plan.last_run is not None and [blocks for (_, blocks), _ in plan.last_run.launches] == [0]
    (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    assert "products by cuBLAS" in finding.text


class Loaded:
    """The shared library, as `ctypes` has it: functions of C that do what the bindings do."""

    def __init__(self, bindings: Bindings) -> None:
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        self.status = 0

        def function(types: tuple[Any, ...], work: Any) -> Any:
            def call(*given: Any) -> int:
                work(*given)
                return self.status

            return ctypes.CFUNCTYPE(integer, *types)(call)

        def create(place: int) -> None:
            ctypes.c_uint64.from_address(place).value = bindings.create()

        self.cublasCreate_v2 = function((pointer,), create)
        self.cublasSetStream_v2 = function((pointer, pointer), bindings.set_stream)
        self.cublasSetMathMode = function((pointer, integer), bindings.set_math_mode)
        for name in DTYPES:
            types = (*[pointer], *[integer] * 5, *[pointer] * 2, integer, pointer, integer, *[pointer] * 2, integer)
            symbol = f"cublas{name.capitalize()}_v2"
            setattr(self, symbol, function(types, getattr(bindings, name)))
            far = ctypes.c_longlong
            types = (*[pointer], *[integer] * 5, *[pointer] * 2, integer, far, pointer, integer, far)
            types += *[pointer] * 2, integer, far, integer
            symbol = f"cublas{name.capitalize()}StridedBatched"
            setattr(self, symbol, function(types, getattr(bindings, f"{name}_strided_batched")))
        typed = pointer, integer, integer
        types = (*[pointer], *[integer] * 5, pointer, *typed, *typed, pointer, *typed, integer, integer)
        self.cublasGemmEx = function(types, bindings.gemm_ex)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_the_library_itself(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvmath: the same calls in C."""
    made = Bindings()
    loaded = Loaded(made)
    monkeypatch.setitem(sys.modules, "nvmath", None)
    monkeypatch.setattr(cublas_library, "find", lambda: cublas_library.Library(loaded))
    x, y = numbers(dtype, 17, 19), numbers(dtype, 18, 19).T
    with fake_cuda.installed(), options(devices="cuda:0"):
        function = accelerate(product)
        assert np.array_equal(function(x, y), x @ y) and made.mode == 0
        assert [DTYPES.get(name, "f2") for name in made.asked] == [dtype]
        if dtype in DTYPES.values():
            stack = np.stack([x, x + 1])
            assert np.array_equal(function(stack, y), stack @ y)
            assert np.array_equal(function(stack, np.stack([y, y])), stack @ y) and made.asked[-1].endswith("gemm 2")
        loaded.status = 13
        assert np.array_equal(function(x, y), x @ y)  # by kernels from now on


def test_a_library_that_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvmath", None)
    place: Any = types.ModuleType("cuda.pathfinder")
    place.load_nvidia_dynamic_lib = lambda name: types.SimpleNamespace(abs_path=ctypes.util.find_library("m"))
    x, y = numbers("f4", 5, 7), numbers("f4", 7, 3)
    with fake_cuda.installed(), options(devices="cuda:0"):
        monkeypatch.setitem(sys.modules, "cuda.pathfinder", place)
        assert np.array_equal(accelerate(product)(x, y), x @ y)
        (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
        assert "products by kernels (AttributeError: " in finding.text and "cublasCreate_v2" in finding.text


def test_without_nvmath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvmath", None)
    x, y = numbers("f4", 5, 7), numbers("f4", 7, 3)
    with fake_cuda.installed(), options(devices="cuda:0"):
        monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)  # whether its package is installed or not
        assert np.array_equal(accelerate(product)(x, y), x @ y)
        (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
        assert "products by kernels (ModuleNotFoundError: " in finding.text


@pytest.mark.parametrize("broken", ["create", "gemm"])
def test_a_library_that_fails_is_not_asked_again(broken: str, cublas: Bindings) -> None:
    tried: list[int] = []

    def fail(*given: Any) -> None:
        tried.append(1)
        raise RuntimeError("CUBLAS_STATUS_NOT_INITIALIZED")

    setattr(cublas, broken, fail)
    x, y = numbers("f4", 5, 7), numbers("f4", 7, 3)
    function = accelerate(product)
    for _ in range(2):
        assert np.array_equal(function(x, y), x @ y)
    assert tried == [1]
