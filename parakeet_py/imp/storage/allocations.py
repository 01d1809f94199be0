"""What a call allocates, for `explain`: the memory of temporaries and of results.

Every `NewArray` is listed with its size as an expression of the sizes the function was given, in the caller's names.
With the arguments at hand it is also computed: sizes are integer arithmetic on extents and scalars, which `report`
evaluates as it comes by. What depends on a value that only running would show (a loop's index, the number of selected
elements) has no number, and its expression names the variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import INT64, Array, Scalar, itemsize
from parakeet_py.imp.ir import Declare, Function, Let, NewArray, Read, Write, walk
from parakeet_py.imp.storage.reference_counts import Owner
from parakeet_py.typed_ir.ir import AnyView, Cast, Const, Dim, Operand, Prim, Var
from parakeet_py.typed_ir.print import format_operand
from parakeet_py.typed_ir.semantics import evaluate, scalar

FEW = 3  # arrays on the stack that are named one by one
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//"}


@record
class Allocation:
    """One place where memory is made.

    Attributes
    ----------
    name : the array's name in the IR
    bytes : its size in bytes, as an expression of the function's arguments
    space : heap or stack
    size : its size in bytes in this call; None if that is not known beforehand
    """

    name: str
    bytes: str
    space: str
    size: int | None = None

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.name}: {self.bytes} bytes on the {self.space}"
        if self.bytes == str(self.size):
            return f"{self.name}: {self.size:,} bytes on the {self.space}"
        return f"{self.name}: {self.size:,} bytes on the {self.space} ({self.bytes})"


def in_short(allocations: Sequence[Allocation]) -> list[str]:
    """Allocations in words; those on the stack together, if they are many."""
    heap = [one for one in allocations if one.space != "stack"]
    stack = [one for one in allocations if one.space == "stack"]
    if len(stack) <= FEW:
        return list(map(str, allocations))
    sizes = [one.size for one in stack]
    total = "" if None in sizes else f"{sum(size or 0 for size in sizes):,} bytes in "
    return [*map(str, heap), f"{total}{len(stack)} arrays on the stack"]


@record
class StorageReport:
    """The memory of one call: temporaries and results."""

    temporaries: tuple[Allocation, ...]
    results: tuple[Allocation, ...]


def report(function: Function, names: Sequence[str] = (), values: Sequence[object] = ()) -> StorageReport:
    """What a call of the function allocates; `names` and `values` are those of its parameters, if they are known."""
    sizes = Sizes(function.params, names, values)
    handed_out = _sources(function)
    temporaries: list[Allocation] = []
    results: list[Allocation] = []
    for statement in walk(function.body):
        if not isinstance(statement, Let):
            continue
        out, rhs = statement.out, statement.rhs
        if isinstance(rhs, NewArray):
            assert isinstance(out.type, Array)
            made = Allocation(
                repr(out),
                sizes.product_text(rhs.extents, itemsize(out.type.dtype)),
                rhs.space,
                sizes.product(rhs.extents, itemsize(out.type.dtype)),
            )
            (results if out in handed_out else temporaries).append(made)
        else:
            sizes.see(out, rhs)
    return StorageReport(tuple(temporaries), tuple(results))


class Sizes:
    """What is known of integers: how they are computed from the arguments, and what they are."""

    def __init__(self, params: Sequence[Var], names: Sequence[str], values: Sequence[object]) -> None:
        self.names: dict[Var, str] = dict(zip(params, names, strict=False))
        self.texts: dict[Var, str] = dict(self.names)
        self.shapes: dict[Var, tuple[int, ...]] = {}
        self.numbers: dict[Var, np.generic] = {}
        for param, value in zip(params, values, strict=False):
            if isinstance(value, np.ndarray):
                self.shapes[param] = value.shape
            elif param.type.__class__ is Scalar and isinstance(value, int | np.integer):
                self.numbers[param] = np.int64(value)

    def see(self, out: Var, rhs: object) -> None:
        match rhs:
            case Dim(array, axis):
                self.texts[out] = f"{self.names.get(array, array.name)}.shape[{axis}]"
                if array in self.shapes:
                    self.numbers[out] = np.int64(self.shapes[array][axis])
            case Cast(Var() as value) if out.type == INT64 and value in self.texts:
                self.texts[out] = self.texts[value]
                if value in self.numbers:
                    self.numbers[out] = self.numbers[value]
            case Prim(name, args):
                texts = [self.text(arg) for arg in args]
                text = None if None in texts else _text_of(name, texts)
                if text is not None:
                    self.texts[out] = text
                known = [self.number(arg) for arg in args]
                if None not in known:
                    with suppress(ArithmeticError):  # the call raises it
                        self.numbers[out] = evaluate(name, known)

    def text(self, operand: Operand) -> str | None:
        """The operand in terms of the arguments; None if it is not computed from them alone."""
        if isinstance(operand, Var):
            return self.texts.get(operand)
        return format_operand(operand).split(":")[0]

    def number(self, operand: Operand) -> np.generic | None:
        if isinstance(operand, Const):
            value: np.generic = scalar(operand.value, operand.type.dtype)
            return value
        return self.numbers.get(operand)

    def product_text(self, extents: Sequence[Operand], size: int) -> str:
        texts, number = [self.text(extent) for extent in extents], self.product(extents, size)
        if number is not None and (None in texts or all(isinstance(extent, Const) for extent in extents)):
            return str(number)
        factors = [repr(extent) if text is None else text for extent, text in zip(extents, texts, strict=True)]
        return " * ".join([factor for factor in factors if factor != "1"] + [str(size)])

    def product(self, extents: Sequence[Operand], size: int) -> int | None:
        for extent in extents:
            number = self.number(extent)
            if number is None:
                return None
            size *= int(number)
        return size


def _text_of(name: str, args: Sequence[str | None]) -> str | None:
    name, (left, right) = name.removesuffix("_checked"), (args[0], args[-1])
    if name == "mul" and "1" in (left, right):
        return right if left == "1" else left
    if name in _SYMBOLS:
        return f"({left} {_SYMBOLS[name]} {right})"
    return f"{name[:3]}({left}, {right})" if name in ("maximum", "minimum") else None


def _sources(function: Function) -> set[Var]:
    """The made arrays that the results may be."""
    flows: dict[Owner, set[Owner]] = {}
    for statement in walk(function.body):
        match statement:
            case Let(out, AnyView(source) | Read(source)):
                flows.setdefault(out, set()).add(source)
            case Declare(cell, Var() as value) | Write(cell, Var() as value):
                flows.setdefault(cell, set()).add(value)
    found: set[Owner] = set()
    waiting: list[Owner] = [result for result in function.results if isinstance(result, Var)]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += flows.get(place, ())
    return {place for place in found if isinstance(place, Var)}
