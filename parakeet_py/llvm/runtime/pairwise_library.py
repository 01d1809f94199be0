"""Pairwise sums and products, in use: compiled for this machine, one object for each operation and dtype.

    double pk_pairwise_add_float64(ptr first, i64 count)        what Imp's `Pairwise` says

As in the vector math library, an object is compiled when it is first needed, kept in the disk cache, and stays loaded;
if it is in the cache, LLVM is not needed.

The tree is NumPy's (see `imp.lower.pairwise_sums`). Complex numbers are pairs of accumulators side by side, so that a
unit is eight numbers for them as well. Of a long run four leaves are summed at once, since an addition takes several
times as long as the processor needs to begin the next one. The leaves beside each other differ by one unit at most: all
have as many as the first one, and what others have more is added, or a number that changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from parakeet_py.base.types import is_complex, real_dtype
from parakeet_py.llvm.engine import compiler, disk_cache
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.engine.lasting_code import lasting_code

PREFIX = "pk_pairwise_"  # of the names of the functions
_OPERATIONS = {"add": ("fadd", "-0.0"), "mul": ("fmul", "1.0")}  # and what changes nothing
_TYPES = {"float32": "float", "float64": "double"}


@lru_cache(maxsize=16)
def resolve(name: str) -> int:
    """The address of one of the functions, compiled or loaded on first use."""
    key = disk_cache.digest("pairwise", name)  # the machine and our sources are part of every key

    def make() -> tuple[bytes, Sequence[str]]:
        return compiler.compile_ir(library_ir(name, compiler.host()), level=2, vectorize=False), [name]

    return lasting_code(key, name, make, [name])[name]


def library_ir(name: str, host: HostInfo) -> str:
    """The module with one function."""
    operation, dtype = name.removeprefix(PREFIX).split("_")
    instruction, neutral = _OPERATIONS[operation]
    kind = _TYPES[real_dtype(dtype)]
    result = f"<2 x {kind}>" if is_complex(dtype) else kind
    own = f"{name}.own"
    values = {
        "name": name,
        "own": own,
        "op": instruction,
        "T": kind,
        "R": result,
        "bytes": "8" if kind == "double" else "4",
        "step": "2" if is_complex(dtype) else "1",
        "none": f"<{', '.join([f'{kind} {neutral}'] * 8)}>",
        "bits": str(host.vector_bits),
    }
    across = _ACROSS_PAIRS if is_complex(dtype) else _ACROSS
    text = _TEXT.replace("ACROSS", across)
    for key, value in values.items():
        text = text.replace(f"[{key}]", value)
    return text


_ACROSS = """
  %e = shufflevector <8 x [T]> %x, <8 x [T]> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %o = shufflevector <8 x [T]> %x, <8 x [T]> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %f = [op] <4 x [T]> %e, %o
  %ee = shufflevector <4 x [T]> %f, <4 x [T]> poison, <2 x i32> <i32 0, i32 2>
  %oo = shufflevector <4 x [T]> %f, <4 x [T]> poison, <2 x i32> <i32 1, i32 3>
  %t = [op] <2 x [T]> %ee, %oo
  %a = extractelement <2 x [T]> %t, i32 0
  %b = extractelement <2 x [T]> %t, i32 1
  %r = [op] [T] %a, %b
  ret [R] %r
"""

_ACROSS_PAIRS = """
  %e = shufflevector <8 x [T]> %x, <8 x [T]> poison, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
  %o = shufflevector <8 x [T]> %x, <8 x [T]> poison, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
  %f = [op] <4 x [T]> %e, %o
  %a = shufflevector <4 x [T]> %f, <4 x [T]> poison, <2 x i32> <i32 0, i32 1>
  %b = shufflevector <4 x [T]> %f, <4 x [T]> poison, <2 x i32> <i32 2, i32 3>
  %r = [op] [R] %a, %b
  ret [R] %r
"""

_TEXT = """
define [R] @[name](ptr %x, i64 %n) #0 {
  %r = call fastcc [R] @[own](ptr %x, i64 %n)
  ret [R] %r
}

define internal fastcc [R] @across(<8 x [T]> %x) #1 {
ACROSS}

define internal fastcc [R] @rest([R] %first, ptr %x, i64 %begin, i64 %end) #1 {
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %0 ], [ %next, %loop ]
  %sum = phi [R] [ %first, %0 ], [ %after, %loop ]
  %place = getelementptr [T], ptr %x, i64 %i
  %value = load [R], ptr %place, align [bytes]
  %after = [op] [R] %sum, %value
  %next = add i64 %i, [step]
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  %r = phi [R] [ %first, %0 ], [ %after, %loop ]
  ret [R] %r
}

define internal fastcc [R] @leaf(ptr %x, i64 %n) #1 {
  %whole = and i64 %n, -8
  %some = icmp ne i64 %whole, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sums = phi <8 x [T]> [ [none], %0 ], [ %after, %loop ]
  %place = getelementptr [T], ptr %x, i64 %i
  %values = load <8 x [T]>, ptr %place, align [bytes]
  %after = [op] <8 x [T]> %sums, %values
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  %last = phi <8 x [T]> [ [none], %0 ], [ %after, %loop ]
  %sum = call fastcc [R] @across(<8 x [T]> %last)
  %r = call fastcc [R] @rest([R] %sum, ptr %x, i64 %whole, i64 %n)
  ret [R] %r
}

define internal fastcc <8 x [T]> @longer(<8 x [T]> %sums, ptr %x, i64 %units, i64 %common) #1 {
  %more = icmp ugt i64 %units, %common
  %unit = select i1 %more, i64 %common, i64 0
  %at = shl i64 %unit, 3
  %place = getelementptr [T], ptr %x, i64 %at
  %values = load <8 x [T]>, ptr %place, align [bytes]
  %chosen = select i1 %more, <8 x [T]> %values, <8 x [T]> [none]
  %r = [op] <8 x [T]> %sums, %chosen
  ret <8 x [T]> %r
}

define internal fastcc [R] @[own](ptr %x, i64 %n) #0 {
  %small = icmp ule i64 %n, 128
  br i1 %small, label %one, label %several
one:
  %r1 = call fastcc [R] @leaf(ptr %x, i64 %n)
  ret [R] %r1
several:
  %units = lshr i64 %n, 3
  %rest = and i64 %n, 7
  %left = lshr i64 %units, 1
  %right = sub i64 %units, %left
  %a = lshr i64 %left, 1
  %b = sub i64 %left, %a
  %c = lshr i64 %right, 1
  %d = sub i64 %right, %c
  %middle = shl i64 %left, 3
  %second = getelementptr [T], ptr %x, i64 %middle
  %ragged = icmp ne i64 %rest, 0
  %part = zext i1 %ragged to i64
  %largest = add i64 %d, %part
  %fits = icmp ule i64 %largest, 16
  %halved = icmp ugt i64 %left, 16
  %four = and i1 %fits, %halved
  br i1 %four, label %quarters, label %halves
halves:
  %behind = sub i64 %n, %middle
  %rl = call fastcc [R] @[own](ptr %x, i64 %middle)
  %rr = call fastcc [R] @[own](ptr %second, i64 %behind)
  %r2 = [op] [R] %rl, %rr
  ret [R] %r2
quarters:
  %a8 = shl i64 %a, 3
  %c8 = shl i64 %c, 3
  %xb = getelementptr [T], ptr %x, i64 %a8
  %xd = getelementptr [T], ptr %second, i64 %c8
  br label %loop
loop:
  %i = phi i64 [ 0, %quarters ], [ %next, %loop ]
  %sa = phi <8 x [T]> [ [none], %quarters ], [ %ta, %loop ]
  %sb = phi <8 x [T]> [ [none], %quarters ], [ %tb, %loop ]
  %sc = phi <8 x [T]> [ [none], %quarters ], [ %tc, %loop ]
  %sd = phi <8 x [T]> [ [none], %quarters ], [ %td, %loop ]
  %pa = getelementptr [T], ptr %x, i64 %i
  %pb = getelementptr [T], ptr %xb, i64 %i
  %pc = getelementptr [T], ptr %second, i64 %i
  %pd = getelementptr [T], ptr %xd, i64 %i
  %va = load <8 x [T]>, ptr %pa, align [bytes]
  %vb = load <8 x [T]>, ptr %pb, align [bytes]
  %vc = load <8 x [T]>, ptr %pc, align [bytes]
  %vd = load <8 x [T]>, ptr %pd, align [bytes]
  %ta = [op] <8 x [T]> %sa, %va
  %tb = [op] <8 x [T]> %sb, %vb
  %tc = [op] <8 x [T]> %sc, %vc
  %td = [op] <8 x [T]> %sd, %vd
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, %a8
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  %ub = call fastcc <8 x [T]> @longer(<8 x [T]> %tb, ptr %xb, i64 %b, i64 %a)
  %uc = call fastcc <8 x [T]> @longer(<8 x [T]> %tc, ptr %second, i64 %c, i64 %a)
  %ud = call fastcc <8 x [T]> @longer(<8 x [T]> %td, ptr %xd, i64 %d, i64 %a)
  %ra = call fastcc [R] @across(<8 x [T]> %ta)
  %rb = call fastcc [R] @across(<8 x [T]> %ub)
  %rc = call fastcc [R] @across(<8 x [T]> %uc)
  %rd0 = call fastcc [R] @across(<8 x [T]> %ud)
  %d8 = shl i64 %d, 3
  %dn = add i64 %d8, %rest
  %rd = call fastcc [R] @rest([R] %rd0, ptr %xd, i64 %d8, i64 %dn)
  %rab = [op] [R] %ra, %rb
  %rcd = [op] [R] %rc, %rd
  %r4 = [op] [R] %rab, %rcd
  ret [R] %r4
}

attributes #0 = { nounwind memory(argmem: read) "prefer-vector-width"="[bits]" }
attributes #1 = { alwaysinline nounwind "prefer-vector-width"="[bits]" }
!0 = distinct !{!0, !{!"llvm.loop.unroll.disable"}, !{!"llvm.loop.vectorize.enable", i1 false}}
"""
