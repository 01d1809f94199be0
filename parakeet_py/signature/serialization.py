"""Signatures and result trees as JSON, for the disk cache.

Specs are plain data but for what they mention by identity: modules, functions, types and dtypes. Those are written by
name and found again by importing. What another process could not find that way (a function defined inside another, a
lambda, a module that was never in `sys.modules`) raises `NotPortable`, and its specialization is not cached.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import numpy as np

from parakeet_py.base.foreign_code import native_functions
from parakeet_py.signature import enums
from parakeet_py.signature.object_assembly import Assembled, ContainerT, LeafT, StaticT
from parakeet_py.signature.results import (
    NewInstance,
    OfUnit,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultRows,
    ResultStatic,
    ResultTuple,
    SetAttributes,
    SetColumns,
)
from parakeet_py.signature.specs import (
    ArraySpec,
    HiddenSpec,
    ListSpec,
    NoneSpec,
    ObjectSpec,
    RecordsSpec,
    ScalarSpec,
    Signature,
    StaticSpec,
    TextSpec,
    TimesSpec,
    TupleSpec,
)

Json = Any


class NotPortable(ValueError):
    """A spec mentions an object that another process could not find by name."""


_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        ArraySpec,
        ScalarSpec,
        NoneSpec,
        StaticSpec,
        ObjectSpec,
        ListSpec,
        TextSpec,
        TimesSpec,
        RecordsSpec,
        TupleSpec,
        HiddenSpec,
        Signature,
        ResultLeaf,
        ResultStatic,
        ResultTuple,
        ResultEither,
        ResultListOf,
        ResultRows,
        SetAttributes,
        SetColumns,
        NewInstance,
        OfUnit,
        LeafT,
        StaticT,
        ContainerT,
        Assembled,
    )
}


def register(*classes: type) -> None:
    """Let records of more classes be written."""
    for cls in classes:
        if _CLASSES.setdefault(cls.__name__, cls) is not cls:
            raise ValueError(f"two classes of records are called {cls.__name__}")


def to_json(node: Any) -> Json:
    """A JSON value from which `from_json` makes an equal object.

    Raises
    ------
    NotPortable
        a static value or a type cannot be found by name (for instance a function defined inside another).
    """
    return {"is": type(node).__name__} | {
        name: value_to_json(getattr(node, name)) for name in node.__dataclass_fields__
    }


def from_json(data: Json) -> Any:
    """The inverse of `to_json`; modules are imported as needed. Raises `NotPortable` when a name no longer resolves."""
    cls = _CLASSES[data["is"]]
    return cls(**{name: value_from_json(data[name]) for name in cls.__dataclass_fields__})


def objects_in(data: Json) -> list[Any]:
    """What is mentioned by name in a JSON value, in order, each object once."""
    match data:
        case {"object": [str() as module, str() as name], **rest} if not rest:
            return [_resolve(module, name)]
        case dict():
            found = [one for item in data.values() for one in objects_in(item)]
        case list():
            found = [one for item in data for one in objects_in(item)]
        case _:
            return []
    return list({id(one): one for one in found}.values())


def value_to_json(value: object) -> Json:
    """`to_json` of a value in a record."""
    kind = type(value)
    if _CLASSES.get(kind.__name__) is kind:
        return to_json(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float) and kind is float:
        return {"float": repr(value)}
    if isinstance(value, complex) and kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, tuple) and kind is tuple:
        return {"tuple": [value_to_json(item) for item in value]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if native_functions.is_dispatcher(kind):
        raise NotPortable(f"a {type(value).__name__} has code of this process")
    if isinstance(value, types.ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise NotPortable(f"module {value.__name__} is not in sys.modules")
        return {"module": value.__name__}
    if enums.is_member(value):
        return {"member": [*_name_of(kind), value.name, value_to_json(value.value)]}  # type: ignore[attr-defined]
    if isinstance(value, np.dtype) and np.dtype(value.str) == value:
        if np.dtype(value.str) is not value:
            raise NotPortable(f"a copy of dtype {value}")
        return {"dtype": value.str}
    return {"object": _name_of(value)}


_IN_TYPES = {id(one): name for name, one in vars(types).items() if isinstance(one, type)}
"""By `id`, the names of the interpreter's own types, such as that of methods of lists, which no other module has."""


def _name_of(value: object) -> list[str]:
    kind = type(value)
    if hasattr(kind, "__getattr__") and not kind.__module__.startswith(("parakeet_py.", "enum", "numpy")):
        raise NotPortable(f"a {kind.__name__} may run a method when it is asked for its name")
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if isinstance(value, np.ufunc):
        module, name = module or "numpy", value.__name__
    if not isinstance(name, str) or not isinstance(module, str):
        raise NotPortable(f"a {type(value).__name__} has no name")  # its text may be what a user's method makes
    try:
        found = _resolve(module, name)
    except NotPortable:
        found = None
    if found is not value and id(value) in _IN_TYPES:
        return ["types", _IN_TYPES[id(value)]]
    if found is not value:
        raise NotPortable(f"a {type(value).__name__} is not what {module}.{name} names")
    return [module, name]


def _resolve(module: str, name: str) -> object:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise NotPortable(f"{module}.{name}: {error}") from error
    return found


def value_from_json(data: Json) -> Any:
    """The inverse of `value_to_json`."""
    if not isinstance(data, dict):
        return data
    match data:
        case {"is": _}:
            return from_json(data)
        case {"float": text}:
            return float(text)
        case {"complex": [real, imag]}:
            return complex(float(real), float(imag))
        case {"tuple": items}:
            return tuple(value_from_json(item) for item in items)
        case {"ellipsis": _}:
            return Ellipsis
        case {"module": name}:
            try:
                return importlib.import_module(name)
            except ImportError as error:
                raise NotPortable(str(error)) from error
        case {"member": [module, name, member, held]}:
            found: Any = getattr(_resolve(module, name), "__members__", {}).get(member)
            if not enums.is_member(found) or value_to_json(found.value) != held:
                raise NotPortable(f"{module}.{name}.{member} is another member")
            return found
        case {"dtype": text}:
            return np.dtype(text)
        case {"object": [module, name]}:
            return _resolve(module, name)
    raise ValueError(f"not an encoded value: {data!r}")
