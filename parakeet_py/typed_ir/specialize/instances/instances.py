"""Instances of classes in Python that a function makes: their attributes are variables.

    p = Point(x, y)                 p.x, p.y = x, y
    p = p + q.scaled(2.0)           p.x, p.y = p.x + q.x * 2.0, p.y + q.y * 2.0

`__init__`, methods, properties and operators are functions like any other, which are inlined. An instance that does not
change once it is made is a value (`InstanceV`): what its attributes hold. Branches, loops and lists take it as they
take a tuple. One that changes is a name for attributes (`RefV`), which branches and loops carry as they carry those of
arguments (`field_state`): all names of the object see the change. Where it is made says which of the two it is; the
walk starts again when a value is met that is going to change (`ChangingInstance`).

An object that changes leaves the branch or the turn of a loop that has made it as a value: all names that it has then
are names of one value, and nothing changes it any more. The same holds from when it is put into a list that is kept in
columns. What is not known then is which of several names are of one object: the program may not ask (`is`), and the
result has each object only once.

Python makes the objects that are returned. An object that Python code sees or keeps, a class that makes or compares its
instances in its own way, an attribute that is there on one of several paths only: such functions are specialized again
without instances (`PythonMakesInstances`), and Python makes the objects where they are made.

The class itself is read at every call: what is used of it, and how many names it has.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import MISSING, Field
from typing import TYPE_CHECKING, Any

from parakeet_py.signature.attribute_sources import OF_ONE_CLASS, SIZE, class_named, in_class, is_plain, stores_plainly
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.forms import array_of, is_list
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.restarts import ChangingInstance, InstanceAttribute, ReferencedItems, Sequential
from parakeet_py.typed_ir.specialize.values import (
    DictV,
    InstanceV,
    ItemV,
    Made,
    MapV,
    MethodV,
    NeverV,
    ObjectV,
    RecordV,
    RefV,
    Static,
    SuperV,
    TupleV,
    UnboundV,
    Value,
    is_none,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.signature.specs import Source
    from parakeet_py.typed_ir.specialize.context import Context

_ABSENT = in_class(object, "")
_HEAP_TYPE = 1 << 9  # made by a class statement
_OF_LIBRARY = ("abc", "typing")  # modules whose classes do not change
_IMMUTABLE = (bool, int, float, complex, str, type(None))


def is_instance(value: Value) -> bool:
    return isinstance(value, InstanceV | RefV | ItemV | SuperV)


def class_of(value: Value) -> Any:
    match value:
        case InstanceV(cls):
            return cls
        case RefV(made):
            return made.cls
        case ItemV(listed=listed):
            return listed.item.like.cls
    raise AssertionError(value)


# ---- classes ---------------------------------------------------------------------------------------------------------


def makes(s: Context, target: Any) -> bool:
    """Is this a class whose instances can be made of their attributes?"""
    if not s.instances.wanted or not isinstance(target, type) or s.frame.namespace.trusted:
        return False
    bases = target.__mro__[:-1]
    return bool(
        is_plain(target)
        and type(target).__call__ is type.__call__
        and target.__mro__[-1] is object
        and all(base.__flags__ & _HEAP_TYPE for base in bases)
        and not getattr(target, "__abstractmethods__", None)
        and in_class(target, "__new__") is object.__dict__["__new__"]
        and in_class(target, "__del__") is _ABSENT
        and (stores_plainly(target) or of_dataclass(in_class(target, "__setattr__")))
        and (isinstance(init := in_class(target, "__init__"), types.FunctionType) or init is object.__init__)
        and all(map(is_found, _own_bases(target)))
    )


def _own_bases(cls: type) -> list[type]:
    """A class and its bases, but for those that do not change."""
    return [base for base in cls.__mro__[:-1] if base.__module__ not in _OF_LIBRARY]


def is_found(cls: type) -> bool:
    """Is a class what its name says?"""
    try:
        return class_named(cls.__module__, cls.__qualname__) is cls
    except (KeyError, AttributeError):
        return False


def of_dataclass(function: Any) -> bool:
    """Has `dataclasses` written this method?"""
    code = getattr(function, "__code__", None)
    return (
        code is not None
        and code.co_filename == "<string>"
        and code.co_qualname.startswith("__create_fn__.<locals>.")
        and function.__module__ != "__create_fn__"
    )


def _guard(s: Context, cls: type) -> None:
    """Let the signature say that a class has the names that it has."""
    for base in _own_bases(cls):
        s.hidden_value(("class", base.__module__, base.__qualname__, SIZE))


def method_of(s: Context, cls: type, name: str) -> Value:
    """The function behind a method of a class that is found by its name."""
    owner = owner_of(cls, name)
    assert owner is not None
    _guard(s, cls)
    held = member(s, owner, name)
    return Static(held.object.__func__) if isinstance(held, Static) and isinstance(held.object, staticmethod) else held


def property_of(
    s: Context, cls: type, value: Value, name: str, what: str = "fget", args: list[Value] | None = None
) -> Value:
    """value.name, of a property of a class that is found by its name; or what its `fset` does, with the value."""
    _guard(s, cls)
    return _property(s, value, name, what, args or [], cls)


def owner_of(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in base.__dict__), None)


def member(s: Context, owner: type, name: str) -> Value:
    """What a class holds under a name, as it is; read at every call."""
    raw = owner.__dict__[name]
    if owner is object or owner.__module__ in _OF_LIBRARY:
        return Static(raw)
    return s.hidden_value(("class", owner.__module__, owner.__qualname__, name))


def has(value: Value, name: str) -> bool:
    """Has the class of an instance a special method, beside those that all classes have?"""
    owner = owner_of(class_of(value), name)
    return owner is not None and owner is not object and owner.__dict__[name] is not None


# ---- making ----------------------------------------------------------------------------------------------------------


def make(s: Context, cls: Any, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """cls(*args, **kwargs)"""
    if any(map(_is_shared_container, (*args, *kwargs.values()))):
        raise s.hand_back(f"{cls.__name__} of a list or dict, which might change")
    _guard(s, cls)
    known = s.instances
    site = (s.frame.path, s.frame.pos)
    known.first = known.first or (*s.frame.path, s.frame.function.filename, s.frame.pos, "Call")
    made = Made(cls, site, s.memory.new_root(), len(s.procedures.active), s.builder.scopes[-1])
    ref = RefV(made)
    for name in known.declared.get(site, ()):
        s.builder.fields[_source(made, name)] = UnboundV()
    owner = owner_of(cls, "__init__")
    assert owner is not None
    init = owner.__dict__["__init__"]
    if of_dataclass(init) and owner.__module__ not in _OF_LIBRARY:
        member(s, owner, "__init__")
        if not _fill(s, ref, owner, args, kwargs):
            return NeverV()
    elif init is object.__init__:
        if args or kwargs:
            raise s.unsupported(f"{cls.__name__}() takes no arguments")
    else:
        result = s.call(member(s, owner, "__init__"), [ref, *args], kwargs)
        if isinstance(result, NeverV) or s.dead:
            return NeverV()
        if not is_none(result):
            raise s.unsupported("__init__() should return None")
    if site in known.changing or cls in known.items:
        known.refs = True
        return ref
    value = InstanceV(cls, tuple(names_of(s, made)), tuple(attributes_of(s, ref)), frozenset({site}), made)
    for name in value.names:
        del s.builder.fields[_source(made, name)]
    return value


def _is_shared_container(value: Value) -> bool:
    """A list or dict that may have another name, under which it might be changed."""
    match value:
        case TupleV(items, kind):
            return kind == "list" or any(map(_is_shared_container, items))
    return isinstance(value, DictV | MapV) or (is_list(value) and array_of(value) is None)


def _fill(s: Context, ref: RefV, owner: Any, args: Sequence[Value], kwargs: dict[str, Value]) -> bool:
    """What the `__init__` of a dataclass does; False where it does not come to its end."""
    fields: list[Field[Any]] = list(owner.__dict__["__dataclass_fields__"].values())
    if any(field._field_type.name == "_FIELD_INITVAR" for field in fields):  # type: ignore[attr-defined]
        raise s.hand_back(f"{owner.__name__}, a dataclass with an InitVar")
    fields = [field for field in fields if field._field_type.name == "_FIELD"]  # type: ignore[attr-defined]
    given = _bound(s, owner, [field for field in fields if field.init], args, kwargs)
    for field in fields:
        value = given.get(field.name)
        if value is None and field.default is not MISSING and field.init:
            if not isinstance(field.default, _IMMUTABLE):
                raise s.hand_back(f"{owner.__name__} with a default that could be changed")
            value = lift(field.default)
        elif value is None and field.default_factory is not MISSING:
            value = s.call(lift(field.default_factory), [], {})
        elif value is None and field.init:
            raise s.unsupported(f"{owner.__name__}() missing a required argument: '{field.name}'")
        if isinstance(value, NeverV):
            return False
        if value is not None:
            _assign(s, ref, field.name, value)
    if (after := owner_of(class_of(ref), "__post_init__")) is not None:
        return not isinstance(s.call(member(s, after, "__post_init__"), [ref], {}), NeverV)
    return True


def _bound(
    s: Context, owner: Any, fields: Sequence[Field[Any]], args: Sequence[Value], kwargs: dict[str, Value]
) -> dict[str, Value]:
    """The arguments by the names of fields."""
    places = [field.name for field in fields if not field.kw_only]
    given = dict(zip(places, args, strict=False))
    if len(args) > len(places) or given.keys() & kwargs.keys() or not kwargs.keys() <= {one.name for one in fields}:
        raise s.unsupported(f"{owner.__name__} with these arguments")
    return given | kwargs


# ---- attributes ------------------------------------------------------------------------------------------------------


def _source(made: Made, name: str) -> Source:
    return ("local", made.root, name)


def names_of(s: Context, made: Made) -> list[str]:
    return [str(source[2]) for source in s.builder.fields if source[:2] == ("local", made.root)]


def attributes_of(s: Context, value: RefV) -> list[Value]:
    """What all attributes of an instance hold."""
    found = [held_by(s, value, name) for name in names_of(s, value.made)]
    return [one for one in found if one is not None]


def frozen(s: Context, value: RefV) -> InstanceV:
    """An instance as a value, which nothing changes any more."""
    made = value.made
    return InstanceV(made.cls, tuple(names_of(s, made)), tuple(attributes_of(s, value)), frozenset({made.site}), made)


def held_by(s: Context, value: Value, name: str) -> Value | None:
    """What an instance itself holds under a name."""
    if isinstance(value, InstanceV):
        return value.items[value.names.index(name)] if name in value.names else None
    if isinstance(value, ItemV):
        return instance_lists.read(s, value, name)
    assert isinstance(value, RefV)
    if value.made in s.instances.kept and value.made.cls in s.instances.items:
        raise s.unsupported("an object used that has been put into a list whose items change")
    if value.made.depth != len(s.procedures.active):
        raise s.unsupported("an object that changes, in a recursion")
    found = s.builder.fields.get(_source(value.made, name))
    if isinstance(found, UnboundV):
        raise s.unsupported(f"the attribute .{name}, which may not be there yet")
    return found


def attribute(s: Context, value: Value, name: str) -> Value:
    """value.name"""
    if isinstance(value, SuperV):
        return MethodV(value, name)
    cls = class_of(value)
    if name == "__class__":
        return Static(cls)
    raw = in_class(cls, name)
    if isinstance(raw, property):
        return _property(s, value, name, "fget", [])
    if raw is _ABSENT or isinstance(raw, types.MemberDescriptorType) or not _computes(raw, "__set__"):
        found = held_by(s, value, name)
        if found is not None:
            return found
    if isinstance(raw, types.FunctionType | staticmethod | classmethod) or _is_accelerated(raw):
        return MethodV(value, name)
    if raw is _ABSENT or name.startswith("__") or _computes(raw, "__get__"):
        raise s.unsupported(f"'{cls.__name__}' object has no attribute '{name}' that is compiled")
    owner = owner_of(cls, name)
    assert owner is not None
    return member(s, owner, name)


def _is_accelerated(raw: Any) -> bool:
    return bool(getattr(type(raw), "stands_for_itself", False))


def _computes(raw: Any, how: str) -> bool:
    return hasattr(type(raw), how)


def _property(s: Context, value: Value, name: str, what: str, args: list[Value], cls: type | None = None) -> Value:
    owner = owner_of(cls or class_of(value), name)
    assert owner is not None
    held = member(s, owner, name)
    function = getattr(held.object, what) if isinstance(held, Static) else None
    if not isinstance(function, types.FunctionType) or type(held.object) is not property:  # type: ignore[union-attr]
        raise s.unsupported(f"the property .{name}")
    return s.call(Static(function), [value, *args], {})


def set_attribute(s: Context, value: Value, name: str, new: Value) -> None:
    """value.name = new"""
    if isinstance(value, SuperV):
        raise s.unsupported("an attribute of super() assigned")
    cls = class_of(value)
    if not stores_plainly(cls):
        raise s.unsupported(f"assignment to the attribute .{name} of a {cls.__name__}, which does that in its own way")
    raw = in_class(cls, name)
    if isinstance(raw, property):
        if raw.fset is None:
            raise s.unsupported(f"property '{name}' of '{cls.__name__}' object has no setter")
        _property(s, value, name, "fset", [new])
        return
    if isinstance(value, InstanceV):
        change_later(s, value, name)
        return
    _assign(s, value, name, new)


def set_frozen(s: Context, value: Value, name: str, new: Value) -> Value:
    """object.__setattr__(value, name, new)"""
    if not isinstance(value, RefV):
        raise s.unsupported(f"assignment to the attribute .{name} by object.__setattr__")
    _assign(s, value, name, new)
    return Static(None)


def change_later(s: Context, value: InstanceV, name: str) -> None:
    """An instance that was taken for one that does not change gets an attribute: what the next walk has to know."""
    if value.sites <= s.instances.changing:
        instance_lists.change_items(s, value.cls)
    for site in value.sites - s.instances.changing:
        s.facts.note(ChangingInstance(site))
    made = value.token
    if made is instance_lists.FROM_LIST and value.cls not in s.instances.items:
        s.facts.note(ReferencedItems(value.cls))
    elif isinstance(made, Made) and name not in value.names and made.scope is not s.builder.scopes[-1]:
        s.facts.note(InstanceAttribute(made.site, name))


def _assign(s: Context, value: Value, name: str, new: Value) -> None:
    """Let an attribute hold a value, in the instance itself."""
    cls = class_of(value)
    raw = in_class(cls, name)
    if isinstance(raw, types.MemberDescriptorType):
        pass
    elif _computes(raw, "__set__") or not cls.__dictoffset__ or name == "__class__":
        raise s.unsupported(f"assignment to the attribute .{name} of a {cls.__name__}")
    if isinstance(value, ItemV):
        if s.guards:
            raise s.unsupported(f"assignment to the attribute .{name} inside `try`")
        instance_lists.write(s, value, name, new)
        return
    assert isinstance(value, RefV)
    made, b = value.made, s.builder
    if made.depth != len(s.procedures.active):
        raise s.unsupported("an object changed in a recursion")
    if s.guards and made.root <= s.guards[-1].roots:
        raise s.unsupported(f"assignment to the attribute .{name} inside `try`")
    if s.elements.in_body and made.root <= s.elements.element_roots:
        where = f"assignment to the attribute .{name} in an element function"
        raise Sequential.at(s.frame.function, b.pos, where)
    if made in s.instances.kept:
        instance_lists.change_items(s, cls)
    source = _source(made, name)
    if source not in b.fields and made.scope is not b.scopes[-1]:
        declared = s.instances.declared.get(made.site, ())
        if name in declared:
            raise s.unsupported(f"the attribute .{name}, which an object gets later")
        s.facts.note(InstanceAttribute(made.site, name))
    (b.fields[source],) = s.settle([new])


# ---- calls -----------------------------------------------------------------------------------------------------------


def call_method(s: Context, value: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """value.name(*args, **kwargs)"""
    if isinstance(value, SuperV):
        own, kind = value.object, value.kind
        owner = _owner_above(s, value, name)
        if owner is object and name == "__init__" and not args and not kwargs:
            return Static(None)
    else:
        own, kind = value, class_of(value)
        owner = owner_of(kind, name)
        held = held_by(s, value, name)
        if held is not None:
            return s.call(held, args, kwargs)
    if owner is None or owner is object:
        raise s.unsupported(f"'{kind.__name__}' object has no method '{name}' that is compiled")
    if of_dataclass(owner.__dict__[name]) and name == "__init__" and isinstance(own, RefV):
        member(s, owner, name)
        return Static(None) if _fill(s, own, owner, args, kwargs) else NeverV()
    found = member(s, owner, name)
    if not isinstance(found, Static):
        raise s.unsupported(f".{name}() of {s.describe(own)}")
    match found.object:
        case staticmethod(__func__=function):
            return s.call(lift(function), args, kwargs)
        case classmethod(__func__=function):
            return s.call(lift(function), [Static(kind), *args], kwargs)
    return s.call(found, [own, *args], kwargs)


def _owner_above(s: Context, value: SuperV, name: str) -> type | None:
    """The class in which `super()` finds a name; those that it passes over have to stay without one."""
    order = value.kind.__mro__
    for base in order[order.index(value.cls) + 1 :]:
        if name in base.__dict__:
            return base if base is object or is_found(base) else None
        if isinstance(value.object, ObjectV | RecordV) and base.__module__ not in _OF_LIBRARY:
            if not is_found(base):
                return None
            s.hidden_value(("class", base.__module__, base.__qualname__, SIZE))
    return None


def super_of(s: Context) -> Value:
    """super()"""
    frame = s.frame
    cell = frame.namespace.cells.get("__class__")
    params = frame.function.params
    first = frame.env.get(params[0].var) if params else None
    kind = None
    if isinstance(first, InstanceV | RefV | ItemV):
        kind = class_of(first)
    elif isinstance(first, ObjectV):
        known = known_object(s, first)
        kind = known[0] if known is not None and is_plain(known[0]) else None
    elif isinstance(first, RecordV) and first.of_list:
        known = known_object(s, first.records)
        held = s.arguments.hidden.get((*known[1], OF_ONE_CLASS)) if known is not None else None
        kind = held.object if isinstance(held, Static) else None
    if first is None or cell is None or kind is None or cell.cell_contents not in kind.__mro__:
        raise s.unsupported("`super` cannot be accelerated: it looks at the frame of its caller")
    return SuperV(first, cell.cell_contents, kind)


def special(s: Context, value: Value, name: str, args: list[Value]) -> Value:
    """A special method, which is looked for in the class."""
    owner = owner_of(class_of(value), name)
    assert owner is not None
    held = member(s, owner, name)
    if not isinstance(held, Static) or not isinstance(held.object, types.FunctionType):
        raise s.unsupported(f"{name} of {s.describe(value)}")
    return s.call(held, [value, *args], {})
