"""Lists as objects of Python: what they are put together of, as operands and as results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.signature.object_assembly import ContainerT, Recipe
from parakeet_py.signature.results import OfUnit
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    constant_tables,
    nested_lists,
    ragged_arrays,
)
from parakeet_py.typed_ir.specialize.instances import values
from parakeet_py.typed_ir.specialize.opaque.operands import LISTS, recipe_of
from parakeet_py.typed_ir.specialize.paths.templates import EitherT, Fixed, RowT, Structure, types_of
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    CharV,
    Columns,
    InstanceV,
    ListValue,
    Ownership,
    Ragged,
    Rows,
    SliceV,
    TimeV,
    TupleV,
    Value,
    VariantV,
    grows,
    is_rows,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


# ---- operands --------------------------------------------------------------------------------------------------------


def _operand(s: Context, value: ListValue, leaves: list[ir.Operand]) -> Recipe:
    match value.form:
        case Ragged(root):
            if root != ragged_arrays.CHECKED:
                raise s.unsupported("a list of arrays, given to Python code")
            (pool,) = value.pools
            lines = [indexing.read(s, column, SliceV(NONE, value.length, NONE)) for column in value.columns]
            return ContainerT("arrays_of", tuple(recipe_of(s, part, leaves) for part in (pool.array, *lines)))
    constant_tables.not_a_row(s, value)
    nested_lists.not_for_python(s, value)
    s.need_whole(value)
    match value.form:
        case Columns():
            return _list_recipe(s, value, leaves)
        case Rows("copies"):
            return ContainerT("copies_of", (recipe_of(s, value.array, leaves),))
        case Rows(kind) if kind != "table" and (kind == "array" or not kind or value.array.rank == 1):
            return ContainerT("items_of" if kind else "list_of", (recipe_of(s, value.array, leaves),))
    raise s.unsupported(f"{s.describe(value)} cannot be handed to Python code")


def _list_recipe(s: Context, value: ListValue, leaves: list[ir.Operand]) -> Recipe:
    match value.item:
        case Structure(TupleV(kind=sequence, named=named), parts) if parts:
            columns, pools = list(value.columns), list(value.pools)
            made = []
            for part in parts:
                own = [columns.pop(0) for _ in types_of(part)]
                inner = tuple(pools.pop(0) for _ in nested_lists.row_templates(part))
                made.append(_list_recipe(s, ListValue.grown(value.length, tuple(own), part, inner), leaves))
            return ContainerT("zipped", tuple(made), (named or (list if sequence == "list" else tuple),))
        case Structure(InstanceV(cls, names), parts) if parts:
            left = list(value.columns)
            maker = values.list_boxed(s, cls, names, parts, value.columns)
            varying = [part for name, part in zip(names, parts, strict=True) if name not in dict(maker.fixed)]
            lists = [
                ListValue.grown(value.length, tuple(left.pop(0) for _ in types_of(part)), part) for part in varying
            ]
            return ContainerT("zipped", tuple(_list_recipe(s, one, leaves) for one in lists), (maker,))
        case Structure(CharV()):
            return ContainerT(
                "zipped", (_list_recipe(s, ListValue.grown(value.length, value.columns, PYINT), leaves),), (chr,)
            )
        case Structure(TimeV(unit=unit), (Scalar() as number,)):
            numbers = _list_recipe(s, ListValue.grown(value.length, value.columns, number), leaves)
            return ContainerT("zipped", (numbers,), (OfUnit(unit),))
        case RowT():
            ends, held = nested_lists.compact(s, value)
            places = ContainerT("list_of", (recipe_of(s, ends, leaves),))
            return ContainerT("rows_of", (places, _list_recipe(s, held, leaves)))
        case Structure(TupleV(kind="list"), ()):
            return ContainerT("empty_lists", (recipe_of(s, value.length, leaves),))
        case None | Scalar():
            return recipe_of(s, array_lists.shown(s, value), leaves)
        case EitherT(kinds):
            tags, *payloads = value.columns
            lists = [
                ListValue.grown(value.length, (column,), kind) for kind, column in zip(kinds, payloads, strict=True)
            ]
            items = [_list_recipe(s, one, leaves) for one in lists]
            which = _list_recipe(s, ListValue.grown(value.length, (tags,), PYINT), leaves)
            return ContainerT("chosen", (which, *items), (False,) * len(items))
        case Structure(VariantV(), (_, *parts)):
            tags, *columns = value.columns
            items = []
            for part in parts:
                if isinstance(part, Fixed):
                    items.append(recipe_of(s, part.value, leaves))
                    continue
                some = tuple(columns.pop(0) for _ in types_of(part))
                items.append(_list_recipe(s, ListValue.grown(value.length, some, part), leaves))
            which = _list_recipe(s, ListValue.grown(value.length, (tags,), PYINT), leaves)
            return ContainerT("chosen", (which, *items), tuple(isinstance(part, Fixed) for part in parts))
    raise s.unsupported("a list of such items cannot be handed to Python code")


LISTS[ListValue] = _operand


# ---- results ---------------------------------------------------------------------------------------------------------


def is_assembled(value: Value) -> bool:
    """Is it a list that Python puts together when its leaves have been boxed?"""
    match value:
        case ListValue(form=Ragged()) | ListValue(form=Rows("array"), ownership=Ownership.OWN):
            return True
        case ListValue(form=Columns(RowT()), pools=(pool,)):
            return is_assembled(pool) and not pool.columns
        case ListValue(form=Columns(item)):
            return item is not None and not isinstance(item, Scalar)
    return False


def rows_of(s: Context, value: Value) -> tuple[ArrayV, Value] | None:
    """Where each list in a list begins, with the end of the last, and all their items; None for other values."""
    return nested_lists.compact(s, value) if grows(value) and isinstance(value.item, RowT) else None


def numbers_of(value: Value) -> tuple[ArrayV, bool] | None:
    """The array of a list of numbers, in lists or not, and whether they are NumPy's; None for other values."""
    match value:
        case ListValue(form=Rows(kind), columns=(array,)) if not kind or (kind == array.dtype and array.rank == 1):
            return array, bool(kind)
    return None


def check_result(s: Context, value: Value) -> None:
    """Refuse a list that the caller would see not to be the very one that stands elsewhere."""
    if is_rows(value):
        constant_tables.not_a_row(s, value)
        s.need_whole(value)
