"""Attributes of objects that a function reads as it reads its arguments.

`self.k` in a method is a hidden argument: the value is taken from the object at every call, and compiled code never
looks at the object. That is right for plain attributes, values that the instance or its class holds. Methods are read
likewise, through the class: the function is a hidden argument, and a call of it is a call of any other function.
Properties are functions too (`attributes` of the specializer). Other descriptors, classes that compute attributes, and
classes of C extensions are left to Python.

What global and closure variables hold has fields as well, which are read only; its methods are left to Python.

Items of dicts are fields too: of Python's own dicts, under keys that are texts or ints. A field's name says what it is,
an attribute or an item (`item_name`); `KEYS` names the tuple of all keys of a dict, in their order, `RANDOM_STATE` the
state of one of NumPy's random generators.

So are the fields of arrays of records (of a structured dtype): `p["x"]` is an array over the memory of `p`, its
*column* (`column_name`). `RECORDS` names an array with the shape and strides of the records themselves, whose elements
nothing reads, `FIELDS` the tuple of the names of all fields.

Times, arrays and scalars of datetime64 or timedelta64, are int64 underneath: `times_name` names the array over the
same memory, or the number, of one whose dtype this is.

Lists of many instances of one class have such columns, too: `OF_ONE_CLASS` names their class, `COUNT` how many there
are, and `attribute_column` the list of what all of them hold under a name. Where that are ints and floats, `AS_FLOATS`
names the list of all of them as floats, and `ARE_INTS` that of ones and zeros, which says of each whether it is an int.
Where the function assigns them, `ARE_APART` is True if all are different objects, and `IS_ASSIGNED` if setting the
attribute does no more than that; `IS_METHOD` if a method of all of them is that of the class; else there is no such
field.

Lists of many strings have the columns `TEXT_CODES`, the code points of all of them one after the other, and
`TEXT_ENDS`, where each begins, and the last ends.
"""

from __future__ import annotations

import itertools
import operator
import sys
import types
from _collections import _tuplegetter  # type: ignore[import-not-found]  # the fields of named tuples
from collections.abc import Callable
from typing import Any

import numpy as np

_ABSENT = object()
KEYS = "[*]"
SIZE = "#"  # as the name in a class: how many names it has
RANDOM_STATE = "<state>"
OF_NONE, OF_ARGUMENTS, OF_ALL = range(3)  # whose attributes a function may read as it reads its arguments
MAX_KEYS = 64  # of a dict whose keys are asked for
_PLACES = (types.MemberDescriptorType, _tuplegetter)  # descriptors that only say where in the instance the value is
_USUAL = (object.__getattribute__, tuple.__getattribute__)  # the same code in both
_HEAP_TYPE = 1 << 9  # made by a class statement
# What the two makers of named tuples, and class statements without special methods, leave in a class that acts.
_OF_NAMED_TUPLES = frozenset(
    ("__new__", "__repr__", "__getnewargs__", "__replace__", "__dict__", "__weakref__", "__annotate_func__")
)


def item_name(key: object) -> str | None:
    """The name of the field that a dict holds under a key; None for keys that are no fields."""
    if type(key) is str:
        return f"[s{key}"
    return f"[i{key}" if type(key) is int else None


def key_of(name: str) -> str | int:
    """The key of an item."""
    return name[2:] if name[1] == "s" else int(name[2:])


def is_item(name: str) -> bool:
    """Does a field's name stand for an item (or all keys) of a dict?"""
    return name.startswith("[")


RECORDS, FIELDS = "{", "}"


def column_name(field: str) -> str:
    """The name of a field of an array of records."""
    return RECORDS + field


def is_column(name: object) -> bool:
    """Is this the name of a column, or `RECORDS`?"""
    return isinstance(name, str) and name.startswith(RECORDS)


TIMES = "~"


def times_name(unit: str) -> str:
    """The name of the int64 that a time of a dtype, such as M8[ns], is."""
    return TIMES + unit


def is_of_times(name: object) -> bool:
    """Is this the name of what a time is?"""
    return isinstance(name, str) and name.startswith(TIMES)


def unit_of(value: Any) -> str:
    """The dtype of a time as it is written in signatures, such as M8[ns]; "" of other values, and of those of other
    byte order or without a unit."""
    if type(value) not in (np.ndarray, np.datetime64, np.timedelta64):
        return ""
    dtype = value.dtype
    return dtype.str[1:] if dtype.kind in "mM" and dtype.isnative and dtype.str[-1] == "]" else ""


def read_times(value: Any, name: str) -> Any:
    """The int64 that a time is; raises `AttributeError` if it is none of that dtype."""
    if unit_of(value) != name[1:]:
        raise AttributeError(name)
    return value.view(np.int64)


OF_ONE_CLASS = "|"
COUNT = "|#"
MANY = 4  # instances or strings that a list has at least, but one


AS_FLOATS, ARE_INTS, IS_ASSIGNED, IS_METHOD = "=", "?", "!", "&"
ARE_APART = OF_ONE_CLASS + IS_ASSIGNED
TEXT_CODES, TEXT_ENDS = OF_ONE_CLASS + "'codes", OF_ONE_CLASS + "'ends"
_PARTS = AS_FLOATS + ARE_INTS + IS_ASSIGNED + IS_METHOD
MOST_EXACT = 1 << 53  # ints up to this are floats


def attribute_column(name: str, part: str = "") -> str:
    """The name of what all items of a list hold under a name; or of ints and floats as floats, or which are ints; or of
    whether it is assigned plainly."""
    return OF_ONE_CLASS + part + name


def is_of_instances(name: object) -> bool:
    """Is this the name of something of a list of instances?"""
    return isinstance(name, str) and name.startswith(OF_ONE_CLASS)


def read_of_instances(value: Any, name: str) -> Any:
    """The class of the items of a list, their number, or what all of them hold under a name; raises `AttributeError`
    if it is no list of many instances of one plain class, or their attribute is none that is stored plainly."""
    if name in _OF_TEXTS:
        if type(value) is not list or len(value) <= MANY:
            raise AttributeError(name)
        return _OF_TEXTS[name](value)
    kinds = set(map(type, value)) if type(value) is list and len(value) > MANY else set()
    if len(kinds) != 1 or not is_plain(*kinds):
        raise AttributeError(name)
    if name == OF_ONE_CLASS:
        return kinds.pop()
    if name == COUNT:
        return len(value)
    if name != ARE_APART and name[1] != IS_METHOD and not holds_plainly(kinds.pop(), name[1:].lstrip(_PARTS)):
        raise AttributeError(name)
    found: list[Any] = getter_of(name)(value)
    return found


def is_derived(name: object) -> bool:
    """Is this the name of something that is made of a value: a column, what a time is, something of instances?"""
    return is_column(name) or name == FIELDS or is_of_instances(name) or is_of_times(name)


def getter_of(name: str) -> Callable[[Any], Any]:
    """What gives a column, or the array of `RECORDS`, or something of a list of instances."""
    if name == COUNT:
        return len
    if name == FIELDS:
        return _names_of_fields
    if name == OF_ONE_CLASS:
        return _class_of_items
    if name == ARE_APART:
        return _are_apart
    if name in _OF_TEXTS:
        return _OF_TEXTS[name]
    if is_of_instances(name):
        part = name[1] if name[1] in _PARTS else ""
        if part == IS_ASSIGNED:
            return lambda items: _is_assigned_plainly(items, name[2:])
        if part == IS_METHOD:
            return lambda items: _have_method_of_class(items, name[2:])
        read = operator.attrgetter(name[1 + len(part) :])
        if part:
            return lambda items: _of_two_types([*map(read, items)], part)
        return lambda items: [*map(read, items)]  # whose class has been looked at
    return operator.itemgetter(name[1:]) if name != RECORDS else _places


def _of_two_types(numbers: list[Any], part: str) -> list[Any]:
    """Ints and floats as floats, or which of them are ints; raises `AttributeError` if they are not of both types, or
    not all of the ints are floats."""
    kinds = [*map(type, numbers)]
    if {*kinds} != {int, float}:
        raise AttributeError(part)
    of_ints = [*map(operator.is_, kinds, itertools.repeat(int))]
    ints = [*itertools.compress(numbers, of_ints)]
    if max(ints) > MOST_EXACT or min(ints) < -MOST_EXACT:
        raise AttributeError(part)
    return [*map(float, numbers)] if part == AS_FLOATS else [*map(int, of_ints)]


def _codes_of_texts(items: list[str]) -> np.ndarray[Any, Any]:
    """The code points of strings; whether they are such `_ends_of_texts` says."""
    try:
        return _codes_of("".join(items))
    except TypeError:
        raise AttributeError(TEXT_CODES) from None


def _codes_of(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _ends_of_texts(items: list[str]) -> np.ndarray[Any, Any]:
    if {*map(type, items)} != {str}:
        raise AttributeError(TEXT_ENDS)
    count = len(items)
    ends = np.zeros(count + 1, np.int64)
    between = np.flatnonzero(_codes_of("\0".join(items)) == 0)  # in a quarter of the time that their lengths take
    if len(between) == count - 1:
        np.subtract(between, np.arange(count - 1), out=ends[1:-1])
        ends[-1] = ends[-2] + len(items[-1])
    else:
        np.cumsum([*map(len, items)], out=ends[1:])
    return ends


_OF_TEXTS: dict[str, Callable[[list[str]], Any]] = {TEXT_CODES: _codes_of_texts, TEXT_ENDS: _ends_of_texts}


def _are_apart(items: list[Any]) -> bool:
    if len({*map(id, items)}) != len(items):
        raise AttributeError(ARE_APART)
    return True


def _have_method_of_class(items: list[Any], name: str) -> bool:
    """Is a method of all items that of their class? An instance may have one of its own."""
    function = getattr(type(items[0]), name, None)
    if any(getattr(one, "__func__", one) is not function for one in map(operator.attrgetter(name), items)):
        raise AttributeError(name)
    return True


def _is_assigned_plainly(items: list[Any], name: str) -> bool:
    cls = type(items[0])
    if not (holds_plainly(cls, name) and stores_plainly(cls)):
        raise AttributeError(name)
    return True


def _class_of_items(items: list[Any]) -> Any:
    return read_of_instances(items, OF_ONE_CLASS)


def _places(records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(records).getfield(np.uint8)


def _names_of_fields(records: np.ndarray[Any, Any]) -> tuple[str, ...]:
    names: tuple[str, ...] | None = records.dtype.names if isinstance(records, np.ndarray) else None
    if names is None:
        raise AttributeError(FIELDS)
    return names


def read_column(value: Any, name: str) -> Any:
    """A column of an array of records, or the array of `RECORDS`; raises `AttributeError` where there is none."""
    if not isinstance(value, np.ndarray) or value.dtype.names is None:
        raise AttributeError(name)
    if value.dtype.hasobject if name == RECORDS else name[1:] not in value.dtype.names:
        raise AttributeError(name)
    return getter_of(name)(value)


_VARIABLES = {"global": 2, "cell": 2, "attribute": 3}


def variable_of(source: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The part of a source that says which variable is read; what follows are fields of what that holds."""
    return source[: _VARIABLES.get(str(source[0]), len(source))]


def of_arguments(source: tuple[str | int, ...]) -> bool:
    """Is a hidden argument read from an argument, or an object that a variable holds, which others need not have?"""
    return source[0] in ("field", "method", "apart") or len(variable_of(source)) < len(source)


def read_item(value: Any, name: str) -> Any:
    """What a dict holds under a key, or all its keys; raises `AttributeError` where there is no such field."""
    if type(value) is not dict:
        raise AttributeError(name)
    if name != KEYS:
        try:
            return value[key_of(name)]
        except KeyError:
            raise AttributeError(name) from None
    if len(value) > MAX_KEYS or any(item_name(key) is None for key in value):
        raise AttributeError(name)
    return tuple(value)


def store_field(value: Any, name: str, new: Any) -> None:
    """Let an object have an attribute, or a dict an item."""
    if is_item(name):
        value[key_of(name)] = new
    else:
        setattr(value, name, new)


def holds_plainly(cls: type, name: str) -> bool:
    """Would an attribute of this name be a value that the instance, or its class, holds?"""
    if is_item(name):
        return cls is dict
    if not is_plain(cls):
        return False
    found = in_class(cls, name)
    return found is _ABSENT or isinstance(found, _PLACES) or not hasattr(type(found), "__get__")


def is_plain(cls: type) -> bool:
    """Are attributes of instances looked up as `object` does it?"""
    made_by_statement = cls.__flags__ & _HEAP_TYPE and cls.__module__.partition(".")[0] not in ("numpy", "builtins")
    return bool(
        made_by_statement
        and any(in_class(cls, "__getattribute__") is usual for usual in _USUAL)
        and in_class(cls, "__getattr__") is _ABSENT
        and not issubclass(cls, type | types.ModuleType)
    )


def behaves_as_tuple(cls: type) -> bool:
    """Has a class of tuples no operator, iteration or attribute access of its own?"""
    held = [item for base in cls.__mro__[: cls.__mro__.index(tuple)] for item in vars(base).items()]
    own = {name for name, what in held if name.startswith("__") and (callable(what) or hasattr(what, "__get__"))}
    return own <= _OF_NAMED_TUPLES


def stores_plainly(cls: type) -> bool:
    """Does setting an attribute do no more than that? The fields of named tuples can't be set."""
    return not issubclass(cls, tuple) and in_class(cls, "__setattr__") is object.__dict__["__setattr__"]


def has_finalizer(cls: type) -> bool:
    """Does code run when the last reference to an instance is dropped?"""
    return in_class(cls, "__del__") is not _ABSENT


def in_class(cls: type, name: str) -> Any:
    """What the class and its bases hold under a name, as it is."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _ABSENT


def has_method(cls: type, name: str) -> bool:
    """Do instances have a method of this name, a Python function or an accelerated one?"""
    found = in_class(cls, name)
    if isinstance(found, staticmethod):
        found = found.__func__
    return is_plain(cls) and (isinstance(found, types.FunctionType) or getattr(type(found), "stands_for_itself", False))


def read_method(value: Any, names: tuple[str, ...]) -> Any:
    """The function behind a method of an attribute ... of a value; raises `AttributeError` if there is none, or the
    instance has something else of that name."""
    held, name = read_field(value, names[:-1]), names[-1]
    cls = type(held)
    if not has_method(cls, name) or name in getattr(held, "__dict__", ()):
        raise AttributeError(name)
    return getattr(cls, name)


def are_apart(args: Any, paths: tuple[str | int, ...]) -> bool:
    """Are two arguments, or attributes (of attributes ...) of them, different objects? `paths` has both in a row."""
    second = next(place for place, part in enumerate(paths) if place and isinstance(part, int))
    one, other = (read_field(args[path[0]], tuple(map(str, path[1:]))) for path in (paths[:second], paths[second:]))
    return one is not other


def read_field(value: Any, names: tuple[str, ...]) -> Any:
    """The attribute of an attribute ... of a value; raises `AttributeError` where one is not stored plainly."""
    for name in names:
        if is_item(name):
            value = read_item(value, name)
            continue
        if is_column(name):
            value = read_column(value, name)
            continue
        if name == FIELDS:
            value = _names_of_fields(value)
            continue
        if is_of_instances(name):
            value = read_of_instances(value, name)
            continue
        if is_of_times(name):
            value = read_times(value, name)
            continue
        if name == RANDOM_STATE:
            from parakeet_py.signature.random_states import state_of

            value = state_of(value)
            continue
        if not holds_plainly(type(value), name):
            raise AttributeError(name)
        value = getattr(value, name)
    return value


def class_named(module: str, qualname: str) -> type:
    """The class of an imported module; raises `KeyError` or `AttributeError` if there is none."""
    found: Any = sys.modules[module]
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise AttributeError(f"{module}.{qualname} is no class")
    return found
