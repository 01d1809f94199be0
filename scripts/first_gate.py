"""Makes the machine code of the gate that accelerated functions begin with, anew: python scripts/first_gate.py

It writes `parakeet_py/llvm/entry/first_gate_code.py`, for a processor that has nothing beyond x86-64.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import llvmlite.binding

from parakeet_py.llvm.engine import compiler, low_level_python, object_loader
from parakeet_py.llvm.entry import first_gate

_HEAD = '''"""The machine code of `first_gate`, written by `scripts/first_gate.py`; nothing here is written by hand."""

from __future__ import annotations

from typing import Final

LLVM: Final = "{version}"  # which has made it
X86_64: Final = """
{code}
"""
'''


def made() -> bytes:
    """The code that the text of the gate says, for x86-64."""
    llvm = compiler.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="x86-64", features="", opt=2, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(low_level_python.translate(*first_gate.sources()))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = options.loop_vectorization = False
    compiler.run_pipeline(module, machine, options)
    return _instructions(machine.emit_object(module))


def _instructions(data: bytes) -> bytes:
    """The code of an object that refers to nothing else, and whose first function is `first`."""
    found = object_loader._ObjectFile(data)
    (text,) = (one for one in found.sections if one.name == ".text")
    loaded = [one.name for one in found.sections if one.flags & 2 and one.size]
    assert loaded in ([".text"], [".text", ".eh_frame"]), loaded
    assert not [one.name for one in found.sections if one.name == ".rela.text"], "it names symbols"
    assert [one.value for one in found.symbols if one.name == "first"] == [0], "calls enter at the first byte"
    return bytes(text.data)


def written() -> str:
    """The text of the file."""
    version = ".".join(map(str, llvmlite.binding.llvm_version_info))
    return _HEAD.format(version=version, code="\n".join(textwrap.wrap(made().hex(), 100)))


if __name__ == "__main__":
    Path(first_gate.__file__).with_name("first_gate_code.py").write_text(written())
