"""What debuggers are told of machine code."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from parakeet_py.llvm.engine import llvm_library, object_loader
from parakeet_py.llvm.engine.debugger_symbols import placed, symbols_of

pytestmark = pytest.mark.skipif(not object_loader.supported(), reason="code is loaded by LLVM here")

PROGRAM = '''
import ctypes, json, struct
from parakeet_py import accelerate
from parakeet_py.llvm.engine.debugger_symbols import _interface

def inner(s, i):
    return s * 0.5 + i

@accelerate(when="now")
def hotspot(n):
    s = 0.0
    for i in range(n):
        s = inner(s, i)
    return s

def listed():
    """The objects that a debugger reads: section names, addresses and sizes; their bytes."""
    at = struct.unpack("<2I2Q", ctypes.string_at(ctypes.addressof(_interface().descriptor), 24))[3]
    found = []
    while at:
        at, _, start, size = struct.unpack("<4Q", ctypes.string_at(at, 32))
        data = ctypes.string_at(start, size)
        table, count, names = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<2H", data, 60)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * n) for n in range(count)]
        text = data[raw[names][4]:]
        sections = [(text[r[0]:text.index(0, r[0])].decode(), r[3], r[5]) for r in raw]
        found.append((sections, b"hotspot.call" in data))
    return found

hotspot(3)
maps = [line.split()[:2] for line in open("/proc/self/maps")]
before = listed()
(own,) = [sections for sections, mine in before if mine]
print(json.dumps([own, maps]))

from parakeet_py.llvm.engine import compiler
code = compiler.load(compiler.compile_ir("define i64 @f() { ret i64 3 }"), {}, ["f"])
assert len(listed()) == len(before) + 1
del code
assert [s for s, _ in listed()] == [s for s, _ in before]
'''


@pytest.mark.parametrize("again", [False, True], ids=["compiled", "from the cache"])
def test_the_list_has_code_where_it_is(tmp_path: Path, again: bool) -> None:
    script = tmp_path / "user.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PARAKEET_CACHE_DIR": str(tmp_path / "cache"), "PARAKEET_PERF": "gdb"}
    for _ in range(1 + again):
        ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, env=environment)
    sections, maps = json.loads(ran.stdout)
    named = {name: (address, size) for name, address, size in sections}
    assert named[".debug_line"][1] > 50 and named[".debug_frame"][1] > 20
    address, size = named[".text"]
    executable = [[int(end, 16) for end in place.split("-")] for place, rights in maps if rights == "r-xp"]
    assert any(start <= address and address + size <= end for start, end in executable)


def test_symbols_of_a_library() -> None:
    data = Path(llvm_library.library().path).read_bytes()
    found = symbols_of(data, ["__jit_debug_register_code", "__jit_debug_descriptor", "no such symbol"])
    assert set(found) == {"__jit_debug_register_code", "__jit_debug_descriptor"}
    assert symbols_of(b"no object", ["f"]) == {}


def test_section_headers_get_addresses() -> None:
    data = bytearray(64 + 2 * 64)
    struct.pack_into("<Q", data, 40, 64)
    found = placed(bytes(data), [0, 0x1234])
    assert struct.unpack_from("<Q", found, 64 + 16) == (0,) and struct.unpack_from("<Q", found, 128 + 16) == (0x1234,)
    assert len(found) == len(data)
