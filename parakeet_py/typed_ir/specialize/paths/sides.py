"""Where the two sides of a branch meet: their values in the least template that fits those of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import ends_in_failure
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.compile_time_values import demand_flag
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import Template, template_of, types_of
from parakeet_py.typed_ir.specialize.values import ArrayV, NeverV, UnboundV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


class Side(NamedTuple):
    """One side of a branch: what has been written, its values, and the state of the builder at its end."""

    statements: list[ir.Let]
    values: list[Value]
    facts: dict[Any, Any]
    scope: Any

    def without(self, places: Sequence[int]) -> Side:
        """The side without the values at some places."""
        return self._replace(values=[value for place, value in enumerate(self.values) if place not in places])


def joined(s: Context, condition: ir.Operand, then: Side, orelse: Side) -> list[Value]:
    """Emit the `If` of two sides; its values."""
    b = s.builder
    sides = (then, orelse)
    left, right = then.values, orelse.values
    templates = [_template_of_both(s, condition, x, y) for x, y in zip(left, right, strict=True)]
    blocks = []
    for (statements, values, facts, scope), others in zip(sides, (right, left), strict=True):
        b.scopes.append(scope)  # the block is still open: casts for the join go to its end
        saved, b.equal = b.equal, facts
        leaves = [
            leaf
            for value, template, other in zip(values, templates, others, strict=True)
            for leaf in join.leaves_of(s, value, template, other)
        ]
        b.equal = saved
        b.scopes.pop()
        blocks.append(ir.Block(tuple(statements), tuple(leaves)))
    kinds = [kind for template in templates for kind in types_of(template)]
    outs = list(b.emit(ir.If(condition, blocks[0], blocks[1]), *kinds, name="phi"))
    for side, holds in ((then, False), (orelse, True)):
        if ends_in_failure(side.statements):
            s.learn(condition, holds)
    values = [join.value_of(s, template, outs) for template in templates]
    for value, both in zip(values, zip(left, right, strict=True), strict=True):
        for one in both:
            shared_containers.may_be(s, value, one)
    for position, (one, other) in enumerate(zip(left, right, strict=True)):
        for value, absent in ((one, other), (other, one)):
            if isinstance(absent, UnboundV | NeverV) and isinstance(value, ArrayV) and s.in_scope(value.var):
                extents = [
                    extent if s.in_scope(extent) else s.dim(value.var, axis)
                    for axis, extent in enumerate(value.extents)
                ]
                values[position] = replace(value, extents=tuple(extents))  # wherever there is a value, it is this array
    return same_objects(values, list(zip(map(object_of, left), map(object_of, right), strict=True)))


def _template_of_both(s: Context, condition: ir.Operand, left: Value, right: Value) -> Template:
    """What values of both sides fit. Where nothing does and a flag decides (`keepdims=flag`) it is asked for."""
    one, other = template_of(left, varying=False), template_of(right, varying=False)
    try:
        return join.join(s, one, other)
    except UnsupportedError:
        demand_flag(s, condition)
        return join.join_or_box(s, one, other)


def same_objects(values: list[Value], came: Sequence[tuple[object, ...]]) -> list[Value]:
    """Two names of one array on every path are two names of one array afterwards."""
    first: dict[tuple[object, ...], int] = {}
    for position, (value, key) in enumerate(zip(values, came, strict=True)):
        if isinstance(value, ArrayV) and None not in key:
            values[position] = values[first.setdefault(key, position)]
    return values


def object_of(value: Value) -> object:
    """What is equal for names of one array, or where both have none; None for other values."""
    return value if isinstance(value, ArrayV) else type(value) if isinstance(value, UnboundV | NeverV) else None
