"""Specialization: executing the untyped IR over abstract values, which writes the typed IR.

One `Specializer` makes one typed function for one signature. It walks the untyped SSA once (loops to a fixed point)
with an environment from untyped variables to abstract `Value`s, and emits typed statements for whatever cannot be
decided now. Python functions that are called are walked in turn with their arguments' values: every call is inlined.
NumPy functions are walked too, in the form they have in `library/`.

The `Specializer` holds the state of the walk and is the vocabulary of the modules that do it: `statements` knows every
operation of the untyped IR, `inputs` and `results` the two ends, `operators`, `containers`, `indexing`, `elementwise`
and `calls` what the operations do, `control`, `gates` and `tagged_scalars` where paths meet. They need each other, and
reach each other through its methods.

What ends the walk early has a way out (`requests`):

* `UnsupportedError`: this function cannot be compiled for this signature; Python runs it.
* `NeedStatic`: the *value* of a parameter decides a type (an axis, a shape's length); it starts again with that
  parameter specialized by value.
* `NeedObservation`: a call is handed back to Python and nobody has seen yet what it returns; the present call is run
  by the evaluator, which takes notes, and specialization starts again.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from parakeet_py.base.errors import KEY, UnsupportedError, exception_named
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.interrupts import poll
from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.signature.attribute_sources import OF_ALL, of_arguments
from parakeet_py.signature.results import Result
from parakeet_py.signature.specs import FunctionSpec, ObjectSpec, Signature, Source
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import Builder
from parakeet_py.typed_ir.places import place
from parakeet_py.typed_ir.specialize import compile_time_values, inputs, messages, results, statements
from parakeet_py.typed_ir.specialize.arrays import convert
from parakeet_py.typed_ir.specialize.arrays.deferred_views import NeedView, Shadows
from parakeet_py.typed_ir.specialize.containers import containers, dynamic_lists
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instances
from parakeet_py.typed_ir.specialize.instances.assigned_attributes import NeedField
from parakeet_py.typed_ir.specialize.instances.instances import NeedInstance
from parakeet_py.typed_ir.specialize.messages import compact
from parakeet_py.typed_ir.specialize.observed import Lookups
from parakeet_py.typed_ir.specialize.opaque.opaque import OpaqueSite, descriptions, is_pure_site, seldom_sites
from parakeet_py.typed_ir.specialize.paths import branches, iterator_consumption, join, tagged_scalars, tagged_unions
from parakeet_py.typed_ir.specialize.paths.guarded import Guard
from parakeet_py.typed_ir.specialize.paths.iterator_consumption import Readers
from parakeet_py.typed_ir.specialize.profitability import light_site
from parakeet_py.typed_ir.specialize.python import calls, operators, procedures
from parakeet_py.typed_ir.specialize.restarts import (
    FieldsMayChange,
    HandBack,
    NeedHidden,
    NeedObservation,
    NeedStatic,
    NeedUnroll,
    NeedWhole,
    Sequential,
)
from parakeet_py.typed_ir.specialize.type_names import described
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    DictV,
    ErrorV,
    Frame,
    ListV,
    Namespace,
    NeverV,
    ObjectV,
    ScalarV,
    Static,
    TaggedScalar,
    TupleV,
    UnboundV,
    Value,
    VariantV,
    known,
    lift,
)


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
    asked: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # the observations that it depends on
    has_loops: bool = False  # of the user's own, which would take Python long
    assigns: bool = False  # attributes, after which exceptions may come
    module_reads: frozenset[tuple[str, str]] = frozenset()  # names of NumPy's modules, see `patches`
    shared_with_python: bool = False  # is memory stored to that Python code may go on using, or the other way round?

    @property
    def opaque_calls(self) -> tuple[str, ...]:
        """What is handed back to Python: "name (line n): reason"."""
        return descriptions(self.opaque_sites)


logger = logging.getLogger("parakeet_py")

NO_GENERATOR = "a generator cannot be accelerated by itself"


class Specializer:
    """The state of one specialization, and the vocabulary of the modules that do it."""

    def __init__(
        self,
        function: ssa.Function,
        python_function: Callable[..., Any],
        signature: Signature,
        observed: dict[tuple[Any, ...], Any],
        strict: bool = False,
        guess: bool = False,
        fields: int = OF_ALL,
        takes_texts: bool = True,
    ) -> None:
        self.function = function
        self.python_function = python_function
        self.strict = strict
        self.guess = guess
        self.takes_texts = takes_texts
        self.texts: dict[int, tuple[Value, int]] = {}  # strings that are parameters, by `id`
        self.fields = fields  # whose attributes may be hidden arguments
        self.guessed: list[NeedObservation] = []
        self.signature = signature
        self.observed = Lookups(observed)
        self.builder = Builder()
        self.python_version = sys.version_info[:2]
        self.sites: list[OpaqueSite] = []
        self.roots = 0
        self.widened: list[str] = []
        self.unroll: set[int] = set()
        self.hints: dict[tuple[Any, ...], list[join.Template]] = {}
        self.path: tuple[Any, ...] = ()
        self.leaf_param: dict[ir.Var, int] = {}
        self.params: list[ir.Var] = []
        cells = dict(zip(python_function.__code__.co_freevars, python_function.__closure__ or (), strict=False))
        namespace = Namespace(python_function.__globals__, python_function, cells=cells)
        self.frames = [Frame(function, namespace)]
        self.pos = ssa.Pos(1, 0, 1, 0)
        self.out: ssa.Var | None = None  # of the statement that is being specialized
        self.in_body = 0
        self.outside: int | None = None  # roots up to this one are not of the element function that is specialized
        self.stores_of_elements = 0  # how often a store to such memory was met
        self.unrolling = 0
        self.looping = 0
        self.has_unsteady = False  # a nested function has captured what may be bound again
        self.has_loops = False
        self.guards: list[Guard] = []  # statements whose exceptions are caught, and sides of branches in them
        self.lists_given = False  # has Python been given lists whose items might be assigned here,
        self.lists_stored = False  # and have items of such lists been assigned?
        self.yields: list[Callable[[Value], Value]] = []  # what is done with items of generators that are gone through
        self.list_changes = 0  # statements that have changed lists
        self.recursions = 0  # how often a function has been inlined into itself
        self.object_specs: dict[ir.Var, ObjectSpec] = {}  # of objects that Python has given
        self.classes: dict[ir.Var, type] = {}  # of objects in parameters, for messages
        self.random_states: dict[ir.Var, TupleV] = {}  # of generators that Python has made (see `drawing`)
        self.unusual_arrays: set[ir.Var] = set()  # parameters: subclasses, odd dtypes, unaligned...
        self.list_roots: dict[int, int] = {}  # the memory of long lists that are parameters
        self.lists: dict[int, tuple[Value, int]] = {}  # lists in parameters, by `id`
        self.rows: frozenset[int] = frozenset()  # the memory of lists in lists (see `tables`)
        self.read_late: set[Source] = set()
        self.module_reads: set[tuple[str, str]] = set()
        self.new_axes: set[ir.Var] = set()  # views with axes that the user's code has put in by None, whose steps are 0
        self.closures_read_late = False
        self.param_roots: frozenset[int] = frozenset()  # the memory of all array parameters
        self.static_extents: list[tuple[ir.Var, int, int]] = []
        self.shadows = Shadows()
        self.procedures = procedures.Procedures()
        self.assigned: tuple[Source, ...] = ()  # attributes (see `field_state`)
        self.fields_before: dict[Source, Value] = {}
        self.assigned_at: int | None = None  # the statement of the outermost block at which one is, first
        self.readers: dict[int, tuple[ssa.Function, Readers]] = {}  # of functions, by `id`
        self.instances = instances.Instances()
        self.element_roots = 0  # roots up to this one are not of the element function that is specialized,
        self.loop_roots = 0  # or of the loop's turn
        self.outer_fields: frozenset[Source] = frozenset()  # attributes that the element function has not made

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def specialize(self) -> Specialization:
        """The typed function of this signature."""
        try:
            return self._specialize()
        except RecursionError:
            deep = "calls or branches nested too deeply to be compiled"
            raise UnsupportedError.at(self.function, self.pos, deep, "write it as a loop") from None
        except UnsupportedError as error:
            if not self.instances.made:
                raise
            logger.debug("Python makes the instances of %s: %s", self.function.name, error.message)
            again = self._again_with(self.instances)
            again.instances.wanted = False
            try:
                return again.specialize()
            except UnsupportedError:
                raise error from None
        except NeedInstance:
            return self._again_with(self.instances).specialize()
        except HandBack as reason:  # of something that is no operation of the program's: all goes back
            raise UnsupportedError.at(self.function, self.pos, str(reason)) from None
        except NeedView as need:
            if need.sites <= self.shadows.wanted:  # what no operation at these sites can give
                message = "arrays in a list that are stored to or seen elsewhere"
                raise UnsupportedError.at(self.function, self.pos, message) from None
            again = self._again_with(self.instances)
            again.shadows = Shadows(need.sites)
            return again.specialize()
        except NeedUnroll:
            raise UnsupportedError.at(self.function, self.pos, "the index of a loop has to be known here") from None
        except NeedField as need:
            again = self._again_with(self.instances)
            again.assigned = (*self.assigned, need.source)
            return again.specialize()

    def _again_with(self, known: instances.Instances) -> Specializer:
        """One that starts from the beginning with what this one has found out."""
        again = self.again()
        again.shadows = Shadows(self.shadows.wanted)
        again.assigned = self.assigned
        again.instances = known.again()
        return again

    def again(self) -> Specializer:
        """One that starts from the beginning."""
        return Specializer(
            self.function,
            self.python_function,
            self.signature,
            self.observed.observed,
            self.strict,
            self.guess,
            self.fields,
            self.takes_texts,
        )

    def _specialize(self) -> Specialization:
        if self.function.generator:
            hint = "let another function go through it, or fill an array and return it"
            raise UnsupportedError.at(self.function, self.function.body.statements[0].pos, NO_GENERATOR, hint)
        self.shared_root = self.new_root() if not self.signature.disjoint else -1
        self.functions = [i for i, spec in enumerate(self.signature.params) if isinstance(spec, FunctionSpec)]
        arguments = [inputs.parameter(self, spec, index) for index, spec in enumerate(self.signature.params)]
        if self.takes_texts:
            given = enumerate(zip(self.signature.params, arguments, strict=True))
            self.texts = {id(v): (v, at) for at, (_, v) in given if isinstance(v, Static) and type(v.object) is str}
        self.hidden: dict[Source, Value] = {}
        offset = len(arguments)
        for position, hidden in enumerate(self.signature.hidden):
            self.hidden[hidden.source] = inputs.parameter(self, hidden.spec, offset + position)
        frame = self.frames[0]
        if len(arguments) != len(self.function.params):
            raise self.unsupported("the number of arguments does not fit")
        for param, value in zip(self.function.params, arguments, strict=True):
            if param.kind == "varkw":
                assert isinstance(value, TupleV)
                pairs = zip(value.items[::2], value.items[1::2], strict=True)
                value = DictV(tuple((known(name), item) for name, item in pairs))
            frame.env[param.var] = value
        assigned_attributes.begin(self)
        value = self.run(self.function.body)[0]
        if self.assigned and not all(map(is_pure_site, self.sites)):
            raise FieldsMayChange
        late = any(map(of_arguments, self.read_late))
        if late and not all(map(is_pure_site, self.sites)):
            raise FieldsMayChange
        if self.closures_read_late and not all(map(is_pure_site, self.sites)):
            raise NeedStatic(self.functions[0], "a function whose closure may change")
        leaves = results.Leaves()
        tree = assigned_attributes.finished(self, results.result_tree(self, value, leaves), leaves)
        body = ir.Block(tuple(self.builder.scopes[0].statements), tuple(leaves))
        typed = ir.Function(
            re.sub(r"\W", "_", self.function.name),
            tuple(self.params),
            body,
            self.function.filename,
            self.signature.disjoint,
            tuple(self.static_extents),
        )
        risky = assigned_attributes.may_fail_after(self, typed.body)
        typed = procedures.attached(self, typed)
        light = light_site(typed, seldom_sites(self.sites)) if self.sites else None
        if light is not None:
            site = self.sites[light]
            raise UnsupportedError.at(
                self.function, site.key[-2], f"{site.reason} in a loop that does little else: it is faster in Python"
            )
        stored = results.stored_params(typed)
        return Specialization(
            typed,
            self.signature,
            tree,
            tuple(self.sites),
            stored,
            tuple(self.widened),
            frozenset(self.read_late),
            tuple(self.guessed),
            self.observed.asked,
            self.has_loops,
            risky,
            frozenset(self.module_reads),
            self.shadows.both,
        )

    def run(self, block: ssa.Block) -> list[Value]:
        """Execute a block; its results."""
        frame = self.frames[-1]
        for let in block.statements:
            poll()
            self.pos = let.pos
            if not frame.namespace.trusted:  # what the library does happens, for the user, where it was called
                self.builder.pos = place(frame.function, let.pos, frame.caller)
            values = statements.execute(self, let)
            if any(isinstance(value, NeverV) for value in values) and not isinstance(
                let.op, ssa.If | ssa.For | ssa.While | ssa.Guarded
            ):
                return [NeverV()] * len(block.results)
            iterator_consumption.check_statement(self, let, values)
            for var, value in zip(let.outs, values, strict=True):
                frame.env[var] = value
            if self.dead:
                return [NeverV()] * len(block.results)
        return [self.value(result) for result in block.results]

    @property
    def dead(self) -> bool:
        """True when the open block has ended in a check that always fails."""
        return branches.ends_in_failure(self.builder.scopes[-1].statements)

    def value(self, operand: ssa.Operand) -> Value:
        if isinstance(operand, ssa.Const):
            if operand.value is ssa.UNBOUND:
                return UnboundV()
            return lift(operand.value)
        value = self.frames[-1].env[operand]
        value = tagged_unions.narrowed(self, value) if isinstance(value, VariantV) else value
        return tagged_scalars.narrowed(self, value) if isinstance(value, TaggedScalar) else value

    def shown(self, operand: ssa.Operand) -> Value:
        """A value for those who know lists as arrays."""
        return dynamic_lists.shown(self, self.value(operand))

    def bind(self, var: ssa.Var, value: Value) -> None:
        self.frames[-1].env[var] = value

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
        if self.outside is not None and any(root <= self.outside for root in array.roots):
            self.stores_of_elements += 1
            raise Sequential.at(self.frames[-1].function, self.builder.pos, "a store in an element function")
        self.shadows.store(array.roots)
        self.shadows.change(array.roots)

    def give_list(self, what: str) -> None:
        """A list goes where it would be seen if its items were assigned from now on."""
        if self.lists_stored and self.looping:
            raise self.unsupported(what)
        self.lists_given = True

    def shadow(self, base: ArrayV, made_here: bool = False) -> frozenset[int]:
        """The memory of a copy that stands for a view of `base`; `made_here`: which is new in each iteration."""
        return self.shadows.add(self, base, made_here)

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
        if exception == "Deoptimize" and not args:
            message = message.replace("{", "{{").replace("}", "}}")  # it may show what the user has written
        key = ("check", condition)
        caught = self.guards[-1].handler(exception) if self.guards and exception != "Deoptimize" else 0
        of_library = self.frames[-1].namespace.trusted
        if caught and self.guards[-1].keeps and of_library and not self.has_loops:
            exception, caught = "Deoptimize", 0  # the handler may look at the message, which is NumPy's
        if not isinstance(condition, ir.Const):
            for scope in b.scopes:
                if key in scope.shared:
                    return
        if caught:
            error = ErrorV(exception_named(exception), message, tuple(args))
            self.guards[-1].leave_unless(self, condition, ir.Const(caught, PYINT), error)
            tagged_unions.learn(self, condition, True)
            if isinstance(condition, ir.Var):
                b.scopes[-1].shared[key] = condition
                return
        text, shown = compact(message, args) if message != KEY else (message, tuple(args))
        b.emit(ir.Check(condition, ir.Failure(exception, text, of_library), shown))
        if isinstance(condition, ir.Var):
            b.scopes[-1].shared[key] = condition
            tagged_unions.learn(self, condition, True)

    def note_widening(self, left: Scalar, right: Scalar) -> None:
        self.widened.append(f"line {self.builder.pos.line}: {left} and {right} meet")

    def unroll_wanted(self, op: ssa.For) -> bool:
        return id(op) in self.unroll

    def loop_templates(self, op: ssa.Op, inits: Sequence[Value]) -> list[join.Template]:
        """The templates to start a loop with: those of the initial values, joined with what an earlier visit found.

        Names that functions share come last; a later turn of a loop that is written out has more of them.
        """
        found = [join.template_of(value, varying=True) for value in inits]
        hint = self.hints.get((*self.path, id(op)))
        if hint is None:
            return found
        known = [self._with_hint(template, other) for template, other in zip(found, hint, strict=False)]
        return [*known, *found[len(known) :]]

    def _with_hint(self, template: join.Template, hint: join.Template) -> join.Template:
        return (
            join.join(self, template, hint)
            if tagged_scalars.kinds_of(template) and tagged_scalars.kinds_of(hint)
            else template
        )

    def remember_templates(self, op: ssa.Op, templates: list[join.Template]) -> None:
        self.hints[(*self.path, id(op))] = templates

    def settle(self, values: Sequence[Value]) -> list[Value]:
        """Values that something can keep: pending comprehensions are computed."""
        if any(map(iterator_consumption.holds_iterator, values)):
            raise self.unsupported("an iterator that is kept")
        return self.gated(values)

    def gated(self, values: Sequence[Value]) -> list[Value]:
        """Values that can pass a gate: pending comprehensions are computed; iterators stay what they are."""
        return [
            self.as_list(value)
            if isinstance(value, ComprehensionV) and not iterator_consumption.is_iterator(value)
            else value
            for value in values
        ]

    def describe(self, value: Value) -> str:
        if not isinstance(value, ObjectV):
            return described(value)
        spec = self.object_specs.get(value.var)
        return described(value, self.classes.get(value.var) or (None if spec is None else spec.type))

    @contextmanager
    def element_function(self, stores: bool = False) -> Iterator[None]:
        """Inside, nothing can be handed back to Python: the code runs once per element, in parallel.

        Without `stores`, what is outside cannot be stored to either: elements are computed in any order.
        """
        self.in_body += 1
        outside, roots, fields = self.outside, self.element_roots, self.outer_fields
        self.outside = outside if stores else self.roots
        self.element_roots, self.outer_fields = self.roots, frozenset(self.builder.fields)
        try:
            yield
        finally:
            self.in_body -= 1
            self.outside, self.element_roots, self.outer_fields = outside, roots, fields

    def add_site(self, site: OpaqueSite) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    # ---- the vocabulary of the other modules -------------------------------------------------------------------------

    def single(self, let: ssa.Let) -> Value | None:
        return statements.single(self, let)

    def static(self, value: Value, what: str) -> Any:
        return compile_time_values.static(self, value, what)

    def static_int(self, value: Value, what: str) -> int:
        return compile_time_values.static_int(self, value, what)

    def need_whole(self, value: Value) -> None:
        inputs.need_whole(self, value)

    def hidden_value(self, source: Source, found: Any) -> Value:
        return inputs.hidden_value(self, source, found)

    def numeric(self, value: Value, dtype: str | None = None) -> ScalarV | ArrayV:
        return convert.numeric(self, value, dtype)

    def as_array(self, value: Value, dtype: str | None = None) -> ArrayV | ScalarV:
        return convert.as_array(self, value, dtype)

    def cast_array(self, array: ArrayV, dtype: str) -> ArrayV:
        return convert.cast_array(self, array, dtype)

    def as_python(self, value: Value) -> Value:
        return convert.as_python(self, value)

    def as_list(self, value: Value) -> Value:
        return convert.as_list(self, value)

    def list_item(self, value: ListV, index: Value) -> Value:
        return convert.list_item(self, value, index)

    def truth(self, value: Value) -> ir.Operand:
        return convert.truth(self, value)

    def binary(self, op: str, left: Value, right: Value) -> Value:
        return tagged_scalars.each(self, (left, right), lambda *one: [operators.binary_operator(self, op, *one)])[0]

    def compare(self, op: str, left: Value, right: Value) -> Value:
        return tagged_scalars.each(self, (left, right), lambda *one: [operators.compare(self, op, *one)])[0]

    def items(self, items: Sequence[ssa.Item]) -> list[Value]:
        return containers.item_values(self, items)

    def keywords(self, kwargs: Sequence[tuple[str | None, ssa.Operand]]) -> dict[str, Value]:
        return containers.keyword_values(self, kwargs)

    def sequence(self, value: Value) -> list[Value]:
        return containers.sequence(self, value)

    def message(self, value: Value) -> tuple[str, tuple[ir.Operand, ...]]:
        return messages.message_of(self, value)

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return calls.call(self, function, args, kwargs)

    def call_library(self, name: str, args: list[Value]) -> Value:
        return calls.call_library(self, name, args)

    def call_plain(self, name: str, args: list[Value]) -> Value:
        return calls.call_plain(self, name, args)

    def library_loop(self, ufunc: np.ufunc, names: Sequence[str]) -> Callable[[list[ir.Operand]], list[ir.Operand]]:
        return calls.library_loop(self, ufunc, names)


__all__ = [
    "NeedHidden",
    "NeedObservation",
    "NeedStatic",
    "NeedWhole",
    "Specialization",
    "Specializer",
]
