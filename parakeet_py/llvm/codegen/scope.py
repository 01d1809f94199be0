"""What is known while the statements of one LLVM function are written.

A compiled function becomes an entry and one LLVM function for each parallel region. A region knows the values around it
by *capture*: the first use of an outer value takes a slot of the region's frame, which the caller fills just before the
region starts. So a frame holds exactly what its region uses, field by field, and the region loads it once, on top.

Failures of a region are numbered from one that the frame holds, too: so the code of two regions that only differ in
them is the same, and is compiled once.
"""

from __future__ import annotations

from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Object, Scalar, Type, is_complex, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.arrays import AliasScopes, AnyValue, Descriptor, complete, field_names, field_type
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, MEMORY_TYPE, FunctionText, ModuleText, constant, is_literal
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.typed_ir.ir import Const, Operand, Var
from parakeet_py.typed_ir.semantics import OVERFLOW

UNLIKELY = '!{!"branch_weights", i32 1, i32 1048575}'


@record(frozen=False)
class Unit:
    """One compiled function: the module it goes to and what its LLVM functions share."""

    function: ir.Function
    module: ModuleText
    regions: int = 0
    hands_back: bool = False  # it calls back into Python
    polls: bool = True  # its loops look up for signals
    looks: bool = False  # some of them ask whether a handler has raised; others leave that to these
    extents: frozenset[Var] | None = None  # variables that are extents of arrays, once they are asked for
    unread: set[Var] | None = None  # its results of which it reads nothing, once they are asked for
    is_region: bool = False  # its outermost function is a region itself
    returns: str = "i32"  # what its outermost function returns: the status, and after it results of a procedure
    library: dict[str, ir.Function] = field(default_factory=dict)  # the procedures of the library, by name

    def attributes(self, f: FunctionText) -> str:
        """The attributes of a finished LLVM function."""
        # vectors kept across calls lie on the stack: unless it is aligned to them, each costs two cache lines
        aligned = f"alignstack={self.module.host.vector_bits // 8} " if f.calls_vector_functions else ""
        return f'nounwind {aligned}"prefer-vector-width"="{self.module.host.vector_bits}"'

    def value(self, scope: Scope, let: ir.Let) -> AnyValue:
        """The value of a right-hand side that only some machines have."""
        raise NotImplementedError(f"{let.rhs!r} on a CPU")

    def statement(self, scope: Scope, statement: ir.Statement) -> None:
        """Write a statement that only some machines have."""
        raise NotImplementedError(f"{statement!r} on a CPU")

    def failure(self, scope: Scope, code: int, order: str, arguments: list[str]) -> list[str]:
        """The lines that record a failure and leave."""
        f = scope.f
        function = f.module.declare("void", "pk_fail", f"ptr{', i64' * 8}", "cold nounwind")
        words = "".join(f", i64 {item}" for item in [*arguments, *"000000"][:6])
        own = 0 < code < len(self.function.failures)  # one of those of the source
        if not own or not self.function.library:
            if own and scope.parent is not None and f.module.checks is None:
                return scope.failure_by_frame(function, code, order, words)
            return [f"call void {function}(ptr %ctx, i64 {order}, i64 {code}{words})", scope.leave(str(code))]
        place, first, status, wide = (f.fresh(name) for name in ("place", "first", "status", "wide"))
        return [
            f"{place} = getelementptr inbounds i8, ptr %ctx, i64 {Context.FAILURES}",
            f"{first} = load i32, ptr {place}",
            f"{status} = add i32 {first}, {code}",
            f"{wide} = sext i32 {status} to i64",
            f"call void {function}(ptr %ctx, i64 {order}, i64 {wide}{words})",
            scope.leave(status),
        ]

    def leave(self, scope: Scope, status: str) -> str:
        """The instruction that leaves the LLVM function with a status."""
        if scope.parent is not None:
            return "ret void"
        if self.returns == "i32":
            return f"ret i32 {status}"
        value = scope.f.fresh("left")
        return f"{value} = insertvalue {self.returns} poison, i32 {status}, 0\n  ret {self.returns} {value}"

    def overflow_code(self, pos: object) -> int:
        """The failure code of an integer overflow at a place."""
        codes = [code for code, site in enumerate(self.function.failures) if site.failure.message == OVERFLOW]
        here = [code for code in codes if self.function.failures[code].pos == pos]
        if not codes:
            raise ValueError(f"{self.function.name} has checked arithmetic but no overflow among its failures")
        return (here or codes)[0]


@record(frozen=False)
class LoopGroup:
    """An access group: memory accesses that are independent between iterations of a loop, except those to arrays made
    inside the loop, which every iteration makes anew in the same place."""

    node: str
    own_arrays: frozenset[Var]
    own_roots: frozenset[int]


@record(frozen=False)
class Scope:
    """The LLVM function being written.

    Attributes
    ----------
    parent : the scope a region captures from; None in the entry
    exits : labels that a Break goes to, innermost last
    loops : the loops around, innermost last
    entered : ranges that are known to have elements here, see `loops.nests`
    polled : whether some of its loops poll
    order : the iteration number that a failing arithmetic check reports
    """

    unit: Unit
    f: FunctionText
    parent: Scope | None = None
    aliases: AliasScopes = field(init=False)
    values: dict[Var, AnyValue] = field(default_factory=dict)
    cells: dict[ir.Cell, dict[str, str]] = field(default_factory=dict)
    captured_cells: dict[ir.Cell, AnyValue] = field(default_factory=dict)
    frame: list[tuple[str, str]] = field(default_factory=list)
    exits: list[str] = field(default_factory=list)
    loops: list[ir.For | ir.While] = field(default_factory=list)
    entered: set[tuple[str, str]] = field(default_factory=set)
    polled: bool = False
    groups: list[LoopGroup] = field(default_factory=list)
    order: str = "0"
    bits: dict[Var, frozenset[Var]] = field(default_factory=dict)  # single bits, see `loops.hints.is_bit`
    chained: frozenset[Var] = frozenset()  # quotients of the innermost loop, see `loops.quotients`
    steady: frozenset[Var] = frozenset()  # those of an innermost vector loop by what it does not change
    limits: dict[str, tuple[str, str]] = field(default_factory=dict)  # of recursion, see `calls`
    _captures: dict[str, str] = field(default_factory=dict)
    _failures: dict[tuple[int, str, str], list[str]] = field(default_factory=dict)
    _first_failure: tuple[int, int] | None = None  # its code, and where in the frame that is

    def __post_init__(self) -> None:
        self.aliases = AliasScopes(self.f)

    # ---- values --------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> AnyValue:
        """The value of an operand."""
        return constant(operand) if isinstance(operand, Const) else self.lookup(operand)

    def scalar(self, operand: Operand) -> str:
        """The value of a real scalar (or object) operand."""
        value = self.operand(operand)
        assert isinstance(value, str), operand
        return value

    def array(self, var: Var) -> Descriptor:
        value = self.lookup(var)
        assert isinstance(value, Descriptor), var
        return value

    def lookup(self, var: Var) -> AnyValue:
        if var not in self.values:
            assert self.parent is not None, f"{var} is not bound"
            self.values[var] = self._capture_value(var.type, self.parent.lookup(var))
        return self.values[var]

    def _capture_value(self, kind: Type, value: AnyValue) -> AnyValue:
        if isinstance(value, Descriptor):
            outer = value
            return Descriptor(value.type, {}, lambda name: self.capture(outer[name], field_type(name)))
        if isinstance(value, tuple):
            assert isinstance(kind, Scalar)
            part = LLVM_TYPE[real_dtype(kind.dtype)]
            return self.capture(value[0], part), self.capture(value[1], part)
        return self.capture(value, "ptr" if isinstance(kind, Object) else LLVM_TYPE[_dtype(kind)])

    def capture(self, outer: str, kind: str) -> str:
        """The region's copy of a value of the scope around it."""
        if is_literal(outer):
            return outer
        if outer not in self._captures:
            place = "%frame"
            if self.frame:
                place = self.f.entry_value(f"getelementptr inbounds i8, ptr %frame, i64 {8 * len(self.frame)}")
            self.frame.append((outer, kind))
            if kind == "i1":
                byte = self.f.entry_value(f"load i8, ptr {place}")
                self._captures[outer] = self.f.entry_value(f"trunc i8 {byte} to i1")
            else:
                self._captures[outer] = self.f.entry_value(f"load {kind}, ptr {place}")
                if kind == "i64" and self.parent is not None and (bound := self.parent.f.bound(outer)) is not None:
                    self.f.bounds[self._captures[outer]] = bound
        return self._captures[outer]

    def fill_frame(self, region: Scope) -> str:
        """Store what a region captured; gives the frame's address."""
        if not region.frame:
            return "null"
        frame = self.f.alloca(f"[{len(region.frame)} x i64]", 8)
        for slot, (value, kind) in enumerate(region.frame):
            place = self.f.value(f"getelementptr inbounds i8, ptr {frame}, i64 {8 * slot}") if slot else frame
            if kind == "i1":
                value, kind = self.f.value(f"zext i1 {value} to i8"), "i8"
            self.f.effect(f"store {kind} {value}, ptr {place}")
        return frame

    def _parts(self, kind: Type) -> list[tuple[str, str]]:
        return _parts(kind, self.f.module.checks is not None)

    # ---- cells ---------------------------------------------------------------------------------------------------

    def declare(self, cell: ir.Cell, init: AnyValue | None = None) -> None:
        """Make a cell: memory in the entry block that LLVM turns into values. It has a value from the start, as what is
        counted may be released before it is written."""
        if cell not in self.cells:
            self.cells[cell] = {name: self.f.alloca(kind) for name, kind in self._parts(cell.type)}
        if init is not None:
            self.write(cell, init)
        elif not isinstance(cell.type, Scalar):
            for name, kind in self._parts(cell.type):
                self.f.effect(f"store {kind} {'null' if kind == 'ptr' else 0}, ptr {self.cells[cell][name]}")

    def write(self, cell: ir.Cell, value: AnyValue) -> None:
        places = self.cells[cell]
        for position, (name, kind) in enumerate(self._parts(cell.type)):
            if isinstance(value, Descriptor):
                item = value[name]
            else:
                item = value if isinstance(value, str) else value[position]
            self.f.effect(f"store {kind} {item}, ptr {places[name]}")

    def read(self, cell: ir.Cell) -> AnyValue:
        if cell in self.cells:
            places = self.cells[cell]
            items = {name: self.f.value(f"load {kind}, ptr {places[name]}") for name, kind in self._parts(cell.type)}
            if isinstance(cell.type, Array):
                return complete(self.f, cell.type, items)
            return items[""] if "" in items else (items["re"], items["im"])
        if cell not in self.captured_cells:
            assert self.parent is not None, f"{cell} is not declared"
            self.captured_cells[cell] = self._capture_value(cell.type, self.parent.read(cell))
        return self.captured_cells[cell]

    # ---- memory --------------------------------------------------------------------------------------------------

    def access(self, array: Var) -> str:
        """The metadata of a load or store of the array's elements."""
        roots = self.unit.function.roots.get(array)
        suffix = self.aliases.suffix(roots)
        nodes = [
            group.node
            for group in self.groups
            if array not in group.own_arrays and not (roots is not None and roots & group.own_roots)
        ]
        if nodes:
            group = nodes[0] if len(nodes) == 1 else self.f.node(f"!{{{', '.join(nodes)}}}")
            suffix += f", !llvm.access.group {group}"
        return suffix

    # ---- leaving -------------------------------------------------------------------------------------------------

    def leave(self, status: str) -> str:
        """The instruction that leaves the function with a status."""
        return self.unit.leave(self, status)

    def leave_if(self, condition: str, lines: list[str]) -> None:
        """Run `lines` (the last of which leaves) if the condition holds; go on otherwise."""
        bad, good = self.f.exit("bad", lines), self.f.label("good")
        self.f.branch_if(condition, bad, good, f", !prof {self.f.module.shared_node(UNLIKELY)}")
        self.f.begin(good)

    def failure_by_frame(self, function: str, code: int, order: str, words: str) -> list[str]:
        """The lines that record a failure, numbered from the one in the region's frame, and leave."""
        key = code, order, words
        if key not in self._failures:
            if self._first_failure is None:
                self._first_failure = code, len(self.frame)
                self.frame.append((str(code), "i64"))
            first, slot = self._first_failure
            place, base, number = (self.f.fresh(name) for name in ("place", "base", "code"))
            self._failures[key] = [
                f"{place} = getelementptr inbounds i8, ptr %frame, i64 {8 * slot}",
                f"{base} = load i64, ptr {place}",
                f"{number} = add i64 {base}, {code - first}",
                f"call void {function}(ptr %ctx, i64 {order}, i64 {number}{words})",
                self.leave(str(code)),
            ]
        return self._failures[key]

    def failure(self, code: int, order: str, arguments: list[str]) -> list[str]:
        """The lines that record a failure and leave."""
        return self.unit.failure(self, code, order, arguments)


def _dtype(kind: Type) -> str:
    assert isinstance(kind, Scalar)
    return kind.dtype


def _parts(kind: Type, checked: bool) -> list[tuple[str, str]]:
    """The machine values a cell of this type consists of: (name, LLVM type)."""
    match kind:
        case Array():
            return [(name, field_type(name)) for name in field_names(kind, checked)]
        case Scalar(dtype) if is_complex(dtype):
            part = MEMORY_TYPE[real_dtype(dtype)]
            return [("re", part), ("im", part)]
        case Scalar(dtype):
            return [("", LLVM_TYPE[dtype])]
        case _:
            return [("", "ptr")]
