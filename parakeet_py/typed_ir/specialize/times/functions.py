"""NumPy's functions, methods and attributes for times: those that move elements move the int64; others put together
what the elements give. What is not here is handed back, or refused where arrays of times are concerned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import DTYPES, INT64, PYBOOL, Scalar, itemsize
from parakeet_py.library import registry
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays.elementwise import elementwise
from parakeet_py.typed_ir.specialize.times import arithmetic
from parakeet_py.typed_ir.specialize.times.times import (
    NAT,
    any_in,
    as_unit,
    dtype_of,
    factor,
    ints,
    is_time,
    like,
    of_known,
)
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    MethodV,
    ScalarV,
    Static,
    TimeV,
    TupleV,
    Unknown,
    Value,
    is_known,
    known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_LEAST = lift(np.int64(-(1 << 63)))
_ONE = lift(np.int64(1))


# ---- calls -----------------------------------------------------------------------------------------------------------


def called(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """target(*args, **kwargs), where that is a function of NumPy's and has to do with times; else None."""
    if target is np.datetime64 or target is np.timedelta64:
        return _made(s, target, args, kwargs)
    if target is max or target is min:
        return _extreme(s, "gt" if target is max else "lt", args) if not kwargs else None
    if not any(map(any_in, args)) and not any(map(any_in, kwargs.values())):
        return _empty(s, target, args, kwargs)
    if isinstance(target, np.ufunc):
        made = arithmetic.ufunc(s, target, args) if not kwargs else None
    elif registry.function_for(target) is None and getattr(target, "__module__", None) != "numpy":
        return None
    else:
        made = _function(s, target, args, kwargs)
    if made is None:
        raise s.hand_back(f"{target.__name__} of {_named(s, (*args, *kwargs.values()))} is not compiled")
    return made


def _extreme(s: Context, op: str, args: list[Value]) -> Value | None:
    """max() or min() of several scalars of one unit."""
    units = {arg.unit if isinstance(arg, TimeV) and isinstance(arg.value, ScalarV) else "" for arg in args}
    if len(args) < 2 or len(units) != 1 or units == {""}:
        return None
    best = args[0]
    for one in args[1:]:
        better = s.compare(op, one, best)
        assert isinstance(better, ScalarV) and isinstance(one, TimeV) and isinstance(best, TimeV)
        assert isinstance(one.value, ScalarV) and isinstance(best.value, ScalarV)
        chosen = s.builder.select(s.builder.cast(better.operand, PYBOOL), one.value.operand, best.value.operand)
        best = TimeV(ScalarV(chosen), one.unit)
    return best


def _named(s: Context, values: Iterable[Value]) -> str:
    """The first time among some values, for messages."""
    found = next(value for value in values if any_in(value))
    while isinstance(found, TupleV):
        found = next(filter(any_in, found.items))
    return s.describe(found)


def _made(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """np.datetime64(...) or np.timedelta64(...), of what is known, or of an int and a unit."""
    if kwargs or not args:
        return None
    if all(map(is_known, args)):
        values = list(map(known, args))
        if values[0] in ("now", "today"):
            return None
        try:
            made = target(*values)
        except (TypeError, ValueError, OverflowError):
            return None
        return of_known(made) or Static(made)
    if len(args) != 2 or not is_known(args[1]) or not isinstance(args[0], ScalarV) or args[0].dtype != "int64":
        return None
    try:
        unit = target(0, known(args[1])).dtype.str[1:]
    except (TypeError, ValueError):
        return None
    return TimeV(ScalarV(s.builder.cast(args[0].operand, INT64)), unit)


def _empty(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """np.zeros(shape, dtype) and np.empty, of times."""
    if target is not np.zeros and target is not np.empty:
        return None
    given = kwargs.get("dtype", args[1] if len(args) > 1 else None)
    unit = "" if given is None else _unit_of(given)
    if not unit:
        return None
    others = {name: value for name, value in kwargs.items() if name != "dtype"}
    return like(s.call(Static(target), [args[0], lift(np.dtype("int64")), *args[2:]], others), unit)


def _coarser(s: Context, value: TimeV, unit: str) -> Value | None:
    """Times in a coarser unit: as many whole ones as have passed."""
    count = factor(unit, value.unit)
    if count is None:
        return None
    whole = s.binary("floordiv", value.value, lift(np.int64(count)))
    return like(_where_nat(s, s.compare("eq", value.value, _LEAST), whole), unit)


def _unit_of(value: Value) -> str:
    """The unit that a dtype is; "" of others."""
    try:
        dtype = np.dtype(known(value))
    except (Unknown, TypeError):
        return ""
    return dtype.str[1:] if dtype.kind in "mM" and dtype.isnative and dtype.str[-1] == "]" else ""


def _function(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    places = _MOVES.get(target)
    if places is not None:
        return _moved(s, target, places, args, kwargs)
    if not args or not isinstance(args[0], TimeV) or any(map(any_in, (*args[1:], *kwargs.values()))):
        return None
    return _of_elements(s, target.__name__, args[0], args[1:], kwargs)


def _moved(
    s: Context, target: Any, places: tuple[int, ...], args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """A function that gives elements of the arguments at `places`, which have to be times of one unit."""
    if kwargs.keys() & {"dtype", "out", "casting", "subok", "like", "mode"} or len(args) <= places[-1]:
        return None
    found = [time for place in places for time in _leaves(args[place])]
    units = {time.unit for time in found if isinstance(time, TimeV)}
    if len(units) != 1 or not all(map(is_time, found)):
        return None
    others = [arg for place, arg in enumerate(args) if place not in places]
    if any(map(any_in, (*others, *kwargs.values()))):
        return None
    unit = units.pop()
    numbers = [_numbers(s, arg, unit) if place in places else arg for place, arg in enumerate(args)]
    return like(s.call(Static(target), numbers, kwargs), unit)


def _leaves(value: Value) -> list[Value]:
    return [leaf for item in value.items for leaf in _leaves(item)] if isinstance(value, TupleV) else [value]


def _numbers(s: Context, value: Value, unit: str) -> Value:
    if isinstance(value, TupleV):
        return TupleV(tuple(_numbers(s, item, unit) for item in value.items), value.kind)
    return ints(s, value, unit)


def _places_of() -> dict[Any, tuple[int, ...]]:
    """The functions that give elements of some of their arguments."""
    first = (
        *(np.reshape, np.ravel, np.transpose, np.squeeze, np.swapaxes, np.moveaxis, np.expand_dims, np.repeat),
        *(np.tile, np.take, np.roll, np.flip, np.fliplr, np.flipud, np.rot90, np.copy, np.broadcast_to, np.atleast_1d),
        *(np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.diagonal),
    )
    return {np.where: (1, 2)} | dict.fromkeys(first, (0,))


_MOVES = _places_of()
_METHODS_THAT_MOVE = frozenset(
    {"reshape", "ravel", "flatten", "transpose", "squeeze", "swapaxes", "repeat", "take", "copy"}
)


# ---- what elements give ----------------------------------------------------------------------------------------------


def _of_elements(s: Context, name: str, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function of NumPy's, by its name, or the method that is called so."""
    function = _OF_ELEMENTS.get(name)
    allowed = {"axis", "keepdims"} if name in ("min", "max", "amin", "amax", "sum") else {"axis"}
    if function is None or not isinstance(time.value, ArrayV) or len(args) > 1 or not kwargs.keys() <= allowed:
        return None
    return function(s, time, args, kwargs)


def _reduced(s: Context, name: str, value: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return s.call(Static(getattr(np, name)), [value, *args], kwargs)


def _where_nat(s: Context, found: Value, number: Value) -> Value:
    """A number, or NaT where that was found."""
    b = s.builder
    assert isinstance(found, ArrayV | ScalarV) and isinstance(number, ArrayV | ScalarV)

    def body(operands: list[ir.Operand]) -> list[ir.Operand]:
        return [b.select(b.cast(operands[0], PYBOOL), NAT, operands[1])]

    return elementwise(s, body, [found, number])[0]


def _least(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return like(_reduced(s, "min", time.value, args, kwargs), time.unit)  # NaT is the least int64


def _greatest(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    greatest = _reduced(s, "max", time.value, args, kwargs)
    least = _reduced(s, "min", time.value, args, kwargs)
    return like(_where_nat(s, s.compare("eq", least, _LEAST), greatest), time.unit)


def _sum(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if time.unit[0] == "M":
        return None
    found = _reduced(s, "any", s.compare("eq", time.value, _LEAST), args, kwargs)
    return like(_where_nat(s, found, _reduced(s, "sum", time.value, args, kwargs)), time.unit)


def _by_order(name: str) -> Callable[[Context, TimeV, list[Value], dict[str, Value]], Value | None]:
    """A function that sorts: of all int64 one less, NaT is the greatest."""

    def function(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if name == "unique" and (args or kwargs):
            return None
        made = _reduced(s, name, s.binary("sub", time.value, _ONE), args, kwargs)
        return like(s.binary("add", made, _ONE), time.unit)

    return function


def _argmin(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _reduced(s, "argmin", time.value, args, kwargs)  # the first NaT, if there is one


def _argmax(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _reduced(s, "argmax", s.binary("sub", time.value, _ONE), args, kwargs)


def _differences(s: Context, time: TimeV, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if args or kwargs or not isinstance(time.value, ArrayV) or not time.value.rank:
        return None
    behind = TupleV((Static(Ellipsis), lift(slice(1, None))))
    before = TupleV((Static(Ellipsis), lift(slice(None, -1))))
    return arithmetic.binary(s, "sub", s.subscript(time, behind), s.subscript(time, before))


_OF_ELEMENTS: dict[str, Callable[[Context, TimeV, list[Value], dict[str, Value]], Value | None]] = {
    "min": _least,
    "amin": _least,
    "max": _greatest,
    "amax": _greatest,
    "sum": _sum,
    "sort": _by_order("sort"),
    "unique": _by_order("unique"),
    "argmin": _argmin,
    "argmax": _argmax,
    "diff": _differences,
}
_METHODS = frozenset({"min", "max", "sum", "argmin", "argmax"})


# ---- attributes and methods ------------------------------------------------------------------------------------------


def attribute(s: Context, value: TimeV, name: str) -> Value:
    """value.name"""
    match name:
        case "dtype":
            return Static(dtype_of(value))
        case "T":
            return like(s.attribute(value.value, name), value.unit)
        case "shape" | "ndim" | "size" | "nbytes" | "itemsize" | "strides" if isinstance(value.value, ArrayV):
            return s.attribute(value.value, name)
        case "ndim" | "size" | "itemsize":
            return py({"ndim": 0, "size": 1, "itemsize": itemsize("int64")}[name])
        case "shape":
            return TupleV(())
    if hasattr(np.ndarray if isinstance(value.value, ArrayV) else np.dtype(value.unit).type, name):
        return MethodV(value, name)
    raise s.hand_back(f".{name} of {s.describe(value)}")


def method(s: Context, value: TimeV, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """value.name(*args, **kwargs)"""
    made: Value | None = None
    if not any(map(any_in, (*args, *kwargs.values()))):
        if name in ("astype", "view") and len(args) == 1 and not kwargs:
            made = _as(s, value, args[0], name)
        elif name == "sort" and isinstance(value.value, ArrayV) and not args and not kwargs:
            s.set_item(value, Static(Ellipsis), s.call(Static(np.sort), [value], {}))
            return NONE
        elif name in _METHODS_THAT_MOVE and isinstance(value.value, ArrayV):
            made = like(s.call_method(value.value, name, args, kwargs), value.unit)
        elif name in _METHODS:
            made = _of_elements(s, name, value, args, kwargs)
    if made is None:
        raise s.hand_back(f".{name}() of {s.describe(value)}")
    return made


def _as(s: Context, value: TimeV, dtype: Value, name: str) -> Value | None:
    unit = _unit_of(dtype)
    if unit:
        whole = name == "view" and isinstance(value.value, ArrayV)
        if whole:
            return None
        if unit == value.unit and isinstance(value.value, ArrayV):
            return like(s.call_method(value.value, "astype", [lift(np.dtype("int64"))], {}), unit)
        return value if unit == value.unit else as_unit(s, value, unit) or _coarser(s, value, unit)
    try:
        target = np.dtype(known(dtype))
    except (Unknown, TypeError):
        return None
    if target.name not in DTYPES or (name == "view" and target.name != "int64"):
        return None
    if isinstance(value.value, ScalarV):
        return (
            value.value if target.name == "int64" else ScalarV(s.builder.cast(value.value.operand, Scalar(target.name)))
        )
    return s.call_method(value.value, name, [Static(target)], {})
