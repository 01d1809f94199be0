"""The text of the native support that all gates share; `boxing` compiles and loads it, and says what it is for.

Plain functions over Python objects, written in LLVM IR with the offsets of `object_layout` filled in (`$NAME$`). They
are calls of C functions strung together, with little for an optimiser to do: comparing dtypes, looking up globals,
handing calls on, asking Python, raising failures; and, in `boxing_ir`, making arrays of results.
"""

from __future__ import annotations

import re
import sys

from parakeet_py.base.tracing import TOOLS
from parakeet_py.llvm.entry.boxing_text import ARRAYS, LENT
from parakeet_py.llvm.entry.callable_type import SLOW_OFFSET
from parakeet_py.llvm.runtime import error_state, loop_polls
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER, Context
from parakeet_py.llvm.runtime.object_layout import Flags, Layout


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


def support_ir(checked: bool = False) -> str:
    """The text of the support module; the `checked` one calls `gate.reference` and `gate.give` where references are
    taken and given away (to what keeps them: the text says so)."""
    text = _COMPARE + _OVERLAP + _CALL + _watched() + ARRAYS + error_state.support_text() + loop_polls.support_text()
    if checked:
        text = _GIVES_AWAY.sub(r"call void @gate.give(ptr \1)", text) + COUNTING
    constants: dict[str, object] = {
        "INCREMENT": "%counted = call i1 @gate.reference(ptr %object)"
        if checked
        else increment_ir("x", "%object").strip(),
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


def _watched() -> str:
    """`gate.watched`: not 0 while a tool asks for events of this thread (see `tracing`)."""
    lines = [
        "@gate.tools = external global i64",
        "declare ptr @gate.PyThreadState_Get()",
        "define i64 @gate.watched() {",
        "  %state = call ptr @gate.PyThreadState_Get()",
        "  %mask = load i64, ptr @gate.tools",
        "  %offset_p = getelementptr i64, ptr @gate.tools, i64 1",
        "  %offset = load i64, ptr %offset_p",
        "  %state.i = ptrtoint ptr %state to i64",
        "  %base = and i64 %state.i, %mask",
        "  %place.i = add i64 %base, %offset",
        "  %place = inttoptr i64 %place.i to ptr",
        "  %seen = load i64, ptr %place",
        "  %tracer_p = getelementptr i64, ptr %place, i64 1",
        "  %tracer = load i64, ptr %tracer_p",
        "  %own = or i64 %seen, %tracer",
    ]
    if sys.version_info < (3, 12):
        return "\n".join((*lines, "  ret i64 %own", "}\n"))
    lines += [
        "  %tools_p = getelementptr i64, ptr @gate.tools, i64 2",
        "  %tools = load ptr, ptr %tools_p",
        f"  %names = load <{TOOLS} x i64>, ptr %tools, align 8",
        f"  %any = call i64 @llvm.vector.reduce.or.v{TOOLS}i64(<{TOOLS} x i64> %names)",
        "  %all = or i64 %own, %any",
        "  ret i64 %all",
        "}",
        f"declare i64 @llvm.vector.reduce.or.v{TOOLS}i64(<{TOOLS} x i64>)\n",
    ]
    return "\n".join(lines)


_GIVES_AWAY = re.compile(r"; gives away ([%@][\w.]+)")
COUNTING = """
declare i1 @gate.reference(ptr)
declare void @gate.give(ptr)
"""

_COMPARE = """
declare i32 @gate.PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @gate.PyDict_GetItemWithError(ptr, ptr)
declare void @gate.PyErr_Clear()
declare i32 @gate.PyDict_Next(ptr, ptr, ptr, ptr)
declare ptr @gate.PyObject_GetAttr(ptr, ptr)

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

; An attribute, borrowed, or null. An object that only the caller would hold is none that the instance has.
define ptr @gate.field(ptr %object, ptr %name) {
entry:
  %value = call ptr @gate.PyObject_GetAttr(ptr %object, ptr %name)
  %none = icmp eq ptr %value, null
  br i1 %none, label %missing, label %drop
missing:
  call void @gate.PyErr_Clear()
  ret ptr null
drop:
  %count = load i64, ptr %value
  %fresh = icmp eq i64 %count, 1
  call void @gate.Py_DecRef(ptr %value)
  %result = select i1 %fresh, ptr null, ptr %value
  ret ptr %result
}

; What a dict holds under a key, borrowed, or null.
define ptr @gate.item(ptr %dict, ptr %key) {
entry:
  %value = call ptr @gate.PyDict_GetItemWithError(ptr %dict, ptr %key)
  %none = icmp eq ptr %value, null
  br i1 %none, label %missing, label %out
missing:
  call void @gate.PyErr_Clear()
  br label %out
out:
  ret ptr %value
}

; The arrays that a random generator draws from, borrowed (they are kept beside it), or null.
define ptr @gate.random_state(ptr %generator, ptr %function) {
entry:
  %args = alloca ptr
  store ptr %generator, ptr %args
  %state = call ptr @gate.PyObject_Vectorcall(ptr %function, ptr %args, i64 1, ptr null)
  %none = icmp eq ptr %state, null
  br i1 %none, label %missing, label %found
missing:
  call void @gate.PyErr_Clear()
  ret ptr null
found:
  call void @gate.Py_DecRef(ptr %state)
  ret ptr %state
}

; Are the keys of a dict these (a tuple of texts and ints), in this order?
define i1 @gate.keys(ptr %dict, ptr %expected) {
entry:
  %place = alloca i64
  %key_p = alloca ptr
  store i64 0, ptr %place
  %count_p = getelementptr i8, ptr %expected, i64 $SIZE$
  %count = load i64, ptr %count_p
  %items = getelementptr i8, ptr %expected, i64 $TUPLE_ITEMS$
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %look]
  %more = call i32 @gate.PyDict_Next(ptr %dict, ptr %place, ptr %key_p, ptr null)
  %ended = icmp eq i32 %more, 0
  %all = icmp eq i64 %k, %count
  %done = or i1 %ended, %all
  %both = and i1 %ended, %all
  br i1 %done, label %out, label %look
look:
  %key = load ptr, ptr %key_p
  %wanted_p = getelementptr ptr, ptr %items, i64 %k
  %wanted = load ptr, ptr %wanted_p
  %k1 = add i64 %k, 1
  %same = call i1 @gate.equal(ptr %key, ptr %wanted)
  br i1 %same, label %loop, label %out
out:
  %good = phi i1 [false, %look], [%both, %loop]
  ret i1 %good
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
declare ptr @gate.PyObject_Call(ptr, ptr, ptr)
declare ptr @gate.PyVectorcall_Call(ptr, ptr, ptr)
declare ptr @gate.PyErr_Occurred()
declare void @gate.PyErr_SetString(ptr, ptr)
declare void @gate.PyErr_SetObject(ptr, ptr)
declare void @gate.Py_DecRef(ptr)
declare void @gate.pk_free_all(ptr)
@gate.PyExc_SystemError = external global ptr
@gate.True = external global i64
@gate.None = external global i64
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

; The `tp_call` of the type of decorated functions: where the pointer of the instance leads, else its `slow`.
define ptr @gate.call(ptr %self, ptr %args, ptr %names) {
entry:
  %pointer_p = getelementptr i8, ptr %self, i64 $HEADER$
  %pointer = load ptr, ptr %pointer_p
  %unset = icmp eq ptr %pointer, null
  br i1 %unset, label %plain, label %enter
enter:
  %r = tail call ptr @gate.PyVectorcall_Call(ptr %self, ptr %args, ptr %names)
  ret ptr %r
plain:
  %slow_p = getelementptr i8, ptr %self, i64 $SLOW$
  %slow = load ptr, ptr %slow_p
  %cleared = icmp eq ptr %slow, null
  br i1 %cleared, label %dying, label %call
dying:
  %error = load ptr, ptr @gate.PyExc_SystemError
  call void @gate.PyErr_SetString(ptr %error, ptr @gone)
  ret ptr null
call:
  %s = tail call ptr @gate.PyObject_Call(ptr %slow, ptr %args, ptr %names)
  ret ptr %s
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

; Raise what the status of a call says: the exception that helper(status, a0, ..., a5) gives or raises; the state of the
; call comes last if it has one. What the helper gives has no traceback through it. An exception already set stays.
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
  %raised = icmp eq ptr %r, null
  %nothing = icmp eq ptr %r, @gate.None
  %done = or i1 %raised, %nothing
  br i1 %done, label %drop, label %given
given:
  %type_p = getelementptr i8, ptr %r, i64 $TYPE$
  %type = load ptr, ptr %type_p
  call void @gate.PyErr_SetObject(ptr %type, ptr %r)
  br label %drop
drop:
  call void @gate.Py_DecRef(ptr %r)
  br label %release
release:
  call void @gate.drop(ptr %first, i64 7)
  br label %out
out:
  ret void
}
"""
