"""What can be said about names and control flow before conversion, from the syntax tree alone.

`Scopes` answers three questions, each worked out once per node:

* which names a function binds, which it takes from around it (`scope`), as Python's own symbol table would say;
* which names a loop may bind (`bound_by`): these are its candidates for loop-carried variables;
* how a statement may end (`flow`): by falling through to the next one, or by break, continue or return. A set
  without any of these never ends normally (it raises, or loops for ever).
"""

from __future__ import annotations

import ast
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.desugar.nodes import Leave, TryBody, cell_of
from parakeet_py.frontend.syntax_walk import children

FALLS, BREAK, CONTINUE, RETURN = 1, 2, 4, 8
LEAVES = BREAK | CONTINUE | RETURN

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FunctionLike = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@record(frozen=False)
class Scope:
    """Names of one function, in order of appearance (the dicts are ordered sets)."""

    locals: dict[str, None] = field(default_factory=dict)
    free: dict[str, None] = field(default_factory=dict)
    deleted: dict[str, None] = field(default_factory=dict)
    declared_global: dict[str, None] = field(default_factory=dict)
    declared_nonlocal: dict[str, None] = field(default_factory=dict)
    rebound: dict[str, None] = field(default_factory=dict)  # bound in several places
    looped: dict[str, None] = field(default_factory=dict)  # bound in a loop


class Scopes:
    """The facts about one function and all functions inside it."""

    def __init__(self) -> None:
        self.has_nested = False  # whether there are functions inside it
        self.defaultdicts: set[str] = set()  # names of what reading changes
        self.may_change = False  # whether something may be changed: a method is called, an item set, `+=`
        self.binds_inside_expressions = False  # whether there is a `:=`
        self._scopes: dict[ast.AST, Scope] = {}
        self._bound: dict[ast.AST, frozenset[str]] = {}
        self._flows: dict[ast.AST, int] = {}

    def scope(self, node: FunctionLike) -> Scope:
        if node not in self._scopes:
            walk = _Walk(self)
            arguments = node.args
            for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                walk.scope.locals[arg.arg] = None
            for star in (arguments.vararg, arguments.kwarg):
                if star:
                    walk.scope.locals[star.arg] = None
            for part in [node.body] if isinstance(node, ast.Lambda) else node.body:
                walk.visit(part)
            self._scopes[node] = walk.finish()
        return self._scopes[node]

    def bound_by(self, loop: ast.For | ast.While) -> frozenset[str]:
        """Names that the target, condition or body of a loop may bind or delete. Its function's `scope` is known."""
        return self._bound[loop]

    def note_loop(self, loop: ast.AST, names: set[str]) -> None:
        self._bound[loop] = frozenset(names)

    def comprehension_names(self, node: Comprehension, level: int) -> tuple[list[str], list[str], list[str]]:
        """Targets of the `level`-th `for`, and the names that the element and the condition of an item take from
        around them."""
        generator = node.generators[level]
        targets, element, condition = _Walk(self), _Walk(self), _Walk(self)
        targets.visit(generator.target)
        condition.visit_all(generator.ifs)
        if level + 1 < len(node.generators):
            element.visit(node.generators[level + 1].iter)
            _, inner, tests = self.comprehension_names(node, level + 1)
            element.scope.free.update(dict.fromkeys(inner + tests))
        else:
            element.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        bound = targets.scope.locals

        def outside(walk: _Walk) -> list[str]:
            return [name for name in {**targets.scope.free, **walk.scope.free} if name not in bound]

        return list(bound), outside(element), outside(condition)

    def flow(self, statement: ast.stmt) -> int:
        """How a statement may end: a set of FALLS, BREAK, CONTINUE, RETURN."""
        found = self._flows.get(statement)
        if found is None:
            found = self._flows[statement] = self._flow(statement)
        return found

    def flow_of(self, block: list[ast.stmt]) -> int:
        """The same for a list of statements."""
        ends = FALLS
        for statement in block:
            ends = ends & ~FALLS | self.flow(statement)
            if not ends & FALLS:
                break
        return ends

    def _flow(self, statement: ast.stmt) -> int:
        match statement:
            case ast.Return():
                return RETURN
            case ast.Break():
                return BREAK
            case ast.Continue() | Leave():
                return CONTINUE
            case ast.Raise():
                return 0
            case TryBody():
                return FALLS
            case ast.If(body=body, orelse=orelse):
                return self.flow_of(body) | self.flow_of(orelse)
            case ast.With(body=body):
                return self.flow_of(body)
            case ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
                inside = self.flow_of(body)
                ends = inside & RETURN | (FALLS if inside & BREAK else 0)
                return ends if is_endless(statement) else ends | self.flow_of(orelse)
            case _:
                return FALLS


def falls_through(block: list[ast.stmt]) -> bool:
    """Is what comes after these statements reached?"""
    return bool(Scopes().flow_of(block) & FALLS)


def is_endless(loop: ast.stmt) -> bool:
    """`while True`: left by break or return only."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)


class _Walk:
    """One pass over a function's own code; loops that are open collect what is bound in them."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self.scope = Scope()
        self.open_loops: list[set[str]] = []

    def finish(self) -> Scope:
        scope = self.scope
        for name in (*scope.declared_global, *scope.declared_nonlocal):
            scope.locals.pop(name, None)
        for name in (*scope.locals, *scope.declared_global):
            scope.free.pop(name, None)
        scope.free.update(scope.declared_nonlocal)
        return scope

    def bind(self, name: str) -> None:
        if cell_of(name) != name:  # that is to assign an attribute
            self.scope.free[cell_of(name)] = None
            return
        if name in self.scope.locals:
            self.scope.rebound[name] = None
        self.scope.locals[name] = None
        for names in self.open_loops:
            names.add(name)
            self.scope.looped[name] = None

    def visit_all(self, nodes: list[ast.expr] | list[ast.stmt] | list[ast.expr | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit(self, node: ast.AST) -> None:
        scope = self.scope
        match node:
            case ast.Name(id=name, ctx=context):
                if isinstance(context, ast.Load):
                    scope.free[cell_of(name)] = None
                else:
                    self.bind(name)
                    if isinstance(context, ast.Del):
                        scope.deleted[name] = None
            case ast.Constant():
                pass
            case ast.NamedExpr(target=target, value=value):
                self.visit(target)
                self.visit(value)
                self.scopes.binds_inside_expressions = True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)) if (
                isinstance(function, ast.Name | ast.Attribute)
                and (function.id if isinstance(function, ast.Name) else function.attr) == "defaultdict"
            ):
                self.scopes.defaultdicts.add(cell_of(name))
                self.scopes.may_change = True
                for child in children(node):
                    self.visit(child)
            case ast.Call() | ast.AugAssign():
                self.scopes.may_change = True
                for child in children(node):
                    self.visit(child)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                self.scopes.may_change = True
                self.visit(node.value)
                self.visit(node.slice)
            case ast.For() | ast.While():
                if isinstance(node, ast.For):
                    self.visit(node.iter)
                self.open_loops.append(set())
                self.visit(node.target if isinstance(node, ast.For) else node.test)
                self.visit_all(node.body)
                self.scopes.note_loop(node, self.open_loops.pop())
                self.visit_all(node.orelse)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                if not isinstance(node, ast.Lambda):
                    self.visit_all(node.decorator_list)
                    self.bind(node.name)
                self.visit_all(node.args.defaults)
                self.visit_all(node.args.kw_defaults)
                scope.free.update(self.scopes.scope(node).free)
                self.scopes.has_nested = True
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.visit(node.generators[0].iter)
                self.scopes.has_nested = True
                _, element, condition = self.scopes.comprehension_names(node, 0)
                scope.free.update(dict.fromkeys(element + condition))
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    self.bind(alias.asname or alias.name.partition(".")[0])
            case ast.Global(names=names):
                scope.declared_global.update(dict.fromkeys(names))
            case ast.Nonlocal(names=names):
                scope.declared_nonlocal.update(dict.fromkeys(names))
            case ast.AnnAssign(target=target, value=value):
                self.visit(target)
                if value is not None:
                    self.visit(value)
            case ast.ClassDef(name=name):
                self.bind(name)
            case _:
                for child in children(node):
                    self.visit(child)
