"""How many threads BLAS may use for a product, as LLVM IR text.

    i32  pk_blas_begin(i32 most, ptr get, ptr set)    before a call of BLAS; 1 if its threads have been limited
    void pk_blas_end(i32 limited)                     after it

`get` and `set` are the BLAS's own functions for its number of threads. That number belongs to the whole process, while
the limit belongs to one call, and several Python threads may be inside BLAS at once. So the first who needs fewer
threads notes the number, those who come while it is lowered only ever lower it further, and the last who leaves puts
the noted number back. No caller ever runs with more threads than it may; one that meets BLAS meanwhile may run with
fewer, which changes no result: OpenBLAS reads the number once, when a routine begins. A call that may use as many
threads as BLAS has takes no lock.

A lock is held around the count and the two functions, which return at once, and while the process forks; the child,
in which no thread is inside BLAS, puts the number back.
"""

from __future__ import annotations


def limits_ir() -> str:
    """The text; needs the locks of `memory_pool.large_ir`, defines `blas_after_fork` too."""
    return _LIMITS


_LIMITS = """
@blas_lock   = internal global i32 0, align 64
@blas_inside = internal global i32 0, align 4      ; how many calls are inside BLAS that have asked for a limit
@blas_before = internal global i32 0, align 4      ; the number of threads before the first of them
@blas_set    = internal global ptr null, align 8

define i32 @pk_blas_begin(i32 %most, ptr %get, ptr %set) {
entry:
  %any = icmp slt i32 %most, 1
  br i1 %any, label %free, label %look
look:
  %seen = load atomic i32, ptr @blas_inside acquire, align 4
  %nobody = icmp eq i32 %seen, 0
  %now = call i32 %get()
  %few = icmp sle i32 %now, %most
  %enough = and i1 %nobody, %few
  br i1 %enough, label %free, label %limit
free:
  ret i32 0
limit:
  call void @acquire(ptr @blas_lock)
  %inside = load i32, ptr @blas_inside
  %threads = call i32 %get()
  %first = icmp eq i32 %inside, 0
  br i1 %first, label %note, label %lower
note:
  store i32 %threads, ptr @blas_before
  store ptr %set, ptr @blas_set
  br label %lower
lower:
  %more = icmp sgt i32 %threads, %most
  br i1 %more, label %change, label %done
change:
  call void %set(i32 %most)
  br label %done
done:
  %one_more = add i32 %inside, 1
  store atomic i32 %one_more, ptr @blas_inside release, align 4
  call void @relinquish(ptr @blas_lock)
  ret i32 1
}

define void @pk_blas_end(i32 %limited) {
entry:
  %no = icmp eq i32 %limited, 0
  br i1 %no, label %out, label %leave
leave:
  call void @acquire(ptr @blas_lock)
  %inside = load i32, ptr @blas_inside
  %left = sub i32 %inside, 1
  %last = icmp eq i32 %left, 0
  br i1 %last, label %restore, label %done
restore:
  call void @blas_restore()
  br label %done
done:
  store atomic i32 %left, ptr @blas_inside release, align 4
  call void @relinquish(ptr @blas_lock)
  br label %out
out:
  ret void
}

define internal void @blas_restore() {
  %set = load ptr, ptr @blas_set
  %before = load i32, ptr @blas_before
  call void %set(i32 %before)
  ret void
}

define internal void @blas_after_fork() {
entry:
  %inside = load i32, ptr @blas_inside
  store i32 0, ptr @blas_inside
  call void @relinquish(ptr @blas_lock)
  %none = icmp eq i32 %inside, 0
  br i1 %none, label %out, label %restore
restore:
  call void @blas_restore()
  br label %out
out:
  ret void
}
"""
