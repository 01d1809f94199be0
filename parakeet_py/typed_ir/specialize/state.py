"""The parts of the state of a specialization: what `Context` has one of each of.

A part belongs to the walk as a whole (`WalkFacts`, `Arguments`, `Memory`, `PythonState`, `Procedures`, `Assigned`), or
to what is around the statement that is executed (`Loops`, `Elements`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.signature.facts import Fact, Facts, Place
from parakeet_py.signature.specs import ObjectSpec, Signature, Source, Spec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.observed import Lookups
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite
from parakeet_py.typed_ir.specialize.paths.templates import Template
from parakeet_py.typed_ir.specialize.restarts import NeedObservation, Restart
from parakeet_py.typed_ir.specialize.values import ArrayV, Frame, MapV, TupleV, Value


@record(frozen=False)
class Checkpoint:
    """A state of the walk to which it can return when what follows has to be undone."""

    code: tuple[Any, ...]  # see `Builder.mark`
    sites: int


_ENTRY_ROOTS = 1 << 20  # the memory of arguments has the numbers up to this one


class WalkFacts:
    """Facts: those that were known before the walk, and those that it finds."""

    def __init__(self, known: Facts) -> None:
        self.known = known
        self.missing: dict[Fact, None] = {}  # which the walk should have begun with,
        self.learned: list[Fact] = []  # and which it has found in time

    def restart(self, fact: Fact, what: str = "") -> NoReturn:
        """Start again with a fact; with those alone that have been missing before, after which this may not be one."""
        raise Restart(tuple(self.missing) or (fact,), what)

    def note(self, fact: Fact) -> None:
        """Start again with a fact when this walk has ended, which may find more."""
        if fact in self.known:
            self.restart(fact)
        self.missing[fact] = None


class Memory:
    """Numbers of memory (roots): two arrays may overlap if they have one in common. Memory that is older than the call
    has the first numbers; what the function makes is numbered in that order."""

    def __init__(self) -> None:
        self.oldest = 0
        self.newest = _ENTRY_ROOTS
        self.rows: frozenset[int] = frozenset()  # of lists in lists (see `constant_tables`)

    def entry_root(self) -> int:
        self.oldest += 1
        return self.oldest

    def new_root(self) -> int:
        self.newest += 1
        return self.newest


class Procedures:
    """Those of one specialization, those among them whose bodies are being specialized, and the calls that could not
    become one and were inlined (see `python.procedures`)."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.active: list[Any] = []
        self.refused: list[tuple[Frame, tuple[Template, ...]]] = []
        self.library: dict[str, ir.Function] = {}  # those of the library that are called, by name
        self.recursions = 0  # how often a function has been inlined into itself


class Arguments:
    """The signature, whose hidden arguments are added as they are met, and what is known of the parameters."""

    def __init__(self, signature: Signature, extended: Callable[[Signature, Source], Signature]) -> None:
        self.signature = signature
        self.extended = extended  # with one hidden argument more
        self.hidden: dict[Source, Value] = {}  # what globals, cells and attributes hold
        self.texts: dict[int, tuple[Value, int]] = {}  # strings that are parameters, by `id`
        self.shared_root = -1  # the memory of arguments that may overlap
        self.functions: list[int] = []  # parameters that are functions
        self.leaf_param: dict[ir.Var, int] = {}
        self.params: list[ir.Var] = []
        self.object_specs: dict[ir.Var, ObjectSpec] = {}  # of objects that Python has given
        self.classes: dict[ir.Var, type] = {}  # of objects in parameters, for messages
        self.unusual_arrays: set[ir.Var] = set()  # parameters: subclasses, odd dtypes, unaligned...
        self.has_unaligned = False  # arrays among the parameters
        self.records: dict[ir.Var, tuple[int, dict[str, ArrayV]]] = {}  # that Python has given: ranks and columns
        self.chosen: dict[int, tuple[Value, tuple[Value, ...]]] = {}  # lists that are one of several, by `id`
        self.list_roots: dict[int, int] = {}  # the memory of long lists that are parameters
        self.lists: dict[int, tuple[Value, int]] = {}  # lists in parameters, by `id`
        self.param_roots: frozenset[int] = frozenset()  # the memory of all array parameters
        self.static_extents: list[tuple[ir.Var, int, int]] = []
        self.has_memmaps = False  # some array is a `numpy.memmap`
        self.asks_writeable = False  # does the function look whether arrays can be written to?
        self.columns_pay = False  # many instances, or strings (see `instance_columns`), are read in loops in loops

    def spec(self, index: int) -> Spec:
        """The type of the parameter or hidden argument with this number."""
        split = len(self.signature.params)
        return self.signature.params[index] if index < split else self.signature.hidden[index - split].spec

    def place(self, index: int) -> Place:
        """The parameter or hidden argument with this number."""
        split = len(self.signature.params)
        return index if index < split else self.signature.hidden[index - split].source


class Assigned:
    """The attributes that the function assigns (see `assigned_attributes`)."""

    def __init__(self) -> None:
        self.before: dict[Source, Value] = {}  # what they held
        self.first: int | None = None  # the statement of the outermost block at which one is assigned, first
        self.listed: list[Source] = []  # dicts whose items an iterator holds
        self.columns: dict[Source, tuple[ArrayV, ArrayV]] = {}  # what items of lists hold, and which have been assigned


class Made(NamedTuple):
    """A list or dict that a statement has made, in so many loops; with the fact, it is an object there."""

    value: Value
    fact: Fact
    depth: int


class PythonState:
    """What Python does during a call, what it has been seen to return, and what it has been given."""

    def __init__(
        self,
        observed: dict[tuple[Any, ...], Any],
        strict: bool,
        guess: bool,
        continued: Container[ssa.Pos],
        polls: bool,
    ) -> None:
        self.observed = Lookups(observed)
        self.strict = strict  # it does nothing
        self.guess = guess  # operations that were never seen are out of reach
        self.continued = continued  # places of checks where it goes on, if they fail
        self.polls = polls  # loops with handlers around them look at signals
        self.effects = 0  # how often something has been done that Python would do twice
        self.changes = 0  # how often that may have changed memory of arguments
        self.guessed: list[NeedObservation] = []
        self.sites: list[OpaqueSite] = []
        self.lists: dict[int, tuple[Value, Any]] = {}  # that Python has given, by `id`, and the keys of what gave them
        self.made: dict[int, Made] = {}  # lists and dicts that statements make, by `id`, see `made_containers`
        self.displays: dict[
            int, tuple[MapV, tuple[Value, ...]]
        ] = {}  # sets that are written out, by `id`, and their items
        self.lists_given = False  # has Python been given lists whose items might be assigned here,
        self.lists_stored = False  # and have items of such lists been assigned?
        self.random_states: dict[ir.Var, TupleV] = {}  # of generators that Python has made, see `random_generators`
        self.read_late: set[Source] = set()
        self.module_reads: set[tuple[str, str]] = set()
        self.closures_read_late = False
        self.calls_numba = False  # by native entries
        self.asks_classes = False  # whether arrays are NumPy's, where those that stand for others would say no


class Row(NamedTuple):
    """An item of a container, read in so many loops, each iteration of which reads another one; -1: perhaps not."""

    value: Value
    of: Value
    depth: int


class Rows:
    """Containers that are or become items of lists in columns (see `shared_containers`)."""

    def __init__(self) -> None:
        self.read: dict[int, Row] = {}  # by `id`
        self.put: list[tuple[Value, int]] = []  # and in how many loops
        self.copied: list[Value] = []  # lists whose items have become those of another one, too


class Loops:
    """The loops around the statement that is specialized, and what is known of all."""

    def __init__(self) -> None:
        self.unroll: set[int] = set()  # loops to be written out, by `id`
        self.unrolling = 0  # how many loops around are written out,
        self.looping = 0  # and how many are not
        self.has_loops = False  # of the user's own
        self.takes_copies = False  # what is looked at is gone through by a loop, which is checked to store nothing
        self.copies = 0  # of records that such loops go through
        self.loop_roots = 0  # roots up to this one are not of the loop's iteration
        self.chosen: tuple[int, ...] = ()  # the types chosen of values that have several, or the items of loops that
        # are written out: loops inside are visited for each
        self.hints: dict[tuple[Any, ...], list[Template]] = {}  # what earlier visits of loops have found

    def hint(self, path: tuple[Any, ...], op: ssa.Op) -> list[Template] | None:
        return self.hints.get((path, self.chosen, id(op)))

    def remember(self, path: tuple[Any, ...], op: ssa.Op, templates: list[Template]) -> None:
        self.hints[(path, self.chosen, id(op))] = templates

    @contextmanager
    def copies_taken(self, takes: bool) -> Iterator[None]:
        """Inside, `takes_copies` is so."""
        before, self.takes_copies = self.takes_copies, takes
        try:
            yield
        finally:
            self.takes_copies = before

    @contextmanager
    def for_type(self, number: int) -> Iterator[None]:
        """Inside, code is visited for one type of a value, or one of several items, which may have types of their own:
        what it made of another says nothing of loops in it."""
        around, self.chosen = self.chosen, (*self.chosen, number)
        try:
            yield
        finally:
            self.chosen = around


class Elements:
    """The element function that is specialized, if one is."""

    def __init__(self) -> None:
        self.in_body = 0  # how many element functions are around the statement
        self.outside: int | None = None  # roots up to this one cannot be stored to
        self.stores_of_elements = 0  # how often a store to such memory was met
        self.element_roots = 0  # roots up to this one are not of the element function that is specialized
        self.outer_fields: frozenset[Source] = frozenset()  # attributes that the element function has not made

    @contextmanager
    def one_more(self, outside: int | None, newest: int, fields: Iterable[Source]) -> Iterator[None]:
        """Inside is an element function: `newest` is the memory, and `fields` are the attributes that are outside."""
        around = self.outside, self.element_roots, self.outer_fields
        self.in_body += 1
        self.outside = self.outside if outside is None else outside
        self.element_roots, self.outer_fields = newest, frozenset(fields)
        try:
            yield
        finally:
            self.in_body -= 1
            self.outside, self.element_roots, self.outer_fields = around
