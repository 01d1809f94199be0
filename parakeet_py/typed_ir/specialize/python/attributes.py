"""Attributes and methods of arrays, scalars, sequences and modules."""

from __future__ import annotations

import enum
import sys
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import PYBOOL, PYINT, Scalar, is_complex, itemsize, real_dtype
from parakeet_py.library import registry
from parakeet_py.signature import enums, patches
from parakeet_py.signature.attribute_sources import (
    class_named,
    has_method,
    holds_plainly,
    in_class,
    is_plain,
    stores_plainly,
)
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize import messages
from parakeet_py.typed_ir.specialize.arrays import record_arrays, shape_changes
from parakeet_py.typed_ir.specialize.arrays.elementwise import elementwise, scalar_operand
from parakeet_py.typed_ir.specialize.arrays.flags import array_flag
from parakeet_py.typed_ir.specialize.arrays.strided import stride_of, strided, strides_shown
from parakeet_py.typed_ir.specialize.arrays.views import size_of, transpose
from parakeet_py.typed_ir.specialize.compile_time_values import known_object, static_key
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    dict_items,
    dynamic_lists,
    hash_maps,
    membership,
    sorting,
)
from parakeet_py.typed_ir.specialize.forms import array_of, is_list
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instance_columns, instances
from parakeet_py.typed_ir.specialize.intrinsics.table import rank0
from parakeet_py.typed_ir.specialize.python import named_tuples, random_generators
from parakeet_py.typed_ir.specialize.python.known_calls import call_registered, registered_body
from parakeet_py.typed_ir.specialize.python.named_tuples import named_fields
from parakeet_py.typed_ir.specialize.times import functions
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    DictV,
    ErrorV,
    InstanceV,
    ItemV,
    MapV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    SuperV,
    TimeV,
    TupleV,
    Value,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def attribute(s: Context, value: Value, name: str) -> Value:
    """value.name"""
    match value:
        case ArrayV():
            return _array_attribute(s, value, name)
        case ScalarV():
            return _scalar_attribute(s, value, name)
        case TimeV():
            return functions.attribute(s, value, name)
        case Static(assigned_attributes.Cell() as cell):
            return assigned_attributes.contents(s, cell)
        case Static(obj):
            return _static_attribute(s, obj, name)
        case InstanceV() | RefV() | ItemV() | SuperV():
            return instances.attribute(s, value, name)
        case TupleV(items, _, named) if named is not None and name in named._fields:
            place: int = named._fields.index(name)
            return items[place]
        case TupleV(named=cls) if cls is not None and name == "_fields":
            return lift(cls._fields)
        case TupleV(named=cls) if cls is not None and not named_tuples.has_method(cls, name):
            raise s.hand_back(f".{name} of a named tuple")
        case TupleV() | DictV() | MapV():
            return MethodV(value, name)
        case _ if is_list(value):
            return MethodV(value, name)
        case MethodV(ArrayV() as array, "flags"):
            return array_flag(s, array, name)
        case MethodV(ArrayV(), "flat"):
            raise s.hand_back(f".{name} of a flat iterator")
        case SliceV(lower, upper, step) if name in ("start", "stop", "step"):
            return {"start": lower, "stop": upper, "step": step}[name]
        case RangeV(start, stop, step) if name in ("start", "stop", "step"):
            return {"start": start, "stop": stop, "step": step}[name]
        case RecordV(of_list=True):
            return instance_columns.attribute(s, value, name)
        case ObjectV() | RecordV() if (found := record_arrays.attribute(s, value, name)) is not None:
            return found
        case ObjectV():
            return _object_attribute(s, value, name)
        case ErrorV(_, str() as message, args) if name == "args":
            if value.exception is KeyError and args:
                raise s.unsupported("the key of a KeyError")
            return TupleV(tuple(messages.arguments_of_error(message, args)))
    if isinstance(value, RecordV):
        raise record_arrays.as_object(s, value)
    raise s.unsupported(f".{name} of {s.describe(value)}")


def _object_attribute(s: Context, value: ObjectV, name: str) -> Value:
    """What an argument, or an attribute of one, holds under a name; a method that its class has."""
    known = known_object(s, value)
    if known is not None:
        cls, source = known
        if cls is dict or (has_method(cls, name) and source[0] == "field"):
            return MethodV(value, name)
        if holds_plainly(cls, name):
            return assigned_attributes.now(s, (*source, name), s.hidden_value((*source, name)))
        getter = _of_property(s, cls, name, "fget") if source[0] == "field" else None
        if getter is not None:
            return s.call(getter, [value], {})
    if random_generators.has_method(s, value, name):
        return MethodV(value, name)
    raise s.hand_back(f".{name} of {s.describe(value)}")


def _of_property(s: Context, cls: type, name: str, what: str) -> Value | None:
    """The function that a property of an argument's class calls, if it is one in Python."""
    owner = instances.owner_of(cls, name)
    if owner is None or not is_plain(cls) or type(owner.__dict__[name]) is not property or not _has_a_name(owner):
        return None
    held = instances.member(s, owner, name)
    function = getattr(held.object, what) if isinstance(held, Static) else None
    return Static(function) if isinstance(function, types.FunctionType) else None


def set_attribute(s: Context, value: Value, name: str, new: Value) -> None:
    """value.name = new"""
    if isinstance(value, ArrayV) and name in ("real", "imag"):
        s.call_library("set_part", [value, lift(name), new])
        return
    if isinstance(value, ArrayV) and name == "shape":
        shape_changes.set_shape(s, value, new)
        return
    if isinstance(value, ArrayV) and name == "flat":
        s.call_library("flat_write", [value, lift(slice(None)), new, lift("array is read-only")])
        return
    if isinstance(value, Static) and isinstance(value.object, assigned_attributes.Cell):
        assigned_attributes.set_contents(s, value.object, new)
        return
    if instances.is_instance(value):
        instances.set_attribute(s, value, name, new)
        return
    if isinstance(value, RecordV) and value.of_list:
        instance_columns.set_attribute(s, value, name, new)
        return
    if isinstance(value, ObjectV | RecordV) and record_arrays.set_attribute(s, value, name, new):
        return
    known = known_object(s, value) if isinstance(value, ObjectV) else None
    if known is not None and known[1][0] == "field":
        cls, source = known
        setter = _of_property(s, cls, name, "fset")
        if setter is not None:
            s.call(setter, [value, new], {})
            return
        held = assigned_attributes.now(s, (*source, name), s.arguments.hidden.get((*source, name), NONE))
        same = isinstance(held, ArrayV) and isinstance(new, ArrayV) and held.var is new.var
        if same and holds_plainly(cls, name) and stores_plainly(cls):
            return  # it is what the object holds: `self.x += 1` has changed it in place
        assigned_attributes.assign(s, cls, (*source, name), new)
        return
    of = (
        f" of the class {value.object.__qualname__}"
        if isinstance(value, Static) and isinstance(value.object, type)
        else ""
    )
    raise s.unsupported(f"assignment to the attribute .{name}{of or ' of ' + s.describe(value)}")


def _static_attribute(s: Context, obj: Any, name: str) -> Value:
    if isinstance(obj, np.ufunc) and name in ("reduce", "accumulate", "outer", "at", "reduceat"):
        return MethodV(Static(obj), name)
    try:
        found = getattr(obj, name)
    except AttributeError as error:
        raise s.unsupported(str(error)) from None
    if isinstance(obj, types.ModuleType):
        return module_value(s, obj, name, found)
    if isinstance(obj, type):
        return _class_value(s, obj, name, found)
    if name in ("name", "value") and enums.is_member(obj):
        return lift(found)
    if not isinstance(obj, np.dtype | np.finfo | np.iinfo | np.ufunc) and _is_data(found):
        raise s.hand_back(f".{name} of {type(obj).__name__}")
    return lift(found)


def module_value(s: Context, module: types.ModuleType, name: str, found: Any) -> Value:
    """What a module holds under a name, which may be assigned to between calls."""
    if _is_frozen(module.__name__) or isinstance(found, types.ModuleType):
        _note_read(s, module.__name__, name)
        return lift(found)
    if sys.modules.get(module.__name__) is not module or name not in vars(module):
        raise s.hand_back(f".{name} of the module {module.__name__}")
    return s.hidden_value(("attribute", module.__name__, name))


def _note_read(s: Context, module: str, name: str) -> None:
    """The user's code reads a name of a module that is not read again at every call."""
    reader = str(s.frame.namespace.globals.get("__name__"))
    if s.frame.namespace.trusted or _is_frozen(reader) or not patches.is_watched(module):
        return
    if patches.is_patched(module, name):
        raise patches.Patched(f"{module}.{name} has been replaced: calls run in Python until it is restored")
    s.python.module_reads.add((module, name))


def _class_value(s: Context, cls: type, name: str, found: Any) -> Value:
    """What a class holds under a name; what it inherits could be hidden by an assignment to the class itself."""
    if _is_frozen(cls.__module__) or isinstance(cls, enum.EnumMeta) or name.startswith("__"):
        return lift(found)
    raw = vars(cls).get(name)
    if (raw is found or isinstance(raw, staticmethod | classmethod)) and _has_a_name(cls):
        value = s.hidden_value(("class", cls.__module__, cls.__qualname__, name))
        return value if raw is found else lift(found)
    raise s.hand_back(f".{name} of the class {cls.__name__}")


def _has_a_name(cls: type) -> bool:
    """Is a class what its name says?"""
    try:
        return class_named(cls.__module__, cls.__qualname__) is cls
    except (KeyError, AttributeError):
        return False


def _is_frozen(module: str) -> bool:
    """Is this one of the modules that are never assigned to?"""
    return module.partition(".")[0] in _FROZEN


_FROZEN = frozenset(
    {"builtins", "numpy", "math", "cmath", "scipy", "operator", "sys", "itertools", "functools", "parakeet_py"}
)


def _is_data(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | int | float | complex | tuple | list | dict)


def _array_attribute(s: Context, array: ArrayV, name: str) -> Value:
    b = s.builder
    match name:
        case "shape":
            return TupleV(tuple(ScalarV(extent) for extent in array.extents))
        case "ndim":
            return py(array.rank)
        case "size":
            return ScalarV(size_of(s, array))
        case "dtype":
            return Static(np.dtype(array.dtype))
        case "itemsize":
            return py(itemsize(array.dtype))
        case "nbytes":
            return ScalarV(b.index_mul(size_of(s, array), ir.Const(itemsize(array.dtype), PYINT)))
        case "flags" | "flat":
            return MethodV(array, name)
        case "strides":
            return TupleV(tuple(map(ScalarV, strides_shown(s, array))))
        case "T":
            return transpose(s, array, tuple(reversed(range(array.rank))))
        case "mT":
            if array.rank < 2:
                s.check(ir.Const(False, PYBOOL), "ValueError", "matrix transpose with ndim < 2 is undefined")
                return NeverV()
            order = list(range(array.rank))
            order[-2:] = order[:-3:-1]
            return transpose(s, array, order)
        case "real" | "imag":
            if is_complex(array.dtype):
                return _complex_part(s, array, name)
            if name == "real":
                return array
            zeros = s.call(Static(np.zeros_like), [array], {"order": lift("A")})
            assert isinstance(zeros, ArrayV)
            return replace(zeros, readonly=True)
    if registry.method_for(name) is not None or hasattr(np.ndarray, name):
        descriptor = getattr(np.ndarray, name)
        if isinstance(descriptor, types.MethodDescriptorType):
            return MethodV(array, name)
        raise s.hand_back(f".{name} of an array")
    if s.arguments.has_memmaps and (hasattr(np.memmap, name) or name in _OF_MEMMAPS):
        raise s.unsupported(f"the attribute .{name} of a numpy.memmap")
    raise s.unsupported(f"'numpy.ndarray' object has no attribute '{name}'")


_OF_MEMMAPS = ("filename", "mode", "offset")


def _complex_part(s: Context, array: ArrayV, name: str) -> Value:
    """The real or imaginary parts: a view in NumPy, here a copy as long as it is not stored to."""
    kind = Scalar(real_dtype(array.dtype))
    if s.deferred_views.site in s.deferred_views.wanted:
        offset = ir.Const(itemsize(kind.dtype) if name == "imag" else 0, PYINT)
        strides = [stride_of(s, array, axis) for axis in range(array.rank)]
        view = strided(s, array, offset, array.extents, strides, dtype=kind.dtype)
        return replace(view, nonunit=array.nonunit, order=array.order)
    [made] = elementwise(s, lambda operands: [s.builder.prim(name, operands[0], type=kind)], [array])
    if isinstance(made, ScalarV):
        made = rank0(s, made.operand)
    assert isinstance(made, ArrayV)
    return replace(made, roots=s.deferred_view(array))


def _scalar_attribute(s: Context, value: ScalarV, name: str) -> Value:
    b = s.builder
    if name in ("real", "imag"):
        if is_complex(value.dtype):
            kind = Scalar(real_dtype(value.dtype), value.python)
            return ScalarV(b.prim(name, value.operand, type=kind))
        if name == "real":
            return ScalarV(b.cast(value.operand, PYINT)) if value.type == Scalar("bool", True) else value
        zero: Value = (
            lift(np.dtype(value.dtype).type(0)) if not value.python else py(0.0 if value.dtype == "float64" else 0)
        )
        return zero
    if value.python and value.dtype in ("bool", "int64") and name in ("numerator", "denominator"):
        return ScalarV(b.cast(value.operand, PYINT)) if name == "numerator" else py(1)
    if not value.python:
        match name:
            case "shape":
                return TupleV(())
            case "ndim":
                return py(0)
            case "size":
                return py(1)
            case "dtype":
                return Static(np.dtype(value.dtype))
            case "itemsize" | "nbytes":
                return py(itemsize(value.dtype))
            case "T":
                return value
    sample = (
        {"bool": bool, "int64": int, "float64": float, "complex128": complex}[value.dtype]
        if value.python
        else np.dtype(value.dtype).type
    )
    if not hasattr(sample, name):
        raise s.unsupported(f"'{sample.__name__}' object has no attribute '{name}'")
    return MethodV(value, name)


def call_method(s: Context, obj: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """obj.name(*args, **kwargs)"""
    match obj:
        case ArrayV():
            function = getattr(np.ndarray, name, None)
            registered = registered_body(s, function)
            if registered is not None:
                return call_registered(s, function, registered, [obj, *args], kwargs)
            body = registry.method_for(name)
            if body is None and name in ("resize", "setflags"):
                raise s.unsupported(f".{name}(), which changes what kind of array this is")
            if body is None:
                raise s.hand_back(f".{name}() of an array")
            return s.call_python(body, [obj, *args], kwargs, trusted=True)
        case ScalarV():
            return _scalar_method(s, obj, name, args, kwargs)
        case TimeV():
            return functions.method(s, obj, name, args, kwargs)
        case InstanceV() | RefV() | ItemV() | SuperV():
            return instances.call_method(s, obj, name, args, kwargs)
        case Static(np.ufunc() as ufunc):
            body = registry.method_for(f"ufunc.{name}")
            if body is None:
                raise s.hand_back(f"np.{ufunc.__name__}.{name}")
            return s.call_python(body, [obj, *args], kwargs, trusted=True)
        case TupleV() if name in ("index", "count"):
            return _tuple_method(s, obj, name, args)
        case TupleV(named=cls) if cls is not None:
            made = named_tuples.method(s, obj, name, args, kwargs)
            if made is not None:
                return made
            raise s.hand_back(f".{name}() of a named tuple")
        case _ if name in ("index", "count", "copy") and is_list(obj) and array_of(obj) is not None:
            return sorting.list_method(s, obj, name, args)
        case MapV():
            return hash_maps.method(s, obj, name, args)
        case DictV():
            if name == "get" and args and hash_maps.wants_table(s, obj, args[0]):
                return hash_maps.method(s, hash_maps.table_for(s, obj), name, args)
            return _dict_method(s, obj, name, args)
        case RecordV(of_list=True):
            return instance_columns.call_method(s, obj, name, args, kwargs)
        case ObjectV():
            found = dict_items.method(s, obj, name, args) if not kwargs else None
            if found is not None:
                return found
            drawn = random_generators.call_method(s, obj, name, args, kwargs)
            if drawn is not None:
                return drawn
            known = known_object(s, obj)
            if known is not None and name in named_tuples.OWN_METHODS:
                items = named_fields(s, obj)
                if items is not None and items.named is not None:
                    return call_method(s, items, name, args, kwargs)
            if known is None or known[1][0] != "field" or not has_method(known[0], name):
                raise s.hand_back(f".{name}() of {s.describe(obj)}")
            cls, source = known
            function = s.hidden_value(("method", *source[1:], name))
            own = [] if isinstance(in_class(cls, name), staticmethod) else [obj]
            return s.call(function, [*own, *args], kwargs)
    if s.go_on_whole(obj):
        raise s.hand_back(f".{name}() of a list")
    s.need_whole(obj)
    raise s.unsupported(f".{name}() of {s.describe(obj)}")


def _scalar_method(s: Context, value: ScalarV, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    b = s.builder
    match name:
        case "conjugate" | "conj" if not args:
            if value.type == PYBOOL:
                return ScalarV(b.cast(value.operand, PYINT))
            return ScalarV(b.prim("conj", value.operand)) if is_complex(value.dtype) else value
        case "is_integer" if value.dtype in ("float64", "float32", "float16"):
            whole = b.prim("eq", b.prim("floor", value.operand), value.operand, type=Scalar("bool", True))
            finite = b.prim("isfinite", value.operand, type=Scalar("bool", True))
            return ScalarV(b.logical_and(whole, finite))
        case "item" if not value.python:
            return s.as_python(value)
    if value.type in (PYINT, PYBOOL) and name in ("bit_length", "bit_count") and not args and not kwargs:
        return s.call_library(f"int_{name}", [ScalarV(b.cast(value.operand, PYINT))])
    if value.python:
        raise s.hand_back(f".{name}() of {s.describe(value)}")
    body = registry.method_for(name)
    if body is None:
        raise s.hand_back(f".{name}() of a NumPy scalar")
    result = s.call_python(body, [rank0(s, value.operand), *args], kwargs, trusted=True)
    if isinstance(result, ArrayV) and result.rank == 0:
        return ScalarV(scalar_operand(s, result))
    return result


def _tuple_method(s: Context, obj: TupleV, name: str, args: list[Value]) -> Value:
    equal = [membership.same_item(s, item, args[0]) for item in obj.items]
    if name == "count":
        total: ir.Operand = ZERO
        for one in equal:
            total = s.builder.index_add(total, s.builder.cast(one, PYINT))
        return ScalarV(total)
    if not all(isinstance(one, ir.Const) for one in equal):
        if dynamic_lists.is_uniform(obj):
            listed = array_lists.shown(s, dynamic_lists.of_scalars(s, obj))
            absent = "tuple.index(x): x not in tuple" if obj.kind == "tuple" else sorting.ABSENT
            return sorting.list_method(s, listed, name, args, absent)
        raise s.unsupported(f".{name}() of a {obj.kind} of run-time values")
    flags = [bool(one.value) for one in equal if isinstance(one, ir.Const)]
    if True not in flags:
        raise s.unsupported("ValueError: the item is not in the sequence")
    return py(flags.index(True))


def _dict_method(s: Context, obj: DictV, name: str, args: list[Value]) -> Value:
    match name:
        case "items":
            return TupleV(tuple(TupleV((lift(key), item)) for key, item in obj.items), "list")
        case "keys":
            return TupleV(tuple(lift(key) for key, _ in obj.items), "list")
        case "values":
            return TupleV(tuple(item for _, item in obj.items), "list")
        case "get":
            wanted = static_key(s, args[0])
            for key, item in obj.items:
                if wanted in {key}:
                    return item
            return args[1] if len(args) > 1 else lift(None)
    raise s.unsupported(f".{name}() of a dict")


__all__ = ["ZERO", "attribute", "call_method", "size_of"]
