"""Calls of functions, classes and other callables that are known when the function is compiled.

`MATCHERS` lists the ways in which such a call is compiled, in the order in which they are tried. Each is a function of
the callable and the arguments that gives the value of the call, or None where the call is not one of its kind. What
none of them takes is handed back to Python.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from parakeet_py.base import extensions
from parakeet_py.base.callee_effects import builtin_functions
from parakeet_py.base.debug_log import log
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.foreign_code import native_functions
from parakeet_py.base.types import PYBOOL, PYFLOAT, PYINT, Scalar
from parakeet_py.library import registry
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize import messages
from parakeet_py.typed_ir.specialize.containers import array_lists, dict_items, dynamic_lists, strings
from parakeet_py.typed_ir.specialize.instances import instances, operators
from parakeet_py.typed_ir.specialize.intrinsics.words import HANDLERS
from parakeet_py.typed_ir.specialize.paths import iterator_consumption
from parakeet_py.typed_ir.specialize.python import (
    named_tuples,
    numpy_calls,
    operator_calls,
)
from parakeet_py.typed_ir.specialize.python.builtin_calls import build_exception
from parakeet_py.typed_ir.specialize.python.exact_calls import other_bits
from parakeet_py.typed_ir.specialize.python.inlined_functions import is_accelerated
from parakeet_py.typed_ir.specialize.python.table import BUILTINS
from parakeet_py.typed_ir.specialize.restarts import STRICT, HandBack, Sequential, TooDeep
from parakeet_py.typed_ir.specialize.times import functions
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    MethodV,
    ScalarV,
    Static,
    TextV,
    TimeV,
    TupleV,
    Value,
    is_known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


Matcher = Callable[["Context", Any, list[Value], dict[str, Value]], Value | None]


def call_known(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The value of `target(*args, **kwargs)`."""
    for matcher in MATCHERS:
        value = matcher(s, target, args, kwargs)
        if value is not None:
            return value
    raise s.hand_back(f"{_name_of(target)} is not compiled")


def _name_of(target: Any) -> str:
    return str(getattr(target, "__name__", repr(target)))


# ---- what the user and the language say ------------------------------------------------------------------------------


def _registered(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    body = registered_body(s, target)
    return None if body is None else call_registered(s, target, body, args, kwargs)


def registered_body(s: Context, target: Any) -> types.FunctionType | None:
    """The body that a user has registered for a function, if it counts here: not in the body itself or the library."""
    body = extensions.body_of(target)
    if body is None or s.frame.namespace.trusted or any(one.namespace.owner is body for one in s.frames):
        return None
    return body


def call_registered(
    s: Context, target: Any, body: types.FunctionType, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Inline the body that is registered for a function, and say so."""
    line, value = s.frame.pos.line, call_user(s, body, args, kwargs)
    note = f"{extensions.name_of(target)} (line {line}) is done by {body.__qualname__}, registered for it"
    if note not in s.widened:
        s.widened.append(note)
    return value


def _instance(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A class whose instances are made of their attributes."""
    return instances.make(s, target, args, kwargs) if isinstance(target, type) and instances.makes(s, target) else None


def _super(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return instances.super_of(s) if target is super and not args and not kwargs else None


def _code_point(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """ord() of a character of a string that is an array."""
    if target is not ord or len(args) != 1 or kwargs:
        return None
    strings.need(s, args[0])
    return strings.code_point(s, args[0]) if strings.is_text(args[0]) else None


def _of_instances(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """What special methods of instances do."""
    if kwargs or not any(map(instances.is_instance, args)):
        return None
    if target is object.__setattr__ and len(args) == 3:
        return instances.set_frozen(s, args[0], s.static(args[1], "an attribute's name"), args[2])
    return operators.builtin_call(s, target, args)


def _intrinsic(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A word of the accelerated language."""
    handler = HANDLERS.find(id(target))
    return None if handler is None else handler(s, *args, **kwargs)


def _evaluated(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function that is run when the call is compiled."""
    if registry.is_static(target) or isinstance(getattr(target, "__self__", None), np.dtype):
        return run_now(s, target, args, kwargs)
    return None


def _of_times(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function of NumPy's for datetime64 and timedelta64."""
    may_make = any(target is one for one in _MAKERS)
    return functions.called(s, target, args, kwargs) if may_make or _have_times((*args, *kwargs.values())) else None


_MAKERS = (np.datetime64, np.timedelta64, np.zeros, np.empty)


def _have_times(values: Iterable[Value]) -> bool:
    return any(isinstance(one, TimeV) or (isinstance(one, TupleV) and _have_times(one.items)) for one in values)


# ---- Python's builtins -----------------------------------------------------------------------------------------------


_ENDING = (any, all)
_LAZY = iterator_consumption.ITERATORS - {iter}
_GO_THROUGH = _LAZY | builtin_functions(items_only=True) - {dict}
_OF_LINES = (  # that make an array of `a.flat` and only read it
    *(np.asarray, np.sort, np.unique, np.cumsum, np.median, np.bincount, np.histogram, np.count_nonzero),
    *(np.sum, np.prod, np.mean, np.std, np.var, np.min, np.max, np.argmin, np.argmax, np.any, np.all),
)
_OF_TEXTS: tuple[Any, ...] = (ord, chr, hex, bin, oct)


def _builtin(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    handler = _handler_of(target)
    if handler is None:
        return None
    if not _takes(handler, len(args), frozenset(kwargs)):
        raise s.hand_back(f"{target.__name__} with these arguments is not compiled")
    if target in _GO_THROUGH:
        for arg in args:
            strings.need(s, arg)
        if target in (list, tuple, sorted, set) and len(args) == 1 and isinstance(args[0], TextV):
            if target is sorted and not kwargs:
                made = s.call(Static(np.sort), [args[0].codes], {})
                assert isinstance(made, ArrayV)
                return dynamic_lists.of_characters(s, TextV(made))
            args = [dynamic_lists.of_characters(s, args[0])]
        args = [dict_items.listed(s, arg, target in _LAZY) for arg in args]
        args = args if target in (*_LAZY, len) else [_as_line(s, arg) for arg in args]
    if any(map(iterator_consumption.is_lazy, args)):
        if target in _ENDING and len(args) == 1:
            return s.call_plain(f"lazy_{target.__name__}", args)
        if target is list and len(args) == 1:
            return s.as_list(args[0])
        if target in _GO_THROUGH and target not in _LAZY:
            args = [array_lists.shown(s, s.as_list(arg)) for arg in args]
    mark = s.checkpoint()
    with _handing_back(s, target):
        try:
            return handler(s, *args, **kwargs)
        except Sequential:
            if target in (all, any) or not any(isinstance(arg, ComprehensionV) for arg in args):
                raise
            s.rollback(mark)
            return handler(s, *map(s.as_list, args), **kwargs)


def _handler_of(target: Any) -> Callable[..., Value] | None:
    try:
        return BUILTINS.find(target)
    except TypeError:
        return None


def _as_line(s: Context, value: Value) -> Value:
    """The elements that `a.flat` goes through; other values as they are."""
    match value:
        case MethodV(ArrayV() as array, "flat"):
            return s.call_library("flat_line", [array])
    return value


def _call_implementation(s: Context, target: Any, body: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Inline the library's implementation of a function; arguments it was not written for are for Python."""
    with _handing_back(s, target):
        return s.call_python(body, args, kwargs, trusted=True)


@contextmanager
def _handing_back(s: Context, target: Any) -> Iterator[None]:
    """What an implementation raises, over known arguments, Python shall raise itself, where the call is reached."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        if s.frame.namespace.trusted:
            raise
        name = getattr(target, "__name__", repr(target))
        log.debug("%s is handed back: its implementation has failed", name, exc_info=True)
        raise s.hand_back(f"{name} with these arguments is not compiled ({error})") from None


@functools.cache
def _takes(handler: Callable[..., Value], positional: int, named: frozenset[str]) -> bool:
    """Does the handler of a builtin take such a call?"""
    try:
        inspect.signature(handler).bind(None, *range(positional), **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def run_now(s: Context, target: Callable[..., Any], args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """Run a Python function at compile time."""
    values = [s.static(arg, "this argument") for arg in args]
    named = {name: s.static(arg, f"the argument {name}") for name, arg in kwargs.items()}
    try:
        return lift(target(*values, **named))
    except (UnsupportedError, HandBack):
        raise
    except Exception as error:
        raise s.unsupported(f"{type(error).__name__}: {error}") from None


# ---- classes ---------------------------------------------------------------------------------------------------------


def _named_tuple(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return named_tuples.make(s, target, args, kwargs) if named_tuples.is_plain(target) else None


def _named_tuple_maker(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`_make` of a named tuple's class."""
    made = named_tuples.class_of_maker(target)
    return None if made is None else named_tuples.make_of(s, made, args, kwargs)


def _exception(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if isinstance(target, type) and issubclass(target, BaseException):
        return build_exception(s, target, args)
    return None


# ---- functions with a body -------------------------------------------------------------------------------------------


def _of_library(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function that the library implements."""
    body = registry.function_for(target)
    if body is None:
        return None
    args = [_as_line(s, arg) for arg in args] if any(target is one for one in _OF_LINES) else args
    return _call_implementation(s, target, body, args, kwargs)


def _in_python(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function of the standard library that means what a body in Python means."""
    plain = registry.plain_for(target)
    return None if plain is None else s.call_python(plain, args, kwargs, trusted=False)


def _item_getter(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if type(target) is operator.itemgetter and len(args) == 1 and not kwargs:
        return operator_calls.items_got(s, target, args[0])
    return None


def _inside_library(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function of the library's own, called by it."""
    if s.frame.namespace.trusted and getattr(target, "__module__", "").startswith("parakeet_py.library."):
        return s.call_python(target, args, kwargs, trusted=True)
    return None


def _of_user(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    inner = getattr(target, "__wrapped__", None) if is_accelerated(target) else target
    return call_user(s, inner, args, kwargs) if isinstance(inner, types.FunctionType) else None


_PYTHON = {"int64": PYINT, "int32": PYINT, "float64": PYFLOAT, "float32": PYFLOAT, "bool": PYBOOL}


def _of_numba(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function that numba has compiled, of numbers."""
    if kwargs or not native_functions.is_dispatcher(type(target)):
        return None
    found = native_functions.find(target, [arg.dtype if isinstance(arg, ScalarV) else "" for arg in args])
    if found is None:
        return None
    place, function = found
    s.python.calls_numba = True
    b = s.builder
    given = tuple(b.cast(arg.operand, Scalar(arg.dtype)) for arg in args if isinstance(arg, ScalarV))
    name = f"{native_functions.FAMILY}.{place}."
    value = b.pure(ir.Prim(name + native_functions.VALUE, given), Scalar(function.result))
    done = b.pure(ir.Prim(name + native_functions.DONE, given), Scalar("bool"))
    s.check(b.cast(done, PYBOOL), "Deoptimize", f"{target.__name__} has raised")
    return ScalarV(b.cast(value, _PYTHON[function.result]))


def _bound_method(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return call_user(s, target.__func__, [lift(target.__self__), *args], kwargs)
    return None


def call_user(s: Context, function: types.FunctionType, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Inline a function of the user's; one that cannot be compiled is handed back as a whole."""
    try:
        return s.call_python(function, args, kwargs, trusted=False)
    except (TooDeep, RecursionError) as error:
        if any(frame.namespace.owner is function for frame in s.frames):
            raise  # by each of the calls in it, there would be exponentially many
        raise s.hand_back("recursion is not compiled") from error
    except Sequential:
        raise
    except UnsupportedError as error:
        if len(s.frames) == 1 and s.frames[0].namespace.owner is function:
            raise  # Python would do the work of all but one call
        if function.__code__.co_filename.startswith(_NOT_THE_USERS):
            raise s.hand_back(f"{function.__name__} is not compiled ({error.message})") from None
        if STRICT in error.message:
            raise  # it says where
        raise s.hand_back(str(error).splitlines()[0]) from None


# Where the standard library is, and packages are installed.
_NOT_THE_USERS: Final = os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__))


# ---- strings ---------------------------------------------------------------------------------------------------------


def _format(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """text.format() whose result is passed on at once."""
    text = getattr(target, "__self__", None)
    if type(text) is not str or _name_of(target) != "format" or s.out is None:
        return None
    if not iterator_consumption.is_passed_on(s, s.out):
        return None
    formatted = messages.str_format(s, text, args, kwargs)
    return None if formatted is None else messages.at_once(s, formatted)


def _of_known_text(s: Context, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    of_text = type(getattr(target, "__self__", None)) is str or any(target is one for one in _OF_TEXTS)
    return run_now(s, target, args, kwargs) if of_text and all(map(is_known, (*args, *kwargs.values()))) else None


MATCHERS: tuple[Matcher, ...] = (
    _registered,
    _instance,
    _super,
    _code_point,
    _of_instances,
    _intrinsic,
    _evaluated,
    _of_times,
    other_bits,
    numpy_calls.ufunc,
    _builtin,
    _named_tuple,
    numpy_calls.scalar_type,
    _exception,
    numpy_calls.vectorized,
    _of_library,
    _in_python,
    _item_getter,
    _inside_library,
    _of_user,
    _of_numba,
    _named_tuple_maker,
    _bound_method,
    _format,
    _of_known_text,
)
