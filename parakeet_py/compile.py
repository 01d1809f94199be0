"""From a call to machine code: the stages in the order they run, for one signature.

`compile_call` finds the signature of a call (starting again while the specializer asks for hidden arguments or for the
value of a parameter), then runs the stages: specialize, passes, lower to Imp, generate LLVM IR, compile, load behind a
gate. A `Compiled` keeps what each stage made, for `explain()` and the text functions; LLVM text is made when asked for.
"""

from __future__ import annotations

import builtins
import logging
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any

from parakeet_py import config as settings
from parakeet_py.errors import ParakeetError, UnsupportedError, source_excerpt
from parakeet_py.frontend import ssa, to_ssa_cached
from parakeet_py.signature import (
    Signature,
    Source,
    StaticSpec,
    leaves,
    signature_of,
    spec_of,
)

if TYPE_CHECKING:
    from parakeet_py.imp import ir as imp
    from parakeet_py.llvm.gate import GateHandle
    from parakeet_py.typed_ir import ir
    from parakeet_py.typed_ir.specialize import Specialization

log = logging.getLogger("parakeet_py")
MAX_ATTEMPTS = 64


class DeoptimizedError(ParakeetError):
    """A value took a path whose result type was not foreseen, after the function had already changed something."""


@dataclass(slots=True)
class Knowledge:
    """What earlier compilations of a function have found out about it."""

    hidden: list[Source] = field(default_factory=list)
    static: set[int] = field(default_factory=set)
    static_hidden: set[Source] = field(default_factory=set)
    observed: dict[tuple[Any, ...], Any] = field(default_factory=dict)


@dataclass(slots=True)
class Compiled:
    """One specialization and everything that is known about it."""

    function: FunctionType
    template: ssa.Function
    specialization: Specialization
    typed: ir.Function
    unfused: ir.Function
    imp: imp.Function
    config: settings.Config
    times: dict[str, float] = field(default_factory=dict)
    pass_times: dict[str, float] = field(default_factory=dict)
    gate: GateHandle | None = None

    @property
    def signature(self) -> Signature:
        return self.specialization.signature

    def raise_failure(self, status: int, *words: Any) -> None:
        """Raise what a failed check stands for (called by the gate with the six words of the context)."""
        if status == _out_of_memory():
            raise MemoryError("out of memory in compiled code")
        site = self.imp.failures[status]
        name, message = site.failure.exception, site.failure.message
        if name == "Deoptimize":
            raise DeoptimizedError(f"{message}: {source_excerpt(self.template, site.pos)}")
        kind = getattr(builtins, name)
        text = message.format(
            *(_argument(word, how) for word, how in zip(words, self.formats(status), strict=False))
        )
        raise kind(*([text] if message else []))

    def formats(self, index: int) -> Sequence[str]:
        """How the argument words of a failure are read: i (int64) or f (float64)."""
        from parakeet_py.imp import ir as imp
        from parakeet_py.typed_ir.ir import dtype_of

        for statement in imp.walk(self.imp.body):
            if isinstance(statement, imp.Check) and statement.failure == index:
                return ["f" if dtype_of(arg).startswith("float") else "i" for arg in statement.args]
        return "iiiiii"


def _argument(word: int, how: str) -> int | float:
    if how == "f":
        value: float = struct.unpack("<d", struct.pack("<q", word))[0]
        return value
    return word


def _out_of_memory() -> int:
    from parakeet_py.llvm.codegen import OUT_OF_MEMORY

    return OUT_OF_MEMORY


def read_source(function: FunctionType, source: Source) -> Any:
    """The present value of a hidden argument."""
    match source:
        case ("global", str() as name):
            if name in function.__globals__:
                return function.__globals__[name]
            return getattr(builtins, name)
        case ("cell", int() as index):
            assert function.__closure__ is not None
            return function.__closure__[index].cell_contents
        case ("attribute", str() as module, str() as name):
            import sys

            namespace = sys.modules[module].__dict__
            return namespace[name] if name in namespace else getattr(builtins, name)
    raise AssertionError(source)


def call_signature(function: FunctionType, args: Sequence[Any], knowledge: Knowledge) -> Signature:
    """The signature of a call, with all that is known of the function's needs."""
    hidden = [(source, read_source(function, source)) for source in knowledge.hidden]
    overrides = {index: StaticSpec(_frozen(args[index])) for index in knowledge.static if _can_be_static(args[index])}
    for position, (source, value) in enumerate(hidden):
        if source in knowledge.static_hidden and _can_be_static(value):
            overrides[len(args) + position] = StaticSpec(_frozen(value))
    return signature_of(args, hidden, overrides)


def _can_be_static(value: Any) -> bool:
    if type(value) in (tuple, list):
        return all(_can_be_static(item) for item in value)
    return type(value) in (bool, int, float, complex, str, type(None))


def _frozen(value: Any) -> Any:
    return value


def specialize_call(
    template: ssa.Function, function: FunctionType, args: Sequence[Any], knowledge: Knowledge
) -> Specialization:
    """Specialize for a call, learning what the function needs on the way."""
    from parakeet_py.typed_ir.specialize import NeedHidden, NeedStatic, Specializer

    for _ in range(MAX_ATTEMPTS):
        signature = call_signature(function, args, knowledge)
        try:
            return Specializer(template, function, signature, knowledge.observed).specialize()
        except NeedHidden as need:
            knowledge.hidden.append(need.source)
        except NeedStatic as need:
            _learn_static(need, args, function, template, knowledge)
    raise UnsupportedError(f"{function.__name__} depends on too many global values")


def _learn_static(
    need: Any, args: Sequence[Any], function: FunctionType, template: ssa.Function, knowledge: Knowledge
) -> None:
    if need.index < len(args):
        value = args[need.index]
        known = need.index in knowledge.static
        knowledge.static.add(need.index)
    else:
        source = knowledge.hidden[need.index - len(args)]
        value = read_source(function, source)
        known = source in knowledge.static_hidden
        knowledge.static_hidden.add(source)
    if known or not _can_be_static(value) or isinstance(value, list):
        raise UnsupportedError(f"{need} has to be known when the function is compiled", template.filename)


def compile_call(
    function: FunctionType, args: Sequence[Any], knowledge: Knowledge, config: settings.Config
) -> Compiled:
    """Everything up to Imp for the signature of a call.

    Raises
    ------
    UnsupportedError
        The function cannot be compiled for these arguments.
    """
    from parakeet_py.imp.lower import lower
    from parakeet_py.typed_ir.check_ir import check_function
    from parakeet_py.typed_ir.pipeline import PassReport, run_passes

    times: dict[str, float] = {}
    clock = _Clock(times)
    template = to_ssa_cached(function)
    clock.done("frontend")
    specialization = specialize_call(template, function, args, knowledge)
    specialization.signature = _relaxed(specialization)
    if config.check:
        check_function(specialization.function)
    clock.done("specialize")
    passes = PassReport()
    typed = run_passes(specialization.function, config, passes)
    clock.done("passes")
    lowered = lower(typed, config)
    if config.check:
        from parakeet_py.imp.check_imp import check_function as check_imp

        check_imp(lowered)
    clock.done("lower")
    return Compiled(
        function, template, specialization, typed, specialization.function, lowered, config, times, passes.seconds
    )


def _relaxed(specialization: Specialization) -> Signature:
    """The signature without what does not matter: overlap, where nothing of the pair is ever written."""
    signature = specialization.signature
    if not signature.pairs:
        return signature
    stored = specialization.stored_params
    pairs = tuple(pair for pair in signature.pairs if pair[0] in stored or pair[1] in stored)
    if pairs == signature.pairs:
        return signature
    if signature.disjoint:
        return Signature(signature.params, signature.hidden, True, pairs)
    return signature if pairs else Signature(signature.params, signature.hidden, True, ())


class _Clock:
    def __init__(self, times: dict[str, float]) -> None:
        self.times = times
        self.start = time.perf_counter()

    def done(self, stage: str) -> None:
        """Everything since the last mark was this stage."""
        now = time.perf_counter()
        self.times[stage] = self.times.get(stage, 0.0) + now - self.start
        self.start = now


def generate_llvm(compiled: Compiled) -> str:
    """The LLVM IR text of the compiled function and its gate, before optimization."""
    from parakeet_py.llvm import engine
    from parakeet_py.llvm.codegen import generate
    from parakeet_py.llvm.gate_ir import gate_ir

    config = compiled.config
    code = generate(compiled.imp, engine.host(), contract=config.contract, fastmath=config.fastmath)
    gate = gate_ir(
        compiled.signature,
        compiled.specialization.result,
        code.entry,
        "gate",
        has_state=bool(compiled.specialization.opaque_sites),
    )
    return code.text + "\n" + gate


def make_native(compiled: Compiled, following: Callable[..., Any]) -> GateHandle:
    """Machine code behind a gate; calls with another signature go on to `following`."""
    from parakeet_py.llvm import blas, boxing, engine
    from parakeet_py.llvm.codegen import generate
    from parakeet_py.llvm.gate import load_gate
    from parakeet_py.llvm.gate_ir import gate_ir
    from parakeet_py.llvm.runtime import runtime

    clock = _Clock(compiled.times)
    config = compiled.config
    result = compiled.specialization.result
    has_state = bool(compiled.specialization.opaque_sites)
    code = generate(compiled.imp, engine.host(), contract=config.contract, fastmath=config.fastmath)
    gate = gate_ir(compiled.signature, result, code.entry, "gate", has_state=has_state)
    clock.done("generate")
    object_bytes = engine.compile_ir(code.text + "\n" + gate)
    clock.done("llvm")
    known = runtime().symbols
    external = {}
    for name in code.symbols:
        if name in known:
            continue
        address = blas.resolve(name)
        if address is not None:
            external[name] = address
    boxing.set_max_threads(config.thread_count)
    handle = load_gate(
        object_bytes,
        compiled.signature,
        result,
        compiled.function,
        raise_failure=compiled.raise_failure,
        following=following,
        external=external,
        state=compiled if has_state else None,
    )
    clock.done("load")
    compiled.gate = handle
    return handle


__all__ = ["Compiled", "Knowledge", "compile_call", "generate_llvm", "leaves", "make_native", "spec_of"]
