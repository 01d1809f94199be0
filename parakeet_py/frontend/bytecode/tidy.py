"""Statements taken from bytecode, as they are usually written.

Nothing here is needed for a right answer, except that comprehensions, `with` and `assert` have no other form; the rest
makes the syntax tree what the other frontend expects to see: conditional expressions instead of conditional
assignments, temporaries where they are used, loop variables in the loop's header.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from parakeet_py.frontend.bytecode.nodes import EnterWith, ExitWith, Made, Unknown


def tidied(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function, tidied."""
    while True:
        tidy = _Tidy(body)
        body = tidy.block(body)
        if not tidy.changed:
            return body


def _is_temporary(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Name) and node.id[0] == "$"


class _Tidy:
    def __init__(self, body: list[ast.stmt]) -> None:
        names = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Name)]
        self.reads = Counter(name.id for name in names if isinstance(name.ctx, ast.Load))
        self.writes = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
        self.changed = False

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements = [self.statement(each) for each in body]
        statements = self.with_blocks(statements)
        index = len(statements) - 2
        while index >= 0:
            if self.sunk(statements, index):
                self.changed = True
                index = min(index, len(statements) - 2)
                continue
            pair = (
                self.pair(statements[index], statements[index + 1])
                or self.unpacked(statements, index)
                or self.at_once(statements, index)
            )
            if pair is None:
                index -= 1
                continue
            self.changed = True
            statements[index : index + pair[1]] = [pair[0]]
            index = min(index, len(statements) - 2)
        return statements

    # ---- one statement ----------------------------------------------------------------------------------------------

    def statement(self, statement: ast.stmt) -> ast.stmt:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                statement.body, statement.orelse = self.block(body), self.block(orelse)
                return self.branch(statement, test)
            case ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
                statement.body, statement.orelse = self.block(body), self.block(orelse)
                if isinstance(statement, ast.For):
                    self.header(statement)
            case ast.With(body=body):
                statement.body = self.block(body)
        return statement

    def branch(self, statement: ast.If, test: ast.expr) -> ast.stmt:
        match statement.body, statement.orelse:
            case [ast.Assign(targets=[ast.Name(id=one)], value=yes)], [ast.Assign(targets=[target], value=no)] if (
                isinstance(target, ast.Name) and one == target.id and _is_temporary(target)
            ):
                self.changed = True
                value = ast.copy_location(ast.IfExp(test, yes, no), yes)
                return ast.copy_location(ast.Assign([target], value), statement)
            case [ast.Raise(exc=ast.expr() as raised, cause=None)], []:
                message: list[ast.expr] = []
                kind = raised
                if isinstance(raised, ast.Call) and not raised.keywords and len(raised.args) == 1:
                    kind, message = raised.func, raised.args
                if getattr(kind, "is_assertion", False):
                    match test:
                        case ast.UnaryOp(op=ast.Not(), operand=claim):
                            pass
                        case _:
                            claim = _not(test)
                    return ast.copy_location(ast.Assert(claim, message[0] if message else None), statement)
        return statement

    def header(self, loop: ast.For) -> None:
        """The loop's variables into its header."""
        if not isinstance(loop.target, ast.Name) or not _is_temporary(loop.target):
            return
        match loop.body:
            case [ast.Assign(targets=[target], value=ast.Name(id=name)), *rest] if name == loop.target.id:
                if self.reads[name] == 1 and isinstance(target, ast.Name | ast.Tuple | ast.List):
                    self.changed = True
                    loop.target = target
                    loop.body = rest or [ast.copy_location(ast.Pass(), loop)]

    # ---- two statements ---------------------------------------------------------------------------------------------

    def pair(self, first: ast.stmt, second: ast.stmt) -> tuple[ast.stmt, int] | None:
        match first:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name[0] == "$":
                pass
            case _:
                return None
        match second:
            case ast.If(test=test, body=body, orelse=orelse):
                tested = {name, value.id} if isinstance(value, ast.Name) and value.id[0] == "$" else {name}
                found = _both(name, tested, test, body, orelse)
                if found is not None:
                    operator, other = found
                    both = ast.copy_location(ast.BoolOp(operator, [value, other]), value)
                    return ast.copy_location(ast.Assign(first.targets, both), first), 2
            case ast.For() if isinstance(value, ast.List | ast.Set | ast.Dict):
                made = _gathered(name, value, second)
                if made is not None and self.writes[name] == 1:
                    return ast.copy_location(ast.Assign(first.targets, made), first), 2
        if self.reads[name] == 1 and self.writes[name] == 1 and _reached(second, name) is True:
            _Put(name, value).visit_heads(second)
            return second, 2
        return None

    def sunk(self, statements: list[ast.stmt], index: int) -> bool:
        """`$a = v; $c = $b; $d = $a` becomes `$c = $b; $d = v`: moves of temporaries do nothing that v could see."""
        match statements[index]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                name[0] == "$" and self.reads[name] == 1 == self.writes[name]
            ):
                pass
            case _:
                return False
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        for position in range(index + 1, len(statements)):
            match statements[position]:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=source)) as move if (
                    target[0] == source[0] == "$"
                ):
                    if source == name:
                        move.value = value
                        del statements[index]
                        return True
                    if target in read:
                        return False
                case _:
                    return False
        return False

    def unpacked(self, statements: list[ast.stmt], index: int) -> tuple[ast.stmt, int] | None:
        """`($a, $b) = v; x = $a; y = $b` is `x, y = v`."""
        match statements[index]:
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value):
                names = [each.value if isinstance(each, ast.Starred) else each for each in elts]
            case _:
                return None
        following = statements[index + 1 : index + 1 + len(names)]
        if not names or len(following) < len(names):
            return None
        targets: list[ast.expr] = []
        for name, each, slot in zip(names, following, elts, strict=True):
            match each:
                case ast.Assign(targets=[target], value=ast.Name(id=read)) if (
                    isinstance(name, ast.Name) and name.id == read and read[0] == "$" and self.reads[read] == 1
                ):
                    starred = isinstance(slot, ast.Starred)
                    targets.append(ast.copy_location(ast.Starred(target, ast.Store()), slot) if starred else target)
                case _:
                    return None
        together = ast.copy_location(ast.Tuple(targets, ast.Store()), elts[0])
        return ast.copy_location(ast.Assign([together], value), statements[index]), 1 + len(names)

    def at_once(self, statements: list[ast.stmt], index: int) -> tuple[ast.stmt, int] | None:
        """`$a = v; $b = w; x = $a; y = $b` is `x, y = v, w`, and so is `$a = v; y = w; x = $a`."""
        values: list[ast.expr] = []
        targets: dict[str, ast.expr | None] = {}  # of each temporary, by the order of the values
        last: ast.expr | None = None
        for each in statements[index:]:
            match each:
                case ast.Assign(targets=[target], value=ast.Name(id=read)) if targets.get(read, target) is None:
                    targets[read] = target
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    name[0] == "$" and self.reads[name] == 1 == self.writes[name] and last is None
                ):
                    if any(target is not None for target in targets.values()):
                        return None
                    targets[name] = None
                    values.append(value)
                case ast.Assign(targets=[ast.Name() as target], value=value) if (
                    targets and last is None and not _is_temporary(value)
                ):
                    if any(target is not None for target in targets.values()):
                        return None
                    last = target
                    values.append(value)
                case _:
                    return None
            if targets and None not in targets.values():
                break
        else:
            return None
        stored = [target for target in (*targets.values(), last) if target is not None]
        names = [target.id for target in stored if isinstance(target, ast.Name)]
        if len(stored) < 2 or len(set(names)) < len(stored) or any(name[0] == "$" for name in names):
            return None  # the order of the stores might be seen
        count = len(values) + len(targets)
        match statements[max(index - 1, 0)], statements[index + count : index + count + 1]:
            case ast.Assign(targets=[ast.Name(id=name)]), [ast.Assign(value=ast.Name(id=read))] if name == read:
                return None  # there are more of them
        first = statements[index]
        target = ast.copy_location(ast.Tuple(stored, ast.Store()), first)
        return ast.copy_location(
            ast.Assign([target], ast.copy_location(ast.Tuple(values, ast.Load()), first)), first
        ), count

    # ---- with -------------------------------------------------------------------------------------------------------

    def with_blocks(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        for index in range(len(statements) - 1, -1, -1):
            enter = statements[index]
            if not isinstance(enter, EnterWith):
                continue
            end = next(
                (i for i in range(index + 1, len(statements)) if isinstance(statements[i], ExitWith)), len(statements)
            )
            body, after = statements[index + 1 : end], statements[end + 1 :]
            match body, after:
                case [*_], [ast.Return(), *_] if end < len(statements):
                    body, after = [*body, after[0]], after[1:]
            body = [each for each in map(_without_exit, body) if each is not None]
            item = ast.withitem(enter.value, None)
            block = ast.With([item], body or [ast.copy_location(ast.Pass(), enter)])
            self.changed = True
            return self.with_blocks([*statements[:index], ast.copy_location(block, enter), *after])
        return statements


def _without_exit(statement: ast.stmt) -> ast.stmt | None:
    """The exit of a `with` before a statement that leaves it is the `with` statement's own work."""
    if isinstance(statement, ExitWith):
        return None
    for name in ("body", "orelse"):
        inner = getattr(statement, name, None)
        if isinstance(inner, list):
            for index, each in enumerate(inner):
                leaves = index + 1 < len(inner) and isinstance(inner[index + 1], ast.Return | ast.Break | ast.Continue)
                if isinstance(each, ExitWith) and not leaves:
                    raise Unknown("a `with` statement that ends in several places", statement)
            kept = [each for each in map(_without_exit, inner) if each is not None]
            setattr(statement, name, kept or ([ast.copy_location(ast.Pass(), statement)] if name == "body" else []))
    return statement


def as_expression(body: list[ast.stmt]) -> ast.expr | None:
    """The value of a lambda's body, in which every way through a conditional expression may have its own `return`."""
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return value
        case [ast.If(test=test, body=then, orelse=orelse), *rest]:
            yes, no = as_expression(then), as_expression([*orelse, *rest])
            return ast.copy_location(ast.IfExp(test, yes, no), test) if yes and no else None
    return None


def _not(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _both(
    name: str, tested: set[str], test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]
) -> tuple[ast.boolop, ast.expr] | None:
    """`$a = x; if $a: $a = y` is `$a = x and y`; with `not`, `or`. Other names of x may be what is tested."""
    match test, body, orelse:
        case (
            ast.Name(id=read),
            [ast.Assign(targets=[ast.Name(id=bound)], value=other)],
            [],
        ) if read in tested and bound == name:
            return ast.And(), other
        case (
            ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=read)),
            [ast.Assign(targets=[ast.Name(id=bound)], value=other)],
            [],
        ) if read in tested and bound == name:
            return ast.Or(), other
    return None


# ---- temporaries ----------------------------------------------------------------------------------------------------


def _heads(node: ast.AST) -> Iterator[ast.AST | None]:
    """The parts of a node in the order they are evaluated; None: what comes then may not be evaluated, or not once."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield value
            yield from targets
        case ast.AugAssign(target=target, value=value):
            yield target
            yield value
        case ast.Expr(value=value) | ast.Starred(value=value) | ast.keyword(value=value) | EnterWith(value=value):
            yield value
        case ast.Return(value=ast.expr() as value):
            yield value
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test
            yield None
        case ast.For(iter=iterable):
            yield iterable
            yield None
        case ast.Raise(exc=ast.expr() as exception):
            yield exception
            yield None
        case ast.BoolOp(values=[first, *_]):
            yield first
            yield None
        case ast.Compare(left=left, comparators=[right, *more]):
            yield left
            yield right
            if more:
                yield None
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield node.generators[0].iter
            yield None
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if key is not None:
                    yield key
                yield value
        case ast.Lambda() | ast.stmt():
            yield None
        case _:
            yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.keyword))


_QUIET = ast.Tuple | ast.Slice | ast.keyword | ast.List | ast.JoinedStr | ast.Constant | ast.Name


def _reached(node: ast.AST, name: str) -> bool | None:
    """Whether a temporary is read before anything happens in a node; None: nothing happens and it isn't read."""
    if isinstance(node, ast.Name):
        return True if node.id == name and isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Attribute) and _is_temporary(node.value) and node.attr in ("append", "add"):
        return None  # a comprehension's own container
    for part in _heads(node):
        found = False if part is None else _reached(part, name)
        if found is not None:
            return found
    return None if isinstance(node, _QUIET) else False


class _Put(ast.NodeTransformer):
    """Puts a value where a temporary is read."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name and isinstance(node.ctx, ast.Load) else node

    def visit_heads(self, statement: ast.stmt) -> None:
        self.generic_visit(statement)


# ---- comprehensions -------------------------------------------------------------------------------------------------


def comprehension(made: Made, iterable: ast.expr) -> ast.expr:
    """The comprehension whose own function is called with an iterator."""
    found: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    match made.body:
        case [ast.Return(value=ast.ListComp() | ast.SetComp() | ast.DictComp() as whole)]:
            found = whole
        case [ast.For() as loop, *_]:
            parts = _chain(loop, None, ast.GeneratorExp)
            if parts is None:
                raise Unknown("this generator expression", made)
            found = ast.GeneratorExp(parts[0], parts[2])
        case _:
            raise Unknown("this comprehension", made)
    found.generators[0].iter = iterable
    return ast.copy_location(found, made)


def _gathered(name: str, empty: ast.expr, loop: ast.For) -> ast.expr | None:
    """The comprehension that a loop which fills an empty container is."""
    match empty:
        case ast.List(elts=[]):
            parts = _chain(loop, name, ast.ListComp)
            made: ast.expr | None = parts and ast.ListComp(parts[0], parts[2])
        case ast.Set(elts=[]):
            parts = _chain(loop, name, ast.SetComp)
            made = parts and ast.SetComp(parts[0], parts[2])
        case ast.Dict(keys=[]):
            parts = _chain(loop, name, ast.DictComp)
            made = parts and parts[1] and ast.DictComp(parts[1], parts[0], parts[2])
        case _:
            return None
    return ast.copy_location(made, loop) if made else None


_Chain = tuple[ast.expr, ast.expr | None, list[ast.comprehension]]


def _chain(loop: ast.For, name: str | None, kind: type[ast.expr]) -> _Chain | None:
    """The element, key and generators of nested loops and conditions around one addition to container `name`."""
    if loop.orelse:
        return None
    generator = ast.comprehension(loop.target, loop.iter, [], 0)
    body = loop.body
    while True:
        match body:
            case [ast.For() as inner]:
                parts = _chain(inner, name, kind)
                return parts and (parts[0], parts[1], [generator, *parts[2]])
            case [ast.If(test=test, body=[ast.Continue()], orelse=[]), *rest]:
                generator.ifs.append(_not(test))
                body = rest
            case [ast.If(test=test, body=then, orelse=[])]:
                generator.ifs.append(test)
                body = then
            case [ast.Expr(value=ast.Yield(value=ast.expr() as element))] if kind is ast.GeneratorExp:
                return element, None, [generator]
            case [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=held)), args=[element]))] if (
                held == name
            ):
                return element, None, [generator]
            case [ast.Assign(targets=[ast.Subscript(value=ast.Name(id=held), slice=key)], value=element)] if (
                held == name
            ):
                return element, key, [generator]
            case _:
                return None
