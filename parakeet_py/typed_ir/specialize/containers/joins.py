"""Containers where paths meet: what two of different kinds become."""

from __future__ import annotations

from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps, nested_lists
from parakeet_py.typed_ir.specialize.context import Context
from parakeet_py.typed_ir.specialize.paths.templates import RowT, Structure, Template


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
