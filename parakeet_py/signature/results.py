"""Results: how what machine code hands back is put together again.

A result is a tree: tuples, lists and choices of *leaves*, each of which is one scalar, array or Python object in slots
of 8 bytes, and of values known when the function was compiled. A leaf that stands in two places of the tree is one
Python object in both. Like signatures these know nothing of LLVM: the specializer makes them, the gate boxes by them,
`signature_json` writes them into the disk cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.signature.attribute_sources import store_field
from parakeet_py.signature.object_assembly import Assembled
from parakeet_py.signature.specs import static_key


@record
class ResultLeaf:
    """One value machine code hands back; the same index twice in a tree is the same Python object twice.

    Indices count from 0; slots are laid out in index order (`result_offsets`). A scalar is boxed as the Python type if
    `python`, else as the NumPy scalar of `dtype`. An array with `view` is a new array object, even where its descriptor
    is that of an argument; one with `readonly` cannot be written to. With `unit` the array has that dtype, one of
    datetime64 or timedelta64, and its elements are the int64 underneath.
    """

    index: int
    kind: Literal["scalar", "array", "object"]
    dtype: str = ""
    python: bool = False
    rank: int = 0
    view: bool = False
    readonly: bool = False
    unit: str = ""


@record(eq=False)
class ResultStatic:
    """A value known when the function was compiled."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultStatic) and static_key(self.value) == static_key(other.value)

    def __hash__(self) -> int:
        return hash(static_key(self.value))


@record
class ResultTuple:
    """A tuple or list; with `type`, what that gives when it is called with the items: a namedtuple class, a
    `SetAttributes`, a `SetColumns`, or an `Assembled`."""

    items: tuple[Result, ...]
    kind: Literal["tuple", "list"] = "tuple"
    type: Callable[..., Any] | None = None


@record
class OfUnit:
    """Called with an int64 of NumPy's, or an array of them: a time of this dtype, datetime64 or timedelta64, which is
    that underneath."""

    unit: str

    def __call__(self, value: Any) -> Any:
        return value.view(self.unit)


@record
class SetAttributes:
    """Called with a result, objects, and values for the attributes `names` (the number of the object, the name)."""

    names: tuple[tuple[int, str], ...]

    def __call__(self, result: object, *rest: object) -> object:
        count = len(rest) - len(self.names)
        for (number, name), value in zip(self.names, rest[count:], strict=True):
            store_field(rest[number], name, value)
        return result


@record
class SetColumns:
    """Called with a result, a list of objects, and for each of the attributes `names` two lists or arrays as long: what
    the objects get, and which of them do."""

    names: tuple[str, ...]

    def __call__(self, result: object, objects: Sequence[object], *columns: Any) -> object:
        for place, name in enumerate(self.names):
            values, chosen = columns[2 * place], columns[2 * place + 1]
            if not chosen.all():
                which = chosen.tolist()
                values = itertools.compress(values, which)
                _setter_of(name)(itertools.compress(objects, which), values)
            else:
                _setter_of(name)(objects, values)
        return result


@lru_cache(maxsize=256)
def _setter_of(name: str) -> Callable[[Iterable[object], Iterable[object]], None]:
    """What gives objects values for an attribute; a statement does so in half the time of `setattr`."""
    scope: dict[str, Any] = {}
    exec(f"def give(objects, values):\n    for one, value in zip(objects, values):\n        one.{name} = value", scope)
    made: Callable[[Iterable[object], Iterable[object]], None] = scope["give"]
    return made


@record
class NewInstance:
    """Called with what the attributes `names` hold, but for those in `fixed`, which hold the same in each: a new
    instance of the class, made without its `__init__`."""

    cls: Any
    names: tuple[str, ...]
    fixed: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *values: object) -> object:
        made, fixed, given = object.__new__(self.cls), dict(self.fixed), iter(values)
        for name in self.names:
            object.__setattr__(made, name, fixed[name] if name in fixed else next(given))
        return made


@record
class ResultListOf:
    """An array leaf boxed as a Python list: of Python scalars and lists of them, as `tolist()` does, or (`numpy`) of
    what iterating over the array gives."""

    leaf: ResultLeaf
    numpy: bool = False


@record
class ResultRows:
    """A list of lists: parts of the list `items`, each from one of the places in the array `ends` to the next."""

    items: Result
    ends: ResultLeaf


@record
class ResultEither:
    """A scalar, or what is known when compiled, as the path has it: `choices[tag]`. Its leaves are boxed when they are
    chosen, but for those that another part of the result shows in any case."""

    tag: ResultLeaf
    choices: tuple[ResultLeaf | ResultStatic, ...]

    @property
    def leaves(self) -> tuple[ResultLeaf, ...]:
        return (self.tag, *(choice for choice in self.choices if isinstance(choice, ResultLeaf)))


Result = ResultLeaf | ResultStatic | ResultTuple | ResultListOf | ResultRows | ResultEither


def listed(tree: Result) -> frozenset[int]:
    """The array leaves that are boxed as Python lists, whose elements are looked at then."""
    match tree:
        case ResultListOf(leaf):
            return frozenset((leaf.index,))
        case ResultRows(items, ends):
            return listed(items) | {ends.index}
        case ResultTuple(items, type=Assembled() as made):
            own = [items[position] for position in made.looked_at]
            return frozenset(leaf.index for item in own for leaf in _result_walk(item) if leaf.kind == "array")
        case ResultTuple(items):
            return frozenset().union(*map(listed, items))
    return frozenset()


def result_leaves(tree: Result) -> tuple[ResultLeaf, ...]:
    """The distinct leaves of a result tree in index order; raises `ValueError` if the indices have gaps."""
    found: dict[int, ResultLeaf] = {}
    for leaf in _result_walk(tree):
        if found.setdefault(leaf.index, leaf) != leaf:
            raise ValueError(f"two different result leaves have the index {leaf.index}")
    if sorted(found) != list(range(len(found))):
        raise ValueError(f"result leaves are numbered {sorted(found)}, not 0 to {len(found) - 1}")
    return tuple(found[index] for index in range(len(found)))


def certain_leaves(tree: Result) -> frozenset[int]:
    """The leaves that are part of the result whatever is chosen, by index."""
    match tree:
        case ResultEither():
            return frozenset()
        case ResultTuple(items):
            return frozenset().union(*map(certain_leaves, items))
        case ResultRows(items, ends):
            return certain_leaves(items) | {ends.index}
    return frozenset(leaf.index for leaf in _result_walk(tree))


def result_leaf_slots(leaf: ResultLeaf) -> int:
    """Slots of a result leaf: array [object, base, block, data, dims, strides], scalar 1 (complex128: 2), object 1."""
    if leaf.kind == "array":
        return 4 + 2 * leaf.rank
    return 2 if leaf.dtype == "complex128" else 1


def result_offsets(tree: Result) -> tuple[int, ...]:
    """First slot of each result leaf, and at the end the total number of slots."""
    offsets = [0]
    for leaf in result_leaves(tree):
        offsets.append(offsets[-1] + result_leaf_slots(leaf))
    return tuple(offsets)


def _result_walk(tree: Result) -> Iterator[ResultLeaf]:
    match tree:
        case ResultLeaf():
            yield tree
        case ResultListOf():
            yield tree.leaf
        case ResultRows():
            yield from _result_walk(tree.items)
            yield tree.ends
        case ResultEither():
            yield from tree.leaves
        case ResultTuple():
            for item in tree.items:
                yield from _result_walk(item)


def has_known_parts(tree: Result) -> bool:
    """Whether a result shows anything, but None, that was known when the function was compiled."""
    match tree:
        case ResultStatic(value):
            return value is not None
        case ResultTuple(items):
            return any(map(has_known_parts, items))
        case ResultEither():
            return True
    return False


def sets_attributes(tree: Result) -> bool:
    """Whether objects get attributes when a result is put together."""
    return isinstance(tree, ResultTuple) and isinstance(tree.type, SetAttributes | SetColumns)


def taken_apart(tree: Result, value: Any) -> dict[int, Any]:
    """The leaves, by index, of a result that Python gives: those in tuples and lists of the tree's form."""
    match tree:
        case ResultLeaf(index):
            return {index: value}
        case ResultTuple(items, type=made) if made is None or isinstance(made, type):
            if isinstance(value, tuple | list) and len(value) == len(items):
                found: dict[int, Any] = {}
                for item, one in zip(items, value, strict=True):
                    found.update(taken_apart(item, one))
                return found
    return {}


Leaving = Callable[[Any, bool, bool], Any]


def array_of_numpy(value: np.ndarray[Any, Any], new: bool, readonly: bool) -> np.ndarray[Any, Any]:
    """An array of a result: a `new` object of the same elements if that is wanted, which may be `readonly`."""
    if new:
        value = value.view()
        value.flags.writeable = value.flags.writeable and not readonly
    return value


def assemble(tree: Result, leaves: Sequence[Any], given: Sequence[Any] = (), array: Leaving = array_of_numpy) -> Any:
    """The Python object of a result tree. `given` are the arguments, which stay themselves; `array` makes of an array
    leaf what the caller gets."""
    return _assemble(tree, leaves, given, array, {})


def _assemble(tree: Result, leaves: Sequence[Any], given: Sequence[Any], array: Leaving, boxed: dict[int, Any]) -> Any:
    match tree:
        case ResultLeaf(index, kind, dtype, python):
            if index in boxed:
                return boxed[index]
            value = leaves[index]
            if kind == "array":
                argument = any([value is one for one in given])
                new = tree.view or (not argument and tree.readonly)
                if new or not argument:
                    value = array(value, new, tree.readonly)
                if tree.unit:
                    value = value.view(tree.unit)
            if kind == "scalar":
                made = np.dtype(dtype).type(value)
                value = made.item() if python else made.view(tree.unit) if tree.unit else made
            boxed[index] = value
            return value
        case ResultStatic(value):
            return value
        case ResultEither(tag, choices):
            return _assemble(choices[int(leaves[tag.index])], leaves, given, array, boxed)
        case ResultListOf(leaf, numpy):
            return list(leaves[leaf.index]) if numpy else leaves[leaf.index].tolist()
        case ResultRows(items, ends):
            held = _assemble(items, leaves, given, array, boxed)
            return [held[first:last] for first, last in itertools.pairwise(leaves[ends.index].tolist())]
        case ResultTuple(items, kind, type_):
            parts = [_assemble(item, leaves, given, array, boxed) for item in items]
            if type_ is not None:
                return type_(*parts)
            return tuple(parts) if kind == "tuple" else parts
    raise AssertionError(tree)
