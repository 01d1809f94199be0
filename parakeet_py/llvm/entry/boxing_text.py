"""What makes Python objects of array results, in low-level Python; part of the module of `stub_support`.

Array results, whose slots are [object, base, block, data, dims, strides], are boxed thus:

- `object`: that very array, one reference more.
- `base`: a view of an array of the caller, read-only if that is; of the caller's memmap, a memmap (NumPy's
  `__array_finalize__` runs for it).
- `block`, from its start, not shared: an array that owns the payload, and gives it back to the runtime when it
  dies (NEP 49 handler). Its strides are 0, as NumPy's,
  if it is empty.
- `block` otherwise (not from its start, or several results share it): the first result that covers the whole block owns
  it and the others are views of that; if there is none, they are views of an array of bytes made for the purpose.
  `bases` is a count and pairs (block, array), which say what this call has made already.
- `block` that was lent to Python during the call (its count is beyond `LENT` of `array_memory`): the array that owns
  it, or a view of it.

`gate.lend_array` does the same for an operand of an operation that Python does, and marks the block: its count grows by
twice `LENT`, and the owner is noted where the block, which is no longer listed, had its predecessor.
"""

from __future__ import annotations

ARRAYS = """
def PyArray_NewFromDescr(
    kind: ptr, descr: ptr, rank: i32, dims: ptr, strides: ptr, data: ptr, flags: i32, object: ptr
) -> ptr: ...
def PyArray_SetBaseObject(array: ptr, base: ptr) -> i32: ...
def PyArray_ToList(array: ptr) -> ptr: ...
def PyArray_Scalar(place: ptr, descr: ptr, array: ptr) -> ptr: ...
def PySequence_List(object: ptr) -> ptr: ...
def PyList_New(count: i64) -> ptr: ...
def PyList_GetSlice(list: ptr, start: i64, stop: i64) -> ptr: ...
def PyLong_AsLongLongAndOverflow(number: ptr, overflow: ptr) -> i64: ...
def pk_detach(ctx: ptr, block: ptr): ...
def pk_release(ctx: ptr, block: ptr): ...
float_type: extern("float")
ndarray: extern
memmap: extern
uint8: extern("dtype.uint8")
mem_handler: extern
hold: extern
no_strides: i64[64]

@internal
def new_array(descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr, flags: i32) -> ptr:
    increment(descr)
    if CHECKED:
        give(descr)
    return PyArray_NewFromDescr(ndarray, descr, i32(rank), dims, strides, data, flags, null)

@internal
def new_view(base: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    flags = base.FLAGS.i32 & WRITEABLE
    if base.TYPE.ptr != memmap:
        return new_array(descr, rank, dims, strides, data, flags)
    increment(descr)
    if CHECKED:
        give(descr)
    return PyArray_NewFromDescr(memmap, descr, i32(rank), dims, strides, data, flags, base)

# A new array that owns the payload of `block`.
@internal
def owner(ctx: ptr, block: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    array = new_array(descr, rank, dims, strides, data, WRITEABLE)
    if array != null:
        array.FLAGS.i32 |= OWNDATA
        increment(mem_handler)
        if CHECKED:
            give(mem_handler)
        array.MEM_HANDLER.ptr = mem_handler
        pk_detach(ctx, block)
    return array

# A new array over the memory of `base`; takes over one reference to `base` even when it fails.
@internal
def view(base: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    array = new_view(base, descr, rank, dims, strides, data)
    if array == null:
        Py_DecRef(base)
        return null
    if CHECKED:
        give(base)
    if PyArray_SetBaseObject(array, base) < 0:
        Py_DecRef(array)
        return null
    return array

# Is `array` described by these numbers?
@internal
def describes(array: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> i1:
    if array.DATA.ptr != data or array.DESCR.ptr != descr or i64(array.NDIM.i32) != rank:
        return False
    axis = 0
    while axis < rank:
        if array.DIMS.ptr.i64[axis] != dims.i64[axis] or array.STRIDES.ptr.i64[axis] != strides.i64[axis]:
            return False
        axis += 1
    return True

# The array of a leaf that leaves compiled code only to come back: its block belongs to Python from now on, but is not
# freed while the caller holds the array, or the base of the array if it has one.
def lend_array(ctx: ptr, slots: ptr, rank: i64, descr: ptr) -> ptr:
    bases = alloca(i64, 3)
    bases.i64 = 0
    array = box_array(ctx, slots, rank, descr, bases, False)
    if array != null and slots.ptr == null and slots.ptr[1] == null:
        block = slots.ptr[2]
        count = block.i64
        if count <= LENT:
            base = array.BASE.ptr
            block.LENT_TO.ptr = array if base == null else base
            block.i64 = count + 2 * LENT
    return array

# Count a reference that a function which calls back into Python takes (+1) or drops (-1): to a block, or else to an
# object, of which `gate.hold` keeps count. A block that was lent is done with when only Python's share is left.
def count(ctx: ptr, block: ptr, object: ptr, delta: i64):
    if block == null:
        if object != null:
            hold.ptr.void(ctx, object, delta)
        return
    references = block.i64 + delta
    if references == 0:
        pk_release(ctx, block)
        return
    block.i64 = references
    if references == 2 * LENT:
        hold.ptr.void(ctx, block.LENT_TO.ptr, -1)

# `itself`: a result of the same elements before it is the same array, not one of which this is a view.
def box_array(ctx: ptr, slots: ptr, rank: i64, descr: ptr, bases: ptr, itself: i1) -> ptr:
    object = slots.ptr
    if object != null:
        increment(object)
        return object
    base = slots.ptr[1]
    block = slots.ptr[2]
    data = slots.ptr[3]
    dims = slots + 32
    strides = dims + rank * 8
    if base != null:
        increment(base)
        return view(base, descr, rank, dims, strides, data)
    references = block.i64
    if references > LENT:
        lent_to = block.LENT_TO.ptr
        increment(lent_to)
        if describes(lent_to, descr, rank, dims, strides, data):
            return lent_to
        return view(lent_to, descr, rank, dims, strides, data)
    payload = block + BLOCK_HEADER
    bytes = block.BYTES.i64
    if (data == payload) & (references == 1):
        return owner(ctx, block, descr, rank, dims, no_strides if bytes == 0 else strides, data)
    known = bases.i64
    i = 0
    while i < known:
        pair = bases + (8 + 16 * i)
        if pair.ptr == block:
            base = pair.ptr[1]
            increment(base)
            if itself & describes(base, descr, rank, dims, strides, data):
                return base
            return view(base, descr, rank, dims, strides, data)
        i += 1
    total = descr.ITEMSIZE.i64
    axis = 0
    while axis < rank:
        total *= dims.i64[axis]
        axis += 1
    whole = (total == bytes) & (data == payload)
    if whole:
        made = owner(ctx, block, descr, rank, dims, strides, data)
    else:
        one_dim = alloca(i64)
        one_dim.i64 = bytes
        made = owner(ctx, block, uint8, 1, one_dim, null, payload)
    if made == null:
        return null
    pair = bases + (8 + 16 * known)
    pair.ptr = block
    pair.ptr[1] = made
    bases.i64 = known + 1
    if whole:
        return made
    return view(made, descr, rank, dims, strides, data)

# A nested list of Python scalars; takes over the reference to `array`, null is allowed.
def box_list(array: ptr) -> ptr:
    if array == null:
        return null
    made = PyArray_ToList(array)
    Py_DecRef(array)
    return made

# The elements of an array of one axis. (Iterators of arrays end with an exception, whose text takes longer than this.)
@internal
def scalars_of(array: ptr) -> ptr:
    count = array.DIMS.ptr.i64
    place = array.DATA.ptr
    items = PyList_New(count)
    k = 0
    while k < count and items != null:
        item = PyArray_Scalar(place, array.DESCR.ptr, array)
        if item == null:
            Py_DecRef(items)
            return null
        items.LIST_ITEMS.ptr.ptr[k] = item
        if CHECKED:
            give(item)
        place += array.STRIDES.ptr.i64
        k += 1
    return items

# A list of what iterating over the array gives; takes over the reference to the array.
def box_items(array: ptr) -> ptr:
    if array == null:
        return null
    made = null
    if array.NDIM.i32 == 1:
        made = scalars_of(array)
    else:
        made = PySequence_List(array)
    Py_DecRef(array)
    return made

@internal
def rows_of(items: ptr, ends: ptr) -> ptr:
    count = ends.DIMS.ptr.i64 - 1
    rows = PyList_New(count)
    if rows == null:
        return null
    k = 0
    while k < count:
        row = PyList_GetSlice(items, ends.DATA.ptr.i64[k], ends.DATA.ptr.i64[k + 1])
        if row == null:
            Py_DecRef(rows)
            return null
        rows.LIST_ITEMS.ptr.ptr[k] = row
        if CHECKED:
            give(row)
        k += 1
    return rows

# A list of parts of a list, each from one of the places in the array of int64 `ends` to the next.
# Takes over both references, null is allowed.
def box_rows(items: ptr, ends: ptr) -> ptr:
    rows: ptr = null
    if items != null:
        rows = rows_of(items, ends)
    Py_DecRef(items)
    Py_DecRef(ends)
    return rows

# A new array of the items of a list, floats or ints as `kind` says; null if some are something else, or do not fit.
def read_list(list: ptr, descr: ptr, kind: ptr) -> ptr:
    overflow = alloca(i32)
    array = new_array(descr, 1, list.SIZE, null, null, 0)
    if array == null:
        PyErr_Clear()
        return null
    count = list.SIZE.i64
    k = 0
    while k < count:
        item = list.LIST_ITEMS.ptr.ptr[k]
        overflow.i32 = 1
        if item.TYPE.ptr == kind:
            if kind == float_type:
                number = item.HEADER.i64
                overflow.i32 = 0
            else:
                number = PyLong_AsLongLongAndOverflow(item, overflow)
            array.DATA.ptr.i64[k] = number
        if overflow.i32 != 0:
            Py_DecRef(array)
            return null
        k += 1
    return array
"""
