"""Specialization: executing the untyped IR over abstract values, which writes the typed IR.

One `Specializer` makes one typed function for one signature. It walks the untyped SSA once (loops to a fixed point)
with an environment from untyped variables to abstract `Value`s, and emits typed statements for whatever cannot be
decided now. Python functions that are called are walked in turn with their arguments' values: every call is inlined.
NumPy functions are walked too, in the form they have in `library/`.

`Context` holds the state of the walk and declares the operations that rules need of each other; the `Specializer`
fulfils these with rules: `statements` knows every operation of the untyped IR, `inputs` and `results` the two ends,
`arrays`, `python`, `containers`, `instances` and `opaque` what the operations do, `paths` where paths meet. Rules
import the context, never the specializer.

What ends the walk early has a way out (`restarts`):

* `UnsupportedError`: this function cannot be compiled for this signature; Python runs it.
* `Restart`: facts are missing, such as the *value* of a parameter that decides a type (an axis, a shape's length).
* `NeedObservation`: a call is handed back to Python and it is not known yet what it returns; the present call is run
  by the evaluator, which takes notes.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.interrupts import poll
from parakeet_py.frontend import ssa
from parakeet_py.signature.attribute_sources import OF_ARGUMENTS, OF_NONE, of_arguments
from parakeet_py.signature.facts import Facts, FewerAttributes, KnownValue, WholeList, is_held
from parakeet_py.signature.results import Result
from parakeet_py.signature.specs import FunctionSpec, Signature, Source, Spec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import place
from parakeet_py.typed_ir.specialize import (
    compile_time_values,
    inputs,
    messages,
    results,
    shared_containers,
    statements,
)
from parakeet_py.typed_ir.specialize.arrays import convert
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    constant_tables,
    containers,
    dynamic_lists,
    hash_maps,
    joins,
    list_changes,
    list_objects,
    ragged_arrays,
    sorted_lists,
    sorting,
)
from parakeet_py.typed_ir.specialize.context import Context
from parakeet_py.typed_ir.specialize.forms import FORMS
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instance_columns, instances
from parakeet_py.typed_ir.specialize.instances import values as instance_values
from parakeet_py.typed_ir.specialize.opaque import frame_states, made_containers, opaque
from parakeet_py.typed_ir.specialize.opaque.operands import LISTS
from parakeet_py.typed_ir.specialize.opaque.operations import Operation
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite, descriptions, is_pure_site, seldom_sites
from parakeet_py.typed_ir.specialize.paths import (
    branches,
    comprehensions,
    generators,
    iterator_consumption,
    join,
    tagged_scalars,
    tagged_unions,
    tags,
)
from parakeet_py.typed_ir.specialize.paths.templates import Template, kinds_of, template_of
from parakeet_py.typed_ir.specialize.profitability import light_site
from parakeet_py.typed_ir.specialize.python import (
    attributes,
    builtin_calls,
    builtin_reductions,
    calls,
    inlined_functions,
    math_calls,
    operator_calls,
    operators,
    procedures,
)
from parakeet_py.typed_ir.specialize.python.table import BUILTINS
from parakeet_py.typed_ir.specialize.restarts import ContainerOfPython, HandBack, NeedObservation, Restart
from parakeet_py.typed_ir.specialize.times import times
from parakeet_py.typed_ir.specialize.values import (
    WITH_COLUMNS,
    ComprehensionV,
    DictV,
    Frame,
    NeverV,
    Static,
    TupleV,
    Value,
    known,
)


def _any_caller() -> None:
    """What calls a procedure of the library."""


def _extended(signature: Signature, source: Source) -> Signature:
    raise UnsupportedError(f"a procedure of the library that reads {source}")


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
    asks_writeable: bool = False  # does the function look whether arrays can be written to?
    calls_numba: bool = False  # are there calls of this process's code (`native_functions`)?
    asks_classes: bool = False  # does the user's code ask whether an array is one of NumPy's?

    @property
    def hands_back(self) -> bool:
        """Is anything done by Python, but for what handlers of signals raise?"""
        return bool(self.guessed) or not all(site.interrupted for site in self.opaque_sites)

    @property
    def looks(self) -> bool:
        """Do loops ask whether a handler of a signal has raised?"""
        return any(site.interrupted for site in self.opaque_sites)

    @property
    def opaque_calls(self) -> tuple[str, ...]:
        """What is handed back to Python: "name (line n): reason"."""
        return descriptions(self.opaque_sites)


BUILTINS.of_any = (builtin_calls, builtin_reductions, sorting, generators, math_calls, operator_calls, sorted_lists)
LISTS.of_any = (list_objects,)
FORMS.of_key = dict(zip(WITH_COLUMNS, (dynamic_lists, array_lists, ragged_arrays, hash_maps, times), strict=True))

NO_GENERATOR = "a generator cannot be accelerated by itself"


class Specializer(Context):
    """One specialization: executes a function over abstract values."""

    # The operations of `Context`: functions whose first argument is the specializer.
    single = statements.single
    static = compile_time_values.static
    static_int = compile_time_values.static_int
    need_whole = inputs.need_whole
    go_on_whole = inputs.go_on_whole
    hidden_value = inputs.hidden_value
    taken = inputs.taken
    numeric = convert.numeric
    as_array = convert.as_array
    cast_array = convert.cast_array
    as_python = convert.as_python
    as_list = comprehensions.as_list
    truth = convert.truth
    items = containers.item_values
    keywords = containers.keyword_values
    sequence = containers.sequence
    message = messages.message_of
    call = calls.call
    call_library = calls.call_library
    call_plain = calls.call_plain
    library_loop = calls.library_loop
    join_containers = joins.joined
    join_as_union = tagged_unions.joined
    union_leaves = tagged_unions.leaves
    scalar_leaves = tagged_scalars.leaves
    scalar_of = tagged_scalars.value_of
    inlined = calls.inlined
    call_python = calls.call_python
    call_method = attributes.call_method
    attribute = attributes.attribute
    subscript = containers.subscript
    set_item = containers.set_item
    unary = operators.unary_operator
    inplace = operators.inplace_operator
    table_of = constant_tables.item_at
    changed = list_changes.changed
    opaque_operation = opaque.opaque_operation
    boxed = opaque.opaque_box
    branch = branches.branch
    leaving = instance_values.leaving
    frozen = instances.frozen
    continue_unless = frame_states.continue_unless
    learn = tags.learn
    narrowed = tags.narrowed

    def specialize(self) -> Specialization:
        """The typed function of this signature."""
        try:
            made = self._specialize()
        except (Restart, MemoryError):
            raise
        except Exception as error:
            if self.facts.missing:  # which may be the cause
                raise Restart(tuple(self.facts.missing)) from None
            raise self._refused(error) from None
        finally:
            del self.arguments.extended  # it holds the arguments of the call
        if self.facts.missing:
            raise Restart(tuple(self.facts.missing))
        return made

    def _refused(self, error: Exception) -> Exception:
        """The error that the user gets."""
        if isinstance(error, RecursionError):
            deep = "calls or branches nested too deeply to be compiled"
            return UnsupportedError.at(self.frames[0].function, self.frame.pos, deep, "write it as a loop")
        if isinstance(error, HandBack):  # of something that is no operation of the program's: all goes back
            return UnsupportedError.at(self.frames[0].function, self.frame.pos, str(error))
        return error

    def missing(self, what: str) -> UnsupportedError:
        """The error for a fact that is known and still asked for."""
        return UnsupportedError.at(
            self.frames[0].function, self.frame.pos, what or "the function depends on too many values"
        )

    def apart(self, frame: Frame) -> Specializer:
        made = Specializer(frame.function, _any_caller, Signature(()), Facts(), {}, _extended, strict=True)
        made.frames.append(frame)
        return made

    def _specialize(self) -> Specialization:
        if self.frames[0].function.generator:
            hint = "let another function go through it, or fill an array and return it"
            raise UnsupportedError.at(
                self.frames[0].function, self.frames[0].function.body.statements[0].pos, NO_GENERATOR, hint
            )
        self.arguments.functions = [
            i for i, spec in enumerate(self.arguments.signature.params) if isinstance(spec, FunctionSpec)
        ]
        arguments = inputs.take_arguments(self)
        if self.facts.known.takes_texts:
            given = enumerate(zip(self.arguments.signature.params, arguments, strict=True))
            self.arguments.texts = {
                id(v): (v, at) for at, (_, v) in given if isinstance(v, Static) and type(v.object) is str
            }
        frame = self.frames[0]
        if len(arguments) != len(self.frames[0].function.params):
            raise self.unsupported("the number of arguments does not fit")
        for param, value in zip(self.frames[0].function.params, arguments, strict=True):
            if param.kind == "varkw":
                assert isinstance(value, TupleV)
                pairs = zip(value.items[::2], value.items[1::2], strict=True)
                value = DictV(tuple((known(name), item) for name, item in pairs))
            frame.env[param.var] = inputs.as_time(self, value)
        assigned_attributes.begin(self)
        instance_columns.begin(self)
        value = self.run(self.frames[0].function.body)[0]
        impure = not all(map(is_pure_site, self.python.sites))
        instance_columns.must_hold(self, impure)
        if impure:
            if self.assigned.before or any(map(of_arguments, self.python.read_late)):
                held = any(is_held(one.source) for one in self.arguments.signature.hidden)
                fewer = FewerAttributes(OF_ARGUMENTS if held else OF_NONE)
                if any(not isinstance(fact, ContainerOfPython | WholeList) for fact in self.facts.missing):
                    self.facts.restart(fewer)
                self.facts.note(fewer)  # Python is given those containers in the next walk, too
            if self.python.closures_read_late:
                self.facts.restart(KnownValue(self.arguments.functions[0]), "a function whose closure may change")
        assigned = [self.builder.fields[source] for source in assigned_attributes.changed(self)]
        shared_containers.check_result(self, (value, *assigned))
        leaves = results.Leaves()
        tree = results.with_attributes(self, results.result_tree(self, value, leaves), leaves)
        body = ir.Block((*self.builder.entry.statements, *self.builder.outermost.statements), tuple(leaves))
        typed = ir.Function(
            re.sub(r"\W", "_", self.frames[0].function.name),
            tuple(self.arguments.params),
            body,
            self.frames[0].function.filename,
            self.arguments.signature.disjoint,
            tuple(self.arguments.static_extents),
        )
        risky = assigned_attributes.may_fail_after(self) or bool(self.assigned.columns)
        typed = procedures.attached(self, typed)
        light = light_site(typed, seldom_sites(self.python.sites)) if self.python.sites else None
        if light is not None:
            site = self.python.sites[light]
            raise UnsupportedError.at(
                self.frames[0].function,
                site.key[-2],
                f"{site.reason} in a loop that does little else: it is faster in Python",
            )
        stored = results.stored_params(typed)
        return Specialization(
            typed,
            self.arguments.signature,
            tree,
            tuple(self.python.sites),
            stored,
            tuple(self.widened),
            frozenset(self.python.read_late),
            tuple(self.python.guessed),
            self.python.observed.asked,
            self.loops.has_loops,
            risky,
            frozenset(self.python.module_reads),
            self.deferred_views.both,
            self.arguments.asks_writeable,
            self.python.calls_numba,
            self.python.asks_classes,
        )

    def run(self, block: ssa.Block) -> list[Value]:
        """Execute a block; its results."""
        frame = self.frame
        around = len(frame.way)
        try:
            return self._statements(frame, block, around)
        finally:
            del frame.way[around:]

    def _statements(self, frame: Frame, block: ssa.Block, around: int) -> list[Value]:
        for let in block.statements:
            poll()
            frame.way[around:] = [let]
            frame.pos = let.pos
            frame.began[id(let)] = self.python.effects
            if not frame.namespace.trusted:  # what the library does happens, for the user, where it was called
                self.builder.pos = place(frame.function, let.pos, frame.caller)
            values = made_containers.made(self, let, statements.execute(self, let))
            if NeverV in map(type, values) and not isinstance(let.op, ssa.If | ssa.For | ssa.While | ssa.Guarded):
                return [NeverV()] * len(block.results)
            iterator_consumption.check_statement(self, let, values)
            for var, value in zip(let.outs, values, strict=True):
                frame.env[var] = value
            if self.dead:
                return [NeverV()] * len(block.results)
        return [self.value(result) for result in block.results]

    def shown(self, operand: ssa.Operand) -> Value:
        """A value for those who know lists as arrays."""
        return array_lists.shown(self, self.value(operand))

    def loop_templates(self, op: ssa.Op, inits: Sequence[Value]) -> list[Template]:
        """The templates to start a loop with: those of the initial values, joined with what an earlier visit found.

        Names that functions share come last; a later iteration of a loop that is written out has more of them.
        """
        found = [template_of(value, varying=True) for value in inits]
        hint = self.loops.hint(self.frame.path, op)
        if hint is None:
            return found
        known = [self._with_hint(template, other) for template, other in zip(found, hint, strict=False)]
        return [*known, *found[len(known) :]]

    def _with_hint(self, template: Template, hint: Template) -> Template:
        return join.join(self, template, hint) if kinds_of(template) and kinds_of(hint) else template

    def settle(self, values: Sequence[Value]) -> list[Value]:
        """Values that something can keep: pending comprehensions are computed."""
        if any(map(iterator_consumption.holds_iterator, values)):
            raise self.unsupported("an iterator that is kept")
        return self.mergeable(values)

    def mergeable(self, values: Sequence[Value]) -> list[Value]:
        """Values that can pass a join: pending comprehensions are computed; iterators stay what they are."""
        return [
            self.as_list(value)
            if isinstance(value, ComprehensionV) and not iterator_consumption.is_iterator(value)
            else value
            for value in values
        ]

    def binary(self, op: str, left: Value, right: Value) -> Value:
        return tagged_scalars.each(self, (left, right), lambda *one: [operators.binary_operator(self, op, *one)])[0]

    def compare(self, op: str, left: Value, right: Value) -> Value:
        return tagged_scalars.each(self, (left, right), lambda *one: [operators.compare(self, op, *one)])[0]

    def looked_into(self, target: Any) -> tuple[ssa.Function, types.FunctionType] | None:
        return inlined_functions.looked_into(target)

    def called_by_python(self, function: Callable[..., Any], args: list[Value], reason: str, spec: Spec) -> Value:
        key = opaque.site_key(self, self.frame.pos, function.__name__)
        made = opaque.emit_opaque(self, Operation("call", (Static(function), *args)), key, reason, spec)
        assert made is not None
        return made
