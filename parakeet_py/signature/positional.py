"""Calls in positional form: one value for each parameter of a function, in order, and back.

Specializations are entered with every parameter in its place: defaults filled in, what `*args` collects as one tuple,
then what is keyword-only, then what `**kwargs` collects as a tuple of names and values in turn.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

VARARGS, VARKEYWORDS = 0x04, 0x08  # inspect.CO_VARARGS, CO_VARKEYWORDS


def takes_positions_only(code: CodeType) -> bool:
    """Whether a call without keywords and defaults is in positional form already."""
    return not code.co_flags & (VARARGS | VARKEYWORDS) and not code.co_kwonlyargcount


def keyword_only(code: CodeType) -> tuple[str, ...]:
    """The parameters that only keywords reach."""
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def parameter_names(code: CodeType) -> list[str]:
    """The names of a function's parameters in the order of the positional form."""
    names = list(code.co_varnames[: code.co_argcount])
    after = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & VARARGS:
        names.append(code.co_varnames[after])
        after += 1
    names.extend(keyword_only(code))
    if code.co_flags & VARKEYWORDS:
        names.append(code.co_varnames[after])
    return names


def wrong_arguments(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """What is wrong with arguments that have no positional form."""
    try:
        _doing_nothing(function)(*args, **kwargs)
    except TypeError as error:
        return TypeError(f"{error}{_of_a_method(function, args)}")
    return TypeError(f"{function.__qualname__}() does not take these arguments")


def _doing_nothing(function: FunctionType) -> FunctionType:
    """A function with these parameters that does nothing: Python says the same of its arguments."""
    code, nothing = function.__code__, (lambda: None).__code__
    own = nothing.replace(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount,
        co_nlocals=len(names := tuple(parameter_names_of(code))),
        co_varnames=names,
        co_flags=nothing.co_flags | code.co_flags & (VARARGS | VARKEYWORDS),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    made = FunctionType(own, {}, function.__name__, function.__defaults__)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def parameter_names_of(code: CodeType) -> tuple[str, ...]:
    """The names of the parameters in the order in which they are variables."""
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: count + bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)]


def _of_a_method(function: FunctionType, args: tuple[Any, ...]) -> str:
    """That what is asked of a bound method has no object: it is Python's own bound method that passes attributes on."""
    if function.__code__.co_varnames[:1] != ("self",) or "." not in function.__qualname__:
        return ""
    if args and function.__name__ in dir(type(args[0])):
        return ""
    return f"; the object of a method comes first, as in {function.__qualname__}.explain(object, ...)"


def positional_form(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """A call in positional form; None when Python would refuse it (and will say so)."""
    code = function.__code__
    count = code.co_argcount
    remaining = dict(kwargs)
    values = list(args[:count])
    defaults = function.__defaults__ or ()
    for position in range(len(values), count):
        name = code.co_varnames[position]
        if name in remaining and position >= code.co_posonlyargcount:
            values.append(remaining.pop(name))
        elif position >= count - len(defaults):
            values.append(defaults[position - (count - len(defaults))])
        else:
            return None
    extra = args[count:]
    if code.co_flags & VARARGS:
        values.append(tuple(extra))
    elif extra:
        return None
    named = function.__kwdefaults__ or {}
    for name in keyword_only(code):
        if name in remaining:
            values.append(remaining.pop(name))
        elif name in named:
            values.append(named[name])
        else:
            return None
    if code.co_flags & VARKEYWORDS:
        if not remaining.keys().isdisjoint(code.co_varnames[code.co_posonlyargcount : count]):
            return None  # given by its place too
        values.append(tuple(item for pair in remaining.items() for item in pair))
    elif remaining:
        return None
    return tuple(values)


def python_form(function: FunctionType, normal: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call in positional form."""
    code = function.__code__
    args, rest = list(normal[: code.co_argcount]), list(normal[code.co_argcount :])
    if code.co_flags & VARARGS:
        args.extend(rest.pop(0))
    named = dict(zip(keyword_only(code), rest, strict=False))
    if code.co_flags & VARKEYWORDS:
        named.update(zip(rest[-1][::2], rest[-1][1::2], strict=True))
    return args, named
