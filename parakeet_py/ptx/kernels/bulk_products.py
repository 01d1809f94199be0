"""A `BulkProduct` in LLVM IR: boxes of both matrices come by bulk copies (TMA), and groups of four warps multiply them.

The last warp of a block only copies. It has a ring of slices of shared memory, 128 x 64 of each matrix. For each slice
there are two barriers: *full* ends a phase when all bytes of a slice have come, *free* when all other warps are done
with it. Their parities change from one round through the ring to the next, so a barrier is made once.

A box has lines of 128 bytes, which the copy permutes as `wgmma` looks for them: a matrix that lies along the shared
axis is one box of 128 lines, 64 deep; one that lies along the other axis is two, of 64 lines along the shared axis
each. What is outside of a matrix comes as zeros. Tensor maps are arguments: where a matrix lies, in which lines, and
the box. Of a batch they have the axes of all matrices, and a box is of one of them.

While one slice is multiplied, the product of the one before it may not have ended: a warp waits for that, gives the
slice back and goes on. All of this is one piece of PTX for each side, as LLVM knows neither barriers nor products that
go on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import itemsize
from parakeet_py.imp import ir
from parakeet_py.imp.writer import array_type
from parakeet_py.llvm.codegen.builder import FunctionText
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.ptx.kernels.atomics import call
from parakeet_py.ptx.kernels.tensor_core_cost import GROUP, by_boxes, by_slices
from parakeet_py.ptx.outline import Kernel

SIDE, DEPTH = 128, 64  # of a slice of either matrix
STAGES = 3
WARPS = 8  # that multiply; one more copies
LINE = 128  # bytes of a line of a box
_MATRIX = SIDE * LINE  # bytes of a slice of one matrix
_SLICE = 2 * _MATRIX
_ALIGN = 1024  # where bits of addresses say how pieces are permuted
SHARED = _ALIGN + STAGES * (_SLICE + 16)
_LARGEST_STRIDE, _LARGEST_EXTENT = 1 << 40, 1 << 32
_TILE = ir.WarpTile(4, 4, 32)  # what groups multiply of slices that threads copy


@record
class TensorOf:
    """A tensor map that a kernel takes: of which parameter, and the box.

    Attributes
    ----------
    order : the axes of the array, from that of neighbours in memory on, as the map has them
    box : in the same order
    deep : the axis that is summed over
    """

    place: int
    order: tuple[int, ...]
    box: tuple[int, ...]
    deep: int


def product_of(kernel: Kernel) -> ir.BulkProduct | None:
    """The product of boxes in a kernel."""
    return next((one for one in ir.walk(kernel.function.body) if isinstance(one, ir.BulkProduct)), None)


def tensors_of(kernel: Kernel) -> tuple[TensorOf, ...]:
    """The tensor maps of a kernel, if it is compiled for bulk copies; none if it cannot be."""
    product = product_of(kernel)
    if product is None:
        return ()
    factors = product.left, product.right
    return tuple(TensorOf(kernel.params.index(one.array), _order(one), _box(one), one.deep) for one in factors)


def _order(factor: ir.BoxFactor) -> tuple[int, ...]:
    kind = array_type(factor.array)
    order = tuple(range(kind.rank))
    return order if kind.layout == "F" else order[::-1]


def _along(factor: ir.BoxFactor) -> bool:
    """Whether neighbours along the shared axis are neighbours in memory."""
    return _order(factor)[0] == factor.deep


def _box(factor: ir.BoxFactor) -> tuple[int, ...]:
    """One matrix of a batch."""
    sides = {factor.deep: DEPTH, factor.other: SIDE if _along(factor) else LINE // 2}
    return tuple(sides.get(axis, 1) for axis in _order(factor))


def has_boxes(architecture: str) -> bool:
    return architecture == "sm_90a"


def is_quicker(tensors: Sequence[TensorOf], args: Sequence[Any]) -> bool:
    """Whether matrices lie so that boxes of them can be copied, and that is estimated to take less time.

    `args` are those of the kernel, as they lie on a device.
    """
    for one in tensors:
        array = args[one.place]
        fast, *slow = one.order
        reach = array.shape[fast] * itemsize(array.dtype)
        if array.address % 16 or not all(0 < extent <= _LARGEST_EXTENT for extent in array.shape):
            return False
        for axis in slow:
            stride = array.strides[axis]
            if stride % 16 or not reach <= stride < _LARGEST_STRIDE:
                return False
            reach = stride * array.shape[axis]
    depth = args[tensors[0].place].shape[tensors[0].deep]
    return by_boxes(depth, DEPTH, _TILE, WARPS) < by_slices(depth, _TILE, WARPS, 2 * WARPS // GROUP)


# ---- code ------------------------------------------------------------------------------------------------------------


def parameters(kernel: Kernel) -> Iterator[str]:
    """The parameters that are tensor maps, in LLVM IR."""
    for number, _ in enumerate(tensors_of(kernel)):
        yield f'ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %tensor{number}'


def bulk_product(scope: Scope, host: HostInfo, product: ir.BulkProduct, thread: str) -> None:
    """Print a product; `thread` is the number of the thread in its block, an i32."""
    assert has_boxes(host.cpu)
    f = scope.f
    name = f"@{scope.unit.function.name}_slices"
    f.module.functions.append(f"{name} = external addrspace(3) global [0 x i8], align {_ALIGN}")
    begin = f.value(f"ptrtoint ptr addrspace(3) {name} to i32")
    begin = f.value(f"and i32 {f.value(f'add i32 {begin}, {_ALIGN - 1}')}, {-_ALIGN}")
    warp = f.value(f"lshr i32 {thread}, 5")
    rounds = f.value(f"trunc i64 {scope.scalar(product.slices)} to i32")
    first = f.value(f"icmp eq i32 {thread}, 0")
    _asm(f, "void", _MAKE, "r,b,~{memory}", f"i32 {begin}, i1 {first}")
    barrier = f.module.declare("void", "llvm.nvvm.barrier0", "", "convergent nounwind")
    f.effect(f"call void {barrier}()")
    copies, multiplies = f.label("copies"), f.label("multiplies")
    f.branch_if(f.value(f"icmp eq i32 {warp}, {WARPS}"), copies, multiplies)
    f.begin(copies)
    _copies(scope, product, begin, rounds, thread)
    f.effect("ret void")
    f.begin(multiplies)
    _multiplies(scope, product, begin, rounds, thread, warp)


def _asm(f: FunctionText, kind: str, lines: Sequence[str], constraints: str, given: str) -> str:
    """A piece of PTX that is there once: it has labels."""
    text = r"\0A\09".join(lines)
    code = f'call {kind} asm sideeffect "{text}", "{constraints}"({given}) convergent noduplicate'
    if kind == "void":
        f.effect(code)
        return ""
    return call(f, code)


_BARRIERS = STAGES * _SLICE
_MAKE = [
    "{ .reg .b32 place; add.u32 place, $0, " + f"{_BARRIERS};",
    *(f"@$1 mbarrier.init.shared::cta.b64 [place+{8 * stage}], 1;" for stage in range(STAGES)),
    *(f"@$1 mbarrier.init.shared::cta.b64 [place+{8 * (STAGES + stage)}], {WARPS};" for stage in range(STAGES)),
    "@$1 fence.mbarrier_init.release.cluster;",
    "@$1 fence.proxy.async; }",
]
# to the next slice of the ring
_ADVANCE = [
    "add.u32 stage, stage, 1;",
    f"setp.eq.u32 last, stage, {STAGES};",
    "@last mov.u32 stage, 0;",
    "@last xor.b32 parity, parity, 1;",
    "sub.u32 left, left, 1;",
    "setp.ne.u32 more, left, 0;",
]
_REGISTERS = ".reg .pred done, last, more, some; .reg .b32 stage, parity, left, full, free, place, k;"


def _copies(scope: Scope, product: ir.BulkProduct, begin: str, rounds: str, thread: str) -> None:
    """What the first lane of the last warp does: it waits for a slice to be free, and has it filled."""
    f = scope.f
    lines = []
    given = [f"i32 {begin}", f"i32 {rounds}", f"i32 {thread}", "ptr %tensor0", "ptr %tensor1"]
    for number, factor in enumerate((product.left, product.right)):
        places = {factor.deep: "k"}
        for axis in _order(factor):
            if axis != factor.deep:
                places[axis] = f"${len(given)}"
                given.append(f"i32 {f.value(f'trunc i64 {scope.scalar(factor.at[axis])} to i32')}")
        copy = f"cp.async.bulk.tensor.{len(places)}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        for half in range(1 if _along(factor) else 2):
            if half:
                lines.append(f"add.u32 half, {places[factor.other]}, {LINE // 2};")
                places[factor.other] = "half"
            at = ", ".join(places[axis] for axis in _order(factor))
            target = number * _MATRIX + half * _MATRIX // 2
            lines.append(f"{copy} [place+{target}], [${3 + number}, {{{at}}}], [full];")
    text = [
        f"{{ {_REGISTERS} .reg .b32 half;",
        "and.b32 k, $2, 31; setp.ne.u32 some, k, 0; @some bra COPIES_END;",
        "mov.u32 stage, 0; mov.u32 parity, 1; mov.u32 left, $1; mov.u32 k, 0;",
        "COPIES_NEXT:",
        f"mad.lo.u32 full, stage, 8, $0; add.u32 full, full, {_BARRIERS}; add.u32 free, full, {8 * STAGES};",
        "COPIES_WAIT:",
        "mbarrier.try_wait.parity.shared::cta.b64 done, [free], parity;",
        "@!done bra COPIES_WAIT;",
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {_SLICE};",
        f"mad.lo.u32 place, stage, {_SLICE}, $0;",
        *lines,
        f"add.u32 k, k, {DEPTH};",
        *_ADVANCE,
        "@more bra COPIES_NEXT;",
        "COPIES_END: }",
    ]
    constraints = ",".join([*("l" if one.startswith("ptr") else "r" for one in given), "~{memory}"])
    _asm(f, "void", text, constraints, ", ".join(given))


def _multiplies(scope: Scope, product: ir.BulkProduct, begin: str, rounds: str, thread: str, warp: str) -> None:
    """What the other warps do: they multiply what has come, and say when a slice is free."""
    f, count = scope.f, len(product.sums)
    sums = ", ".join(f"${number}" for number in range(count))
    left, right = _along(product.left), _along(product.right)
    group = f.value(f"shl i32 {f.value(f'lshr i32 {warp}, 2')}, {(64 * LINE).bit_length() - 1}")  # 64 rows each
    base, many, lane, own = (f"${count + number}" for number in range(4))
    turned = f"{int(not left)}, {int(not right)}"
    products = []
    for step in range(DEPTH // 16):
        for name, along in (("a", left), ("b", right)):
            products.append(f"add.u64 {name}, start_{name}, {step * _step(along) // 16};")
        shape = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
        products.append(f"{shape} {{{sums}}}, a, b, 1, 1, 1, {turned};")
    text = [
        f"{{ {_REGISTERS} .reg .b32 before; .reg .b64 a, b, start_a, start_b;",
        f"and.b32 k, {lane}, 31; setp.eq.u32 some, k, 0;",
        f"mov.u32 stage, 0; mov.u32 parity, 0; mov.u32 left, {many}; mov.u32 before, 0;",
        "MULTIPLY_NEXT:",
        f"mad.lo.u32 full, stage, 8, {base}; add.u32 full, full, {_BARRIERS}; add.u32 free, full, {8 * STAGES};",
        "MULTIPLY_WAIT:",
        "mbarrier.try_wait.parity.shared::cta.b64 done, [full], parity;",
        "@!done bra MULTIPLY_WAIT;",
        f"mad.lo.u32 place, stage, {_SLICE}, {base};",
        f"add.u32 k, place, {own}; {_described('start_a', left)}",
        f"add.u32 k, place, {_MATRIX}; {_described('start_b', right)}",
        "wgmma.fence.sync.aligned;",
        *products,
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 1;",
        "setp.ne.and.u32 done, before, 0, some;",
        "@done mbarrier.arrive.shared::cta.b64 _, [before];",
        "mov.u32 before, free;",
        *_ADVANCE,
        "@more bra MULTIPLY_NEXT;",
        "wgmma.wait_group.sync.aligned 0; }",
    ]
    constraints = ["=f"] * count + ["r"] * 4 + [str(number) for number in range(count)] + ["~{memory}"]
    kind = f"{{{', '.join(['float'] * count)}}}"
    given = [f"i32 {begin}", f"i32 {rounds}", f"i32 {thread}", f"i32 {group}"]
    for cell in product.sums:
        value = scope.read(cell)
        given.append(f"float {value}")
    found = _asm(f, kind, text, ",".join(constraints), ", ".join(given))
    for number, cell in enumerate(product.sums):
        scope.write(cell, f.value(f"extractvalue {kind} {found}, {number}"))


def _described(name: str, along: bool) -> str:
    """The descriptor of what begins at `k`: its address, and how it lies there."""
    place = f"cvt.u64.u32 {name}, k; and.b64 {name}, {name}, 0x3ffff; shr.u64 {name}, {name}, 4;"
    return f"{place} or.b64 {name}, {name}, {hex(_layout(along))};"


def _layout(along: bool) -> int:
    """How lines of 128 bytes lie: from 64 places along the other axis to the next, from eight lines to the next, in
    units of 16 bytes, and that three bits permute them (PTX manual, "Matrix Descriptor Format")."""
    leading = 1 if along else _MATRIX // 2 // 16
    return leading << 16 | (8 * LINE // 16) << 32 | 1 << 62


def _step(along: bool) -> int:
    """Bytes to the next 16 elements along the shared axis."""
    return 16 * 2 if along else 16 * LINE
