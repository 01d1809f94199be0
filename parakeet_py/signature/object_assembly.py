"""What is put together from values: templates of tuples, lists, dicts and all that Python code makes of leaves.

Leaves are what a typed function has at run time: numbers, arrays, Python objects. Everything around them is known when
the function is compiled, and is put together by `rebuild`: for operations that are handed back (`typed_ir.opaque`),
and for results that are more than tuples and lists of leaves (`Assembled`).
"""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record


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
    format (of `keys[0]`), function (of the code `keys[0]` inside the function `keys[1]`: what it has captured, and its
    defaults).

    list_of and items_of: an array to be made a list, of Python scalars or of its items. readonly: an array that may
    not be stored to. copies_of: a list of new arrays, the rows of one; arrays_of: such a list from an `ArraysV`.
    rows_of: a list of lists, from where each begins (and the last one ends) in a list of all their items; empty_lists:
    of so many empty ones.
    """

    kind: str
    items: tuple[Template, ...]
    keys: tuple[Any, ...] = ()


Template = LeafT | StaticT | ContainerT


def rebuild(template: Template, leaves: Sequence[Any]) -> Any:
    """The Python object of a template."""
    match template:
        case LeafT(position):
            return leaves[position]
        case StaticT(value):
            return value
        case ContainerT(kind, items, keys):
            parts = [rebuild(item, leaves) for item in items]
            match kind:
                case "tuple":
                    return tuple(parts)
                case "list":
                    return parts
                case "named":
                    return keys[0](*parts)
                case "slice":
                    return slice(*parts)
                case "range":
                    return range(*parts)
                case "dict":
                    return dict(zip(keys, parts, strict=True))
                case "list_of":
                    return parts[0].tolist()
                case "items_of":
                    return list(parts[0])
                case "readonly":
                    return _readonly(parts[0])
                case "method":
                    return getattr(parts[0], keys[0])
                case "dict_of":
                    return dict(parts[0])
                case "set_of":
                    return set(parts[0])
                case "copies_of":
                    return [row.copy() for row in parts[0]]
                case "arrays_of":
                    data, starts, *extents = parts
                    shapes = zip(*extents, strict=True)
                    return [
                        data[start : start + math.prod(shape)].reshape(shape).copy()
                        for start, shape in zip(starts, shapes, strict=True)
                    ]
                case "zipped":
                    rows = zip(*parts, strict=True)
                    if keys[0] is tuple:
                        return list(rows)
                    return list(map(list, rows)) if keys[0] is list else list(itertools.starmap(keys[0], rows))
                case "rows_of":
                    return [parts[1][first:last] for first, last in itertools.pairwise(parts[0])]
                case "empty_lists":
                    return [[] for _ in range(parts[0])]
                case "one_of":
                    return parts[1 + parts[0]]
                case "chosen":
                    options = list(zip(parts[1:], keys, strict=True))  # lists, or one item for all places
                    return [
                        options[tag][0] if options[tag][1] else options[tag][0][place]
                        for place, tag in enumerate(parts[0])
                    ]
                case "format":
                    return str.format(keys[0], *parts)
                case "function":
                    return _function(keys[0], keys[1], parts)
    raise AssertionError(template)


def _function(code: types.CodeType, around: types.FunctionType, parts: Sequence[Any]) -> types.FunctionType:
    """A nested function; it may have captured itself."""
    itself = types.CellType()
    held = iter(parts)
    cells = tuple(itself if name == code.co_name else types.CellType(next(held)) for name in code.co_freevars)
    made = types.FunctionType(code, around.__globals__, code.co_name, tuple(held), cells)
    itself.cell_contents = made
    return made


def _selected(tags: Sequence[int], options: tuple[Any, ...]) -> list[Any]:
    return [options[tag] for tag in tags]


def _readonly(array: Any) -> Any:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def expression(template: Template, names: dict[str, Any]) -> str:
    """Python text for `rebuild`, of leaves x0, x1, ...; what else it takes is put into `names`."""

    def named(value: Any) -> str:
        name = f"made{len(names)}"
        names[name] = value
        return name

    match template:
        case LeafT(position):
            return f"x{position}"
        case StaticT(value):
            return named(value)
        case ContainerT(kind, items, keys):
            parts = [expression(item, names) for item in items]
            match kind:
                case "tuple":
                    return f"({''.join(part + ', ' for part in parts)})"
                case "list":
                    return f"[{', '.join(parts)}]"
                case "dict":
                    pairs = zip(keys, parts, strict=True)
                    return "{" + ", ".join(f"{named(key)}: {part}" for key, part in pairs) + "}"
                case "named":
                    return f"{named(keys[0])}({', '.join(parts)})"
                case "slice" | "dict_of" | "set_of":
                    kinds = {"slice": slice, "dict_of": dict, "set_of": set}
                    return f"{named(kinds[kind])}({', '.join(parts)})"
                case "list_of":
                    return f"{parts[0]}.tolist()"
                case "items_of":
                    return f"[*{parts[0]}]"
                case "zipped":
                    rows = f"{named(zip)}({', '.join(parts)}, strict=True)"
                    if keys[0] is tuple:
                        return f"[*{rows}]"
                    return (
                        f"[*{named(map)}({named(list)}, {rows})]"
                        if keys[0] is list
                        else f"[*{named(itertools.starmap)}({named(keys[0])}, {rows})]"
                    )
                case "chosen" if all(keys):
                    return f"{named(_selected)}({parts[0]}, ({''.join(part + ', ' for part in parts[1:])}))"
                case "method" if keys[0].isidentifier():
                    return f"{parts[0]}.{keys[0]}"
            leaves: tuple[Template, ...] = tuple(map(LeafT, range(len(items))))
            return f"{named(rebuild)}({named(ContainerT(kind, leaves, keys))}, ({''.join(p + ', ' for p in parts)}))"
    raise AssertionError(template)


@record
class Assembled:
    """Called with leaves: what the template makes of them."""

    template: Template

    def __call__(self, *leaves: Any) -> Any:
        return rebuild(self.template, leaves)

    def function(self, leaves: int) -> Callable[..., Any]:
        """The same for so many leaves, as a function made for this template."""
        names: dict[str, Any] = {}
        body = expression(self.template, names)
        parameters = ", ".join(f"x{position}" for position in range(leaves))
        return eval(f"lambda {parameters}: {body}", names)  # type: ignore[no-any-return]

    @property
    def looked_at(self) -> frozenset[int]:
        """The leaves whose elements are asked for; the others are only passed on."""
        return frozenset(_looked_at(self.template, False))


_PASSING_ON = ("tuple", "list", "named", "dict")


def _looked_at(template: Template, inside: bool) -> Iterator[int]:
    match template:
        case LeafT(position) if inside:
            yield position
        case ContainerT(kind, items):
            for item in items:
                yield from _looked_at(item, inside or kind not in _PASSING_ON)
