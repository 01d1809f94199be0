"""The text of every stage of a compiled function, each line with the place in the source that it is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.positions import Line
from parakeet_py.call.explain.source_lines import LinePlace, line_of

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled

MOST_LINES = 20_000  # of one stage


@record
class Stage:
    """One stage: lines of text, and the line of the source that each comes from."""

    name: str
    summary: str
    lines: tuple[tuple[str, LinePlace | None], ...]


def _untyped(compiled: Compiled) -> Iterable[Line]:
    from parakeet_py.frontend.print import lines_of
    from parakeet_py.typed_ir.places import place

    function = compiled.untyped
    for text, pos in lines_of(function):
        yield Line(text, None if pos is None else place(function, pos, None))


def _typed(compiled: Compiled) -> Iterable[Line]:
    from parakeet_py.typed_ir.print import lines_of

    return lines_of(compiled.typed)


def _imp(compiled: Compiled) -> Iterable[Line]:
    from parakeet_py.imp.print import lines_of

    return lines_of(compiled.imp)


def _llvm_text(compiled: Compiled) -> str:
    from parakeet_py.llvm.codegen.builder import Locations
    from parakeet_py.llvm.codegen.module import generate
    from parakeet_py.llvm.engine import compiler

    config, locations = compiled.config, Locations(compiled.untyped.filename)
    code = generate(
        compiled.imp, compiler.host(), contract=config.contract, fastmath=config.fastmath, locations=locations
    )
    return code.text


def _llvm(compiled: Compiled) -> Iterable[Line]:
    from parakeet_py.llvm.engine.line_tables import lines_of_ir

    return lines_of_ir(_llvm_text(compiled))


def _assembly(compiled: Compiled) -> Iterable[Line]:
    from parakeet_py.llvm.engine import compiler
    from parakeet_py.llvm.engine.line_tables import lines_of_assembly

    return lines_of_assembly(compiler.emit_assembly(_llvm_text(compiled)))


STAGES: dict[str, tuple[str, Callable[[Compiled], Iterable[Line]]]] = {
    "untyped": ("Python as SSA, before any type is known", _untyped),
    "typed": ("types and shapes are known, operators are fused", _typed),
    "imp": ("loops, memory and threads", _imp),
    "llvm": ("what LLVM is given, before its own passes", _llvm),
    "assembly": ("machine code of this processor", _assembly),
}


def stages_of(compiled: Compiled, names: Sequence[str]) -> list[Stage]:
    """The stages of these names, in the order in which they are made."""
    return [made(name, summary, lines(compiled)) for name, (summary, lines) in STAGES.items() if name in names]


def made(name: str, summary: str, lines: Iterable[Line]) -> Stage:
    found = [(text, line_of(pos)) for text, pos in lines]
    if len(found) > MOST_LINES:
        found[MOST_LINES:] = [(f"... {len(found) - MOST_LINES:,} lines more", None)]
    return Stage(name, summary, tuple(found))


def ptx_stage(compiled: Compiled, architecture: str) -> Stage:
    """The PTX of all kernels, for an architecture such as ``sm_90``."""
    from parakeet_py.call.devices.calls import device_plan_of
    from parakeet_py.llvm.codegen.builder import Locations
    from parakeet_py.llvm.engine.line_tables import lines_of_assembly
    from parakeet_py.ptx import target

    plan = device_plan_of(compiled)
    architecture = architecture if architecture.startswith("sm_") else target.DEFAULT
    lines: list[Line] = []
    for number, kernel in enumerate(plan.kernels):
        text = plan.llvm(architecture, number, locations=Locations(compiled.untyped.filename))
        lines += lines_of_assembly(target.compile_ptx(text, architecture, kernel.name))
    return made("PTX", f"kernels for {architecture}", lines)
