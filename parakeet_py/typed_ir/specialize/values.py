"""Abstract values: what the specializer knows of a Python value while it executes the untyped IR over types.

Only leaves (`ScalarV`, `ArrayV`, `ObjectV`) have a run-time representation, a typed IR operand; a `TaggedScalar` has
several. Everything else is structure known at compile time: tuples and lists are their items, a slice its three bounds,
a closure its function and captured values, a module or dtype or string is `Static`. A scalar whose operand is a `Const`
is known too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import DTYPES, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Array, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir


@record
class Static:
    """A Python object known at compile time: None, str, module, function, class, dtype, Ellipsis..."""

    object: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.object) is not type(other.object):
            return False
        return self.object is other.object or (isinstance(self.object, str | bytes) and self.object == other.object)

    def __hash__(self) -> int:
        return hash(self.object) if isinstance(self.object, str | bytes) else id(self.object)


@record
class ScalarV:
    operand: ir.Operand

    @property
    def type(self) -> Scalar:
        kind = self.operand.type
        assert isinstance(kind, Scalar)
        return kind

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def python(self) -> bool:
        return self.type.python


@record
class TaggedScalar:
    """A scalar of one of several types, the widest last (see `tagged_scalars`): which it is (an index), and a payload
    for each. `rare`: it has another type than the widest only if some loop does not run."""

    kinds: tuple[Scalar, ...]
    tag: ir.Operand
    payloads: tuple[ir.Operand, ...]
    rare: bool = False


@record
class ArrayV:
    """An array descriptor with its extents as operands.

    `roots` names the memory it may live in (see `Context.new_root`); `readonly` is as NumPy's flag; `nonunit[a]` is
    true when axis a's extent is known to differ from 1. `order` is the order of its strides as far as it is known, from
    the slowest axis to the fastest, or empty for C order (see `axis_order`).
    """

    var: ir.Var
    extents: tuple[ir.Operand, ...]
    roots: frozenset[int]
    readonly: bool = False
    nonunit: tuple[bool, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def axes_by_stride(self) -> tuple[int, ...]:
        """All axes, from the slowest to the fastest."""
        return self.order or tuple(range(self.rank))

    @property
    def type(self) -> Array:
        kind = self.var.type
        assert isinstance(kind, Array)
        return kind

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def layout(self) -> str:
        return self.type.layout

    def is_nonunit(self, axis: int) -> bool:
        return bool(self.nonunit) and self.nonunit[axis]


@record
class ObjectV:
    """A Python object: of an exact type that no other value here stands for, or of `any` type, None included."""

    var: ir.Var
    any: bool = False


@record
class VariantV:
    """A value of one of several kinds, `options[tag]` (see `tagged_unions`); the other options mean nothing."""

    tag: ScalarV
    options: tuple[Value, ...]


@record
class TupleV:
    """A tuple or list of known length; a list is treated as a value (appending makes a new one). `named` is the class
    of a named tuple."""

    items: tuple[Value, ...]
    kind: str = "tuple"
    named: Any = None


@record
class InstanceV:
    """An instance of a class in Python that the function has made, and that does not change (see `instances`): what its
    attributes hold. `sites` are where it may have been made; `token` is the same for one object, None where that is
    not known."""

    cls: Any
    names: tuple[str, ...]
    items: tuple[Value, ...]
    sites: frozenset[Any]
    token: Any = None


@record(eq=False)
class Made:
    """One object that a function makes, and where: `root` counts on, `depth` is that of recursion."""

    cls: Any
    site: Any
    root: int
    depth: int
    scope: Any


@record
class RefV:
    """An instance that the function has made and that changes: its attributes are those of `assigned_attributes`."""

    made: Made


@record
class TextV:
    """A string that is (part of) an argument, as its code points (see `strings`)."""

    codes: ArrayV


@record
class CharV:
    """A character of one."""

    code: ScalarV


@record
class ItemV:
    """An instance in a list whose items change (see `instance_lists`): where it stands. `version` and `depth`: how many
    changes of lists, and how many loops, were around it when it was taken."""

    index: ScalarV
    listed: GrowV
    version: int
    depth: int


@record
class SuperV:
    """`super()` in a method of a class: what comes after the class."""

    object: Value
    cls: Any


@record
class ListV:
    """A Python list of unknown length, kept as an array until something needs a list.

    `items` says what it holds: Python scalars ("") or NumPy scalars (their dtype), in lists of lists where the array
    has several axes; "array": arrays of one shape, the rows; "table": items of several types, or tuples,
    good for an array only.
    `once`: nothing else will read this list, the array may be taken over. `own`: the function has made the list, and
    whatever else shows its items shows this very memory: items can be assigned.
    """

    array: ArrayV
    items: str = ""
    once: bool = False
    own: bool = False


@record
class GrowV:
    """A Python list that the function changes (see `dynamic_lists`): the first `length` elements of each column, one
    for each leaf of the template `item` that all items have. Items of items that are lists lie in `pools` (see
    `nested_lists`)."""

    length: ScalarV
    columns: tuple[ArrayV, ...]
    item: Any
    pools: tuple[GrowV, ...] = ()


@record
class ArraysV:
    """A Python list of arrays that the function changes (see `ragged_arrays`): the elements of all, where each begins
    in them, and its extents. `bases` is the memory the arrays had that have been appended, `root` names what the items
    show of it; `fresh`: nothing else shows an item."""

    length: ScalarV
    used: ScalarV
    data: ArrayV
    places: tuple[ArrayV, ...]
    root: int
    bases: frozenset[int]
    fresh: bool


@record
class MapV:
    """A dict or set with keys computed at run time (see `hash_maps`): its entries, pairs or items, in the order of
    insertion, and the table that finds them. `kind`: dict, set, or worn, a set that had other items before, whose
    order in Python depends on them."""

    entries: GrowV
    table: ArrayV
    kind: str


@record
class DictV:
    items: tuple[tuple[Any, Value], ...]


@record
class SliceV:
    lower: Value
    upper: Value
    step: Value


@record
class ClosureV:
    """A nested function with the values it captured; `namespace` resolves its globals.

    One that is an argument reads its free variables by name: `free` are the names of what it captured.
    """

    function: ssa.Function
    captures: tuple[Value, ...]
    defaults: tuple[Value, ...]
    namespace: Namespace
    free: tuple[str, ...] = ()


@record
class MethodV:
    """`object.name` not yet called, for values the compiler knows; `a.flat` and `a.flags`, not yet looked into."""

    object: Value
    name: str


@record
class RangeV:
    """range(start, stop, step); `parallel`: the user says (prange) that iterations over it are independent."""

    start: ScalarV
    stop: ScalarV
    step: ScalarV
    parallel: bool = False


@record
class IteratorV:
    """zip, enumerate, reversed over values; `kind` names which. enumerate's first item is its start."""

    kind: str
    items: tuple[Value, ...]


@record
class ComprehensionV:
    """A comprehension or generator expression not consumed yet: element(x) for x in iterable if condition(x)."""

    kind: str
    iterable: Value
    element: Value
    condition: Value | None
    flatten: bool


@record(eq=False)
class GeneratorV:
    """A generator that has not begun: the call whose items it gives, and `changes` of lists that came before it."""

    frame: Frame
    changes: int = -1


@record
class ErrorV:
    """An exception instance that has been built but not raised: a builtin exception's name, message and arguments.

    Without a message: it is made where it is caught, and cannot be raised elsewhere.
    """

    exception: type[BaseException]
    message: str | None
    args: tuple[ir.Operand, ...] = ()


@record
class MessageV:
    """A formatted string: a template with {0}... and the values that fill it."""

    template: str
    args: tuple[Value, ...] = ()


@record
class UnboundV:
    """A name nothing has bound on this path."""


@record
class NeverV:
    """The value of a path that has raised."""


Value = (
    Static
    | ScalarV
    | TaggedScalar
    | ArrayV
    | ObjectV
    | VariantV
    | TupleV
    | InstanceV
    | RefV
    | ItemV
    | TextV
    | CharV
    | SuperV
    | ListV
    | GrowV
    | ArraysV
    | DictV
    | MapV
    | SliceV
    | ClosureV
    | MethodV
    | RangeV
    | IteratorV
    | ComprehensionV
    | GeneratorV
    | ErrorV
    | MessageV
    | UnboundV
    | NeverV
)

ItemAt = Callable[[ir.Operand], Value]
"""Gives the item at a place."""


@record(eq=False, frozen=False)
class Namespace:
    """Where a function's globals come from. `owner` is the function object whose `__globals__` are read; `trusted`
    namespaces (the library's own) are not guarded. `cells` are the free variables of the decorated function."""

    globals: dict[str, Any]
    owner: Any
    trusted: bool = False
    cells: dict[str, Any] = field(default_factory=dict)


@record
class Turn:
    """Where a `for` loop is in what it goes through: at the item of a range, or at the one with this index; or what is
    `left` of it."""

    iterable: Value
    index: ir.Operand = ir.ZERO
    left: Callable[[], Value] | None = None


@record(frozen=False)
class Frame:
    """One inlined call."""

    function: ssa.Function
    namespace: Namespace
    env: dict[ssa.Var, Value] = field(default_factory=dict)
    free: dict[str, Value] = field(default_factory=dict)  # free variables of an argument
    scopes: int = 1  # blocks that were open when it was entered
    closure: ClosureV | None = None  # what was called, if that is a nested function
    caller: ssa.Pos | None = None  # where it was called
    way: list[ssa.Let] = field(default_factory=list)  # the statement that is executed, behind those around it
    pos: ssa.Pos = ssa.Pos(1, 0, 1, 0)  # of the statement that was entered last
    path: tuple[Any, ...] = ()  # the calls that lead to it: where they are, and what they call
    consumer: Callable[[Value], Value] | None = None  # of a generator that is gone through: what is done with an item
    began: dict[int, int] = field(default_factory=dict)  # effects before these statements, by `id`
    turns: dict[int, Turn] = field(default_factory=dict)  # of the loops around it, by `id`


def py(value: bool | int | float | complex) -> ScalarV:
    """A known Python scalar."""
    match value:
        case bool():
            return ScalarV(ir.Const(value, PYBOOL))
        case int():
            return ScalarV(ir.Const(value, PYINT))
        case float():
            return ScalarV(ir.Const(value, PYFLOAT))
        case _:
            return ScalarV(ir.Const(value, PYCOMPLEX))


NONE = Static(None)


def is_none(value: Value) -> bool:
    return isinstance(value, Static) and value.object is None


def fits_int64(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


def lift(obj: Any) -> Value:
    """The value of a Python object known at compile time."""
    import numpy as np

    if isinstance(obj, bool | int | float | complex) and type(obj) in (bool, int, float, complex):
        return py(obj) if type(obj) is not int or fits_int64(obj) else Static(obj)  # see long_ints
    if isinstance(obj, np.generic) and type(obj).__module__ == "numpy" and obj.dtype.name in _DTYPES:
        return ScalarV(ir.Const(obj.item(), Scalar(obj.dtype.name)))
    if type(obj) in (tuple, list):
        return TupleV(tuple(lift(item) for item in obj), type(obj).__name__)
    if isinstance(obj, slice):
        return SliceV(lift(obj.start), lift(obj.stop), lift(obj.step))
    return Static(obj)


_DTYPES = frozenset(DTYPES)


class Unknown(Exception):
    """A value is not known at compile time."""


def known(value: Value) -> Any:
    """The Python object of a value known at compile time; raises `Unknown`."""
    match value:
        case Static(obj):
            return obj
        case ScalarV(ir.Const(constant, kind)):
            if kind.python:
                return constant
            import numpy as np

            return np.dtype(kind.dtype).type(constant)
        case TupleV(items, kind, named):
            made = tuple(known(item) for item in items)
            return list(made) if kind == "list" else made if named is None else named(*made)
        case SliceV(lower, upper, step):
            return slice(known(lower), known(upper), known(step))
        case DictV(items):
            return {key: known(item) for key, item in items}
        case MessageV(template, ()):
            return template.format()
    raise Unknown(value)


def is_known(value: Value) -> bool:
    try:
        known(value)
    except Unknown:
        return False
    return True
