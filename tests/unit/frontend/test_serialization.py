"""The untyped IR of library functions as data, and in another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from parakeet_py.call import library_ir_cache
from parakeet_py.frontend import ssa, to_ssa
from parakeet_py.frontend.print import format_function
from parakeet_py.frontend.serialization import NotPlain, from_bytes, to_bytes
from parakeet_py.library.arrays import grids
from parakeet_py.library.reductions import nan_reductions, order_statistics, sets


def text(function: ssa.Function) -> str:
    """The text, with variables numbered as they come."""
    numbers: dict[str, str] = {}
    return re.sub(
        r"(?<=[\w>])\.(\d+)", lambda found: numbers.setdefault(found[1], f".{len(numbers)}"), format_function(function)
    )


@pytest.mark.parametrize("module", [grids, nan_reductions, order_statistics, sets], ids=lambda module: module.__name__)
def test_functions_become_data_and_back(module: types.ModuleType) -> None:
    count = 0
    for function in vars(module).values():
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            made = to_ssa(function)
            again = from_bytes(to_bytes(made))
            assert text(again) == text(made)
            assert (again.lines, again.filename, again.first_line) == (made.lines, made.filename, made.first_line)
            assert [let.pos for let in again.statements()] == [let.pos for let in made.statements()]
            count += 1
    assert count > 3


def test_objects_are_no_data() -> None:
    block = ssa.Block((), (ssa.Const(print),))
    with pytest.raises(NotPlain, match="print"):
        to_bytes(ssa.Function("f", (), (), block, "", 1))


def test_constants_keep_their_types() -> None:
    values = (1, True, 1.0, -0.0, 2j, "a", b"a", None, ...)
    block = ssa.Block((), (*map(ssa.Const, values), ssa.Const(ssa.UNBOUND)))
    again = from_bytes(to_bytes(ssa.Function("f", (), (), block, "", 1))).body.results
    found = [one.value for one in again if isinstance(one, ssa.Const)]
    assert list(map(repr, found)) == [*map(repr, values), "unbound"] and found[-1] is ssa.UNBOUND


SCRIPT = """
import numpy as np
import parakeet_py
from parakeet_py import frontend
from parakeet_py.llvm.engine import library_archive

library_archive.installed = lambda: "/dev/null/nothing"
read = frontend.to_ssa
names = []
def counted(function):
    names.append(function.__name__)
    return read(function)
frontend.to_ssa = counted

@parakeet_py.accelerate(strict=True)
def {name}(x):
    return np.median(x) + np.std(x)

print({name}(np.arange(5.0)), names)
"""


def test_another_process_does_not_make_them_again(tmp_path: Path) -> None:
    environment = {**os.environ, "PARAKEET_CACHE": "1", "PARAKEET_CACHE_DIR": str(tmp_path), "PARAKEET_CHECK": "0"}
    said = []
    for name in ("first", "second"):
        script = tmp_path / f"{name}.py"
        script.write_text(SCRIPT.format(name=name))
        command = [sys.executable, str(script)]
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert "'median'" in said[0] and "'first'" in said[0]
    assert said[1] == said[0].split()[0] + " ['second']\n"


def test_what_is_damaged_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code = order_statistics.median.__code__
    monkeypatch.setattr(library_ir_cache, "_is_kept", lambda code: True)
    for data in (b"", b"damaged", to_bytes(to_ssa(order_statistics.median))[:-7]):
        named = {library_ir_cache._name(code): data}
        monkeypatch.setattr(library_ir_cache, "_installed", lambda module, named=named: named)
        assert library_ir_cache.find(code) is None
    for read in ("_installed", "_cached"):
        monkeypatch.setattr(library_ir_cache, read, lambda module: {})
    assert library_ir_cache.find(code) is None
