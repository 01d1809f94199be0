"""Running specializations: signatures of calls, loading machine code, raising what failed checks stand for.

This is all that a process with a warm disk cache needs: nothing here imports the compiler.
"""

from __future__ import annotations

import builtins
import importlib
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from parakeet_py.base.errors import DeoptimizedError, MissingValue, advised, exception_named, exception_with
from parakeet_py.base.frames.tracebacks import own_entry, placed, stand_in
from parakeet_py.call.specialization_cache import FailureText, Native
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, OPAQUE_RAISED, OUT_OF_MEMORY
from parakeet_py.llvm.safety.faults import FAULT, FAULTS
from parakeet_py.signature import patches
from parakeet_py.signature.attribute_sources import (
    FIELDS,
    KEYS,
    SIZE,
    are_apart,
    class_named,
    is_of_instances,
    of_arguments,
    read_field,
    read_method,
    variable_of,
)
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.facts import Fact, Facts, is_argument
from parakeet_py.signature.specs import (
    MAX_ITEMS,
    ArraySpec,
    HiddenSpec,
    ObjectSpec,
    Signature,
    Source,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
    leaves,
    list_spec,
    range_spec,
    signature_of,
    spec_of,
    with_any_extents,
    with_pairs,
)

if TYPE_CHECKING:
    from parakeet_py.base.positions import Pos
    from parakeet_py.llvm.entry.entry_stub import GateHandle


class Knowledge:
    """What compilations of a function have found out about it.

    Attributes
    ----------
    facts : those about the function, which signatures are made with
    of_signature : further facts, by the specs of the parameters
    observed : result types of operations handed back to Python, by the specs of the parameters and then by place
    continued : places of checks that Python goes on after, by the specs of the parameters
    any_extents : signatures are for last axes of any extent but 1, also where arguments have short ones
    """

    __slots__ = ("any_extents", "continued", "facts", "observed", "of_signature")

    def __init__(self, facts: Facts | None = None, *, any_extents: bool = False) -> None:
        self.facts = facts or Facts()
        self.any_extents = any_extents
        self.of_signature: dict[tuple[Spec, ...], Facts] = {}
        self.observed: dict[tuple[Spec, ...], dict[tuple[Any, ...], Any]] = {}
        self.continued: dict[tuple[Spec, ...], frozenset[Pos]] = {}

    def about(self, signature: Signature) -> Facts:
        """All that is known of calls with a signature."""
        found = self.of_signature.get(signature.params)
        return self.facts if found is None else Facts((*self.facts, *found))

    def add(self, signature: Signature, facts: Sequence[Fact]) -> bool:
        """Add facts that a walk with this signature has found; is one of them new?"""
        new = self.facts.add(fact for fact in facts if not fact.of_signature)
        own = [fact for fact in facts if fact.of_signature]
        return bool(own and self.of_signature.setdefault(signature.params, Facts()).add(own)) or new


def read_source(function: FunctionType, source: Source, args: Sequence[Any]) -> Any:
    """The present value of a hidden argument of a call with these arguments, which are in positional form.

    Raises
    ------
    MissingValue
        There is no such global, module, class or attribute, or the closure's cell is empty.
    """
    try:
        return _read_source(function, source, args)
    except (KeyError, AttributeError, ValueError, IndexError):
        what = ".".join(str(part) for part in source[1:])
        text = f"{function.__qualname__} reads the {source[0]} {what}, which is not there"
        raise MissingValue(text, function.__code__.co_filename) from None


def _read_source(function: FunctionType, source: Source, args: Sequence[Any]) -> Any:
    variable = variable_of(source)
    if len(variable) < len(source):
        return read_field(_read_source(function, variable, args), tuple(map(str, source[len(variable) :])))
    match source:
        case ("field", int() as index, *names):
            return read_field(args[index], tuple(map(str, names)))
        case ("apart", *paths):
            return are_apart(args, tuple(paths))
        case ("method", int() as index, *names):
            return read_method(args[index], tuple(map(str, names)))
        case ("global", str() as name):
            if name in function.__globals__:
                return function.__globals__[name]
            return getattr(builtins, name)
        case ("cell", int() as index):
            return (function.__closure__ or ())[index].cell_contents
        case ("attribute", str() as module, str() as name):
            if module.startswith("parakeet_py."):  # what the library reads, which nothing else imports
                importlib.import_module(module)
            namespace = sys.modules[module].__dict__
            return namespace[name] if name in namespace else getattr(builtins, name)
        case ("class", str() as module, str() as qualname, str() as name):
            if name == SIZE:
                return len(vars(class_named(module, qualname)))
            return vars(class_named(module, qualname))[name]
    raise AssertionError(source)


def present(function: FunctionType, source: Source) -> Any:
    """The present value of a global or free variable; None where there is none any more."""
    try:
        return read_source(function, source, ())
    except MissingValue:
        return None


def call_signature(function: FunctionType, args: Sequence[Any], knowledge: Knowledge) -> Signature:
    """The signature of a call in positional form, with all that is known of the function's needs."""
    facts, hidden = knowledge.facts, []
    for source in facts.hidden:
        try:
            hidden.append((source, read_source(function, source, args)))
        except MissingValue:
            if not of_arguments(source):  # which objects of other classes need not have
                raise
    overrides: dict[int, Spec] = {}
    if not (facts.long_lists and facts.short_lists):
        overrides = {
            index: spec_of(value)
            for index, value in enumerate(args)
            if type(value) is list and not (facts.long_lists if len(value) > MAX_ITEMS else facts.short_lists)
        }
    for index in facts.texts:
        if type(args[index]) is str:
            overrides[index] = TextSpec()
    for index, value in enumerate(args) if facts.values or facts.whole else ():
        if index in facts.whole and type(value) is list:
            overrides[index] = ObjectSpec(list, True)
        elif index in facts.values and not isinstance(overrides.get(index), TextSpec) and can_be_static(value):
            overrides[index] = static_spec(value)
    for position, (source, value) in enumerate(hidden):
        if (spec := _chosen_spec(source, value, facts)) is not None:
            overrides[len(args) + position] = spec
    made = signature_of(args, hidden, overrides)
    return replace(made, params=tuple(map(with_any_extents, made.params))) if knowledge.any_extents else made


def extended_signature(
    function: FunctionType, args: Sequence[Any], facts: Facts, signature: Signature, source: Source
) -> Signature:
    """A signature of a call with one hidden argument more."""
    value = read_source(function, source, args)
    spec = _chosen_spec(source, value, facts) or spec_of(value)
    made = replace(signature, hidden=(*signature.hidden, HiddenSpec(source, spec)))
    if any(isinstance(leaf.spec, ArraySpec) for leaf in leaves(Signature((spec,)))):
        values = [*args, *(read_source(function, one.source, args) for one in signature.hidden), value]
        return with_pairs(made, values)
    return made


def _chosen_spec(source: Source, value: Any, facts: Facts) -> Spec | None:
    """The spec of a hidden argument, where that is not the one of its value."""
    if is_argument(source):
        return ObjectSpec(type(value), True)
    known = source in facts.values or source[0] == "apart" or source[-1] in (KEYS, SIZE, FIELDS)
    if known and can_be_static(value):
        return static_spec(value)
    if type(value) is not list:
        return None
    if source in facts.whole:
        return ObjectSpec(list, True)
    if is_of_instances(source[-1]):
        return list_spec(value)
    return list_spec(value) if facts.long_lists and len(value) > MAX_ITEMS else None


def can_be_static(value: Any) -> bool:
    """Can a call be specialized by this value?"""
    if type(value) is list:
        return isinstance(spec_of(value), TupleSpec) and all(map(can_be_static, value))
    if type(value) is range:
        return isinstance(spec_of(value), TupleSpec)
    if type(value) is tuple:
        return not any(type(item) is list for item in value) and all(map(can_be_static, value))
    return type(value) in (bool, int, float, complex, str, type(None), FunctionType)


def static_spec(value: Any) -> Spec:
    """The spec by value. A list stays one, as it may be changed: what it holds is compared. So is that of a range."""
    if type(value) is range:
        return range_spec(value, StaticSpec)
    if type(value) is list:
        return TupleSpec(tuple(map(static_spec, value)), "list")
    return StaticSpec(value)


class HandedBackSites(Protocol):
    """The operations that compiled code hands back to Python."""

    @property
    def opaque_calls(self) -> Sequence[str]: ...


class CallsOfPython(Protocol):
    """What operations that compiled code hands back to Python need (`handed_back.OpaqueCalls`)."""

    @property
    def handed_back(self) -> HandedBackSites: ...

    def addresses(self, checked: bool) -> dict[str, int]: ...

    def tell_again(self, state: Any) -> bool: ...

    def raised(self, state: Any, error: BaseException) -> None: ...


class Loaded:
    """A specialization in this process: its code behind a gate, and how it came to be.

    Attributes
    ----------
    native : the object code and what stands around it
    gate : the loaded code
    times : seconds of each stage that was needed
    from_disk : it was compiled by another process
    threads : (of the constructor) the decorator's own; 0: those of the settings
    checked, exact : (of the constructor) the code checks what it does to memory; it has NumPy's bits
    give_up : called with the reason when such calls should run in Python from now on
    """

    __slots__ = ("from_disk", "function", "gate", "give_up", "native", "state", "times")

    def __init__(
        self,
        function: FunctionType,
        native: Native,
        following: Callable[..., Any],
        times: dict[str, float],
        *,
        threads: int = 0,
        state: CallsOfPython | None = None,
        from_disk: bool = False,
        checked: bool = False,
        exact: bool = False,
    ) -> None:
        from parakeet_py.llvm.entry import boxing
        from parakeet_py.llvm.entry.entry_stub import load_gate
        from parakeet_py.llvm.runtime import blas
        from parakeet_py.llvm.runtime.native_runtime import runtime

        start = time.perf_counter()
        self.function, self.native, self.state = function, native, state
        self.from_disk = from_disk
        self.give_up: Callable[[str], None] = lambda reason: None
        self.times = times
        known = runtime(checked).symbols
        reads = patches.of_symbols(native.symbols)
        for module, _ in reads:
            importlib.import_module(module)
        addresses = {name: blas.resolve(name) for name in native.symbols if name not in known}
        if state is not None:
            addresses |= state.addresses(checked)
        if exact:
            addresses |= boxing.of_exact(checked)
        self.gate: GateHandle = load_gate(
            native.object_bytes,
            native.signature,
            native.result,
            function,
            raise_failure=self.raise_failure,
            following=following,
            external={name: address for name, address in addresses.items() if address is not None},
            state=state,
            threads=threads,
            warn=self.warn,
            reads=reads,
            checked=checked,
            budget=native.quick.budget if native.quick else 0,
        )
        times["load"] = time.perf_counter() - start

    def taking(self, missed: Callable[..., Any]) -> Callable[..., Any]:
        """A callable that takes the calls of this code, and gives others to `missed`."""
        from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install

        target = AcceleratedFunction(self.function, missed)
        install(target, [self.gate])
        return target

    def __repr__(self) -> str:
        types = ", ".join(describe_spec(spec) for spec in self.native.signature.params)
        return f"<{self.function.__qualname__}({types}), {'from the disk cache' if self.from_disk else 'compiled'}>"

    def warn(self, *args: Any) -> Warning | None:
        """A call with these arguments has set floating-point flags that Python may want to hear of."""
        from parakeet_py.call.floating_warnings import warn

        return warn(self.function, args, self.gate.flags)

    def raise_failure(self, status: int, *words: Any) -> BaseException | FrameType | None:
        """The exception that a status stands for (called by the gate with the six words of the context); None: Python
        does the call, without what compiled code has handed back to it already. Of the one that a signal handler has
        raised, a frame of the function."""
        if status == INTERRUPTED:
            if self.state is not None:
                self.state.raised(words[0] if words else None, KeyboardInterrupt())
            return stand_in(*own_entry(self.function))
        if status == OUT_OF_MEMORY:
            lacking = MemoryError("out of memory in compiled code").with_traceback(placed(own_entry(self.function)))
            if self.state is not None:
                self.state.raised(words[6] if words[6:] else None, lacking)
            return lacking
        if status == OPAQUE_RAISED:
            raised: BaseException = words[6].exception
            words[6].exception = None
            return raised
        failure = self.native.failures[status]
        trace = failure.trace or own_entry(self.function)
        if self.state is not None and failure.for_python and self.state.tell_again(*words[6:] or (None,)):
            return None
        error = exception_of(failure, words)
        if isinstance(error, DeoptimizedError):
            self.give_up(str(error))
        error.__traceback__ = placed(trace)
        if self.state is not None:
            self.state.raised(words[6] if words[6:] else None, error)
        return error


def exception_of(failure: FailureText, words: Sequence[int]) -> Exception:
    """The exception of a failed check."""
    if failure.exception == "Deoptimize":
        return DeoptimizedError(
            advised(
                f"{failure.message}, in the middle of a call that has changed something; "
                f"such calls run in Python from now on: {failure.place}"
            )
        )
    kind = exception_named(failure.exception)
    values = [
        struct.unpack("<d", struct.pack("<q", word))[0] if how == "f" else FAULTS[word] if how == FAULT else word
        for word, how in zip(words, failure.formats, strict=False)
    ]
    return exception_with(kind, failure.message, values)
