"""Recursion: functions that become procedures of the typed function, because inlining them would not end.

Every call is inlined (`calls.run_frame`), until one is met of a function that is being inlined already with arguments
of the same kinds. That one becomes a `Procedure`: its body is specialized once, for parameters of these kinds, and
calls of it, those in its own body included, are `ir.Call`s. What it returns is not known before its body has been
specialized, which needs to know what it returns: a fixed point. In the first round calls of it never return, so that
only the paths without recursion say what the result is; each round joins what it finds, until nothing is new.

    def fib(n):                                  fib_1(n: pyint):
        if n < 2:                                    if lt n, 2: yield n
            return n                                 else: a = call fib_1(sub n, 1) ...
        return fib(n - 1) + fib(n - 2)

A recursion that makes progress over what is known when this is compiled (an axis, the items of a tuple) is inlined as
ever; if that is but a number, and the call stands in a branch or loop, a procedure is tried first. Two arguments that
share memory do so in the procedure too; others have memory of their own there. A body sees nothing of the place where
it is called: it is specialized among blocks of its own, and what it reads beside its parameters, globals and other
hidden arguments, becomes further parameters in the end (`attached`). Names that functions share, as the memo of a
recursion or the list of what it has found, go in with a call and come back with its result (`shared_state`).

What cannot be in a body is handed back to Python with the whole recursion: operations handed back, lists that change,
exceptions that are caught around a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.rewrite import Rewriter, free_variables, substitute
from parakeet_py.typed_ir.specialize.containers import array_lists
from parakeet_py.typed_ir.specialize.forms import arrays_of, parts_of, roots_of, same_form
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    Fixed,
    Structure,
    Template,
    arrays_in,
    mapped,
    template_of,
    types_of,
    varying,
)
from parakeet_py.typed_ir.specialize.python import shared_state
from parakeet_py.typed_ir.specialize.restarts import Sequential
from parakeet_py.typed_ir.specialize.results import stored_params
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ClosureV,
    Frame,
    InstanceV,
    NeverV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TupleV,
    UnboundV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_MOST_ROUNDS = 8
_PLACES = -1_000_000  # numbers from here down stand for the memory of arguments


@record(eq=False, frozen=False)
class Procedure:
    """A function specialized for arguments of certain kinds. `inside` is the memory that a call of it makes, `shared`
    that of its array arguments (one number for all that overlap)."""

    name: str
    frame: Frame
    params: tuple[Template, ...]
    depth: int  # frames around its body
    in_body: int
    inside: int
    shared: dict[int, int]
    state: shared_state.State
    result: Template = None
    stores: tuple[int, ...] = ()
    function: ir.Function | None = None
    failed: str = ""


def called(s: Context, frame: Frame, *, must: bool = False) -> Value | None:
    """The value of a call of a procedure; None if it has to be inlined. `must`: inlining has not come to an end."""
    known = [one for one in s.procedures.all if _of_one_function(one.frame, frame)]
    outside = s.procedures.active[-1].depth if s.procedures.active else 0
    around = [one for one in s.frames[outside:] if _of_one_function(one, frame)]
    if not known and not around and not must:
        return None
    values = _given(frame)
    try:
        templates, memory = _signature(s, values)
    except shared_state.Unfit:
        return None
    for made in known:
        if _all_same(made.params, templates) and (made in s.procedures.active or made.state.takes(s)):
            return _call(s, made, values, memory)
    for one in around:
        before = _given(one)
        try:
            same = _all_same(_signature(s, before)[0], templates)
        except shared_state.Unfit:
            continue
        if same and not any(map(_progresses, before, values)):
            must = True
        elif same and len(s.builder.scopes) > one.scopes and not _refused(s, frame, templates):
            before_it = len(s.procedures.all)
            try:
                return _call(s, _made(s, frame, templates), values, memory)
            except Sequential:
                raise
            except UnsupportedError:
                del s.procedures.all[before_it:]
                s.procedures.refused.append((frame, templates))  # not tried again at each level
    return _call(s, _made(s, frame, templates), values, memory) if must else None


def _of_one_function(one: Frame, other: Frame) -> bool:
    return one.function is other.function and one.namespace.owner is other.namespace.owner


def _refused(s: Context, frame: Frame, templates: tuple[Template, ...]) -> bool:
    return any(_of_one_function(one, frame) and _all_same(like, templates) for one, like in s.procedures.refused)


def _given(frame: Frame) -> list[Value]:
    """The values that a call starts with."""
    function = frame.function
    names = [*(param.var for param in function.params), *function.captures]
    defaults = frame.closure.defaults if frame.closure is not None else ()
    return [*(frame.env[name] for name in names if name in frame.env), *frame.free.values(), *defaults]


def _progresses(before: Value, now: Value) -> bool:
    """Has a number that is known when this is compiled changed?"""
    if isinstance(before, ScalarV) and isinstance(now, ScalarV):
        one, other = before.operand, now.operand
        return isinstance(one, ir.Const) and isinstance(other, ir.Const) and one != other
    return any(map(_progresses, parts_of(before), parts_of(now)))


def _call(s: Context, procedure: Procedure, values: Sequence[Value], memory: dict[int, frozenset[int]]) -> Value:
    """Emit a call."""
    if procedure.failed:
        raise s.unsupported(procedure.failed)
    if s.guards:
        raise s.hand_back("recursion inside `try` is not compiled")
    holder = s.procedures.active[-1] if s.procedures.active else None
    if s.elements.in_body > (holder.in_body if holder is not None else 0):
        user = [one for one in s.frames if not one.namespace.trusted][-1].function
        raise Sequential.at(user, s.builder.pos, "recursion inside an element function of a parallel operator")
    procedure.state.widen(s)
    state = procedure.state.values(s)
    given = zip((*values, *state), (*procedure.params, *procedure.state.templates), strict=True)
    leaves = [leaf for value, kind in given for leaf in join.leaves_of(s, value, kind)]
    if procedure.stores:
        for array in arrays_of((*values, *state)):
            s.will_store(array)
    own = s.frames[holder.depth :] if holder is not None else s.frames
    levels = sum(not frame.namespace.trusted for frame in own)
    op = ir.Call(procedure.name, tuple(leaves), procedure.stores, max(1, levels))
    kinds = types_of(procedure.result) if procedure.result is not None else []
    outs = list(s.builder.emit(op, *kinds, name=procedure.frame.function.name))
    moved = {procedure.inside: frozenset({s.memory.new_root()})}
    moved |= {own: memory[number] for number, own in procedure.shared.items()}
    moved |= procedure.state.memory(s)
    value = join.value_of(s, _with_memory(procedure.result, moved), outs)
    if procedure.state.sources and isinstance(value, TupleV):
        procedure.state.take(s, value.items[1:])
        return value.items[0]
    return value


# ---- kinds of arguments and results ----------------------------------------------------------------------------------


def _signature(s: Context, values: Sequence[Value]) -> tuple[tuple[Template, ...], dict[int, frozenset[int]]]:
    """The templates of arguments, whatever they hold, and their memory by number: the numbers stand for it in the
    templates. Memory that globals have too stays what it is."""
    memory: dict[int, frozenset[int]] = {}
    hidden = roots_of(*s.arguments.hidden.values())
    for array in arrays_of(values):
        if array.roots & hidden:
            continue
        meeting = [number for number, roots in memory.items() if roots & array.roots]
        number = meeting[0] if meeting else _PLACES - len(memory)
        memory[number] = array.roots.union(*(memory.pop(other) for other in meeting))
    memory = {_PLACES - place: roots for place, roots in enumerate(memory.values())}

    def placed(array: ArrayV) -> frozenset[int]:
        found = [number for number, roots in memory.items() if roots & array.roots]
        return frozenset(found) or array.roots

    return tuple(_template(value, placed) for value in values), memory


def _template(value: Value, placed: Callable[[ArrayV], frozenset[int]]) -> Template:
    match value:
        case ScalarV() | TaggedScalar():
            return template_of(value, varying=True)
        case ArrayV():
            extents = tuple(extent if isinstance(extent, ir.Const) else None for extent in value.extents)
            nonunit = (False,) * value.rank
            return ArrayT(value.type, extents, placed(value), value.readonly, nonunit, value.order)
        case Static() | UnboundV():
            return Fixed(value)
        case _ if (lent := array_lists.borrowed(value)) is not None:
            return Structure(lent, (_template(lent.array, placed),))
        case TupleV() | InstanceV() | TextV() | CharV() | ClosureV() | SliceV() | RangeV() | VariantV():
            return Structure(value, tuple(_template(part, placed) for part in parts_of(value)))
    raise shared_state.Unfit


def _all_same(some: Sequence[Template], others: Sequence[Template]) -> bool:
    return len(some) == len(others) and all(map(_same, some, others))


def _same(one: Template, other: Template) -> bool:
    match one, other:
        case Structure(like, parts), Structure(also, more):
            alike = same_form(like, also) or (isinstance(like, VariantV) and isinstance(also, VariantV))
            return alike and _all_same(parts, more)
    return one == other


def _with_memory(template: Template, moved: dict[int, frozenset[int]]) -> Template:
    """The template with other memory."""

    def placed(one: Template) -> Template:
        if not isinstance(one, ArrayT):
            return one
        return replace(one, roots=frozenset().union(*(moved.get(root, frozenset({root})) for root in one.roots)))

    return mapped(template, placed)


# ---- bodies ----------------------------------------------------------------------------------------------------------


def _made(s: Context, frame: Frame, templates: tuple[Template, ...]) -> Procedure:
    """Specialize a procedure."""
    name = re.sub(r"\W", "_", frame.function.name)
    numbers = {root for one in arrays_in(templates) for root in one.roots if root <= _PLACES}
    shared = {number: s.memory.new_root() for number in sorted(numbers, reverse=True)}
    state = shared_state.State.of(s, _given(frame), roots_of(*_given(frame)))
    inside = s.memory.new_root()  # and all that comes after it
    number = 1 + len(s.procedures.all)
    procedure = Procedure(
        f"{name}_{number}", frame, templates, len(s.frames), s.elements.in_body + 1, inside, shared, state
    )
    s.procedures.all.append(procedure)
    s.procedures.active.append(procedure)
    known = len(s.procedures.all)
    try:
        for _ in range(_MOST_ROUNDS):
            del s.procedures.all[known:]  # they rely on what this one was taken to give
            if _round(s, procedure):
                break
        else:
            raise s.unsupported("the result types of a recursion do not settle")
        if procedure.result is None:
            raise s.unsupported("a recursion that never ends")
    except UnsupportedError as error:
        del s.procedures.all[known:]
        procedure.failed = error.message
        raise
    except BaseException:
        del s.procedures.all[known - 1 :]
        raise
    finally:
        s.procedures.active.remove(procedure)
    return procedure


def _round(s: Context, procedure: Procedure) -> bool:
    """Specialize the body once; true when what it gives is what it was taken to give."""
    kinds = [
        _with_memory(one, {n: frozenset({root}) for n, root in procedure.shared.items()}) for one in procedure.params
    ]
    state = procedure.state
    held = state.templates
    params = tuple(ir.Var("p", kind) for one in (*kinds, *held) for kind in types_of(one))
    with _apart(s, procedure) as statements:
        for param in params:
            s.builder.home[param] = s.builder.scopes[-1]
        left = list(params)
        frame = _entered(procedure.frame, [join.value_of(s, one, left) for one in kinds])
        frame.path = ("procedure", procedure.name)
        s.builder.fields = dict(zip(state.sources, [join.value_of(s, one, left) for one in held], strict=True))
        s.frames.append(frame)
        value = s.settle([s.run(frame.function.body)[0]])[0]
        if any(root in s.deferred_views.made for root in roots_of(value)):
            raise s.unsupported("a recursion that gives a view that cannot be compiled")
        try:
            template = _result(s, value, procedure.inside)
        except shared_state.Unfit:
            raise s.unsupported(f"a recursion that gives {s.describe(value)}") from None
        if state.sources and template is not None:
            ended = state.values(s)
            value = TupleV((value, *ended))
            template = Structure(value, (template, *state.ended(s, procedure.inside)))
        joined = template if procedure.result is None else join.join(s, procedure.result, template)
        joined = state.settled(varying(joined), procedure.inside)
        leaves = join.leaves_of(s, value, joined) if joined is not None else []
    body = ir.Block(tuple(statements), tuple(leaves))
    disjoint = _disjoint((*(one.roots for one in arrays_in(kinds)), *state.roots_apart()))
    made = ir.Function(procedure.name, params, body, frame.function.filename, disjoint, inner=True)
    stores = tuple(sorted(stored_params(made)))
    settled = procedure.function is not None and _same(joined, procedure.result) and stores == procedure.stores
    settled = settled and held == state.templates
    procedure.function, procedure.result, procedure.stores = made, joined, stores
    return settled


def _entered(frame: Frame, values: Sequence[Value]) -> Frame:
    """A new call with other values."""
    names = [*(param.var for param in frame.function.params), *frame.function.captures]
    bound = [name for name in names if name in frame.env]
    made = Frame(frame.function, frame.namespace, caller=frame.caller)
    made.env.update(zip(bound, values, strict=False))
    made.free.update(zip(frame.free, values[len(bound) :], strict=False))
    if frame.closure is not None:
        captures = tuple(made.free.values()) or tuple(made.env[name] for name in frame.function.captures)
        made.closure = replace(frame.closure, captures=captures, defaults=tuple(values[len(bound) + len(made.free) :]))
    return made


@contextmanager
def _apart(s: Context, procedure: Procedure) -> Iterator[list[ir.Let]]:
    """A state of the walk that knows nothing of the place of a call."""
    around = [
        (part, name, getattr(part, name))
        for part, names in (
            (s.builder, ("scopes", "equal", "pos", "fields")),
            (s, ("frames", "guards")),
            (s.loops, ("looping", "unrolling")),
            (s.elements, ("in_body",)),
            (s.procedures, ("recursions",)),
        )
        for name in names
    ]
    b = s.builder
    b.scopes, b.equal = [], {}
    b.open_block()
    s.frames, s.guards = list(s.frames[: procedure.depth]), []
    s.elements.in_body, s.loops.unrolling = procedure.in_body, 0
    s.loops.looping += 1  # as in a loop, nothing of what comes before the body comes before all of it
    try:
        with b.block() as statements:
            yield statements
    finally:
        for part, name, value in around:
            setattr(part, name, value)


def _result(s: Context, value: Value, inside: int) -> Template:
    """The template of what a body gives."""
    if isinstance(value, NeverV):
        return None

    def placed(array: ArrayV) -> frozenset[int]:
        return frozenset(min(root, inside) for root in array.roots)

    return _template(value, placed)


def _disjoint(all_roots: Iterable[frozenset[int]]) -> bool:
    seen: frozenset[int] = frozenset()
    for roots in all_roots:
        if roots & seen:
            return False
        seen |= roots
    return True


# ---- the whole -------------------------------------------------------------------------------------------------------


def attached(s: Context, function: ir.Function) -> ir.Function:
    """The typed function with the procedures that it calls, which have what they read of it as further parameters;
    those of the library come last, each behind those that it calls itself."""
    made = {one.name: one.function for one in s.procedures.all if one.function is not None and not one.failed}
    library = s.procedures.library
    used = _reached(function.body, made | library)
    if not used:
        return function
    of_library = tuple(one for name, one in library.items() if used.pop(name, None) is not None)
    if not used:
        return replace(function, procedures=of_library)
    calls = {name: [one for one in _called_in(used[name].body) if one in used] for name in used}
    extra = {
        name: {var: None for var in free_variables(one.body) if var not in one.params} for name, one in used.items()
    }
    changed = True
    while changed:
        changed = False
        for name, callees in calls.items():
            for var in [var for callee in callees for var in extra[callee]]:
                changed |= var not in extra[name]
                extra[name][var] = None
    memory = {array.var: array.roots for array in arrays_of(s.arguments.hidden.values())}
    whole = {}
    for name, one in used.items():
        more = {var: ir.Var(var.name, var.type) for var in extra[name]}
        body = substitute(_Extended(extra).block(one.body), more)
        disjoint = one.disjoint
        if any(isinstance(var.type, Array) for var in more):
            places = [memory.get(var) for var in more if isinstance(var.type, Array)]
            disjoint = disjoint and None not in places and _disjoint(place for place in places if place is not None)
        whole[name] = replace(one, params=(*one.params, *more.values()), body=body, disjoint=disjoint)
    stores: dict[str, tuple[int, ...]] = dict.fromkeys(whole, ())
    while True:
        whole = {name: replace(one, body=_Storing(stores).block(one.body)) for name, one in whole.items()}
        found = {name: tuple(sorted(stored_params(one))) for name, one in whole.items()}
        if found == stores:
            break
        stores = found
    body = _Storing(stores).block(_Extended(extra).block(function.body))
    return replace(function, body=body, procedures=(*whole.values(), *of_library))


def _called_in(block: ir.Block) -> list[str]:
    return [let.op.procedure for let in ir.walk(block) if isinstance(let.op, ir.Call)]


def _reached(block: ir.Block, made: dict[str, ir.Function]) -> dict[str, ir.Function]:
    """The procedures that a block calls, directly or not."""
    found: dict[str, ir.Function] = {}
    waiting = _called_in(block)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = made[name]
            waiting += _called_in(made[name].body)
    return found


class _Extended(Rewriter):
    """Hands further arguments to procedures."""

    def __init__(self, extra: dict[str, dict[ir.Var, None]]) -> None:
        super().__init__()
        self.extra = extra

    def statement(self, let: ir.Let) -> Sequence[ir.Let] | None:
        if not isinstance(let.op, ir.Call) or not self.extra.get(let.op.procedure):
            return self.descend(let)
        op = replace(let.op, args=(*let.op.args, *self.extra[let.op.procedure]))
        return (ir.Let(let.outs, op, let.pos),)


class _Storing(Rewriter):
    """Says of calls what they store into."""

    def __init__(self, stores: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.stores = stores

    def statement(self, let: ir.Let) -> Sequence[ir.Let] | None:
        if not isinstance(let.op, ir.Call) or let.op.stores == self.stores.get(let.op.procedure, let.op.stores):
            return self.descend(let)
        return (ir.Let(let.outs, replace(let.op, stores=self.stores[let.op.procedure]), let.pos),)


__all__ = ["Procedure", "attached", "called"]
