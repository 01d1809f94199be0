"""Slices of matrices in shared memory, as `CopyRun` brings them and `WarpProduct` reads them.

Lines of a slice follow each other without gaps, and all lanes of a warp read the same place of eight lines, or places
of four lines that are 16 or 32 bytes apart. So that they are in different banks, pieces of 16 bytes are permuted in
each line: piece p of line l is where p xor s(l) would be. Of lines of 64 bytes two fill all banks, and s has two bits
that follow from l // 2; of longer ones it has three, from l. The lowest bit of l decides about the middle one of s, so
that pairs of pieces stay together.

Copies are `cp.async` from sm_80 on, where arrays start at multiples of 16 bytes: they go past registers, and a thread
waits for them, by groups, when it needs them. Elsewhere they are loads and stores.
"""

from __future__ import annotations

from parakeet_py.base.types import itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.builder import MEMORY_TYPE
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.ptx.kernels.atomics import call
from parakeet_py.ptx.target import number

PIECE = 16  # bytes
SHARED, _GLOBAL = "ptr addrspace(3)", "ptr addrspace(1)"


def address(scope: Scope, array: Descriptor, stage: str, line: str, element: str) -> str:
    """The address of an element of a line of a slice; `stage` says which of several slices."""
    f, dtype = scope.f, array.type.dtype
    per = PIECE // itemsize(dtype)
    if is_for_group(scope.f.module.host, array):
        return _address_for_group(scope, array, stage, line, element)
    length = int(array["extent2"])

    def bit(value: str, number: int, place: int) -> str:
        """Bit `number` of a value, times 2 ** place."""
        own = f.binary("and", "i64", value, str(1 << number))
        if place == number:
            return own
        direction = "shl" if place > number else "lshr"
        return f.binary(direction, "i64", own, str(abs(place - number)))

    first = per.bit_length() - 1
    if length == 4 * per:
        mask = f.binary("or", "i64", bit(line, 1, first + 1), bit(line, 2, first))
    else:
        low = f.binary("shl", "i64", f.binary("and", "i64", line, "3"), str(first + 1))
        mask = f.binary("or", "i64", low, bit(line, 2, first))
    return arrays.address(f, array, [stage, line, f.binary("xor", "i64", element, mask)])


GROUP_ALIGN = 1024  # bytes: where slices begin whose places follow from bits of addresses
GROUP_SLICE = 128, 32  # rows or columns, and depth, of slices of float16 that groups of four warps multiply


def is_for_group(host: HostInfo, array: Descriptor) -> bool:
    """Whether the products of slices are `wgmma`'s."""
    extents = {int(array["extent1"]), int(array["extent2"])}
    return host.cpu == "sm_90a" and array.type.dtype == "float16" and extents == set(GROUP_SLICE)


def _address_for_group(scope: Scope, array: Descriptor, stage: str, line: str, element: str) -> str:
    """Where `wgmma` looks for an element: lines along the shared axis, of 64 bytes, are permuted by bits 1 and 2 of
    their number; along the other one, halves of 128 bytes stand one after the other, permuted by all three bits."""
    f = scope.f
    if int(array["extent2"]) == GROUP_SLICE[1]:
        two = f.binary("and", "i64", f.binary("lshr", "i64", line, "1"), "3")
        mask = f.binary("shl", "i64", two, "3")
        return arrays.address(f, array, [stage, line, f.binary("xor", "i64", element, mask)])
    half = f.binary("shl", "i64", f.binary("lshr", "i64", element, "6"), "11")  # 32 lines of 64
    mask = f.binary("shl", "i64", f.binary("and", "i64", line, "7"), "3")
    within = f.binary("xor", "i64", f.binary("and", "i64", element, "63"), mask)
    place = f.add(f.add(half, f.binary("shl", "i64", line, "6")), within)
    return arrays.address(f, array, [stage, "0", place])


def copy_run(scope: Scope, copy: ir.CopyRun, aligned: bool) -> None:
    """Print a copy; `aligned`: arrays of the kernel start at multiples of 16 bytes."""
    f = scope.f
    target_array, source_array = scope.array(copy.target), scope.array(copy.source)
    stage, line, element = (scope.scalar(index) for index in copy.at)
    target = address(scope, target_array, stage, line, element)
    source = arrays.address(f, source_array, [scope.scalar(index) for index in copy.place])
    there = scope.scalar(copy.there)
    if is_asynchronous(scope) and aligned:
        name = "llvm.nvvm.cp.async.cg.shared.global.16.s"
        function = f.module.declare("void", name, f"{SHARED}, {_GLOBAL}, i32", "")
        place = f.value(f"addrspacecast ptr {source} to {_GLOBAL}")
        size = f.value(f"select i1 {there}, i32 {PIECE}, i32 0")
        f.effect(f"call void {function}({SHARED} {target}, {_GLOBAL} {place}, i32 {size})")
        return
    dtype = target_array.type.dtype
    kind = f"<{PIECE // itemsize(dtype)} x {MEMORY_TYPE[dtype]}>"
    before, bring, go_on = f.block, f.label("bring"), f.label("goon")
    f.branch_if(there, bring, go_on)
    f.begin(bring)
    align = PIECE if aligned else itemsize(dtype)
    found = call(f, f"load {kind}, {f.pointer(source)}, align {align}")
    f.branch(go_on)
    f.begin(go_on)
    value = call(f, f"phi {kind} [zeroinitializer, %{before}], [{found}, %{bring}]")
    f.effect(f"store {kind} {value}, {SHARED} {target}, align {PIECE}")


def copy_group(scope: Scope) -> None:
    if is_asynchronous(scope):
        scope.f.effect(f"call void {scope.f.module.declare('void', 'llvm.nvvm.cp.async.commit.group', '', '')}()")


def copy_wait(scope: Scope, left: int, for_group: bool) -> None:
    """Wait for copies; `for_group`: what reads them is `wgmma`, which has another way to shared memory."""
    if is_asynchronous(scope):
        function = scope.f.module.declare("void", "llvm.nvvm.cp.async.wait.group", "i32", "")
        scope.f.effect(f"call void {function}(i32 {left})")
        if for_group:
            scope.f.effect('call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()')


def is_asynchronous(scope: Scope) -> bool:
    """Whether the architecture copies past registers."""
    return architecture(scope.f.module.host) >= 80


def architecture(host: HostInfo) -> int:
    """The number of a GPU's architecture, such as 90."""
    return number(host.cpu)
