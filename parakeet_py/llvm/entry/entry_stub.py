"""Call gates in use: load one, tie it to its function, chain it.

    handle = load_gate(object_code, signature, result, function, raise_failure=..., following=slow)
    handle.address                 # a vectorcall function
    handle.follow(other)           # where calls go that are not this signature's

`gate_ir` writes the text of a gate, `boxing` holds what all gates share, and this file supplies what differs between
processes: the addresses of globals, cells, static values and types, and the cell that names the next callable. A handle
keeps all of it alive together with the code.

When the compiled function fails, the gate frees what the call had allocated and calls `raise_failure(status, a0, ...,
a5)` with the status and the six words of the context, which gives the exception, or raises it, or gives None: then the
call goes on to the next callable. If the function (an opaque call in it) has put an object of its own into the
context's STATE, a new reference, that object is an eighth argument. The gate drops it at the end of every call, after
the results are boxed.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.llvm.engine import perf_symbols
from parakeet_py.llvm.engine.object_loader import LoadedCode
from parakeet_py.llvm.engine.perf_symbols import Title
from parakeet_py.llvm.entry import boxing, callable_type
from parakeet_py.llvm.entry.small_calls import SmallCalls
from parakeet_py.llvm.runtime import error_state
from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.signature.attribute_sources import (
    KEYS,
    RANDOM_STATE,
    class_named,
    getter_of,
    is_derived,
    is_item,
    is_of_times,
    key_of,
    variable_of,
)
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.object_assembly import Assembled
from parakeet_py.signature.patches import Read, Versions, own_tag_address
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultRows,
    ResultStatic,
    ResultTuple,
    SetAttributes,
    result_leaves,
)
from parakeet_py.signature.serialization import NotPortable
from parakeet_py.signature.specs import (
    FunctionSpec,
    ObjectSpec,
    Signature,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
    code_points,
    is_opaque,
)

__all__ = ["GateHandle", "gate_symbols", "load_gate"]

_NEVER = 2**64 - 1  # no tag of a dict


class GateHandle:
    """A loaded gate.

    Attributes
    ----------
    address : of the vectorcall function
    code : the loaded object, with the compiled function in it
    signature, result : the calls it takes, and what it gives
    small : calls that a team leaves to the CPU
    """

    __slots__ = (
        "__weakref__",
        "_cells",
        "_flags",
        "_former",
        "_kept",
        "_left",
        "_targets",
        "_threads",
        "_versions",
        "address",
        "code",
        "result",
        "signature",
        "small",
    )

    def __init__(self, signature: Signature, result: Result) -> None:
        self.signature = signature
        self.result = result
        self.address = 0
        self.code: LoadedCode | None = None
        self._cells = (ctypes.c_void_p * 2)()  # point to the records of `_targets`: code, object
        self._targets: list[tuple[Any, Any]] = [(None, None)] * 2  # what follows, and `slow`, each with its record
        self._former: list[object] = []
        self._kept: list[object] = []
        self._threads = ctypes.c_int32(0)
        self._flags = error_state.Record()
        self._versions = Versions(())
        self._left = ctypes.c_int64(0)
        self.small = SmallCalls(len(signature.params))

    @property
    def versions(self) -> Versions:
        """What is known of the modules that are read."""
        return self._versions

    @property
    def left(self) -> int:
        """Nanoseconds that calls of quick code may still take."""
        return self._left.value

    @property
    def flags(self) -> error_state.Record:
        """What is remembered of floating-point flags."""
        return self._flags

    def follow(self, target: Any) -> None:
        """Let calls with other arguments go on to `target`, another gate or any callable.

        One aligned store changes the link, so other threads may call the gate meanwhile. Targets once followed are
        kept, as a thread may still be running in one.
        """
        self._lead(0, target)

    def leave_to(self, slow: Any) -> None:
        """Let `slow` do the rest of calls that have been given up half-way; no other gate may begin them anew."""
        self._lead(1, slow)

    def _lead(self, cell: int, target: Any) -> None:
        if callable_type.is_gate(target):
            record = (ctypes.c_void_p * 2)(target.address, id(target))
        else:
            record = (ctypes.c_void_p * 2)(boxing.symbols()["gate.PyObject_Vectorcall"], id(target))
        former = self._targets[cell]  # alive until the cell names the new one
        self._cells[cell] = ctypes.addressof(record)
        self._targets[cell] = target, record
        if former[0] is not None and all(former[0] is not kept for kept in (target, *self._former)):
            self._former.append(former[0])


def gate_symbols(
    handle: GateHandle,
    function: object,
    *,
    gate_symbol: str = "gate",
    raise_failure: Callable[..., Any],
    state: object = None,
    warn: Callable[..., object] | None = None,
) -> dict[str, int]:
    """Addresses of everything that is this gate's own; the objects are kept by the handle.

    Parameters
    ----------
    handle : of the gate that is being loaded
    function : the Python function whose globals and closure hidden arguments are read from
    raise_failure : see the head of this file
    state : what the context's STATE is at the beginning of a call, if the gate was made with `has_state`
    warn : called with a call's arguments if it has set floating-point flags, if the gate was made with `warns`

    Raises
    ------
    NotPortable
        A hidden argument is read from a module that is not imported.
    """
    found: dict[str, int] = {}
    kept = handle._kept

    def name(suffix: str, value: object) -> None:
        kept.append(value)
        found[f"{gate_symbol}.{suffix}"] = id(value)

    def looked_up(index: int, *namespaces: dict[str, Any]) -> None:
        """What hidden argument `index` was when it was last looked up in a dict, or in one and then in another."""
        tags = own_tag_address(namespaces[0]), own_tag_address(namespaces[-1])
        words = (ctypes.c_uint64 * 5)(*tags, _NEVER, _NEVER)
        kept.append(words)
        found[f"{gate_symbol}.looked_up.{index}"] = ctypes.addressof(words)

    for place, way in enumerate(("next", "slow")):
        found[f"{gate_symbol}.{way}"] = ctypes.addressof(handle._cells) + 8 * place
    found[f"{gate_symbol}.threads"] = ctypes.addressof(handle._threads)
    found[f"{gate_symbol}.left"] = ctypes.addressof(handle._left)
    found[f"{gate_symbol}.flags"] = ctypes.addressof(handle._flags)
    found[f"{gate_symbol}.small"] = handle.small.address
    for place, address in enumerate(handle.versions.addresses):
        found[f"{gate_symbol}.tag.{place}"] = address
        found[f"{gate_symbol}.known.{place}"] = ctypes.addressof(handle.versions.known) + 8 * place
    name("warn", warn)
    name("raise_failure", raise_failure)
    name("is_opaque", is_opaque)
    name("code_points", code_points)
    if state is not None:
        name("state", state)
    python: Any = function
    if isinstance(function, types.FunctionType):
        name("globals", python.__globals__)
        name("builtins", python.__builtins__)
    signature = handle.signature
    for index, hidden in enumerate(signature.hidden):
        holder = variable_of(hidden.source)
        for place, field in enumerate(hidden.source[len(holder) :]):
            name(f"name.{index}.{place}", _name_object(str(field)))
        if isinstance(hidden.spec, StaticSpec) and hidden.source[-1] == KEYS:
            name(f"keys.{index}", hidden.spec.value)
        match holder:
            case ("global", str() as variable):
                name(f"name.{index}", sys.intern(variable))
                looked_up(index, python.__globals__, python.__builtins__)
            case ("cell", int() as cell):
                assert isinstance(function, types.FunctionType) and function.__closure__ is not None
                name(f"cell.{index}", function.__closure__[cell])
            case ("attribute", str() as module, str() as variable):
                if module not in sys.modules:
                    raise NotPortable(f"module {module} is not imported")
                name(f"module.{index}", sys.modules[module].__dict__)
                name(f"name.{index}", sys.intern(variable))
                looked_up(index, sys.modules[module].__dict__)
            case ("field" | "method", int(), *names):
                for place, attribute in enumerate(names):
                    name(f"name.{index}.{place}", _name_object(str(attribute)))
            case ("apart", *paths):
                for place, part in enumerate(paths):
                    if isinstance(part, str):
                        name(f"name.{index}.{place}", _name_object(part))
            case ("class", str() as module, str() as qualname, str() as variable):
                (namespace,) = gc.get_referents(vars(class_named(module, qualname)))  # what the proxy stands for
                name(f"module.{index}", namespace)
                name(f"name.{index}", sys.intern(variable))
                looked_up(index, namespace)
        for suffix, value in _objects(hidden.spec, f"hidden.{index}"):
            name(suffix, value)
    for index, spec in enumerate(signature.params):
        for suffix, value in _objects(spec, str(index)):
            name(suffix, value)
    for leaf in result_leaves(handle.result):
        if leaf.unit:
            name(f"unit.{leaf.index}", np.dtype(leaf.unit))
    for suffix, value in _result_objects(handle.result, "0"):
        name(suffix, value)
    return found


def _name_object(name: str) -> object:
    """What a field is found by: an attribute's name, a dict's key, or a function."""
    if is_derived(name) and not is_of_times(name):
        return getter_of(name)
    if name == RANDOM_STATE:
        from parakeet_py.signature.random_states import state_of

        return state_of
    if is_item(name) and name != KEYS:
        key = key_of(name)
        return sys.intern(key) if isinstance(key, str) else key
    return sys.intern(name)


def _objects(spec: Spec, path: str) -> Iterator[tuple[str, object]]:
    """The types and static values a spec mentions, by the names `gate_ir` gives them."""
    match spec:
        case ObjectSpec():
            yield f"type.{path}", spec.type
        case TextSpec():
            yield f"type.{path}", str
        case StaticSpec():
            yield from _static_objects(spec.value, path)
        case TupleSpec():
            for index, item in enumerate(spec.items):
                yield from _objects(item, f"{path}.{index}")
        case FunctionSpec():
            yield f"code.{path}", spec.code
            yield f"globals.{path}", spec.globals
            for index, item in enumerate((*spec.cells, *spec.defaults)):
                yield from _objects(item, f"{path}.{index}")


def _static_objects(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, tuple) and type(value) is tuple:
        for index, item in enumerate(value):
            yield from _static_objects(item, f"{path}.{index}")
    else:
        yield f"value.{path}", value


def _result_objects(tree: Result, path: str) -> Iterator[tuple[str, object]]:
    match tree:
        case ResultStatic():
            yield f"result.{path}", tree.value
        case ResultEither():
            for index, choice in enumerate(tree.choices):
                yield from _result_objects(choice, f"{path}.{index}")
        case ResultRows(items):
            yield from _result_objects(items, f"{path}.items")
        case ResultTuple():
            if isinstance(tree.type, SetAttributes):
                yield from (
                    (f"result.{path}.name{place}", _name_object(name))
                    for place, (_, name) in enumerate(tree.type.names)
                )
            elif isinstance(tree.type, Assembled):
                yield f"result.{path}", tree.type.function(len(tree.items))
            elif tree.type is not None:
                yield f"result.{path}", tree.type
            for index, item in enumerate(tree.items):
                yield from _result_objects(item, f"{path}.{index}")


def _title(function: object, signature: Signature) -> Title | None:
    """What profilers call the code by, if that is wanted."""
    if not perf_symbols.wanted() or not isinstance(function, types.FunctionType):
        return None
    parameters = ", ".join(map(describe_spec, signature.params))
    code = function.__code__
    return Title(f"{function.__qualname__}({parameters})", code.co_filename, code.co_firstlineno)


def load_gate(
    object_bytes: bytes,
    signature: Signature,
    result: Result,
    function: object,
    *,
    raise_failure: Callable[..., Any],
    following: GateHandle | Callable[..., Any],
    gate_symbol: str = "gate",
    external: Mapping[str, int] | None = None,
    state: object = None,
    threads: int = 0,
    warn: Callable[..., object] | None = None,
    reads: Sequence[Read] = (),
    checked: bool = False,
    budget: int = 0,
) -> GateHandle:
    """Load object code that holds a gate, fresh or from the disk cache.

    Parameters
    ----------
    object_bytes : compiled from a module with the text of `gate_ir(signature, result, ...)`
    following : what takes the calls that are not this signature's
    external : further addresses the object needs (the entry, if it is elsewhere); the runtime's are known
    threads : threads a parallel region may use; 0: as many as the settings say
    reads : names of modules that must not have been replaced
    checked : the code was made to check what it does to memory
    budget : nanoseconds that calls of quick code may take
    others : see `gate_symbols`

    Raises
    ------
    LoadError
        The object is malformed or needs a symbol that is not known.
    """
    shared = boxing.support(checked)
    handle = GateHandle(signature, result)
    handle._threads.value = threads
    handle._versions = Versions(reads)
    handle._left.value = budget
    own = gate_symbols(handle, function, gate_symbol=gate_symbol, raise_failure=raise_failure, state=state, warn=warn)
    handle.follow(following)
    handle.leave_to(following)
    known = {**shared, **own, **(external or {})}
    handle.code = runtime(checked).load(object_bytes, [gate_symbol], known, _title(function, signature))
    handle.address = handle.code[gate_symbol]
    return handle
