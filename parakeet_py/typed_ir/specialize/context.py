"""The state of one specialization (its parts are in `state`), and the vocabulary of the modules that do it.

Rules are written against `Context`: its attributes, its small services, and the operations that it declares and that
`Specializer` fulfils with rules. So no rule imports another for what every rule may need, or the specializer itself.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from parakeet_py.base.errors import KEY, UnsupportedError, exception_named
from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.signature.facts import Facts
from parakeet_py.signature.specs import Signature, Source, Spec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import Builder, ends_in_failure
from parakeet_py.typed_ir.places import Place, outside_library
from parakeet_py.typed_ir.semantics import OVERFLOW
from parakeet_py.typed_ir.specialize.deferred_views import DeferredViews
from parakeet_py.typed_ir.specialize.instances.table import Instances
from parakeet_py.typed_ir.specialize.message_arguments import compact, escaped
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite
from parakeet_py.typed_ir.specialize.paths.templates import Structure, Template
from parakeet_py.typed_ir.specialize.restarts import (
    HandBack,
    RealView,
    Sequential,
    Site,
    WrittenOut,
)
from parakeet_py.typed_ir.specialize.state import (
    Arguments,
    Assigned,
    Checkpoint,
    Elements,
    Loops,
    Memory,
    Procedures,
    PythonState,
    Rows,
    WalkFacts,
)
from parakeet_py.typed_ir.specialize.type_names import described
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ErrorV,
    Frame,
    InstanceV,
    ItemAt,
    Namespace,
    ObjectV,
    RefV,
    ScalarV,
    TaggedScalar,
    TupleV,
    UnboundV,
    Value,
    VariantV,
    lift,
)


class Guard(Protocol):
    """A guarded statement, or one side of a branch in it (see `paths.guarded`)."""

    keeps: bool
    classes: tuple[tuple[type[BaseException], ...], ...]
    roots: int

    def is_open(self, s: Context) -> bool: ...

    def handler(self, exception: str) -> int: ...

    def catches(self, kind: type[BaseException]) -> int: ...

    def may_make(self, s: Context, kind: type[BaseException]) -> int: ...

    def is_by_python(self, handler: int) -> bool: ...

    def ends_in_python(self) -> bool: ...

    def goes_to_python(self, exits: bool) -> bool: ...

    def leave_by_python(self, s: Context, condition: ir.Operand) -> None: ...

    def leave_unless(self, s: Context, condition: ir.Operand, exit: ir.Operand, error: Value | None = None) -> None: ...

    def stay_if_zero(self, s: Context, exit: ir.Operand, error: Value | None = None) -> None: ...

    def around_python(self, s: Context) -> tuple[tuple[type[BaseException], ...], ...]: ...


class Context(ABC):
    """The state of one specialization, and the vocabulary of the modules that do it."""

    def __init__(
        self,
        function: ssa.Function,
        python_function: Callable[..., Any],
        signature: Signature,
        facts: Facts,
        observed: dict[tuple[Any, ...], Any],
        extended: Callable[[Signature, Source], Signature],
        strict: bool = False,
        guess: bool = False,
        continued: Container[ssa.Pos] = (),
        polls: bool = False,
    ) -> None:
        self.facts = WalkFacts(facts)
        self.arguments = Arguments(signature, extended)
        self.memory = Memory()
        self.builder = Builder(self.hand_back)
        self.python = PythonState(observed, strict, guess, continued, polls)
        self.loops = Loops()
        self.rows = Rows()
        self.elements = Elements()
        self.procedures = Procedures()
        self.assigned = Assigned()
        self.instances = Instances(facts)
        self.deferred_views = DeferredViews(facts, self._want_views)
        cells = dict(zip(python_function.__code__.co_freevars, python_function.__closure__ or (), strict=False))
        namespace = Namespace(python_function.__globals__, python_function, cells=cells)
        self.frames = [Frame(function, namespace)]
        self.guards: list[Guard] = []  # statements whose exceptions are caught, and sides of branches in them
        self.widened: list[str] = []  # where values of several types meet, for `explain`
        self.new_axes: set[ir.Var] = set()  # views with axes that the user's code has put in by None, whose steps are 0
        self.readers: dict[int, tuple[ssa.Function, Any]] = {}  # of functions, by `id`
        self.loops.unroll = {one.number for one in facts.of(WrittenOut)}

    @property
    def frame(self) -> Frame:
        """The call that is executed."""
        return self.frames[-1]

    @property
    def out(self) -> ssa.Var | None:
        """What the statement that is executed binds, if that is one variable."""
        outs = self.frame.way[-1].outs
        return outs[0] if len(outs) == 1 else None

    @property
    def dead(self) -> bool:
        """True when the open block has ended in a check that always fails."""
        return ends_in_failure(self.builder.scopes[-1].statements)

    def value(self, operand: ssa.Operand) -> Value:
        if isinstance(operand, ssa.Const):
            if operand.value is ssa.UNBOUND:
                return UnboundV()
            return lift(operand.value)
        value = self.frame.env[operand]
        return self.narrowed(value) if isinstance(value, VariantV | TaggedScalar) else value

    def bind(self, var: ssa.Var, value: Value) -> None:
        self.frame.env[var] = value

    def unsupported(self, message: str, hint: str = "") -> UnsupportedError:
        at = outside_library(self.builder.pos)
        users = [frame for frame in self.frames if not frame.namespace.trusted]
        if isinstance(at, Place):  # helpers of the library may stand for Python's own steps
            users = [frame for frame in users if frame.function.filename == at.filename]
        return UnsupportedError.at((users or self.frames)[-1].function, at, message, hint)

    def hand_back(self, what: str) -> HandBack:
        return HandBack(what)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.builder.mark(), len(self.python.sites))

    def rollback(self, start: Checkpoint) -> None:
        """Undo what has been emitted since then."""
        self.builder.rollback(start.code)
        del self.python.sites[start.sites :]

    def _want_views(self, sites: frozenset[Site]) -> None:
        new = sites - self.deferred_views.wanted
        for site in new:
            self.facts.note(RealView(site))
        if not new:  # what no operation at these sites can give
            self.facts.restart(RealView(next(iter(sites))), "arrays in a list that are stored to or seen elsewhere")

    def will_store(self, array: ArrayV) -> None:
        """Called for every array that is stored to."""
        if self.elements.outside is not None and any(root <= self.elements.outside for root in array.roots):
            self.elements.stores_of_elements += 1
            raise Sequential.at(self.frame.function, self.builder.pos, "a store in an element function")
        self.python.effects += 1
        self.python.changes += not array.roots.isdisjoint(self.arguments.param_roots)
        self.deferred_views.store(array.roots)
        self.deferred_views.change(array.roots)

    def give_list(self, what: str) -> None:
        """A list goes where it would be seen if its items were assigned from now on."""
        if self.python.lists_stored and self.loops.looping:
            raise self.unsupported(what)
        self.python.lists_given = True

    def deferred_view(self, base: ArrayV, made_here: bool = False) -> frozenset[int]:
        """The memory of a copy that stands for a view of `base`; `made_here`: which is new in each iteration."""
        return self.deferred_views.add(base, made_here, self.memory.new_root, self.frames)

    def dim(self, var: ir.Var, axis: int) -> ir.Var:
        extent = self.builder.pure(ir.Dim(var, axis), PYINT, name="n")
        self.builder.as_count(extent)
        return extent

    def index_var(self, name: str, extent: ir.Operand) -> ir.Var:
        """An index variable of an operator: 0 <= index < extent."""
        b = self.builder
        index = ir.Var(name, PYINT)
        b.as_count(index)
        terms, constant = b.form(extent)
        b.upper[index] = (terms, constant - 1)
        return index

    def in_scope(self, operand: ir.Operand) -> bool:
        return self.builder.in_scope(operand)

    def check(
        self,
        condition: ir.Operand,
        exception: str,
        message: str,
        args: Sequence[ir.Operand] = (),
        *,
        of_library: bool = False,
    ) -> None:
        """Raise unless the condition holds (nothing is emitted for one that is known to).

        `of_library`: the message may be another one than NumPy's, as those of the library's functions may be.
        """
        if isinstance(condition, ir.Const) and condition.value:
            return
        b = self.builder
        if exception == "Deoptimize" and not args:
            message = escaped(message)  # it may show what the user has written
        key = ("check", condition)
        for_python = exception == "Deoptimize" or message == OVERFLOW  # no exception of the program's
        caught = self.guards[-1].handler(exception) if self.guards and not for_python else 0
        of_library = of_library or self.frame.namespace.trusted
        if caught and self.guards[-1].keeps and of_library and not self.loops.has_loops:
            exception, caught = "Deoptimize", 0  # the handler may look at the message, which is NumPy's
        if not isinstance(condition, ir.Const):
            for scope in b.scopes:
                if key in scope.shared:
                    return
        if caught and self.guards[-1].is_by_python(caught):
            self.guards[-1].leave_by_python(self, condition)
            if isinstance(condition, ir.Var):
                self.learn(condition, True)
                b.scopes[-1].shared[key] = condition
            return
        if caught:
            error = ErrorV(exception_named(exception), message, tuple(args), (b.pos,))
            self.guards[-1].leave_unless(self, condition, ir.Const(caught, PYINT), error)
            self.learn(condition, True)
            if isinstance(condition, ir.Var):
                b.scopes[-1].shared[key] = condition
                return
        text, shown = compact(message, args) if message != KEY else (message, tuple(args))
        if not (for_python and b.pos in self.python.continued and self.continue_unless(condition)):
            b.emit(ir.Check(condition, ir.Failure(exception, text, of_library), shown))
        if isinstance(condition, ir.Var):
            b.scopes[-1].shared[key] = condition
            self.learn(condition, True)

    def note_widening(self, left: Scalar, right: Scalar) -> None:
        self.widened.append(f"line {self.builder.pos.line}: {left} and {right} meet")

    def describe(self, value: Value) -> str:
        if not isinstance(value, ObjectV):
            return described(value)
        spec = self.arguments.object_specs.get(value.var)
        return described(value, self.arguments.classes.get(value.var) or (None if spec is None else spec.type))

    @contextmanager
    def element_function(self, stores: bool = False) -> Iterator[None]:
        """Inside, nothing can be handed back to Python: the code runs once per element, in parallel.

        Without `stores`, what is outside cannot be stored to either: elements are computed in any order.
        """
        with self.elements.one_more(None if stores else self.memory.newest, self.memory.newest, self.builder.fields):
            yield

    def add_site(self, site: OpaqueSite) -> int:
        self.python.sites.append(site)
        return len(self.python.sites) - 1

    # ---- the vocabulary ----------------------------------------------------------------------------------------------

    @abstractmethod
    def apart(self, frame: Frame) -> Context:
        """The state of a specialization of its own, of a call that knows nothing of what is around it."""

    @abstractmethod
    def continue_unless(self, condition: ir.Operand) -> bool:
        """Let Python go on from the present statement unless a condition holds; False if that cannot be."""

    @abstractmethod
    def narrowed(self, value: Value) -> Value:
        """A value of one of several kinds, as far as it is known here which it is."""

    @abstractmethod
    def learn(self, condition: ir.Operand, holds: bool) -> None:
        """A condition holds from here on, or does not."""

    @abstractmethod
    def run(self, block: ssa.Block) -> list[Value]:
        """Execute a block; its results."""

    @abstractmethod
    def shown(self, operand: ssa.Operand) -> Value:
        """A value for those who know lists as arrays."""

    @abstractmethod
    def loop_templates(self, op: ssa.Op, inits: Sequence[Value]) -> list[Template]:
        """The templates to start a loop with: those of the initial values, joined with what an earlier visit found.

        Names that functions share come last; a later iteration of a loop that is written out has more of them."""

    @abstractmethod
    def settle(self, values: Sequence[Value]) -> list[Value]:
        """Values that something can keep: pending comprehensions are computed."""

    @abstractmethod
    def mergeable(self, values: Sequence[Value]) -> list[Value]:
        """Values that can pass a join: pending comprehensions are computed; iterators stay what they are."""

    @abstractmethod
    def single(self, let: ssa.Let) -> Value | None: ...

    @abstractmethod
    def static(self, value: Value, what: str) -> Any: ...

    @abstractmethod
    def static_int(self, value: Value, what: str) -> int: ...

    @abstractmethod
    def need_whole(self, value: Value) -> None: ...

    @abstractmethod
    def go_on_whole(self, value: Value) -> bool: ...

    @abstractmethod
    def hidden_value(self, source: Source) -> Value: ...

    @abstractmethod
    def taken(self, source: Source) -> Value: ...

    @abstractmethod
    def numeric(self, value: Value, dtype: str | None = None) -> ScalarV | ArrayV: ...

    @abstractmethod
    def as_array(self, value: Value, dtype: str | None = None) -> ArrayV | ScalarV: ...

    @abstractmethod
    def cast_array(self, array: ArrayV, dtype: str) -> ArrayV: ...

    @abstractmethod
    def as_python(self, value: Value) -> Value: ...

    @abstractmethod
    def as_list(self, value: Value) -> Value: ...

    @abstractmethod
    def truth(self, value: Value) -> ir.Operand: ...

    @abstractmethod
    def binary(self, op: str, left: Value, right: Value) -> Value: ...

    @abstractmethod
    def compare(self, op: str, left: Value, right: Value) -> Value: ...

    @abstractmethod
    def items(self, items: Sequence[ssa.Item]) -> list[Value]: ...

    @abstractmethod
    def keywords(self, kwargs: Sequence[tuple[str | None, ssa.Operand]]) -> dict[str, Value]: ...

    @abstractmethod
    def sequence(self, value: Value) -> list[Value]: ...

    @abstractmethod
    def message(self, value: Value) -> tuple[str, tuple[ir.Operand, ...]]: ...

    @abstractmethod
    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value: ...

    @abstractmethod
    def call_library(self, name: str, args: list[Value]) -> Value: ...

    @abstractmethod
    def call_plain(self, name: str, args: list[Value]) -> Value: ...

    @abstractmethod
    def library_loop(self, ufunc: np.ufunc, names: Sequence[str]) -> Callable[[list[ir.Operand]], list[ir.Operand]]: ...

    @abstractmethod
    def inlined(self, frame: Frame) -> Value:
        """What a frame returns that is executed in here."""

    @abstractmethod
    def call_python(self, function: Any, args: Sequence[Value], kwargs: dict[str, Value], *, trusted: bool) -> Value:
        """Inline a Python function."""

    @abstractmethod
    def call_method(self, obj: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value: ...

    @abstractmethod
    def looked_into(self, target: Any) -> tuple[ssa.Function, types.FunctionType] | None:
        """The function that would be inlined in a call of `target`."""

    @abstractmethod
    def attribute(self, value: Value, name: str) -> Value: ...

    @abstractmethod
    def subscript(self, value: Value, index: Value) -> Value: ...

    @abstractmethod
    def set_item(self, target: Value, index: Value, value: Value) -> None: ...

    @abstractmethod
    def unary(self, op: str, value: Value) -> Value: ...

    @abstractmethod
    def inplace(self, op: str, left: Value, right: Value) -> Value: ...

    @abstractmethod
    def table_of(self, value: TupleV) -> ItemAt | None:
        """Gives the item at a position that is one; None if the items have no type in common."""

    @abstractmethod
    def changed(self, kind: str, held: Value, args: list[Value]) -> list[Value]:
        """A list, dict or set with a change done; before it, the item that the change gives."""

    # ---- Python's part -----------------------------------------------------------------------------------------------

    @abstractmethod
    def opaque_operation(self, let: ssa.Let, reason: str) -> Value | None:
        """A statement, done by Python."""

    @abstractmethod
    def called_by_python(self, function: Callable[..., Any], args: list[Value], reason: str, spec: Spec) -> Value:
        """What a function gives that Python calls; `spec` is its type."""

    # ---- where paths meet --------------------------------------------------------------------------------------------

    @abstractmethod
    def join_containers(self, left: Template, right: Template) -> Template | None:
        """The template of two containers of different kinds; None if there is none."""

    @abstractmethod
    def join_as_union(self, left: Template, right: Template) -> Template | None:
        """The template of a value of one of several kinds; None if it cannot be one."""

    @abstractmethod
    def union_leaves(self, value: Value, template: Structure, like: Value | None) -> list[ir.Operand]:
        """The operands of a value as one of several kinds."""

    @abstractmethod
    def scalar_leaves(self, value: Value, kinds: tuple[Scalar, ...], like: Value | None) -> list[ir.Operand]:
        """The operands of a scalar as one of several types."""

    @abstractmethod
    def scalar_of(self, kinds: tuple[Scalar, ...], variables: list[ir.Var], rare: bool) -> Value:
        """The scalar of several types that a join gives; consumes its variables."""

    @abstractmethod
    def boxed(self, value: Value, reason: str = "values of different types meet") -> ObjectV:
        """A value as an object of Python's."""

    @abstractmethod
    def branch(
        self, condition: ir.Operand, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
    ) -> list[Value]:
        """A branch whose two sides are given as functions that return their values."""

    @abstractmethod
    def leaving(self, values: Sequence[Value], before: int) -> list[Value]:
        """Values that leave the block in which all objects after `before` have been made."""

    @abstractmethod
    def frozen(self, value: RefV) -> InstanceV:
        """An instance as a value, which nothing changes any more."""
