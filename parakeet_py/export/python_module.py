"""The Python module of a library: `shipped_module` with what this library holds, and the function by its name."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from types import FunctionType
from typing import Any

import numpy as np

from parakeet_py.base.types import DTYPES
from parakeet_py.export.errors import ExportError, told_of
from parakeet_py.export.interface import ExportedSignature, Specialized
from parakeet_py.signature.object_assembly import Assembled, ContainerT, LeafT, Recipe, StaticT
from parakeet_py.signature.positional import VARARGS, VARKEYWORDS, keyword_only, parameter_names
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultRows,
    ResultStatic,
    ResultTuple,
    result_offsets,
)
from parakeet_py.signature.specs import (
    AS_ARRAY,
    ArraySpec,
    ListSpec,
    NoneSpec,
    ScalarSpec,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
    argument_slots,
    leaves,
)

_HOLDS = 'NAME: str = ""\n'
_TABLE = "SIGNATURES: tuple[Any, ...] = ()\n"
_END = "run: Callable[..., Any] = _run\n"
_TYPES: dict[Any, str] = {np.dtype(name).type: f"np.{np.dtype(name).type.__name__}" for name in DTYPES}


def python_module(name: str, function: FunctionType, version: str, signatures: Sequence[ExportedSignature]) -> str:
    """The text of the module.

    Raises
    ------
    ExportError
        A default, or a part of a result, is an object that a module cannot hold.
    """
    text = files("parakeet_py.export").joinpath("shipped_module.py").read_text(encoding="utf-8")
    rows = ""
    for one in signatures:
        with told_of(f"{function.__qualname__}({one.made.text})"):
            rows += f"    {_signature(one)},\n"
    _, rest = text.split('"""\n', 1)
    assert all(rest.count(part) == 1 for part in (_HOLDS, _TABLE, _END))
    if keyword.iskeyword(name) or re.search(rf"^(def|class|import|.* as) {name}\b|^{name}\b", rest, re.MULTILINE):
        raise ExportError(f"{name!r} cannot be the name of the module's function: give another name")
    head = f'"""{name}, compiled by parakeet_py {version}: this file needs NumPy, and lib{name}.so beside it."""\n'
    rest = rest.replace(_HOLDS, f"NAME: str = {name!r}\n").replace(
        _TABLE, f"SIGNATURES: tuple[Any, ...] = (\n{rows})\n"
    )
    return head + rest.replace(_END, _definition(name, function))


def _definition(name: str, function: FunctionType) -> str:
    """The function, with the parameters and defaults of the one that was exported."""
    code, parts = function.__code__, []
    defaults = function.__defaults__ or ()
    count = code.co_argcount
    for position, one in enumerate(code.co_varnames[:count]):
        place = position - (count - len(defaults))
        parts.append(one if place < 0 else f"{one}={_default(one, defaults[place])}")
        if position + 1 == code.co_posonlyargcount:
            parts.append("/")
    names = parameter_names(code)
    given = names[:count]
    if code.co_flags & VARARGS:
        parts.append(f"*{names[count]}")
        given.append(names[count])
    elif code.co_kwonlyargcount:
        parts.append("*")
    for one in keyword_only(code):
        known = function.__kwdefaults__ or {}
        parts.append(f"{one}={_default(one, known[one])}" if one in known else one)
        given.append(one)
    if code.co_flags & VARKEYWORDS:
        parts.append(f"**{names[-1]}")
        given.append(f"tuple(item for pair in {names[-1]}.items() for item in pair)")
    doc = f"    {function.__doc__!r}\n" if function.__doc__ else ""
    return f"def {name}({', '.join(parts)}):\n{doc}    return _run({', '.join(given)})\n"


def _default(name: str, value: object) -> str:
    try:
        return literal(value)
    except ExportError:
        raise ExportError(
            f"the default of {name} is {type(value).__name__}, which a module cannot write down"
        ) from None


def literal(value: Any) -> str:
    """A value as Python text.

    Raises
    ------
    ExportError
        It cannot be written down.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if kind is tuple:
        return f"({''.join(literal(item) + ', ' for item in value)})"
    if isinstance(value, np.dtype) and value.name in DTYPES:
        return f"np.dtype({value.name!r})"
    if isinstance(value, type):
        if value in _TYPES:
            return _TYPES[value]
        name = str(value.__name__)
        if vars(builtins).get(name) is value:
            return name
    if isinstance(value, np.generic) and kind in _TYPES:
        return f"{_TYPES[kind]}({literal(value.item())})"
    raise ExportError(f"{kind.__name__} objects cannot be written down")


def _signature(one: ExportedSignature) -> str:
    made = one.made
    flags = _flags(made)
    specs = "".join(f"{_spec(spec, flags)}, " for spec in made.signature.params)
    results = []
    for out in one.outs:
        leaf = out.leaf
        results.append((leaf.kind, leaf.dtype, leaf.python, leaf.rank, leaf.view, leaf.readonly, out.slot))
    failures = tuple((failure.exception, failure.message, failure.formats) for failure in made.failures)
    slots, room = argument_slots(made.signature), result_offsets(made.result)[-1]
    return f"({made.text!r}, ({specs}), {slots}, {room}, {results!r}, {_tree(made.result)}, {failures!r})"


def _flags(made: Specialized) -> Iterator[bool | None]:
    """For each array among the arguments, whether it has to be one that can be written to; None: it is not looked at.

    Code for arrays that can be written to takes others, too, where it does not store into them.
    """
    for position, leaf in enumerate(leaves(made.signature)):
        if isinstance(leaf.spec, ArraySpec) and leaf.path[-1] != AS_ARRAY:
            fixed = not leaf.spec.writeable or position in made.stored or made.asks_writeable
            yield leaf.spec.writeable if fixed else None


def _spec(spec: Spec, flags: Iterator[bool | None]) -> str:
    """What the module looks at of an argument."""
    match spec:
        case ArraySpec():
            return repr(("array", spec.dtype, spec.layout, spec.unit, next(flags), spec.inner, spec.order, spec.still))
        case ScalarSpec(dtype, python):
            return repr(("scalar", dtype, python))
        case NoneSpec():
            return '("none",)'
        case StaticSpec(value):
            try:
                return f'("value", {literal(value)})'
            except ExportError as error:
                raise ExportError(f"it is compiled for a value that cannot be written down: {error}") from None
        case TupleSpec(items, kind):
            return f'("items", {kind!r}, ({"".join(_spec(item, flags) + ", " for item in items)}))'
        case ListSpec(dtype):
            return repr(("numbers", dtype))
        case TextSpec():
            return '("text",)'
    raise AssertionError(spec)


def _tree(tree: Result) -> str:
    match tree:
        case ResultLeaf(index):
            return f'("leaf", {index})'
        case ResultStatic(value):
            return f'("value", {_known(value)})'
        case ResultEither(tag, choices):
            return f'("either", {tag.index}, ({"".join(_tree(one) + ", " for one in choices)}))'
        case ResultListOf(leaf, whole):
            return f'("list_of", {leaf.index}, {whole})'
        case ResultRows(items, ends):
            return f'("rows", {_tree(items)}, {ends.index})'
        case ResultTuple(items, kind, None):
            return f'("{kind}", ({"".join(_tree(one) + ", " for one in items)}))'
        case ResultTuple(items, _, Assembled(recipe)):
            return _recipe(recipe, [_tree(one) for one in items])
    raise ExportError("its result is an object of a class, which a library does not know: return what it holds")


def _known(value: object) -> str:
    try:
        return literal(value)
    except ExportError as error:
        raise ExportError(f"its result holds what is known when it is compiled: {error}") from None


def _recipe(recipe: Recipe, leaves: Sequence[str]) -> str:
    match recipe:
        case LeafT(position):
            return leaves[position]
        case StaticT(value):
            return f'("value", {_known(value)})'
        case ContainerT("tuple" | "list" as kind, items):
            return f'("{kind}", ({_recipes(items, leaves)}))'
        case ContainerT("dict", items, keys):
            return f'("dict", {_known(tuple(keys))}, ({_recipes(items, leaves)}))'
        case ContainerT("zipped", items, (kind,)) if kind in (tuple, list):
            return _made(f"{kind.__name__}s_of", items, leaves)
        case ContainerT("list_of" | "items_of" | "dict_of" | "set_of" as kind, items):
            return _made(kind, items, leaves)
        case ContainerT(kind):
            what = kind.replace("_", " ")
            raise ExportError(f"a part of its result is made by Python ({what}): return arrays, numbers, tuples, lists")
    raise AssertionError(recipe)


def _recipes(items: Sequence[Recipe], leaves: Sequence[str]) -> str:
    return "".join(f"{_recipe(one, leaves)}, " for one in items)


def _made(kind: str, items: Sequence[Recipe], leaves: Sequence[str]) -> str:
    return f'("made", {kind!r}, ({_recipes(items, leaves)}))'
