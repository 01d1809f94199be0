"""Abstract values: what the specializer knows of a Python value while it executes the untyped IR over types.

Only leaves (`ScalarV`, `ArrayV`, `ObjectV`) have a run-time representation, a typed IR operand; a `TaggedScalar` has
several. Everything else is structure known at compile time: tuples and lists are their items, a slice its three bounds,
a closure its function and captured values, a module or dtype or string is `Static`. A scalar whose operand is a `Const`
is known too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from enum import Enum
from typing import Any, TypeGuard

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
class TimeV:
    """A datetime64 or timedelta64, or an array of them: the int64 underneath, and the dtype, such as M8[ns]. `object`:
    the argument that it is (see `times`)."""

    value: ScalarV | ArrayV
    unit: str
    object: ObjectV | None = None


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
    listed: ListValue
    version: int
    depth: int


@record
class SuperV:
    """`super()` in a method of a class: what comes after the class `cls` in an object of the class `kind`."""

    object: Value
    cls: Any
    kind: Any


@record
class Columns:
    """Items of one template, each leaf of which has a column; `length` elements of it are in use (`dynamic_lists`).
    Items of items that are lists lie in pools (`nested_lists`)."""

    item: Any


@record
class Rows:
    """Items that are the elements or rows of one array (`array_lists`): Python scalars ("") or NumPy scalars (their
    dtype), in lists of lists where the array has several axes; "array": arrays of one shape; "table": items of several
    types, or tuples, good for an array only; "copies": arrays that Python makes of the rows."""

    kind: str


@record
class Ragged:
    """Items that are arrays of any shapes (`ragged_arrays`), whose elements lie in a pool: columns of where each begins
    there, and of its extents. `bases` is the memory the arrays had that have been appended, `root` names what the items
    show of it; `fresh`: nothing else shows an item."""

    root: int
    bases: frozenset[int]
    fresh: bool


class Ownership(Enum):
    """Of the memory of a list: other values may show it (SHOWN); the function has made it, and what else shows its
    items shows this very memory, so that items can be assigned (OWN); nothing else will read it (ONCE)."""

    SHOWN = "shown"
    OWN = "own"
    ONCE = "once"


@record
class ListValue:
    """A Python list whose length may depend on values; `form` says how its items lie in its columns and pools."""

    length: ScalarV
    columns: tuple[ArrayV, ...]
    form: Columns | Rows | Ragged
    pools: tuple[ListValue, ...] = ()
    ownership: Ownership = Ownership.OWN

    @staticmethod
    def grown(length: ScalarV, columns: Iterable[ArrayV], item: Any, pools: Iterable[ListValue] = ()) -> ListValue:
        """A list in columns that have room for more items."""
        return ListValue(length, tuple(columns), Columns(item), tuple(pools))

    @staticmethod
    def rows(array: ArrayV, kind: str = "", ownership: Ownership = Ownership.SHOWN) -> ListValue:
        """The list of the elements or rows of an array."""
        return ListValue(ScalarV(array.extents[0]), (array,), Rows(kind), (), ownership)

    @property
    def item(self) -> Any:
        """The template of items in columns."""
        assert isinstance(self.form, Columns)
        return self.form.item

    @property
    def kind(self) -> str:
        """What the rows of an array are."""
        assert isinstance(self.form, Rows)
        return self.form.kind

    @property
    def array(self) -> ArrayV:
        """The array whose rows are the items."""
        return self.columns[0]


@record
class MapV:
    """A dict or set with keys computed at run time (see `hash_maps`): its entries, pairs or items, in the order of
    insertion, and the table that finds them. `kind`: dict, set, or reordered, a set that had other items before, whose
    order in Python depends on them."""

    entries: ListValue
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
class RecordV:
    """Records of an argument, by an index of integers and slices: a view, whose fields are read and stored where the
    columns of the argument are. `of_list`: an item of a list of instances, whose attributes are read in columns.

    Those that arrays of places or masks select are copies. Their fields are read when they are asked for, while nothing
    has been stored: `copied` says how much had been done when they were made, and in how many loops.
    """

    records: ObjectV
    index: Value
    of_list: bool = False
    copied: tuple[int, int] | None = None
    site: Any = field(default=None, compare=False)  # where the index is applied


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

    Without a message: it is made where it is caught, and cannot be raised elsewhere. One that has been caught knows the
    `places` where it may have been raised, and the number `at` of the one where it was.
    """

    exception: type[BaseException]
    message: str | None
    args: tuple[ir.Operand, ...] = ()
    places: tuple[ssa.Pos, ...] = ()
    at: ir.Operand = ir.ZERO


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
    | TimeV
    | TupleV
    | InstanceV
    | RefV
    | ItemV
    | TextV
    | CharV
    | SuperV
    | ListValue
    | DictV
    | MapV
    | SliceV
    | ClosureV
    | MethodV
    | RangeV
    | RecordV
    | IteratorV
    | ComprehensionV
    | GeneratorV
    | ErrorV
    | MessageV
    | UnboundV
    | NeverV
)


WITH_COLUMNS = (Columns, Rows, Ragged, MapV, TimeV)
"""Classes of forms (see `forms`) that modules of their own in `containers`, and `times`, have the entries of."""


def class_of_form(value: Value) -> type:
    """What says how a value is made: its class, or that of the form of a list."""
    return type(value.form) if isinstance(value, ListValue) else type(value)


def grows(value: Value) -> TypeGuard[ListValue]:
    """Is it a list in columns that have room for more items?"""
    return isinstance(value, ListValue) and isinstance(value.form, Columns)


def is_rows(value: Value) -> TypeGuard[ListValue]:
    """Is it a list kept as an array?"""
    return isinstance(value, ListValue) and isinstance(value.form, Rows)


def is_ragged(value: Value) -> TypeGuard[ListValue]:
    """Is it a list of arrays that grows?"""
    return isinstance(value, ListValue) and isinstance(value.form, Ragged)


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
