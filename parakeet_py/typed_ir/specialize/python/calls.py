"""Calls: of what (`call`), binding arguments, and inlining the bodies of Python functions.

Functions, classes and objects that are known when the function is compiled are those of `known_calls`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import NoSourceError
from parakeet_py.base.types import Scalar
from parakeet_py.frontend import ssa, to_ssa_cached
from parakeet_py.library import registry
from parakeet_py.signature.attribute_sources import has_method
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.instances import instances
from parakeet_py.typed_ir.specialize.opaque import python_closures
from parakeet_py.typed_ir.specialize.paths import generators, iterator_consumption
from parakeet_py.typed_ir.specialize.python import known_calls, library_procedures, procedures
from parakeet_py.typed_ir.specialize.python.inlined_functions import is_accelerated
from parakeet_py.typed_ir.specialize.restarts import TooDeep
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ClosureV,
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
    TupleV,
    UnboundV,
    Value,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


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
            return known_calls.call_known(s, target, args, kwargs)
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
    if trusted and not s.frame.namespace.trusted and kwargs.get("keepdims") == NONE:
        raise s.hand_back(f"{function.__name__} with keepdims=None")  # most functions take only bools
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
    if registry.is_procedure(frame.namespace.owner) and frame.closure is None:
        made = library_procedures.called(s, frame)
        if made is not None:
            return made
    if frame.namespace.trusted:
        return inlined(s, frame)
    value = procedures.called(s, frame)
    if value is not None:
        return value
    if any(frame.function is active.function for active in s.frames):
        return inlined(s, frame)
    start, depth = s.checkpoint(), s.procedures.recursions
    given = Frame(frame.function, frame.namespace, dict(frame.env), dict(frame.free), 1, frame.closure, frame.caller)
    try:
        return inlined(s, frame)
    except (TooDeep, RecursionError):
        s.procedures.recursions = depth
        s.rollback(start)
        value = procedures.called(s, given, must=True)
        if value is None:
            raise
        return value


def inlined(s: Context, frame: Any) -> Value:
    s.procedures.recursions += any(frame.function is active.function for active in s.frames)
    if len(s.frames) > MAX_DEPTH or s.procedures.recursions > MAX_RECURSIONS:
        raise TooDeep.at(frame.function, s.builder.pos, "recursion is not compiled", "write it as a loop")
    caller, place = s.frame, s.builder.pos
    frame.path = (*caller.path, caller.pos, frame.function.name)
    frame.scopes = len(s.builder.scopes)
    s.frames.append(frame)
    try:
        value = s.run(frame.function.body)[0]
        python_closures.check_left(s, value, frame)
        return value
    finally:
        s.frames.pop()
        if not frame.namespace.trusted:
            s.builder.pos = place


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


def library_subscript(s: Context, value: Value, index: Value) -> Value | None:
    """Subscripts of known objects that the library implements (np.r_, np.mgrid...)."""
    body = registry.function_for(value.object) if isinstance(value, Static) else None
    return None if body is None else call_python(s, body, [index], {}, trusted=True)


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
