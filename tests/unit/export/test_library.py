"""Exported libraries as C sees them: compiled and called from C, their symbols, targets, threads, matrix products."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.export import link
from tests.unit.export.functions import areas, laplace, product, row_sums, scaled, shared
from tests.unit.export.test_modules import load

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64" or link.compiler() is None, reason="nothing to link with"
)
EXAMPLE = Path(__file__).parents[3] / "examples" / "export"
SOURCES = EXAMPLE / "plates"


def export(function: Any, folder: Path, *args: Any, **settings: Any) -> Any:
    return accelerate(function).export(folder, *args, **settings)


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the example, with its library for all targets and its program."""
    folder = tmp_path_factory.mktemp("example")
    sys.path.insert(0, str(SOURCES))
    try:
        import heat  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(SOURCES))
    made = heat.spread.export(folder / "build", np.zeros((64, 64)), 100, 0.2)
    assert {path.name for path in made.files} == {
        *("spread.c", "spread.h", "spread.py", "libspread.so"),
        *(f"spread-x86-64-v{level}.o" for level in (2, 3, 4)),
    }
    warnings = ("-Wall", "-Wextra", "-Werror")
    rpath = "-Wl,-rpath,$ORIGIN/build"
    strict = ("cc", "-std=c99", *warnings, "-Ibuild", EXAMPLE / "main.c")
    run(*strict, "-Lbuild", "-lspread", rpath, "-o", "main", cwd=folder)
    run("cc", "-std=gnu11", *warnings, "-fsyntax-only", "build/spread.c", cwd=folder)
    return folder


def test_the_example_runs_from_c(example: Path) -> None:
    lines = run("./main", cwd=example).splitlines()
    assert lines[0].startswith("code for x86-64-v")
    plate = np.zeros((48, 64))
    plate[0] = 100.0
    sys.path.insert(0, str(EXAMPLE))
    try:
        import heat
    finally:
        sys.path.remove(str(EXAMPLE))
    now, change = heat.spread.__wrapped__(plate, 200, 0.2)
    assert lines[1:7] == [f"{row:2}: {now[row, 32]:.6f}" for row in range(0, 48, 8)]
    assert lines[7:] == [f"last change {change:.6f}", "refused: the rate must be above 0 and at most 0.25"]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_the_example_is_clean_under_valgrind(example: Path) -> None:
    run("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=9", "./main", cwd=example)


def test_headers_are_cplusplus_too(example: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    (example / "all.cc").write_text('#include "spread.h"\nint main() { return spread_signature_count - 1; }\n')
    run("c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Ibuild", "all.cc", cwd=example)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_nothing_of_python_is_needed_and_only_the_interface_is_seen(example: Path) -> None:
    names = run("nm", "-D", "--defined-only", "build/libspread.so", cwd=example).split()[2::3]
    assert names and all(name.startswith("spread_") for name in names)
    assert not any(name.startswith("spread_1_v") or "pk_" in name for name in names)
    needed = run("nm", "-D", "--undefined-only", "build/libspread.so", cwd=example).split()
    assert "malloc@GLIBC_2.2.5" in needed or "malloc" in {name.partition("@")[0] for name in needed}
    assert not [name for name in needed if name.startswith(("Py", "_Py", "pk_", "LLVM"))]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_best_code_for_the_processor_runs(example: Path, level: int) -> None:
    """The library is linked again, with another answer to what the processor has."""
    highest = int(run("./main", cwd=example).splitlines()[0][-1])
    if level > highest:
        pytest.skip("this processor has not so much")
    objects = sorted((example / "build").glob("*.o"))
    command = ("cc", "-std=gnu11", "-O0", "-fPIC", "-shared", f"-DPK_CPU_LEVEL={level}", "-o", f"v{level}.so")
    run(*command, "build/spread.c", *objects, "-lm", "-pthread", cwd=example)
    library = ctypes.CDLL(str(example / f"v{level}.so"))
    library.spread_target.restype = library.spread_last_message.restype = ctypes.c_char_p
    plate = np.arange(100.0).reshape(10, 10) ** 2
    words = np.array([0, plate.ctypes.data, 10, 10, 80, 8, 3, np.array(0.2).view(np.int64)[()]], np.int64)
    left = np.zeros(9, np.int64)
    code = library.spread_call(1, ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(left.ctypes.data))
    if level == 1:
        assert (code, library.spread_target()) == (2, b"")
        assert library.spread_last_message() == b"this processor lacks instructions of x86-64-v2"
        return
    assert (code, library.spread_target()) == (0, f"x86-64-v{level}".encode())
    import heat

    wanted, change = heat.spread.__wrapped__(plate, 3, 0.2)
    found = np.ctypeslib.as_array((ctypes.c_double * 100).from_address(int(left[3]))).reshape(10, 10)
    assert np.array_equal(found, wanted) and left[8:].view(np.float64)[0] == change
    library.spread_free(ctypes.c_void_p(int(left[2])))


ARGUMENTS = """
#include <stdio.h>
#include "scaled.h"
#include "shared.h"
int main(void)
{
    double line[12] = {1, 2, 3, 4, 5, 6, 7, 8};
    parakeet_float64_1d given = parakeet_float64_1d_of(line, 8), made, parts[2];
    parakeet_float64_2d empty;
    parakeet_float64_0d one;
    parakeet_int16_2d sevens;
    double total, steps;
    printf("%d %s\\n", scaled_1(0, &made, &total, &steps), scaled_last_message());
    given.extents[0] = 1;
    printf("%d %s\\n", scaled_1(&given, &made, &total, &steps), scaled_last_message());
    given.extents[0] = 4;
    given.strides[0] = 24;
    printf("%d %s\\n", scaled_1(&given, &made, &total, &steps), scaled_last_message());
    given.strides[0] = 8;
    given.data = (double *)((char *)line + 4);
    printf("%d %s\\n", scaled_1(&given, &made, &total, &steps), scaled_last_message());
    given.data = line;
    int code = scaled_1(&given, &made, &total, &steps);
    printf("%d %s %s\\n", code, scaled_error_name(code), scaled_last_message());
    given.extents[0] = 8;
    if (scaled_1(&given, &made, &total, &steps)) return 1;
    printf("%g %g %d\\n", made.data[7], total, (int)made.source);
    scaled_free(made.owner);
    if (shared_1(9, &parts[0], &parts[1], &empty, &one, &sevens)) return 2;
    printf("%g %g %d %d %g %d\\n", parts[0].data[8], parts[1].data[0], parts[1].data == parts[0].data + 2,
           (int)(empty.extents[0] * 10 + empty.extents[1]), *one.data, sevens.data[17]);
    shared_free(parts[0].owner); /* the other part keeps the memory */
    printf("%g\\n", parts[1].data[6]);
    shared_free(parts[1].owner);
    shared_free(empty.owner);
    shared_free(one.owner);
    shared_free(sevens.owner);
    puts(scaled_signatures[0].arguments);
    return 0;
}
"""


class Rows(ctypes.Structure):
    """parakeet_float64_2d, and with an axis less parakeet_float64_1d."""

    _fields_ = (("data", ctypes.c_void_p), ("extents", ctypes.c_int64 * 2), ("strides", ctypes.c_int64 * 2))


def test_code_for_short_last_axes_has_code_for_others_behind_it(tmp_path: Path) -> None:
    """The header's first function takes both, as does the module."""
    export(row_sums, tmp_path, np.ones((4, 3)), target="x86-64-v2")
    function, library = load(tmp_path, "row_sums"), ctypes.CDLL(str(tmp_path / "librow_sums.so"))
    library.row_sums_last_message.restype = ctypes.c_char_p
    for columns in (3, 2, 7, 0):
        rows = np.arange(5.0 * columns).reshape(5, columns)
        assert function(rows).tolist() == row_sums(rows).tolist()
        one = Rows(rows.ctypes.data, (5, columns), rows.strides)
        result = (ctypes.c_int64 * 5)()  # data, extent, stride, owner, source
        assert library.row_sums_1(ctypes.byref(one), result) == 0, library.row_sums_last_message()
        assert np.ctypeslib.as_array((ctypes.c_double * 5).from_address(result[0])).tolist() == row_sums(rows).tolist()
        library.row_sums_free(ctypes.c_void_p(result[3]))
    export(areas, tmp_path, np.ones((4, 2)), target="x86-64-v2")
    function = load(tmp_path, "areas")
    assert function(np.ones((3, 2))) == [1.0, 1.0, 1.0]
    with pytest.raises((TypeError, ValueError)):
        function(np.ones((3, 3)))


def test_arguments_are_checked_and_memory_is_shared(tmp_path: Path) -> None:
    export(scaled, tmp_path, np.arange(8.0), target="x86-64-v2")
    export(shared, tmp_path, 9, target="x86-64-v2")
    (tmp_path / "main.c").write_text(ARGUMENTS)
    libraries = ("-L.", "-lscaled", "-lshared", "-Wl,-rpath,$ORIGIN")
    run("cc", "-std=c99", "-Wall", "-Werror", "main.c", *libraries, "-o", "main", cwd=tmp_path)
    made, total, _ = scaled(np.arange(1.0, 9))
    said = (
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->(n?,m?) "
    )
    assert run("./main", cwd=tmp_path).splitlines() == [
        "3 a pointer is NULL",
        "3 the array 'a' has one element along an axis that must have more (or none)",
        "3 the array 'a' is not in C order",
        "3 the array 'a' is not aligned",
        f"16 ValueError {said}(size 6 is different from 4)",
        f"{made[7]:g} {total:g} 0",
        "12 3 1 90 1 7",
        "12",
        "float64[1 axis]",
    ]
    if shutil.which("valgrind"):
        run("valgrind", "-q", "--leak-check=full", "--error-exitcode=9", "./main", cwd=tmp_path)


@pytest.mark.parametrize("threads", ["pool", "openmp"])
def test_threads(tmp_path: Path, threads: str) -> None:
    large = np.random.default_rng(0).random((600, 400))
    export(laplace, tmp_path, large, threads=threads, target="x86-64-v2")
    function = load(tmp_path, "laplace")
    library = ctypes.CDLL(str(tmp_path / "liblaplace.so"))
    assert library.laplace_set_threads(3) >= 1 and library.laplace_set_threads(0) == 3
    wanted = laplace(large)
    found: list[bool] = []

    def call() -> None:
        found.extend(np.array_equal(function(large), wanted) for _ in range(5))

    workers = [threading.Thread(target=call) for _ in range(3)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert found == [True] * 15
    if threads == "pool":  # OpenMP's own threads are lost in a child
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(function(large), wanted) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


CBLAS = """
int calls;
void cblas_dsyrk(void) {}
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (ta == 111 ? a[i * lda + l] : a[l * lda + i]) * (tb == 111 ? b[l * ldb + j] : b[j * ldb + l]);
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]) + (order == 101 ? 0 : 1);
        }
    calls++;
}
"""


def test_products_call_a_cblas(tmp_path: Path) -> None:
    (tmp_path / "small_blas.c").write_text(CBLAS)
    run("cc", "-shared", "-fPIC", "small_blas.c", "-o", "libsmall_blas.so", cwd=tmp_path)
    left, right = np.arange(63.0).reshape(7, 9), np.arange(36.0).reshape(9, 4)
    flags = ("-L.", "-lsmall_blas", "-Wl,-rpath,$ORIGIN")
    export(product, tmp_path, left, right, blas="cblas", link_flags=flags, target="x86-64-v2")
    assert np.array_equal(load(tmp_path, "product")(left, right), left @ right)
    assert ctypes.c_int.in_dll(ctypes.CDLL(str(tmp_path / "libsmall_blas.so")), "calls").value == 1


def test_without_a_compiler_objects_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        patch.delenv("CC", raising=False)
        made = export(scaled, tmp_path / "out", np.arange(8.0), target="x86-64-v2")
    assert made.library is None
    assert {path.name for path in made.files} == {"scaled.c", "scaled.h", "scaled.py", "scaled-x86-64-v2.o"}
    run("sh", "-c", made.command, cwd=tmp_path / "out")
    line = np.arange(9.0)[:8]
    assert np.array_equal(load(tmp_path / "out", "scaled")(line[:6].copy())[0], line[:6] * 2.5)


@pytest.mark.parametrize("threads", ["serial", "pool", "openmp"])
def test_objects_for_aarch64(threads: str, tmp_path: Path) -> None:
    """Without a cross compiler, what is written is linked elsewhere; its source compiles for other processors."""
    made = export(laplace, tmp_path, np.ones((20, 30)), target="aarch64", threads=threads)
    code = (tmp_path / "laplace-aarch64.o").read_bytes()
    assert code[:5] == b"\x7fELF\x02" and int.from_bytes(code[18:20], "little") == machine_of("aarch64")
    assert "-lmvec" not in made.command
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        assert made.library is None and made.command.startswith("aarch64-linux-gnu-gcc ")


def machine_of(processor: str) -> int:
    """The number of a processor in ELF."""
    return {"x86_64": 62, "aarch64": 183}[processor]


def test_kernels_beside_it(tmp_path: Path) -> None:
    rows, lines = np.ones((20, 30)), np.ones((20, 30), np.float32)
    made = accelerate(scaled).export(tmp_path, rows[0], also=[(lines[0],)], target="x86-64-v2", ptx="sm_90")
    for number, register in ((1, "f64"), (2, "f32")):
        text = (tmp_path / f"scaled_{number}.ptx").read_text()
        assert tmp_path / f"scaled_{number}.ptx" in made.files
        assert ".target sm_90" in text and ".visible .entry" in text and f"mul.rn.{register}" in text
