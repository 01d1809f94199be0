"""The text of the native support that all gates share; `boxing` compiles and loads it, and says what it is for.

Plain functions over Python objects, written in LLVM IR with the offsets of `object_layout` filled in (`$NAME$`). They
are calls of C functions strung together, with little for an optimiser to do.

Array results, whose slots are [object, base, block, data, dims, strides], are boxed thus:

- `object`: that very array, one reference more.
- `base`: a view of an array of the caller, read-only if that is.
- `block`, from its start and nobody else's: an array that owns the payload, and gives it back to the runtime when it
  dies (NEP 49 handler).
- `block` otherwise (not from its start, or several results share it): the first result that covers the whole block owns
  it and the others are views of that; if there is none, they are views of an array of bytes made for the purpose.
  `bases` is a count and pairs (block, array), which say what this call has made already.
- `block` that was lent to Python during the call (its count is beyond `LENT`): the array that owns it, or a view of it.

`gate.lend_array` does the same for an operand of an operation that Python does, and marks the block: its count grows by
twice `LENT`, and the owner is noted where the block, which is no longer listed, had its predecessor.
"""

from __future__ import annotations

import sys

from parakeet_py.llvm.callable_type import SLOW_OFFSET
from parakeet_py.llvm.context import BLOCK_HEADER, Context
from parakeet_py.llvm.object_layout import Flags, Layout

LENT = 1 << 61  # references a block has when Python owns it


def increment_ir(name: str, pointer: str) -> str:
    """Lines that add a reference to the object at `pointer`; `name` makes their temporaries unique.

    Python 3.12 and 3.13 count in 32 bits and leave the count of immortal objects, which is at its maximum, alone.
    """
    if sys.version_info < (3, 12):
        return (
            f"  %{name}.count = load i64, ptr {pointer}\n"
            f"  %{name}.more = add i64 %{name}.count, 1\n"
            f"  store i64 %{name}.more, ptr {pointer}\n"
        )
    return (
        f"  %{name}.count = load i32, ptr {pointer}\n"
        f"  %{name}.sum = add i32 %{name}.count, 1\n"
        f"  %{name}.immortal = icmp eq i32 %{name}.sum, 0\n"
        f"  %{name}.more = select i1 %{name}.immortal, i32 %{name}.count, i32 %{name}.sum\n"
        f"  store i32 %{name}.more, ptr {pointer}\n"
    )


def support_ir() -> str:
    """The text of the support module."""
    text = _COMPARE + _OVERLAP + _CALL + _ARRAYS
    constants: dict[str, object] = {
        "INCREMENT": increment_ir("x", "%object").strip(),
        "NATIVE": ord("<"),
        "WRITEABLE": Flags.WRITEABLE,
        "OWNDATA": Flags.OWNDATA,
        "BLOCK_HEADER": BLOCK_HEADER,
        "LENT": LENT,
        "PYTHONS_SHARE": 2 * LENT,
        "STATE": Context.STATE,
        "ARGUMENTS": Context.ARGUMENTS,
        "SLOW": SLOW_OFFSET,
        **{name: value for name, value in vars(Layout).items() if name.isupper()},
    }
    for name, value in constants.items():
        text = text.replace(f"${name}$", str(value))
    return text


_COMPARE = """
declare i32 @gate.PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @gate.PyDict_GetItemWithError(ptr, ptr)
declare void @gate.PyErr_Clear()

define internal void @increment(ptr %object) alwaysinline {
  $INCREMENT$
  ret void
}

; Is this dtype, which is not NumPy's own object, the plain native one with this number?
define i1 @gate.same_dtype(ptr %descr, i32 %number) cold noinline {
  %number_p = getelementptr i8, ptr %descr, i64 $TYPE_NUM$
  %has_number = load i32, ptr %number_p
  %same_number = icmp eq i32 %has_number, %number
  %order_p = getelementptr i8, ptr %descr, i64 $BYTEORDER$
  %order = load i8, ptr %order_p
  %native = icmp eq i8 %order, 61
  %irrelevant = icmp eq i8 %order, 124
  %explicit = icmp eq i8 %order, $NATIVE$
  %good0 = or i1 %native, %irrelevant
  %good = or i1 %good0, %explicit
  %metadata_p = getelementptr i8, ptr %descr, i64 $METADATA$
  %metadata = load ptr, ptr %metadata_p
  %plain = icmp eq ptr %metadata, null
  %a = and i1 %same_number, %good
  %b = and i1 %a, %plain
  ret i1 %b
}

; Are two objects of Python's own int or str equal, and of the same type?
define i1 @gate.equal(ptr %object, ptr %expected) {
entry:
  %same = icmp eq ptr %object, %expected
  br i1 %same, label %yes, label %types
types:
  %type_p = getelementptr i8, ptr %object, i64 $TYPE$
  %type = load ptr, ptr %type_p
  %expected_p = getelementptr i8, ptr %expected, i64 $TYPE$
  %expected_type = load ptr, ptr %expected_p
  %same_type = icmp eq ptr %type, %expected_type
  br i1 %same_type, label %values, label %no
values:
  %r = call i32 @gate.PyObject_RichCompareBool(ptr %object, ptr %expected, i32 2)
  %equal = icmp eq i32 %r, 1
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}

; The value of a global name, borrowed, or null. `builtins` may be null.
define ptr @gate.global(ptr %globals, ptr %builtins, ptr %name) {
entry:
  %value = call ptr @gate.PyDict_GetItemWithError(ptr %globals, ptr %name)
  %found = icmp ne ptr %value, null
  %no_more = icmp eq ptr %builtins, null
  %done = or i1 %found, %no_more
  br i1 %done, label %out, label %second
second:
  %builtin = call ptr @gate.PyDict_GetItemWithError(ptr %builtins, ptr %name)
  br label %out
out:
  %result = phi ptr [%value, %entry], [%builtin, %second]
  %missing = icmp eq ptr %result, null
  br i1 %missing, label %clear, label %return
clear:
  call void @gate.PyErr_Clear()
  br label %return
return:
  ret ptr %result
}
"""

# The same rule as `signature.overlaps_itself`: no overlap if every axis steps over the reach of all finer axes.
_OVERLAP = """
define i1 @gate.overlaps_itself(i64 %rank, ptr %dims, ptr %strides, i64 %itemsize) {
entry:
  br label %axis
axis:
  %k = phi i64 [0, %entry], [%k1, %next]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %look, label %no
look:
  %dim_p = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %dim_p
  %long = icmp sgt i64 %dim, 1
  br i1 %long, label %measure, label %next
measure:
  %stride_p = getelementptr i64, ptr %strides, i64 %k
  %stride0 = load i64, ptr %stride_p
  %negative = sub i64 0, %stride0
  %backward = icmp slt i64 %stride0, 0
  %stride = select i1 %backward, i64 %negative, i64 %stride0
  br label %finer
finer:
  %j = phi i64 [0, %measure], [%j1, %finer_body]
  %reach = phi i64 [%itemsize, %measure], [%reach1, %finer_body]
  %more_j = icmp slt i64 %j, %rank
  br i1 %more_j, label %finer_body, label %compare
finer_body:
  %dim_j_p = getelementptr i64, ptr %dims, i64 %j
  %dim_j = load i64, ptr %dim_j_p
  %stride_j_p = getelementptr i64, ptr %strides, i64 %j
  %stride_j0 = load i64, ptr %stride_j_p
  %negative_j = sub i64 0, %stride_j0
  %backward_j = icmp slt i64 %stride_j0, 0
  %stride_j = select i1 %backward_j, i64 %negative_j, i64 %stride_j0
  %less = icmp slt i64 %stride_j, %stride
  %equal = icmp eq i64 %stride_j, %stride
  %before = icmp slt i64 %j, %k
  %tie = and i1 %equal, %before
  %counts = or i1 %less, %tie
  %steps = sub i64 %dim_j, 1
  %span = mul i64 %steps, %stride_j
  %add = select i1 %counts, i64 %span, i64 0
  %reach1 = add i64 %reach, %add
  %j1 = add i64 %j, 1
  br label %finer
compare:
  %short = icmp slt i64 %stride, %reach
  br i1 %short, label %yes, label %next
next:
  %k1 = add i64 %k, 1
  br label %axis
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_CALL = r"""
declare ptr @gate.PyLong_FromLongLong(i64)
declare i64 @gate.PyLong_AsLong(ptr)
declare ptr @gate.PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @gate.PyErr_Occurred()
declare void @gate.PyErr_SetString(ptr, ptr)
declare void @gate.Py_DecRef(ptr)
declare void @gate.pk_free_all(ptr)
@gate.PyExc_SystemError = external global ptr
@gate.True = external global i64
@gone = private constant [39 x i8] c"call of a function that is being freed\00"

; The vectorcall function of a decorated function without native code: straight to its `slow`.
define ptr @gate.forward(ptr %self, ptr %args, i64 %nargsf, ptr %names) {
entry:
  %slow_p = getelementptr i8, ptr %self, i64 $SLOW$
  %slow = load ptr, ptr %slow_p
  %cleared = icmp eq ptr %slow, null
  br i1 %cleared, label %dying, label %call
dying:
  %error = load ptr, ptr @gate.PyExc_SystemError
  call void @gate.PyErr_SetString(ptr %error, ptr @gone)
  ret ptr null
call:
  %r = tail call ptr @gate.PyObject_Vectorcall(ptr %slow, ptr %args, i64 %nargsf, ptr %names)
  ret ptr %r
}

; Does the Python function `checker` say True of `value`? An exception is a no.
define i1 @gate.opaque(ptr %checker, ptr %value) {
entry:
  %arguments = alloca ptr, align 8
  store ptr %value, ptr %arguments
  call void @increment(ptr %value)
  %r = call ptr @gate.PyObject_Vectorcall(ptr %checker, ptr %arguments, i64 1, ptr null)
  call void @gate.Py_DecRef(ptr %value)
  %failed = icmp eq ptr %r, null
  br i1 %failed, label %clear, label %compare
clear:
  call void @gate.PyErr_Clear()
  ret i1 false
compare:
  %yes = icmp eq ptr %r, @gate.True
  call void @gate.Py_DecRef(ptr %r)
  ret i1 %yes
}

; The number that the Python function `teller` gives; 1 if it fails.
define i32 @gate.ask_threads(ptr %teller) cold noinline {
entry:
  %r = call ptr @gate.PyObject_Vectorcall(ptr %teller, ptr null, i64 0, ptr null)
  %failed = icmp eq ptr %r, null
  br i1 %failed, label %clear, label %read
clear:
  call void @gate.PyErr_Clear()
  ret i32 1
read:
  %n = call i64 @gate.PyLong_AsLong(ptr %r)
  call void @gate.Py_DecRef(ptr %r)
  %n32 = trunc i64 %n to i32
  ret i32 %n32
}

; Drop the references in an array of n objects; null is allowed.
define void @gate.drop(ptr %objects, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %out
body:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %p
  call void @gate.Py_DecRef(ptr %object)
  %i1 = add i64 %i, 1
  br label %loop
out:
  ret void
}

; Raise what the status of a call says: helper(status, a0, ..., a5), and the state of the call if it has
; one. An exception already set stays.
define void @gate.fail(ptr %ctx, ptr %helper, ptr %state) cold noinline {
entry:
  %objects = alloca [9 x ptr], align 8
  store [9 x ptr] zeroinitializer, ptr %objects
  call void @gate.pk_free_all(ptr %ctx)
  %set = call ptr @gate.PyErr_Occurred()
  %already = icmp ne ptr %set, null
  br i1 %already, label %out, label %status
status:
  %first = getelementptr ptr, ptr %objects, i64 1
  %code = load i64, ptr %ctx
  %boxed_code = call ptr @gate.PyLong_FromLongLong(i64 %code)
  store ptr %boxed_code, ptr %first
  %no_code = icmp eq ptr %boxed_code, null
  br i1 %no_code, label %out, label %loop
loop:
  %i = phi i64 [0, %status], [%i1, %boxed]
  %p0 = getelementptr i8, ptr %ctx, i64 $ARGUMENTS$
  %p = getelementptr i64, ptr %p0, i64 %i
  %value = load i64, ptr %p
  %box = call ptr @gate.PyLong_FromLongLong(i64 %value)
  %q0 = getelementptr ptr, ptr %objects, i64 2
  %q = getelementptr ptr, ptr %q0, i64 %i
  store ptr %box, ptr %q
  %failed = icmp eq ptr %box, null
  br i1 %failed, label %release, label %boxed
boxed:
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, 6
  br i1 %more, label %loop, label %call
call:
  %last = getelementptr ptr, ptr %objects, i64 8
  store ptr %state, ptr %last
  %stateless = icmp eq ptr %state, null
  %count = select i1 %stateless, i64 7, i64 8
  %r = call ptr @gate.PyObject_Vectorcall(ptr %helper, ptr %first, i64 %count, ptr null)
  call void @gate.Py_DecRef(ptr %r)
  br label %release
release:
  call void @gate.drop(ptr %first, i64 7)
  br label %out
out:
  ret void
}
"""

_ARRAYS = """
declare ptr @gate.PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @gate.PyArray_SetBaseObject(ptr, ptr)
declare ptr @gate.PyArray_ToList(ptr)
declare void @gate.pk_detach(ptr, ptr)
@gate.ndarray = external global i8
@gate.dtype.uint8 = external global i64
@gate.mem_handler = external global i64

define internal ptr @new_array(ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data, i32 %flags) {
  call void @increment(ptr %descr)
  %n = trunc i64 %rank to i32
  %r = tail call ptr @gate.PyArray_NewFromDescr(ptr @gate.ndarray, ptr %descr, i32 %n, ptr %dims, ptr %strides,
                                                ptr %data, i32 %flags, ptr null)
  ret ptr %r
}

; A new array that owns the payload of `block`.
define internal ptr @owner(ptr %ctx, ptr %block, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data) {
entry:
  %array = call ptr @new_array(ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data, i32 $WRITEABLE$)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %out, label %own
own:
  %flags_p = getelementptr i8, ptr %array, i64 $FLAGS$
  %flags = load i32, ptr %flags_p
  %owning = or i32 %flags, $OWNDATA$
  store i32 %owning, ptr %flags_p
  call void @increment(ptr @gate.mem_handler)
  %handler_p = getelementptr i8, ptr %array, i64 $MEM_HANDLER$
  store ptr @gate.mem_handler, ptr %handler_p
  call void @gate.pk_detach(ptr %ctx, ptr %block)
  br label %out
out:
  ret ptr %array
}

; A new array over the memory of `base`; takes over one reference to `base` even when it fails.
define internal ptr @view(ptr %base, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data) {
entry:
  %base_flags_p = getelementptr i8, ptr %base, i64 $FLAGS$
  %base_flags = load i32, ptr %base_flags_p
  %flags = and i32 %base_flags, $WRITEABLE$
  %array = call ptr @new_array(ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data, i32 %flags)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no_array, label %set
no_array:
  call void @gate.Py_DecRef(ptr %base)
  ret ptr null
set:
  %r = call i32 @gate.PyArray_SetBaseObject(ptr %array, ptr %base)
  %bad = icmp slt i32 %r, 0
  br i1 %bad, label %no_base, label %good
no_base:
  call void @gate.Py_DecRef(ptr %array)
  ret ptr null
good:
  ret ptr %array
}

; Is `array` described by these numbers?
define internal i1 @describes(ptr %array, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data) {
entry:
  %data_p = getelementptr i8, ptr %array, i64 $DATA$
  %its_data = load ptr, ptr %data_p
  %descr_p = getelementptr i8, ptr %array, i64 $DESCR$
  %its_descr = load ptr, ptr %descr_p
  %rank_p = getelementptr i8, ptr %array, i64 $NDIM$
  %its_rank0 = load i32, ptr %rank_p
  %its_rank = zext i32 %its_rank0 to i64
  %a = icmp eq ptr %its_data, %data
  %b = icmp eq ptr %its_descr, %descr
  %c = icmp eq i64 %its_rank, %rank
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  br i1 %abc, label %numbers, label %no
numbers:
  %dims_p = getelementptr i8, ptr %array, i64 $DIMS$
  %its_dims = load ptr, ptr %dims_p
  %strides_p = getelementptr i8, ptr %array, i64 $STRIDES$
  %its_strides = load ptr, ptr %strides_p
  br label %axis
axis:
  %k = phi i64 [0, %numbers], [%k1, %compare]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %compare, label %yes
compare:
  %p1 = getelementptr i64, ptr %its_dims, i64 %k
  %q1 = getelementptr i64, ptr %dims, i64 %k
  %p2 = getelementptr i64, ptr %its_strides, i64 %k
  %q2 = getelementptr i64, ptr %strides, i64 %k
  %d1 = load i64, ptr %p1
  %d2 = load i64, ptr %q1
  %s1 = load i64, ptr %p2
  %s2 = load i64, ptr %q2
  %same_dim = icmp eq i64 %d1, %d2
  %same_stride = icmp eq i64 %s1, %s2
  %same = and i1 %same_dim, %same_stride
  %k1 = add i64 %k, 1
  br i1 %same, label %axis, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The array of a leaf that leaves compiled code only to come back: its block belongs to Python from now on, but is not
; freed while the caller holds the array, or the base of the array if it has one.
define ptr @gate.lend_array(ptr %ctx, ptr %slots, i64 %rank, ptr %descr) {
entry:
  %bases = alloca [3 x i64], align 8
  store i64 0, ptr %bases
  %array = call ptr @gate.box_array(ptr %ctx, ptr %slots, i64 %rank, ptr %descr, ptr %bases)
  %failed = icmp eq ptr %array, null
  %object = load ptr, ptr %slots
  %base_p = getelementptr i64, ptr %slots, i64 1
  %base = load ptr, ptr %base_p
  %is_object = icmp ne ptr %object, null
  %has_base = icmp ne ptr %base, null
  %done0 = or i1 %failed, %is_object
  %done = or i1 %done0, %has_base
  br i1 %done, label %out, label %mark
mark:
  %block_p = getelementptr i64, ptr %slots, i64 2
  %block = load ptr, ptr %block_p
  %count = load i64, ptr %block
  %is_lent = icmp sgt i64 %count, $LENT$
  br i1 %is_lent, label %out, label %lend
lend:
  %its_base_p = getelementptr i8, ptr %array, i64 $BASE$
  %its_base = load ptr, ptr %its_base_p
  %is_owner = icmp eq ptr %its_base, null
  %owner = select i1 %is_owner, ptr %array, ptr %its_base
  %lent_to_p = getelementptr i8, ptr %block, i64 16
  store ptr %owner, ptr %lent_to_p
  %count1 = add i64 %count, $LENT$
  %count2 = add i64 %count1, $LENT$
  store i64 %count2, ptr %block
  br label %out
out:
  ret ptr %array
}

; Count a reference that a function which calls back into Python takes (+1) or drops (-1): to a block, or else to an
; object, of which `gate.hold` keeps count. A block that was lent is done with when only Python's share is left.
@gate.hold = external global ptr
declare void @gate.pk_release(ptr, ptr)
define void @gate.count(ptr %ctx, ptr %block, ptr %object, i64 %delta) {
entry:
  %hold = load ptr, ptr @gate.hold
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %of_object, label %of_block
of_object:
  %no_object = icmp eq ptr %object, null
  br i1 %no_object, label %out, label %ask
ask:
  call void %hold(ptr %ctx, ptr %object, i64 %delta)
  br label %out
of_block:
  %had = load i64, ptr %block
  %has = add i64 %had, %delta
  %last = icmp eq i64 %has, 0
  br i1 %last, label %free, label %set
free:
  call void @gate.pk_release(ptr %ctx, ptr %block)
  br label %out
set:
  store i64 %has, ptr %block
  %only_python = icmp eq i64 %has, $PYTHONS_SHARE$
  br i1 %only_python, label %leave, label %out
leave:
  %lent_to_p = getelementptr i8, ptr %block, i64 16
  %lent_to = load ptr, ptr %lent_to_p
  call void %hold(ptr %ctx, ptr %lent_to, i64 -1)
  br label %out
out:
  ret void
}

define ptr @gate.box_array(ptr %ctx, ptr %slots, i64 %rank, ptr %descr, ptr %bases) {
entry:
  %one_dim = alloca i64, align 8
  %object = load ptr, ptr %slots
  %dims = getelementptr i64, ptr %slots, i64 4
  %strides = getelementptr i64, ptr %dims, i64 %rank
  %base_p = getelementptr i64, ptr %slots, i64 1
  %base = load ptr, ptr %base_p
  %block_p = getelementptr i64, ptr %slots, i64 2
  %block = load ptr, ptr %block_p
  %data_p = getelementptr i64, ptr %slots, i64 3
  %data = load ptr, ptr %data_p
  %is_object = icmp ne ptr %object, null
  br i1 %is_object, label %same, label %not_same
same:
  call void @increment(ptr %object)
  ret ptr %object
not_same:
  %has_base = icmp ne ptr %base, null
  br i1 %has_base, label %of_base, label %of_block
of_base:
  call void @increment(ptr %base)
  %view = tail call ptr @view(ptr %base, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  ret ptr %view
of_block:
  %payload = getelementptr i8, ptr %block, i64 $BLOCK_HEADER$
  %at_start = icmp eq ptr %data, %payload
  %count = load i64, ptr %block
  %is_lent = icmp sgt i64 %count, $LENT$
  br i1 %is_lent, label %lent, label %not_lent
lent:
  %lent_to_p = getelementptr i8, ptr %block, i64 16
  %lent_to = load ptr, ptr %lent_to_p
  call void @increment(ptr %lent_to)
  %the_same = call i1 @describes(ptr %lent_to, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  br i1 %the_same, label %itself, label %view_of_lent
itself:
  ret ptr %lent_to
view_of_lent:
  %view0 = tail call ptr @view(ptr %lent_to, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  ret ptr %view0
not_lent:
  %alone = icmp eq i64 %count, 1
  %simple = and i1 %at_start, %alone
  br i1 %simple, label %own, label %search
own:
  %owner = tail call ptr @owner(ptr %ctx, ptr %block, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  ret ptr %owner
search:
  %known = load i64, ptr %bases
  %pairs = getelementptr i64, ptr %bases, i64 1
  br label %try
try:
  %i = phi i64 [0, %search], [%i1, %differs]
  %more = icmp slt i64 %i, %known
  br i1 %more, label %compare, label %unknown
compare:
  %pair = getelementptr {ptr, ptr}, ptr %pairs, i64 %i
  %its_block = load ptr, ptr %pair
  %found = icmp eq ptr %its_block, %block
  br i1 %found, label %reuse, label %differs
differs:
  %i1 = add i64 %i, 1
  br label %try
reuse:
  %its_base_p = getelementptr ptr, ptr %pair, i64 1
  %its_base = load ptr, ptr %its_base_p
  call void @increment(ptr %its_base)
  %view2 = tail call ptr @view(ptr %its_base, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  ret ptr %view2
unknown:
  %bytes_p = getelementptr i64, ptr %block, i64 1
  %bytes = load i64, ptr %bytes_p
  %itemsize_p = getelementptr i8, ptr %descr, i64 $ITEMSIZE$
  %itemsize = load i64, ptr %itemsize_p
  br label %size
size:
  %axis = phi i64 [0, %unknown], [%axis1, %size_body]
  %total = phi i64 [%itemsize, %unknown], [%total1, %size_body]
  %more_axes = icmp slt i64 %axis, %rank
  br i1 %more_axes, label %size_body, label %sized
size_body:
  %dim_p = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim_p
  %total1 = mul i64 %total, %dim
  %axis1 = add i64 %axis, 1
  br label %size
sized:
  %covers = icmp eq i64 %total, %bytes
  %whole = and i1 %covers, %at_start
  br i1 %whole, label %make_owner, label %make_bytes
make_owner:
  %owner2 = call ptr @owner(ptr %ctx, ptr %block, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  br label %remember
make_bytes:
  store i64 %bytes, ptr %one_dim
  %owner3 = call ptr @owner(ptr %ctx, ptr %block, ptr @gate.dtype.uint8, i64 1, ptr %one_dim, ptr null, ptr %payload)
  br label %remember
remember:
  %made = phi ptr [%owner2, %make_owner], [%owner3, %make_bytes]
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %fail, label %record
fail:
  ret ptr null
record:
  %new_pair = getelementptr {ptr, ptr}, ptr %pairs, i64 %known
  store ptr %block, ptr %new_pair
  %new_base_p = getelementptr ptr, ptr %new_pair, i64 1
  store ptr %made, ptr %new_base_p
  %known1 = add i64 %known, 1
  store i64 %known1, ptr %bases
  br i1 %whole, label %is_result, label %is_base
is_result:
  ret ptr %made
is_base:
  %view3 = tail call ptr @view(ptr %made, ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data)
  ret ptr %view3
}

; A nested list of Python scalars; takes over the reference to `array`, null is allowed.
define ptr @gate.box_list(ptr %array) {
entry:
  %none = icmp eq ptr %array, null
  br i1 %none, label %out, label %list
list:
  %r = call ptr @gate.PyArray_ToList(ptr %array)
  call void @gate.Py_DecRef(ptr %array)
  br label %out
out:
  %result = phi ptr [null, %entry], [%r, %list]
  ret ptr %result
}
"""
