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
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from parakeet_py.base.errors import DeoptimizedError, UnsupportedError, exception_named, exception_with
from parakeet_py.base.tracebacks import own_entry, placed
from parakeet_py.call.specialization_cache import FailureText, Native
from parakeet_py.llvm.runtime.call_context import OPAQUE_RAISED, OUT_OF_MEMORY
from parakeet_py.llvm.safety.faults import FAULT, FAULTS
from parakeet_py.signature import patches
from parakeet_py.signature.attribute_sources import (
    KEYS,
    OF_ALL,
    SIZE,
    are_apart,
    class_named,
    of_arguments,
    read_field,
    read_method,
    variable_of,
)
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.specs import (
    MAX_ITEMS,
    ObjectSpec,
    Signature,
    Source,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
    signature_of,
    spec_of,
)

if TYPE_CHECKING:
    from parakeet_py.llvm.entry.entry_stub import GateHandle


class Knowledge:
    """What compilations of a function have found out about it.

    Attributes
    ----------
    hidden : where hidden arguments are read from, in order
    static : positions of parameters that are specialized by value
    static_hidden : hidden arguments that are
    fields : whose attributes may be hidden arguments, see `fields`
    whole, whole_hidden : positions of parameters, and hidden arguments, whose lists are taken as objects
    long_lists, short_lists : are lists of more than `MAX_ITEMS` numbers read into arrays, and shorter ones?
    texts : positions of parameters whose strings are looked at character by character; `takes_texts`: may there be any?
    observed : result types of operations handed back to Python, by the specs of the parameters and then by place
    """

    __slots__ = (
        "fields",
        "hidden",
        "long_lists",
        "observed",
        "short_lists",
        "static",
        "static_hidden",
        "takes_texts",
        "texts",
        "whole",
        "whole_hidden",
    )

    def __init__(self) -> None:
        self.fields: int = OF_ALL
        self.long_lists = True
        self.short_lists = True
        self.hidden: list[Source] = []
        self.static: set[int] = set()
        self.static_hidden: set[Source] = set()
        self.texts: set[int] = set()
        self.takes_texts = True
        self.whole: set[int] = set()
        self.whole_hidden: set[Source] = set()
        self.observed: dict[tuple[Spec, ...], dict[tuple[Any, ...], Any]] = {}

    def to_json(self) -> dict[str, Any]:
        return {
            "fields": self.fields,
            "long_lists": self.long_lists,
            "short_lists": self.short_lists,
            "hidden": [list(source) for source in self.hidden],
            "static": sorted(self.static),
            "static_hidden": sorted(list(source) for source in self.static_hidden),
            "texts": sorted(self.texts),
            "takes_texts": self.takes_texts,
            "whole": sorted(self.whole),
            "whole_hidden": sorted(list(source) for source in self.whole_hidden),
        }

    def learn(self, data: dict[str, Any]) -> None:
        """Take over what another process has found out."""
        self.fields = data["fields"]
        self.long_lists = data.get("long_lists", True)
        self.short_lists = data.get("short_lists", True)
        self.hidden = [tuple(source) for source in data["hidden"]]
        self.static = set(data["static"])
        self.static_hidden = {tuple(source) for source in data["static_hidden"]}
        self.texts = set(data.get("texts", ()))
        self.takes_texts = data.get("takes_texts", True)
        self.whole = set(data.get("whole", ()))
        self.whole_hidden = {tuple(source) for source in data.get("whole_hidden", ())}


class MissingValue(UnsupportedError):
    """A hidden argument is not there (any more): Python will say so if the call gets that far."""


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
    hidden = []
    for source in knowledge.hidden:
        try:
            hidden.append((source, read_source(function, source, args)))
        except MissingValue:
            if not of_arguments(source):  # which objects of other classes need not have
                raise
    overrides: dict[int, Spec] = {}
    if not (knowledge.long_lists and knowledge.short_lists):
        overrides = {
            index: spec_of(value)
            for index, value in enumerate(args)
            if type(value) is list and not (knowledge.long_lists if len(value) > MAX_ITEMS else knowledge.short_lists)
        }
    overrides |= {
        index: static_spec(args[index])
        for index in knowledge.static
        if index < len(args) and can_be_static(args[index])
    }
    overrides |= {index: TextSpec() for index in knowledge.texts if index < len(args) and type(args[index]) is str}
    for index in knowledge.whole:
        if index < len(args) and type(args[index]) is list:
            overrides[index] = ObjectSpec(list, True)
    for position, (source, value) in enumerate(hidden):
        if (source in knowledge.static_hidden or source[0] == "apart" or source[-1] in (KEYS, SIZE)) and can_be_static(
            value
        ):
            overrides[len(args) + position] = static_spec(value)
        elif source in knowledge.whole_hidden and type(value) is list:
            overrides[len(args) + position] = ObjectSpec(list, True)
    return signature_of(args, hidden, overrides)


def can_be_static(value: Any) -> bool:
    """Can a call be specialized by this value?"""
    if type(value) is list:
        return isinstance(spec_of(value), TupleSpec) and all(map(can_be_static, value))
    if type(value) is tuple:
        return not any(type(item) is list for item in value) and all(map(can_be_static, value))
    return type(value) in (bool, int, float, complex, str, type(None), FunctionType)


def static_spec(value: Any) -> Spec:
    """The spec by value. A list stays one, as it may be changed: what it holds is compared."""
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


class Loaded:
    """A specialization in this process: its code behind a gate, and how it came to be.

    Attributes
    ----------
    native : the object code and what stands around it
    gate : the loaded code
    times : seconds of each stage that was needed
    from_disk : it was compiled by another process
    threads : (of the constructor) the decorator's own; 0: those of the settings
    checked : (of the constructor) the code checks what it does to memory
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
    ) -> None:
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
        )
        times["load"] = time.perf_counter() - start

    def __repr__(self) -> str:
        types = ", ".join(describe_spec(spec) for spec in self.native.signature.params)
        return f"<{self.function.__qualname__}({types}), {'from the disk cache' if self.from_disk else 'compiled'}>"

    def warn(self, *args: Any) -> Warning | None:
        """A call with these arguments has set floating-point flags that Python may want to hear of."""
        from parakeet_py.call.floating_warnings import warn

        return warn(self.function, args, self.gate.flags)

    def raise_failure(self, status: int, *words: Any) -> BaseException | None:
        """The exception that a status stands for (called by the gate with the six words of the context); None: Python
        does the call, without what compiled code has handed back to it already."""
        if status == OUT_OF_MEMORY:
            return MemoryError("out of memory in compiled code").with_traceback(placed(own_entry(self.function)))
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
        return error


def exception_of(failure: FailureText, words: Sequence[int]) -> Exception:
    """The exception of a failed check."""
    if failure.exception == "Deoptimize":
        return DeoptimizedError(
            f"{failure.message}, in the middle of a call that has changed something; "
            "such calls run in Python from now on"
            f": {failure.place}"
        )
    kind = exception_named(failure.exception)
    values = [
        struct.unpack("<d", struct.pack("<q", word))[0] if how == "f" else FAULTS[word] if how == FAULT else word
        for word, how in zip(words, failure.formats, strict=False)
    ]
    return exception_with(kind, failure.message, values)
