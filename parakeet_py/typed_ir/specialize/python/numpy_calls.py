"""Calls of ufuncs, scalar types and vectorized functions of NumPy: matchers of `known_calls`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import DTYPES, Scalar
from parakeet_py.library import registry
from parakeet_py.typed_ir.specialize.arrays.array_store import keep_imaginary, store_cast
from parakeet_py.typed_ir.specialize.arrays.elementwise import scalar_operand
from parakeet_py.typed_ir.specialize.arrays.ufuncs import call_ufunc
from parakeet_py.typed_ir.specialize.intrinsics.table import dtype_name
from parakeet_py.typed_ir.specialize.python import (
    long_ints,
)
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ScalarV,
    Static,
    TupleV,
    Value,
    is_none,
    known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def ufunc(s: Context, ufunc: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if not isinstance(ufunc, np.ufunc):
        return None
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", None)
    dtype = kwargs.pop("dtype", None)
    casting = known(kwargs.pop("casting")) if "casting" in kwargs else "same_kind"
    order = known(kwargs.pop("order")) if "order" in kwargs else "K"
    if "subok" in kwargs:
        s.truth(kwargs.pop("subok"))  # there are no subclasses here
    axis = {"axis": kwargs.pop("axis")} if ufunc is np.vecdot and "axis" in kwargs else {}
    if kwargs or order not in ("K", "C", "F") or (ufunc.signature and (order, casting) != ("K", "same_kind")):
        raise s.hand_back(f"np.{ufunc.__name__} with {', '.join(kwargs) or 'order or casting'}")
    if out is not None and ufunc.nout > 1 and not (isinstance(out, TupleV) and len(out.items) == ufunc.nout):
        raise s.unsupported("'out' must be a tuple of arrays")
    if len(args) > ufunc.nin and out is None:
        outs = args[ufunc.nin :]
        args = args[: ufunc.nin]
        out = outs[0] if ufunc.nout == 1 else TupleV((*outs, *[lift(None)] * (ufunc.nout - len(outs))))
    if ufunc.signature is not None:
        body = registry.function_for(ufunc)
        if body is None or dtype is not None or where is not None:
            raise s.hand_back(f"np.{ufunc.__name__}")
        extra = {} if out is None or is_none(out) else {"out": out}
        return s.call_python(body, args, {**extra, **axis}, trusted=True)
    if isinstance(out, TupleV) and len(out.items) == 1:
        out = out.items[0]
    if isinstance(out, TupleV) and any(map(is_none, out.items)):
        if not all(map(is_none, out.items)):
            raise s.hand_back("some of several outputs")
        out = None
    if ufunc is np.power and where is not None and where != lift(True):
        raise s.hand_back("np.power with where, which only looks at the exponents it takes")
    made = call_ufunc(
        s,
        ufunc,
        args,
        out=None if out is None or is_none(out) else out,
        dtype=None if dtype is None or is_none(dtype) else dtype_name(s, dtype),
        where=None if where is None or where == lift(True) else where,
        casting=casting,
    )
    return made if order == "K" or not (out is None or is_none(out)) else _in_order(s, made, order)


def _in_order(s: Context, value: Value, order: str) -> Value:
    """New arrays whose elements lie in an order that is asked for."""
    match value:
        case TupleV(items):
            return replace(value, items=tuple(_in_order(s, item, order) for item in items))
        case ArrayV():
            return s.call(Static(np.copy), [value, lift(order)], {})
    return value


def scalar_type(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """np.float64(x) and the like."""
    if not isinstance(target, type) or not issubclass(target, np.generic):
        return None
    if kwargs:
        raise s.hand_back(f"{target.__name__} with {', '.join(kwargs)}")
    try:
        name = np.dtype(target).name
    except TypeError:
        name = ""
    if name not in DTYPES or target not in (np.dtype(name).type,):
        raise s.hand_back(f"{target.__name__} is not compiled")
    if not args:
        return lift(np.dtype(name).type())
    if len(args) > 1:
        raise s.hand_back(f"{target.__name__} of several arguments")
    if long_ints.is_long(args[0]) and name in ("uint64", "float64"):
        try:
            return lift(np.dtype(name).type(known(args[0])))
        except OverflowError as error:
            raise s.hand_back(str(error)) from None
    value = s.numeric(args[0])
    if isinstance(value, ArrayV) and value.rank > 0:
        return s.cast_array(value, name)
    operand = scalar_operand(s, value)
    if isinstance(value, ScalarV) and value.python:
        if value.dtype == "complex128" and np.dtype(name).kind != "c":
            raise s.unsupported("float() argument must not be complex")
        return ScalarV(store_cast(s, operand, Scalar(name)))  # as `x[...] = value` does it
    keep_imaginary(s, value.dtype, name)
    return ScalarV(s.builder.cast(operand, Scalar(name)))


def vectorized(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A call of what np.vectorize made; Python makes it where the function inside is not compiled."""
    if type(target) is not np.vectorize:
        return None
    if kwargs or target.signature is not None or target.excluded:
        raise s.hand_back("a vectorized function with a signature, or called with names")
    try:
        return s.call_library("vectorized", [lift(target.pyfunc), TupleV(tuple(args)), lift(target.otypes)])
    except UnsupportedError as error:
        raise s.hand_back(f"a vectorized function: {error}") from None
