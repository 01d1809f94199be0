"""`@record`: slotted data classes that are cheap to define, frozen by default.

The IRs have over a hundred small classes, and a function that has not been compiled before cannot run until they are
all defined. `dataclasses.dataclass(frozen=True, slots=True)` takes about a millisecond for each, most of it spent
compiling methods one by one and making the class twice. `record` gives the same thing (`__init__`, `__eq__`,
`__hash__`, `__repr__`, `__match_args__`, `dataclasses.fields` and `replace`) for a fraction of that: one compilation
for all classes with so many fields, all other methods shared.

Fields are the annotations of the class in order, after those of its bases; a default is a value, or
`dataclasses.field(default=..., default_factory=..., init=..., repr=..., compare=...)`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, frozen: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: Any = None, /, *, eq: bool = True, frozen: bool = True) -> Any:
    """Make a class a slotted record. With ``eq=False`` identity is equality; with ``frozen=False`` fields may change
    (and records that are compared by their fields have no hash)."""
    return _make(cls, eq, frozen) if cls is not None else lambda target: _make(target, eq, frozen)


def _make(cls: type, eq: bool, frozen: bool) -> type:
    inherited: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited.update(base.__dict__.get("__dataclass_fields__", {}))
    given = cls.__dict__
    own = {name: _field(name, kind, given) for name, kind in given.get("__annotations__", {}).items()}
    fields = {**inherited, **own}
    initialized = {name: field for name, field in fields.items() if field.init}
    namespace = {
        **(_METHODS_OF_FROZEN if frozen else _METHODS),
        **{name: value for name, value in given.items() if name not in own},
        "__slots__": tuple(own),
        "__dataclass_fields__": fields,
        "__match_args__": tuple(initialized),
        "__qualname__": cls.__qualname__,
    }
    for unwanted in ("__dict__", "__weakref__"):
        namespace.pop(unwanted, None)
    if eq:  # equality and hash go through one getter of the compared fields
        compared = [name for name, field in fields.items() if field.compare]
        namespace["_key"] = operator.attrgetter(*compared) if compared else staticmethod(_nothing)
        for name, method in (("__eq__", _eq), ("__hash__", _hash if frozen else None)):
            if namespace.get(name) is None:
                namespace[name] = method
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    _add_init(made, initialized)
    return made


def _field(name: str, kind: Any, namespace: Mapping[str, Any]) -> dataclasses.Field[Any]:
    default = namespace.get(name, dataclasses.MISSING)
    field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
    field.name, field.type, field._field_type = name, kind, _FIELD
    return field  # type: ignore[no-any-return]


def _add_init(made: type, fields: dict[str, dataclasses.Field[Any]]) -> None:
    setters = [getattr(made, name).__set__ for name in fields]
    factories = [field.default_factory for field in fields.values()]
    makes_default = tuple(factory is not dataclasses.MISSING for factory in factories)
    ends = hasattr(made, "__post_init__")
    init: Any = _template(makes_default, ends)(dataclasses.MISSING, *setters, *factories)
    init.__code__ = init.__code__.replace(co_varnames=("self", *fields))
    init.__defaults__ = _defaults(made, fields)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    made.__init__ = init  # type: ignore[misc]


def _defaults(made: type, fields: dict[str, dataclasses.Field[Any]]) -> tuple[Any, ...]:
    """Defaults of the last parameters; one from a factory is `MISSING` until the call."""
    found: list[Any] = []
    for name, field in fields.items():
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING:
            found.append(field.default)
        elif found:
            raise TypeError(f"{made.__name__}.{name} follows fields with defaults and has none")
    return tuple(found)


@functools.cache
def _template(makes_default: tuple[bool, ...], ends: bool) -> Callable[..., Any]:
    """What makes the `__init__` of classes of so many fields, all but the names of its parameters."""
    count = range(len(makes_default))
    outer = ", ".join(["missing", *(f"set{k}" for k in count), *(f"make{k}" for k in count)])
    body = [
        f"  set{k}(self, make{k}() if a{k} is missing else a{k})" if makes_default[k] else f"  set{k}(self, a{k})"
        for k in count
    ]
    if ends:
        body.append("  self.__post_init__()")
    inner = f" def __init__({', '.join(['self', *(f'a{k}' for k in count)])}):"
    scope: dict[str, Any] = {}
    exec("\n".join([f"def make({outer}):", inner, *(body or ["  pass"]), " return __init__"]), scope)
    made: Callable[..., Any] = scope["make"]
    return made


def _nothing(self: Any) -> None:
    return None


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    key = self._key  # an attrgetter, not a method
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(self._key(self))


def _frozen(self: Any, name: str, *value: Any) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _repr(self: Any) -> str:
    shown = [name for name, field in self.__dataclass_fields__.items() if field.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        getattr(type(self), name).__set__(self, value)


_METHODS = {"__repr__": _repr, "__getstate__": _getstate, "__setstate__": _setstate}
_METHODS_OF_FROZEN = {**_METHODS, "__setattr__": _frozen, "__delattr__": _frozen}
