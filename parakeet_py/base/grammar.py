"""The grammar of the IRs as data: what each field of an operator is, read off its annotation.

Operators and statements are records; their fields say what they are by their types, and nothing else does:

    @record
    class Load:
        array: Reads                    an array operand, whose elements are read
        indices: Indices                operands of type int64

    @record
    class For:
        index: Bound                    a variable that is bound for the blocks
        start: Operand
        inits: tuple[Operand, ...]
        body: Block

`operands`, `binders`, `blocks`, `rebuild` and everything made of them here (`walk`, `free_variables`, `substitute`)
work on every IR whose classes of variables, constants and blocks have been named with `leaf`. Optional fields, tuples,
pairs, and records inside of records (the axes of a view, the function of a reduction) are followed; a field whose type
is a union of records (the right-hand side of a `Let`) is treated by the class of what it holds. Types without leaves
are plain data. `text` prints an operator by the template that its class has as `TEXT`.

The first use with a class compiles a function for it, such as `lambda op: (op.array, *op.indices)`: these are the
most frequent functions of the compiler.
"""

from __future__ import annotations

import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, TypeVar

from parakeet_py.base.fast_dataclass import record

T = TypeVar("T")


class Leaf(Enum):
    """What the parts of an operator are that are not taken apart."""

    OPERAND = auto()  # an immutable variable, or a constant in the place of one
    CONSTANT = auto()
    BLOCK = auto()
    PLACE = auto()  # a mutable variable
    PLAIN = auto()  # not a part of the program around it


class Use(Enum):
    """What an operator does with an operand: the second argument of `Annotated`."""

    BINDS = auto()  # makes it known to its blocks, or to what follows
    SHAPE = auto()  # an array: asks for its extents or strides
    READS = auto()  # an array: reads elements
    WRITES = auto()  # an array: changes elements
    BASE = auto()  # an array: the result is another view of its memory
    INDEX = auto()  # an int64
    TRUTH = auto()  # a bool


ARRAY_USES = frozenset({Use.SHAPE, Use.READS, Use.WRITES, Use.BASE})

_LEAVES: dict[type, Leaf] = {}
_CONSTANTS: set[type] = set()


def leaf(kind: Leaf, *classes: type) -> None:
    """Say what the instances of classes are in operators."""
    for one in classes:
        _LEAVES[one] = kind
        if kind is Leaf.CONSTANT:
            _CONSTANTS.add(one)


# ---- shapes of fields ------------------------------------------------------------------------------------------------


@record
class _One:
    """A leaf and what is done with it."""

    leaf: Leaf
    uses: frozenset[Use] = frozenset()


@record
class _Many:
    item: _Shape


@record
class _Fixed:
    items: tuple[_Shape, ...]


@record
class _Maybe:
    item: _Shape


@record
class _Choice:
    """A record or leaf of one of several classes."""

    kinds: tuple[type, ...]


_Shape = _One | _Many | _Fixed | _Maybe | _Choice | None  # None: plain data
_shapes: dict[tuple[str, str], _Shape] = {}


def _fields(kind: type) -> dict[str, _Shape]:
    """The shapes of the fields of a record."""
    found = {}
    for base in reversed(kind.__mro__):
        for name, text in inspect.get_annotations(base).items():
            key = base.__module__, text
            if key not in _shapes:
                _shapes[key] = _shape(eval(text, vars(sys.modules[base.__module__])))
            found[name] = _shapes[key]
    return {name: found[name] for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def _shape(hint: Any) -> _Shape:
    uses: frozenset[Use] = frozenset()
    if typing.get_origin(hint) is typing.Annotated:
        hint, uses = hint.__origin__, frozenset(hint.__metadata__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if args[-1] is ...:
            item = _shape(args[0])
            return item and _Many(item)
        items = tuple([_shape(one) for one in args])
        return _Fixed(items) if any(items) else None
    if origin in (typing.Union, types.UnionType):
        rest = [one for one in args if one is not types.NoneType]
        if len(rest) < len(args):
            item = _shape(typing.Union[tuple(rest)])  # noqa: UP007
            return item and _Maybe(item)
        if {_LEAVES.get(one) for one in rest} == {Leaf.OPERAND, Leaf.CONSTANT}:
            return _One(Leaf.OPERAND, uses)
        return _Choice(tuple(rest)) if any(map(_shape, rest)) else None
    if hint in _LEAVES:
        return None if _LEAVES[hint] is Leaf.PLAIN else _One(_LEAVES[hint], uses)
    if hasattr(hint, "__dataclass_fields__") and any(_fields(hint).values()):
        return _Choice((hint,))
    return None


# ---- collecting ------------------------------------------------------------------------------------------------------

Wanted = Callable[[Leaf, frozenset[Use]], bool]


class _Table(dict[type, Callable[..., Any]]):
    """Functions by the class of their argument, made when they are first asked for."""

    def __init__(self, make: Callable[[type], Callable[..., Any]]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, kind: type) -> Callable[..., Any]:
        made = self[kind] = self.make(kind)
        return made


def _collectors(wanted: Wanted) -> _Table:
    """Functions that give the wanted parts of an operator in the order of its fields, not those in its blocks."""
    table = _Table(lambda kind: _collects(kind, wanted, table))
    return table


def collector(wanted: Wanted) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the wanted parts of an operator in the order of its fields, not those in its blocks."""
    table = _collectors(wanted)
    return lambda op: table[op.__class__](op)


def _nothing(op: object) -> tuple[Any, ...]:
    return ()


def _collects(kind: type, wanted: Wanted, table: _Table) -> Callable[[Any], tuple[Any, ...]]:
    if _LEAVES.get(kind, Leaf.BLOCK) is not Leaf.BLOCK:
        return (lambda op: (op,)) if wanted(_leaf_of(kind), frozenset()) else _nothing
    parts = [part for name, shape in _fields(kind).items() for part in _parts(shape, f"op.{name}", wanted)]
    if not parts:
        return _nothing
    names = [part[3:] for part in parts if part.startswith("op.") and part[3:].isidentifier()]
    if len(names) == len(parts) > 1:
        return operator.attrgetter(*names)
    if len(parts) == 1 and parts[0].startswith("*op.") and parts[0][4:].isidentifier():
        return operator.attrgetter(parts[0][4:])
    whole = parts[0][1:] if len(parts) == 1 and parts[0].startswith(("*op.", "*(", "*table[")) else _tuple(parts)
    return eval(f"lambda op: {whole}", {"table": table})  # type: ignore[no-any-return]


def _leaf_of(kind: type) -> Leaf:
    return Leaf.OPERAND if kind in _CONSTANTS else _LEAVES[kind]


def _parts(shape: _Shape, text: str, wanted: Wanted) -> list[str]:
    """What stands in a tuple display for the parts of a field."""
    match shape:
        case _One(one, uses):
            return [text] if wanted(one, uses) else []
        case _Many(item):
            inner = _parts(item, "x", wanted)
            several = f"*[y for x in {text} for y in {_tuple(inner)}]" if inner else ""
            return [f"*{text}"] if inner == ["x"] else [several] if inner else []
        case _Fixed(items):
            return [part for k, item in enumerate(items) for part in _parts(item, f"{text}[{k}]", wanted)]
        case _Maybe(item):
            inner = _parts(item, text, wanted)
            return [f"*(() if {text} is None else {_tuple(inner)})"] if inner else []
        case _Choice(kinds) if any(_has_parts(kind, wanted) for kind in kinds):
            return [f"*table[{text}.__class__]({text})"]
    return []


def _has_parts(kind: type, wanted: Wanted) -> bool:
    if kind in _LEAVES:
        return wanted(_leaf_of(kind), frozenset())
    return any(_parts(shape, "", wanted) for shape in _fields(kind).values())


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)},)"


operands = collector(lambda leaf, uses: leaf is Leaf.OPERAND and Use.BINDS not in uses)
binders = collector(lambda leaf, uses: Use.BINDS in uses)
_BLOCKS = _collectors(lambda leaf, uses: leaf is Leaf.BLOCK)
places = collector(lambda leaf, uses: leaf is Leaf.PLACE)


def blocks(op: Any) -> tuple[Any, ...]:
    """The blocks of an operator or statement, in order."""
    return _BLOCKS[op.__class__](op)  # type: ignore[no-any-return]


def collector_of(use: Use) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the operands with which an operator does this."""
    return collector(lambda leaf, uses: leaf is Leaf.OPERAND and use in uses)


reads, writes = collector_of(Use.READS), collector_of(Use.WRITES)
arrays = collector(lambda leaf, uses: leaf is Leaf.OPERAND and not uses.isdisjoint(ARRAY_USES))
indices = collector(lambda leaf, uses: Use.INDEX in uses)
truths = collector(lambda leaf, uses: Use.TRUTH in uses)


# ---- rebuilding ------------------------------------------------------------------------------------------------------


def each(change: Callable[[T], T], items: tuple[T, ...]) -> tuple[T, ...]:
    """The tuple of changed items, or `items` itself when all stay; `change` is a function of its argument."""
    for position, item in enumerate(items):
        if change(item) is not item:
            return items[:position] + tuple([change(later) for later in items[position:]])
    return items


def each_once(change: Callable[[T], T], items: tuple[T, ...]) -> tuple[T, ...]:
    """As `each`, calling `change` exactly once for each item, in order (it may have effects)."""
    return _unless_same(items, tuple([change(item) for item in items]))


def _unless_same(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    for one, other in zip(old, new, strict=True):
        if one is not other:
            return new
    return old


def _rebuilds(kind: type) -> Callable[..., Any]:
    """The function that rebuilds operators of a class: called with the operator and what changes operands, binders
    and blocks."""
    if _LEAVES.get(kind, Leaf.BLOCK) is not Leaf.BLOCK:
        one = _made(_One(_leaf_of(kind)), "op")
        return eval(f"lambda op, o, v, b: {one}")  # type: ignore[no-any-return]
    made = {name: _made(shape, f"op.{name}") for name, shape in _fields(kind).items()}
    changed = {name: f"new_{name}" for name, text in made.items() if text != f"op.{name}"}
    if not changed:
        return lambda op, o, v, b: op
    lines = [f"  {new} = {made[name]}" for name, new in changed.items()]
    stays = " and ".join(f"{new} is op.{name}" for name, new in changed.items())
    fields = ", ".join(changed.get(name, f"op.{name}") for name in made)
    lines.append(f"  return op if {stays} else kind({fields})")
    scope: dict[str, Any] = {
        **{"kind": kind, "rebuild": rebuild},
        **{"each": each, "each_once": each_once, "unless_same": _unless_same},
    }
    exec("\n".join(["def rebuilds(op, o, v, b):", *lines]), scope)
    return scope["rebuilds"]  # type: ignore[no-any-return]


def _made(shape: _Shape, text: str) -> str:
    """The expression of a changed field; `text` itself if nothing in it can change."""
    match shape:
        case _One(leaf=Leaf.BLOCK):
            return f"{text} if b is None else b({text})"
        case _One(uses=uses) if Use.BINDS in uses:
            return f"{text} if v is None else v({text})"
        case _One(leaf=Leaf.OPERAND | Leaf.PLACE):
            return f"o({text})"
        case _Many(_One(uses=uses)) if Use.BINDS in uses:
            return f"{text} if v is None else each_once(v, {text})"
        case _Many(_One(leaf=Leaf.OPERAND | Leaf.PLACE)):
            return f"each(o, {text})"
        case _Many(item):
            return f"each_once(lambda x: {_made(item, 'x')}, {text})"
        case _Fixed(items):
            return f"unless_same({text}, {_tuple([_made(item, f'{text}[{k}]') for k, item in enumerate(items)])})"
        case _Maybe(item):
            return f"None if {text} is None else {_made(item, text)}"
        case _Choice():
            return f"rebuild({text}, o, v, b)"
    return text


_REBUILD = _Table(_rebuilds)


def rebuild(
    op: T,
    operand: Callable[[Any], Any],
    binder: Callable[[Any], Any] | None = None,
    block: Callable[[Any], Any] | None = None,
) -> T:
    """`op` with its direct operands, the variables it binds and its blocks changed; `op` itself if nothing changed.

    They are changed in the order of the fields. `binder` and `block` are called exactly once for each variable and
    block; `operand` must be a function of its argument.
    """
    return _REBUILD[op.__class__](op, operand, binder, block)  # type: ignore[no-any-return]


def with_blocks(op: T, block: Callable[[Any], Any]) -> T:
    """`op` with its blocks changed; `op` itself if nothing changed."""
    return rebuild(op, _same, None, block)


def _same(operand: Any) -> Any:
    return operand


# ---- programs --------------------------------------------------------------------------------------------------------


def walk(block: Any) -> Iterator[Any]:
    """Every statement of a block, depth first, outer before inner."""
    within = _BLOCKS  # without a call of `blocks`: nothing is asked as often
    waiting = [iter(block.statements)]
    while waiting:
        for statement in waiting[-1]:
            yield statement
            inner = within[statement.__class__](statement)
            if inner:
                waiting += [iter(one.statements) for one in reversed(inner)]
                break
        else:
            waiting.pop()


def free_variables(block: Any) -> dict[Any, None]:
    """The variables and places used in `block` and bound outside, in the order of first use. A variable is bound
    once, so that what is bound anywhere in the block is not free."""
    used: dict[Any, None] = {}
    bound: set[Any] = set()

    def visit(inner: Any) -> None:
        for statement in inner.statements:
            used.update(dict.fromkeys(used_by(statement)))
            bound.update(binders(statement))
            for each_block in blocks(statement):
                visit(each_block)
        used.update(dict.fromkeys(getattr(inner, "results", ())))

    visit(block)
    return {one: None for one in used if one.__class__ not in _CONSTANTS and one not in bound}


used_by = collector(lambda leaf, uses: leaf in (Leaf.OPERAND, Leaf.PLACE) and Use.BINDS not in uses)


def substitute(block: T, mapping: Mapping[Any, Any]) -> T:
    """`block` with free variables replaced."""

    def operand(item: Any) -> Any:
        return item if item.__class__ in _CONSTANTS else mapping.get(item, item)

    def inside(inner: Any) -> Any:
        return rebuild(inner, operand, None, inside)

    return inside(block) if mapping else block


# ---- text ------------------------------------------------------------------------------------------------------------


class _Shown(str):
    """The text of a field; in a template `{order: in iteration %}` is nothing where there is no text."""

    def __format__(self, spec: str) -> str:
        return spec.replace("%", self) if spec and self else str(self)


def text(op: Any, show: Callable[[Any], str]) -> str:
    """The text of an operator without blocks: its `TEXT` with its fields filled in, or its name and its fields.

    `show` gives the text of variables, places and constants.
    """

    def shown(part: Any) -> str:
        if part.__class__ in _LEAVES:
            return show(part)
        if isinstance(part, tuple):
            return ", ".join(map(shown, part))
        return text(part, show) if hasattr(part, "TEXT") else "" if part is None else str(part)

    fields = {name: _Shown(shown(getattr(op, name))) for name in op.__dataclass_fields__}
    template = getattr(op, "TEXT", None)
    return (
        template.format_map(fields)
        if template
        else " ".join([op.__class__.__name__.lower(), ", ".join(fields.values())])
    )
