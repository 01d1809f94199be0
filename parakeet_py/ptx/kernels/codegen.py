"""A kernel as LLVM IR for the NVPTX back end.

The statements are printed by the CPU's code generator; here is what only a GPU has: who a thread is, shared memory,
shuffles, barriers, atomics, and how a failing check is reported.

**Parameters.** An array is its address, its extents, and the strides that its layout does not imply; a complex number
is two parameters, a bool a byte. Integers have 32 bits in the form of a kernel for launches in which all of them fit:
LLVM sees then that their products need no long multiplication, and their quotients no long division. An array that the
kernel never stores to, and that shares no memory with one that it stores to, is `noalias readonly`: its loads go
through the read-only cache.

**Failures.** The kernels of a call share a record of nine words: order, code, six arguments, turn. A kernel that may
fail has three more parameters: the address of the record, its turn (how many launches that may fail were before it) and
a number. A failing thread writes down the turn, lowers the order of the record to that of its iteration, and leaves.
When the host finds a turn there, it runs that kernel again with the order as the number, and the thread that fails in
this iteration fills in the code and arguments. A kernel that stores to memory others can see makes its checks
beforehand, so running it twice changes nothing. A kernel of a single thread fills in everything at once, and is not run
again; so does the first thread of one whose threads fail alike (`column_loops`).

A kernel that may be launched when others before it may have failed is *guarded*: it has the record and its turn as
parameters, and does nothing if an earlier turn stands there. So the host need not wait for one kernel before it
launches the next: after a failure all is as that kernel has left it.
"""

from __future__ import annotations

from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Scalar, is_complex, is_float, itemsize, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.arrays import AnyValue, Descriptor, complete, fixed_stride
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, MEMORY_TYPE, FunctionText, Locations, ModuleText
from parakeet_py.llvm.codegen.control import emit_block
from parakeet_py.llvm.codegen.scope import Scope, Unit
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.ptx.kernels import bulk_products, slices
from parakeet_py.ptx.kernels.atomics import BITS, SCOPE, atomic, call
from parakeet_py.ptx.kernels.regions import WARP
from parakeet_py.ptx.kernels.warp_products import multiplies_in_groups, uses_tensor_cores, warp_product
from parakeet_py.ptx.libdevice import call as libdevice_call
from parakeet_py.ptx.outline import Kernel
from parakeet_py.typed_ir.ir import Var, dtype_of

NO_FAILURE = (1 << 63) - 1  # the order in a record that no thread has lowered
FAILURE_WORDS = 9
TURN = 8  # the word of a record that says which launch has failed; NO_FAILURE if none has
TENSOR_BLOCKS = 2  # of kernels that use tensor cores, which a multiprocessor shall have registers for
NARROW = 1 << 31  # the integers of a narrow kernel are below it

_SPECIAL = {"thread": "tid.x", "block": "ctaid.x", "threads": "ntid.x", "blocks": "nctaid.x", "lane": "laneid"}
_SHARED = 3  # the address space of shared memory


def kernel_ir(
    kernel: Kernel,
    host: HostInfo,
    *,
    aligned: bool = False,
    narrow: bool = False,
    parts: int = 1,
    boxes: bool = False,
    contract: bool = False,
    fastmath: bool = False,
    libdevice: bool = False,
    locations: Locations | None = None,
) -> str:
    """The LLVM IR of one kernel.

    Parameters
    ----------
    host : the GPU, see `target.gpu`
    aligned : all array arguments start at multiples of 16 bytes
    narrow : 32 bits hold every extent, stride, integer argument and the number of threads
    parts : each block is launched as so many smaller ones, a power of two; for kernels that are `divisible`
    boxes : matrices come by bulk copies, for which a block has one warp more; for kernels with `tensors_of`
    contract, fastmath : as for the CPU
    libdevice : elementary functions are those of NVIDIA's library
    locations : says of instructions where in the source they come from
    """
    flags = "fast " if fastmath else "contract " if contract or kernel.contract else ""
    module = ModuleText(host, flags, libdevice_call if libdevice else None, locations=locations)
    unit = KernelUnit(
        kernel.function,
        module,
        threads=kernel.threads + WARP * boxes,
        is_region=True,
        single=kernel.single,
        at_once=kernel.at_once,
        narrow=narrow,
        parts=parts,
        aligned=aligned,
        boxes=boxes,
        for_group=any(multiplies_in_groups(host, one) for one in ir.walk(kernel.function.body)),
    )
    f = FunctionText(module)
    scope = Scope(unit, f)
    stored = stored_roots(kernel.function)
    parameters: list[str] = []
    for number, param in enumerate(kernel.params):
        scope.values[param] = _enter(f, param, number, stored, kernel.function.roots, parameters, aligned, narrow)
    if kernel.guarded or kernel.checked:
        parameters += ["ptr %failure", "i64 %turn"]
    if kernel.guarded:
        _leave_after_failures(f)
    if kernel.checked:
        parameters.append("i64 %report")
        block = f.value(f"call i32 {_register(module, 'ctaid.x')}()")
        thread = f.value(f"call i32 {_register(module, 'tid.x')}()")
        start = f.binary("mul", "i64", f.value(f"zext i32 {block} to i64"), str(kernel.threads // parts))
        scope.order = f.binary("add", "i64", start, f.value(f"zext i32 {thread} to i64"))
    emit_block(scope, kernel.function.body)
    if not f.dead:
        f.effect("ret void")
    scope.aliases.finish()
    if boxes:
        parameters += bulk_products.parameters(kernel)
    limits = f'"nvvm.maxntid"="{unit.threads // parts}"'
    if boxes or any(uses_tensor_cores(host, statement) for statement in ir.walk(kernel.function.body)):
        limits += f' "nvvm.minctasm"="{TENSOR_BLOCKS}"'
    module.define(
        f,
        f"define ptx_kernel void @({', '.join(parameters)})",
        f"nounwind {limits}",
        lambda: f"@{kernel.name}",
    )
    return module.text()


def _enter(
    f: FunctionText,
    param: Var,
    number: int,
    stored: frozenset[int],
    roots: Any,
    parameters: list[str],
    aligned: bool,
    narrow: bool,
) -> AnyValue:
    """Declare the parameters of a value; gives the value."""
    name = f"%p{number}"
    kind = param.type

    def integer(name: str, extension: str = "sext") -> str:
        """An integer parameter; gives it as an i64."""
        parameters.append(f"i32 {name}" if narrow else f"i64 {name}")
        return f.entry_value(f"{extension} i32 {name} to i64") if narrow else name

    if isinstance(kind, Scalar):
        if is_complex(kind.dtype):
            part = LLVM_TYPE[real_dtype(kind.dtype)]
            parameters += [f"{part} {name}.re", f"{part} {name}.im"]
            return f"{name}.re", f"{name}.im"
        if kind.dtype == "int64":
            return integer(name)
        parameters.append(f"{MEMORY_TYPE[kind.dtype]} {name}")
        return f.entry_value(f"icmp ne i8 {name}, 0") if kind.dtype == "bool" else name
    assert isinstance(kind, Array)
    untouched = roots.get(param) and not roots[param] & stored
    size = 16 if aligned else itemsize(real_dtype(kind.dtype) if is_complex(kind.dtype) else kind.dtype)
    parameters.append(f"ptr {'noalias readonly ' if untouched else ''}align {size} {name}")
    fields = {"object": "null", "base": "null", "block": "null", "data": name}
    for axis in range(kind.rank):
        extent = fields[f"extent{axis}"] = integer(f"{name}.n{axis}", "zext nneg")
        f.bounds[extent] = 0
    for axis in strides_passed(kind):
        fields[f"stride{axis}"] = integer(f"{name}.s{axis}")
    unit = arrays.unit_axis(kind)
    if kind.layout in "SA" and unit is not None:
        fields[f"stride{unit}"] = fixed_stride(kind, f"stride{unit}") or ""
    return complete(f, kind, fields)


def strides_passed(kind: Array) -> tuple[int, ...]:
    """The axes of an array parameter whose strides are parameters."""
    if kind.layout not in "SA":
        return ()
    return tuple(axis for axis in range(kind.rank) if fixed_stride(kind, f"stride{axis}") is None)


def stored_roots(function: ir.Function) -> frozenset[int]:
    """The memory roots that a function stores to."""
    stored = (array for statement in ir.walk(function.body) for array in ir.arrays_written(statement))
    return frozenset().union(*(function.roots.get(array, frozenset()) for array in stored))


def _leave_after_failures(f: FunctionText) -> None:
    """Do nothing if a launch before this one has failed: that is known when the first block begins."""
    place = f.value(f"getelementptr i8, ptr %failure, i64 {8 * TURN}")
    seen = call(f, f"load atomic i64, ptr {place} {SCOPE} monotonic, align 8")
    leave, go_on = f.label("leave"), f.label("goon")
    f.cold(leave, ["ret void"])
    f.branch_if(f.value(f"icmp slt i64 {seen}, %turn"), leave, go_on)
    f.begin(go_on)


def _register(module: ModuleText, name: str) -> str:
    return module.declare("i32", f"llvm.nvvm.read.ptx.sreg.{name}", "", "")


@record(frozen=False)
class KernelUnit(Unit):
    """A kernel being printed."""

    polls: bool = False
    threads: int = 1
    shared: int = 0
    single: bool = False
    at_once: bool = False
    narrow: bool = False
    parts: int = 1
    aligned: bool = False
    for_group: bool = False  # groups of warps multiply
    boxes: bool = False  # what they multiply comes by bulk copies

    def attributes(self, f: FunctionText) -> str:
        return "nounwind"

    def leave(self, scope: Scope, status: str) -> str:
        return "ret void"

    def failure(self, scope: Scope, code: int, order: str, arguments: list[str]) -> list[str]:
        f = scope.f
        tell, leave = f.label("tell"), f.label("leave")
        words = [(8, str(code)), *((16 + 8 * place, item) for place, item in enumerate(arguments[:6]))]
        told: list[str] = []
        for offset, item in words:
            place = f.fresh()
            told += [f"{place} = getelementptr i8, ptr %failure, i64 {offset}", f"store i64 {item}, ptr {place}"]
        turn = f.fresh()
        turn_place = f"{turn} = getelementptr i8, ptr %failure, i64 {8 * TURN}"
        if self.single:
            lines = [f"store i64 {order}, ptr %failure", *told, turn_place, f"store i64 %turn, ptr {turn}"]
            return [*lines, "ret void"]
        mark = (
            f"{f.fresh()} = atomicrmw umin ptr {turn}, i64 %turn {SCOPE} monotonic"  # others look at it at their start
        )
        if self.at_once:
            f.cold(tell, ["store i64 0, ptr %failure", *told, turn_place, mark, "ret void"])
            f.cold(leave, ["ret void"])
            is_first = f.fresh()
            return [f"{is_first} = icmp eq i64 {order}, 0", f"br i1 {is_first}, label %{tell}, label %{leave}"]
        f.cold(tell, [*told, f"br label %{leave}"])
        f.cold(leave, ["ret void"])
        wanted = f.fresh()
        return [
            turn_place,
            mark,
            f"{f.fresh()} = atomicrmw umin ptr %failure, i64 {order} {SCOPE} monotonic",
            f"{wanted} = icmp eq i64 {order}, %report",
            f"br i1 {wanted}, label %{tell}, label %{leave}",
        ]

    def value(self, scope: Scope, let: ir.Let) -> AnyValue:
        f, rhs = scope.f, let.rhs
        match rhs:
            case ir.NewArray(extents):
                return self.shared_array(scope, let.out, [scope.scalar(extent) for extent in extents])
            case ir.Lane("threads"):
                return str(self.threads)
            case ir.Lane("groups"):
                return str(int(self.for_group))
            case ir.Lane("boxes"):
                return str(self.boxes).lower()
            case ir.Lane(name):
                wide = f.value(f"zext i32 {self.lane(f, name)} to i64")
                f.bounds[wide] = 0
                return wide
            case ir.Shuffle(mode, value, amount):
                given = scope.operand(value)
                assert not isinstance(given, Descriptor)
                narrow = f.value(f"trunc i64 {scope.scalar(amount)} to i32")
                moved: AnyValue = _shuffle(f, mode, given, dtype_of(value), narrow)
                return moved
            case ir.Ballot(mode, condition):
                bit = f.value(f"zext i1 {scope.scalar(condition)} to i32")
                name = f"llvm.nvvm.barrier0.{'or' if mode == 'any' else 'and'}"
                function = f.module.declare("i32", name, "i32", "convergent nounwind")
                # not `f.value`: two ballots with the same condition are two meetings of all threads
                return f.binary("icmp ne", "i32", call(f, f"call i32 {function}(i32 {bit})"), "0")
            case ir.Peers(value):
                return _peers(f, scope.scalar(value))
            case ir.Atomic():
                return atomic(scope, let.out, rhs)
        raise AssertionError(rhs)

    def lane(self, f: FunctionText, name: str) -> str:
        """Who a thread is; of a block in parts, who it is in the whole block."""
        threads = self.threads // self.parts
        known = {"thread": threads, "lane": 32, "block": NARROW // threads if self.narrow else 0}

        def register(name: str) -> str:
            limit = f"range(i32 0, {known[name]}) " if 1 < known.get(name, 0) < NARROW else ""
            return f.value(f"call {limit}i32 {_register(f.module, _SPECIAL[name])}()")

        if self.parts == 1 or name not in ("block", "thread"):
            return register(name)
        part = register("block")
        if name == "block":
            return f.value(f"lshr i32 {part}, {self.parts.bit_length() - 1}")
        before = f.value(f"mul i32 {f.value(f'and i32 {part}, {self.parts - 1}')}, {threads}")
        return f.value(f"or disjoint i32 {before}, {register('thread')}")

    def statement(self, scope: Scope, statement: ir.Statement) -> None:
        f = scope.f
        match statement:
            case ir.Barrier("block"):
                f.effect(f"call void {f.module.declare('void', 'llvm.nvvm.barrier0', '', 'convergent nounwind')}()")
            case ir.Barrier("warp"):
                name = f.module.declare("void", "llvm.nvvm.bar.warp.sync", "i32", "convergent nounwind")
                f.effect(f"call void {name}(i32 -1)")
            case ir.CopyRun():
                slices.copy_run(scope, statement, self.aligned)
            case ir.CopyGroup():
                slices.copy_group(scope)
            case ir.CopyWait(left):
                slices.copy_wait(scope, left, self.for_group)
            case ir.WarpProduct():
                lane = f.value(f"zext i32 {self.lane(f, 'lane')} to i64")
                f.bounds[lane] = 0
                warp_product(scope, lane, statement)
            case ir.BulkProduct():
                bulk_products.bulk_product(scope, f.module.host, statement, self.lane(f, "thread"))
            case _:
                raise AssertionError(f"{statement!r} inside a kernel")

    def shared_array(self, scope: Scope, out: Var, extents: list[str]) -> Descriptor:
        """Memory that the threads of a block share: an array of the module."""
        f = scope.f
        assert isinstance(out.type, Array)
        count = 1
        for extent in extents:
            count *= int(extent)
        name = f"@{self.function.name}_shared{self.shared}"
        self.shared += 1
        size = max(count * itemsize(out.type.dtype), 1)
        align = slices.GROUP_ALIGN if self.for_group else 16
        f.module.functions.append(f"{name} = internal addrspace(3) global [{size} x i8] undef, align {align}")
        place = f.entry_value(f"getelementptr i8, ptr addrspace(3) {name}, i64 0")
        f.spaces[place] = _SHARED  # not cast to a general pointer: LLVM would forget how it is aligned
        fields = {"object": "null", "base": "null", "block": "null", "data": place}
        fields |= {f"extent{axis}": extent for axis, extent in enumerate(extents)}
        strides = arrays.implied_strides(Array(out.type.dtype, out.type.rank, "C"), extents, f.multiply)
        return Descriptor(out.type, fields | strides)


# ---- shuffles --------------------------------------------------------------------------------------------------------

_SHUFFLE = {"down": ("down", 31), "up": ("up", 0), "xor": ("bfly", 31), "index": ("idx", 31)}


def _shuffle(f: FunctionText, mode: str, value: Any, dtype: str, amount: str) -> Any:
    if is_complex(dtype):
        part = real_dtype(dtype)
        return tuple(_shuffle(f, mode, item, part, amount) for item in value)
    kind, size = LLVM_TYPE[dtype], itemsize(dtype)
    bits = value
    if is_float(dtype):
        bits = f.value(f"bitcast {kind} {value} to {BITS[size]}")
    if size == 8:
        low = f.value(f"trunc i64 {bits} to i32")
        high = f.value(f"trunc i64 {f.binary('lshr', 'i64', bits, '32')} to i32")
        low, high = (_shuffle_word(f, mode, word, amount) for word in (low, high))
        upper = f.binary("shl", "i64", f.value(f"zext i32 {high} to i64"), "32")
        bits = f.binary("or", "i64", upper, f.value(f"zext i32 {low} to i64"))
    else:
        narrow = "i1" if dtype == "bool" else BITS[size]
        wide = bits if narrow == "i32" else f.value(f"zext {narrow} {bits} to i32")
        moved = _shuffle_word(f, mode, wide, amount)
        bits = moved if narrow == "i32" else f.value(f"trunc i32 {moved} to {narrow}")
    return f.value(f"bitcast {BITS[size]} {bits} to {kind}") if is_float(dtype) else bits


def _peers(f: FunctionText, value: str) -> str:
    """Which lanes have the same value: how many of them are before, and how many there are."""
    match = f.module.declare("i32", "llvm.nvvm.match.any.sync.i32", "i32, i32", "convergent nounwind")
    lanes = call(f, f"call i32 {match}(i32 -1, i32 {f.value(f'trunc i64 {value} to i32')})")
    count = f.module.declare("i32", "llvm.ctpop.i32", "i32", "")
    lower = f.value(f"call i32 {_register(f.module, 'lanemask.lt')}()")
    before = f.value(f"call range(i32 0, 32) i32 {count}(i32 {f.binary('and', 'i32', lanes, lower)})")
    all_ = f.value(f"call range(i32 1, 33) i32 {count}(i32 {lanes})")
    both = f.value(f"add nuw nsw i32 {before}, {f.value(f'mul nuw nsw i32 {all_}, {ir.PEERS}')}")
    wide = f.value(f"zext i32 {both} to i64")
    f.bounds[wide] = 0
    return wide


def _shuffle_word(f: FunctionText, mode: str, word: str, amount: str) -> str:
    name, clamp = _SHUFFLE[mode]
    function = f.module.declare("i32", f"llvm.nvvm.shfl.sync.{name}.i32", "i32, i32, i32, i32", "convergent nounwind")
    return call(f, f"call i32 {function}(i32 -1, i32 {word}, i32 {amount}, i32 {clamp})")
