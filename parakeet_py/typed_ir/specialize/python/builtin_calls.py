"""Python's builtin functions and types on abstract values; `math_calls` has those of `math`."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from parakeet_py import operators
from parakeet_py.base.errors import KEY, UnsupportedError, name_of_exception
from parakeet_py.base.types import PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Scalar, is_complex, is_float, is_integer
from parakeet_py.frontend.desugar import lru_cache, managers, signals
from parakeet_py.signature.attribute_sources import in_class
from parakeet_py.signature.device_classes import class_is_of_dask
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize import messages
from parakeet_py.typed_ir.specialize.arrays import convert, record_arrays, views
from parakeet_py.typed_ir.specialize.arrays.elementwise import scalar_operand
from parakeet_py.typed_ir.specialize.arrays.ufuncs import call_ufunc
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.containers import array_lists, dict_items, dynamic_lists, hash_maps, strings
from parakeet_py.typed_ir.specialize.forms import array_of, form_of, is_list
from parakeet_py.typed_ir.specialize.instances import (
    assigned_attributes,
    instance_columns,
    instances,
    text_columns,
)
from parakeet_py.typed_ir.specialize.message_arguments import escaped
from parakeet_py.typed_ir.specialize.opaque import frame_states
from parakeet_py.typed_ir.specialize.paths import iterables, iterator_consumption, tagged_scalars
from parakeet_py.typed_ir.specialize.python import long_ints, named_tuples
from parakeet_py.typed_ir.specialize.python.python_scalars import OVERFLOW, python_binary, python_unary, scalar_abs
from parakeet_py.typed_ir.specialize.python.table import BUILTINS, builtin
from parakeet_py.typed_ir.specialize.restarts import PythonMakesInstances
from parakeet_py.typed_ir.specialize.times import arithmetic
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    GeneratorV,
    InstanceV,
    ItemV,
    IteratorV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TimeV,
    TupleV,
    Value,
    is_known,
    is_none,
    known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


@builtin(len)
def _len(s: Context, value: Value) -> Value:
    if iterator_consumption.is_iterator(value) and not s.frame.namespace.trusted:
        raise s.unsupported("len() of an iterator")
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    if strings.is_text(value):
        return strings.length(s, value)
    strings.need(s, value)
    items = iterables.static_items(value)
    if items is not None:
        return py(len(items))
    length = form_of(value).length
    if length is not None:
        return ScalarV(length(s, value))
    match value:
        case ArrayV(rank=0):
            raise s.unsupported("len() of unsized object")
        case ArrayV():
            return ScalarV(value.extents[0])
        case MethodV(ArrayV() as array, "flat"):
            return ScalarV(views.size_of(s, array))
        case RangeV():
            return ScalarV(iterables.range_length(s, value))
        case RecordV() if (some := record_arrays.shape_of(s, value)) is not None:
            return _len(s, some)
        case ObjectV():
            if (many := instance_columns.length(s, value)) is not None:
                return ScalarV(many)
            if (many := text_columns.length(s, value)) is not None:
                return ScalarV(many)
            shape = record_arrays.shape_of(s, value)
            if shape is not None:
                return _len(s, shape)
            fields = named_tuples.named_fields(s, value)
            if fields is None:
                raise s.hand_back("len of an object")
            return py(len(fields.items))
    raise s.unsupported(f"len() of {s.describe(value)}")


@builtin(range)
def _range(s: Context, *args: Value) -> Value:
    match [_integer(s, arg) for arg in args]:
        case [stop]:
            return RangeV(py(0), stop, py(1))
        case [start, stop]:
            return RangeV(start, stop, py(1))
        case [start, stop, step]:
            nonzero = s.builder.prim("ne", step.operand, ir.Const(0, PYINT), type=PYBOOL)
            s.check(nonzero, "ValueError", "range() arg 3 must not be zero")
            iterables.check_steps(s, start, stop, step)
            return RangeV(start, stop, step) if not s.dead else NeverV()
    raise s.unsupported("range expected 1 to 3 arguments")


def _integer(s: Context, value: Value) -> ScalarV:
    """What `operator.index` gives for a bound of a range, or the number of the first item."""

    def of_one_type(value: Value) -> ScalarV:
        number = s.numeric(value)
        whole = isinstance(number, ScalarV) and (is_integer(number.dtype) or number.type == PYBOOL)
        if not isinstance(number, ScalarV) or not whole:
            raise s.unsupported(f"{s.describe(value)} cannot be interpreted as an integer")
        return ScalarV(iterables.range_bound(s, number))

    (integer,) = tagged_scalars.each(s, [value], lambda one: [of_one_type(one)])
    assert isinstance(integer, ScalarV)
    return integer


@builtin(operators.prange)
def _prange(s: Context, *args: Value) -> Value:
    made = _range(s, *args)
    assert isinstance(made, RangeV)
    return RangeV(made.start, made.stop, made.step, parallel=True)


@builtin(managers.entered)
def _entered(s: Context, manager: Value) -> Value:
    """A manager of a `with` statement is Python's; those that change what operators of NumPy's do are not compiled."""
    if s.describe(manager) in ("an errstate", "a catch_warnings"):
        raise s.unsupported(f"{s.describe(manager)} in a `with` statement")
    if instances.is_instance(manager):
        s.facts.restart(PythonMakesInstances(s.unsupported("a context manager that the function has made")))
    raise s.hand_back("a context manager is entered")


@builtin(managers.left)
def _left(s: Context, manager: Value) -> Value:
    raise s.hand_back("a context manager is left")


@builtin(managers.left_by)
def _left_by(s: Context, manager: Value, error: Value) -> Value:
    """Where it raises in the body, Python goes on: see `paths.guarded`."""
    s.check(ir.Const(False, PYBOOL), "Deoptimize", "an exception inside `with`")
    return NeverV()


@builtin(signals.look)
def _look(s: Context) -> Value:
    frame_states.leave_if_interrupted(s)
    return lift(None)


@builtin(zip)
def _zip(s: Context, *items: Value, strict: Value | None = None) -> Value:
    made = IteratorV("zip", tuple(iterables.pending(s, item) for item in items))
    if any(isinstance(item, GeneratorV) for item in made.items):
        raise s.unsupported("zip of a generator", "go through the generator in a loop")
    if strict is not None and s.static(strict, "strict"):
        lengths = [_len(s, item) for item in made.items]
        for length in lengths[1:]:
            equal = s.compare("eq", length, lengths[0])  # else it raises when the shortest has come to its end
            s.check(s.truth(equal), "Deoptimize", "zip(strict=True) of different lengths")
    return made


@builtin(enumerate)
def _enumerate(s: Context, items: Value, start: Value | None = None) -> Value:
    first = py(0) if start is None else _integer(s, start)
    return IteratorV("enumerate", (first, iterables.pending(s, items)))


@builtin(reversed)
def _reversed(s: Context, items: Value) -> Value:
    if isinstance(items, RangeV):
        b = s.builder
        step = s.static_int(items.step, "the step of a range")
        length = iterables.range_length(s, items)
        last = b.index_add(
            items.start.operand, b.index_mul(ir.Const(step, PYINT), b.index_sub(length, ir.Const(1, PYINT)))
        )
        return RangeV(ScalarV(last), ScalarV(b.index_sub(items.start.operand, ir.Const(step, PYINT))), py(-step))
    if isinstance(items, ComprehensionV | IteratorV):
        raise s.unsupported(f"reversed() of {s.describe(items)}")
    return IteratorV("reversed", (items,))


@builtin(map)
def _map(s: Context, function: Value, *sources: Value) -> Value:
    if len(sources) == 1:
        return ComprehensionV("generator", sources[0], function, None, False)
    return ComprehensionV("generator", _zip(s, *sources), s.call_library("of_tuples", [function]), None, False)


@builtin(filter)
def _filter(s: Context, function: Value, items: Value) -> Value:
    return ComprehensionV("generator", items, Static(_itself), Static(bool) if is_none(function) else function, False)


def _itself(item: Any) -> Any:
    return item


@builtin(tuple, list)
def _sequence(s: Context, value: Value | None = None) -> Value:
    raise AssertionError("registered below")


def _make_sequence(kind: str) -> Callable[..., Value]:
    def make(s: Context, value: Value | None = None) -> Value:
        if value is None:
            return TupleV((), kind)
        if isinstance(value, IteratorV) and kind == "list" and iterables.static_items(value) is None:
            value = ComprehensionV("list", value, Static(_itself), None, False)
        if (
            isinstance(value, ArrayV)
            and value.rank > 1
            and kind == "list"
            and not isinstance(value.extents[0], ir.Const)
        ):
            value = ComprehensionV("list", value, Static(_itself), None, False)
        made = isinstance(value, ComprehensionV)
        if isinstance(value, ComprehensionV):
            value = s.as_list(value)
        if isinstance(value, MapV) and value.kind == "dict" and kind == "list":
            value = array_lists.shown(s, dynamic_lists.keys(value))
        items = iterables.static_items(value)
        if items is not None:
            return TupleV(tuple(items), kind)
        if kind == "list" and (copied := array_lists.listed(s, value, made)) is not None:
            return copied
        if kind == "tuple" and (isinstance(value, RangeV) or array_of(value) is not None):
            try:
                return TupleV(tuple(s.sequence(value)), kind)
            except UnsupportedError:
                raise s.hand_back("a tuple whose length is not known when this is compiled") from None
        return TupleV(tuple(s.sequence(value)), kind)

    return make


BUILTINS[tuple] = _make_sequence("tuple")
BUILTINS[list] = _make_sequence("list")


@builtin(slice)
def _slice(s: Context, *args: Value) -> Value:
    none = lift(None)
    match args:
        case [stop]:
            return SliceV(none, stop, none)
        case [start, stop]:
            return SliceV(start, stop, none)
        case [start, stop, step]:
            return SliceV(start, stop, step)
    raise s.unsupported("slice expected 1 to 3 arguments")


@builtin(dict)
def _dict(s: Context, value: Value | None = None, /, **items: Value) -> Value:
    match value:
        case IteratorV("enumerate") | IteratorV("zip", (_, _)) if not items:
            return s.call_plain("python_dict", [value, Static(_itself), NONE, lift(False)])
    if isinstance(value, MapV) and value.kind == "dict" and not items:
        return hash_maps.copied(s, value)
    held = DictV(()) if value is None else value if isinstance(value, DictV) else dict_items.contents(s, value)
    if held is None:
        raise s.hand_back("dict of what is no dict")
    return DictV(tuple((dict(held.items) | items).items()))


@builtin(types.CellType)
def _cell(s: Context, value: Value = NONE) -> Value:
    return assigned_attributes.new_cell(s, value)


@builtin(lru_cache.check_cache)
def _check_cache(s: Context, decorator: Value) -> Value:
    if not isinstance(decorator, Static) or not any(decorator.object is one for one in lru_cache.CACHES):
        raise s.unsupported("a decorator that is not that of functools")
    return NONE


@builtin(set)
def _set(s: Context, value: Value | None = None) -> Value:
    return hash_maps.new_set(s, ()) if value is None else hash_maps.set_of(s, value)


@builtin(isinstance)
def _isinstance(s: Context, value: Value, kinds: Value) -> Value:
    wanted = s.static(kinds, "a type")
    if not _decided_by_types(wanted):
        raise s.hand_back("isinstance() of a class that answers in its own way")
    if isinstance(value, ObjectV):
        known = known_object(s, value)
        plain = all(type(kind) is type for kind in (wanted if isinstance(wanted, tuple) else (wanted,)))
        if known is not None and plain and in_class(known[0], "__class__") is object.__dict__["__class__"]:
            return py(issubclass(known[0], wanted))
    refuse_for_memmaps(s, value, wanted)
    if isinstance(value, ArrayV) and any(map(class_is_of_dask, wanted if isinstance(wanted, tuple) else (wanted,))):
        raise s.unsupported("whether an array is one of Dask's")  # which is typed as NumPy's
    if isinstance(value, ArrayV) and np.ndarray in (wanted if isinstance(wanted, tuple) else (wanted,)):
        s.python.asks_classes |= not s.frame.namespace.trusted
    return py(issubclass(type_of(s, value), wanted))


def _decided_by_types(wanted: Any) -> bool:
    """Are these classes, or tuples and unions of them, of which an object is an instance by its type alone? Abstract
    ones of the user may be asked in another way, and may know more classes later."""
    if isinstance(wanted, tuple | types.UnionType):
        return all(map(_decided_by_types, wanted if isinstance(wanted, tuple) else wanted.__args__))
    of_others = getattr(wanted, "__module__", None)
    foreign = isinstance(of_others, str) and of_others.partition(".")[0] in (*sys.stdlib_module_names, "numpy")
    return type(wanted) is type or (isinstance(wanted, type) and foreign)


@builtin(type)
def _type(s: Context, value: Value) -> Value:
    refuse_for_memmaps(s, value, np.memmap)
    s.python.asks_classes |= isinstance(value, ArrayV) and not s.frame.namespace.trusted
    return Static(type_of(s, value))


@builtin(callable)
def _callable(s: Context, value: Value) -> Value:
    match value:
        case ClosureV() | MethodV():
            return py(True)
        case Static(known):
            return py(callable(known))
        case InstanceV() | RefV() | ItemV():
            return py(any("__call__" in vars(one) for one in instances.class_of(value).__mro__))
        case ScalarV() | ArrayV() | TupleV() | DictV() | SliceV() | RangeV():
            return py(False)
    raise s.hand_back("callable() of an object")


@builtin(hasattr)
def _hasattr(s: Context, value: Value, name: Value) -> Value:
    if instances.is_instance(value):
        raise s.unsupported("hasattr() of an instance")
    if isinstance(value, Static) and isinstance(value.object, type | types.ModuleType | types.FunctionType):
        module = str(getattr(value.object, "__module__", None) or value.object.__name__)
        if module.partition(".")[0] not in ("builtins", "math", "numpy"):
            raise s.hand_back("hasattr() of a class or module")
        return py(hasattr(value.object, s.static(name, "an attribute's name")))
    text = s.static(name, "an attribute's name")
    if text in vars(np.memmap) and not hasattr(np.ndarray, text):
        refuse_for_memmaps(s, value, np.memmap)
    if isinstance(value, ArrayV) and text in _OF_DASK:
        raise s.unsupported("whether an array is one of Dask's")
    return py(hasattr(type_of(s, value), text))


_OF_DASK: Final = frozenset(
    ("chunks", "chunksize", "compute", "dask", "npartitions", "numblocks", "persist", "rechunk")
)


def refuse_for_memmaps(s: Context, value: Value, kinds: Any) -> None:
    """Refuse to ask whether an array has one of these classes, if it may be a memmap among ordinary arrays."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, ArrayV) and s.arguments.has_memmaps and any(map(_may_be_memmap, kinds)):
        raise s.unsupported("the class of a numpy.memmap")


def _may_be_memmap(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(np.memmap, kind) and not issubclass(np.ndarray, kind)


@builtin(getattr)
def _getattr(s: Context, value: Value, name: Value, *default: Value) -> Value:
    text = s.static(name, "an attribute's name")
    if not isinstance(text, str):
        raise s.unsupported("attribute name must be string")
    if default:
        if not isinstance(value, Static | ArrayV | ScalarV):
            raise s.hand_back("getattr of an object, with a default")
        if not hasattr(value.object if isinstance(value, Static) else type_of(s, value), text):
            return default[0]
    return s.attribute(value, text)


def type_of(s: Context, value: Value) -> type:
    """The Python type of a value."""
    match value:
        case ScalarV():
            if value.python:
                return {"bool": bool, "int64": int, "float64": float, "complex128": complex}[value.dtype]
            return np.dtype(value.dtype).type
        case ArrayV():
            return np.ndarray
        case InstanceV() | RefV() | ItemV():
            return instances.class_of(value)  # type: ignore[no-any-return]
        case TupleV(_, kind, named):
            return named or (tuple if kind == "tuple" else list)
        case _ if is_list(value):
            return list
        case DictV():
            return dict
        case ObjectV() if dict_items.source_of(s, value) is not None:
            return dict
        case MapV(kind=kind):
            return dict if kind == "dict" else set
        case RangeV():
            return range
        case SliceV():
            return slice
        case ClosureV():
            return type(type_of)
        case ErrorV(kind):
            return kind
        case Static(obj):
            return type(obj)
    raise s.hand_back(f"the type of {s.describe(value)}")


# ---- numbers ---------------------------------------------------------------------------------------------------------


@builtin(abs)
def _abs(s: Context, value: Value) -> Value:
    if isinstance(value, TimeV):
        return arithmetic.unary(s, "abs", value)
    known_result = long_ints.unary_of_known("abs", value)
    if known_result is not None:
        return known_result
    convert.must_not_be_container(s, value, "abs()")
    number = s.numeric(value)
    if isinstance(number, ScalarV) and number.python:
        return python_unary(s, "abs", number)
    if isinstance(number, ScalarV) and is_complex(number.dtype):
        return scalar_abs(s, number.operand)
    return call_ufunc(s, np.absolute, [number], operator=True)


def _number_of(s: Context, kind: type, known_value: Any) -> Value:
    """int or float of a string, or of something else that is known."""
    try:
        return lift(kind(known_value))
    except (ValueError, TypeError, OverflowError) as error:
        s.check(ir.Const(False, PYBOOL), type(error).__name__, escaped(str(error)))
        return NeverV()


@builtin(float)
def _float(s: Context, value: Value | None = None) -> Value:
    if value is None:
        return py(0.0)
    if isinstance(value, Static):
        return _number_of(s, float, value.object)
    operand = number(s, value)
    if is_complex(ir.dtype_of(operand)):
        raise s.unsupported("float() argument must not be complex")
    return ScalarV(s.builder.cast(operand, PYFLOAT))


@builtin(int)
def int_of(s: Context, value: Value | None = None) -> Value:
    if value is None:
        return py(0)
    if isinstance(value, Static):
        return _number_of(s, int, value.object)
    operand = number(s, value)
    dtype = ir.dtype_of(operand)
    b = s.builder
    if is_complex(dtype):
        raise s.unsupported("int() argument must not be complex")
    if isinstance(operand, ir.Const) and math.isfinite(operand.value.real):
        return lift(int(operand.value.real))
    if is_float(dtype):
        return ScalarV(float_to_int(s, b.cast(operand, PYFLOAT)))
    if dtype == "uint64":
        limit = ir.Const((1 << 63) - 1, Scalar("uint64"))
        s.check(b.prim("le", operand, limit, type=PYBOOL), "OverflowError", OVERFLOW)
    return ScalarV(b.cast(operand, PYINT))


def float_to_int(s: Context, operand: ir.Operand) -> ir.Operand:
    """int(float): NaN and infinity raise as in Python, what does not fit 64 bits raises OverflowError."""
    b = s.builder
    if isinstance(operand, ir.Const) and abs(operand.value.real) < 2.0**63:
        return ir.Const(int(operand.value.real), PYINT)
    s.check(b.prim("not", b.prim("isnan", operand, type=PYBOOL)), "ValueError", "cannot convert float NaN to integer")
    s.check(
        b.prim("not", b.prim("isinf", operand, type=PYBOOL)),
        "OverflowError",
        "cannot convert float infinity to integer",
    )
    low, high = ir.Const(-(2.0**63), PYFLOAT), ir.Const(2.0**63, PYFLOAT)
    inside = b.logical_and(b.prim("ge", operand, low, type=PYBOOL), b.prim("lt", operand, high, type=PYBOOL))
    s.check(inside, "OverflowError", OVERFLOW)
    return b.cast(operand, PYINT)


@builtin(str)
def _str(s: Context, value: Value | None = None) -> Value:
    match value:
        case None:
            return Static("")
        case ErrorV():
            return messages.text_of_error(s, value)
        case MessageV() | Static(str()):
            return value
        case Static(None):
            return Static("None")
        case ScalarV():
            return messages.format_values(s, [(value, "s", "")])  # what NumPy formats otherwise
    raise s.hand_back("str is not compiled")


@builtin(bool)
def _bool(s: Context, value: Value | None = None) -> Value:
    return py(False) if value is None else ScalarV(s.truth(value))


@builtin(complex)
def _complex(s: Context, real: Value | None = None, imag: Value | None = None) -> Value:
    b = s.builder
    if real is None:
        return py(0j)
    first = number(s, real)
    if imag is None:
        return ScalarV(b.cast(first, PYCOMPLEX))
    second = number(s, imag)
    if is_complex(ir.dtype_of(first)) or is_complex(ir.dtype_of(second)):
        raise s.unsupported("complex(complex, ...)")
    return ScalarV(b.prim("complex", b.cast(first, PYFLOAT), b.cast(second, PYFLOAT), type=PYCOMPLEX))


def number(s: Context, value: Value) -> ir.Operand:
    number = s.numeric(value)
    if isinstance(number, ArrayV) and number.rank > 0:
        raise s.hand_back("a number from an array with axes")  # which NumPy refuses, from 2.4 on always
    return scalar_operand(s, number)


@builtin(pow)
def _pow(s: Context, base: Value, exponent: Value, modulus: Value | None = None) -> Value:
    if modulus is not None and not is_none(modulus):
        numbers = [base, exponent, modulus]
        if not all(isinstance(one, ScalarV) and one.type in (PYINT, PYBOOL) for one in numbers):
            raise s.hand_back("pow with a modulus")
        return s.call_library("int_pow", numbers)
    return s.binary("pow", base, exponent)


@builtin(divmod)
def _divmod(s: Context, left: Value, right: Value) -> Value:
    for one, other in ((left, right), (right, left)):
        if isinstance(other, ScalarV) and other.python:
            convert.must_not_be_container(s, one, "divmod()")
    a, c = s.numeric(left), s.numeric(right)
    if isinstance(a, ScalarV) and isinstance(c, ScalarV) and a.python and c.python:
        if "float64" in (a.dtype, c.dtype):
            some = s.builder.prim("ne", s.builder.cast(c.operand, PYFLOAT), ir.Const(0.0, PYFLOAT), type=PYBOOL)
            text = "float divmod()" if sys.version_info < (3, 14) else "division by zero"
            s.check(some, "ZeroDivisionError", text)
        return TupleV((python_binary(s, "floordiv", a, c), python_binary(s, "mod", a, c)))
    return TupleV((call_ufunc(s, np.floor_divide, [a, c]), call_ufunc(s, np.remainder, [a, c])))


EXACT_TENS = 22  # powers of ten that are floats


def _digits(digits: Value | None) -> int | None:
    """How many digits a number is rounded to, where that is known and they are behind the point."""
    count = known(digits) if digits is not None and is_known(digits) else None
    return count if type(count) is int and count >= 0 else None


@builtin(round)
def _round(s: Context, value: Value, digits: Value | None = None) -> Value:
    number = s.numeric(value)
    b = s.builder
    plain = digits is None or is_none(digits)
    if isinstance(number, ScalarV) and number.dtype in ("int64", "bool") and number.python:
        if plain:
            return ScalarV(b.cast(number.operand, PYINT))
        if _digits(digits) is not None:
            return ScalarV(b.cast(number.operand, PYINT))
        raise s.hand_back("round of an int to digits")
    if isinstance(number, ScalarV) and plain and np.dtype(number.dtype).kind in "iu":
        return int_of(s, number)
    if isinstance(number, ScalarV) and is_float(number.dtype) and plain:
        rounded = b.prim("rint", b.cast(number.operand, PYFLOAT))
        return ScalarV(float_to_int(s, rounded))
    if isinstance(number, ScalarV) and number.python:
        if number.dtype == "float64" and (count := _digits(digits)) is not None and count <= EXACT_TENS:
            return s.call_library("round_to_digits", [number, py(10.0**count)])
        raise s.hand_back("round of a float to digits (Python rounds its decimal value)")
    if not isinstance(number, ScalarV) or is_complex(number.dtype):
        raise s.hand_back("round of what has no __round__")
    return s.call(Static(np.round), [number] if plain else [number, digits or py(0)], {})


def build_exception(s: Context, kind: type[BaseException], args: list[Value]) -> Value:
    """An exception object: at most one argument, a message. Python makes those that are no failure of a check."""
    if s.guards and s.guards[-1].may_make(s, kind) and not (len(args) == 1 and messages.is_text(args[0])):
        return ErrorV(kind, None)
    if name_of_exception(kind) is None:
        raise s.hand_back(f"{kind.__name__} cannot be found by its name")
    if not args:
        return ErrorV(kind, "")
    if not (s.frame.namespace.trusted or messages.is_text(args[0])):
        raise s.hand_back(f"{kind.__name__} with an argument that is no text")
    if len(args) > 1:
        raise s.hand_back(f"{kind.__name__} with several arguments")
    try:
        message, operands = s.message(args[0])
    except UnsupportedError as error:
        raise s.hand_back(error.message) from None
    own_text = kind is KeyError and message == KEY and not s.frame.namespace.trusted  # not the key itself
    return ErrorV(kind, "{0!s}" if own_text else message, operands)
