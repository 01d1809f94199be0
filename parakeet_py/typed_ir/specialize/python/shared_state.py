"""Names that functions share, in recursion: what their cells hold goes in with a call and comes back with its result.

    def solve(n):                        place_1(r, count, taken...) -> result, count, taken...
        count, taken = 0, set()
        def place(r):
            nonlocal count
            ...
            taken.add(r); place(r + 1); taken.remove(r)

A procedure has, beside its parameters, one for what each cell holds that it can reach, and gives what they hold when it
ends. Lists, dicts and sets are in the form in which they change: with a length and columns, whatever is known of them
where it is called. As the types of items may widen in the body, so may the parameters: the body is specialized until
nothing is new (`procedures`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.signature.specs import Source
from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps
from parakeet_py.typed_ir.specialize.forms import parts_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, Structure, Template, mapped, template_of, varying
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    DictV,
    MapV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
    grows,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


class Unfit(Exception):
    """Arguments or results that procedures do not have."""


@record(eq=False, frozen=False)
class State:
    """The cells that a procedure reaches, templates for what they hold, and a number for the memory of each."""

    sources: tuple[Source, ...]
    templates: tuple[Template, ...]
    roots: tuple[int, ...]

    @staticmethod
    def of(s: Context, values: Sequence[Value], memory: frozenset[int]) -> State:
        """That of a call with these values, whose arrays live in `memory`."""
        sources = _reached(s, values)
        roots = tuple(s.memory.new_root() for _ in sources)
        held = [s.builder.fields[source] for source in sources]
        taken = memory | _memory(list(s.arguments.hidden.values()))
        for value in held:
            own = _memory([value])
            if own & taken:
                raise s.unsupported("an array that functions share under several names, in a recursion")
            taken |= own
        templates = tuple(_template(s, value, root) for value, root in zip(held, roots, strict=True))
        return State(sources, templates, roots)

    def values(self, s: Context) -> tuple[Value, ...]:
        """What the cells hold here."""
        return tuple(s.builder.fields[source] for source in self.sources)

    def widen(self, s: Context) -> None:
        """Make templates fit what the cells hold here."""
        self.templates = self._joined(s)

    def takes(self, s: Context) -> bool:
        """Do the templates fit already?"""
        try:
            return self._joined(s) == self.templates
        except UnsupportedError:
            return False

    def _joined(self, s: Context) -> tuple[Template, ...]:
        given = zip(self.templates, self.values(s), self.roots, strict=True)
        return tuple(
            _placed(varying(join.join(s, template, _template(s, value, root))), frozenset({root}))
            for template, value, root in given
        )

    def memory(self, s: Context) -> dict[int, frozenset[int]]:
        """The memory that what the cells hold may live in after a call, by the numbers that stand for it."""
        held = zip(self.roots, self.values(s), strict=True)
        return {root: _memory([value]) | {s.memory.new_root()} for root, value in held}

    def take(self, s: Context, values: Sequence[Value]) -> None:
        s.builder.fields.update(zip(self.sources, values, strict=True))

    def ended(self, s: Context, inside: int) -> tuple[Template, ...]:
        """Templates for what the cells hold at the end of a body, which may have made it."""
        return tuple(
            _placed(_template(s, value, root), frozenset({root, inside}))
            for value, root in zip(self.values(s), self.roots, strict=True)
        )

    def settled(self, result: Template, inside: int) -> Template:
        """A result with the memory that it has whatever it has been joined with."""
        if not isinstance(result, Structure) or not self.sources:
            return result
        first, *held = result.parts
        placed = (_placed(one, frozenset({root, inside})) for one, root in zip(held, self.roots, strict=True))
        return Structure(result.like, (first, *placed))

    def roots_apart(self) -> list[frozenset[int]]:
        """The memory of each cell's array; the columns of a list are apart."""
        return [frozenset({root}) for root in self.roots]


def _reached(s: Context, values: Sequence[Value]) -> tuple[Source, ...]:
    """The cells in some values, and in what these hold, in order."""
    found: dict[Source, None] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop(0)
        if not isinstance(value, Static):
            waiting += parts_of(value)
        elif isinstance(value.object, assigned_attributes.Cell) and value.object.source not in found:
            found[value.object.source] = None
            waiting.append(assigned_attributes.contents(s, value.object))
    return tuple(found)


def _memory(values: Sequence[Value]) -> frozenset[int]:
    """The memory of the arrays in some values."""
    found: frozenset[int] = frozenset()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, ArrayV):
            found |= value.roots
        else:
            waiting += parts_of(value)
    return found


def _template(s: Context, value: Value, root: int) -> Template:
    """The template of what a cell holds, in a form in which it can change."""
    template = template_of(value, varying=True)
    match value:
        case ScalarV() | TaggedScalar() | Static():
            return template
        case ArrayV() | MapV():
            return _placed(template, frozenset({root}))
        case _ if grows(value):
            return _placed(template, frozenset({root}))
        case DictV(items) if all(_is_key(key) for key, _ in items):
            assert isinstance(template, Structure)
            return _placed(hash_maps.joined(s, template, template), frozenset({root}))
        case _ if dynamic_lists.has_item_type(value):
            assert isinstance(template, Structure)
            return _placed(dynamic_lists.grown_template(s, template, template), frozenset({root}))
        case TupleV(kind="tuple") if all(isinstance(part, ScalarV | TaggedScalar | Static) for part in value.items):
            return template
    raise s.unsupported(f"{s.describe(value)} that functions share, in a recursion")


def _is_key(key: object) -> bool:
    return isinstance(key, int | float) or (isinstance(key, tuple) and all(map(_is_key, key)))


def _placed(template: Template, roots: frozenset[int]) -> Template:
    """A template whose arrays have any extents, and live in this memory."""

    def placed(one: Template) -> Template:
        if not isinstance(one, ArrayT):
            return one
        rank = one.type.rank
        return replace(one, extents=(None,) * rank, roots=roots, nonunit=(False,) * rank, order=())

    return mapped(template, placed)
