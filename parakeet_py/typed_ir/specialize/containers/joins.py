"""Containers where paths meet: what two of them become, and a value as such a container."""

from __future__ import annotations

from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps, nested_lists, ragged_arrays
from parakeet_py.typed_ir.specialize.context import Context
from parakeet_py.typed_ir.specialize.paths.templates import RowT, Structure, Template
from parakeet_py.typed_ir.specialize.values import ArraysV, GrowV, MapV, Value


def joined(s: Context, left: Template, right: Template) -> Template | None:
    """The template of two containers of different kinds; None if there is none."""
    if isinstance(left, RowT) or isinstance(right, RowT):
        return nested_lists.joined(s, left, right)
    if not isinstance(left, Structure) or not isinstance(right, Structure):
        return None
    a, b = left.like, right.like
    if dynamic_lists.has_item_type(a) and dynamic_lists.has_item_type(b):
        return dynamic_lists.grown_template(s, left, right)
    if nested_lists.is_table_of_rows(a, b) or nested_lists.is_table_of_rows(b, a):
        return dynamic_lists.grown_template(s, left, right)
    if hash_maps.is_map(a) and hash_maps.is_map(b):
        return hash_maps.joined(s, left, right)
    return None


def as_container(s: Context, value: Value, container: MapV | GrowV | ArraysV) -> Value:
    """A value as a container of this kind, if it is not one already."""
    match container:
        case MapV(GrowV(item=item)) if hash_maps.is_map(value):
            return hash_maps.as_map(s, value, item)
        case GrowV(item=item) if dynamic_lists.is_list(value):
            return dynamic_lists.as_grown(s, value, item)
        case ArraysV() if dynamic_lists.is_list(value):
            return ragged_arrays.as_arrays(s, value, container)
    return value
