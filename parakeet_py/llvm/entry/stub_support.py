"""What all gates share, in low-level Python; `boxing` compiles and loads it, and says what it is for.

Plain functions over Python objects, with the offsets of `object_layout` for constants. They are calls of C functions
strung together, with little for an optimiser to do: comparing dtypes, looking up globals, handing calls on, asking
Python, raising failures; and, in `boxing_text`, making arrays of results.
"""

from __future__ import annotations

import ctypes
import sys

from parakeet_py.base.frames.tracing import COUNTS, FRAMED, TOOLS
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.boxing_text import ARRAYS
from parakeet_py.llvm.entry.callable_type import SLOW_OFFSET
from parakeet_py.llvm.runtime import error_state, loop_polls
from parakeet_py.llvm.runtime.array_memory import FIELDS, LENT
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER, INTERRUPTED, Context
from parakeet_py.llvm.runtime.object_layout import Flags, Layout

COUNTS_32 = sys.version_info >= (3, 12)
GETS_METHODS = hasattr(ctypes.pythonapi, "_PyObject_GetMethod")  # without binding them, which takes longer
LAYOUT = {name: value for name, value in vars(Layout).items() if name.isupper()}


def increment_ir(name: str, pointer: str) -> str:
    """Lines that add a reference to the object at `pointer`; `name` makes their temporaries unique.

    From Python 3.12 on counts have 32 bits, and those of immortal objects, which are negative, stay as they are.
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
        f"  %{name}.immortal = icmp slt i32 %{name}.count, 0\n"
        f"  %{name}.more = select i1 %{name}.immortal, i32 %{name}.count, i32 %{name}.sum\n"
        f"  store i32 %{name}.more, ptr {pointer}\n"
    )


INCREMENT = Source(
    """
@internal.alwaysinline
def increment(object: ptr):
    if CHECKED:
        reference(object)
    elif COUNTS_32:
        count = object.i32
        object.i32 = count if count < 0 else count + 1
    else:
        object.i64 += 1
""",
    {"CHECKED": False, "COUNTS_32": COUNTS_32},
)


def support(checked: bool = False) -> tuple[Source, ...]:
    """The support module; the `checked` one calls `gate.reference` and `gate.give` where references are taken and
    given away (to what keeps them)."""
    constants = {
        "CHECKED": checked,
        "COUNTS_32": COUNTS_32,
        "NATIVE": ord("<"),
        "WRITEABLE": Flags.WRITEABLE,
        "OWNDATA": Flags.OWNDATA,
        "BYTES": 8,
        "LENT_TO": FIELDS["PREVIOUS"],
        "BLOCK_HEADER": BLOCK_HEADER,
        "LENT": LENT,
        "INTERRUPTED": INTERRUPTED,
        "FAILURE": Context.ARGUMENTS - 8,  # the status is the first of seven numbers
        "SLOW": SLOW_OFFSET,
        "STATE": Context.STATE,
        "BLOCKS": Context.BLOCKS,
        "GETS_METHODS": GETS_METHODS,
        **LAYOUT,
    }
    texts = (_COUNTING if checked else "", INCREMENT.text, _COMPARE, _CALL, ARRAYS)
    return (
        *(Source(text, constants) for text in texts),
        WATCHED,
        error_state.SUPPORT,
        loop_polls.SUPPORT,
        HANDING_BACK,
        CLOCK,
    )


_COUNTING = """
def reference(object: ptr) -> i1: ...
def give(object: ptr): ...
"""

_COMPARE = """
def PyObject_RichCompareBool(left: ptr, right: ptr, how: i32) -> i32: ...
def PyDict_GetItemWithError(dict: ptr, key: ptr) -> ptr: ...
def PyErr_Clear(): ...
def _PyObject_New(kind: ptr) -> ptr: ...
int64: extern("dtype.int64")
int64_type: extern("numpy.int64")
method_type: extern("method")
settings: extern
told: extern
reloads: extern
def PyDict_Next(dict: ptr, place: ptr, key: ptr, value: ptr) -> i32: ...
def PyObject_GetAttr(object: ptr, name: ptr) -> ptr: ...
def _PyObject_GetMethod(object: ptr, name: ptr, method: ptr) -> i32: ...

# Is this dtype, which is not NumPy's own object, the plain native one with this number?
@cold.noinline
def same_dtype(descr: ptr, number: i32) -> i1:
    order = descr.BYTEORDER.i8
    native = (order == 61) | (order == 124) | (order == NATIVE)
    return (descr.TYPE_NUM.i32 == number) & native & (descr.METADATA.ptr == null)

# Are two objects of Python's own int or str equal, and of the same type?
def equal(object: ptr, expected: ptr) -> i1:
    if object == expected:
        return True
    return object.TYPE.ptr == expected.TYPE.ptr and PyObject_RichCompareBool(object, expected, 2) == 1

@internal
def or_clear(value: ptr) -> ptr:
    if value == null:
        PyErr_Clear()
    return value

# An attribute, borrowed, or null. An object that only the caller would hold is none that the instance has.
def field(object: ptr, name: ptr) -> ptr:
    value = or_clear(PyObject_GetAttr(object, name))
    if value == null:
        return null
    references = value.i64
    Py_DecRef(value)
    return null if references == 1 else value

# The function behind a method of an object's class, borrowed, or null: also where the object has another of that name.
def method_of(object: ptr, name: ptr) -> ptr:
    place = alloca(ptr)
    place.ptr = null
    of_class = i32(0)
    if GETS_METHODS:
        of_class = _PyObject_GetMethod(object, name, place)
    else:
        place.ptr = PyObject_GetAttr(object, name)
    found = or_clear(place.ptr)
    if found == null:
        return null
    function = found
    if of_class == 0:
        if found.TYPE.ptr == method_type and found.METHOD_OBJECT.ptr == object:
            function = found.METHOD_FUNCTION.ptr
        elif field(object.TYPE.ptr, name) != found:
            function = null
    Py_DecRef(found)
    return function

# What a dict holds under a key, borrowed, or null.
def item(dict: ptr, key: ptr) -> ptr:
    return or_clear(PyDict_GetItemWithError(dict, key))

# The arrays that a random generator draws from, borrowed (they are kept beside it), or null.
def random_state(generator: ptr, function: ptr) -> ptr:
    arguments = alloca(ptr)
    arguments.ptr = generator
    state = or_clear(PyObject_Vectorcall(function, arguments, 1, null))
    Py_DecRef(state)
    return state

# What a function gives for an object, a new reference, or null.
def derived(object: ptr, function: ptr) -> ptr:
    arguments = alloca(ptr)
    arguments.ptr = object
    return or_clear(PyObject_Vectorcall(function, arguments, 1, null))

# Is this a time: an array of a dtype with this number and unit, or a scalar of a `kind`?
def is_time(object: ptr, number: i32, unit: i64, kind: ptr) -> i1:
    if object.TYPE.ptr == kind:
        return object.TIME_UNIT.i64 == unit
    if object.TYPE.ptr != ndarray:
        return False
    descr = object.DESCR.ptr
    return same_dtype(descr, number) and descr.C_METADATA.ptr.UNIT.i64 == unit

# The int64 that a time is, a new reference: the array over the memory of an array, or a number; null of other objects.
def times(object: ptr, number: i32, unit: i64, kind: ptr) -> ptr:
    if not is_time(object, number, unit, kind):
        return null
    if object.TYPE.ptr == kind:
        made = or_clear(_PyObject_New(int64_type))
        if made != null:
            made.TIME.i64 = object.TIME.i64
        return made
    increment(object)
    return or_clear(view(object, int64, i64(object.NDIM.i32), object.DIMS.ptr, object.STRIDES.ptr, object.DATA.ptr))

# Are the keys of a dict these (a tuple of texts and ints), in this order?
def keys(dict: ptr, expected: ptr) -> i1:
    place = alloca(i64)
    key = alloca(ptr)
    place.i64 = 0
    count = expected.SIZE.i64
    k = 0
    while PyDict_Next(dict, place, key, null) != 0:
        if k == count or not equal(key.ptr, expected.TUPLE_ITEMS.ptr[k]):
            return False
        k += 1
    return k == count

@internal.noinline
def look_up(globals: ptr, builtins: ptr, name: ptr, known: ptr, tag: i64, tag_of_builtins: i64) -> ptr:
    value = PyDict_GetItemWithError(globals, name)
    if value == null and builtins != null:
        value = PyDict_GetItemWithError(builtins, name)
    if value == null:
        PyErr_Clear()
    elif (tag != 0) & (tag_of_builtins != 0):
        known.i64[2] = tag
        known.i64[3] = tag_of_builtins
        known.ptr[4] = value
    return value

# The value of a global name, borrowed, or null. `builtins` may be null. `known` has the addresses of the tags of both
# dicts (see `signature.patches`), the tags at which the value was last looked up, and that value.
@symbol("gate.global")
def global_value(globals: ptr, builtins: ptr, name: ptr, known: ptr) -> ptr:
    tag = known.ptr.i64
    tag_of_builtins = known.ptr[1].i64
    if (tag == known.i64[2]) & (tag_of_builtins == known.i64[3]):
        return known.ptr[4]
    return look_up(globals, builtins, name, known, tag, tag_of_builtins)

@internal
def absolute(number: i64) -> i64:
    return -number if number < 0 else number

# The same rule as `signature.overlaps_itself`: no overlap if every axis steps over the reach of all finer axes.
def overlaps_itself(rank: i64, dims: ptr, strides: ptr, itemsize: i64) -> i1:
    axis = 0
    while axis < rank:
        if dims.i64[axis] > 1:
            stride = absolute(strides.i64[axis])
            reach = itemsize
            other = 0
            while other < rank:
                step = absolute(strides.i64[other])
                if step < stride or (step == stride and other < axis):
                    reach += (dims.i64[other] - 1) * step
                other += 1
            if stride < reach:
                return True
        axis += 1
    return False
"""

_CALL = r"""
def PyLong_FromLongLong(number: i64) -> ptr: ...
def PyLong_AsLong(number: ptr) -> i64: ...
def PyObject_Vectorcall(function: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr: ...
def PyObject_Call(function: ptr, arguments: ptr, names: ptr) -> ptr: ...
def PyVectorcall_Call(function: ptr, arguments: ptr, names: ptr) -> ptr: ...
def PyErr_Occurred() -> ptr: ...
def PyErr_Fetch(type: ptr, value: ptr, traceback: ptr): ...
def PyErr_Restore(type: ptr, value: ptr, traceback: ptr): ...
def PyTraceBack_Here(frame: ptr) -> i32: ...
def PyErr_SetString(type: ptr, text: ptr): ...
def PyErr_SetObject(type: ptr, value: ptr): ...
def Py_DecRef(object: ptr): ...
def pk_free_all(ctx: ptr): ...
PyExc_SystemError: extern
true_object: extern("True")
none_object: extern("None")
int_type: extern("int")
gone = b"call of a function that is being freed\0"

@internal
def refuse() -> ptr:
    PyErr_SetString(PyExc_SystemError.ptr, gone)
    return null

# The vectorcall function of a decorated function without native code: straight to its `slow`.
def forward(self: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    slow = self.SLOW.ptr
    if slow == null:
        return refuse()
    return PyObject_Vectorcall(slow, arguments, nargsf, names)

# The `tp_call` of the type of decorated functions: where the pointer of the instance leads, else its `slow`.
def call(self: ptr, arguments: ptr, names: ptr) -> ptr:
    if self.HEADER.ptr != null:
        return PyVectorcall_Call(self, arguments, names)
    slow = self.SLOW.ptr
    if slow == null:
        return refuse()
    return PyObject_Call(slow, arguments, names)

# Does the Python function `checker` say True of `value`? An exception is a no.
def opaque(checker: ptr, value: ptr) -> i1:
    arguments = alloca(ptr)
    arguments.ptr = value
    increment(value)
    answer = or_clear(PyObject_Vectorcall(checker, arguments, 1, null))
    Py_DecRef(value)
    Py_DecRef(answer)
    return answer == true_object

# Free what is left of a call's memory, and drop its state, unless that is still the one of all calls.
def clean(ctx: ptr, initial: ptr):
    held = ctx.STATE.ptr
    if held != initial or ctx.BLOCKS.ptr != null:
        pk_free_all(ctx)
        Py_DecRef(null if held == initial else held)

# Is a call so small that a team leaves it to the CPU (see `small_calls`)? What it has of arrays must not be longer, and
# ints must be the same.
@internal
def is_small(small: ptr, args: ptr) -> i1:
    overflow = alloca(i32)
    place = small + 16
    left = small.i64[1]
    while left > 0:
        value = args.ptr[place.i64]
        rank = place.i64[1]
        place += 16
        if rank < 0:
            if value.TYPE.ptr != int_type:
                return False
            number = PyLong_AsLongLongAndOverflow(value, overflow)
            if (overflow.i32 != 0) | (number != place.i64):
                return False
            rank = 1
        else:
            if value.TYPE.ptr != ndarray:
                return False
            if i64(value.NDIM.i32) != rank:
                return False
            axis = 0
            while axis < rank:
                if value.DIMS.ptr.i64[axis] > place.i64[axis]:
                    return False
                axis += 1
        place += 8 * rank
        left -= 1
    return True

# The number that the Python function `teller` gives; 1 if it fails.
@internal.noinline
def answer_of(teller: ptr) -> i64:
    answer = or_clear(PyObject_Vectorcall(teller, null, 0, null))
    if answer == null:
        return 1
    number = PyLong_AsLong(answer)
    Py_DecRef(answer)
    return number

# What the function has said under the settings in force, which it has noted in `told`; else it is asked.
@internal.noinline
def known_answer(teller: ptr) -> i64:
    if watched() != 0:
        return 0
    place = alloca(ptr)
    place.ptr = null
    PyContextVar_Get(settings, null, place)
    here = place.ptr
    Py_DecRef(here)
    row = told
    while row.ptr != teller:
        row += 32
    if (row.ptr[1] != here) | (row.i64[2] != reloads.i64):
        return answer_of(teller)
    return row.i64[3]

# The answer of `teller`. Of a team that has the CPU it is negative: the CPU's threads, and above 16 bits what the team
# is called in `small`; 0 if the call is not so small.
@noinline
def ask_threads(teller: ptr, small: ptr, args: ptr) -> i32:
    number = known_answer(teller)
    if number < 0:
        number = 0 - number
        if (number >> 16) != small.i64:
            return 0
        if not is_small(small, args):
            return 0
        number &= 65535
    return i32(number)

# Drop the references in an array of n objects; null is allowed.
def drop(objects: ptr, n: i64):
    i = 0
    while i < n:
        Py_DecRef(objects.ptr[i])
        i += 1

# Give the exception of a signal handler a place in the function: the frame that helper(status) gives, or
# helper(status, state).
@internal
def place_interrupt(helper: ptr, state: ptr):
    error = alloca(ptr, 3)
    status = alloca(ptr, 2)
    PyErr_Fetch(error, error + 8, error + 16)
    status.ptr = PyLong_FromLongLong(INTERRUPTED)
    status.ptr[1] = state
    frame = or_clear(PyObject_Vectorcall(helper, status, 1 if state == null else 2, null))
    PyErr_Restore(error.ptr, error.ptr[1], error.ptr[2])
    if frame != null:
        PyTraceBack_Here(frame)
    Py_DecRef(frame)
    Py_DecRef(status.ptr)

# Raise what the status of a call says: the exception that helper(status, a0, ..., a5) gives or raises; the state of the
# call comes last if it has one. What the helper gives has no traceback through it. An exception already set stays.
@cold.noinline
def fail(ctx: ptr, helper: ptr, state: ptr):
    pk_free_all(ctx)
    if PyErr_Occurred() != null:
        if ctx.i64 == INTERRUPTED:
            place_interrupt(helper, state)
        return
    objects = alloca(ptr, 9)
    memset(objects, 0, 72)
    numbers = objects + 8
    i = 0
    while i < 7:
        number = PyLong_FromLongLong(ctx.i64 if i == 0 else ctx.FAILURE.i64[i])
        numbers.ptr[i] = number
        if number == null:
            drop(numbers, 7)
            return
        i += 1
    numbers.ptr[7] = state
    given = PyObject_Vectorcall(helper, numbers, 7 if state == null else 8, null)
    if given != null and given != none_object:
        PyErr_SetObject(given.TYPE.ptr, given)
    Py_DecRef(given)
    drop(numbers, 7)
"""

# `gate.hand_back(ctx, site, arguments, results)` has a Python function do an operation, and gives the status that it
# gives. What a handler of a signal raises where that function is entered, outside of any handler of exceptions, comes
# here. The function is called again then, with ~site and the exception, and raises it at the operation. If that fails,
# too (there is no room for another call), the call ends as by a handler of a signal.
HANDING_BACK = Source(
    """
def PyLong_AsLong(number: ptr) -> i64: ...
def PyLong_FromLongLong(number: i64) -> ptr: ...
def PyObject_Vectorcall(function: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr: ...
def PyErr_Fetch(kind: ptr, value: ptr, traceback: ptr): ...
def PyErr_Restore(kind: ptr, value: ptr, traceback: ptr): ...
def PyErr_NormalizeException(kind: ptr, value: ptr, traceback: ptr): ...
def PyException_SetTraceback(value: ptr, traceback: ptr) -> i32: ...
def PyEval_RestoreThread(thread: ptr): ...
def PyEval_SaveThread() -> ptr: ...
def Py_DecRef(object: ptr): ...
enters: extern

# The answer of the function, or FAILED.
@internal
def ask_to_enter(ctx: ptr, site: i64, arguments: ptr, results: ptr, error: ptr) -> i64:
    words = alloca(ptr, 5)
    words.ptr = PyLong_FromLongLong(i64(ctx))
    words.ptr[1] = PyLong_FromLongLong(site)
    words.ptr[2] = PyLong_FromLongLong(i64(arguments))
    words.ptr[3] = PyLong_FromLongLong(i64(results))
    words.ptr[4] = error
    answer = null
    if words.ptr != null and words.ptr[1] != null and words.ptr[2] != null and words.ptr[3] != null:
        answer = PyObject_Vectorcall(enters.ptr, words, 4 if error == null else 5, null)
    i = 0
    while i < 4:
        Py_DecRef(words.ptr[i])
        i += 1
    if answer == null:
        return FAILED
    status = PyLong_AsLong(answer)
    Py_DecRef(answer)
    return status

@internal.noinline
def ask_again(ctx: ptr, site: i64, arguments: ptr, results: ptr) -> i64:
    error = alloca(ptr, 3)
    PyErr_Fetch(error, error + 8, error + 16)
    PyErr_NormalizeException(error, error + 8, error + 16)
    if error.ptr[2] != null:
        PyException_SetTraceback(error.ptr[1], error.ptr[2])
    status = ask_to_enter(ctx, ~site, arguments, results, error.ptr[1])
    if status != FAILED:
        Py_DecRef(error.ptr)
        Py_DecRef(error.ptr[1])
        Py_DecRef(error.ptr[2])
        return status
    PyErr_Restore(error.ptr, error.ptr[1], error.ptr[2])
    ctx.ORDER.i64 = FIRST_OF_ALL
    atomic_store(ctx.i64, INTERRUPTED, "monotonic")
    return INTERRUPTED

def hand_back(ctx: ptr, site: i64, arguments: ptr, results: ptr) -> i32:
    thread = i64(atomic_load(ctx.THREAD.ptr, "monotonic"))
    if thread == 0:
        return enters.ptr[1].i32(ctx, site, arguments, results)
    if ugt(thread, BRIEF):
        PyEval_RestoreThread(ptr(thread))
    status = ask_to_enter(ctx, site, arguments, results, null)
    if status == FAILED:
        status = ask_again(ctx, site, arguments, results)
    if ugt(thread, BRIEF):
        saved = PyEval_SaveThread()
        atomic_store(ctx.THREAD.ptr, saved, "monotonic")
    return i32(status)
""",
    {
        "BRIEF": loop_polls.BRIEF,
        "FAILED": 1,
        "FIRST_OF_ALL": -(1 << 63),
        "INTERRUPTED": INTERRUPTED,
        "ORDER": Context.ORDER,
        "THREAD": Context.THREAD,
    },
)

WATCHED = Source(
    f"""
def PyThreadState_Get() -> ptr: ...
tools: extern

@internal.noinline
def seen_here(monitored: i64) -> i64:
    thread = i64(PyThreadState_Get())
    place = ptr((thread & tools.i64) + tools.i64[1])
    seen = monitored | place.i64 | place.i64[1]
    if seen != 0 and tools.i64[FRAMED] == thread:
        seen = 0
    return seen

# Not 0 while a tool asks for events of this thread, but of a call in a frame that the tool has seen (see `tracing`).
def watched() -> i64:
    counts = tools.ptr[COUNTS]
    monitored = 0
    if MONITORED:
        names = tools.ptr[2]
        monitored = {" | ".join(f"names.i64[{k}]" for k in range(TOOLS))}
    if (monitored | counts.i64 | counts.i64[1]) == 0:
        return 0
    return seen_here(monitored)
""",
    {"MONITORED": sys.version_info >= (3, 12), "FRAMED": FRAMED, "COUNTS": COUNTS},
)

CLOCK = Source(
    """
def clock_gettime(clock: i32, time: ptr) -> i32: ...

# Nanoseconds of the monotonic clock.
def now() -> i64:
    time = alloca(i64, 2)
    clock_gettime(MONOTONIC, time)
    return time.i64 * 1000000000 + time.i64[1]
""",
    {"MONOTONIC": 1},
)
