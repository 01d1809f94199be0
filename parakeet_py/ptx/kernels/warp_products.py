"""A `WarpProduct` in LLVM IR: matrices from shared memory, spread over the lanes of a warp, multiplied by tensor cores.

Fragments are those of `mma.sync` in the PTX manual. Of float16, four 8 x 8 matrices at a time are read by `ldmatrix`,
for which every lane has the address of one of their 32 rows; matrices that lie along the other axis are turned by it.
Of float32, which is rounded to TF32 here, and of float64 every lane reads its elements.

GPUs before sm_80 have tensor cores for float16 that multiply half as deep, and none for other floats: there each lane
computes the same elements one after the other. From sm_90 on there are instructions four times as large for float64. On
sm_90a groups of four warps multiply large tiles of float16 by `wgmma`, which reads both factors from shared memory, by
descriptors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from parakeet_py.base.types import itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, SUFFIX
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.ptx.kernels import slices
from parakeet_py.ptx.kernels.atomics import call
from parakeet_py.ptx.kernels.tensor_core_cost import GROUP, by_groups, by_warps
from parakeet_py.typed_ir.ir import dtype_of

GROUPED = ir.WarpTile(4, 4, 32)  # of float16: what groups of four warps multiply
_WARPS = 8  # of a block; one alone on its multiprocessor is the worst for groups
_LINES = 8  # that `wgmma` takes for one piece of a matrix
_FOUR = "{i32, i32, i32, i32}"


def warp_product(scope: Scope, lane: str, product: ir.WarpProduct) -> None:
    """Print a product; `lane` is the number of the lane, an i64."""
    tile = product.tile
    if multiplies_in_groups(scope.f.module.host, product):
        _group_product(scope, product)
        return
    architecture, dtype = slices.architecture(scope.f.module.host), dtype_of(product.left.array)
    sums = [_value(scope, cell) for cell in product.sums]
    warp: _Warp
    if dtype == "float16":
        warp = _Halves(scope, lane, product, architecture >= 80)
    elif architecture < 80:
        warp = _OneByOne(scope, lane, product)
    elif dtype == "float32":
        warp = _Singles(scope, lane, product)
    else:
        warp = _Doubles(scope, lane, product, architecture >= 90)
    for start in range(0, tile.depth, warp.step):
        left = [warp.left(row, start) for row in range(tile.rows)]
        right = warp.right(start)
        for row in range(tile.rows):
            for column in range(tile.columns):
                place = 4 * (row * tile.columns + column)
                sums[place : place + 4] = warp.multiply(left[row], right[column], sums[place : place + 4])
    for cell, value in zip(product.sums, sums, strict=True):
        scope.write(cell, value)


def uses_tensor_cores(host: HostInfo, statement: ir.Statement) -> bool:
    """Whether a statement is a product by tensor cores, on this GPU."""
    if not isinstance(statement, ir.WarpProduct):
        return False
    return slices.architecture(host) >= 80 or dtype_of(statement.left.array) == "float16"


def multiplies_in_groups(host: HostInfo, statement: ir.Statement) -> bool:
    """Whether a statement is a product of four warps together, on this GPU, as that is estimated to take less time."""
    if not isinstance(statement, ir.WarpProduct) or host.cpu != "sm_90a":
        return False
    tile = statement.tile
    if tile != GROUPED or dtype_of(statement.left.array) != "float16":
        return False
    return by_groups(tile, _WARPS, _WARPS // GROUP) < by_warps(tile, _WARPS)


def _group_product(scope: Scope, product: ir.WarpProduct) -> None:
    """`wgmma` of 64 x 128, twice 16 deep, from slices in shared memory, and a wait for it: so no register of a sum is
    looked at while tensor cores add to it. LLVM has no name for it."""
    f, count = scope.f, len(product.sums)
    descriptors = []
    for factor in (product.left, product.right):
        array, along = scope.array(factor.array), factor.along
        stage, first, second = (scope.scalar(index) for index in factor.at)
        line = (first if along else second) if factor is product.left else "0"
        halves = f.binary("shl", "i64", stage, "12")  # elements of a slice
        place = f.add(halves, f.binary("shl", "i64", line, "5"))
        start = f.value(f"ptrtoint {slices.SHARED} {array['data']} to i64")
        address = f.add(start, f.binary("shl", "i64", place, "1"))
        low = f.binary("lshr", "i64", f.binary("and", "i64", address, str((1 << 18) - 1)), "4")
        descriptors += [f.add(low, str(_layout(along) + step * _step(along) // 16)) for step in range(2)]
    left, right = descriptors[:2], descriptors[2:]
    sums = ", ".join(f"${number}" for number in range(count))
    turned = ", ".join(str(int(not factor.along)) for factor in (product.left, product.right))
    lines = ["wgmma.fence.sync.aligned;"]
    for step in range(2):
        factors = f"${count + step}, ${count + 2 + step}, ${count + 4}"
        lines.append(f"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{sums}}}, {factors}, 1, 1, {turned};")
    lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    text = " ".join(lines)
    constraints = ",".join(
        ["=f"] * count + ["l"] * 4 + ["b"] + [str(number) for number in range(count)] + ["~{memory}"]
    )
    kind = f"{{{', '.join(['float'] * count)}}}"
    given = [f"i64 {one}" for one in (*left, *right)] + ["i1 true"]
    given += [f"float {_value(scope, cell)}" for cell in product.sums]
    found = call(f, f'call {kind} asm sideeffect "{text}", "{constraints}"({", ".join(given)}) convergent')
    for number, cell in enumerate(product.sums):
        scope.write(cell, f.value(f"extractvalue {kind} {found}, {number}"))


def _layout(along: bool) -> int:
    """The part of a matrix descriptor that says how pieces lie: from 64 along the other axis to the next, from eight
    lines to the next, in units of 16 bytes, and how lines are permuted (PTX manual, "Matrix Descriptor Format")."""
    if along:  # eight lines of 64 bytes each; permuted by two bits
        return 1 << 16 | (_LINES * 64 // 16) << 32 | 2 << 62
    return (slices.GROUP_SLICE[1] * 128 // 16) << 16 | (_LINES * 128 // 16) << 32 | 1 << 62


def _step(along: bool) -> int:
    """Bytes to the next 16 elements along the shared axis."""
    return 16 * 2 if along else 2 * _LINES * 128


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
        stage, first, second = (scope.scalar(index) for index in factor.at)
        more = (other, deep) if factor.along else (deep, other)
        line, element = (f.add(one, offset) for one, offset in zip((first, second), more, strict=True))
        return slices.address(scope, scope.array(factor.array), stage, line, element)

    def unpacked(self, kind: str, found: str, count: int = 4) -> list[str]:
        return [self.f.value(f"extractvalue {kind} {found}, {number}") for number in range(count)]

    def mma(self, name: str, given: str, sums: Sequence[str]) -> list[str]:
        """A product by tensor cores; `given` are the factors, with their types."""
        kinds = [self.kind] * len(sums)
        types = [argument.rsplit(" ", 1)[0] for argument in given.split(", ")]
        result = f"{{{', '.join(kinds)}}}"
        function = self.f.module.declare(result, name, ", ".join([*types, *kinds]), "")
        added = ", ".join(f"{self.kind} {value}" for value in sums)
        return self.unpacked(result, self.f.value(f"call {result} {function}({given}, {added})"), len(sums))

    @property
    def kind(self) -> str:
        """The type of sums, as LLVM calls it."""
        return "double" if dtype_of(self.product.left.array) == "float64" else "float"


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


class _Elements(_Warp):
    """Floats of 32 and 64 bits, of which lanes read one at a time; every fourth along the shared axis."""

    step = 8

    def element(self, factor: ir.WarpFactor, deep: str, other: str) -> str:
        place = self.f.pointer(self.address(factor, deep, other))
        dtype = dtype_of(factor.array)
        return call(self.f, f"load {LLVM_TYPE[dtype]}, {place}, align {itemsize(dtype)}")

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


class _Singles(_Elements):
    """float32, which is rounded to TF32: to nearest, halves away from zero."""

    def element(self, factor: ir.WarpFactor, deep: str, other: str) -> str:
        rounded = self.f.module.declare("i32", "llvm.nvvm.f2tf32.rna", "float", "")
        return self.f.value(f"call i32 {rounded}(float {super().element(factor, deep, other)})")

    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        words = ", ".join(f"i32 {word}" for word in (*left, *right))
        return self.mma("llvm.nvvm.mma.m16n8k8.row.col.tf32", words, sums)


class _Doubles(_Elements):
    """float64. Products are added one after the other along the shared axis, each rounded as a fused operation is, so
    that results are those of threads without tensor cores."""

    def __init__(self, scope: Scope, lane: str, product: ir.WarpProduct, large: bool) -> None:
        super().__init__(scope, lane, product)
        self.large = large

    def multiply(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        if self.large:
            return self._at_once(left, right, sums)
        found: list[str] = []
        for row in (0, 1):
            own = sums[2 * row : 2 * row + 2]
            for half in (0, 1):
                given = f"double {left[2 * half + row]}, double {right[half]}"
                own = self.mma("llvm.nvvm.mma.m8n8k4.row.col.f64", given, own)
            found += own
        return found

    def _at_once(self, left: Sequence[str], right: Sequence[str], sums: Sequence[str]) -> list[str]:
        """LLVM has no name for this one."""
        places = [", ".join(f"${number}" for number in group) for group in ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9))]
        text = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 " + ", ".join(f"{{{group}}}" for group in places)
        text += ", {$10, $11, $12, $13};"
        constraints = ",".join(["=d"] * 4 + ["d"] * 10)
        kind = "{double, double, double, double}"
        given = ", ".join(f"double {value}" for value in (*left, *right, *sums))
        found = call(self.f, f'call {kind} asm sideeffect "{text}", "{constraints}"({given}) convergent')
        return self.unpacked(kind, found)


class _OneByOne(_Elements):
    """Without tensor cores: the elements of two rows and two columns are multiplied one by one."""

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
        kind = self.kind
        name = f"llvm.fma.{SUFFIX[kind]}"
        fma = self.f.module.declare(kind, name, f"{kind}, {kind}, {kind}", "")
        return [
            self.f.value(f"call {kind} {fma}({kind} {left[place // 2]}, {kind} {right[place % 2]}, {kind} {value})")
            for place, value in enumerate(sums)
        ]
