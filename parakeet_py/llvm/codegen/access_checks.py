"""Checks in generated code: of every access to an array's elements, and of every block that is counted.

A descriptor of checked code has two more fields, `low` and `high`: the memory in which it may be read and written. That
is the block it was made with, the span of an argument or of what Python has given back, or an array on the stack; views
have that of what they are views of. Before an access is looked at: is the block alive, does the element lie in that
memory, is each index within its extent? Loops of libraries get whole arrays; their spans are looked at before, and
whether their extents agree, as such loops ask one array alone. So are arrays that leave the function for a procedure,
for Python or as results, where nothing is known of them but their extents and strides.

Addresses are compared as integers: an address that is computed `inbounds` and is not has no value at all.

Arrays on the stack lie between red zones, which are looked at when the function returns.

What fails is a failure of the compiled function, with a code of its own after those of the user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from parakeet_py.base import routines
from parakeet_py.base.types import Array, itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.runtime.array_memory import LENT
from parakeet_py.llvm.safety import faults
from parakeet_py.typed_ir.ir import Var

if TYPE_CHECKING:
    from parakeet_py.llvm.codegen.arrays import Descriptor
    from parakeet_py.llvm.codegen.builder import FunctionText
    from parakeet_py.llvm.codegen.scope import Scope

RANGE = ("low", "high")
ZONE = 64  # bytes on both sides of an array on the stack
_WORD = -0x5A5A5A5A5A5A5A5B  # eight bytes 0xA5


def span(emit: Callable[[str], str], array: Descriptor) -> dict[str, str]:
    """The memory that the elements of an array lie in, as fields; empty if it has none."""
    size = itemsize(array.type.dtype)
    data = emit(f"ptrtoint ptr {array['data']} to i64")
    low, high, empty = data, emit(f"add i64 {data}, {size}"), "false"
    for axis in range(array.type.rank):
        extent, stride = array[f"extent{axis}"], array[f"stride{axis}"]
        reach = emit(f"mul i64 {emit(f'sub i64 {extent}, 1')}, {stride}")
        backward = emit(f"icmp slt i64 {reach}, 0")
        low = emit(f"add i64 {low}, {emit(f'select i1 {backward}, i64 {reach}, i64 0')}")
        high = emit(f"add i64 {high}, {emit(f'select i1 {backward}, i64 0, i64 {reach}')}")
        empty = emit(f"or i1 {empty}, {emit(f'icmp slt i64 {extent}, 1')}")
    high = emit(f"select i1 {empty}, i64 {low}, i64 {high}")
    return {"low": emit(f"inttoptr i64 {low} to ptr"), "high": emit(f"inttoptr i64 {high} to ptr")}


def inherited(f: FunctionText, base: Descriptor) -> dict[str, str]:
    """The fields that a view takes over from what it is a view of."""
    return {} if f.module.checks is None else {name: base[name] for name in RANGE}


def whole(f: FunctionText, data: str, size: str) -> dict[str, str]:
    """The fields of an array that is all of its memory."""
    if f.module.checks is None:
        return {}
    return {"low": data, "high": f.value(f"getelementptr i8, ptr {data}, i64 {size}")}


# ---- statements ------------------------------------------------------------------------------------------------------


def check_access(scope: Scope, array: Var, indices: Sequence[str], what: str) -> None:
    """Look at an element before it is read or written."""
    f, descriptor = scope.f, scope.array(array)
    bad_index = "false"
    place = f.value(f"ptrtoint ptr {descriptor['data']} to i64")
    for axis, index in enumerate(indices):
        beyond = f.value(f"icmp uge i64 {index}, {descriptor[f'extent{axis}']}")
        bad_index = f.value(f"or i1 {bad_index}, {beyond}")
        place = f.value(f"add i64 {place}, {f.value(f'mul i64 {index}, ' + descriptor[f'stride{axis}'])}")
    end = f.value(f"add i64 {place}, {itemsize(descriptor.type.dtype)}")
    fault = f.select(bad_index, "i64", str(faults.INDEX), "0")
    fault = f.select(_outside(f, descriptor, place, end), "i64", str(faults.OUTSIDE), fault)
    fault = f.select(_is_dead(f, descriptor), "i64", str(faults.DEAD_BLOCK), fault)
    _fail_on(scope, fault, f"{what} {array!r}{'[' + ', '.join('?' * len(indices)) + ']' if indices else ''}")


def check_arrays(scope: Scope, arrays: Sequence[Var], what: str) -> None:
    """Look at whole arrays before a library reads and writes them."""
    for array in arrays:
        check_array(scope, scope.array(array), f"{what} {array!r}")


def check_array(scope: Scope, descriptor: Descriptor, what: str) -> None:
    """Look at a whole array."""
    f = scope.f
    low, high = (f.value(f"ptrtoint ptr {place} to i64") for place in span(f.value, descriptor).values())
    some, negative = f.value(f"icmp ne i64 {low}, {high}"), "false"
    for extent in descriptor.extents:
        negative = f.value(f"or i1 {negative}, {f.value(f'icmp slt i64 {extent}, 0')}")
    fault = f.select(_outside(f, descriptor, low, high), "i64", str(faults.OUTSIDE), "0")
    fault = f.select(_is_dead(f, descriptor), "i64", str(faults.DEAD_BLOCK), fault)
    fault = f.select(some, "i64", fault, "0")
    _fail_on(scope, f.select(negative, "i64", str(faults.INDEX), fault), what)


def check_extents(scope: Scope, pairs: Iterable[tuple[str, str]], what: str) -> None:
    """Look whether extents agree of which a library asks one alone."""
    f, differ = scope.f, "false"
    for left, right in pairs:
        if left != right:
            differ = f.value(f"or i1 {differ}, {f.value(f'icmp ne i64 {left}, {right}')}")
    _fail_on(scope, f.select(differ, "i64", str(faults.INDEX), "0"), what)


def check_product(scope: Scope, out: Var, left: Var, right: Var) -> None:
    """Look at the arrays of a matrix product; vectors have one row on the left, one column on the right."""
    check_arrays(scope, (out, left, right), "matrix product with")
    first, second = scope.array(left).extents, scope.array(right).extents
    inner = (first.pop(), second.pop(0))
    check_extents(
        scope,
        [inner, *zip(scope.array(out).extents, [*first, *second], strict=True)],
        f"matrix product with {out!r}",
    )


def check_routine(scope: Scope, name: str, outs: Sequence[Var], ins: Sequence[Var]) -> None:
    """Look at the arrays of a loop of NumPy's; all have as many lines, and sizes of one number are the same."""
    check_arrays(scope, (*outs, *ins), f"{name} with")
    shapes, pairs = routines.shapes(name), []
    sizes: dict[int, str] = {}
    lines = scope.array(outs[0])["extent0"]
    for array, axes in zip((*ins, *outs), (*shapes.ins, *shapes.outs), strict=True):
        first, *others = scope.array(array).extents
        pairs.append((lines, first))
        pairs += [(sizes.setdefault(size, extent), extent) for size, extent in zip(axes, others, strict=True)]
    check_extents(scope, pairs, f"{name} with {outs[0]!r}")


def check_run(scope: Scope, array: Var, start: Sequence[str], count: str, what: str) -> None:
    """Look at `count` adjacent elements, beginning with one, before they are read."""
    f, descriptor = scope.f, scope.array(array)
    assert isinstance(array.type, Array)
    check_array(scope, descriptor, f"{what} {array!r}")
    bad = f.value(f"icmp slt i64 {count}, 0")
    for axis, index in enumerate(start):
        run = count if axis == (0 if array.type.layout == "F" else array.type.rank - 1) else "1"
        end, before = f.value(f"add i64 {index}, {run}"), f.value(f"icmp slt i64 {index}, 0")
        beyond = f.value(f"icmp sgt i64 {end}, {descriptor[f'extent{axis}']}")
        bad = f.value(f"or i1 {bad}, {f.value(f'or i1 {before}, {beyond}')}")
    some = f.value(f"icmp ne i64 {count}, 0")
    _fail_on(scope, f.select(f.value(f"and i1 {some}, {bad}"), "i64", str(faults.INDEX), "0"), f"{what} {array!r}[?]")


def check_pack(scope: Scope, op: ir.Pack) -> None:
    """Look at where values that are packed are stored: their flags are counted before."""
    f, what = scope.f, "selection with"
    check_arrays(scope, (op.array, op.values, op.flags), what)
    place, end, count = (scope.scalar(each) for each in (op.place, op.end, op.count))
    bad = f.value(f"icmp slt i64 {place}, 0")
    for number, array in ((end, op.array), (count, op.values), (count, op.flags)):
        beyond = f.value(f"icmp sgt i64 {number}, {scope.array(array)['extent0']}")
        bad = f.value(f"or i1 {bad}, {beyond}")
    _fail_on(scope, f.select(bad, "i64", str(faults.INDEX), "0"), f"{what} {op.array!r}")
    function = f.module.declare("i64", "pk_flags_set", "ptr, i64")
    chosen = f.value(f"call i64 {function}(ptr {scope.array(op.flags)['data']}, i64 {count})")
    beyond = f.value(f"icmp sgt i64 {f.value(f'add i64 {place}, {chosen}')}, {end}")
    _fail_on(scope, f.select(beyond, "i64", str(faults.INDEX), "0"), f"{what} {op.array!r}[?]")


def check_leaving(scope: Scope, array: Descriptor, what: str) -> None:
    """Look at an array, and at the objects that its memory belongs to, before it leaves the function."""
    check_array(scope, array, what)
    for name in ("object", "base"):
        if array[name] != "null":
            check_object(scope, array[name], what, null=True)


def check_owner(scope: Scope, array: Descriptor, what: str) -> None:
    """Look whether the memory of an array belongs to an object or is a block."""
    f, owners = scope.f, "0"
    for name in ("object", "base", "block"):
        if array[name] != "null":
            owners = f.value(f"or i64 {owners}, {f.value(f'ptrtoint ptr {array[name]} to i64')}")
    _fail_on(scope, f.select(f.value(f"icmp eq i64 {owners}, 0"), "i64", str(faults.NO_OWNER), "0"), what)


def check_count(scope: Scope, block: str, object_: str, holder: object, release: bool) -> None:
    """Look at a block, or at an object, before its references are counted; null is allowed."""
    f = scope.f
    what = f"{'release' if release else 'retain'} {holder!r}"
    if block != "null":
        function = f.module.declare("i64", "pk_block_fault", "ptr")
        _fail_on(scope, f.value(f"call i64 {function}(ptr {block})"), what)
    if object_ != "null":
        check_object(scope, object_, what, null=True)


def check_object(scope: Scope, object_: str, what: str, null: bool = False) -> None:
    """Look at a pointer that has to be one to a Python object (or, with `null`, none)."""
    f = scope.f
    function = f.module.declare("i64", "pk_object_fault", "ptr")
    fault = f.value(f"call i64 {function}(ptr {object_})")
    if null:
        fault = f.select(f.value(f"icmp eq ptr {object_}, null"), "i64", "0", fault)
    _fail_on(scope, fault, what)


def _outside(f: FunctionText, array: Descriptor, low: str, high: str) -> str:
    first, last = (f.value(f"ptrtoint ptr {array[name]} to i64") for name in RANGE)
    before, behind = f.value(f"icmp ult i64 {low}, {first}"), f.value(f"icmp ugt i64 {high}, {last}")
    return f.value(f"or i1 {before}, {behind}")


def _is_dead(f: FunctionText, array: Descriptor) -> str:
    """Has the block of an array, if it has one, been freed? Blocks are kept for a while after that. Those that Python
    owns may be freed as soon as compiled code has no reference left."""
    block = array["block"]
    if block == "null":
        return "false"
    if f.module.is_new("pk.alive"):
        f.module.functions.append("@pk.alive = private constant i64 1, align 8")
    own = f.value(f"icmp eq ptr {block}, null")
    place = f.value(f"select i1 {own}, ptr @pk.alive, ptr {block}")
    count = f.value(f"load volatile i64, ptr {place}")
    lent = f.value(f"icmp ult i64 {f.value(f'sub i64 {count}, {LENT + 1}')}, {LENT}")
    return f.value(f"or i1 {lent}, {f.value(f'icmp slt i64 {count}, 1')}")


def _fail_on(scope: Scope, fault: str, operation: str) -> None:
    f = scope.f
    assert f.module.checks is not None
    if fault == "0":
        return
    code = f.module.checks.code(operation)
    scope.leave_if(f.value(f"icmp ne i64 {fault}, 0"), scope.failure(code, scope.order, [fault]))


# ---- red zones on the stack ------------------------------------------------------------------------------------------


def zoned(f: FunctionText, size: int) -> str:
    """Memory on the stack between red zones, made and marked once, when the function is entered."""
    whole_ = f.alloca(f"[{size + 2 * ZONE} x i8]", 64)
    data = f.entry_value(f"getelementptr inbounds i8, ptr {whole_}, i64 {ZONE}")
    for place in (f.entry_value(f"getelementptr inbounds i8, ptr {whole_}, i64 {at}") for at in _words(size)):
        f.entry_effect(f"store volatile i64 {_WORD}, ptr {place}, align 1")
    f.zones.append((whole_, size))
    return data


def _words(size: int) -> list[int]:
    """Where the words of the red zones begin."""
    return [start + 8 * word for start in (0, ZONE + size) for word in range(ZONE // 8)]


def check_zones(scope: Scope) -> None:
    """Look at the red zones before the function returns."""
    f = scope.f
    for whole_, size in f.zones:
        changed = "0"
        for at in _words(size):
            place = f.value(f"getelementptr inbounds i8, ptr {whole_}, i64 {at}")
            word = f.value(f"load volatile i64, ptr {place}, align 1")
            changed = f.value(f"or i64 {changed}, {f.value(f'xor i64 {word}, {_WORD}')}")
        fault = f.select(f.value(f"icmp ne i64 {changed}, 0"), "i64", str(faults.STACK), "0")
        _fail_on(scope, fault, f"return from {scope.unit.function.name}")
