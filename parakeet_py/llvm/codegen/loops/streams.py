"""Large results are stored past the caches.

A store to memory that no cache has reads the line first, and what is stored last drives out what will be read next. For
a result that is larger than caches and that the function itself does not read, a vector loop computes a short run of
elements into a buffer in the first-level cache, and stores that write whole lines (`nontemporal`) take it from there:

    for i in lo .. hi: out[i] := f(i)   ->   for run in lo .. hi by RUN:
                                                 for i in run .. run + RUN: buffer[i - run] := f(i)
                                                 out[run .. run + RUN] := buffer, past the caches

There is one loop for both ways: whether `out` is large is known when it runs, and then decides how long a run is and
where it is stored (a run of all, straight into the array). LLVM makes no vectors of nontemporal stores of scalars.
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.types import Array, is_complex, itemsize
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.arrays import Descriptor
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import Cast, Load, Prim, Reshape, Var

LARGE = 32 * 1024 * 1024  # bytes of a result: as much as third-level caches have
RUN = 2048  # bytes
LINE = 64
_PLAIN = (Prim, Cast, Load)


def streamed(scope: Scope, statement: ir.For) -> Var | None:
    """The result that a vector loop stores, element by element, if it may be stored past the caches."""
    module = scope.f.module
    if statement.kind != "vector" or scope.parent is None or module.checks is not None or not statement.body.statements:
        return None
    if module.host.gpu or module.host.aarch64 or module.host.vector_bits < 256:
        return None
    *before, last = statement.body.statements
    if not isinstance(last, ir.Store) or last.indices != (statement.index,):
        return None
    if not all(isinstance(one, ir.Let) and isinstance(one.rhs, _PLAIN) for one in before):
        return None
    kind = last.array.type
    assert isinstance(kind, Array)
    if kind.layout != "C" or is_complex(kind.dtype) or itemsize(kind.dtype) < 4:
        return None
    unit = scope.unit
    if unit.unread is None:
        unit.unread = _never_read(unit.function)
    return last.array if last.array in unit.unread else None


def _never_read(function: ir.Function) -> set[Var]:
    """New arrays of a function that are its results, and views of all their elements, of which nothing is read."""
    results = {one for one in function.results if isinstance(one, Var) and isinstance(one.type, Array)}
    if not results:
        return set()
    made: dict[Var, Var] = {}  # an array -> the result that it is
    used: set[Var] = set()
    for one in ir.walk(function.body):
        if isinstance(one, ir.Let) and isinstance(one.rhs, ir.NewArray) and one.out in results:
            made[one.out] = one.out
        elif isinstance(one, ir.Let) and isinstance(one.rhs, Reshape) and one.rhs.base in made:
            made[one.out] = made[one.rhs.base]
        elif isinstance(one, ir.Store):
            used.update(var for var in (*one.indices, one.value) if isinstance(var, Var))
        elif not isinstance(one, ir.Release | ir.Retain):
            used.update(var for var in ir.operands_in(one) if isinstance(var, Var))
    read = {made[one] for one in used if one in made}
    return {one for one, result in made.items() if result not in read}


def write(scope: Scope, array: Var, first: str, last: str, loop: Callable[[str, str], None]) -> None:
    """Write a vector loop over [first, last) that stores into an array; `loop` writes it for a part of the range."""
    f = scope.f
    descriptor = scope.array(array)
    size = itemsize(descriptor.type.dtype)
    data = descriptor["data"]
    elements = descriptor["extent0"]
    buffer = f.alloca(f"[{RUN} x i8]", LINE)
    with f.inner():
        address = f.value(f"ptrtoint ptr {data} to i64")
        begin = f.binary("add", "i64", address, f.binary("mul", "i64", first, str(size)))
        aligned = f.binary("icmp eq", "i64", f.binary("and", "i64", begin, str(LINE - 1)), "0")
        large = f.binary("and", "i1", aligned, f.binary("icmp sge", "i64", elements, str(LARGE // size)))
        step = f.select(large, "i64", str(RUN // size), f.binary("sub", "i64", last, first))
        body, end = f.label("run"), f.label("runs")
        before = f.block
        f.branch_if(f.binary("icmp slt", "i64", first, last), body, end)
        f.begin(body)
        start = f.fresh("start")
        counting = f.reserve()
        following = f.binary("add", "i64", start, step)
        stop = f.select(f.binary("icmp slt", "i64", following, last), "i64", following, last)
        back = f.binary(
            "sub", "i64", f.value(f"ptrtoint ptr {buffer} to i64"), f.binary("mul", "i64", start, str(size))
        )
        place = f.value(f"inttoptr i64 {f.select(large, 'i64', back, address)} to ptr")
        scope.values[array] = Descriptor(descriptor.type, {**descriptor.fields, "data": place}, descriptor.source)
        loop(start, stop)
        scope.values[array] = descriptor
        copying, copied = f.label("copy"), f.label("copied")
        f.branch_if(large, copying, copied)
        f.begin(copying)
        with f.inner():
            to = f.value(f"getelementptr i8, ptr {data}, i64 {f.binary('mul', 'i64', start, str(size))}")
            _past_caches(scope, to, buffer, f.binary("mul", "i64", f.binary("sub", "i64", stop, start), str(size)))
        f.branch(copied)
        f.begin(copied)
        f.fill(counting, f"{start} = phi i64 [ {first}, %{before} ], [ {following}, %{f.block} ]")
        f.branch_if(f.binary("icmp slt", "i64", following, last), body, end, _as_it_is(scope))
        f.begin(end)
        f.effect(f"call void {f.module.declare('void', 'llvm.x86.sse.sfence', '')}()")


def _as_it_is(scope: Scope) -> str:
    """What says that LLVM is to leave a loop as it is."""
    hints = ('!{!"llvm.loop.unroll.disable"}', '!{!"llvm.loop.vectorize.enable", i1 false}')
    nodes = ", ".join(scope.f.module.shared_node(hint) for hint in hints)
    return f", !llvm.loop {scope.f.node(f'distinct !{{self, {nodes}}}')}"


def _past_caches(scope: Scope, target: str, source: str, size: str) -> None:
    """Copy so many bytes, line by line; what is not a whole line goes through the caches."""
    f = scope.f
    whole = f.binary("and", "i64", size, str(-LINE))
    node = f.module.shared_node("!{i32 1}")
    body, end = f.label("line"), f.label("lines")
    before = f.block
    f.branch_if(f.binary("icmp sgt", "i64", whole, "0"), body, end)
    f.begin(body)
    at = f.fresh("at")
    counting = f.reserve()
    with f.inner():
        line = f.value(f"load <16 x i32>, ptr {f.value(f'getelementptr i8, ptr {source}, i64 {at}')}, align {LINE}")
        place = f.value(f"getelementptr i8, ptr {target}, i64 {at}")
        f.effect(f"store <16 x i32> {line}, ptr {place}, align {LINE}, !nontemporal {node}")
        following = f.binary("add", "i64", at, str(LINE))
        f.fill(counting, f"{at} = phi i64 [ 0, %{before} ], [ {following}, %{f.block} ]")
        f.branch_if(f.binary("icmp slt", "i64", following, whole), body, end, _as_it_is(scope))
    f.begin(end)
    copy = f.module.declare("void", "llvm.memcpy.p0.p0.i64", "ptr, ptr, i64, i1")
    to, source = (f.value(f"getelementptr i8, ptr {one}, i64 {whole}") for one in (target, source))
    f.effect(f"call void {copy}(ptr {to}, ptr {source}, i64 {f.binary('sub', 'i64', size, whole)}, i1 false)")
