"""Keeping those values whose flags are true: the texts of `pack_library`, and calls of it.

AVX-512 moves the chosen lanes of a vector together in one instruction; the others are left out of the store, so that it
does not touch what another thread stores behind. Elsewhere every value is stored where the next one belongs, which
overwrites it if it was not to be kept: it is not known in advance which are, and a branch that is mispredicted costs
more.
"""

from __future__ import annotations

from parakeet_py.base.types import itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import FunctionText, ModuleText
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.typed_ir.ir import dtype_of

PREFIX = "pk_pack_"  # of the names of the functions
_FEW = 6  # of 64
_NEEDED = {1: "+avx512vbmi2", 2: "+avx512vbmi2", 4: "+avx512vl", 8: "+avx512vl", 16: "+bmi2"}
_EVEN = 0x5555_5555_5555_5555


def pack(scope: Scope, op: ir.Pack) -> str:
    """Pack values by flags; gives the place behind."""
    function = scope.f.module.declare("i64", f"{PREFIX}{itemsize(dtype_of(op.array))}", "ptr, i64, i64, ptr, ptr, i64")
    array, values, flags = (scope.array(each)["data"] for each in (op.array, op.values, op.flags))
    place, end, count = (scope.scalar(each) for each in (op.place, op.end, op.count))
    arguments = f"ptr {array}, i64 {place}, i64 {end}, ptr {values}, ptr {flags}, i64 {count}"
    return scope.f.value(f"call i64 {function}({arguments})")


def library_ir(size: int, host: HostInfo) -> str:
    """The module with the function for elements of so many bytes."""
    module = ModuleText(host)
    features = host.features.split(",")
    vectors = host.vector_bits == 512 and {_NEEDED[size], _NEEDED[min(size, 8)]} <= set(features)
    f = FunctionText(module)
    (_vectors if vectors else _one_by_one)(f, size)
    parameters = "ptr noalias %to, i64 %place, i64 %end, ptr noalias %values, ptr noalias %flags, i64 %count"
    group = module.attributes(f'nounwind "prefer-vector-width"="{host.vector_bits}"')
    module.functions.append(f.text(f"define i64 @{PREFIX}{size}({parameters}) {group}"))
    return module.text()


def _vectors(f: FunctionText, size: int) -> None:
    """64 flags at a time; where few are set, their values one by one. Elements of 16 bytes are pairs of lanes."""
    module = f.module
    lanes, item, lane = 64 // min(size, 8), f"i{8 * size}", f"i{8 * min(size, 8)}"
    vector, mask, bits = f"<{lanes} x {lane}>", f"<{lanes} x i1>", f"i{lanes}"
    compress = module.declare(
        vector, f"llvm.experimental.vector.compress.v{lanes}{lane}", f"{vector}, {mask}, {vector}", ""
    )
    store = module.declare("void", f"llvm.masked.store.v{lanes}{lane}.p0", f"{vector}, ptr, i32, {mask}", "")

    def element(array: str, place: str) -> str:
        return f.value(f"getelementptr inbounds {item}, ptr {array}, i64 {place}")

    def lowest(number: str) -> str:
        """So many bits, from 1 to 64."""
        return f.value(f"lshr i64 -1, {f.value(f'sub i64 64, {number}')}")

    f.branch_if(f.value("icmp eq i64 %count, 0"), "done", "group")
    f.begin("group")
    f.effect("%at = phi i64 [ 0, %entry ], [ %at.next, %next ]")
    f.effect("%here = phi i64 [ %place, %entry ], [ %after, %next ]")
    flags = f.value(f"load <64 x i8>, ptr {f.value('getelementptr i8, ptr %flags, i64 %at')}, align 1")
    all_ = f.value(f"bitcast <64 x i1> {f.value(f'icmp ne <64 x i8> {flags}, zeroinitializer')} to i64")
    left = f.intrinsic("umin", "i64", f.value("sub i64 %count, %at"), "64")
    chosen = f.value(f"and i64 {all_}, {lowest(left)}")
    number = f.intrinsic("ctpop", "i64", chosen)
    f.effect("%at.next = add i64 %at, 64")
    f.effect(f"%after = add i64 %here, {number}")
    f.branch_if(f.value(f"icmp ult i64 {number}, {_FEW + 1}"), "few", "lanes")

    f.begin("few")
    f.branch_if(f.value(f"icmp eq i64 {chosen}, 0"), "next", "one")
    f.begin("one")
    f.effect(f"%rest = phi i64 [ {chosen}, %few ], [ %rest.next, %one ]")
    f.effect("%to.one = phi i64 [ %here, %few ], [ %to.next, %one ]")
    with f.inner():
        bit = f.value("call i64 @llvm.cttz.i64(i64 %rest, i1 true)")
        module.declare("i64", "llvm.cttz.i64", "i64, i1", "")
        value = f.value(f"load {item}, ptr {element('%values', f.value(f'add i64 %at, {bit}'))}, align {min(size, 8)}")
        f.effect(f"store {item} {value}, ptr {element('%to', '%to.one')}, align {min(size, 8)}")
    f.effect("%to.next = add i64 %to.one, 1")
    f.effect("%rest.less = sub i64 %rest, 1")
    f.effect("%rest.next = and i64 %rest, %rest.less")
    f.branch_if(f.value("icmp eq i64 %rest.next, 0"), "next", "one")

    f.begin("lanes")
    place = "%here"
    for part in range(0, 64, 64 // size):
        shifted = f.value(f"lshr i64 {chosen}, {part}")
        if size == 16:
            shifted = _doubled(f, shifted)
        some = shifted if lanes == 64 else f.value(f"trunc i64 {shifted} to {bits}")
        keep = f.value(f"bitcast {bits} {some} to {mask}")
        value = f.value(
            f"load {vector}, ptr {element('%values', f.value(f'add i64 %at, {part}'))}, align {min(size, 8)}"
        )
        packed = f.value(f"call {vector} {compress}({vector} {value}, {mask} {keep}, {vector} poison)")
        count = f.intrinsic("ctpop", bits, some)
        wide = count if lanes == 64 else f.value(f"zext {bits} {count} to i64")
        # as many of the lowest bits as there are set ones (of 64 lanes some are set)
        into = lowest(wide) if lanes == 64 else f.value(f"xor i64 {f.value(f'shl i64 -1, {wide}')}, -1")
        into = into if lanes == 64 else f.value(f"trunc i64 {into} to {bits}")
        where = f.value(f"bitcast {bits} {into} to {mask}")
        f.effect(
            f"call void {store}({vector} {packed}, ptr {element('%to', place)}, i32 {min(size, 8)}, {mask} {where})"
        )
        place = f.value(f"add i64 {place}, {f.value(f'lshr i64 {wide}, 1') if size == 16 else wide}")
    f.branch("next")

    f.begin("next")
    f.branch_if(f.value("icmp ult i64 %at.next, %count"), "group", "done")
    f.begin("done")
    f.effect("%result = phi i64 [ %place, %entry ], [ %after, %next ]")
    f.effect("ret i64 %result")


def _doubled(f: FunctionText, number: str) -> str:
    """A number with each of its lowest 32 bits twice."""
    deposit = f.module.declare("i64", "llvm.x86.bmi.pdep.64", "i64, i64", "")
    spread = f.value(f"call i64 {deposit}(i64 {number}, i64 {_EVEN})")
    return f.value(f"or i64 {spread}, {f.value(f'shl i64 {spread}, 1')}")


def _one_by_one(f: FunctionText, size: int) -> None:
    item = f"i{8 * size}"
    f.branch("head")
    f.begin("head")
    f.effect("%at = phi i64 [ 0, %entry ], [ %at.next, %body ]")
    f.effect("%here = phi i64 [ %place, %entry ], [ %here.next, %body ]")
    more = f.value("icmp ult i64 %at, %count")
    room = f.value("icmp slt i64 %here, %end")
    f.branch_if(f.value(f"and i1 {more}, {room}"), "body", "done")
    f.begin("body")
    value = f.value(f"load {item}, ptr {f.value(f'getelementptr {item}, ptr %values, i64 %at')}, align {min(size, 8)}")
    f.effect(f"store {item} {value}, ptr {f.value(f'getelementptr {item}, ptr %to, i64 %here')}, align {min(size, 8)}")
    flag = f.value(f"load i8, ptr {f.value('getelementptr i8, ptr %flags, i64 %at')}, align 1")
    one = f.value(f"zext i1 {f.value(f'icmp ne i8 {flag}, 0')} to i64")
    f.effect(f"%here.next = add i64 %here, {one}")
    f.effect("%at.next = add i64 %at, 1")
    f.branch("head")
    f.begin("done")
    f.effect("ret i64 %here")
