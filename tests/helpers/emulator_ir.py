"""LLVM IR of the kernels that the emulator's tests compile to PTX.

Each is what a compiler of array programs makes: a grid-stride map, a reduction by shuffles and shared memory, a scan
with decoupled look-back, a histogram, a transposition through a tile, and one of everything odd (recursion, calls
through pointers, aggregates by value, printing, stack allocation).
"""

from __future__ import annotations

MAP = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)
define ptx_kernel void @map(ptr noalias readonly align 16 %x, ptr noalias align 16 %y, double %a, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %nt = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %nc = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %m = mul i32 %c, %nt
  %i = add i32 %m, %t
  %i0 = zext i32 %i to i64
  %s = mul i32 %nc, %nt
  %step = zext i32 %s to i64
  br label %head
head:
  %k = phi i64 [%i0, %entry], [%k2, %body]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %body, label %done
body:
  %p = getelementptr double, ptr %x, i64 %k
  %v = load double, ptr %p
  %f = call double @llvm.fma.f64(double %v, double %a, double 1.0)
  %neg = fcmp olt double %f, 0.0
  %abs = fneg double %f
  %g = select i1 %neg, double %abs, double %f
  %r = call double @llvm.sqrt.f64(double %g)
  %q = getelementptr double, ptr %y, i64 %k
  store double %r, ptr %q
  %k2 = add i64 %k, %step
  br label %head
done:
  ret void
}
"""

REDUCE = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier0()
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
@sm = internal addrspace(3) global [32 x float] undef, align 8
define ptx_kernel void @red(ptr noalias readonly align 16 %x, ptr noalias align 16 %y, i64 %n) "nvvm.maxntid"="256" {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %nt = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %nc = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %m = mul i32 %c, %nt
  %i = add i32 %m, %t
  %i0 = zext i32 %i to i64
  %st = mul i32 %nc, %nt
  %st64 = zext i32 %st to i64
  br label %head
head:
  %k = phi i64 [%i0, %entry], [%k2, %body]
  %acc = phi float [0.0, %entry], [%acc2, %body]
  %cc = icmp slt i64 %k, %n
  br i1 %cc, label %body, label %done
body:
  %p = getelementptr float, ptr %x, i64 %k
  %v = load float, ptr %p
  %acc2 = fadd float %acc, %v
  %k2 = add i64 %k, %st64
  br label %head
done:
  %s1 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %acc, i32 16, i32 31)
  %a1 = fadd float %acc, %s1
  %s2 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %a1, i32 8, i32 31)
  %a2 = fadd float %a1, %s2
  %s3 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %a2, i32 4, i32 31)
  %a3 = fadd float %a2, %s3
  %s4 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %a3, i32 2, i32 31)
  %a4 = fadd float %a3, %s4
  %s5 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %a4, i32 1, i32 31)
  %a5 = fadd float %a4, %s5
  %lane = and i32 %t, 31
  %w = lshr i32 %t, 5
  %l0 = icmp eq i32 %lane, 0
  br i1 %l0, label %wr, label %sync
wr:
  %q = getelementptr [32 x float], ptr addrspace(3) @sm, i32 0, i32 %w
  store float %a5, ptr addrspace(3) %q
  br label %sync
sync:
  call void @llvm.nvvm.barrier0()
  %t0 = icmp eq i32 %t, 0
  br i1 %t0, label %fin, label %ret
fin:
  %nw = lshr i32 %nt, 5
  br label %fh
fh:
  %j = phi i32 [0, %fin], [%j2, %fh]
  %b = phi float [0.0, %fin], [%b2, %fh]
  %r = getelementptr [32 x float], ptr addrspace(3) @sm, i32 0, i32 %j
  %rv = load float, ptr addrspace(3) %r
  %b2 = fadd float %b, %rv
  %j2 = add i32 %j, 1
  %fc = icmp ult i32 %j2, %nw
  br i1 %fc, label %fh, label %out
out:
  %o = getelementptr float, ptr %y, i32 %c
  store float %b2, ptr %o
  br label %ret
ret: ret void
}
"""

SCAN = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.membar.gl()
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
@sm = internal addrspace(3) global [33 x i32] undef, align 8
@tk = internal addrspace(3) global [2 x i32] undef, align 8
define ptx_kernel void @scan(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, i32 %n,
    ptr addrspace(1) noalias %ticket, ptr addrspace(1) noalias %flag, ptr addrspace(1) noalias %agg,
    ptr addrspace(1) noalias %pre) "nvvm.maxntid"="256" {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %nt = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t0 = icmp eq i32 %t, 0
  br i1 %t0, label %tick, label %s0
tick:
  %old = atomicrmw add ptr addrspace(1) %ticket, i32 1 monotonic
  store i32 %old, ptr addrspace(3) @tk
  br label %s0
s0:
  call void @llvm.nvvm.barrier0()
  %c = load i32, ptr addrspace(3) @tk
  %m = mul i32 %c, %nt
  %i = add i32 %m, %t
  %inb = icmp slt i32 %i, %n
  br i1 %inb, label %ld, label %s1
ld:
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v0 = load i32, ptr addrspace(1) %p
  br label %s1
s1:
  %v = phi i32 [0, %s0], [%v0, %ld]
  %lane = and i32 %t, 31
  %w = lshr i32 %t, 5
  %u1 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %v, i32 1, i32 0)
  %g1 = icmp uge i32 %lane, 1
  %z1 = select i1 %g1, i32 %u1, i32 0
  %a1 = add i32 %v, %z1
  %u2 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %a1, i32 2, i32 0)
  %g2 = icmp uge i32 %lane, 2
  %z2 = select i1 %g2, i32 %u2, i32 0
  %a2 = add i32 %a1, %z2
  %u3 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %a2, i32 4, i32 0)
  %g3 = icmp uge i32 %lane, 4
  %z3 = select i1 %g3, i32 %u3, i32 0
  %a3 = add i32 %a2, %z3
  %u4 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %a3, i32 8, i32 0)
  %g4 = icmp uge i32 %lane, 8
  %z4 = select i1 %g4, i32 %u4, i32 0
  %a4 = add i32 %a3, %z4
  %u5 = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %a4, i32 16, i32 0)
  %g5 = icmp uge i32 %lane, 16
  %z5 = select i1 %g5, i32 %u5, i32 0
  %a5 = add i32 %a4, %z5
  %l31 = icmp eq i32 %lane, 31
  br i1 %l31, label %wr, label %s2
wr:
  %q = getelementptr [33 x i32], ptr addrspace(3) @sm, i32 0, i32 %w
  store i32 %a5, ptr addrspace(3) %q
  br label %s2
s2:
  call void @llvm.nvvm.barrier0()
  br i1 %t0, label %seq, label %s3
seq:
  %nw = lshr i32 %nt, 5
  br label %fh
fh:
  %j = phi i32 [0, %seq], [%j2, %fh]
  %b = phi i32 [0, %seq], [%b2, %fh]
  %r = getelementptr [33 x i32], ptr addrspace(3) @sm, i32 0, i32 %j
  %rv = load i32, ptr addrspace(3) %r
  store i32 %b, ptr addrspace(3) %r
  %b2 = add i32 %b, %rv
  %j2 = add i32 %j, 1
  %fc = icmp ult i32 %j2, %nw
  br i1 %fc, label %fh, label %pub
pub:
  %pa = getelementptr i32, ptr addrspace(1) %agg, i32 %c
  store i32 %b2, ptr addrspace(1) %pa
  call void @llvm.nvvm.membar.gl()
  %pf = getelementptr i32, ptr addrspace(1) %flag, i32 %c
  store volatile i32 1, ptr addrspace(1) %pf
  br label %lb
lb:
  %d = phi i32 [%c, %pub], [%d1, %add1]
  %run = phi i32 [0, %pub], [%run2, %add1]
  %d1 = sub i32 %d, 1
  %isz = icmp eq i32 %d, 0
  br i1 %isz, label %have, label %spin
spin:
  %pfd = getelementptr i32, ptr addrspace(1) %flag, i32 %d1
  %fv = load volatile i32, ptr addrspace(1) %pfd
  %fz = icmp eq i32 %fv, 0
  br i1 %fz, label %spin, label %got
got:
  call void @llvm.nvvm.membar.gl()
  %f2 = icmp eq i32 %fv, 2
  %pad = getelementptr i32, ptr addrspace(1) %agg, i32 %d1
  %ppd = getelementptr i32, ptr addrspace(1) %pre, i32 %d1
  %sel = select i1 %f2, ptr addrspace(1) %ppd, ptr addrspace(1) %pad
  %av = load i32, ptr addrspace(1) %sel
  %run2 = add i32 %run, %av
  br i1 %f2, label %have, label %add1
add1: br label %lb
have:
  %excl = phi i32 [%run, %lb], [%run2, %got]
  %inc = add i32 %excl, %b2
  %pp = getelementptr i32, ptr addrspace(1) %pre, i32 %c
  store i32 %inc, ptr addrspace(1) %pp
  call void @llvm.nvvm.membar.gl()
  store volatile i32 2, ptr addrspace(1) %pf
  store i32 %excl, ptr addrspace(3) getelementptr ([2 x i32], ptr addrspace(3) @tk, i32 0, i32 1)
  br label %s3
s3:
  call void @llvm.nvvm.barrier0()
  %ex = load i32, ptr addrspace(3) getelementptr ([2 x i32], ptr addrspace(3) @tk, i32 0, i32 1)
  %qq = getelementptr [33 x i32], ptr addrspace(3) @sm, i32 0, i32 %w
  %wo = load i32, ptr addrspace(3) %qq
  %o1 = add i32 %a5, %wo
  %o2 = add i32 %o1, %ex
  br i1 %inb, label %st, label %ret
st:
  %po = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %o2, ptr addrspace(1) %po
  br label %ret
ret: ret void
}
"""

HISTOGRAM = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
@bins = external addrspace(3) global [0 x i32], align 16
define ptx_kernel void @histogram(ptr noalias readonly %x, ptr %out, i32 %n, i32 %count) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %nt = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  br label %zh
zh:
  %z = phi i32 [%t, %entry], [%z2, %zb]
  %zc = icmp slt i32 %z, %count
  br i1 %zc, label %zb, label %zd
zb:
  %zp = getelementptr i32, ptr addrspace(3) @bins, i32 %z
  store i32 0, ptr addrspace(3) %zp
  %z2 = add i32 %z, %nt
  br label %zh
zd:
  call void @llvm.nvvm.barrier0()
  %m = mul i32 %c, %nt
  %i = add i32 %m, %t
  %in = icmp slt i32 %i, %n
  br i1 %in, label %do, label %sync
do:
  %p = getelementptr i32, ptr %x, i32 %i
  %v = load i32, ptr %p
  %b = getelementptr i32, ptr addrspace(3) @bins, i32 %v
  %old = atomicrmw add ptr addrspace(3) %b, i32 1 monotonic
  br label %sync
sync:
  call void @llvm.nvvm.barrier0()
  br label %wh
wh:
  %w = phi i32 [%t, %sync], [%w2, %wb]
  %wc = icmp slt i32 %w, %count
  br i1 %wc, label %wb, label %end
wb:
  %wp = getelementptr i32, ptr addrspace(3) @bins, i32 %w
  %wv = load i32, ptr addrspace(3) %wp
  %op = getelementptr i32, ptr %out, i32 %w
  %o2 = atomicrmw add ptr %op, i32 %wv monotonic
  %w2 = add i32 %w, %nt
  br label %wh
end:
  ret void
}
"""

TRANSPOSE = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare void @llvm.nvvm.barrier0()
@tile = internal addrspace(3) global [32 x [33 x float]] undef, align 16
define ptx_kernel void @transpose(ptr noalias readonly %x, ptr noalias %y, i32 %rows, i32 %columns) {
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %x0 = shl i32 %bx, 5
  %y0 = shl i32 %by, 5
  %c = add i32 %x0, %tx
  br label %load
load:
  %k = phi i32 [0, %0], [%k2, %next]
  %ry = add i32 %ty, %k
  %r = add i32 %y0, %ry
  %okc = icmp slt i32 %c, %columns
  %okr = icmp slt i32 %r, %rows
  %ok = and i1 %okc, %okr
  br i1 %ok, label %get, label %next
get:
  %o = mul i32 %r, %columns
  %o2 = add i32 %o, %c
  %p = getelementptr float, ptr %x, i32 %o2
  %v = load float, ptr %p
  %q = getelementptr [32 x [33 x float]], ptr addrspace(3) @tile, i32 0, i32 %ry, i32 %tx
  store float %v, ptr addrspace(3) %q
  br label %next
next:
  %k2 = add i32 %k, 8
  %again = icmp ult i32 %k2, 32
  br i1 %again, label %load, label %sync
sync:
  call void @llvm.nvvm.barrier0()
  %oc = add i32 %y0, %tx
  br label %store
store:
  %j = phi i32 [0, %sync], [%j2, %snext]
  %sy = add i32 %ty, %j
  %orow = add i32 %x0, %sy
  %sc = icmp slt i32 %oc, %rows
  %sr = icmp slt i32 %orow, %columns
  %s = and i1 %sc, %sr
  br i1 %s, label %put, label %snext
put:
  %q2 = getelementptr [32 x [33 x float]], ptr addrspace(3) @tile, i32 0, i32 %tx, i32 %sy
  %v2 = load float, ptr addrspace(3) %q2
  %oo = mul i32 %orow, %rows
  %oo2 = add i32 %oo, %oc
  %p2 = getelementptr float, ptr %y, i32 %oo2
  store float %v2, ptr %p2
  br label %snext
snext:
  %j2 = add i32 %j, 8
  %sagain = icmp ult i32 %j2, 32
  br i1 %sagain, label %store, label %end
end:
  ret void
}
"""

ODDITIES = r"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
declare double @llvm.fma.f64(double,double,double)
declare i32 @vprintf(ptr, ptr)
@tab = internal addrspace(4) constant [4 x i32] [i32 1,i32 2,i32 3,i32 -4]
@g = addrspace(1) global [3 x float] [float 1.0, float 2.0, float 3.5]
@gp = addrspace(1) global ptr addrspacecast (ptr addrspace(1) @g to ptr)
@sm = internal addrspace(3) global [32 x double] undef, align 8
@dyn = external addrspace(3) global [0 x i8], align 16
@fmt = private constant [6 x i8] c"x %d\0A\00"
%S = type { i32, double, [3 x i16] }
define internal i32 @fib(i32 %n) noinline {
  %c = icmp slt i32 %n, 2
  br i1 %c, label %b, label %r
b: ret i32 %n
r: %n1 = sub i32 %n, 1
  %f1 = call i32 @fib(i32 %n1)
  %n2 = sub i32 %n, 2
  %f2 = call i32 @fib(i32 %n2)
  %s = add i32 %f1, %f2
  %l = alloca i32, i32 %n
  store volatile i32 %s, ptr %l
  %s2 = load volatile i32, ptr %l
  ret i32 %s2
}
define internal double @sq(double %n) noinline { %r = fmul double %n, %n 
 ret double %r }
define internal double @cu(double %n) noinline { %r = fmul double %n, 3.0
 ret double %r }
define ptx_kernel void @k(ptr noalias readonly align 8 %x, ptr noalias align 8 %y, double %a, i64 %n,
    ptr byval(%S) align 8 %s, i1 %flag, half %h, <4 x float> %v) "nvvm.maxntid"="256" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %nt = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %m = mul i32 %c, %nt
  %i = add i32 %m, %t
  %i64 = zext i32 %i to i64
  %cond = icmp slt i64 %i64, %n
  br i1 %cond, label %body, label %end
body:
  %px = getelementptr double, ptr %x, i64 %i64
  %vx = load double, ptr %px
  %d = getelementptr [4 x i32], ptr addrspace(4) @tab, i32 0, i32 %t
  %dv = load i32, ptr addrspace(4) %d
  %fb = call i32 @fib(i32 %dv)
  %fbd = sitofp i32 %fb to double
  %p = select i1 %flag, ptr @sq, ptr @cu
  %q = call double %p(double %vx)
  %f = call double @llvm.fma.f64(double %vx, double %a, double %fbd)
  %w = fadd double %f, %q
  %sd = getelementptr %S, ptr %s, i32 0, i32 1
  %sv = load double, ptr %sd
  %w2 = fadd double %w, %sv
  %si = getelementptr %S, ptr %s, i32 0, i32 2, i32 %t
  %siv = load i16, ptr %si
  %sif = uitofp i16 %siv to double
  %hf = fpext half %h to double
  %w3 = fadd double %w2, %sif
  %w4 = fadd double %w3, %hf
  %e0 = extractelement <4 x float> %v, i32 2
  %e0d = fpext float %e0 to double
  %w5 = fadd double %w4, %e0d
  %args = alloca i32
  store i32 %t, ptr %args
  %z = call i32 @vprintf(ptr @fmt, ptr %args)
  %ss = getelementptr [32 x double], ptr addrspace(3) @sm, i32 0, i32 %t
  store double %w5, ptr addrspace(3) %ss
  call void @llvm.nvvm.barrier0()
  switch i32 %t, label %s0 [i32 0, label %s1
   i32 1, label %s2
   i32 2, label %s3
   i32 3, label %s4
   i32 4, label %s5
   i32 5, label %s6]
s0: br label %j
s1: store volatile float 1.0, ptr addrspace(1) @g
 br label %j
s2: store volatile float 2.0, ptr addrspace(1) @g
 br label %j
s3: store volatile float 3.0, ptr addrspace(1) @g
 br label %j
s4: store volatile float 4.0, ptr addrspace(1) @g
 br label %j
s5: store volatile float 5.0, ptr addrspace(1) @g
 br label %j
s6: store volatile float 6.0, ptr addrspace(1) @g
 br label %j
j:
  %py = getelementptr double, ptr %y, i64 %i64
  %dd = load double, ptr addrspace(3) @dyn
  %d2 = load double, ptr addrspace(3) @sm
  %d3 = fadd double %dd, %d2
  store double %d3, ptr %py
  br label %end
end: ret void
}
"""

BY_VALUE = r"""
%S = type { i32, double, [6 x i16] }
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define internal double @f(ptr byval(%S) align 8 %s, i32 %i) noinline {
  %si = getelementptr %S, ptr %s, i32 0, i32 2, i32 %i
  %siv = load i16, ptr %si
  %sif = uitofp i16 %siv to double
  %sd = getelementptr %S, ptr %s, i32 0, i32 1
  %sv = load double, ptr %sd
  %r = fadd double %sif, %sv
  ret double %r
}
define internal i16 @g(ptr byval(%S) align 8 %s, i32 %i) noinline {
  %si = getelementptr %S, ptr %s, i32 0, i32 2, i32 %i
  store i16 7, ptr %si
  %sj = getelementptr %S, ptr %s, i32 0, i32 2, i32 0
  %siv = load i16, ptr %sj
  ret i16 %siv
}
define ptx_kernel void @k(ptr addrspace(1) %y, ptr byval(%S) align 8 %s,
    ptr byval(%S) align 8 "nvvm.grid_constant" %s2) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %d = call double @f(ptr byval(%S) align 8 %s, i32 %t)
  %g = call i16 @g(ptr byval(%S) align 8 %s, i32 %t)
  %gf = uitofp i16 %g to double
  %e = fadd double %d, %gf
  %py = getelementptr double, ptr addrspace(1) %y, i32 %t
  store double %e, ptr addrspace(1) %py
  ret void
}
"""
