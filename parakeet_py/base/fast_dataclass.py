"""`@record`: slotted data classes that are cheap to define, frozen by default.

The IRs have over a hundred small classes, and a function that has not been compiled before cannot run until they are
all defined. `dataclasses.dataclass(frozen=True, slots=True)` takes about a millisecond for each, most of it spent
compiling methods one by one and making the class twice. `record` gives the same thing (`__init__`, `__eq__`,
`__hash__`, `__repr__`, `__match_args__`, `dataclasses.fields` and `replace`) for a fraction of that: one compilation
for all classes with so many fields, at the first instance of one; all other methods shared.

That fields of frozen records are not assigned is what the type checker sees to. Where `PARAKEET_CHECK` is set, as in
the tests, such assignments raise, too: records take twice as long to make then.

Fields are the annotations of the class in order, after those of its bases; a default is a value, or
`dataclasses.field(default=..., default_factory=..., init=..., repr=..., compare=...)`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_KIND = dataclasses._FIELD  # type: ignore[attr-defined]


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
    if eq:
        for name, method in (("__eq__", _first_eq), ("__hash__", _first_hash if frozen else None)):
            if namespace.get(name) is None:
                namespace[name] = method
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _first_init(made, initialized, _defaults(made, initialized))  # type: ignore[misc]
    return made


def _field(name: str, kind: Any, namespace: Mapping[str, Any]) -> dataclasses.Field[Any]:
    default = namespace.get(name, dataclasses.MISSING)
    field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
    field.name, field.type, field._field_type = name, kind, _KIND
    return field  # type: ignore[no-any-return]


def _first_init(made: type, fields: dict[str, dataclasses.Field[Any]], defaults: tuple[Any, ...]) -> Any:
    """Makes the `__init__` of a class when there is a first instance, as of many there is none; until then
    `inspect.signature` knows nothing of its parameters."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _add_init(made, fields, defaults)
        made.__init__(self, *args, **kwargs)  # type: ignore[misc]

    return __init__


def _add_init(made: type, fields: dict[str, dataclasses.Field[Any]], defaults: tuple[Any, ...]) -> None:
    factories = [field.default_factory for field in fields.values()]
    makes_default = tuple(factory is not dataclasses.MISSING for factory in factories)
    ends = hasattr(made, "__post_init__")
    enforced = made.__setattr__ is _frozen
    setters = [getattr(made, name).__set__ for name in fields] if enforced else []
    init: Any = _template(makes_default, ends, enforced)(dataclasses.MISSING, *setters, *factories)
    names = init.__code__.co_names
    names = names if enforced else (*fields, *names[len(fields) :])
    init.__code__ = init.__code__.replace(co_varnames=("self", *fields), co_names=names)
    init.__defaults__ = defaults
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
def _template(makes_default: tuple[bool, ...], ends: bool, enforced: bool) -> Callable[..., Any]:
    """What makes the `__init__` of classes of so many fields, all but the names of its parameters and of the fields.

    Where it is `enforced` that fields do not change, the descriptors of the slots store them.
    """
    count = range(len(makes_default))
    setters = [f"set{k}" for k in count] if enforced else []
    outer = ", ".join(["missing", *setters, *(f"make{k}" for k in count)])
    body = []
    for k in count:
        value = f"make{k}() if a{k} is missing else a{k}" if makes_default[k] else f"a{k}"
        body.append(f"  set{k}(self, {value})" if enforced else f"  self.{_FIELD}{k} = {value}")
    if ends:
        body.append("  self.__post_init__()")
    inner = f" def __init__({', '.join(['self', *(f'a{k}' for k in count)])}):"
    scope: dict[str, Any] = {}
    exec("\n".join([f"def make({outer}):", inner, *(body or ["  pass"]), " return __init__"]), scope)
    made: Callable[..., Any] = scope["make"]
    return made


_FIELD = "_field_"  # and the number of the field, in templates
_EQ = """
def __eq__(self, other):
    if other.__class__ is not self.__class__:
        return NotImplemented
    return {self} == {other}
"""
_HASH = """
def __hash__(self):
    return hash({self})
"""


def _first_eq(self: Any, other: Any) -> Any:
    """Makes the method of a class when it is first called, as that of most never is."""
    self.__class__.__eq__ = _of_fields(_EQ, self.__class__)
    return self.__eq__(other)


def _first_hash(self: Any) -> int:
    self.__class__.__hash__ = _of_fields(_HASH, self.__class__)
    return hash(self)


def _of_fields(source: str, cls: type) -> Any:
    """A method that is about the compared fields of a class, from one for all classes that have so many of them."""
    fields = [field.name for field in dataclasses.fields(cls) if field.compare]
    made = _method(source, len(fields))
    names = [fields[int(name.removeprefix(_FIELD))] if _FIELD in name else name for name in made.__code__.co_names]
    return types.FunctionType(made.__code__.replace(co_names=tuple(names)), made.__globals__)


@functools.cache
def _method(source: str, count: int) -> types.FunctionType:
    def shown(name: str) -> str:
        parts = [f"{name}.{_FIELD}{k}" for k in range(count)]
        return f"({', '.join(parts)},)" if count != 1 else parts[0]

    scope: dict[str, Any] = {}
    exec(source.format(self=shown("self") if count else "()", other=shown("other") if count else "()"), scope)
    made: types.FunctionType = next(one for one in scope.values() if isinstance(one, types.FunctionType))
    return made


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
_ENFORCED = os.environ.get("PARAKEET_CHECK", "0") not in ("", "0")
_METHODS_OF_FROZEN = {**_METHODS, "__setattr__": _frozen, "__delattr__": _frozen} if _ENFORCED else _METHODS
