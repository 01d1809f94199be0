"""The text of what makes Python objects of array results; part of the module of `support_ir`.

Array results, whose slots are [object, base, block, data, dims, strides], are boxed thus:

- `object`: that very array, one reference more.
- `base`: a view of an array of the caller, read-only if that is.
- `block`, from its start, not shared: an array that owns the payload, and gives it back to the runtime when it
  dies (NEP 49 handler). Its strides are 0, as NumPy's,
  if it is empty.
- `block` otherwise (not from its start, or several results share it): the first result that covers the whole block owns
  it and the others are views of that; if there is none, they are views of an array of bytes made for the purpose.
  `bases` is a count and pairs (block, array), which say what this call has made already.
- `block` that was lent to Python during the call (its count is beyond `LENT`): the array that owns it, or a view of it.

`gate.lend_array` does the same for an operand of an operation that Python does, and marks the block: its count grows by
twice `LENT`, and the owner is noted where the block, which is no longer listed, had its predecessor.
"""

LENT = 1 << 61  # references a block has when Python owns it

ARRAYS = """
declare ptr @gate.PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @gate.PyArray_SetBaseObject(ptr, ptr)
declare ptr @gate.PyArray_ToList(ptr)
declare ptr @gate.PySequence_List(ptr)
declare ptr @gate.PyList_New(i64)
declare i64 @gate.PyLong_AsLongLongAndOverflow(ptr, ptr)
@gate.float = external global i64
declare ptr @gate.PyList_GetSlice(ptr, i64, i64)
declare void @gate.pk_detach(ptr, ptr)
@gate.ndarray = external global i8
@gate.dtype.uint8 = external global i64
@gate.mem_handler = external global i64
@no_strides = private constant [64 x i64] zeroinitializer

define internal ptr @new_array(ptr %descr, i64 %rank, ptr %dims, ptr %strides, ptr %data, i32 %flags) {
  call void @increment(ptr %descr)
  ; gives away %descr
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
  ; gives away @gate.mem_handler
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
  ; gives away %base
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
  %own_bytes_p = getelementptr i64, ptr %block, i64 1
  %own_bytes = load i64, ptr %own_bytes_p
  %empty = icmp eq i64 %own_bytes, 0
  %own_strides = select i1 %empty, ptr @no_strides, ptr %strides
  %owner = tail call ptr @owner(ptr %ctx, ptr %block, ptr %descr, i64 %rank, ptr %dims, ptr %own_strides, ptr %data)
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

; A list of what iterating over the array gives; takes over the reference to the array.
define ptr @gate.box_items(ptr %array) {
entry:
  %none = icmp eq ptr %array, null
  br i1 %none, label %out, label %list
list:
  %r = call ptr @gate.PySequence_List(ptr %array)
  call void @gate.Py_DecRef(ptr %array)
  br label %out
out:
  %result = phi ptr [null, %entry], [%r, %list]
  ret ptr %result
}

; A list of parts of a list, each from one of the places in the array of int64 `ends` to the next.
; Takes over both references, null is allowed.
define ptr @gate.box_rows(ptr %items, ptr %ends) {
entry:
  %none = icmp eq ptr %items, null
  br i1 %none, label %drop, label %start
start:
  %dims_p = getelementptr i8, ptr %ends, i64 $DIMS$
  %dims = load ptr, ptr %dims_p
  %places = load i64, ptr %dims
  %count = sub i64 %places, 1
  %data_p = getelementptr i8, ptr %ends, i64 $DATA$
  %data = load ptr, ptr %data_p
  %rows = call ptr @gate.PyList_New(i64 %count)
  %failed = icmp eq ptr %rows, null
  br i1 %failed, label %drop, label %fill
fill:
  %slots_p = getelementptr i8, ptr %rows, i64 $LIST_ITEMS$
  %slots = load ptr, ptr %slots_p
  br label %loop
loop:
  %k = phi i64 [0, %fill], [%k1, %store]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %part, label %drop
part:
  %first_p = getelementptr i64, ptr %data, i64 %k
  %first = load i64, ptr %first_p
  %k1 = add i64 %k, 1
  %last_p = getelementptr i64, ptr %data, i64 %k1
  %last = load i64, ptr %last_p
  %row = call ptr @gate.PyList_GetSlice(ptr %items, i64 %first, i64 %last)
  %missing = icmp eq ptr %row, null
  br i1 %missing, label %give_up, label %store
store:
  %slot = getelementptr ptr, ptr %slots, i64 %k
  store ptr %row, ptr %slot
  ; gives away %row
  br label %loop
give_up:
  call void @gate.Py_DecRef(ptr %rows)
  br label %drop
drop:
  %r = phi ptr [null, %entry], [null, %start], [%rows, %loop], [null, %give_up]
  call void @gate.Py_DecRef(ptr %items)
  call void @gate.Py_DecRef(ptr %ends)
  ret ptr %r
}

; A new array of the items of a list, floats or ints as `kind` says; null if some are something else, or do not fit.
define ptr @gate.read_list(ptr %list, ptr %descr, ptr %kind) {
entry:
  %overflow = alloca i32
  %count_p = getelementptr i8, ptr %list, i64 $SIZE$
  %array = call ptr @new_array(ptr %descr, i64 1, ptr %count_p, ptr null, ptr null, i32 0)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %memory, label %start
memory:
  call void @gate.PyErr_Clear()
  ret ptr null
start:
  %count = load i64, ptr %count_p
  %data_p = getelementptr i8, ptr %array, i64 $DATA$
  %data = load ptr, ptr %data_p
  %items_p = getelementptr i8, ptr %list, i64 $LIST_ITEMS$
  %items = load ptr, ptr %items_p
  %floats = icmp eq ptr %kind, @gate.float
  br label %loop
loop:
  %k = phi i64 [0, %start], [%k1, %float], [%k1, %fits]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %item, label %out
item:
  %k1 = add i64 %k, 1
  %place = getelementptr i64, ptr %data, i64 %k
  %item_p = getelementptr ptr, ptr %items, i64 %k
  %object = load ptr, ptr %item_p
  %type_p = getelementptr i8, ptr %object, i64 $TYPE$
  %type = load ptr, ptr %type_p
  %same = icmp eq ptr %type, %kind
  br i1 %same, label %number, label %give_up
number:
  br i1 %floats, label %float, label %int
float:
  %bits_p = getelementptr i8, ptr %object, i64 $HEADER$
  %bits = load i64, ptr %bits_p
  store i64 %bits, ptr %place
  br label %loop
int:
  %value = call i64 @gate.PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %good = icmp eq i32 %over, 0
  br i1 %good, label %fits, label %give_up
fits:
  store i64 %value, ptr %place
  br label %loop
give_up:
  call void @gate.Py_DecRef(ptr %array)
  ret ptr null
out:
  ret ptr %array
}
"""
