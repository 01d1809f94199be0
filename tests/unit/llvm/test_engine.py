"""The engine: text to objects, refusals that are exceptions, and loops that become vectors."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from parakeet_py.llvm.engine import compiler, llvm_library
from parakeet_py.llvm.engine.compiler import CodegenError
from parakeet_py.llvm.runtime.native_runtime import runtime, small_sources, system_sources

DECLARATIONS = """\
declare void @pk_parallel(ptr, ptr, ptr, i64, i64, i32)
declare void @pk_fail(ptr, i64, i64, i64, i64, i64, i64, i64, i64)
declare ptr @pk_block_new(ptr, i64)
declare void @pk_retain(ptr)
declare void @pk_release(ptr, ptr)
declare void @pk_detach(ptr, ptr)
declare void @pk_free_all(ptr)
declare ptr @pk_alloc(i64)
declare void @pk_free(ptr)
"""

AXPY = """
define void @axpy(ptr noalias %x, ptr noalias %y, double %a, i64 %n) "prefer-vector-width"="512" {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %px = getelementptr double, ptr %x, i64 %i
  %py = getelementptr double, ptr %y, i64 %i
  %vx = load double, ptr %px
  %vy = load double, ptr %py
  %m = fmul double %vx, %a
  %s = fadd double %m, %vy
  store double %s, ptr %py
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_compile_and_run(level: int) -> None:
    code = compiler.load(compiler.compile_ir(AXPY, level=level), {}, ["axpy"])
    x, y = np.arange(1001.0), np.ones(1001)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_int64)(code["axpy"])
    run(x.ctypes.data, y.ctypes.data, 2.0, 1001)
    assert (y == 2.0 * x + 1.0).all()


BROKEN = {
    "syntax": "this is no IR",
    "value from a void function": "define void @f() { ret i32 0 }",
    "nothing from a function with a value": "define i32 @f() { ret void }",
    "unknown block": "define void @f() { br label %nowhere }",
    "types": "define double @f(double %x) { %y = add double %x, %x ret double %y }",
    "dominance": """
        define i32 @f(i1 %c) {
        entry:
          br i1 %c, label %a, label %b
        a:
          %x = add i32 1, 2
          br label %b
        b:
          ret i32 %x
        }""",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_broken_ir_raises(text: str) -> None:
    with pytest.raises(CodegenError, match="LLVM refuses the generated code"):
        compiler.compile_ir(text)


def test_host() -> None:
    host = compiler.host()
    assert host.vector_bits in (128, 256, 512)
    assert host.cpu
    assert platform.machine().split("_")[0][:3] in host.triple or "arm" in host.triple or "aarch64" in host.triple
    assert "i64" in host.data_layout
    assert compiler.host() is host


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86-64 registers")
def test_loops_become_vectors_of_the_width_asked_for() -> None:
    register = {512: "%zmm", 256: "%ymm", 128: "%xmm"}[compiler.host().vector_bits]
    assert register in compiler.emit_assembly(AXPY)
    assert "%zmm" not in compiler.emit_assembly(AXPY.replace('"512"', '"256"'))
    assert "%ymm" not in compiler.emit_assembly(AXPY, vectorize=False)
    assert "<" not in compiler.optimized_ir(AXPY, vectorize=False).split("define", 1)[1].split("}", 1)[0]


def test_the_declarations_match_the_runtime() -> None:
    """Calling every runtime function as declared, from one module, gives an object that loads."""
    calls = """
    define void @f(ptr %p) {
      call void @pk_parallel(ptr %p, ptr %p, ptr %p, i64 0, i64 1, i32 1)
      %b = call ptr @pk_block_new(ptr %p, i64 8)
      call void @pk_retain(ptr %b)
      call void @pk_release(ptr %p, ptr %b)
      call void @pk_detach(ptr %p, ptr %b)
      %q = call ptr @pk_alloc(i64 8)
      call void @pk_free(ptr %q)
      %payload = getelementptr i8, ptr %b, i64 64
      call void @pk_free(ptr %payload)
      call void @pk_fail(ptr %p, i64 9, i64 3, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6)
      call void @pk_free_all(ptr %p)
      ret void
    }
    """
    code = runtime().load(compiler.compile_ir(DECLARATIONS + calls), ["f"])
    context = np.zeros(16, np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code["f"])(context.ctypes.data)
    assert context[:8].tolist() == [3, 9, 1, 2, 3, 4, 5, 6]


def test_symbols_given_come_before_the_library_s() -> None:
    text = "declare double @exp(double)\ndefine double @f(double %x) { %r = call double @exp(double %x) ret double %r }"
    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x + 100.0)
    data = compiler.compile_ir(text)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    mine, theirs = compiler.load(data, {"exp": address}, ["f"]), runtime().load(data, ["f"])
    assert function(mine["f"])(1.0) == 101.0
    assert function(theirs["f"])(0.0) == 1.0
    assert runtime().resolve("pk_parallel") == runtime().symbols["pk_parallel"]
    assert runtime().resolve("sin") is not None
    assert runtime().resolve("no_such_function") is None


def test_the_runtime_is_loaded_once() -> None:
    assert runtime() is runtime()
    once, twice = ([source.key for source in (*small_sources(), *system_sources())] for _ in range(2))
    assert once == twice  # keys of the disk cache


class _Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 gives; uordblks are the bytes in use."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def _bytes_in_use() -> int:
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    return int(libc.mallinfo2().uordblks)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library does not count its memory")
def test_compilations_leave_nothing_behind() -> None:
    texts = [AXPY.replace("%n)", f"%n, i{width} %unused)") for width in range(20, 32)]
    for text in texts[:4]:
        compiler.compile_ir(text)
    before = _bytes_in_use()
    for text in texts[4:]:
        compiler.compile_ir(text)
    assert _bytes_in_use() - before < 8 * 5_000  # LLVM's pipeline alone is six times as much


def test_another_llvmlite_is_asked_whether_its_functions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = llvm_library.library().path
    monkeypatch.setattr(llvm_library, "KNOWN", ())
    fresh = llvm_library.library.__wrapped__
    assert os.path.samefile(fresh().path, usual)
    monkeypatch.setitem(llvm_library._FUNCTIONS, "SetTarget", (ctypes.c_int, (ctypes.c_void_p,)))
    with pytest.raises(CodegenError, match="LLVMPY_SetTarget takes other arguments"):
        fresh()


def test_a_function_is_compiled_without_the_binding_of_llvmlite(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nfrom parakeet_py import accelerate\n"
        "@accelerate(strict=True)\ndef f(x):\n    return x + 1\n"
        "assert f(np.ones(3))[0] == 2\nprint('llvmlite.binding' in sys.modules)\n"
    )
    environment = {**os.environ, "PARAKEET_CACHE_DIR": str(tmp_path), "PARAKEET_DEVICES": "cpu"}
    found = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
