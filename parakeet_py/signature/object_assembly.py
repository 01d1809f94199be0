"""What is put together from values: recipes of tuples, lists, dicts and all that Python code makes of leaves.

Leaves are what a typed function has at run time: numbers, arrays, Python objects. Everything around them is known when
the function is compiled. Recipes become Python expressions of the leaves: for operations that are handed back
(`typed_ir.opaque`), and for results that are more than tuples and lists of leaves (`Assembled`).
"""

from __future__ import annotations

import itertools
import keyword
import math
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.signature.annotations import annotate


@record
class LeafT:
    """The leaf at a position of the site's arguments."""

    position: int


@record(eq=False)
class StaticT:
    value: Any


@record
class ContainerT:
    """tuple, list, named (tuple of the class `keys[0]`), slice, range, dict (keys in `keys`), method (`keys[0]`),
    format (of `keys[0]`), function (of the code `keys[0]` inside the function `keys[1]`, with annotations of the form
    `keys[2]`, see `annotations`: what it has captured, and its defaults).

    list_of and items_of: an array to be made a list, of Python scalars or of its items. readonly: an array that may
    not be stored to. copies_of: a list of new arrays, the rows of one; arrays_of: such a list from a ragged one.
    rows_of: a list of lists, from where each begins (and the last one ends) in a list of all their items; empty_lists:
    of so many empty ones. range_after: an iterator over what follows an item of a range; items_after: over what follows
    so many items.
    """

    kind: str
    items: tuple[Recipe, ...]
    keys: tuple[Any, ...] = ()


Recipe = LeafT | StaticT | ContainerT


def first_of(object_: object, memory: object) -> object:
    """What is put together of an object, and an array over memory of its own."""
    return object_


def _function(code: types.CodeType, around: types.FunctionType, form: str, *parts: Any) -> types.FunctionType:
    """A nested function; it may have captured itself."""
    itself = types.CellType()
    held = iter(parts)
    cells = tuple(itself if name == code.co_name else types.CellType(next(held)) for name in code.co_freevars)
    made = types.FunctionType(code, around.__globals__, code.co_name, tuple(held), cells)
    itself.cell_contents = made
    if form:
        annotate(made, form, around)
    return made


def _readonly(array: Any) -> Any:
    if getattr(getattr(array, "flags", None), "writeable", False):  # arrays of other libraries may not say
        if hasattr(array, "_view"):  # it lives on devices
            return array._view(False)
        array = array.view()
        array.flags.writeable = False
    return array


def _range_after(start: int, stop: int, step: int, item: int) -> Iterator[int]:
    """What is left of a range after one of its items."""
    return iter(range(item + step, stop, step))


def _items_after(items: Iterable[Any], count: int) -> Iterator[Any]:
    """An iterator over the items from there on, which sees what happens to a list meanwhile."""
    left = iter(items)
    next(itertools.islice(left, count, count), None)
    return left


def _copies(rows: Any) -> list[Any]:
    return [row.copy() for row in rows]


def _arrays(data: Any, starts: Sequence[int], *extents: Sequence[int]) -> list[Any]:
    shapes = zip(*extents, strict=True)
    return [
        data[start : start + math.prod(shape)].reshape(shape).copy()
        for start, shape in zip(starts, shapes, strict=True)
    ]


def _zipped(kind: type, *columns: Any) -> list[Any]:
    rows = zip(*columns, strict=True)
    if kind is tuple:
        return list(rows)
    return list(map(list, rows)) if kind is list else list(itertools.starmap(kind, rows))


def _rows(ends: Sequence[int], items: Any) -> list[Any]:
    return [items[first:last] for first, last in itertools.pairwise(ends)]


def _empty_lists(count: int) -> list[Any]:
    return [[] for _ in range(count)]


def _chosen(fixed: Sequence[bool], tags: Sequence[int], *options: Any) -> list[Any]:
    """An item for each tag, of that option; options are lists, or fixed: one item for all places."""
    if all(fixed):
        return [options[tag] for tag in tags]
    return [options[tag] if fixed[tag] else options[tag][place] for place, tag in enumerate(tags)]


_MADE_BY: dict[str, Callable[..., Any]] = {
    "slice": slice, "range": range, "dict_of": dict, "set_of": set, "items_of": list, "readonly": _readonly,
    "copies_of": _copies, "arrays_of": _arrays, "rows_of": _rows, "empty_lists": _empty_lists,
    "range_after": _range_after, "items_after": _items_after,
}  # fmt: skip


def expression(recipe: Recipe, names: dict[str, Any]) -> str:
    """Python text for the object of a recipe, of leaves x0, x1, ...; what else it takes is put into `names`."""

    def named(value: Any) -> str:
        name = f"made{len(names)}"
        names[name] = value
        return name

    match recipe:
        case LeafT(position):
            return f"x{position}"
        case StaticT(value):
            return named(value)
        case ContainerT(kind, items, keys):
            parts = [expression(item, names) for item in items]
            given = ", ".join(parts)
            match kind:
                case "tuple":
                    return f"({given},)" if parts else "()"
                case "list":
                    return f"[{given}]"
                case "dict":
                    pairs = zip(keys, parts, strict=True)
                    return "{" + ", ".join(f"{named(key)}: {part}" for key, part in pairs) + "}"
                case "named":
                    return f"{named(keys[0])}({given})"
                case "list_of":
                    return f"{given}.tolist()"
                case "one_of":
                    return f"({', '.join(parts[1:])},)[{parts[0]}]"
                case "method" if keys[0].isidentifier() and not keyword.iskeyword(keys[0]):
                    return f"{given}.{keys[0]}"
                case "method":
                    return f"{named(getattr)}({given}, {keys[0]!r})"
                case "format":
                    return f"{named(partial(str.format, keys[0]))}({given})"
                case "zipped":
                    return f"{named(partial(_zipped, keys[0]))}({given})"
                case "chosen":
                    return f"{named(partial(_chosen, keys))}({given})"
                case "function":
                    return f"{named(partial(_function, *keys))}({given})"
            return f"{named(_MADE_BY[kind])}({given})"
    raise AssertionError(recipe)


def assembler(recipes: Sequence[Recipe], leaves: int) -> Callable[..., tuple[Any, ...]]:
    """A function of so many leaves that makes the objects of recipes."""
    names: dict[str, Any] = {}
    return _function_of(leaves, "(" + "".join(expression(one, names) + ", " for one in recipes) + ")", names)


def _function_of(leaves: int, text: str, names: dict[str, Any]) -> Callable[..., Any]:
    parameters = ", ".join(f"x{position}" for position in range(leaves))
    made: Callable[..., Any] = eval(f"lambda {parameters}: {text}", names)
    return made


@record
class Assembled:
    """Called with leaves: what the recipe makes of them."""

    recipe: Recipe

    def __call__(self, *leaves: Any) -> Any:
        return self.function(len(leaves))(*leaves)

    def function(self, leaves: int) -> Callable[..., Any]:
        """The same for so many leaves, as a function made for this recipe."""
        names: dict[str, Any] = {}
        return _function_of(leaves, expression(self.recipe, names), names)

    @property
    def looked_at(self) -> frozenset[int]:
        """The leaves whose elements are asked for; the others are only passed on."""
        return frozenset(_looked_at(self.recipe, False))


_PASSING_ON = ("tuple", "list", "named", "dict", "readonly")


def _looked_at(recipe: Recipe, inside: bool) -> Iterator[int]:
    match recipe:
        case LeafT(position) if inside:
            yield position
        case ContainerT(kind, items):
            for item in items:
                yield from _looked_at(item, inside or kind not in _PASSING_ON)
