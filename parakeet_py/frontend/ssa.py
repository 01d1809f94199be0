"""The untyped IR: gated SSA made from one Python function, before any type is known.

A `Function` is a tree of `Block`s. A block is a list of statements `Let(outs, op, pos)` that bind fresh, immutable
`Var`s, and ends in `results`: the operands the block hands to what contains it. Operands are a `Var` or a `Const`;
every intermediate value has a name (A-normal form), so an operator never nests in another.

Control flow is structured only: `If`, `For` and `While` carry their blocks and hand values out through block results
(the merges of gated SSA). There is no break, continue or return here: the frontend has turned them into merges:

* code after a conditional `break`/`continue`/`return` sits in the branch where it still runs;
* a loop that may be left early is `stoppable`: the first result of its body is a stop flag (true = leave after this
  iteration) and the loop's first `out` says whether it was stopped (which is also how for/else is decided);
* a function returns `body.results[0]` and nothing else.

A name that may be unbound where it is read is a `Const(UNBOUND)` on the paths that did not bind it, with a boolean
shadow variable and a `CheckBound` before the read. Exceptions that the function catches are merges too: `Guarded` holds
one statement and says whether it has raised.

What this IR cannot say, on purpose: goto, generators that escape, classes.
Values are untyped Python values: operators mean what Python's operators mean, `Call` calls whatever its callee turns
out to be. Meaning is given by specialization (typed_ir/specialize/specializer.py), which executes this IR over types.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Annotated, Any

from parakeet_py.base import grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import Use
from parakeet_py.base.positions import Handler as Handler
from parakeet_py.base.positions import InHandler as InHandler
from parakeet_py.base.positions import Pos as Pos

_uids = itertools.count(1)


@record(eq=False)
class Var:
    """An immutable variable; identity is equality. Printed `name.uid`."""

    name: str
    uid: int = field(default_factory=lambda: next(_uids))

    def __repr__(self) -> str:
        return f"{self.name}.{self.uid}"


class Unbound:
    """The value of a name that nothing has bound yet."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND = Unbound()


@record
class Const:
    """A literal: int, float, complex, bool, str, bytes, None, Ellipsis or `UNBOUND`."""

    value: Any


Operand = Var | Const


@record
class Star:
    """`*operand` in an argument list, tuple or list display."""

    TEXT = "*{operand}"

    operand: Operand


Item = Operand | Star
Operands = tuple[Operand, ...]
Bound = Annotated[Var, Use.BINDS]  # known in the blocks of the operator, or behind the statement
Bounds = tuple[Bound, ...]


# ---- operators -----------------------------------------------------------------------------------------------------


@record
class Global:
    """Read a module-level or builtin name: a hidden argument of the specialization, read again at every call."""

    TEXT = "global {name}"

    name: str


@record
class Free:
    """Read a closure cell of the *decorated* function (inner functions get theirs through `MakeClosure`)."""

    TEXT = "free {name}"

    name: str


@record
class Unary:
    """`op` is one of neg, pos, invert, not."""

    TEXT = "{op} {operand}"

    op: str
    operand: Operand


@record
class Binary:
    """`op`: add sub mul truediv floordiv mod pow matmul and or xor lshift rshift (bitwise and/or/xor)."""

    TEXT = "{op} {left}, {right}"

    op: str
    left: Operand
    right: Operand


@record
class Inplace:
    """`left op= right`: arrays are changed in place and are the result, other values give a new one."""

    TEXT = "inplace {op} {left}, {right}"

    op: str
    left: Operand
    right: Operand


@record
class Compare:
    """One comparison: eq ne lt le gt ge is isnot in notin. Chains have become `If`s."""

    TEXT = "{op} {left}, {right}"

    op: str
    left: Operand
    right: Operand


@record
class Call:
    """`function(*args, **kwargs)`; a keyword whose name is None is `**operand`."""

    function: Operand
    args: tuple[Item, ...]
    kwargs: tuple[tuple[str | None, Operand], ...] = ()


@record
class Attribute:
    TEXT = "attribute {object}.{name}"

    object: Operand
    name: str


@record
class SetAttribute:
    TEXT = "set {object}.{name} = {value}"

    object: Operand
    name: str
    value: Operand


@record
class Subscript:
    TEXT = "subscript {object}[{index}]"

    object: Operand
    index: Operand


@record
class SetItem:
    TEXT = "set {object}[{index}] = {value}"

    object: Operand
    index: Operand
    value: Operand


@record
class DeleteItem:
    TEXT = "delete {object}[{index}]"

    object: Operand
    index: Operand


@record
class ChangeList:
    """A list, dict or set with one owner, changed; what follows uses the out (see `frontend/ownership`).

    `change`: append extend insert clear reverse add discard remove, as Python's methods; iadd: `+=`; set: item
    `args[0]` becomes `args[1]`; delete; pop and setdefault, which have the item as their first out; heappush, heappop
    (which has the item, too), insort and others of
    `changes.FUNCTIONS`, where `args[0]` is the function; deque and Counter, made by `args[0]` of the object, with
    popleft, appendleft, and popright for the pop of a deque; defaultdict, made by `args[0]` of `args[1]`, which gives
    `args[2]`. With `at`, it is the object's item under this index or key that changes, and with it the object.
    """

    change: str
    object: Operand
    args: Operands = ()
    at: Operand | None = None


@record
class BuildSlice:
    TEXT = "slice {lower}, {upper}, {step}"

    lower: Operand
    upper: Operand
    step: Operand


@record
class BuildTuple:
    """A tuple, or (`hashed`) a set that is written behind `in`: nothing else ever sees that."""

    TEXT = "tuple ({items})"

    items: tuple[Item, ...]
    hashed: bool = False


@record
class BuildList:
    TEXT = "list [{items}]"

    items: tuple[Item, ...]


@record
class BuildSet:
    TEXT = "set({items})"

    items: tuple[Item, ...]


@record
class BuildDict:
    """A dict display; an item without a key is `**value`."""

    items: tuple[tuple[Operand | None, Operand], ...]


@record
class BuildString:
    """An f-string: the parts are constants or values formatted with (conversion, format spec)."""

    parts: tuple[tuple[Operand, str, str], ...]


@record
class Unpack:
    """Unpack into `before` targets, then (if `star`) a list of the rest, then `after` targets: that many outs."""

    object: Operand
    before: int
    star: bool = False
    after: int = 0


@record
class MakeClosure:
    """A nested function or lambda; `captures` are the values of `function.captures`, `defaults` of its defaulted
    parameters in order. (Cells captured by reference and rebound later are refused by the frontend.)"""

    function: Function
    captures: Operands
    defaults: Operands = ()


@record
class Itself:
    """The nested function that is running: its name, read in its own body."""

    TEXT = "this function"


@record
class Comprehension:
    """`[element(x) for x in iterable if condition(x)]`; `kind` is list, generator, set, tuple or dict.

    `element` is a function of one argument (the item; the frontend unpacks targets inside), closed over `captures`;
    `condition` likewise or None. Nested `for`s: the element is itself a Comprehension and `flatten` is true; that one
    is a generator too, or of the kind inner: a list that is used up where it is made.
    """

    kind: str
    iterable: Operand
    element: Operand
    condition: Operand | None = None
    flatten: bool = False


@record
class Import:
    """`import module` (name None) or `from module import name`; relative imports carry `level`."""

    module: str
    name: str | None = None
    level: int = 0


@record
class Raise:
    """Raise `exception` (a class or an instance), `from` the cause if there is one. `again`: the one that a handler has
    caught, whose traceback does not grow."""

    TEXT = "raise {exception}{cause: from %}"

    exception: Operand
    cause: Operand | None = None
    again: bool = False


@record
class Assert:
    """Raise AssertionError(message) unless `condition`; `message` is evaluated only then (a block with one result)."""

    condition: Operand
    message: Block | None


@record
class CheckBound:
    """Raise UnboundLocalError for `name` unless the flag is true (NameError if it is `free`, a captured name)."""

    TEXT = "check bound {name} if {flag}"

    flag: Operand
    name: str
    free: bool = False


def unbound_name(name: str, free: bool) -> NameError:
    """What Python raises for a name that nothing has bound."""
    if free:
        text = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        return NameError(text, name=name)
    return UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")


@record
class If:
    """Outs are the results of the branch taken."""

    condition: Operand
    then: Block
    orelse: Block


@record
class For:
    """`for item in iterable`. `params` are the loop-carried variables inside the body, started by `inits`.

    body.results = ([stop flag if stoppable], next value of each param); outs = ([was stopped if stoppable], final
    value of each param).
    """

    iterable: Operand
    item: Bound
    params: Bounds
    inits: Operands
    body: Block
    stoppable: bool = False


@record
class While:
    """`condition` is a block over the params with one result; otherwise as `For`."""

    params: Bounds
    inits: Operands
    condition: Block
    body: Block
    stoppable: bool = False


@record
class Guarded:
    """The first out is i + 1 if the body raises what `classes[i]` (the first such) catches: the other outs are not to
    be used then. Otherwise it is 0, and they are the results of the body. With `keeps`, the second out is the
    exception. `handlers` are those that run then, one for each of the classes: their statements are at places in them
    (`InHandler`)."""

    body: Block
    classes: Operands
    keeps: bool = False
    handlers: tuple[Handler, ...] = ()


Op = (
    Global
    | Free
    | Unary
    | Binary
    | Inplace
    | Compare
    | Call
    | Attribute
    | SetAttribute
    | Subscript
    | SetItem
    | DeleteItem
    | ChangeList
    | BuildSlice
    | BuildTuple
    | BuildList
    | BuildSet
    | BuildDict
    | BuildString
    | Unpack
    | MakeClosure
    | Itself
    | Comprehension
    | Import
    | Raise
    | Assert
    | CheckBound
    | If
    | For
    | While
    | Guarded
)


@record
class Let:
    """Bind `outs` to the values of `op`. Operators done for effect only have no outs."""

    outs: Bounds
    op: Op
    pos: Pos


@record
class Block:
    statements: tuple[Let, ...]
    results: Operands = ()


@record
class Param:
    """`kind`: positional (posonly or ordinary), vararg, keyword (keyword-only), varkw."""

    var: Var
    name: str
    kind: str = "positional"
    positional_only: bool = False
    has_default: bool = False


@record
class ErrorState:
    """What the body of `with np.errstate(...)`, from one place to another, asks for: an action for each kind named."""

    body: Pos
    actions: tuple[tuple[str, str], ...]

    def holds_at(self, pos: Pos) -> bool:
        body = self.body
        return (body.line, body.column) <= (pos.line, pos.column) < (body.end_line, body.end_column)


@record
class Function:
    """One Python function. `captures` are the variables an inner function takes from around it.

    Those of them whose names are `unsteady` may be bound again after the function has been made. Python's function sees
    that, as it captures names; this one captures values.

    Operators whose places are in the bodies of `error_states` are done under these. `annotations` is the source of
    a function that has those of this one, if it has any, and nothing else; it is None where only Python knows them, as
    they name what is local to the functions around.
    """

    name: str
    params: tuple[Param, ...]
    captures: tuple[Var, ...]
    body: Block
    filename: str
    first_line: int
    lines: tuple[str, ...] = field(repr=False, default=())
    generator: bool = False  # its yields are calls of `generators.yielded`
    unsteady: tuple[str, ...] = field(default=(), repr=False)
    error_states: tuple[ErrorState, ...] = field(default=(), repr=False)  # outer before inner
    doc: str | None = field(default=None, repr=False)  # as the source has it
    annotations: str | None = field(default="", repr=False)

    def statements(self) -> Iterator[Let]:
        """Every statement, depth first."""
        yield from walk(self.body)


grammar.leaf(grammar.Leaf.OPERAND, Var)
grammar.leaf(grammar.Leaf.CONSTANT, Const)
grammar.leaf(grammar.Leaf.BLOCK, Block)
grammar.leaf(grammar.Leaf.PLAIN, Function)

operands_of: Callable[[Op], Operands] = grammar.operands  # in order of evaluation; not those inside its blocks
blocks_of: Callable[[Op], tuple[Block, ...]] = grammar.blocks  # not those of nested functions
walk: Callable[[Block], Iterator[Let]] = grammar.walk


def same(a: Operand | None, b: Operand | None) -> bool:
    """Whether two operands are one variable or one literal (1, 1.0 and True are three literals, 0.0 and -0.0 two)."""
    if a is b:
        return True
    if isinstance(a, Var) or isinstance(b, Var) or a is None or b is None:
        return False
    return type(a.value) is type(b.value) and repr(a.value) == repr(b.value)
