"""Python code made from untyped SSA: what `ssa.py` means when values are Python's own.

`code_of(function)` gives a code object that does what the function did, at the speed of Python. Control flow is `if`,
`for`, `while` and `try` again, every variable is a local of the name `name.uid`, parameters keep their names, and each
instruction has the place in the user's file that its operator has: frames and tracebacks are the user's. Globals and
closure cells are read as Python reads them.

What the code takes from outside are free variables:

    constants           `.k0`, `.k1`, ...: what a literal cannot be
    captures            of nested functions, by value (under their own names where that is possible)
    `.closure(f, captures, defaults)`
                        makes a nested function
    `.global(name)`     reads a global whose name is a parameter's
    `.itself`           the function that is running

Writers that are derived from `Writer` add calls of hooks (`observed_code.py`).
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.caught_steps import Failed, item_of
from parakeet_py.frontend.desugar.generators import yielded
from parakeet_py.frontend.evaluate.frames import deep_recursion
from parakeet_py.frontend.evaluate.nodes import BINARY, COMPARE, DEL, LOAD, STORE, UNARY, Nodes, parameters, where_of
from parakeet_py.frontend.ownership.changes import FUNCTIONS
from parakeet_py.frontend.ssa import UNBOUND, Block, Const, Let, Operand, Pos, Star, Var

_PLAIN = (bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType)
_MODULE = "$module"


@record(eq=False)
class Code:
    """The code of a function.

    Attributes
    ----------
    constants : by the names of the free variables that hold them
    captures : the names of the free variables for `function.captures`
    sites : place and operator of each operation that hooks are called for, by number
    """

    function: ssa.Function
    code: types.CodeType
    constants: dict[str, types.CellType]
    captures: tuple[str, ...]
    sites: tuple[tuple[Pos, str], ...]


class Writer(Nodes):
    """Makes the code of one function."""

    def __init__(self, function: ssa.Function) -> None:
        super().__init__(function.first_line)
        self.function = function
        self.sites: list[tuple[Pos, str]] = []
        self.locals: list[str] = []  # to begin with, these are None
        self.states: tuple[ssa.ErrorState, ...] = ()  # around what is being written
        self.handler: ssa.Handler | None = None  # in which what is being written is
        self.handled: dict[ssa.Handler, str] = {}  # names of what handlers have caught
        self.handlers = {_handler(let.pos) for let in function.statements()} - {None}
        self.loops = 0  # around what is being written
        self.yields = False
        self.names: dict[Var, str] = {param.var: param.name for param in function.params}
        self.parameters = set(self.names.values())
        read = {let.op.name for let in function.statements() if isinstance(let.op, ssa.Global | ssa.Free)}
        for var in function.captures:
            known = read | self.parameters | set(self.names.values())
            self.names[var] = f"{var.name}.{var.uid}" if var.name in known else var.name
        self.captures = tuple(self.names[var] for var in function.captures)
        self.free.update(self.captures)
        self.nested = type(self)  # makes the code of nested functions

    def finish(self) -> Code:
        function = self.function
        body = self.block(function.body)
        result = None if function.generator else self.read(function.body.results[0])
        body += [self.set(name, self.literal(None)) for name in self.handled.values()]  # whose traceback has this frame
        body.append(self.at(ast.Return(result)))
        if self.locals:
            body.insert(0, self.at(ast.Assign(list(map(self.store, self.locals)), self.literal(None))))
        if function.generator and not self.yields:
            body.append(self.set(None, self.at(ast.Yield(None))))
        if function.doc is not None:
            body.insert(0, self.at(ast.Expr(self.literal(function.doc))))
        inner = self.at(ast.FunctionDef(".function", self.arguments(), body, [], None))
        around = parameters(list(map(self.arg, sorted(self.free))))
        outer = self.at(ast.FunctionDef(".make", around, [inner], [], None))
        made = compile(ast.Module([outer], []), function.filename, "exec", dont_inherit=True)
        code = _inside(_inside(made, ".make"), ".function")
        code = _renamed(code, code.co_qualname, function.name).replace(co_name=function.name)
        cells = {name: types.CellType(value) for name, value in self.constants.items()}
        return Code(function, code, cells, self.captures, tuple(self.sites))

    def arguments(self) -> ast.arguments:
        made = parameters()
        for param in self.function.params:
            arg = self.arg(param.name)
            match param.kind:
                case "vararg":
                    made.vararg = arg
                case "varkw":
                    made.kwarg = arg
                case "keyword":
                    made.kwonlyargs.append(arg)
                    made.kw_defaults.append(None)
                case _:
                    (made.posonlyargs if param.positional_only else made.args).append(arg)
        return made

    # ---- operands ----------------------------------------------------------------------------------------------------

    def name(self, var: Var) -> str:
        return self.names.get(var) or self.names.setdefault(var, f"{var.name}.{var.uid}")

    def read(self, operand: Operand) -> ast.expr:
        if isinstance(operand, Var):
            return self.load(self.name(operand))
        if type(operand.value) in _PLAIN:
            return self.literal(operand.value)
        return self.literal(None) if operand.value is UNBOUND else self.constant(operand.value)

    def named(self, operand: Operand) -> ast.expr:
        """The same where Python warns of literals."""
        if isinstance(operand, Var) or operand.value is None or type(operand.value) is bool:
            return self.read(operand)
        return self.constant(operand.value)

    def items(self, items: Iterable[ssa.Item]) -> list[ast.expr]:
        return [self.starred(self.read(one.operand)) if isinstance(one, Star) else self.read(one) for one in items]

    def moved(self, targets: Sequence[str], values: Sequence[Operand]) -> list[ast.stmt]:
        """Names bound to operands, all at once."""
        names = [None if isinstance(value, Const) else self.name(value) for value in values]
        moves = [one for one in zip(targets, values, names, strict=True) if one[0] != one[2]]
        written = [target for target, _, _ in moves]
        if all(name not in written[:place] for place, (_, _, name) in enumerate(moves)):
            return [self.set(target, self.read(value)) for target, value, _ in moves]
        into = self.at(ast.Tuple(list(map(self.store, written)), STORE))
        return [self.assign(into, self.tuple_of([self.read(value) for _, value, _ in moves]))]

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> list[ast.stmt]:
        before, around, made = self.where, self.handler, []
        # What is made for control flow, and what follows a handler, is where the block is.
        for handler, lets in itertools.groupby(block.statements, lambda let: _handler(let.pos) or around):
            self.handler = handler
            inner = self.statements(lets)
            made += inner if handler is around else self.handling(handler, inner)
        self.where, self.handler = before, around
        return made

    def statements(self, statements: Iterable[Let]) -> list[ast.stmt]:
        """Those of a block that are in the same handler."""
        outer, made = self.states, []
        for states, lets in itertools.groupby(statements, self.error_states):
            self.states, inner = states, []
            for let in lets:
                self.where = where_of(let.pos)
                inner += self.let(let)
            made += self.under(states[len(outer) :], inner)
        self.states = outer
        return made

    def handling(self, handler: ssa.Handler | None, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of a handler, in one of Python's."""
        if handler not in self.handled:  # the rest of a function may begin in it
            return body
        error = self.load(self.handled[handler])
        kept = {name: self.new(name) for name in ("__traceback__", "__context__")}  # which `raise` changes
        keep = [self.set(name, self.attribute(error, attribute)) for attribute, name in kept.items()]
        restore = [
            self.assign(self.at(ast.Attribute(error, attribute, STORE)), self.load(name))
            for attribute, name in kept.items()
        ]
        caught = self.at(ast.ExceptHandler(self.constant(BaseException), None, [*restore, *body]))
        return [*keep, self.at(ast.Try([self.throw(error)], [caught], [], []))]

    def error_states(self, let: Let) -> tuple[ssa.ErrorState, ...]:
        """Those that hold for a statement and all of those inside it, outermost first."""
        states = tuple(state for state in self.function.error_states if state.holds_at(let.pos))
        for block in ssa.blocks_of(let.op) if states else ():
            for inner in map(self.error_states, block.statements):
                states = tuple(state for state in states if state in inner)
        return states

    def under(self, states: Sequence[ssa.ErrorState], body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements under error states of NumPy's."""
        if not states:
            return body
        items = []
        for state in states:
            actions = [self.at(ast.keyword(kind, self.literal(action))) for kind, action in state.actions]
            items.append(ast.withitem(self.at(ast.Call(self.constant(np.errstate), [], actions)), None))
        return [self.at(ast.With(items, body))]

    def let(self, let: Let) -> list[ast.stmt]:
        outs, op, read = [self.name(out) for out in let.outs], let.op, self.read
        out = outs[0] if outs else None
        match op:
            case ssa.If(condition, then, orelse):
                arms = [self.block(arm) + self.moved(outs, arm.results) for arm in (then, orelse)]
                return [self.when(read(condition), *arms)]
            case ssa.For() | ssa.While():
                return self.loop(op, let.outs)
            case ssa.Guarded():
                return self.guarded(op, outs)
            case ssa.Assert(condition, message):
                before = [] if message is None else self.block(message)
                args = [] if message is None else [read(message.results[0])]
                error = self.call(self.constant(AssertionError), *args)
                return [self.when(self.without(read(condition)), [*before, self.throw(error)])]
            case ssa.CheckBound(flag, name, free):
                error = self.call(self.constant(ssa.unbound_name), self.literal(name), self.literal(free))
                return [self.when(self.without(read(flag)), [self.throw(error)])]
            case ssa.Raise(exception, None, True):
                return self.throw_again(read(exception))
            case ssa.Raise(exception, cause):
                return [self.throw(read(exception), None if cause is None else read(cause))]
            case ssa.DeleteItem(value, index):
                return [self.at(ast.Delete([self.place(read(value), read(index), DEL)]))]
            case ssa.SetAttribute(value, name, new):
                return [self.assign(self.at(ast.Attribute(read(value), name, STORE)), read(new))]
            case ssa.Unpack(value, first, star):
                targets: list[ast.expr] = list(map(self.store, outs))
                if star:
                    targets[first] = self.at(ast.Starred(targets[first], STORE))
                return [self.assign(self.at(ast.Tuple(targets, STORE)), read(value))]
            case ssa.Import(module, name, level):
                alias = self.at(ast.alias(module if name is None else name, _MODULE))  # names with dots are cut
                loads = ast.Import([alias]) if name is None else ast.ImportFrom(module or None, [alias], level)
                return [self.at(loads), *(self.set(one, self.load(_MODULE)) for one in outs)]
            case ssa.ChangeList():
                return self.change_list(op, outs)
            case ssa.Comprehension():
                return self.comprehension(op, out or self.new("made"), let.pos)
            case ssa.Call(Const(function), (Var() | Const() as item,)) if function is yielded:
                self.yields = True
                made = [self.set(None, self.at(ast.Yield(read(item))))]
                return made if out is None else [*made, self.set(out, self.literal(False))]
        return self.operation(let, out)

    def operation(self, let: Let, out: str | None) -> list[ast.stmt]:
        match let.op:
            case ssa.Call(Const(function), (Var() as item,)) if function is item_of:
                failed = self.test(self.type_of(self.read(item)), ast.Is(), self.constant(Failed))
                raised = self.when(failed, [self.throw(self.attribute(self.read(item), "error"))])
                return [raised, *([] if out is None else [self.set(out, self.read(item))])]
            case ssa.Inplace(name, left, right):
                out = out or self.new("value")
                changed = ast.AugAssign(self.store(out), BINARY[name](), self.read(right))
                return [self.set(out, self.read(left)), self.at(changed)]
            case ssa.SetItem(value, index, new):
                return [self.assign(self.place(self.read(value), self.read(index)), self.read(new))]
        return [self.set(out, self.expression(let.op))]

    def loop(self, op: ssa.For | ssa.While, outs: Sequence[Var]) -> list[ast.stmt]:
        begin = self.moved([self.name(param) for param in op.params], op.inits)
        self.loops += 1
        body = [*self.turn(op), *self.carried(op, outs)]
        self.loops -= 1
        item = self.store(self.name(op.item)) if isinstance(op, ssa.For) else None
        items = self.read(op.iterable) if isinstance(op, ssa.For) else None
        return [*begin, *self.repeated(op, outs, body, item, items)]

    def repeated(
        self,
        op: ssa.For | ssa.While,
        outs: Sequence[Var],
        body: list[ast.stmt],
        item: ast.expr | None,
        items: ast.expr | None,
    ) -> list[ast.stmt]:
        """A loop with this body, after what it carries has been set."""
        begin = [self.set(self.name(outs[0]), self.literal(False))] if op.stoppable else []
        if item is None or items is None:
            return [*begin, self.at(ast.While(self.literal(True), body, []))]
        return [*begin, self.for_each(item, items, body)]

    def turn(self, op: ssa.For | ssa.While) -> list[ast.stmt]:
        """What is done in each iteration; loops without an iterator end in it."""
        if isinstance(op, ssa.For):
            return self.block(op.body)
        return [*self.block(op.condition), self.unless_done(op), *self.block(op.body)]

    def unless_done(self, op: ssa.While) -> ast.stmt:
        return self.when(self.without(self.read(op.condition.results[0])), [self.at(ast.Break())])

    def carried(self, op: ssa.For | ssa.While, outs: Sequence[Var]) -> list[ast.stmt]:
        """The end of an iteration."""
        state, results, skip = [self.name(param) for param in op.params], op.body.results, int(op.stoppable)
        self.names.update(zip(outs[skip:], state, strict=True))  # what the loop ends with
        if not op.stoppable:
            return self.moved(state, results)
        stopped = self.name(outs[0])
        leave = self.when(self.load(stopped), [self.at(ast.Break())])
        return [self.set(stopped, self.read(results[0])), *self.moved(state, results[1:]), leave]

    def guarded(self, op: ssa.Guarded, outs: list[str]) -> list[ast.stmt]:
        def ends(number: int, caught: Sequence[ast.expr], results: Sequence[Operand]) -> list[ast.stmt]:
            kept = [self.set(name, value) for name, value in zip(outs[1:], caught, strict=False)]
            return [*self.moved(outs[:1], [Const(number)]), *kept, *self.moved(outs[1 + op.keeps :], results)]

        body = self.block(op.body) + ends(0, [self.literal(None)] * op.keeps, op.body.results)
        handlers = []
        for number, one in enumerate(op.classes, 1):
            handled = op.handlers[number - 1] if op.handlers else None
            caught = self.new("caught") if op.keeps or handled in self.handlers else None
            kept = [self.load(caught)] if caught is not None and op.keeps else []
            handler = ends(number, kept, [Const(None)] * len(op.body.results))
            if caught is not None and handled is not None and handled in self.handlers:
                name = self.handled.setdefault(handled, f"handled.{handled[0]}.{handled[1]}")
                handler.append(self.set(name, self.load(caught)))
            handlers.append(self.at(ast.ExceptHandler(self.read(one), caught, handler)))
        return [self.at(ast.Try(body, handlers, [], []))] if handlers else body

    def change_list(self, op: ssa.ChangeList, outs: list[str]) -> list[ast.stmt]:
        held, args = self.read(op.object), [self.read(arg) for arg in op.args]
        made: list[ast.stmt] = []
        given: ast.expr | None = None
        if op.at is not None:
            item = self.new("item")
            made.append(self.set(item, self.at(ast.Subscript(held, self.read(op.at), LOAD))))
            held = self.load(item)
        match op.change:
            case "set":
                made.append(self.assign(self.place(held, args[0]), args[1]))
            case "delete":
                made.append(self.at(ast.Delete([self.place(held, args[0], DEL)])))
            case "iadd":
                target = outs[0] if outs and op.at is None else self.new("list")  # which may be something else then
                made += [self.set(target, held), self.at(ast.AugAssign(self.store(target), ast.Add(), args[0]))]
                outs = [] if op.at is None else outs
            case "deque" | "Counter" | "defaultdict":
                value = self.call(args[0], held if op.change != "defaultdict" else args[1])
                return [self.set(outs[0] if outs else None, value)]
            case "heappop":
                given = self.call(args[0], held)
            case "pop" | "setdefault" | "popleft" | "popright" as method:
                given = self.call(self.attribute(held, "pop" if method == "popright" else method), *args)
            case name if name in FUNCTIONS:
                made.append(self.set(None, self.call(args[0], held, *args[1:])))
            case method:
                made.append(self.set(None, self.call(self.attribute(held, method), *args)))
        if given is not None:
            made.append(self.set(outs[0] if outs else None, given))
            outs = outs[1:]
        return made + self.moved(outs, [op.object] * len(outs))

    def functions(self, op: ssa.Comprehension, pos: Pos) -> tuple[list[ast.stmt], list[ast.expr]]:
        """The functions of a comprehension, after these statements."""
        return [], [self.read(one) for one in (op.element, op.condition) if one is not None]

    def comprehension(self, op: ssa.Comprehension, out: str, pos: Pos) -> list[ast.stmt]:
        made, called = self.functions(op, pos)
        if op.kind == "generator":
            return [*made, self.set(out, self.generator(op.flatten, self.read(op.iterable), called))]
        item, value = self.new("item"), self.new("value")
        element, target = self.call(called[0], self.load(item)), self.load(out)
        begin: ast.expr
        if op.kind == "dict":
            key = self.new("key")
            begin, into = self.at(ast.Dict([], [])), self.pair(key, value)
            keep = self.assign(self.place(target, self.load(key)), self.load(value))
        else:
            nothing = self.starred(self.tuple_of([]))
            begin, into = self.at(ast.Set([nothing]) if op.kind == "set" else ast.List([], LOAD)), self.store(value)
            method = self.attribute(target, "add" if op.kind == "set" else "append")
            keep = self.set(None, self.call(method, self.load(value)))
        taken = [self.for_each(into, element, [keep])] if op.flatten else [self.assign(into, element), keep]
        if op.condition is not None:
            taken = [self.when(self.call(called[1], self.load(item)), taken)]
        made += [self.set(out, begin), self.for_each(self.store(item), self.read(op.iterable), taken)]
        if op.kind == "tuple":
            made.append(self.set(out, self.tuple_of([self.starred(target)])))
        return made

    def generator(self, flatten: bool, iterable: ast.expr, called: list[ast.expr]) -> ast.expr:
        """A generator expression, in a function of its own as it sees its functions as they are now."""
        names = [self.new("given") for _ in called]
        items, item, value = self.new("items"), self.new("item"), self.new("value")
        element = self.call(self.load(names[0]), self.load(item))
        ifs = [self.call(self.load(one), self.load(item)) for one in names[1:]]
        loops = [ast.comprehension(self.store(item), self.load(items), ifs, 0)]
        if flatten:
            loops.append(ast.comprehension(self.store(value), element, [], 0))
            element = self.load(value)
        made = self.at(ast.GeneratorExp(element, loops))
        around = self.at(ast.Lambda(parameters(list(map(self.arg, (items, *names)))), made))
        return self.call(around, self.call(self.predefined("iter"), iterable), *called)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expression(self, op: ssa.Op) -> ast.expr:
        read = self.read
        made: Any
        match op:
            case ssa.Binary(name, left, right):
                made = ast.BinOp(read(left), BINARY[name](), read(right))
            case ssa.Compare(name, left, right):
                operand = self.named if name in ("is", "isnot") else read
                made = ast.Compare(operand(left), [COMPARE[name]()], [operand(right)])
            case ssa.Unary(name, value):
                made = ast.UnaryOp(UNARY[name](), read(value))
            case ssa.Call(function):
                return self.applied(self.named(function), op)
            case ssa.Subscript(value, index):
                made = ast.Subscript(self.named(value), read(index), LOAD)
            case ssa.Attribute(value, name):
                made = ast.Attribute(read(value), name, LOAD)
            case ssa.Global(name) if name in self.parameters or name in self.free:
                return self.call(self.outside(".global"), self.literal(name))
            case ssa.Global(name):
                made = ast.Name(name, LOAD)
            case ssa.Free(name):
                self.free.add(name)
                made = ast.Name(name, LOAD)
            case ssa.Itself():
                return self.outside(".itself")
            case ssa.BuildSet(items) | ssa.BuildTuple(items, hashed=True):
                made = ast.Set(self.items(items) or [self.starred(self.tuple_of([]))])
            case ssa.BuildTuple(items):
                made = ast.Tuple(self.items(items), LOAD)
            case ssa.BuildList(items):
                made = ast.List(self.items(items), LOAD)
            case ssa.BuildSlice(lower, upper, step):
                return self.call(self.predefined("slice"), read(lower), read(upper), read(step))
            case ssa.BuildDict(pairs):
                keys = [None if key is None else read(key) for key, _ in pairs]
                made = ast.Dict(keys, [read(value) for _, value in pairs])
            case ssa.BuildString(parts):
                made = ast.JoinedStr([self.formatted(*part) for part in parts])
            case ssa.MakeClosure(function, captures, defaults):
                code_of(function, self.nested)  # what fails, fails now
                values = [self.tuple_of([read(one) for one in ones]) for ones in (captures, defaults)]
                return self.call(self.outside(".closure"), self.constant(function), *values)
            case _:
                raise TypeError(op)
        return self.at(made)  # type: ignore[no-any-return]

    def applied(self, function: ast.expr, op: ssa.Call) -> ast.expr:
        """A call."""
        keywords = [self.at(ast.keyword(name, self.read(operand))) for name, operand in op.kwargs]
        return self.at(ast.Call(function, self.items(op.args), keywords))

    def formatted(self, part: Operand, conversion: str, spec: str) -> ast.expr:
        wanted = self.at(ast.JoinedStr([self.literal(spec)])) if spec else None
        how = ord(conversion) if conversion else -1
        return self.at(ast.FormattedValue(self.read(part), how, wanted))


_MAX_CODES = 512
_codes: dict[tuple[int, type[Writer]], Code] = {}
_made: dict[int, types.CodeType] = {}  # by `id`: equal code may be another function's


def code_of(function: ssa.Function, writer: type[Writer] = Writer) -> Code:
    """The code of a function, made once by each writer."""
    key = (id(function), writer)
    found = _codes.get(key)
    if found is None or found.function is not function:
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
            _made.clear()
        with deep_recursion():
            found = _codes[key] = writer(function).finish()
        _made[id(found.code)] = found.code
    return found


def is_made_code(code: types.CodeType) -> bool:
    """Is this code that has been made from SSA?"""
    return _made.get(id(code)) is code


def _handler(pos: Pos) -> ssa.Handler | None:
    """The handler in which a place is."""
    return pos.handlers[-1] if isinstance(pos, ssa.InHandler) else None


def _inside(code: types.CodeType, name: str) -> types.CodeType:
    """The code of a function that is made in other code."""
    return next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)


def _renamed(code: types.CodeType, prefix: str, name: str) -> types.CodeType:
    """The code, its qualified name and those of the functions in it beginning with this name."""
    inner = [_renamed(one, prefix, name) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    qualified = name + code.co_qualname.removeprefix(prefix).replace(".<locals>.<lambda>", "")
    return code.replace(co_consts=tuple(inner), co_qualname=qualified)
