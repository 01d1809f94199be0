"""Translation of calls, returns, barriers and the small instructions that control a thread.

Where a block ends in a call or a barrier, the assembler asks here which values go along; the emitters below are for
what stays inside a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from parakeet_py.ptx.emulator.front.ir import Call, Immediate, Instruction, Operand, Register, Sink, Symbol, Variable
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE, size_of
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits

SYSTEM_CALLS = frozenset({"vprintf", "malloc", "free", "__assertfail"})


def site_of(emitter: Emitter, instruction: Instruction) -> str:
    """The name of an instruction for the machine."""
    emitter.instruction = instruction
    return emitter.site()


def passing_kind(variable: Variable) -> str:
    """The kind in which a parameter or result of a function travels."""
    return "bytes" if variable.array else f"u{size_of(KIND_OF_TYPE[variable.type])}"


def _passed(emitter: Emitter, operand: Operand, kind: str) -> str:
    if kind == "bytes":
        if not isinstance(operand, Register) or not operand.type.startswith("bytes:"):
            raise emitter.unsupported("a scalar passed as an aggregate")
        return emitter.mark(operand, "bytes")
    return emitter.read(operand, kind)


def return_values(emitter: Emitter) -> Iterator[str]:
    """What a function returns."""
    for variable in emitter.function.results:
        assert variable.register is not None
        yield emitter.mark(variable.register, passing_kind(variable))


def _signature(emitter: Emitter, call: Call) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    if isinstance(call.target, Symbol):
        callee = emitter.module.functions.get(call.target.name)
        if callee is None or not callee.defined:
            raise emitter.unsupported(f"a call of {call.target.name}, which is not defined in the module,")
        return callee.results, callee.parameters
    function = emitter.function
    if call.prototype in function.prototypes:
        prototype = function.prototypes[call.prototype]
        return prototype.results, prototype.parameters
    if call.prototype in function.call_targets:
        name = function.call_targets[call.prototype][0]
        return emitter.module.functions[name].results, emitter.module.functions[name].parameters
    raise emitter.unsupported("an indirect call without a prototype")


def call_values(emitter: Emitter, instruction: Instruction) -> Iterator[str]:
    """The callee (or nothing, when it is known), its frame, its arguments."""
    call = instruction.call
    assert call is not None
    _, parameters = _signature(emitter, call)
    if len(parameters) != len(call.arguments):
        raise emitter.invalid("the call has another number of arguments than the function")
    if set(instruction.modifiers) - {"uni"}:
        raise emitter.unsupported(instruction.name)
    yield "" if isinstance(call.target, Symbol) else emitter.read(call.target, "u8")
    yield emitter.mark(emitter.top, "u8")
    for variable, argument in zip(parameters, call.arguments, strict=True):
        yield _passed(emitter, argument, passing_kind(variable))


def call_results(emitter: Emitter, instruction: Instruction) -> list[tuple[Register, str]]:
    """The registers that get a call's results, with the kinds in which they come."""
    call = instruction.call
    assert call is not None
    emitter.instruction = instruction
    results, _ = _signature(emitter, call)
    found: list[tuple[Register, str]] = []
    for operand, variable in zip(call.results, results, strict=False):
        if not isinstance(operand, Register):
            raise emitter.invalid("a call's result is not a register")
        found.append((operand, passing_kind(variable)))
    return found


def _barrier_operands(instruction: Instruction) -> tuple[Operand | None, Operand, Operand | None, Operand | None]:
    """Destination, barrier, thread count, predicate."""
    operands = list(instruction.operands)
    if "red" not in instruction.modifiers:
        return None, operands[0], operands[1] if len(operands) > 1 else None, None
    return operands[0], operands[1], operands[2] if len(operands) > 3 else None, operands[-1]


def barrier_values(emitter: Emitter, instruction: Instruction) -> Iterator[str]:
    """Number of the barrier, count of threads, predicate and reduction."""
    emitter.modifiers = list(instruction.modifiers)
    emitter.take("cta")
    emitter.take("aligned")
    reduction = ""
    if emitter.take("red"):
        reduction = emitter.take_any(("popc", "and", "or"))
        emitter.take_any(("u32", "pred"))
    elif not emitter.take("sync") or not instruction.operands:
        raise emitter.unsupported(instruction.name)
    if emitter.modifiers:
        raise emitter.unsupported(f"modifier .{emitter.modifiers[0]} of {instruction.name}")
    _, barrier, count, predicate = _barrier_operands(instruction)
    yield emitter.read(barrier, "u4")
    yield emitter.read(count, "u4") if count is not None else "None"
    yield emitter.read(predicate, "p") if predicate is not None else "None"
    yield repr(reduction)


def barrier_results(instruction: Instruction) -> list[tuple[Register, str]]:
    """The register that a reducing barrier gives."""
    destination = _barrier_operands(instruction)[0]
    if not isinstance(destination, Register):
        return []
    return [(destination, "u4" if "popc" in instruction.modifiers else "p")]


def convergence_mask(emitter: Emitter, instruction: Instruction) -> str:
    """The lanes that a warp-wide operation needs, as an expression."""
    emitter.instruction = instruction
    opcode = instruction.opcode
    if opcode in ("shfl", "vote", "match", "redux", "elect"):
        return emitter.read(instruction.operands[-1], "u4")
    if opcode == "bar":
        return emitter.read(instruction.operands[0], "u4")
    return emitter.constants.number(0xFFFFFFFF, "u4")


@emits("call")
def _system_call(c: Emitter) -> None:
    """A function the emulator provides: it gets and gives plain values."""
    call = c.instruction.call
    assert call is not None and isinstance(call.target, Symbol)
    c.take("uni")
    name = call.target.name
    kinds = {"vprintf": ["u8", "u8"], "malloc": ["u8"], "free": ["u8"], "__assertfail": ["u8", "u8", "u4", "u8", "u8"]}
    arguments = [c.read(a, k) for a, k in zip(call.arguments, kinds[name], strict=True)]
    text = f"M.system_{name.strip('_')}(L, {', '.join(arguments)}, {c.site()})"
    if call.results:
        c.write_all([(call.results[0], "u4" if name == "vprintf" else "u8")], text, effect=True)
    else:
        c.effect(text)


@emits("bar", "barrier")
def _barrier(c: Emitter) -> None:
    """What remains of barriers inside a block: those of a warp, which converge where a block begins, and arrivals."""
    c.take("cta")
    aligned = c.take("aligned")
    if c.take("warp"):
        c.take("sync")
        c.effect(f"M.warp_barrier(L, {c.source(0, 'u4')})")
    elif c.take("arrive"):
        c.effect(f"M.arrive_only(L, {c.source(0, 'u4')}, {c.source(1, 'u4')}, {c.site()})")
    elif aligned:
        raise c.unsupported(c.instruction.name)


@emits("membar", "fence")
def _fence(c: Emitter) -> None:
    if c.take("proxy") or c.take("mbarrier_init"):  # between ways of one thread to memory: it orders no threads
        c.modifiers.clear()
        c.effect("M.bulk.fence(L)")
        return
    c.take_any(("acq_rel", "sc", "acquire", "release"))
    c.take_any(("cta", "gl", "sys", "gpu", "cluster"))
    c.effect("M.fence(L)")


@emits("nanosleep")
def _nanosleep(c: Emitter) -> None:
    c.type()
    c.source(0, "u4")
    c.effect("M.pause(L)")


@emits("trap", "brkpt")
def _trap(c: Emitter) -> None:
    if c.instruction.opcode == "trap":
        c.effect(f"M.trap(L, {c.site()})")


@emits("prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "setmaxnreg")
def _advice(c: Emitter) -> None:
    """Hints to caches and schedulers change no value."""
    c.modifiers.clear()


@emits("activemask")
def _activemask(c: Emitter) -> None:
    c.take("b32")
    c.write(c.operands[0], "M.activemask(L)", "u4")


@emits("alloca")
def _alloca(c: Emitter) -> None:
    """Room on the thread's stack; the address is in local space."""
    c.type()
    size = c.source(1, "u8")
    align = 16
    if len(c.operands) > 2:
        operand = c.operands[2]
        align = max(16, operand.value) if isinstance(operand, Immediate) else 16
    low = c.constants.number(align - 1, "u8")
    high = c.constants.number(~(align - 1), "u8")
    round_up = c.constants.number(15, "u8")
    rounded = c.constants.number(~15, "u8")
    start = c.temporary(f"({c.mark(c.top, 'u8')} + {low}) & {high}")
    c.define(c.top, f"({start} + {size} + {round_up}) & {rounded}", "u8")
    c.effect(f"M.reserve_local({c.mark(c.top, 'u8')})")
    c.write(c.operands[0], f"{start} + 0", "u8")


@emits("stacksave")
def _stacksave(c: Emitter) -> None:
    c.type()
    c.write(c.operands[0], f"{c.mark(c.top, 'u8')} + 0", "u8")


@emits("stackrestore")
def _stackrestore(c: Emitter) -> None:
    c.type()
    c.define(c.top, f"{c.source(0, 'u8')} + 0", "u8")


__all__ = ["SYSTEM_CALLS", "Sink", "Site"]
