"""Specializations on disk: a second process runs a known function without compiling, or even importing the compiler.

Two entries make a specialization. The first, under the function's code, holds what the compiler has learned about the
function (which globals it reads, which parameters decide types): with it the signature of a call can be formed. The
second, under the code and that signature, holds the object code with all that is needed to load it: how results are
boxed and what a failed check raises.

A function is named by its bytecode, constants and names, and by the places of its lines, which messages and operations
handed back to Python mention: another function, or another version of it, is another key. Functions it calls are hidden
arguments of the signature, and enter the key by their own code, defaults and closures, and classes by what they hold.
What cannot be named that way (a callable object, a class instance) makes a specialization that is not kept.
What operations handed back to Python gave is more to know: see `handed_back_cache`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.base import extensions
from parakeet_py.base.frames.tracebacks import TraceEntry
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.results import Result
from parakeet_py.signature.serialization import NotPortable, from_json, to_json
from parakeet_py.signature.specs import FunctionSpec, Signature, Spec, StaticSpec, TupleSpec

if TYPE_CHECKING:
    from parakeet_py.llvm.engine.disk_cache import Entry

FORMAT = 7


class FailureText(NamedTuple):
    """What a status code raises: a builtin exception's name, a message template, how its arguments are read (i, f),
    the place in the user's source with an excerpt of it, and the entries of a traceback that ends there."""

    exception: str
    message: str
    formats: str
    place: str
    trace: tuple[TraceEntry, ...]

    @property
    def for_python(self) -> bool:
        """Is this no exception of the user's, but something that compiled code cannot do?"""
        from parakeet_py.typed_ir.semantics import OVERFLOW

        return self.exception == "Deoptimize" or self.message == OVERFLOW


class Tier(NamedTuple):
    """What quick code takes: calls for so many nanoseconds, whose ints and extents are at most these, by their slots
    (see `dispatch.tiers`)."""

    budget: int
    limits: dict[int, int]


class Native(NamedTuple):
    """All that is needed to run a specialization: object code and what stands around it.

    If it is `guarded`, the code is for the usual extents only, and its gate lets other calls pass. If it is `quick`, it
    is not optimised.
    """

    object_bytes: bytes
    signature: Signature
    result: Result
    failures: tuple[FailureText, ...]
    symbols: tuple[str, ...]
    guarded: bool = False
    quick: Tier | None = None


def code_parts(code: CodeType, places: bool = True) -> tuple[object, ...]:
    """What identifies a function's code across processes; `places`: with where it is in which file."""
    constants = tuple(
        code_parts(item, places) if isinstance(item, CodeType) else _constant(item) for item in code.co_consts
    )
    parts = (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_name,
    )
    return (*parts, code.co_filename, code.co_firstlineno, code.co_linetable) if places else parts


def _constant(value: object) -> object:
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, value)))
    if value is Ellipsis:
        return ("Ellipsis",)
    if isinstance(value, tuple):
        return ("tuple", *(_constant(item) for item in value))
    if isinstance(value, slice):  # from Python 3.14 on
        return ("slice", *map(_constant, (value.start, value.stop, value.step)))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    raise NotPortable(f"a constant {value!r}")


def _spec_parts(spec: Spec) -> object:
    """A spec in a key: functions and classes by what they are made of, everything else as its JSON."""
    match spec:
        case StaticSpec(value) if not isinstance(value, tuple):
            return value_parts(value, ())
        case TupleSpec(items, kind):
            return (kind, *(_spec_parts(item) for item in items))
        case FunctionSpec(code, namespace, cells, defaults):
            module = str(namespace.get("__name__"))
            if getattr(sys.modules.get(module), "__dict__", None) is not namespace:
                raise NotPortable(f"the globals of {code.co_qualname} are of no module")
            held = tuple(_spec_parts(item) for item in (*cells, *defaults))
            return ("function", module, code.co_qualname, code_parts(code), len(cells), held)
    return repr(to_json(spec))


def value_parts(value: object, inside: tuple[object, ...]) -> object:
    """What a value that compiled code may depend on is made of; `inside` are the functions and classes around it."""
    if isinstance(value, tuple):
        return ("tuple", type(value).__qualname__, *(value_parts(item, inside) for item in value))
    target: Any = value if isinstance(value, type) else getattr(value, "__wrapped__", value)
    if any(target is other for other in inside):
        return ("itself", target.__qualname__)
    if isinstance(target, FunctionType) and not _of_numpy(target):
        return _function_parts(target, (*inside, target))
    if type(value) is property:
        return ("property", *(value_parts(one, inside) for one in (value.fget, value.fset, value.fdel)))
    if isinstance(value, type) and not _of_numpy(value):
        return _class_parts(value, (*inside, value))
    return repr(to_json(StaticSpec(value)))


def _of_numpy(value: Any) -> bool:
    return (value.__module__ or "").partition(".")[0] in ("builtins", "numpy")


def _function_parts(function: FunctionType, inside: tuple[object, ...]) -> tuple[object, ...]:
    """A function called by the one that is compiled: its code, its defaults, and the functions it closes over."""
    if function.__code__.co_filename == "<string>" and function.__code__.co_qualname.startswith("__create_fn__."):
        return ("of a dataclass", function.__qualname__, code_parts(function.__code__))  # the fields are in the class
    named = sorted((function.__kwdefaults__ or {}).items())
    cells: list[object] = []
    for cell in function.__closure__ or ():
        try:
            cells.append(value_parts(cell.cell_contents, inside))
        except ValueError:
            cells.append(("empty",))
    return (
        "function",
        function.__module__,
        function.__qualname__,
        code_parts(function.__code__),
        tuple(value_parts(default, inside) for default in function.__defaults__ or ()),
        tuple((name, value_parts(default, inside)) for name, default in named),
        tuple(cells),
    )


def _class_parts(cls: type, inside: tuple[object, ...]) -> tuple[object, ...]:
    """A class of the user's: what its methods and constants are; other things in it only by their type."""
    parts: list[object] = []
    for name, value in sorted(vars(cls).items()):
        try:
            part = value_parts(value, inside)
        except NotPortable:
            part = ("a", type(value).__module__, type(value).__qualname__)
        if name == "__dataclass_fields__":
            part = tuple(_field_parts(item, inside) for item in value.values())
        elif name == "__dataclass_params__":
            part = repr(value)
        elif isinstance(value, dict):
            part = tuple((str(key), value_parts(item, inside)) for key, item in value.items())
        if name not in ("__dict__", "__weakref__", "__doc__", "__annotations__"):
            parts.append((name, part))
    bases = tuple(value_parts(base, inside) for base in cls.__bases__)
    return ("class", cls.__module__, cls.__qualname__, bases, tuple(parts))


def _field_parts(field: Any, inside: tuple[object, ...]) -> tuple[object, ...]:
    """A field of a dataclass: its default, and what it is for."""
    given = [one if one is not MISSING else Ellipsis for one in (field.default, field.default_factory)]
    uses = (field.init, field.compare, field.kw_only, repr(field._field_type))
    return (field.name, *(value_parts(one, inside) for one in given), *uses)


def _knowledge_key(function: FunctionType) -> str:
    from parakeet_py.llvm.engine.disk_cache import digest

    own = code_parts(function.__code__)
    return digest("knowledge", FORMAT, function.__module__, function.__qualname__, own, _registered())


def _registered() -> tuple[object, ...]:
    """The bodies that users have registered, by what they are made of."""
    return tuple((name, value_parts(body, ())) for name, body in extensions.bodies())


def object_key(function: FunctionType, signature: Signature, flags: Sequence[object], what: str = "object") -> str:
    """The key of a specialization, or of `what` else is kept for it.

    Raises
    ------
    NotPortable
        The signature mentions what another process could not find.
    """
    from parakeet_py.llvm.engine.disk_cache import digest

    hidden = tuple((*map(str, one.source), _spec_parts(one.spec)) for one in signature.hidden)
    params = tuple(_spec_parts(spec) for spec in signature.params)
    return digest(
        what,
        FORMAT,
        code_parts(function.__code__),
        _registered(),
        params,
        hidden,
        signature.disjoint,
        signature.pairs,
        tuple(flags),
    )


def is_kept(function: FunctionType, signature: Signature, flags: Sequence[object], what: str) -> bool:
    """Whether there is a file of what is kept for a specialization: most have none of what is `observed`."""
    from parakeet_py.llvm.engine.disk_cache import has_entry

    try:
        return has_entry(object_key(function, signature, flags, what))
    except NotPortable:
        return False


def load_knowledge(function: FunctionType) -> dict[str, Any] | None:
    """What an earlier process has learned about the function."""
    from parakeet_py.llvm.engine.disk_cache import load_entry

    try:
        entry = load_entry(_knowledge_key(function))
    except NotPortable:
        return None
    return None if entry is None else entry.metadata


def load(function: FunctionType, signature: Signature, flags: Sequence[object]) -> Native | None:
    """The specialization of a signature, if an earlier process has left it."""
    from parakeet_py.llvm.engine.disk_cache import load_entry

    try:
        entry = load_entry(object_key(function, signature, flags))
        return None if entry is None else native_of(entry, signature)
    except (NotPortable, KeyError, TypeError, ValueError):
        return None


def native_of(entry: Entry, signature: Signature) -> Native:
    """The specialization in an entry; raises `KeyError`, `TypeError` or `ValueError` if it is of no known form."""
    data = entry.metadata
    pairs = tuple((i, j) for i, j in data["pairs"])
    relaxed = Signature(signature.params, signature.hidden, bool(data["disjoint"]), pairs)
    failures = tuple(
        FailureText(name, message, code, place, tuple(TraceEntry(*one) for one in trace))
        for name, message, code, place, trace in data["failures"]
    )
    symbols = tuple(data["symbols"])
    quick = data["quick"]
    tier = Tier(int(quick[0]), {int(slot): int(limit) for slot, limit in quick[1]}) if quick else None
    return Native(entry.payload, relaxed, from_json(data["result"]), failures, symbols, bool(data["guarded"]), tier)


def metadata_of(native: Native) -> dict[str, Any]:
    """What stands beside the object code in an entry; `native_of` reads it."""
    return {
        "disjoint": native.signature.disjoint,
        "pairs": [list(pair) for pair in native.signature.pairs],
        "result": to_json(native.result),
        "failures": [[*failure[:-1], [list(entry) for entry in failure.trace]] for failure in native.failures],
        "symbols": list(native.symbols),
        "guarded": native.guarded,
        "quick": native.quick and [native.quick.budget, list(native.quick.limits.items())],
    }


def store(function: FunctionType, signature: Signature, flags: Sequence[object], native: Native) -> None:
    """Keep a specialization for other processes. `signature` is that of the call, before it was relaxed."""
    from parakeet_py.llvm.engine.disk_cache import put

    with suppress(NotPortable):
        key = object_key(function, signature, flags)
        put(key, native.object_bytes, metadata_of(native), title_of(function, signature))


def title_of(function: FunctionType, signature: Signature) -> str:
    """What a specialization is, as text to be read."""
    return f"{function.__module__}.{function.__qualname__}({', '.join(map(describe_spec, signature.params))})"


def store_knowledge(function: FunctionType, knowledge: dict[str, Any]) -> None:
    """Keep what has been learned about the function, if another process has not done so."""
    from parakeet_py.llvm.engine.disk_cache import put

    with suppress(NotPortable):
        if load_knowledge(function) != knowledge:
            put(
                _knowledge_key(function),
                b"",
                knowledge,
                f"{function.__module__}.{function.__qualname__}: what it reads",
            )
