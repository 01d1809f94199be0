"""Atomics of kernels: what the hardware has for a dtype, and loops of compare-and-swap for what it has not.

The hardware adds integers and floats of 32 and 64 bits (and float16), and has extrema and bit operations of integers.
Everything else (products, differences, extrema of floats, elements of one or two bytes) reads the element, computes
what it shall be, and stores that if the element is still what was read. Elements smaller than a word are a part of the
word around them, whose other part stays what it is. (LLVM's own expansion begins with a load that is not atomic.)

Atomics on floats come in any order, so sums and products may differ in the last bits from run to run.
"""

from __future__ import annotations

from parakeet_py.base.types import is_complex, is_float, is_unsigned, itemsize, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.arrays import AnyValue
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText
from parakeet_py.llvm.codegen.scalar import primitive
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import Var, dtype_of

BITS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
SCOPE = 'syncscope("device")'
WORD = 4  # bytes of the smallest element that can be compared and swapped


def call(f: FunctionText, text: str) -> str:
    """An instruction that is written each time, however often it has been written before."""
    with f.inner():
        name = f.fresh()
        f.effect(f"{name} = {text}")
    return name


def atomic(scope: Scope, out: Var, op: ir.Atomic) -> AnyValue:
    f = scope.f
    dtype = dtype_of(out)
    place = arrays.address(f, scope.array(op.array), [scope.scalar(index) for index in op.indices])
    if is_complex(dtype):
        part, value = real_dtype(dtype), scope.operand(op.value)
        assert isinstance(value, tuple)
        second = f.moved(place, "i8", str(itemsize(part)))
        pairs = zip((place, second), value, strict=True)
        return tuple(_change(f, op.name, part, address, item) for address, item in pairs)  # type: ignore[return-value]
    value = scope.scalar(op.value)
    if op.name == "compare":
        assert op.expected is not None
        expected = _to_bits(f, dtype, scope.scalar(op.expected))
        return _compare(f, dtype, place, expected, _to_bits(f, dtype, value))
    return _change(f, op.name, dtype, place, value)


def _change(f: FunctionText, name: str, dtype: str, place: str, value: str) -> str:
    """An atomic on a real element; those on the parts of a complex number are two, one after the other."""
    bits, align = BITS[itemsize(dtype)], itemsize(dtype)
    match name:
        case "load" | "relaxed_load":
            order = "acquire" if name == "load" else "monotonic"
            old = call(f, f"load atomic {bits}, {f.pointer(place)} {SCOPE} {order}, align {align}")
            return _from_bits(f, dtype, old)
        case "store" | "relaxed_store":
            order = "release" if name == "store" else "monotonic"
            given = _to_bits(f, dtype, value)
            f.effect(f"store atomic {bits} {given}, {f.pointer(place)} {SCOPE} {order}, align {align}")
            return value
        case "exchange":
            old = call(f, f"atomicrmw xchg {f.pointer(place)}, {bits} {_to_bits(f, dtype, value)} {SCOPE} acq_rel")
            return _from_bits(f, dtype, old)
    return _update(f, name, dtype, place, value)


_BOOL_UPDATE = {
    **{name: "or" for name in ("add", "or", "maximum", "fmax")},
    **{name: "and" for name in ("mul", "and", "minimum", "fmin")},
    "xor": "xor",
}
_BITWISE = ("and", "or", "xor")  # LLVM widens these to words


def _update(f: FunctionText, name: str, dtype: str, place: str, value: str) -> str:
    if dtype == "bool":
        wide = f.value(f"zext i1 {value} to i8")
        old = call(f, f"atomicrmw {_BOOL_UPDATE[name]} {f.pointer(place)}, i8 {wide} {SCOPE} monotonic")
        return f.value(f"icmp ne i8 {old}, 0")
    operation = _operation(name, dtype)
    if operation is None:
        return _by_exchange(f, name, dtype, place, value)
    return call(f, f"atomicrmw {operation} {f.pointer(place)}, {LLVM_TYPE[dtype]} {value} {SCOPE} monotonic")


def _operation(name: str, dtype: str) -> str | None:
    """What LLVM calls an update that is one instruction."""
    if is_float(dtype):
        return "fadd" if name == "add" else None
    if name in _BITWISE:
        return name
    if itemsize(dtype) < WORD:
        return None
    if name in ("minimum", "maximum"):
        return ("u" if is_unsigned(dtype) else "") + name[:3]
    return "add" if name == "add" else None


def _by_exchange(f: FunctionText, name: str, dtype: str, place: str, value: str) -> str:
    """An update by comparing and swapping, until no other thread has come in between; gives the old value."""
    size = itemsize(dtype)
    narrow, wide = BITS[size], BITS[max(size, WORD)]
    word, shift, others = place, "", ""
    if size < WORD:
        pointer = f.pointer(place)
        kind, space = pointer.removesuffix(f" {place}"), f.spaces.get(place)
        mask = f.module.declare(kind, f"llvm.ptrmask.p{space or 0}.i64", f"{kind}, i64", "")
        word = f.value(f"call {kind} {mask}({pointer}, i64 {-WORD})")
        if space is not None:
            f.spaces[word] = space
        number = f.value(f"trunc i64 {f.value(f'ptrtoint {pointer} to i64')} to i32")
        shift = f.value(f"shl i32 {f.value(f'and i32 {number}, {WORD - 1}')}, 3")
        ones = f.value(f"shl i32 {(1 << 8 * size) - 1}, {shift}")
        others = f.value(f"xor i32 {ones}, -1")
    first = call(f, f"load atomic {wide}, {f.pointer(word)} {SCOPE} monotonic, align {max(size, WORD)}")
    before, again, end = f.block, f.label("again"), f.label("end")
    f.branch(again)
    f.begin(again)
    line, seen = f.reserve(), f.fresh()
    with f.inner():
        part = seen
        if size < WORD:
            part = f.value(f"trunc i32 {f.value(f'lshr i32 {seen}, {shift}')} to {narrow}")
        old = _from_bits(f, dtype, part)
        computed = primitive(f, name, dtype, (old, value))
        assert isinstance(computed, str)
        new = _to_bits(f, dtype, computed)
        if size < WORD:
            moved = f.value(f"shl i32 {f.value(f'zext {narrow} {new} to i32')}, {shift}")
            new = f.value(f"or i32 {f.value(f'and i32 {seen}, {others}')}, {moved}")
        pair = call(f, f"cmpxchg {f.pointer(word)}, {wide} {seen}, {wide} {new} {SCOPE} monotonic monotonic")
        found = f.value(f"extractvalue {{{wide}, i1}} {pair}, 0")
        done = f.value(f"extractvalue {{{wide}, i1}} {pair}, 1")
        f.fill(line, f"{seen} = phi {wide} [{first}, %{before}], [{found}, %{f.block}]")
        f.branch_if(done, end, again)
    f.begin(end)
    return old


def _compare(f: FunctionText, dtype: str, place: str, expected: str, value: str) -> str:
    bits = BITS[itemsize(dtype)]
    pair = call(f, f"cmpxchg {f.pointer(place)}, {bits} {expected}, {bits} {value} {SCOPE} acq_rel monotonic")
    return _from_bits(f, dtype, f.value(f"extractvalue {{{bits}, i1}} {pair}, 0"))


def _to_bits(f: FunctionText, dtype: str, value: str) -> str:
    if dtype == "bool":
        return f.value(f"zext i1 {value} to i8")
    bits = BITS[itemsize(dtype)]
    return f.value(f"bitcast {LLVM_TYPE[dtype]} {value} to {bits}") if is_float(dtype) else value


def _from_bits(f: FunctionText, dtype: str, bits: str) -> str:
    if dtype == "bool":
        return f.value(f"icmp ne i8 {bits}, 0")
    kind = BITS[itemsize(dtype)]
    return f.value(f"bitcast {kind} {bits} to {LLVM_TYPE[dtype]}") if is_float(dtype) else bits
