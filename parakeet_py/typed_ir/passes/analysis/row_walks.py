"""Which way accesses move through memory in a loop around operators: along rows with the loop, or across them.

In `for k: map i: a[i, k] := a[i, k - 1]`, with rows that lie along memory, a round of the loop touches one element of
every row, and the next round the elements beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Var
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear


@record
class Access:
    """A load or store of one element, the forms of its indices, and the indices of the operator that it stands in."""

    array: Var
    forms: tuple[Linear, ...]
    indices: tuple[Var, ...]


def accesses(body: Block, indices: tuple[Var, ...], forms: Forms) -> Iterable[Access]:
    """The loads and stores of the body of an operator."""
    for let in ir.walk(body):
        if isinstance(let.op, ir.Load | ir.Store):
            yield Access(let.op.array, tuple([forms.of(index) for index in let.op.indices]), indices)


def along_rows(index: Var, found: Iterable[Access]) -> bool:
    """Do most accesses move along memory with a loop's index, and jump with the last index of their operators?"""
    along = across = 0
    for access in found:
        kind = access.array.type
        assert isinstance(kind, Array)
        if kind.layout not in ("C", "F") or not access.forms:
            continue
        fast = access.forms[-1 if kind.layout == "C" else 0]
        if any(fast.coefficient(one) for one in access.indices):
            across += 1
        elif fast.coefficient(index) and _depends(access.indices[-1:], access.forms):
            along += 1
    return along > across


def _depends(indices: Sequence[Var], forms: Iterable[Linear]) -> bool:
    return any(form.coefficient(index) for form in forms for index in indices)
