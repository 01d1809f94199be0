"""A `WarpProduct` in LLVM IR: matrices from shared memory, spread over the lanes of a warp, multiplied by tensor cores.

Fragments are those of `mma.sync` in the PTX manual. Of float16, four 8 x 8 matrices at a time are read by `ldmatrix`,
for which every lane has the address of one of their 32 rows; matrices that lie along the other axis are turned by it.
Of float32, which counts as TF32 here, every lane reads its elements.

GPUs before sm_80 have tensor cores for float16 that multiply half as deep, and none for TF32: there each lane computes
the same elements one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.ptx.kernels.atomics import call
from parakeet_py.typed_ir.ir import dtype_of

_FOUR = "{i32, i32, i32, i32}"
_SUMS = "{float, float, float, float}"


def warp_product(scope: Scope, lane: str, product: ir.WarpProduct) -> None:
    """Print a product; `lane` is the number of the lane, an i64."""
    f, tile = scope.f, product.tile
    architecture = int(f.module.host.cpu.removeprefix("sm_"))
    sums = [_value(scope, cell) for cell in product.sums]
    if dtype_of(product.left.array) == "float16":
        warp: _Warp = _Halves(scope, lane, product, architecture >= 80)
    elif architecture >= 80:
        warp = _Singles(scope, lane, product)
    else:
        warp = _OneByOne(scope, lane, product)
    for start in range(0, tile.depth, warp.step):
        left = [warp.left(row, start) for row in range(tile.rows)]
        right = warp.right(start)
        for row in range(tile.rows):
            for column in range(tile.columns):
                place = 4 * (row * tile.columns + column)
                sums[place : place + 4] = warp.multiply(left[row], right[column], sums[place : place + 4])
    for cell, value in zip(product.sums, sums, strict=True):
        scope.write(cell, value)


def _value(scope: Scope, cell: ir.Cell) -> str:
    value = scope.read(cell)
    assert isinstance(value, str)
    return value


class _Warp(ABC):
    """How fragments are read and multiplied; fragments are lists of registers."""

    step: int  # elements along the shared axis that are multiplied at once

    def __init__(self, scope: Scope, lane: str, product: ir.WarpProduct) -> None:
        self.scope, self.f, self.product = scope, scope.f, product
        self.lane = lane
        self.columns = product.tile.columns
        self.group = self.f.value(f"lshr i64 {lane}, 2")
        self.quad = self.f.value(f"and i64 {lane}, 3")

    @abstractmethod
    def left(self, row: int, start: int) -> list[str]: ...

    @abstractmethod
    def right(self, start: int) -> list[list[str]]: ...

    @abstractmethod
    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]: ...

    def address(self, factor: ir.WarpFactor, deep: str, other: str) -> str:
        """The address of an element, so far along the shared axis and along the other one from where the tile is."""
        f, scope = self.f, self.scope
        *leading, first, second = (scope.scalar(index) for index in factor.at)
        more = (other, deep) if factor.along else (deep, other)
        places = [f.add(one, offset) for one, offset in zip((first, second), more, strict=True)]
        return arrays.address(f, scope.array(factor.array), [*leading, *places])

    def unpacked(self, kind: str, found: str) -> list[str]:
        return [self.f.value(f"extractvalue {kind} {found}, {number}") for number in range(4)]

    def mma(self, name: str, given: str, sums: Sequence[str]) -> list[str]:
        """A product by tensor cores; `given` are the factors, with their types."""
        types = ", ".join(argument.rsplit(" ", 1)[0] for argument in given.split(", "))
        function = self.f.module.declare(_SUMS, name, f"{types}, float, float, float, float", "")
        added = ", ".join(f"float {value}" for value in sums)
        return self.unpacked(_SUMS, self.f.value(f"call {_SUMS} {function}({given}, {added})"))


class _Halves(_Warp):
    """float16: 16 deep by one instruction, or by two."""

    step = 16

    def __init__(self, scope: Scope, lane: str, product: ir.WarpProduct, deep: bool) -> None:
        super().__init__(scope, lane, product)
        f, self.deep = self.f, deep
        self.row = f.value(f"and i64 {lane}, 7")
        matrix = f.value(f"lshr i64 {lane}, 3")
        self.low = f.value(f"shl i64 {f.value(f'and i64 {matrix}, 1')}, 3")
        self.high = f.value(f"shl i64 {f.value(f'lshr i64 {matrix}, 1')}, 3")

    def left(self, row: int, start: int) -> list[str]:
        other = self.f.add(self.low, str(16 * row))
        return self.read(self.product.left, self.f.add(self.high, str(start)), other)

    def right(self, start: int) -> list[list[str]]:
        found = []
        for pair in range(self.columns // 2):
            other = self.f.add(self.high, str(16 * pair))
            four = self.read(self.product.right, self.f.add(self.low, str(start)), other)
            found += [four[:2], four[2:]]
        return found

    def read(self, factor: ir.WarpFactor, deep: str, other: str) -> list[str]:
        """Four matrices, of which this lane has one that begins there."""
        f = self.f
        if factor.along:
            other = f.add(other, self.row)
        else:
            deep = f.add(deep, self.row)
        place = f.pointer(self.address(factor, deep, other))
        turned = "" if factor.along else ".trans"
        kind = place.rsplit(" ", 1)[0]
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{turned}.b16.p3"
        found = call(f, f"call {_FOUR} {f.module.declare(_FOUR, name, kind, '')}({place})")
        return [f.value(f"bitcast i32 {word} to <2 x half>") for word in self.unpacked(_FOUR, found)]

    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        if self.deep:
            given = ", ".join(f"<2 x half> {word}" for word in (*left, *right))
            return self.mma("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", given, sums)
        for place in (0, 1):
            words = *left[2 * place : 2 * place + 2], right[place]
            given = ", ".join(f"<2 x half> {word}" for word in words)
            sums = self.mma("llvm.nvvm.mma.m16n8k8.row.col.f32.f32", given, sums)
        return [*sums]


class _Singles(_Warp):
    """float32 as TF32."""

    step = 8

    def element(self, factor: ir.WarpFactor, deep: str, other: str) -> str:
        place = self.f.pointer(self.address(factor, deep, other))
        return call(self.f, f"load float, {place}, align 4")

    def left(self, row: int, start: int) -> list[str]:
        f = self.f
        return [
            self.element(
                self.product.left,
                f.add(self.quad, str(start + 4 * (number // 2))),
                f.add(self.group, str(16 * row + 8 * (number % 2))),
            )
            for number in range(4)
        ]

    def right(self, start: int) -> list[list[str]]:
        f = self.f
        return [
            [
                self.element(
                    self.product.right, f.add(self.quad, str(start + 4 * half)), f.add(self.group, str(8 * column))
                )
                for half in range(2)
            ]
            for column in range(self.columns)
        ]

    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        words = [self.f.value(f"bitcast float {value} to i32") for value in (*left, *right)]
        return self.mma("llvm.nvvm.mma.m16n8k8.row.col.tf32", ", ".join(f"i32 {word}" for word in words), sums)


class _OneByOne(_Singles):
    """float32 without tensor cores: the elements of two rows and two columns are multiplied one by one."""

    step = 1

    def left(self, row: int, start: int) -> list[str]:
        f = self.f
        return [
            self.element(self.product.left, str(start), f.add(self.group, str(16 * row + 8 * number)))
            for number in range(2)
        ]

    def right(self, start: int) -> list[list[str]]:
        f = self.f
        first = f.value(f"shl i64 {self.quad}, 1")
        return [
            [
                self.element(self.product.right, str(start), f.add(first, str(8 * column + number)))
                for number in range(2)
            ]
            for column in range(self.columns)
        ]

    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        fma = self.f.module.declare("float", "llvm.fma.f32", "float, float, float", "")
        return [
            self.f.value(f"call float {fma}(float {left[place // 2]}, float {right[place % 2]}, float {value})")
            for place, value in enumerate(sums)
        ]
