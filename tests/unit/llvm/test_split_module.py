"""Compiling on several threads: modules in parts, what each has, and that the code is the same; what is prepared."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base import config
from parakeet_py.call.compile import compile_call, generate_llvm
from parakeet_py.call.load import Knowledge
from parakeet_py.imp.schedule.host_loops import starts_only
from parakeet_py.llvm.engine import compiler, object_loader
from parakeet_py.llvm.engine import split_module as dividing
from parakeet_py.llvm.engine.compiler import CodegenError
from parakeet_py.llvm.engine.object_loader import LoadError
from parakeet_py.llvm.engine.split_module import divide, host_apart
from tests.unit.llvm.test_object_loader import mapping_of

pytestmark = pytest.mark.skipif(not object_loader.supported(), reason="parts are loaded by the project's own linker")


def several(x: Any, k: Any) -> Any:
    """Regions of several kinds, with helper functions and failures."""
    total = np.cumsum(x - x.mean(axis=0), axis=1)
    rest = k % (np.arange(len(k)) + 1)  # divides by what is computed
    place = x.argmin(axis=1)
    roots = np.sqrt(np.exp(x).sum(axis=1)) * np.where(rest > 3, rest, -1)
    near = [x[i, k[i] % 4] for i in range(len(x))]
    return total, rest, place, roots, np.array(near)


def tiny(x: Any) -> Any:
    return x * 2.0 + 1.0


def arguments() -> tuple[Any, Any]:
    return np.random.default_rng(3).normal(size=(300, 40)), np.arange(300) * 7 - 100


def text_of(function: Callable[..., Any], *args: Any) -> str:
    return generate_llvm(compile_call(function, args, Knowledge(), config.current()))[0]  # type: ignore[arg-type]


def defined(part: str) -> set[str]:
    return set(re.findall(r"^define (?!internal)[^@\n]*@(\"[^\"]*\"|[\w.]+)\(", part, re.M))


def regions(part: str) -> set[str]:
    return set(re.findall(r"^define [^@\n]*@(\"[^\"]*\"|[\w.]+)\(ptr %ctx, ptr noalias readonly %frame", part, re.M))


@pytest.mark.parametrize("most", [2, 3, 5])
def test_each_region_is_in_one_part(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(dividing, "LEAST", 40)
    text = text_of(several, *arguments())
    parts = divide(text, most)
    assert len(parts) == most
    host, *others = parts
    assert sorted(name for part in parts for name in regions(part)) == sorted(regions(text))
    for part in others:
        assert defined(part) == regions(part) != set()  # the host finds them, and nothing else twice
        assert all(
            f"declare void @{name}(ptr, ptr noalias readonly, i64, i64) nounwind" in host for name in regions(part)
        )
        compiler.compile_ir(part, level=0)
    assert defined(text) <= defined(host)


def test_what_is_little_work_stays_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(tiny, np.ones(3))
    assert divide(text, 8) == [text]
    monkeypatch.setattr(dividing, "LEAST", 40)
    text = text_of(several, *arguments())
    assert divide(text, 1) == [text]


def stages(x: Any, k: Any) -> Any:
    """Starts regions, and does nothing itself that takes long."""
    chosen = x[x > 0.2]
    mean = x.mean(axis=0)
    for i in range(3):
        x = x - mean * 3**i
    return x, chosen * k[0], np.exp(x).sum(axis=1)


def searches(x: Any, k: Any) -> Any:
    """Has a loop of its own."""
    for i in range(len(k)):
        if k[i] > 50:
            return stages(x, k), i
    return stages(x, k), -1


def repeats(x: Any, k: Any) -> Any:
    """Starts regions in all iterations but the last one."""
    for i in range(len(k)):
        if x[0, 0] > 1e6:
            break
        x = x * k[i] + x.mean(axis=0)
    return x


def test_a_function_that_starts_regions_is_a_module_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(stages, *arguments())
    for most in (1, 3):
        host, *others = host_apart(text, most)
        assert len(others) == most and not regions(host)
        assert sorted(name for part in others for name in regions(part)) == sorted(regions(text))
        assert defined(text) <= defined(host)
    assert host_apart(text_of(tiny, np.ones(3)), 1) == []
    monkeypatch.setattr(dividing, "LONG", 10_000)
    assert host_apart(text, 1) == []


def test_which_functions_only_start_regions() -> None:
    args = arguments()
    for function, only in ((stages, True), (searches, False), (repeats, True)):
        assert starts_only(compile_call(function, args, Knowledge(), config.current()).imp) == only  # type: ignore[arg-type]


def test_the_scalar_passes_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    efforts: list[bool] = []
    make = compiler.compile_ir

    def made(text: str, **effort: Any) -> bytes:
        efforts.append(effort.get("scalar", False))
        return make(text, **effort)

    monkeypatch.setattr(compiler, "compile_ir", made)
    with config.options(cache=False, threads=1, tiers=False, check=1):
        for function, scalar in ((stages, [True, False]), (searches, [False])):
            efforts.clear()
            given = accelerate(function)(*arguments())
            assert efforts[: len(scalar)] == scalar and sum(efforts) == sum(scalar)
            wanted = function(*arguments())
            if function is searches:
                (given, place), (wanted, found) = given, wanted
                assert place == found
            for one, other in zip(given[:2], wanted[:2], strict=True):
                assert np.array_equal(one, other)
            np.testing.assert_allclose(given[2], wanted[2], rtol=1e-14)


def test_code_in_parts_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted(text: str, most: int) -> list[str]:
        parts = divide(text, most)
        counts.append(len(parts))
        return parts

    monkeypatch.setattr(dividing, "divide", counted)
    monkeypatch.setattr(dividing, "LEAST", 40)
    monkeypatch.setattr(config, "available_cpus", lambda: 4)
    x, k = arguments()
    with config.options(cache=False, threads=1):
        alone = accelerate(several)(x, k)
    assert not counts
    with config.options(cache=False, threads=4):
        together = accelerate(several)
        given = together(x, k)
        assert counts == [4]
        for one, other in zip(alone, given, strict=True):
            assert np.array_equal(one, other)
        with pytest.raises(IndexError):
            together(x[:, :2], k)
    assert np.array_equal(given[2], several(x, k)[2])


def test_a_part_that_llvm_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    good = "define void @f() { ret void }"
    for parts in ([good, "this is no IR"], ["this is no IR", good]):
        monkeypatch.setattr(dividing, "divide", lambda text, most, parts=parts: parts)
        with pytest.raises(CodegenError, match="LLVM refuses the generated code"):
            compiler.compile_divided(good, 2)


FIRST = "define i64 @one() { ret i64 1 }"
SECOND = "declare i64 @one()\ndefine i64 @two() { %a = call i64 @one() %b = add i64 %a, 1 ret i64 %b }"
THIRD = """
declare i64 @one()
declare i64 @two()
@by_address = global ptr @two
define i64 @f() {
  %p = load ptr, ptr @by_address
  %a = call i64 %p()
  %b = call i64 @one()
  %c = add i64 %a, %b
  ret i64 %c
}
"""


def in_parts() -> bytes:
    return object_loader.joined([compiler.compile_ir(text) for text in (FIRST, SECOND, THIRD)])


def run(code: object_loader.LoadedCode) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(code["f"])())


def test_objects_refer_to_those_before_them() -> None:
    code = compiler.load(in_parts(), {}, ["f", "by_address"])
    assert run(code) == 3
    other = ctypes.c_void_p.from_address(code["by_address"]).value
    assert other is not None
    assert mapping_of(other) == mapping_of(code["f"]) == "r-xp"
    code.close()
    assert "r-xp" not in (mapping_of(other), mapping_of(code["f"]))  # none is left behind


def test_objects_that_are_kept() -> None:
    code = compiler.load(in_parts(), {}, ["f"])
    address = code["f"]
    code.keep_for_ever()
    del code
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 3


def test_llvm_s_own_linker_takes_objects_too() -> None:
    code = compiler._load_with_llvm(in_parts(), {}, lambda name: None, ("f",))
    assert run(code) == 3
    code.close()


def test_truncated_objects_in_one_piece_are_refused() -> None:
    data = in_parts()
    assert [object_loader.separate(one) for one in (data, b"abc")][1] == [b"abc"]
    for length in (*range(len(object_loader._JOINED), 70), len(data) - 1):
        with pytest.raises(LoadError):
            object_loader.separate(data[:length])
    with pytest.raises(LoadError, match="undefined symbol"):
        compiler.load(object_loader.joined(object_loader.separate(data)[1:]), {}, ["f"])


def test_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(dividing, "divide", lambda text, most: [SECOND, FIRST])
    parts = object_loader.separate(compiler.compile_divided("", 2))
    assert ["one" in object_loader._defined_symbols(one) for one in parts] == [True, False]


PREPARED = """
import os, threading
from parakeet_py.llvm.engine import warm_up as preparation
from parakeet_py.llvm.runtime import native_runtime as runtime
from parakeet_py.llvm.entry import boxing
preparation.prepare(1)
assert preparation._thread is None and threading.active_count() == 1  # not with one CPU
with parakeet_py.options(cache=False):
    preparation.prepare(2)
    first = preparation._thread
    preparation.prepare(2)
    assert preparation._thread is first
child = os.fork()  # waits for it
if child == 0:
    os._exit(0 if runtime._loaded and boxing._support and f(np.ones(3)).sum() == 6 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert f(np.ones(3)).sum() == 6
"""


def test_what_a_first_compilation_needs_is_prepared_once_and_before_a_fork(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    head = "import numpy as np\nimport parakeet_py\n@parakeet_py.accelerate\ndef f(x):\n    return x * 2\n"
    program.write_text(head + PREPARED)
    environment = {**os.environ, "PARAKEET_NUM_THREADS": "2", "PARAKEET_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(program)], check=True, timeout=60, env=environment)
