"""Executes the untyped IR on real Python values: the meaning of `frontend/ssa.py`, for tests.

`evaluate(ssa_function, python_function)` gives a callable that must behave as the Python function it was made from.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from parakeet_py.frontend import ssa
from parakeet_py.frontend.ssa import UNBOUND, Block, Const, Function, Let, Operand, Star, Var

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, "i" + function.__name__.strip("_")) for name, function in BINARY.items()
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": operator.is_,
    "isnot": operator.is_not,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "not": operator.not_,
}
KINDS = {"positional": inspect.Parameter.POSITIONAL_OR_KEYWORD, "vararg": inspect.Parameter.VAR_POSITIONAL}
KINDS |= {"keyword": inspect.Parameter.KEYWORD_ONLY, "varkw": inspect.Parameter.VAR_KEYWORD}


def evaluate(function: Function, python: FunctionType) -> Callable[..., Any]:
    """A callable that executes `function`, with the globals, closure cells and defaults of `python`."""
    defaults = [*(python.__defaults__ or ())]
    keywords = python.__kwdefaults__ or {}
    defaults += [keywords[p.name] for p in function.params if p.kind == "keyword" and p.has_default]
    return _callable(_Frame(python), function, (), tuple(defaults))


def _callable(
    frame: _Frame, function: Function, captures: tuple[Any, ...], defaults: tuple[Any, ...]
) -> Callable[..., Any]:
    left = iter(defaults)
    parameters = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.POSITIONAL_ONLY if p.positional_only else KINDS[p.kind],
            default=next(left) if p.has_default else inspect.Parameter.empty,
        )
        for p in function.params
    ]
    signature = inspect.Signature(parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inner = _Frame(frame.python)
        inner.values.update(zip(function.captures, captures, strict=True))
        inner.values.update((p.var, bound.arguments[p.name]) for p in function.params)
        (result,) = inner.block(function.body)
        assert result is not UNBOUND
        return result

    return call


class _Frame:
    """The variables of one running function."""

    def __init__(self, python: FunctionType) -> None:
        self.python = python
        self.values: dict[Var, Any] = {}

    def get(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Const) else self.values[operand]

    def items(self, items: tuple[ssa.Item, ...]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, Star):
                yield from self.get(item.operand)
            else:
                yield self.get(item)

    def block(self, block: Block) -> tuple[Any, ...]:
        for let in block.statements:
            self.let(let)
        return tuple(self.get(result) for result in block.results)

    def let(self, let: Let) -> None:
        values = self.op(let.op)
        if not let.outs:
            return
        assert len(values) == len(let.outs), let
        self.values.update(zip(let.outs, values, strict=True))

    def op(self, op: ssa.Op) -> tuple[Any, ...]:
        get = self.get
        match op:
            case ssa.Global(name):
                scope = self.python.__globals__
                if name in scope:
                    return (scope[name],)
                if hasattr(builtins, name):
                    return (getattr(builtins, name),)
                raise NameError(f"name {name!r} is not defined")
            case ssa.Free(name):
                index = self.python.__code__.co_freevars.index(name)
                return (self.python.__closure__[index].cell_contents,)  # type: ignore[index]
            case ssa.Unary(name, operand):
                return (UNARY[name](get(operand)),)
            case ssa.Binary(name, left, right):
                return (BINARY[name](get(left), get(right)),)
            case ssa.Inplace(name, left, right):
                return (INPLACE[name](get(left), get(right)),)
            case ssa.Compare(name, left, right):
                return (COMPARE[name](get(left), get(right)),)
            case ssa.Call(function, args, kwargs):
                keywords: dict[str, Any] = {}
                for key, value in kwargs:
                    keywords.update(get(value) if key is None else {key: get(value)})
                return (get(function)(*self.items(args), **keywords),)
            case ssa.Attribute(value, name):
                return (getattr(get(value), name),)
            case ssa.SetAttribute(value, name, new):
                setattr(get(value), name, get(new))
            case ssa.Subscript(value, index):
                return (get(value)[get(index)],)
            case ssa.SetItem(value, index, new):
                get(value)[get(index)] = get(new)
            case ssa.BuildSlice(lower, upper, step):
                return (slice(get(lower), get(upper), get(step)),)
            case ssa.BuildTuple(items):
                return (tuple(self.items(items)),)
            case ssa.BuildList(items):
                return (list(self.items(items)),)
            case ssa.BuildDict(pairs):
                return ({get(key): get(value) for key, value in pairs},)
            case ssa.BuildString(parts):
                return ("".join(self.format(*part) for part in parts),)
            case ssa.Unpack():
                return self.unpack(op)
            case ssa.MakeClosure(function, captures, defaults):
                values = tuple(get(capture) for capture in captures)
                return (_callable(self, function, values, tuple(get(default) for default in defaults)),)
            case ssa.Comprehension():
                return (self.comprehension(op),)
            case ssa.Import(module, name, level):
                package = self.python.__globals__.get("__package__")
                loaded = importlib.import_module("." * level + module, package)
                return (loaded if name is None else getattr(loaded, name),)
            case ssa.Raise(exception):
                raise get(exception)
            case ssa.Assert(condition, message):
                if not get(condition):
                    raise AssertionError(*(self.block(message) if message else ()))
            case ssa.CheckBound(flag, name, free):
                assert isinstance(get(flag), bool)
                if not get(flag):
                    raise (NameError if free else UnboundLocalError)(name)
            case ssa.If(condition, then, orelse):
                return self.block(then if get(condition) else orelse)
            case ssa.For() | ssa.While():
                return self.loop(op)
            case _:
                raise TypeError(op)
        return ()

    def format(self, part: Operand, conversion: str, spec: str) -> str:
        value = self.get(part)
        if conversion:
            value = {"s": str, "r": repr, "a": ascii}[conversion](value)
        return format(value, spec)

    def unpack(self, op: ssa.Unpack) -> tuple[Any, ...]:
        values = list(self.get(op.object))
        wanted = op.before + op.after
        if len(values) < wanted or (not op.star and len(values) > wanted):
            raise ValueError("unpack")
        if not op.star:
            return tuple(values)
        end = len(values) - op.after
        return (*values[: op.before], values[op.before : end], *values[end:])

    def comprehension(self, op: ssa.Comprehension) -> Any:
        element, iterable = self.get(op.element), iter(self.get(op.iterable))
        condition = None if op.condition is None else self.get(op.condition)

        def generate() -> Iterator[Any]:
            for item in iterable:
                if condition is None or condition(item):
                    if op.flatten:
                        yield from element(item)
                    else:
                        yield element(item)

        if op.kind == "generator":
            return generate()
        return {"list": list, "set": set, "dict": dict, "tuple": tuple}[op.kind](generate())

    def loop(self, op: ssa.For | ssa.While) -> tuple[Any, ...]:
        state = tuple(self.get(init) for init in op.inits)
        stopped = False
        items = iter(self.get(op.iterable)) if isinstance(op, ssa.For) else None
        while not stopped:
            self.values.update(zip(op.params, state, strict=True))
            if isinstance(op, ssa.For):
                assert items is not None
                try:
                    self.values[op.item] = next(items)
                except StopIteration:
                    break
            elif not self.block(op.condition)[0]:
                break
            state = self.block(op.body)
            if op.stoppable:
                stopped, state = state[0], state[1:]
                assert isinstance(stopped, bool)
        return (stopped, *state) if op.stoppable else state
