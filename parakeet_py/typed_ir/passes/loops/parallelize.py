"""Loops become operators: a `for` whose iterations are proved independent is a `Map` that stores.

Iterations are independent when nothing is carried from one to the next, nothing in them calls into Python, and every
array that is written is only touched, in all reads and writes, at elements that no other iteration touches:
in some axis all index forms are the same c + k*i with k != 0 (arrays made inside the loop are its own). Checks that
cannot be proved away keep a loop serial, because a failing one must leave the effects of the iterations before it;
unless it stores only into arrays of this call, which are not visible if it fails, or the checks can all be tested
beforehand (`waiting`): then it is a `Map` if they hold, else the loop. And all that can fail must be the same
before the iteration's stores as after them (`foresight`).

A loop that only accumulates with an operation that is exact in any order (integers; minimum, maximum) is a `Reduce`.
Floating sums stay serial: their order is part of the result.

A `Map` that contains nothing but another `Map` over a fixed space becomes one `Map` over both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from parakeet_py.base.types import BOOL, PYINT, Array, Scalar, is_float, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.alias import Aliases, Effects
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear
from parakeet_py.typed_ir.passes.checks import checks_before_stores, deferred_checks
from parakeet_py.typed_ir.passes.loops.collapse import joined_maps
from parakeet_py.typed_ir.passes.loops.signal_polls import without_polls
from parakeet_py.typed_ir.rewrite import Rewriter, bound_in, free_in_op, fresh_copy, is_const, substitute
from parakeet_py.typed_ir.semantics import integer_bounds
from parakeet_py.typed_ir.writer import Writer, combiner, index_const

_LARGEST_COEFFICIENT = 1 << 20
Position = tuple[Linear | None, ...]  # None: any index along this axis


def parallelize(function: Function) -> Function:
    """Turn independent loops into `Map`s and exact accumulations into `Reduce`s."""
    if not any(isinstance(let.op, ir.For) for let in function.statements()):
        return function
    return _Parallelizer(function).function(function)


class _Parallelizer(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.aliases = Aliases(function)
        self.definitions: dict[Var, Op] = {}
        self.upward: set[Var] = set()  # indices of loops that count from 0 or more on
        self.views: dict[Var, ir.View] = {}
        for let in ir.walk(function.body):
            if isinstance(let.op, ir.Prim):
                self.definitions[let.outs[0]] = let.op
            elif isinstance(let.op, ir.For) and isinstance(let.op.step, Const):
                if int(let.op.step.value.real) > 0 and self.counts_up(let.op.start):
                    self.upward.add(let.op.index)
            elif isinstance(let.op, ir.View):
                self.views[let.outs[0]] = let.op
        self.forms = Forms(self.definitions)

    def statement(self, let: Let) -> Sequence[Let] | None:
        new = self.descend(let)
        made = new[0] if new else let
        op = made.op
        if isinstance(op, ir.For) and (body := without_polls(op.body)) is not op.body:  # operators do not look
            bare = Let(let.outs, replace(op, body=body), let.pos)
            found = self.as_operator(bare, None)
            return new if found is None else found
        return self.as_operator(made, new)

    def as_operator(self, made: Let, new: Sequence[Let] | None) -> Sequence[Let] | None:
        """What stands for a loop; `new` if that is what it was."""
        op = made.op
        if isinstance(op, ir.For) and not op.stoppable and isinstance(op.step, Const):
            effects = self.aliases.effects(op)
            # A failure midway must leave what came before; that of memory made in this call is not visible.
            unseen = effects.writes.isdisjoint(self.aliases.world)
            if effects.fails and not unseen and not effects.calls and not op.params:
                return self.as_either(made, op, effects) or new
            if effects.calls or (effects.fails and not unseen):
                return new
            if not op.params:
                if effects.writes and self.independent(op, effects.writes) and self.foreseen(op, effects):
                    return self.as_map(made, op)
            elif not effects.writes and not effects.fails and not effects.overflows:
                return self.as_reduce(made, op) or new
        return new

    def foreseen(self, op: ir.For, effects: Effects) -> bool:
        """Whether what may fail in a loop can be found out before anything is stored, as a `Map` does."""
        own = frozenset({op.index, *bound_in(op.body)})
        return not (effects.fails or effects.overflows) or checks_before_stores.foresees(op.body, self.aliases, own)

    # ---- independence ----

    def independent(self, op: ir.For, writes: set[Var]) -> bool:
        inside = {op.index, *bound_in(op.body)}
        shared = writes - inside
        stored = {self.base_position(array, None)[0] for array in _stored(op.body)}
        touched: dict[Var, list[Position]] = {}  # array -> where it is touched
        for array, position in self.touches(op.body):
            if not self.aliases.atoms(array).isdisjoint(shared):
                touched.setdefault(array, []).append(position)
        arrays = [array for array in touched if any(self.aliases.may_alias(array, other) for other in stored)]
        for number, array in enumerate(arrays):
            # Two descriptors of one memory cannot be compared by their indices.
            if any(self.aliases.may_alias(array, other) for other in arrays[:number]):
                return False
            if not self.own_slice(touched[array], op.index, inside):
                return False
        return True

    def touches(self, block: Block) -> Iterator[tuple[Var, Position]]:
        """Every array a block reads or writes and the indices, in the coordinates of what its views are views of."""
        for let in block.statements:
            op = let.op
            if isinstance(op, ir.Load | ir.Store):
                yield self.base_position(op.array, tuple([self.forms.of(index) for index in op.indices]))
            elif read := ir.arrays_read(op):
                for array in {**dict.fromkeys(read), **dict.fromkeys(ir.arrays_written(op))}:
                    yield self.base_position(array, None)
            elif not isinstance(op, ir.View | ir.Dim):
                for operand in ir.operands_of(op):
                    if isinstance(operand, Var) and isinstance(operand.type, Array):
                        yield operand, (None,) * operand.type.rank
            for inner in ir.blocks_of(op):
                yield from self.touches(inner)

    def base_position(self, array: Var, position: Position | None) -> tuple[Var, Position]:
        assert isinstance(array.type, Array)
        position = (None,) * array.type.rank if position is None else position
        view = self.views.get(array)
        while view is not None:
            below: list[Linear | None] = [self.forms.of(start) for start in view.starts]
            for index, axis in zip(position, view.axes, strict=True):
                if axis.source is not None:
                    start = below[axis.source]
                    step = self.forms.of(axis.step)
                    moved = None if index is None or step.terms or start is None else start + index.scale(step.constant)
                    below[axis.source] = moved
            array, position = view.base, tuple(below)
            view = self.views.get(array)
        return array, position

    def own_slice(self, positions: list[Position], index: Var, inside: set[Var]) -> bool:
        """Is there an axis along which each iteration stays at an index of its own?"""
        for axis, form in enumerate(positions[0]):
            if form is None or not 0 < abs(form.coefficient(index)) <= _LARGEST_COEFFICIENT:
                continue
            if any(var in inside and var is not index for var in form.variables()):
                continue
            if all(position[axis] == form for position in positions):
                return True
        return False

    # ---- rewriting ----

    def as_map(self, let: Let, op: ir.For) -> list[Let]:
        writer = Writer(let.pos)
        count, index, body = self.counted(writer, op, op.body)
        made = ir.Map((count,), (index,), body)
        joined = joined_maps(made)
        if joined is None:
            writer.let(made)
        else:
            writer.statements += [Let(one.outs, one.op, let.pos) for one in joined]
        return writer.statements

    def as_either(self, let: Let, op: ir.For, effects: Effects) -> list[Let] | None:
        """A `Map` for when no iteration would fail, and the loop."""
        if not (
            deferred_checks.can_wait(op.body) and self.independent(op, effects.writes) and self.foreseen(op, effects)
        ):
            return None
        writer = Writer(let.pos)
        (copy,) = fresh_copy(Block((let,), ())).statements
        assert isinstance(copy.op, ir.For)
        count, index, body = self.counted(writer, copy.op, Block(*_contribution(copy.op.body)))
        holds = Var("ok", BOOL)
        reduced = ir.Reduce((), (), (count,), (index,), body, (Const(True, BOOL),), combiner("and", ["bool"]))
        writer.let(reduced, holds)
        (copy,) = fresh_copy(Block((let,), ())).statements
        assert isinstance(copy.op, ir.For)
        made = self.as_map(copy, replace(copy.op, body=deferred_checks.without_checks(copy.op.body)))
        writer.let(ir.If(holds, Block(tuple(made), ()), Block((let,), ())))
        return writer.statements

    def counted(self, writer: Writer, op: ir.For, body: Block) -> tuple[Operand, Var, Block]:
        """The number of iterations, an index that counts them, and the body in terms of it."""
        assert isinstance(op.step, Const) and isinstance(op.step.value, int)
        step = op.step.value
        low, high = (op.start, op.stop) if step > 0 else (op.stop, op.start)
        count: Operand = high
        if not is_const(low, 0):
            if self.counts_up(low):  # max(high, 0) - low cannot overflow
                count = self.emit(writer, "sub", self.emit(writer, "maximum", high, index_const(0)), low)
            else:
                count = self.emit(writer, "sub_checked", high, low)
        if abs(step) != 1:
            rounded = self.emit(writer, "add_checked", count, index_const(abs(step) - 1))
            count = self.emit(writer, "floordiv", rounded, index_const(abs(step)))
        count = self.emit(writer, "maximum", count, index_const(0))
        if step == 1 and is_const(op.start, 0):
            return count, op.index, body
        index = Var(op.index.name, PYINT)
        inner = Writer(writer.pos)
        offset: Operand = index
        if step != 1:
            offset = self.emit(inner, "mul", index, index_const(step))
        value = self.emit(inner, "add", offset, op.start)
        moved = substitute(body, {op.index: value})
        return count, index, Block((*inner.statements, *moved.statements), moved.results)

    def counts_up(self, bound: Operand) -> bool:
        """Whether a bound of a loop is known not to be negative: an index that counts from 0 on, or beyond one."""
        if isinstance(bound, Const):
            return int(bound.value.real) >= 0
        op = self.definitions.get(bound)
        if isinstance(op, ir.Prim) and op.name == "add" and bound.type == PYINT:
            return all(self.counts_up(arg) for arg in op.args)
        return bound in self.upward

    def emit(self, writer: Writer, name: str, *args: Operand) -> Var:
        out = writer.prim(name, *args, title="i", type_=PYINT)
        self.definitions[out] = ir.Prim(name, args)
        return out

    def as_reduce(self, let: Let, op: ir.For) -> list[Let] | None:
        """A loop whose parameters are all accumulated exactly."""
        op = replace(op, body=_unconditional(op))
        params = set(op.params)
        inside = {one.outs[0]: position for position, one in enumerate(op.body.statements) if len(one.outs) == 1}
        dropped: set[int] = set()
        names: list[str] = []
        contributions: list[Operand] = []
        for param, result in zip(op.params, op.body.results, strict=True):
            position = inside.get(result) if isinstance(result, Var) else None
            step = op.body.statements[position].op if position is not None else None
            if position is None or not isinstance(step, ir.Prim) or not _exact_accumulation(step.name, param):
                return None
            others = [arg for arg in step.args if arg is not param]
            if len(step.args) != 2 or len(others) != 1:
                return None
            dropped.add(position)
            names.append(step.name)
            contributions.append(others[0])
        rest = tuple([one for position, one in enumerate(op.body.statements) if position not in dropped])
        gone = {op.body.statements[position].outs[0] for position in dropped}
        for one in rest:
            if any(var in params or var in gone for var in free_in_op(one.op)):
                return None
        if any(item in params or item in gone for item in contributions):
            return None
        writer = Writer(let.pos)
        count, index, body = self.counted(writer, op, Block(rest, tuple(contributions)))
        identities = tuple([_identity(name, param) for name, param in zip(names, op.params, strict=True)])
        accumulators = tuple([Var(param.name, param.type) for param in op.params])
        news = tuple([Var("new", param.type) for param in op.params])
        combining = Writer(let.pos)
        results = [
            combining.prim(name, acc, new, type_=ir.scalar_type(acc))
            for name, acc, new in zip(names, accumulators, news, strict=True)
        ]
        combine = ir.Lambda((*accumulators, *news), combining.block(*results))
        outs = tuple([Var(out.name, out.type) for out in let.outs])
        writer.let(ir.Reduce((), (), (count,), (index,), body, identities, combine), *outs)
        for name, init, out, final in zip(names, op.inits, outs, let.outs, strict=True):
            writer.statements.append(Let((final,), ir.Prim(name, (init, out)), let.pos))
        return writer.statements


def _contribution(body: Block) -> tuple[tuple[Let, ...], tuple[Operand, ...]]:
    """What an iteration would find out."""
    statements, holds = deferred_checks.outcome(body)
    assert holds is not None
    return statements, (holds,)


def _stored(block: Block) -> Iterator[Var]:
    """The arrays that a block stores into."""
    for let in ir.walk(block):
        yield from ir.arrays_written(let.op)


def _exact_accumulation(name: str, param: Var) -> bool:
    """Is the operation associative and commutative in the machine, bit for bit?"""
    if not isinstance(param.type, Scalar):
        return False
    dtype = param.type.dtype
    if name in ("and", "or", "xor"):
        return True
    if name in ("add", "mul"):
        return is_integer(dtype)
    return name in ("minimum", "maximum") and (is_integer(dtype) or is_float(dtype))


def _unconditional(op: ir.For) -> Block:
    """The body of a loop with `total += x if c else 0` in place of `if c: total += x`."""
    param_of = {result: param for param, result in zip(op.params, op.body.results, strict=True)}
    statements: list[Let] = []
    for let in op.body.statements:
        steps = None
        if isinstance(let.op, ir.If) and let.outs:
            steps = _conditional_steps(let, let.op, [param_of.get(out) for out in let.outs])
        statements += [let] if steps is None else steps
    return Block(tuple(statements), op.body.results)


def _conditional_steps(let: Let, op: ir.If, params: Sequence[Var | None]) -> list[Let] | None:
    """An If that does nothing but accumulate: what each parameter accumulates on either way, and its accumulation."""
    writer = Writer(let.pos)
    left = {inner.outs[0]: inner.op for block in (op.then, op.orelse) for inner in block.statements if inner.outs}
    inside = set(left)
    if len(left) != len(op.then.statements) + len(op.orelse.statements):
        return None
    for place, (out, param) in enumerate(zip(let.outs, params, strict=True)):
        names: list[str] = []
        ways: list[Operand | None] = []
        for block in (op.then, op.orelse):
            result = block.results[place]
            match left.pop(result, None) if isinstance(result, Var) and result is not param else None:
                case None if result is param:
                    ways.append(None)
                case ir.Prim(name, (before, more)) if before is param and more is not param and more not in inside:
                    names.append(name)
                    ways.append(more)
                case _:
                    return None
        if param is None or not names or len(set(names)) > 1 or not _exact_accumulation(names[0], param):
            return None
        nothing = _identity(names[0], param)
        then, orelse = (nothing if way is None else way for way in ways)
        taken = writer.prim("select", op.condition, then, orelse, type_=ir.scalar_type(param))
        writer.let(ir.Prim(names[0], (param, taken)), out)
    return None if left else writer.statements


def _identity(name: str, param: Var) -> Const:
    kind = ir.scalar_type(param)
    dtype = kind.dtype
    if dtype == "bool":
        return Const(name == "and", kind)
    if is_float(dtype):
        return Const(float("inf") if name == "minimum" else float("-inf"), kind)
    low, high = integer_bounds(dtype)
    value = {"mul": 1, "minimum": high, "maximum": low, "and": -1 if low else high}.get(name, 0)
    return Const(value, kind)
