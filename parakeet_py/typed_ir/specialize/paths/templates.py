"""Templates: what values of one name have in common where paths meet; `join` finds the least that two values fit."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.values import Value


@record
class ArrayT:
    """An array's template: extents stay known where both sides agree (None: read from the descriptor)."""

    type: Array
    extents: tuple[ir.Operand | None, ...]
    roots: frozenset[int]
    readonly: bool
    nonunit: tuple[bool, ...]
    order: tuple[int, ...]


@record
class Fixed:
    """The same compile-time value on all paths."""

    value: Value


@record
class Structure:
    """A container whose parts have templates of their own."""

    like: Value
    parts: tuple[Template, ...]


@record
class EitherT:
    """A scalar that may have several types, the widest last (see `tagged_scalars`)."""

    kinds: tuple[Scalar, ...]
    rare: bool = field(default=False, compare=False)


@record
class RowT:
    """A list of any length as an item of another list: three numbers, and items in a pool (see `rows`)."""

    item: Template


Template: TypeAlias = (
    Scalar | EitherT | ArrayT | Fixed | Structure | RowT | None
)  # None: no path has a value (all have raised)
