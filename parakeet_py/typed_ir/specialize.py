"""Specialization: executing the untyped IR over abstract values, which writes the typed IR.

One `Specializer` makes one typed function for one signature. It walks the untyped SSA once (loops to a fixed point)
with an environment from untyped variables to abstract `Value`s, and emits typed statements for whatever cannot be
decided now. Python functions that are called are walked in turn with their arguments' values: every call is inlined.
NumPy functions are walked too, in the form they have in `library/`.

Three things end the walk early, each with a way out:

* `Unsupported`: this function cannot be compiled for this signature; Python runs it.
* `NeedStatic`: the *value* of a parameter decides a type (an axis, a shape's length); it starts again with that
  parameter specialized by value.
* `NeedObservation`: a call is handed back to Python and nobody has seen yet what it returns; the present call is run
  by the evaluator, which takes notes, and specialization starts again.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend import ssa
from parakeet_py.record import record
from parakeet_py.signature import (
    ArraySpec,
    HiddenSpec,
    NoneSpec,
    ObjectSpec,
    Result,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultStatic,
    ResultTuple,
    ScalarSpec,
    Signature,
    Source,
    Spec,
    StaticSpec,
    TupleSpec,
    spec_of,
)
from parakeet_py.typed_ir import control, gates, indexing, ir, unions
from parakeet_py.typed_ir.attributes import module_value
from parakeet_py.typed_ir.axis_order import fortran
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.elementwise import ONE, ZERO, binary, copy_array, generate, inplace, store_cast
from parakeet_py.typed_ir.messages import compact
from parakeet_py.typed_ir.opaque import OpaqueSite, Template, opaque_operation, opaque_truth
from parakeet_py.typed_ir.shadows import NeedView, Shadows
from parakeet_py.typed_ir.types import OBJECT, PYBOOL, PYFLOAT, PYINT, Array, Scalar
from parakeet_py.typed_ir.values import (
    NONE,
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    IteratorV,
    ListV,
    MessageV,
    MethodV,
    Namespace,
    NeverV,
    ObjectV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    UnboundV,
    Unknown,
    Value,
    is_known,
    known,
    lift,
    py,
)

MAX_INLINE_DEPTH = 40


class NeedStatic(Exception):
    """Parameter `index` (hidden arguments count on) has to be known by value."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index


class NeedWhole(Exception):
    """The list in parameter `index` (hidden arguments count on) has to be that very object."""

    def __init__(self, index: int) -> None:
        self.index = index


class NeedUnroll(Exception):
    """A loop index has to be known by value."""

    def __init__(self, loop: ssa.For) -> None:
        self.loop = loop


class NeedHidden(Exception):
    """A hidden argument has been found that the signature does not have yet."""

    def __init__(self, source: Source, value: Any) -> None:
        self.source = source
        self.value = value


class NeedObservation(Exception):
    """The result type of an opaque call is not known yet; `error` says so to people."""

    def __init__(self, key: tuple[Any, ...], error: UnsupportedError) -> None:
        super().__init__(error.message)
        self.key = key
        self.error = error


class HandBack(Exception):
    """One operation is not compiled: Python does it, the rest stays compiled."""


@record(frozen=False)
class Specialization:
    """What specialization gives: the typed function, how to box its results, and what happened on the way."""

    function: ir.Function
    signature: Signature
    result: Result
    opaque_sites: tuple[OpaqueSite, ...]
    stored_params: frozenset[int]
    widened: tuple[str, ...] = ()
    read_late: frozenset[Source] = frozenset()  # hidden arguments that opaque calls must not change
    guessed: tuple[NeedObservation, ...] = ()  # operations that are taken to be out of reach

    @property
    def opaque_calls(self) -> tuple[str, ...]:
        """What is handed back to Python: "name (line n): reason"."""
        sites = (site for site in self.opaque_sites if site.operation != "same")
        return tuple(f"{site.text} (line {site.line}): {site.reason}" for site in sites)


@record(frozen=False)
class Frame:
    """One inlined call."""

    function: ssa.Function
    namespace: Namespace
    env: dict[ssa.Var, Value] = field(default_factory=dict)


class Specializer:
    def __init__(
        self,
        function: ssa.Function,
        python_function: Callable[..., Any],
        signature: Signature,
        observed: dict[tuple[Any, ...], Any],
        strict: bool = False,
        guess: bool = False,
    ) -> None:
        self.function = function
        self.python_function = python_function
        self.strict = strict
        self.guess = guess
        self.guessed: list[NeedObservation] = []
        self.signature = signature
        self.observed = observed
        self.builder = Builder()
        self.python_version = sys.version_info[:2]
        self.sites: list[OpaqueSite] = []
        self.fresh: set[ir.Var] = set()
        self.roots = 0
        self.stored: set[int] = set()
        self.widened: list[str] = []
        self.unroll: set[int] = set()
        self.hints: dict[tuple[Any, ...], list[gates.Template]] = {}
        self.path: tuple[Any, ...] = ()
        self.leaf_param: dict[ir.Var, int] = {}
        self.params: list[ir.Var] = []
        cells = dict(zip(python_function.__code__.co_freevars, python_function.__closure__ or (), strict=False))
        namespace = Namespace(python_function.__globals__, python_function, cells=cells)
        self.frames = [Frame(function, namespace)]
        self.pos = ssa.Pos(1, 0, 1, 0)
        self.in_body = 0
        self.unrolling = 0
        self.looping = 0
        self.unusual_arrays: set[ir.Var] = set()  # parameters: subclasses, odd dtypes, unaligned...
        self.lists: dict[int, tuple[Value, int]] = {}  # lists in parameters, by `id`
        self.read_late: set[Source] = set()
        self.param_roots: frozenset[int] = frozenset()
        self.static_extents: list[tuple[ir.Var, int, int]] = []
        self.shadows = Shadows()

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def specialize(self) -> Specialization:
        """The typed function of this signature."""
        try:
            return self._specialize()
        except NeedView as need:
            again = Specializer(
                self.function, self.python_function, self.signature, self.observed, self.strict, self.guess
            )
            again.shadows = Shadows(need.sites)
            return again.specialize()

    def _specialize(self) -> Specialization:
        self.shared_root = self.new_root() if not self.signature.disjoint else -1
        arguments = [self.parameter(spec, index) for index, spec in enumerate(self.signature.params)]
        self.hidden: dict[Source, Value] = {}
        offset = len(arguments)
        for position, hidden in enumerate(self.signature.hidden):
            self.hidden[hidden.source] = self.parameter(hidden.spec, offset + position)
        frame = self.frames[0]
        if len(arguments) != len(self.function.params):
            raise self.unsupported("the number of arguments does not fit")
        for param, value in zip(self.function.params, arguments, strict=True):
            if param.kind == "varkw":
                assert isinstance(value, TupleV)
                pairs = zip(value.items[::2], value.items[1::2], strict=True)
                value = DictV(tuple((known(name), item) for name, item in pairs))
            frame.env[param.var] = value
        value = self.run(self.function.body)[0]
        results: list[ir.Operand] = []
        tree = self.result_tree(value, results)
        body = ir.Block(tuple(self.builder.scopes[0].statements), tuple(results))
        typed = ir.Function(
            re.sub(r"\W", "_", self.function.name),
            tuple(self.params),
            body,
            self.function.filename,
            self.signature.disjoint,
            tuple(self.static_extents),
        )
        stored = self.stored_params(typed)
        return Specialization(
            typed,
            self.signature,
            tree,
            tuple(self.sites),
            stored,
            tuple(self.widened),
            frozenset(self.read_late),
            tuple(self.guessed),
        )

    def run(self, block: ssa.Block) -> list[Value]:
        """Execute a block; its results."""
        frame = self.frames[-1]
        for let in block.statements:
            self.pos = let.pos
            if not frame.namespace.trusted:  # what the library does happens, for the user, where it was called
                self.builder.pos = let.pos
            values = self.execute(let)
            if any(isinstance(value, NeverV) for value in values) and not isinstance(
                let.op, ssa.If | ssa.For | ssa.While
            ):
                return [NeverV()] * len(block.results)
            for var, value in zip(let.outs, values, strict=True):
                frame.env[var] = value
            if self.dead:
                return [NeverV()] * len(block.results)
        return [self.value(result) for result in block.results]

    @property
    def dead(self) -> bool:
        """True when the open block has ended in a check that always fails."""
        statements = self.builder.scopes[-1].statements
        if not statements:
            return False
        last = statements[-1].op
        return isinstance(last, ir.Check) and isinstance(last.condition, ir.Const) and not last.condition.value

    def value(self, operand: ssa.Operand) -> Value:
        if isinstance(operand, ssa.Const):
            if operand.value is ssa.UNBOUND:
                return UnboundV()
            return lift(operand.value)
        return self.frames[-1].env[operand]

    def bind(self, var: ssa.Var, value: Value) -> None:
        self.frames[-1].env[var] = value

    def execute(self, let: ssa.Let) -> list[Value]:
        """The values of one statement."""
        match let.op:
            case ssa.If() as op:
                return control.specialize_if(self, op)
            case ssa.For() as op:
                return self._loop(op)
            case ssa.While() as op:
                return control.specialize_while(self, op)
            case ssa.Unpack() as op:
                return self.unpack(op)
        return [value] if (value := self.single(let)) is not None else []

    def _loop(self, op: ssa.For) -> list[Value]:
        """A for loop; started again unrolled when its body needs the index by value."""
        mark = self.builder.mark()
        frames, sites = len(self.frames), len(self.sites)
        try:
            return control.specialize_for(self, op)
        except NeedUnroll as need:
            if need.loop is not op:
                raise
            del self.frames[frames:]
            self.builder.rollback(mark)
            del self.sites[sites:]
            self.unroll.add(id(op))
            return control.specialize_for(self, op)

    def single(self, let: ssa.Let) -> Value | None:
        """The value of a statement with one out (None: it has none)."""
        several = unions.union_operand(self, let.op)
        if several is not None:
            return unions.resolve(self, let, several)
        mark, frames, path, sites = self.builder.mark(), len(self.frames), self.path, len(self.sites)
        if not self.frames[-1].namespace.trusted:
            self.shadows.site = (self.path, let.pos)
        try:
            return self.compute(let.op)
        except HandBack as reason:
            if self.frames[frames - 1].namespace.trusted:
                raise
            del self.frames[frames:]
            self.path, self.pos, self.builder.pos = path, let.pos, let.pos
            self.builder.rollback(mark)
            del self.sites[sites:]
            return opaque_operation(self, let, str(reason))

    def compute(self, op: ssa.Op) -> Value | None:
        match op:
            case ssa.Global(name):
                return self.read_global(name)
            case ssa.Free(name):
                return self.read_cell(name)
            case ssa.Binary(name, left, right):
                return self.binary(name, self.value(left), self.value(right))
            case ssa.Inplace(name, left, right):
                return self.inplace(name, self.value(left), self.value(right))
            case ssa.Compare(name, left, right):
                return self.compare(name, self.value(left), self.value(right))
            case ssa.Unary(name, operand):
                return self.unary(name, self.value(operand))
            case ssa.Call(function, args, kwargs):
                return self.call(self.value(function), self.items(args), self.keywords(kwargs))
            case ssa.Attribute(obj, name):
                return self.attribute(self.value(obj), name)
            case ssa.Subscript(obj, index):
                return self.subscript(self.value(obj), self.value(index))
            case ssa.SetItem(obj, index, value):
                self.set_item(self.value(obj), self.value(index), self.value(value))
                return None
            case ssa.BuildTuple(items):
                return TupleV(tuple(self.items(items)))
            case ssa.BuildList(items):
                return TupleV(tuple(self.items(items)), "list")
            case ssa.BuildDict(items):
                return DictV(
                    tuple((self.static(self.value(key), "a dict key"), self.value(item)) for key, item in items)
                )
            case ssa.BuildSlice(lower, upper, step):
                return SliceV(self.value(lower), self.value(upper), self.value(step))
            case ssa.MakeClosure(function, captures, defaults):
                return ClosureV(
                    function,
                    tuple(self.value(capture) for capture in captures),
                    tuple(self.value(default) for default in defaults),
                    self.frames[-1].namespace,
                )
            case ssa.Comprehension(kind, iterable, element, condition, flatten):
                return ComprehensionV(
                    kind,
                    self.value(iterable),
                    self.value(element),
                    None if condition is None else self.value(condition),
                    flatten,
                )
            case ssa.Import(module, name, level):
                return self.import_module(module, name, level)
            case ssa.BuildString(parts):
                return self.format_string(parts)
            case ssa.Raise(exception):
                return self.raise_value(self.value(exception))
            case ssa.Assert(condition, message):
                self.assert_true(condition, message)
                return None
            case ssa.CheckBound(flag, name):
                bound = self.truth(self.value(flag))
                text = f"cannot access local variable '{name}' where it is not associated with a value"
                self.check(bound, "UnboundLocalError", text)
                return None
            case ssa.SetAttribute(obj, "real" | "imag" as name, value) if isinstance(self.value(obj), ArrayV):
                self.call_library("set_part", [self.value(obj), lift(name), self.value(value)])
                return None
            case ssa.SetAttribute(obj, name, value):
                raise self.unsupported(f"assignment to the attribute .{name}")
        raise self.unsupported(f"{type(op).__name__} is not compiled")

    # ---- parameters and results --------------------------------------------------------------------------------------

    def parameter(self, spec: Spec, index: int) -> Value:
        """The value of an argument; its leaves become parameters of the typed function."""
        match spec:
            case ArraySpec(dtype, rank, layout, unit, writeable, inner):
                var = self._leaf(Array(dtype, rank, layout), index, f"a{index}")
                extents = tuple(ONE if one else self.dim(var, axis) for axis, one in enumerate(unit))
                if inner:
                    extents = (*extents[:-1], ir.Const(inner, PYINT))
                known = enumerate(extents)
                self.static_extents += [(var, axis, int(e.value.real)) for axis, e in known if isinstance(e, ir.Const)]
                root = self.shared_root if self.shared_root >= 0 else self.new_root()
                self.param_roots |= {root}
                nonunit = tuple(not one for one in unit)
                order = fortran(rank) if layout == "F" else ()
                return ArrayV(var, extents, frozenset({root}), not writeable, nonunit, order)
            case ScalarSpec(dtype, python):
                return ScalarV(self._leaf(Scalar(dtype, python), index, f"a{index}"))
            case NoneSpec():
                return NONE
            case StaticSpec(value):
                return lift(value)
            case ObjectSpec(kind):
                opaque = ObjectV(self._leaf(OBJECT, index, f"a{index}"))
                if issubclass(kind, np.ndarray):
                    self.unusual_arrays.add(opaque.var)
                return opaque
            case TupleSpec(items, "slice"):
                return SliceV(*(self.parameter(item, index) for item in items))
            case TupleSpec(items, kind):
                made = TupleV(tuple(self.parameter(item, index) for item in items), kind)
                if kind == "list":
                    self.lists[id(made)] = (made, index)
                return made
        raise AssertionError(spec)

    def need_whole(self, value: Value) -> None:
        """Start again, with the list that is (part of) a parameter as an object; do nothing about other values."""
        if id(value) in self.lists:
            raise NeedWhole(self.lists[id(value)][1])

    def _leaf(self, kind: Any, index: int, name: str) -> ir.Var:
        var = ir.Var(name, kind)
        self.params.append(var)
        self.leaf_param[var] = index
        self.builder.home[var] = self.builder.scopes[0]
        return var

    def result_tree(self, value: Value, leaves: list[ir.Operand]) -> Result:
        """How the result is boxed; its leaves are appended to `leaves`."""

        def leaf(operand: ir.Operand, kind: str, dtype: str, python: bool, rank: int = 0) -> ResultLeaf:
            for position, other in enumerate(leaves):
                if isinstance(operand, ir.Var) and other is operand:
                    return ResultLeaf(position, kind, dtype, python, rank)  # type: ignore[arg-type]
            leaves.append(operand)
            return ResultLeaf(len(leaves) - 1, kind, dtype, python, rank)  # type: ignore[arg-type]

        match value:
            case ScalarV(operand, None):
                return leaf(operand, "scalar", value.dtype, value.python)
            case ScalarV(operand, either):
                assert either is not None
                choices = [unions.alternative(self, value, index).operand for index in range(len(either.kinds))]
                first = len(leaves)
                leaves.extend([either.tag, *choices])
                return ResultEither(
                    ResultLeaf(first, "scalar", "int64", True),
                    tuple(
                        ResultLeaf(first + 1 + index, "scalar", kind.dtype, kind.python)
                        for index, kind in enumerate(either.kinds)
                    ),
                )
            case ArrayV(var):
                self.shadows.result(value, self.param_roots)
                made = leaf(var, "array", value.dtype, False, value.rank)
                view = isinstance(self.builder.definition.get(var), ir.View | ir.Reshape)
                own = not value.roots & self.param_roots
                return replace(made, view=view, readonly=value.readonly and (view or own))
            case ObjectV(var):
                return leaf(var, "object", "", False)
            case TupleV(items, kind):
                self.need_whole(value)
                return ResultTuple(tuple(self.result_tree(item, leaves) for item in items), kind)  # type: ignore[arg-type]
            case ListV(array, ""):
                made = leaf(array.var, "array", array.dtype, False, array.rank)
                return ResultListOf(made)
            case ComprehensionV(kind="list"):
                return self.result_tree(self.as_list(value), leaves)
            case Static(obj):
                return ResultStatic(obj)
            case NeverV():
                return ResultStatic(None)
        raise self.unsupported(f"a function cannot return {self.describe(value)}")

    def stored_params(self, function: ir.Function) -> frozenset[int]:
        """The parameters (leaf positions) whose memory the function may write."""
        roots: dict[ir.Var, frozenset[int]] = {}
        positions = {var: position for position, var in enumerate(function.params)}
        written: set[int] = set()

        def base(var: ir.Var) -> frozenset[int]:
            return roots.get(var, frozenset({positions[var]}) if var in positions else frozenset())

        def visit(block: ir.Block) -> list[frozenset[int]]:
            for let in block.statements:
                match let.op:
                    case ir.View(view_base, _, _) | ir.Reshape(view_base, _):
                        roots[let.outs[0]] = base(view_base)
                    case ir.Store(array, _, _) | ir.Scatter(array, _, _, _, _) | ir.Matmul(array, _, _):
                        written.update(base(array))
                    case ir.Opaque(_, args):
                        written.update(*(base(arg) for arg in args if isinstance(arg.type, Array)))
                    case ir.For(params=params, inits=inits) | ir.While(params=params, inits=inits):
                        for param, init in zip(params, inits, strict=True):
                            if isinstance(init, ir.Var):
                                roots[param] = base(init)
                inner = [visit(inner_block) for inner_block in ir.blocks_of(let.op)]
                if isinstance(let.op, ir.If | ir.For | ir.While):
                    everything = frozenset(position for results in inner for one in results for position in one)
                    for out in let.outs:
                        if isinstance(out.type, Array):
                            roots[out] = everything | frozenset(
                                position
                                for init in ir.operands_of(let.op)
                                if isinstance(init, ir.Var)
                                for position in base(init)
                            )
            return [base(result) for result in block.results if isinstance(result, ir.Var)]

        visit(function.body)
        return frozenset(written)

    # ---- small services ----------------------------------------------------------------------------------------------

    def unsupported(self, message: str, hint: str = "") -> UnsupportedError:
        users = [frame for frame in self.frames if not frame.namespace.trusted]
        return UnsupportedError.at((users or self.frames)[-1].function, self.builder.pos, message, hint)

    def hand_back(self, what: str) -> HandBack:
        return HandBack(what)

    def new_root(self) -> int:
        self.roots += 1
        return self.roots

    def will_store(self, array: ArrayV) -> None:
        """Called for every array that is stored to."""
        self.shadows.store(array.roots)

    def shadow(self, base: ArrayV) -> frozenset[int]:
        """The memory of a copy that stands for a view of `base`."""
        return self.shadows.add(self, base)

    def dim(self, var: ir.Var, axis: int) -> ir.Var:
        extent = self.builder.pure(ir.Dim(var, axis), PYINT, name="n")
        self.builder.nonnegative.add(extent)
        self.builder.small.add(extent)
        return extent

    def index_var(self, name: str, extent: ir.Operand) -> ir.Var:
        """An index variable of an operator: 0 <= index < extent."""
        b = self.builder
        index = ir.Var(name, PYINT)
        b.nonnegative.add(index)
        b.small.add(index)
        terms, constant = b.form(extent)
        b.upper[index] = (terms, constant - 1)
        return index

    def in_scope(self, operand: ir.Operand) -> bool:
        return self.builder.in_scope(operand)

    def check(self, condition: ir.Operand, exception: str, message: str, args: Sequence[ir.Operand] = ()) -> None:
        """Raise unless the condition holds (nothing is emitted for one that is known to)."""
        if isinstance(condition, ir.Const) and condition.value:
            return
        b = self.builder
        key = ("check", condition)
        if not isinstance(condition, ir.Const):
            for scope in b.scopes:
                if key in scope.shared:
                    return
        text, shown = compact(message, args)
        b.emit(ir.Check(condition, ir.Failure(exception, text), shown))
        if isinstance(condition, ir.Var):
            b.scopes[-1].shared[key] = condition

    def note_widening(self, left: Scalar, right: Scalar) -> None:
        self.widened.append(f"line {self.builder.pos.line}: {left} and {right} meet")

    def unroll_wanted(self, op: ssa.For) -> bool:
        return id(op) in self.unroll

    def loop_templates(self, op: ssa.Op, inits: Sequence[Value]) -> list[gates.Template]:
        """The templates to start a loop with: those of the initial values, joined with what an earlier visit found."""
        found = [gates.template_of(value, varying=True) for value in inits]
        hint = self.hints.get((*self.path, id(op)))
        if hint is None:
            return found
        return [self._with_hint(template, other) for template, other in zip(found, hint, strict=True)]

    def _with_hint(self, template: gates.Template, hint: gates.Template) -> gates.Template:
        return gates.join(self, template, hint) if unions.kinds_of(template) and unions.kinds_of(hint) else template

    def remember_templates(self, op: ssa.Op, templates: list[gates.Template]) -> None:
        self.hints[(*self.path, id(op))] = templates

    def settle(self, values: Sequence[Value]) -> list[Value]:
        """Values that can pass a gate: pending comprehensions are computed."""
        return [self.as_list(value) if isinstance(value, ComprehensionV) else value for value in values]

    def static(self, value: Value, what: str) -> Any:
        """The Python object of a value that has to be known at compile time."""
        try:
            return known(value)
        except Unknown:
            self.demand(value, what)
        raise AssertionError

    def static_int(self, value: Value, what: str) -> int:
        found = self.static(value, what)
        try:
            return int(found.__index__())
        except AttributeError:
            raise self.unsupported(f"{what} must be an integer, not {found!r}") from None

    def demand(self, value: Value, what: str) -> None:
        """Ask for the parameter or loop index behind a value to be specialized by value."""
        parts = [value]
        while parts:
            part = parts.pop()
            if isinstance(part, ScalarV) and isinstance(part.operand, ir.Var):
                self._demand_operand(part.operand, what, set())
            parts.extend(gates.parts_of(part))
        raise self.unsupported(f"{what} has to be known when the function is compiled", "pass it as an argument")

    def _demand_operand(self, var: ir.Var, what: str, seen: set[ir.Var]) -> None:
        if var in seen:
            return
        seen.add(var)
        if var in self.leaf_param and isinstance(var.type, Scalar):
            raise NeedStatic(self.leaf_param[var], what)
        for frame in reversed(self.frames):
            for loop in self.loops_open:
                bound = frame.env.get(loop.item)
                if isinstance(bound, ScalarV) and bound.operand is var:
                    raise NeedUnroll(loop)
        op = self.builder.definition.get(var)
        if isinstance(op, ir.Prim | ir.Cast):
            for operand in ir.operands_of(op):
                if isinstance(operand, ir.Var):
                    self._demand_operand(operand, what, seen)

    @property
    def loops_open(self) -> list[ssa.For]:
        return [
            let.op
            for frame in self.frames
            for let in frame.function.statements()
            if isinstance(let.op, ssa.For) and let.op.item in frame.env
        ]

    def describe(self, value: Value) -> str:
        match value:
            case ScalarV():
                return f"a {value.type}"
            case ArrayV():
                return f"an array of {value.rank} axes of {value.dtype}"
            case TupleV(kind=kind):
                return f"a {kind}"
            case Static(obj):
                return "None" if obj is None else f"{obj!r}"
            case _:
                return f"a {type(value).__name__.removesuffix('V').lower()}"

    # ---- names -------------------------------------------------------------------------------------------------------

    def read_global(self, name: str) -> Value:
        import builtins

        namespace = self.frames[-1].namespace
        source: Source = ("global", name)
        if namespace.owner is not self.frames[0].namespace.owner:
            module = str(namespace.globals.get("__name__"))  # not that of the function, which wrappers imitate
            source = ("attribute", module, name)
            if not namespace.trusted and getattr(sys.modules.get(module), "__dict__", None) is not namespace.globals:
                raise self.unsupported(f"the globals of {namespace.owner.__name__} are of no module")
        if name in namespace.globals:
            found = namespace.globals[name]
        elif hasattr(builtins, name):
            found = getattr(builtins, name)
        else:
            raise self.unsupported(f"name '{name}' is not defined")
        if namespace.trusted or (
            name not in namespace.globals and namespace.owner is not self.frames[0].namespace.owner
        ):
            return lift(found)
        return self.hidden_value(source, found)

    def read_cell(self, name: str) -> Value:
        namespace = self.frames[-1].namespace
        try:
            found = namespace.cells[name].cell_contents
        except (KeyError, ValueError):
            raise self.unsupported(f"the free variable '{name}' is not bound yet") from None
        if namespace.owner is not self.frames[0].namespace.owner:
            if isinstance(found, types.FunctionType | types.ModuleType | type):
                return lift(found)
            raise self.unsupported(f"the free variable '{name}' of a function called from here")
        position = list(namespace.cells).index(name)
        return self.hidden_value(("cell", position), found)

    def hidden_value(self, source: Source, found: Any) -> Value:
        """The value of a hidden argument, which the signature has to hold."""
        if source not in self.hidden:
            raise NeedHidden(source, found)
        if self.sites or len(self.builder.scopes) > 1:
            self.read_late.add(source)
        return self.hidden[source]

    def import_module(self, module: str, name: str | None, level: int) -> Value:
        import importlib

        package = self.frames[-1].namespace.globals.get("__package__") if level else None
        try:
            found = importlib.import_module("." * level + module, package)
            if name is None:
                return Static(found)
            value = getattr(found, name)
        except (ImportError, AttributeError) as error:
            raise self.unsupported(str(error)) from None
        return module_value(self, found, name, value)

    # ---- conversions between kinds of values -------------------------------------------------------------------------

    def numeric(self, value: Value) -> ScalarV | ArrayV:
        """A scalar or an array; sequences become arrays."""
        match value:
            case ScalarV() | ArrayV():
                return value
            case TupleV() | ListV() | ComprehensionV() | RangeV():
                made = self.as_array(value)
                assert isinstance(made, ScalarV | ArrayV)
                return made
            case ObjectV() | Static():
                raise self.hand_back(f"an operation on {self.describe(value)}")
            case UnboundV():
                raise self.unsupported("a name that is not bound")
        raise self.unsupported(f"{self.describe(value)} where a number or an array is needed")

    def as_array(self, value: Value, dtype: str | None = None) -> ArrayV | ScalarV:
        """np.array of a value (a new array unless it is one already)."""
        match value:
            case ScalarV():
                return value
            case ArrayV():
                return self.cast_array(value, dtype) if dtype else value
            case ListV(array):
                self._check_some(array.extents[0], array.rank, dtype is not None or array.dtype == "float64")
                return self.cast_array(array, dtype) if dtype else array
            case ComprehensionV():
                return self.as_array(self.as_list(value), dtype)
            case RangeV(start, _, step):
                b = self.builder
                length = control.range_length(self, value)
                self._check_some(length, 1, dtype is not None)

                def element(indices: tuple[ir.Var, ...]) -> list[ir.Operand]:
                    number = b.index_add(start.operand, b.index_mul(step.operand, indices[0]))
                    return [b.cast(number, Scalar(dtype or "int64"))]

                return generate(self, (length,), element)[0]
            case TupleV(items):
                return self._stack(items, dtype)
        raise self.hand_back(f"an array of {self.describe(value)}")

    def _check_some(self, length: ir.Operand, rank: int, typed: bool) -> None:
        """An empty list becomes an array of one axis, and of float64 unless a dtype is asked for."""
        if rank > 1 or not typed:
            some = self.builder.prim("ne", length, ZERO, type=PYBOOL)
            self.check(some, "Deoptimize", "an array of an empty list")

    def _stack(self, items: Sequence[Value], dtype: str | None) -> ArrayV:
        """np.array of a list of known length: equal parts along a new first axis."""
        b = self.builder
        parts = [self.as_array(item, dtype if isinstance(item, TupleV) else None) for item in items]
        if not parts:
            empty = b.emit1(ir.Alloc((ZERO,)), Array(dtype or "float64", 1, "C"), name="array")
            return ArrayV(empty, (ZERO,), frozenset({self.new_root()}))
        made = dtype or np.result_type(*(np.dtype(part.dtype) for part in parts)).name
        rank = 0 if isinstance(parts[0], ScalarV) else parts[0].rank
        if any((0 if isinstance(part, ScalarV) else part.rank) != rank for part in parts):
            raise self.unsupported("setting an array element with a sequence: the parts have different shapes")
        inner: tuple[ir.Operand, ...] = parts[0].extents if isinstance(parts[0], ArrayV) else ()
        extents = (ir.Const(len(parts), PYINT), *inner)
        out = b.emit1(ir.Alloc(extents), Array(made, rank + 1, "C"), name="array")
        array = ArrayV(out, extents, frozenset({self.new_root()}), False, (len(parts) != 1, *(False,) * rank))
        for position, part in enumerate(parts):
            place = ir.Const(position, PYINT)
            if isinstance(part, ScalarV):
                b.emit(ir.Store(out, (place,), store_cast(self, part.operand, Scalar(made))))
                continue
            for extent, wanted in zip(part.extents, inner, strict=True):
                if not b.same(extent, wanted):
                    self.check(
                        b.prim("eq", extent, wanted, type=PYBOOL), "ValueError",
                        "setting an array element with a sequence. The requested array has an inhomogeneous shape",
                    )  # fmt: skip
            from parakeet_py.typed_ir.elementwise import store_array

            axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [
                (axis + 1, extent, ONE) for axis, extent in enumerate(inner)
            ]
            view = indexing.make_view(self, array, (place, *(ZERO,) * rank), axes)
            store_array(self, view, part)
        return array

    def cast_array(self, array: ArrayV, dtype: str) -> ArrayV:
        return array if array.dtype == dtype else copy_array(self, array, dtype)

    def as_python(self, value: Value) -> Value:
        """A NumPy scalar as the Python scalar `item()` gives."""
        if isinstance(value, ScalarV) and not value.python:
            kind = np.dtype(value.dtype).kind
            target = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "c": "complex128"}[kind]
            if value.dtype == "uint64":
                raise self.hand_back("a uint64 as a Python int")
            return ScalarV(self.builder.cast(value.operand, Scalar(target, True)))
        return value

    def list_item(self, value: ListV, index: Value) -> Value:
        found = indexing.read(self, value.array, index)
        if isinstance(found, ArrayV):
            return ListV(found, value.numpy_scalar)
        return found if value.numpy_scalar else self.as_python(found)

    @contextmanager
    def element_function(self) -> Iterator[None]:
        """Inside, nothing can be handed back to Python: the code runs once per element, in parallel."""
        self.in_body += 1
        try:
            yield
        finally:
            self.in_body -= 1

    def parameter_roots(self) -> frozenset[int]:
        """The memory of all array parameters (which an opaque result may share)."""
        return self.param_roots

    def as_list(self, value: Value) -> Value:
        """A comprehension computed: a tuple or list when its length is known, else a ListV."""
        from parakeet_py.typed_ir.comprehensions import compute

        return compute(self, value) if isinstance(value, ComprehensionV) else value

    def truth(self, value: Value) -> ir.Operand:
        """bool(value) as an operand."""
        b = self.builder
        match value:
            case ScalarV(operand):
                if value.dtype == "bool":
                    return b.cast(operand, PYBOOL)
                if isinstance(operand, ir.Const):
                    return ir.Const(bool(operand.value), PYBOOL)
                zero = ir.Const(np.dtype(value.dtype).type(0).item(), value.type)
                return b.prim("ne", operand, zero, type=PYBOOL)
            case ArrayV(rank=0):
                return self.truth(ScalarV(b.emit1(ir.Load(value.var, ()), Scalar(value.dtype))))
            case ArrayV():
                for extent in value.extents:
                    self.check(
                        b.prim("eq", extent, ONE, type=PYBOOL), "ValueError",
                        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
                    )  # fmt: skip
                return self.truth(ScalarV(b.emit1(ir.Load(value.var, (ZERO,) * value.rank), Scalar(value.dtype))))
            case Static(obj):
                return ir.Const(bool(obj), PYBOOL)
            case TupleV(items):
                return ir.Const(bool(items), PYBOOL)
            case DictV(entries):
                return ir.Const(bool(entries), PYBOOL)
            case ListV(array):
                return b.prim("ne", array.extents[0], ZERO, type=PYBOOL)
            case RangeV():
                return b.prim("ne", control.range_length(self, value), ZERO, type=PYBOOL)
            case ClosureV() | MethodV():
                return ir.Const(True, PYBOOL)
            case ComprehensionV():
                return self.truth(self.as_list(value))
            case ObjectV():
                return opaque_truth(self, value)
        raise self.unsupported(f"the truth of {self.describe(value)}")

    # ---- operators ---------------------------------------------------------------------------------------------------

    def binary(self, op: str, left: Value, right: Value) -> Value:
        if isinstance(left, TupleV | ListV | DictV | MessageV | Static) or isinstance(right, TupleV | MessageV):
            made = self._sequence_operator(op, left, right)
            if made is not None:
                return made
        if op == "matmul":
            return self.call(Static(np.matmul), [left, right], {})
        for one, other in ((left, right), (right, left)):
            plain = isinstance(other, TupleV | ListV) or (isinstance(other, ScalarV) and other.python)
            if isinstance(one, TupleV | ListV | RangeV) and plain:
                raise self.unsupported(f"{op} of {self.describe(left)} and {self.describe(right)}")
        return binary(self, op, left, right)

    def _sequence_operator(self, op: str, left: Value, right: Value) -> Value | None:
        match op, left, right:
            case "add", TupleV(a, kind), TupleV(b, other) if kind == other:
                return TupleV(a + b, kind)
            case "mul", TupleV(items, kind), ScalarV():
                if not right.python and isinstance(left, TupleV):
                    return None
                return TupleV(items * self.static_int(right, "a repeat count"), kind)
            case "mul", ScalarV(), TupleV(items, kind) if left.python:
                return TupleV(items * self.static_int(left, "a repeat count"), kind)
            case "add", (Static() | MessageV()), (Static() | MessageV()):
                try:
                    return lift(known(left) + known(right))
                except (Unknown, TypeError):
                    return None
        return None

    def inplace(self, op: str, left: Value, right: Value) -> Value:
        if isinstance(left, ArrayV):
            if op == "matmul":
                product = self.binary(op, left, right)
                from parakeet_py.typed_ir.elementwise import store_array

                store_array(self, left, product, casting="same_kind", out=True)
                return left
            return inplace(self, op, left, right)
        return self.binary(op, left, right)

    def compare(self, op: str, left: Value, right: Value) -> Value:
        if op in ("is", "isnot"):
            return py(self.identical(left, right) == (op == "is"))
        if op in ("in", "notin"):
            return self._contains(left, right, op == "notin")
        try:
            a, c = known(left), known(right)
        except Unknown:
            pass
        else:
            import operator

            if not isinstance(left, ScalarV) or not isinstance(right, ScalarV):
                return lift(getattr(operator, op)(a, c))
        if isinstance(left, TupleV) and isinstance(right, TupleV) and op not in ("eq", "ne"):
            return self._ordered(op, left, right)
        if isinstance(left, TupleV) and isinstance(right, TupleV):
            if len(left.items) != len(right.items) or left.kind != right.kind:
                return py(op == "ne")
            equal: ir.Operand = ir.Const(True, PYBOOL)
            for x, y in zip(left.items, right.items, strict=True):
                equal = self.builder.logical_and(equal, self.truth(self.compare("eq", x, y)))
            return ScalarV(equal if op == "eq" else self.builder.prim("not", equal))
        if (isinstance(left, Static) or isinstance(right, Static)) and op in ("eq", "ne"):
            odd = left if isinstance(left, Static) else right
            if odd.object is None or isinstance(odd.object, str):  # type: ignore[union-attr]
                return py(op == "ne")
        return binary(self, op, left, right)

    def _ordered(self, op: str, left: TupleV, right: TupleV) -> Value:
        """Lexicographic comparison: the first items that differ decide, else the lengths."""
        import operator

        if left.kind != right.kind:
            raise self.unsupported(f"'{op}' not supported between a {left.kind} and a {right.kind}")
        result: ir.Operand = ir.Const(getattr(operator, op)(len(left.items), len(right.items)), PYBOOL)
        for x, y in reversed(list(zip(left.items, right.items, strict=False))):
            equal = self.truth(self.compare("eq", x, y))
            decided = self.truth(self.compare(op, x, y))
            result = self.builder.select(equal, result, decided)
        return ScalarV(result)

    def identical(self, left: Value, right: Value) -> bool:
        """`left is right`, where the compiler can tell."""
        if isinstance(left, ObjectV) or isinstance(right, ObjectV):
            if NONE in (left, right) and not any(isinstance(side, ObjectV) and side.any for side in (left, right)):
                return False  # an argument that is None has another signature
            raise self.hand_back("`is` between objects")
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Static):
                if isinstance(other, Static):
                    return one.object is other.object
                return False
        if isinstance(left, ArrayV) != isinstance(right, ArrayV):
            return False
        if isinstance(left, ArrayV) and isinstance(right, ArrayV):
            if left.var is right.var:
                return True
            if not (left.roots & right.roots):
                return False
        if isinstance(left, ScalarV) and isinstance(right, ScalarV):
            kinds = (left.dtype, right.dtype)
            if left.python and right.python and kinds == ("bool", "bool"):
                return self.static(left, "an operand of `is`") is self.static(right, "an operand of `is`")
        raise self.unsupported("`is` between values that are not known to be distinct")

    def _contains(self, item: Value, container: Value, negate: bool) -> Value:
        b = self.builder
        if isinstance(container, ComprehensionV):
            container = self.as_list(container)
        items = control.static_items(container)
        if items is not None:
            found: ir.Operand = ir.Const(False, PYBOOL)
            for one in items:
                found = b.logical_or(found, self.truth(self.compare("eq", item, one)))
            return ScalarV(b.prim("not", found) if negate else found)
        if isinstance(container, ArrayV | ListV):
            array = container.array if isinstance(container, ListV) else container
            result = self.call(Static(np.any), [self.compare("eq", array, item)], {})
            truth = self.truth(result)
            return ScalarV(b.prim("not", truth) if negate else truth)
        if isinstance(container, RangeV):
            found = self._in_range(item, container)
            return ScalarV(b.prim("not", found) if negate else found)
        raise self.unsupported(f"`in` {self.describe(container)}")

    def _in_range(self, item: Value, container: RangeV) -> ir.Operand:
        """Is an int one of those that a range gives?"""
        b = self.builder
        number = self.numeric(item)
        if not isinstance(number, ScalarV) or number.type not in (PYINT, PYBOOL):
            raise self.unsupported(f"{self.describe(item)} in a range")
        step = self.static_int(container.step, "the step of a range")
        x = b.cast(number.operand, PYINT)
        start, stop = container.start.operand, container.stop.operand
        low, high = ("ge", "lt") if step > 0 else ("le", "gt")
        found = b.logical_and(b.prim(low, x, start, type=PYBOOL), b.prim(high, x, stop, type=PYBOOL))
        distance = b.prim("mod", b.prim("sub", x, start), ir.Const(step, PYINT))
        return b.logical_and(found, b.prim("eq", distance, ZERO, type=PYBOOL))

    def unary(self, op: str, value: Value) -> Value:
        from parakeet_py.typed_ir.elementwise import UNARY_UFUNCS, call_ufunc
        from parakeet_py.typed_ir.python_scalars import python_unary

        if op == "not":
            return ScalarV(self.builder.prim("not", self.truth(value), type=PYBOOL))
        number = self.numeric(value)
        if isinstance(number, ScalarV) and number.python:
            return python_unary(self, op, number)
        return call_ufunc(self, UNARY_UFUNCS[op], [number])

    # ---- containers --------------------------------------------------------------------------------------------------

    def items(self, items: Sequence[ssa.Item]) -> list[Value]:
        made: list[Value] = []
        for item in items:
            if isinstance(item, ssa.Star):
                made.extend(self.sequence(self.value(item.operand)))
            else:
                made.append(self.value(item))
        return made

    def sequence(self, value: Value) -> list[Value]:
        """The items of something of known length, for unpacking."""
        if isinstance(value, ComprehensionV):
            value = self.as_list(value)
        found = control.static_items(value)
        if found is not None:
            return found
        if isinstance(value, ArrayV) and value.rank > 0 and isinstance(value.extents[0], ir.Const):
            count = int(value.extents[0].value.real)
            return [indexing.read(self, value, py(position)) for position in range(count)]
        raise self.unsupported(f"unpacking {self.describe(value)}, whose length is not known when it is compiled")

    def keywords(self, kwargs: Sequence[tuple[str | None, ssa.Operand]]) -> dict[str, Value]:
        made: dict[str, Value] = {}
        for name, operand in kwargs:
            value = self.value(operand)
            if name is not None:
                made[name] = value
            elif isinstance(value, DictV):
                made.update({str(key): item for key, item in value.items})
            else:
                raise self.unsupported("** of something that is not a dict of known keys")
        return made

    def unpack(self, op: ssa.Unpack) -> list[Value]:
        value = self.value(op.object)
        wanted = op.before + op.after
        if isinstance(value, ArrayV | ListV) and control.static_items(value) is None and not op.star:
            array = value.array if isinstance(value, ListV) else value
            if array.rank > 0:
                extent, expected = array.extents[0], ir.Const(wanted, PYINT)
                b = self.builder
                self.check(
                    b.prim("ge", extent, expected, type=PYBOOL), "ValueError",
                    f"not enough values to unpack (expected {wanted}, got {{0}})", [extent],
                )  # fmt: skip
                self.check(
                    b.prim("le", extent, expected, type=PYBOOL), "ValueError",
                    f"too many values to unpack (expected {wanted})",
                )  # fmt: skip
                b.learn_equal(expected, extent)
                parts = [indexing.read(self, array, py(position)) for position in range(wanted)]
                if isinstance(value, ListV) and not value.numpy_scalar:
                    return [self.as_python(part) for part in parts]
                return parts
        found = self.sequence(value)
        if op.star:
            if len(found) < wanted:
                raise self.unsupported(f"not enough values to unpack (expected at least {wanted}, got {len(found)})")
            middle = found[op.before : len(found) - op.after]
            return [*found[: op.before], TupleV(tuple(middle), "list"), *found[len(found) - op.after :]]
        if len(found) != wanted:
            word = "too many" if len(found) > wanted else "not enough"
            raise self.unsupported(f"{word} values to unpack (expected {wanted}, got {len(found)})")
        return found

    def subscript(self, value: Value, index: Value) -> Value:
        match value:
            case ArrayV():
                return indexing.read(self, value, index)
            case ListV():
                return self.list_item(value, index)
            case TupleV(items, kind):
                if isinstance(index, SliceV):
                    return TupleV(items[self.static(index, "a slice of a tuple")], kind)
                return self._tuple_item(value, index)
            case DictV(entries):
                wanted = self.static(index, "a dict key")
                for key, item in entries:
                    if key == wanted:
                        return item
                raise self.unsupported(f"KeyError: {wanted!r}")
            case ComprehensionV():
                return self.subscript(self.as_list(value), index)
            case RangeV(start, _, step):
                length = control.range_length(self, value)
                number = self.numeric(index)
                assert isinstance(number, ScalarV)
                b = self.builder
                position = indexing.check_index(self, number, length, 0)
                return ScalarV(b.index_add(start.operand, b.index_mul(step.operand, position)))
            case Static(str() as text):
                return lift(text[self.static(index, "an index of a string")])
            case MethodV(obj, "at" | "reduce"):
                raise self.unsupported(f"subscript of {self.describe(obj)}")
        handled = self.library_subscript(value, index)
        if handled is not None:
            return handled
        raise self.hand_back(f"{self.describe(value)}[...]")

    def _tuple_item(self, value: TupleV, index: Value) -> Value:
        number = self.numeric(index)
        if isinstance(number, ScalarV) and isinstance(number.operand, ir.Var):
            kinds = {item.type if isinstance(item, ScalarV) else None for item in value.items}
            if len(kinds) == 1 and None not in kinds and not self._is_demandable(number.operand):
                # A small table of scalars indexed at run time.
                return self.as_scalar_like(indexing.read(self, self.as_array_of(value), index), value.items[0])
        position = self.static_int(index, "an index of a tuple")
        if not -len(value.items) <= position < len(value.items):
            self.check(ir.Const(False, PYBOOL), "IndexError", f"{value.kind} index out of range")
            return NeverV()
        return value.items[position]

    def _is_demandable(self, var: ir.Var) -> bool:
        try:
            self._demand_operand(var, "an index of a tuple", set())
        except (NeedStatic, NeedUnroll):
            return True
        return False

    def as_array_of(self, value: TupleV) -> ArrayV:
        array = self.as_array(value)
        assert isinstance(array, ArrayV)
        return array

    def as_scalar_like(self, value: Value, like: Value) -> Value:
        if isinstance(like, ScalarV) and isinstance(value, ScalarV):
            return ScalarV(self.builder.cast(value.operand, like.type))
        return value

    def set_item(self, target: Value, index: Value, value: Value) -> None:
        if isinstance(target, ArrayV):
            indexing.write(self, target, index, value)
            return
        if isinstance(target, ObjectV):
            raise self.hand_back("item assignment to an object")
        self.need_whole(target)
        raise self.unsupported(f"item assignment to {self.describe(target)}")

    # ---- errors ------------------------------------------------------------------------------------------------------

    def raise_value(self, value: Value) -> Value:
        match value:
            case Static(type() as kind) if issubclass(kind, BaseException):
                self.check(ir.Const(False, PYBOOL), _exception_name(self, kind), "")
            case ErrorV(kind, message, args):
                self.check(ir.Const(False, PYBOOL), _exception_name(self, kind), message, args)
            case _:
                raise self.unsupported(f"raise of {self.describe(value)}")
        return NeverV()

    def assert_true(self, condition: ssa.Operand, message: ssa.Block | None) -> None:
        truth = self.truth(self.value(condition))
        if isinstance(truth, ir.Const) and truth.value:
            return
        text = MessageV("")
        if message is not None:
            found = self.run(message)[0]
            text = self.message(found)
        self.check(truth, "AssertionError", text.template, text.args)

    def message(self, value: Value) -> MessageV:
        match value:
            case MessageV():
                return value
            case Static(str() as text):
                return MessageV(text.replace("{", "{{").replace("}", "}}"))
            case ScalarV(operand) if value.python and not isinstance(operand, ir.Const):
                return MessageV("{0}", (operand,))
            case TupleV(items, kind) if not is_known(value) and all(
                isinstance(item, ScalarV) and item.python and item.dtype in ("int64", "float64") for item in items
            ):
                inner = ", ".join(f"{{{position}!r}}" for position in range(len(items)))
                if kind == "tuple":
                    inner = f"({inner},)" if len(items) == 1 else f"({inner})"
                else:
                    inner = f"[{inner}]"
                return MessageV(inner, tuple(item.operand for item in items if isinstance(item, ScalarV)))
        try:
            return MessageV(str(known(value)).replace("{", "{{").replace("}", "}}"))
        except Unknown:
            raise self.unsupported(f"a message made of {self.describe(value)}") from None

    def format_string(self, parts: Sequence[tuple[ssa.Operand, str, str]]) -> MessageV:
        template = ""
        args: list[ir.Operand] = []
        for operand, conversion, spec in parts:
            value = self.value(operand)
            if isinstance(value, ScalarV) and isinstance(value.operand, ir.Var):
                kind = np.dtype(value.dtype).kind
                if (kind not in "iu" and value.dtype != "float64") or (conversion == "r" and not value.python):
                    raise self.unsupported(f"{self.describe(value)} in a message")
                suffix = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
                template += f"{{{len(args)}{suffix}}}"
                args.append(self.builder.cast(value.operand, PYINT if kind in "iu" else PYFLOAT))
                continue
            if not is_known(value) and isinstance(value, TupleV | MessageV) and not spec and conversion != "r":
                inner = self.message(value)
                template += _renumbered(inner.template, len(args))
                args.extend(inner.args)
                continue
            found = self.static(value, "a part of a message")
            text = repr(found) if conversion == "r" else str(found) if conversion == "s" else found
            template += format(text, spec).replace("{", "{{").replace("}", "}}")
        return MessageV(template, tuple(args))

    # ---- calls (see calls.py) ----------------------------------------------------------------------------------------

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        from parakeet_py.typed_ir.calls import call

        return call(self, function, args, kwargs)

    def attribute(self, value: Value, name: str) -> Value:
        from parakeet_py.typed_ir.attributes import attribute

        return attribute(self, value, name)

    def library_subscript(self, value: Value, index: Value) -> Value | None:
        from parakeet_py.typed_ir.calls import library_subscript

        return library_subscript(self, value, index)

    def call_library(self, name: str, args: list[Value]) -> Value:
        """Call a helper of the library by its name."""
        from parakeet_py.library.registry import find_helper
        from parakeet_py.typed_ir.calls import call_python

        return call_python(self, find_helper(name), args, {}, trusted=True)

    def library_loop(self, ufunc: np.ufunc, names: Sequence[str]) -> Callable[[list[ir.Operand]], list[ir.Operand]]:
        """The loop of a ufunc that the library defines over scalars."""
        from parakeet_py.library.registry import scalar_function
        from parakeet_py.typed_ir.calls import call_python

        function = scalar_function(ufunc)
        if function is None:
            raise self.hand_back(f"np.{ufunc.__name__} of {names[0]}")

        def loop(operands: list[ir.Operand]) -> list[ir.Operand]:
            value = call_python(self, function, [ScalarV(operand) for operand in operands], {}, trusted=True)
            values = value.items if isinstance(value, TupleV) else (value,)
            return [one.operand for one in values if isinstance(one, ScalarV)]

        return loop

    def add_site(self, site: OpaqueSite) -> int:
        self.sites.append(site)
        return len(self.sites) - 1


def _renumbered(template: str, first: int) -> str:
    """A template whose fields are numbered from `first` on."""
    return re.sub(r"(?<!\{)\{(\d+)", lambda match: f"{{{int(match[1]) + first}", template)


def _exception_name(s: Specializer, kind: type[BaseException]) -> str:
    import builtins

    name: str = kind.__name__
    if getattr(builtins, name, None) is not kind:
        raise s.unsupported(f"raise of {name}, which is not a builtin exception")
    return name


__all__ = [
    "HiddenSpec",
    "IteratorV",
    "NeedHidden",
    "NeedObservation",
    "NeedStatic",
    "Specialization",
    "Specializer",
    "Template",
    "spec_of",
]
