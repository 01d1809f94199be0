"""A module in executable form: parsed, translated, laid out, independent of any device.

Everything is translated when a program is made, so that what cannot be executed is refused before anything runs; a
block is compiled to byte code when it is first executed. Programs are kept by their text, since the same kernels are
loaded again and again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import approximate, convert, floats, fused, half_floats, integers, rounding
from parakeet_py.ptx.emulator.checks.errors import LaunchError, UnsupportedPtx
from parakeet_py.ptx.emulator.front.ir import Address, Coordinates, Function, Operand, Symbol, Variable, Vector
from parakeet_py.ptx.emulator.front.kinds import DTYPES, KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.front.parser import parse
from parakeet_py.ptx.emulator.memory.device_memory import LOCAL, PARAM, SHARED
from parakeet_py.ptx.emulator.translate import (
    control,
    control_flow,
    copies,
    float,
    formulas,
    integer,
    memory,
    move,
    warp,
    words,
)
from parakeet_py.ptx.emulator.translate.assemble import BlockText, FunctionAssembler, function_blocks
from parakeet_py.ptx.emulator.translate.emitter import Constants, Emitter

_EMITTER_MODULES = (control, copies, float, formulas, integer, memory, move, warp)
_KEPT = 256
_programs: OrderedDict[str, Program] = OrderedDict()
_programs_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """Where a kernel's shared variables lie; dynamic ones begin at `dynamic`."""

    offsets: dict[str, int]
    static: int
    dynamic: int

    def size_with(self, dynamic: int) -> int:
        """Bytes of shared memory of a block, with so many dynamic ones."""
        return self.dynamic + dynamic if dynamic else self.static


class Program:
    """A translated module.

    Raises
    ------
    PtxSyntaxError, UnsupportedPtx
        If the text is not PTX, or has what the emulator does not execute; with the line.
    """

    def __init__(self, text: str) -> None:
        self.text = parse(text)
        self.constants = Constants()
        self._refuse_unresolved()
        self._prologues: dict[str, int] = {}
        self._number_functions: list[str] = []
        self._blocks: list[BlockText] = []
        self.ends: set[int] = set()
        self._translate()
        self.code: list[Callable[..., Any]] = [self._stub(k) for k in range(len(self._blocks))]
        self._globals = self._make_globals()
        self._layouts: dict[str, SharedLayout] = {}
        self.shared_piece = self._smallest_shared_access()

    def _refuse_unresolved(self) -> None:
        for variable in self.text.variables.values():
            if variable.external and variable.space in ("global", "const") and variable.data is None:
                raise UnsupportedPtx(f"external variable {variable.name} of another module is not supported")

    def _translate(self) -> None:
        functions = [f for f in self.text.functions.values() if f.defined]
        graphs = {f.name: control_flow.build(f, control.SYSTEM_CALLS, self.text.lines) for f in functions}
        number = 0
        for function in functions:
            self._prologues[function.name] = number
            self._number_functions.append(function.name)
            number += function_blocks(function, graphs[function.name])
        for function in functions:
            emitter = Emitter(self.text, function, self.constants)
            base = self._prologues[function.name]
            assembler = FunctionAssembler(emitter, graphs[function.name], base, self._prologues)
            self._blocks.extend(assembler.blocks())
            self.ends.update(assembler.ends_of_threads())

    def _make_globals(self) -> dict[str, Any]:
        names: dict[str, Any] = {kind.upper(): dtype for kind, dtype in DTYPES.items() if kind != "p"}
        names["P"] = np.dtype(np.bool_)
        names.update(
            np=np,
            where=np.where,
            integers=integers,
            floats=floats,
            halves=half_floats,
            rounding=rounding,
            fused=fused,
            convert=convert,
            approximate=approximate,
            words=words,
            merge=words.merge,
            zero_bytes=words.zero_bytes,
            joined=integers.joined,
            halves_of=integers.halves,
            SHARED=np.array([SHARED], dtype=np.uint64),
            LOCAL=np.array([LOCAL], dtype=np.uint64),
            PARAM=np.array([PARAM], dtype=np.uint64),
            ZERO=np.zeros(1, dtype=np.uint64),
        )
        names.update(self.constants.values)
        return names

    def _stub(self, number: int) -> Callable[..., Any]:
        def first_time(*arguments: Any) -> Any:
            block = self._blocks[number]
            exec(compile(block.text, f"<ptx block {number}>", "exec"), self._globals)
            self.code[number] = function = self._globals[block.name]
            return function(*arguments)

        return first_time

    def source_of_blocks(self) -> str:
        """The Python text of all blocks, for reading."""
        return "\n".join(f"# PTX line {b.line}\n{b.text}" for b in self._blocks)

    def line_of(self, number: int) -> int:
        """The PTX line at which a block begins."""
        return self._blocks[number].line

    # -- what a launch asks ---------------------------------------------------------------------------------------

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the entry functions."""
        return tuple(f.name for f in self.text.functions.values() if f.entry and f.defined)

    def kernel(self, name: str) -> Function:
        """An entry function.

        Raises
        ------
        LaunchError
            If the module has none of that name.
        """
        function = self.text.functions.get(name)
        if function is None or not function.entry or not function.defined:
            raise LaunchError(f"no kernel {name} in the module; it has {', '.join(self.kernels) or 'none'}")
        return function

    def entry_block(self, name: str) -> int:
        """The first block of a function."""
        return self._prologues[self.text.functions[name].name]

    def function_number(self, name: str) -> int:
        """The place of a function in the code space."""
        return 16 * (1 + self._number_functions.index(self.text.functions[name].name))

    def function_at(self, offset: int, parameters: int) -> int | None:
        """The first block of the function at a place of the code space, if it takes so many parameters."""
        place, rest = divmod(offset, 16)
        if rest or not 0 < place <= len(self._number_functions):
            return None
        name = self._number_functions[place - 1]
        function = self.text.functions[name]
        return self._prologues[name] if not function.entry and len(function.parameters) == parameters else None

    def parameter_layout(self, name: str) -> list[tuple[int, Variable]]:
        """Offset of each parameter of a kernel."""
        found: list[tuple[int, Variable]] = []
        offset = 0
        for parameter in self.kernel(name).parameters:
            offset = -(-offset // parameter.align) * parameter.align
            found.append((offset, parameter))
            offset += parameter.size or 0
        return found

    def shared_layout(self, name: str) -> SharedLayout:
        """Where the shared variables of a kernel, and of all it may call, lie."""
        found = self._layouts.get(name)
        if found is None:
            found = self._layouts[name] = self._lay_out(name)
        return found

    def _lay_out(self, name: str) -> SharedLayout:
        wanted: list[Variable] = []
        seen: set[str] = set()
        work = [self.text.functions[name]]
        visited = {name}
        while work:
            function = work.pop()
            for symbol in _symbols(function):
                callee = self.text.functions.get(symbol)
                if callee is not None and callee.name not in visited:
                    visited.add(callee.name)
                    work.append(callee)
                variable = function.variables.get(symbol) or self.text.variables.get(symbol)
                if variable is not None and variable.space == "shared" and symbol not in seen:
                    seen.add(symbol)
                    wanted.append(variable)
        offsets: dict[str, int] = {}
        size = 0
        for variable in wanted:
            if variable.size is not None:
                size = -(-size // variable.align) * variable.align
                offsets[variable.name] = size
                size += variable.size
        align = max([16, *(v.align for v in wanted if v.size is None)])
        dynamic = -(-size // align) * align
        for variable in wanted:
            if variable.size is None:
                offsets[variable.name] = dynamic
        return SharedLayout(offsets, size, dynamic)

    def _smallest_shared_access(self) -> int:
        smallest = 4
        for function in self.text.functions.values():
            for instruction in function.body:
                if instruction.opcode in ("ld", "st", "atom", "red") and instruction.modifiers[:1] != ("param",):
                    if {"global", "local", "const"} & set(instruction.modifiers):
                        continue
                    kind = KIND_OF_TYPE.get(instruction.modifiers[-1])
                    if kind is not None:
                        smallest = min(smallest, size_of(kind))
                elif instruction.opcode == "ldmatrix":
                    smallest = min(smallest, 2)
                elif instruction.opcode == "cp" and len(instruction.operands) > 3:
                    smallest = 1
        return smallest


def _symbols(function: Function) -> Iterator[str]:
    """Names that a function mentions."""

    def of(operand: Operand) -> Iterator[str]:
        match operand:
            case Symbol(name) | Address(base=Symbol(name)):
                yield name
            case Coordinates(address):
                yield from of(address)
            case Vector(items):
                for item in items:
                    yield from of(item)

    for instruction in function.body:
        for operand in instruction.operands:
            yield from of(operand)
        if instruction.call is not None:
            for operand in (instruction.call.target, *instruction.call.arguments):
                yield from of(operand)


def load_program(text: str) -> Program:
    """The program of a PTX text, made or remembered."""
    with _programs_lock:
        found = _programs.get(text)
        if found is not None:
            _programs.move_to_end(text)
            return found
    made = Program(text)
    with _programs_lock:
        found = _programs.setdefault(text, made)
        if len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return found
