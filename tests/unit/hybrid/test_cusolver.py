"""Systems of equations and Cholesky factors by cuSOLVER: what it is asked for, with a stand-in for nvmath's bindings
that solves in column-major order.

The stand-in pivots, keeps both triangles of a factor in one matrix, reads the triangle that it is told to, and leaves
the other as it was.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.call.devices import calls as device_calls
from parakeet_py.doctor import examine
from parakeet_py.hybrid.libraries import cusolver_library
from tests.helpers import fake_cuda

DTYPES = {"d": np.dtype("f8"), "z": np.dtype("c16"), "s": np.dtype("f4"), "c": np.dtype("c8")}
I4 = np.dtype("i4")
WORKSPACE = 5  # elements


class Bindings(types.ModuleType):
    """`nvmath.bindings.cusolverDn`, in the order of a stream; `asked` has the calls, `broken` one that raises."""

    def __init__(self) -> None:
        super().__init__("nvmath.bindings.cusolverDn")
        self.asked: list[str] = []
        self.stream = -1
        self.broken = ""

    def create(self) -> int:
        return 9

    def set_stream(self, handle: int, stream: int) -> None:
        assert handle == 9
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        letter, _, call = name[:1], "", name[1:]
        if letter not in DTYPES or not call.startswith(("getrf", "getrs", "potrf", "syevd", "heevd", "gesvd")):
            raise AttributeError(name)
        if name == self.broken:
            raise RuntimeError("CUSOLVER_STATUS_INTERNAL_ERROR")
        if call.endswith("_buffer_size"):
            return lambda *given: WORKSPACE
        self.asked.append(name)
        return lambda handle, *given: self.queue(getattr(self, f"do_{call}"), DTYPES[letter], *given)

    def queue(self, work: Callable[..., None], dtype: Any, *given: int) -> None:
        device = fake_cuda.Stream.streams[self.stream].context
        assert not device.capturing

        def read(address: int, shape: tuple[int, ...], kind: Any = dtype) -> Any:
            found = np.empty(shape, kind, "F")
            device.device.copy_out(address, found.reshape(-1, order="F").view(np.uint8))
            memory = np.empty(int(np.prod(shape)) * kind.itemsize, np.uint8)
            device.device.copy_out(address, memory)
            return memory.view(kind).reshape(shape, order="F")

        def write(address: int, array: Any) -> None:
            device.device.copy_in(address, np.ascontiguousarray(array.reshape(-1, order="F")).view(np.uint8))

        device.queue.append(lambda: work(read, write, *given))

    @staticmethod
    def do_getrf(read: Any, write: Any, m: int, n: int, a: int, lda: int, space: int, pivots: int, info: int) -> None:
        assert m == n == lda
        matrix, order, singular = read(a, (n, n)), np.zeros(n, I4), 0
        write(space, np.full(WORKSPACE, np.nan, matrix.dtype))
        for step in range(n):
            pivot = step + int(np.argmax(abs(matrix[step:, step])))
            order[step] = pivot + 1
            matrix[[step, pivot]] = matrix[[pivot, step]]
            if matrix[step, step] == 0:
                singular = singular or step + 1
                continue
            matrix[step + 1 :, step] /= matrix[step, step]
            matrix[step + 1 :, step + 1 :] -= np.outer(matrix[step + 1 :, step], matrix[step, step + 1 :])
        write(a, matrix)
        write(pivots, order)
        write(info, np.array([singular], I4))

    @staticmethod
    def do_getrs(read: Any, write: Any, how: int, n: int, columns: int, a: int, lda: int, *given: int) -> None:
        pivots, b, ldb, info = given
        assert lda == ldb == n and how in (0, 1)
        factors, right = read(a, (n, n)), read(b, (n, columns))
        lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
        order = np.arange(n)
        for step, pivot in enumerate(read(pivots, (n,), I4)):
            order[[step, pivot - 1]] = order[[pivot - 1, step]]
        whole = np.empty_like(factors)
        whole[order] = lower @ upper
        with np.errstate(all="ignore"):
            try:
                write(b, np.linalg.solve(whole.T if how else whole, right).astype(right.dtype))
            except np.linalg.LinAlgError:
                write(b, np.full_like(right, np.inf))
        write(info, np.zeros(1, I4))

    @staticmethod
    def do_potrf(read: Any, write: Any, how: int, n: int, a: int, lda: int, space: int, size: int, info: int) -> None:
        assert lda == n and size == WORKSPACE and how in (0, 1)
        matrix = read(a, (n, n))
        half = np.triu(matrix) if how else np.tril(matrix)
        whole = half + half.conj().T - np.diag(matrix.diagonal().real)
        try:
            factor = np.linalg.cholesky(whole, upper=bool(how))
        except np.linalg.LinAlgError:
            write(info, np.array([1], I4))
            return
        write(a, np.where(np.tri(n, dtype=bool).T if how else np.tri(n, dtype=bool), factor, matrix))
        write(info, np.zeros(1, I4))

    @staticmethod
    def do_syevd(
        read: Any, write: Any, mode: int, how: int, n: int, a: int, lda: int, values: int, *given: int
    ) -> None:
        space, size, info = given
        assert lda == n and size == WORKSPACE and mode == 0 and how in (0, 1)
        matrix = read(a, (n, n))
        write(space, np.full(WORKSPACE, np.nan, matrix.dtype))
        found = np.linalg.eigvalsh(matrix, "U" if how else "L") if np.isfinite(matrix).all() else np.full(n, np.nan)
        write(values, found.astype(matrix.real.dtype))
        write(a, np.full_like(matrix, 7))
        write(info, np.zeros(1, I4))

    do_heevd = do_syevd

    @staticmethod
    def do_gesvd(read: Any, write: Any, left: int, right: int, m: int, n: int, a: int, lda: int, *given: int) -> None:
        values, u, ldu, vt, ldvt, _, size, rest, info = given
        assert (
            (left, right) == (ord("N"),) * 2 and not u and not vt and lda == ldu == m >= n == ldvt and size == WORKSPACE
        )
        matrix = read(a, (m, n))
        write(rest, np.full(max(n - 1, 1), np.nan, matrix.real.dtype))
        write(values, np.linalg.svd(matrix, compute_uv=False))
        write(a, np.full_like(matrix, 7))
        write(info, np.zeros(1, I4))


@pytest.fixture
def cusolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bindings]:
    made = Bindings()
    package: Any = types.ModuleType("nvmath.bindings")
    package.cusolverDn = made
    monkeypatch.setitem(sys.modules, "nvmath", types.ModuleType("nvmath"))
    monkeypatch.setitem(sys.modules, "nvmath.bindings", package)
    with fake_cuda.installed(), options(devices="cuda:0"):
        yield made


RNG = np.random.default_rng(1)
A, B = RNG.random((5, 5)) + 2 * np.eye(5)[[3, 1, 4, 0, 2]], RNG.random((5, 3))
Z = A + 1j * RNG.random((5, 5))
H = Z @ Z.conj().T
STACK = RNG.random((2, 3, 4, 4)) + 3 * np.eye(4)
SINGULAR = np.ones((3, 4, 4)) + np.arange(3.0)[:, None, None] * np.eye(4)


def solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def inv(a: Any) -> Any:
    return np.linalg.inv(a)


def lower(a: Any) -> Any:
    return np.linalg.cholesky(a)


def upper(a: Any) -> Any:
    return np.linalg.cholesky(a, upper=True)


def singular_values(a: Any) -> Any:
    return np.linalg.svd(a, compute_uv=False)


def eigenvalues(a: Any) -> Any:
    return np.linalg.eigvalsh(a)


def eigenvalues_above(a: Any) -> Any:
    return np.linalg.eigvalsh(a, UPLO="U")


CASES: dict[str, tuple[Any, tuple[Any, ...], list[str]]] = {
    "vector": (solve, (A, B[:, 0].copy()), ["dgetrf", "dgetrs"]),
    "matrix": (solve, (A, B), ["dgetrf", "dgetrs"]),
    "turned": (solve, (A.T, B), ["dgetrf", "dgetrs"]),
    "complex": (solve, (Z, B), ["zgetrf", "zgetrs"]),
    "single": (solve, (A.astype("f4"), B.astype("f4")), ["dgetrf", "dgetrs"]),
    "one": (solve, (A[:1, :1].copy(), B[:1].copy()), ["dgetrf", "dgetrs"]),
    "none": (solve, (A[:0, :0].copy(), B[:0].copy()), []),
    "stacks": (solve, (STACK, RNG.random((3, 4, 2))), ["dgetrf", "dgetrs"] * 6),
    "one for all": (solve, (STACK[0, 0], RNG.random((3, 4, 2))), ["dgetrf", "dgetrs"] * 3),
    "gaps": (solve, (STACK[0, 0, ::2, ::2], RNG.random((2, 2))), []),
    "inverse": (inv, (A,), ["dgetrf", "dgetrs"]),
    "inverses": (inv, (STACK,), ["dgetrf", "dgetrs"] * 6),
    "lower": (lower, (A @ A.T,), ["dpotrf"]),
    "lower, complex": (lower, (H,), ["zpotrf"]),
    "upper, complex": (upper, (H,), ["zpotrf"]),
    "only a triangle": (lower, (np.tril(H) + 7 * np.triu(Z, 1),), ["zpotrf"]),
    "singular values": (singular_values, (A,), ["dgesvd"]),
    "singular values, wide": (singular_values, (B.T.copy(),), ["dgesvd"]),
    "singular values, tall, in columns": (singular_values, (np.asfortranarray(B),), ["dgesvd"]),
    "singular values, tall": (singular_values, (B,), []),
    "singular values, stacks": (singular_values, (STACK[:, :, :2] + 1j,), ["zgesvd"] * 6),
    "eigenvalues": (eigenvalues, (A,), ["dsyevd"]),
    "eigenvalues, complex": (eigenvalues, (H + 5 * np.triu(Z, 1),), ["zheevd"]),
    "eigenvalues, of columns, from above": (eigenvalues_above, (Z.T,), ["zheevd"]),
    "lower, stacks": (lower, (STACK @ STACK.swapaxes(-1, -2),), ["dpotrf"] * 6),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for(name: str, cusolver: Bindings) -> None:
    work, args, wanted = CASES[name]
    function, expected = accelerate(work), work(*args)
    before = [arg.copy() for arg in args]
    found = function(*args)
    assert np.allclose(found, expected, rtol=1e-5 if expected.dtype.char in "fF" else 1e-9)
    assert found.dtype == expected.dtype and found.strides == expected.strides
    assert cusolver.asked == wanted
    assert all(np.array_equal(one, other) for one, other in zip(before, args, strict=True))


@pytest.mark.parametrize(
    ("work", "args", "text"),
    [
        (solve, (np.ones((3, 3)), np.ones(3)), "Singular matrix"),
        (inv, (SINGULAR,), "Singular matrix"),
        (lower, (-np.eye(3),), "Matrix is not positive definite"),
    ],
    ids=["solve", "inv", "cholesky"],
)
def test_failures(work: Any, args: Any, text: str, cusolver: Bindings) -> None:
    """Of one matrix of a stack, too; the calls that follow are right."""
    function = accelerate(work)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=text):
            function(*args)
    assert cusolver.asked
    good = (2 * np.eye(args[0].shape[-1]) + np.zeros_like(args[0]), *args[1:])
    assert np.allclose(function(*good), work(*good))


def test_values_that_are_not_finite(cusolver: Bindings) -> None:
    """NumPy says what becomes of them."""
    function = accelerate(eigenvalues)
    with pytest.raises(np.linalg.LinAlgError, match="Eigenvalues did not converge"):
        function(np.full((3, 3), np.nan))
    assert np.allclose(function(A), eigenvalues(A)) and cusolver.asked == ["dsyevd", "dsyevd"]


def test_arrays_that_stay(cusolver: Bindings) -> None:
    function = accelerate(lambda a, b: np.linalg.solve(a, b + 1) * 2)
    there = asdevice(A), asdevice(B)
    for _ in range(3):
        result = function(*there)
        run = function.explain(*there).device.last_run
        assert run.bytes_in == 0 and run.libraries == ((("cuSOLVER", "linalg.solve"), 1),)
        assert run.bytes_out < 32  # whether the matrix was singular
        assert np.allclose(np.asarray(result), np.linalg.solve(A, B + 1) * 2)


@pytest.mark.usefixtures("unchecked")
def test_calls_that_come_again(cusolver: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is a part of schedules; a matrix that is singular later is an exception, with nothing stored."""
    calls: list[str] = []
    execute = device_calls.execute
    monkeypatch.setattr(device_calls, "execute", lambda *given: (calls.append("long"), execute(*given))[1])
    function = accelerate(lambda a, b: np.linalg.solve(a, b + 1) * 2)
    for shift in (0, 1, 2, 3):
        a = A + shift * np.eye(5)
        result = function(asdevice(a), asdevice(B))
        assert np.allclose(np.asarray(result), np.linalg.solve(a, B + 1) * 2)
    assert len(calls) == 2 and cusolver.asked == ["dgetrf", "dgetrs"] * 4
    singular = asdevice(np.ones((5, 5)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        function(singular, asdevice(B))
    assert len(calls) == 3 and np.asarray(singular).tolist() == [[1.0] * 5] * 5
    assert np.allclose(np.asarray(function(asdevice(A), asdevice(B))), np.linalg.solve(A, B + 1) * 2)
    assert len(calls) == 3


@pytest.mark.usefixtures("unchecked")
def test_a_solution_behind_a_store_is_not_recorded(cusolver: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be undone where a matrix is singular."""

    def stored_before(a: Any, b: Any) -> Any:
        b += 1
        return np.linalg.solve(a, b)

    function = accelerate(stored_before)
    for a in (A, A, np.ones((5, 5)), A):
        there, plain = asdevice(B), B.copy()
        try:
            expected = stored_before(a, plain)
        except np.linalg.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                function(asdevice(a), there)
        else:
            assert np.allclose(np.asarray(function(asdevice(a), there)), expected)
        assert np.array_equal(np.asarray(there), plain)


@pytest.mark.parametrize("broken", ["dgetrf", "dgetrs", "dgetrf_buffer_size"])
def test_a_library_that_fails_is_not_asked_again(broken: str, cusolver: Bindings) -> None:
    cusolver.broken = broken
    function = accelerate(solve)
    for _ in range(2):
        assert np.allclose(function(A, B), solve(A, B))
    cusolver.broken = ""
    asked = [*cusolver.asked]
    assert np.allclose(function(A, B), solve(A, B)) and cusolver.asked == asked
    (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    assert "systems by the CPU (RuntimeError: CUSOLVER_STATUS_INTERNAL_ERROR)" in finding.text


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

        def sized(*given: int) -> None:
            ctypes.c_int.from_address(given[-1]).value = WORKSPACE

        def named(name: str) -> Any:
            return lambda *given: getattr(bindings, name)(*given)

        self.cusolverDnCreate = function((pointer,), create)
        self.cusolverDnSetStream = function((pointer, pointer), bindings.set_stream)
        matrix = pointer, integer, integer, pointer, integer
        of_values = pointer, *[integer] * 3, pointer, integer, pointer
        of_svd = pointer, *[ctypes.c_byte] * 2, *[integer] * 2, pointer, integer, pointer, *(pointer, integer) * 2
        right = pointer, *[integer] * 3, pointer, integer, pointer, pointer, integer, pointer
        for letter in DTYPES:
            name = f"cusolverDn{letter.upper()}"
            for call, kinds in (
                ("getrf", (*matrix, *[pointer] * 3)),
                ("getrs", right),
                ("potrf", (*matrix, pointer, integer, pointer)),
                (f"{'he' if letter in 'cz' else 'sy'}evd", (*of_values, pointer, integer, pointer)),
                ("gesvd", (*of_svd, pointer, integer, pointer, pointer)),
            ):
                setattr(self, name + call, function(kinds, named(letter + call)))
            values = "heevd" if letter in "cz" else "syevd"
            shapes = (("getrf", matrix), ("potrf", matrix), (values, of_values), ("gesvd", (pointer, integer, integer)))
            for call, kinds in shapes:
                setattr(self, f"{name}{call}_bufferSize", function((*kinds, pointer), sized))


@pytest.mark.parametrize("name", ["matrix", "complex", "lower", "singular values", "eigenvalues, complex"])
def test_the_library_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvmath: the same calls in C."""
    made = Bindings()
    loaded = Loaded(made)
    monkeypatch.setitem(sys.modules, "nvmath", None)
    monkeypatch.setattr(cusolver_library, "find", lambda: cusolver_library.Library(loaded))
    work, args, wanted = CASES[name]
    with fake_cuda.installed(), options(devices="cuda:0"):
        function = accelerate(work)
        assert np.allclose(function(*args), work(*args)) and made.asked == wanted
        loaded.status = 7
        assert np.allclose(function(*args), work(*args))  # by the CPU from now on
