"""Calls: binding arguments, inlining Python functions, Python's builtins, NumPy's functions through the library.

In the order they are tried: nested functions; words of the accelerated language; functions evaluated at compile time;
ufuncs and dtypes; builtins; whatever the library implements; any other Python function with source, inlined. What is
left is handed back to Python.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import logging
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import extensions
from parakeet_py.base.errors import NoSourceError, UnsupportedError
from parakeet_py.base.types import DTYPES, Scalar
from parakeet_py.frontend import ssa, to_ssa_cached
from parakeet_py.library import registry
from parakeet_py.signature.attribute_sources import has_method
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize import messages
from parakeet_py.typed_ir.specialize.arrays.array_store import keep_imaginary, store_cast
from parakeet_py.typed_ir.specialize.arrays.elementwise import scalar_operand
from parakeet_py.typed_ir.specialize.arrays.ufuncs import call_ufunc
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.containers import dict_items, dynamic_lists, strings
from parakeet_py.typed_ir.specialize.instances import instances, operators
from parakeet_py.typed_ir.specialize.intrinsics.table import dtype_name
from parakeet_py.typed_ir.specialize.intrinsics.words import HANDLERS
from parakeet_py.typed_ir.specialize.opaque import python_closures
from parakeet_py.typed_ir.specialize.paths import generators, iterator_consumption
from parakeet_py.typed_ir.specialize.python import (
    long_ints,
    named_tuples,
    operator_calls,
    procedures,
)
from parakeet_py.typed_ir.specialize.python.builtin_calls import build_exception
from parakeet_py.typed_ir.specialize.python.inlined_functions import is_accelerated
from parakeet_py.typed_ir.specialize.python.table import BUILTINS
from parakeet_py.typed_ir.specialize.restarts import HandBack, Sequential, TooDeep
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    Frame,
    InstanceV,
    ItemV,
    MethodV,
    Namespace,
    NeverV,
    ObjectV,
    RefV,
    ScalarV,
    Static,
    TextV,
    TupleV,
    UnboundV,
    Value,
    is_known,
    is_none,
    known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

logger = logging.getLogger("parakeet_py")

MAX_DEPTH = 48
MAX_RECURSIONS = 200


def call(s: Context, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The value of `function(*args, **kwargs)`."""
    match function:
        case ClosureV():
            return call_closure(s, function, args, kwargs)
        case MethodV(obj, name):
            return s.call_method(obj, name, args, kwargs)
        case Static(target):
            return call_static(s, target, args, kwargs)
        case ObjectV():
            return _called_object(s, function, args, kwargs)
        case InstanceV() | RefV() | ItemV():
            if not instances.has(function, "__call__"):
                raise s.unsupported(f"{s.describe(function)} is not callable")
            return instances.call_method(s, function, "__call__", args, kwargs)
        case UnboundV():
            raise s.unsupported("a call of a name that is not bound")
    raise s.unsupported(f"{s.describe(function)} is not callable")


def _called_object(s: Context, obj: ObjectV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of an object whose class says in Python what that does."""
    owner = known_object(s, obj)
    if owner is None or not has_method(owner[0], "__call__"):
        raise s.hand_back("a call of an object")
    return s.call_method(obj, "__call__", args, kwargs)


def registered_body(s: Context, target: Any) -> types.FunctionType | None:
    """The body that a user has registered for a function, if it counts here: not in the body itself or the library."""
    body = extensions.body_of(target)
    if body is None or s.frames[-1].namespace.trusted or any(one.namespace.owner is body for one in s.frames):
        return None
    return body


def call_registered(
    s: Context, target: Any, body: types.FunctionType, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Inline the body that is registered for a function, and say so."""
    line, value = s.pos.line, call_user(s, body, args, kwargs)
    note = f"{extensions.name_of(target)} (line {line}) is done by {body.__qualname__}, registered for it"
    if note not in s.widened:
        s.widened.append(note)
    return value


def call_static(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    own = registered_body(s, target)
    if own is not None:
        return call_registered(s, target, own, args, kwargs)
    if isinstance(target, type) and instances.makes(s, target):
        return instances.make(s, target, args, kwargs)
    if target is super and not args and not kwargs:
        return instances.super_of(s)
    if target is ord and len(args) == 1 and not kwargs:
        strings.need(s, args[0])
        if strings.is_text(args[0]):
            return strings.code_point(s, args[0])
    if any(map(instances.is_instance, args)):
        if target is object.__setattr__ and len(args) == 3 and not kwargs:
            return instances.set_frozen(s, args[0], s.static(args[1], "an attribute's name"), args[2])
        done = operators.builtin_call(s, target, args) if not kwargs else None
        if done is not None:
            return done
    handler = HANDLERS.get(id(target))
    if handler is not None:
        return handler(s, *args, **kwargs)
    if registry.is_static(target) or isinstance(getattr(target, "__self__", None), np.dtype):
        return call_known(s, target, args, kwargs)
    if isinstance(target, np.ufunc):
        return _call_ufunc(s, target, args, kwargs)
    try:
        handler = BUILTINS.get(target)
    except TypeError:
        handler = None
    if handler is not None:
        if not _takes(handler, len(args), frozenset(kwargs)):
            raise s.hand_back(f"{target.__name__} with these arguments is not compiled")
        if target in _GO_THROUGH:
            for arg in args:
                strings.need(s, arg)
            if target in (list, tuple, sorted, set) and len(args) == 1 and isinstance(args[0], TextV):
                if target is sorted and not kwargs:
                    return strings.in_order(s, args[0])
                args = [strings.characters(s, args[0])]
            args = [dict_items.listed(s, arg, target in _LAZY) for arg in args]
            args = args if target in (*_LAZY, len) else [_as_line(s, arg) for arg in args]
        if any(map(iterator_consumption.is_lazy, args)):
            if target in _ENDING and len(args) == 1:
                return call_plain(s, f"lazy_{target.__name__}", args)
            if target is list and len(args) == 1:
                return s.as_list(args[0])
            if target in _GO_THROUGH and target not in _LAZY:
                args = [dynamic_lists.shown(s, s.as_list(arg)) for arg in args]
        mark, sites = s.builder.mark(), len(s.python.sites)
        with _handing_back(s, target):
            try:
                return handler(s, *args, **kwargs)
            except Sequential:
                if target in (all, any) or not any(isinstance(arg, ComprehensionV) for arg in args):
                    raise
                s.builder.rollback(mark)
                del s.python.sites[sites:]
                return handler(s, *map(s.as_list, args), **kwargs)
    if named_tuples.is_plain(target):
        return named_tuples.make(s, target, args, kwargs)
    if isinstance(target, type) and issubclass(target, np.generic):
        if kwargs:
            raise s.hand_back(f"{target.__name__} with {', '.join(kwargs)}")
        return _scalar_type(s, target, args)
    if isinstance(target, type) and issubclass(target, BaseException):
        return build_exception(s, target, args)
    if type(target) is np.vectorize:
        return _call_vectorized(s, target, args, kwargs)
    body = registry.function_for(target)
    if body is not None:
        args = [_as_line(s, arg) for arg in args] if any(target is one for one in _OF_LINES) else args
        return _call_implementation(s, target, body, args, kwargs)
    plain = registry.plain_for(target)
    if plain is not None:
        return call_python(s, plain, args, kwargs, trusted=False)
    if type(target) is operator.itemgetter and len(args) == 1 and not kwargs:
        return operator_calls.items_got(s, target, args[0])
    if s.frames[-1].namespace.trusted and getattr(target, "__module__", "").startswith("parakeet_py.library."):
        return call_python(s, target, args, kwargs, trusted=True)
    inner = getattr(target, "__wrapped__", None) if is_accelerated(target) else target
    if isinstance(inner, types.FunctionType):
        return call_user(s, inner, args, kwargs)
    made = named_tuples.class_of_maker(target)
    if made is not None:
        return named_tuples.make_of(s, made, args, kwargs)
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return call_user(s, target.__func__, [lift(target.__self__), *args], kwargs)
    name = getattr(target, "__name__", repr(target))
    text = getattr(target, "__self__", None)
    if type(text) is str and name == "format" and s.out is not None and iterator_consumption.is_passed_on(s, s.out):
        formatted = messages.str_format(s, text, args, kwargs)
        if formatted is not None:
            return messages.at_once(s, formatted)
    if (type(text) is str or any(target is one for one in _OF_TEXTS)) and all(map(is_known, (*args, *kwargs.values()))):
        return call_known(s, target, args, kwargs)
    raise s.hand_back(f"{name} is not compiled")


_ENDING = (any, all)
_LAZY = (zip, enumerate, reversed, map, filter)
_GO_THROUGH = (*_LAZY, len, tuple, list, set, sum, all, any, min, max, sorted)
_OF_LINES = (  # that make an array of `a.flat` and only read it
    *(np.asarray, np.sort, np.unique, np.cumsum, np.median, np.bincount, np.histogram, np.count_nonzero),
    *(np.sum, np.prod, np.mean, np.std, np.var, np.min, np.max, np.argmin, np.argmax, np.any, np.all),
)
_OF_TEXTS: tuple[Any, ...] = (ord, chr, hex, bin, oct)


def _as_line(s: Context, value: Value) -> Value:
    """The elements that `a.flat` goes through; other values as they are."""
    match value:
        case MethodV(ArrayV() as array, "flat"):
            return s.call_library("flat_line", [array])
    return value


def _call_implementation(s: Context, target: Any, body: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Inline the library's implementation of a function; arguments it was not written for are for Python."""
    with _handing_back(s, target):
        return call_python(s, body, args, kwargs, trusted=True)


def _call_vectorized(s: Context, target: np.vectorize, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of what np.vectorize made; Python makes it where the function inside is not compiled."""
    if kwargs or target.signature is not None or target.excluded:
        raise s.hand_back("a vectorized function with a signature, or called with names")
    try:
        return s.call_library("vectorized", [lift(target.pyfunc), TupleV(tuple(args)), lift(target.otypes)])
    except UnsupportedError as error:
        raise s.hand_back(f"a vectorized function: {error}") from None


@contextmanager
def _handing_back(s: Context, target: Any) -> Iterator[None]:
    """What an implementation raises, over known arguments, Python shall raise itself, where the call is reached."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        if s.frames[-1].namespace.trusted:
            raise
        name = getattr(target, "__name__", repr(target))
        logger.debug("%s is handed back: its implementation has failed", name, exc_info=True)
        raise s.hand_back(f"{name} with these arguments is not compiled ({error})") from None


@functools.cache
def _takes(handler: Callable[..., Value], positional: int, named: frozenset[str]) -> bool:
    """Does the handler of a builtin take such a call?"""
    try:
        inspect.signature(handler).bind(None, *range(positional), **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def call_known(s: Context, target: Callable[..., Any], args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """Run a Python function at compile time."""
    values = [s.static(arg, "this argument") for arg in args]
    named = {name: s.static(arg, f"the argument {name}") for name, arg in kwargs.items()}
    try:
        return lift(target(*values, **named))
    except (UnsupportedError, HandBack):
        raise
    except Exception as error:
        raise s.unsupported(f"{type(error).__name__}: {error}") from None


def call_user(s: Context, function: types.FunctionType, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Inline a function of the user's; one that cannot be compiled is handed back as a whole."""
    try:
        return call_python(s, function, args, kwargs, trusted=False)
    except (TooDeep, RecursionError) as error:
        if any(frame.namespace.owner is function for frame in s.frames):
            raise  # by each of the calls in it, there would be exponentially many
        raise s.hand_back("recursion is not compiled") from error
    except Sequential:
        raise
    except UnsupportedError as error:
        if len(s.frames) == 1 and s.frames[0].namespace.owner is function:
            raise  # Python would do the work of all but one call
        raise s.hand_back(str(error).splitlines()[0]) from None


def call_python(
    s: Context,
    function: types.FunctionType | Any,
    args: Sequence[Value],
    kwargs: dict[str, Value],
    *,
    trusted: bool,
) -> Value:
    """Inline a Python function."""
    if function.__closure__ and not trusted and any(_is_data(cell) for cell in function.__closure__):
        raise s.hand_back(f"{function.__name__} is a closure over data")
    try:
        template = to_ssa_cached(function)
    except NoSourceError:
        raise s.hand_back(f"{function.__name__} has no source") from None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    namespace = Namespace(function.__globals__, function, trusted, cells)
    defaults = [_default(default) for default in function.__defaults__ or ()]
    named = {name: _default(default) for name, default in (function.__kwdefaults__ or {}).items()}
    frame = Frame(template, namespace, caller=s.builder.pos)
    bind(s, template, args, kwargs, defaults, named, frame.env)
    if not trusted:
        iterator_consumption.check_parameters(s, template, frame.env)
    return run_frame(s, frame)


def _default(value: Any) -> Value:
    """A parameter's default; what holds a list stays the object that it is, as the items may change."""
    return Static(value) if _holds_a_list(value) else lift(value)


def _holds_a_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, tuple) and any(_holds_a_list(item) for item in value))


def _is_data(cell: Any) -> bool:
    try:
        content = cell.cell_contents
    except ValueError:
        return True
    functions = types.FunctionType | types.ModuleType | types.BuiltinFunctionType | type | np.ufunc
    return not (isinstance(content, functions) or is_accelerated(content))


def call_closure(s: Context, closure: ClosureV, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = closure.function
    frame = Frame(function, closure.namespace, closure=closure, caller=s.builder.pos)
    if closure.free:
        frame.free.update(zip(closure.free, closure.captures, strict=True))
    else:
        for var, value in zip(function.captures, closure.captures, strict=True):
            frame.env[var] = value
    plain = [param for param in function.params if param.has_default and param.kind == "positional"]
    defaults = list(closure.defaults[: len(plain)])
    keyword = [param.name for param in function.params if param.has_default and param.kind == "keyword"]
    named = dict(zip(keyword, closure.defaults[len(plain) :], strict=False))
    bind(s, function, args, kwargs, defaults, named, frame.env)
    if not closure.namespace.trusted:
        iterator_consumption.check_parameters(s, function, frame.env)
    return run_frame(s, frame)


def run_frame(s: Context, frame: Any) -> Value:
    """The value of a call: its body inlined, or a call of a procedure if it is recursive."""
    if frame.function.generator:
        return generators.begun(s, frame)
    if frame.namespace.trusted:
        return inlined(s, frame)
    value = procedures.called(s, frame)
    if value is not None:
        return value
    if any(frame.function is active.function for active in s.frames):
        return inlined(s, frame)
    mark, sites, frames, path, recursions = s.builder.mark(), len(s.python.sites), len(s.frames), s.path, s.recursions
    given = Frame(frame.function, frame.namespace, dict(frame.env), dict(frame.free), 1, frame.closure, frame.caller)
    try:
        return inlined(s, frame)
    except (TooDeep, RecursionError):
        del s.frames[frames:]
        s.path, s.recursions = path, recursions
        s.builder.rollback(mark)
        del s.python.sites[sites:]
        value = procedures.called(s, given, must=True)
        if value is None:
            raise
        return value


def inlined(s: Context, frame: Any) -> Value:
    s.recursions += any(frame.function is active.function for active in s.frames)
    if len(s.frames) > MAX_DEPTH or s.recursions > MAX_RECURSIONS:
        raise TooDeep.at(frame.function, s.builder.pos, "recursion is not compiled", "write it as a loop")
    saved_path, saved_pos, user_pos = s.path, s.pos, s.builder.pos
    s.path = (*s.path, s.pos, frame.function.name)
    frame.scopes = len(s.builder.scopes)
    s.frames.append(frame)
    try:
        value = s.run(frame.function.body)[0]
        python_closures.check_left(s, value, frame)
        return value
    finally:
        s.frames.pop()
        s.path = saved_path
        if not frame.namespace.trusted:
            s.pos, s.builder.pos = saved_pos, user_pos


def bind(
    s: Context,
    function: ssa.Function,
    args: Sequence[Value],
    kwargs: dict[str, Value],
    defaults: Sequence[Value],
    named_defaults: dict[str, Value],
    env: dict[ssa.Var, Value],
) -> None:
    """Bind arguments to parameters as Python does; a mismatch is a TypeError, left to Python to raise."""
    remaining = dict(kwargs)
    positional = [param for param in function.params if param.kind == "positional"]
    first_default = len(positional) - len(defaults)
    for position, param in enumerate(positional):
        if position < len(args):
            if param.name in remaining and not param.positional_only:
                raise s.unsupported(f"{function.name}() got multiple values for argument '{param.name}'")
            env[param.var] = args[position]
        elif param.name in remaining and not param.positional_only:
            env[param.var] = remaining.pop(param.name)
        elif position >= first_default:
            env[param.var] = defaults[position - first_default]
        else:
            raise s.unsupported(f"{function.name}() missing a required argument: '{param.name}'")
    extra = list(args[len(positional) :])
    for param in function.params:
        match param.kind:
            case "vararg":
                env[param.var] = TupleV(tuple(extra))
                extra = []
            case "keyword":
                if param.name in remaining:
                    env[param.var] = remaining.pop(param.name)
                elif param.name in named_defaults:
                    env[param.var] = named_defaults[param.name]
                else:
                    raise s.unsupported(f"{function.name}() missing a keyword-only argument: '{param.name}'")
            case "varkw":
                env[param.var] = DictV(tuple(remaining.items()))
                remaining = {}
    if extra:
        raise s.unsupported(
            f"{function.name}() takes {len(positional)} positional arguments but {len(args)} were given"
        )
    if remaining:
        raise s.unsupported(f"{function.name}() got an unexpected keyword argument '{next(iter(remaining))}'")


def _call_ufunc(s: Context, ufunc: np.ufunc, args: list[Value], kwargs: dict[str, Value]) -> Value:
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
        return call_python(s, body, args, {**extra, **axis}, trusted=True)
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


def _scalar_type(s: Context, target: type[np.generic], args: list[Value]) -> Value:
    """np.float64(x) and the like."""
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


def library_subscript(s: Context, value: Value, index: Value) -> Value | None:
    """Subscripts of known objects that the library implements (np.r_, np.mgrid...)."""
    body = registry.function_for(value.object) if isinstance(value, Static) else None
    return None if body is None else call_python(s, body, [index], {}, trusted=True)


__all__ = ["builtins", "call", "call_python", "call_static"]


def call_library(s: Context, name: str, args: list[Value]) -> Value:
    """Call a helper of the library by its name."""

    return call_python(s, registry.find_helper(name), args, {}, trusted=True)


def call_plain(s: Context, name: str, args: list[Value]) -> Value:
    """Call a helper that means what it would mean in Python, as a function of the user's."""
    return call_python(s, registry.find_helper(name), args, {}, trusted=False)


def library_loop(s: Context, ufunc: np.ufunc, names: Sequence[str]) -> Callable[[list[ir.Operand]], list[ir.Operand]]:
    """The loop of a ufunc that the library defines over scalars."""

    function = registry.scalar_function(ufunc)
    if function is None:
        raise s.hand_back(f"np.{ufunc.__name__} of {names[0]}")

    def loop(operands: list[ir.Operand]) -> list[ir.Operand]:
        with s.element_function(stores=True):
            value = call_python(s, function, [ScalarV(operand) for operand in operands], {}, trusted=True)
        if isinstance(value, NeverV):  # it has raised: what comes after is not reached
            return [ir.Const(np.dtype(name).type(0).item(), Scalar(name)) for name in names[ufunc.nin :]]
        values = value.items if isinstance(value, TupleV) else (value,)
        return [one.operand for one in values if isinstance(one, ScalarV)]

    return loop
