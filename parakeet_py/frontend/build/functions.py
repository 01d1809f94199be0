"""Functions to SSA: parameters, captures, nested functions and the elements of comprehensions.

`ast_to_ssa` converts the syntax tree of one function in a single walk (builder.py holds the state, expressions.py and
statements.py the grammar), then drops the flags that are never read (prune.py). Functions inside it are converted where
they are defined, lambda-lifted: what they take from around them becomes `Function.captures`.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend.build.bindings import FALSE, NOTHING, RETURN, TRUE, Binding, Converted, Definition, pos_of
from parakeet_py.frontend.build.prune import prune
from parakeet_py.frontend.build.statements import Statements
from parakeet_py.frontend.desugar import cells, comprehensions, exceptions, generators, lru_cache, managers, patterns
from parakeet_py.frontend.desugar.nodes import ANNOTATED, Managed
from parakeet_py.frontend.ownership import results, values
from parakeet_py.frontend.source.function_source import Source
from parakeet_py.frontend.source.scopes import Comprehension, Scope, Scopes
from parakeet_py.frontend.ssa import Block, DeleteItem, Function, Itself, Operand, Param, Var
from parakeet_py.frontend.syntax_walk import walk

__all__ = ["ast_to_ssa"]


def ast_to_ssa(source: Source) -> Function:
    """The untyped IR of a function.

    Raises
    ------
    UnsupportedError
        It uses something that cannot be accelerated.
    """
    node = source.node
    scopes = Scopes()
    if isinstance(node, ast.AsyncFunctionDef):
        raise UnsupportedError(
            "an async function cannot be accelerated",
            source.filename,
            pos_of(node),
            source.lines,
            "await outside and pass the result in",
            first_line=source.first_line,
        )

    def refuse(inner: ast.AST, message: str, hint: str) -> None:
        pos, first = pos_of(inner), source.first_line
        raise UnsupportedError(message, source.filename, pos, source.lines, hint, first_line=first)

    node = _rewritten(node, refuse)
    try:
        builder = FunctionBuilder(source, scopes, scopes.scope(node))
        made = builder.function(node, "<lambda>" if isinstance(node, ast.Lambda) else node.name).function
        return _checked(values.with_changes_as_values(made), builder) if scopes.may_change else made
    except RecursionError:
        message = "the function is too deeply nested to be accelerated"
        hint = "split it into smaller functions"
        first = source.first_line
        raise UnsupportedError(message, source.filename, pos_of(node), source.lines, hint, first_line=first) from None


def _checked(function: Function, builder: FunctionBuilder) -> Function:
    """A function that deletes items of what is its own alone."""
    for one in results.functions_in(function):
        for let in one.statements():
            if isinstance(let.op, DeleteItem):
                hint = "make a new object without it"
                raise builder.refusal(let.pos, "`del` of an item cannot be accelerated", hint)
    return function


_Node = ast.FunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _rewritten(node: _Node, refuse: Callable[[ast.AST, str, str], None]) -> _Node:
    """The same function without what other syntax can say; most functions have nothing of that."""
    rewritings: tuple[tuple[tuple[type[ast.AST], ...], Callable[[_Node], _Node]], ...] = (
        (_FUNCTIONS, lru_cache.without_caches),
        ((ast.ListComp,), comprehensions.without_changes_inside),
        (_FUNCTIONS, cells.without_nonlocal),
        ((ast.Yield, ast.YieldFrom), lambda node: generators.without_yield(node, refuse)),
        ((ast.Match,), lambda node: patterns.without_match(node, refuse)),
        ((ast.With,), managers.without_managers),
        ((ast.Try, Managed), lambda node: exceptions.without_try(node, refuse)),
    )
    inside = _classes_inside(node)
    for wanted, without in rewritings:
        if not inside.isdisjoint(wanted):
            made = without(node)
            if made is not node:
                node, inside = made, _classes_inside(made)
    return node


def _bound_in(node: ast.AST) -> frozenset[str]:
    """All names that a function or one inside it binds."""
    found: set[str] = set()
    for part in walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
    return frozenset(found)


def _classes_inside(node: ast.AST) -> set[type[ast.AST]]:
    return set(map(type, walk(node)[1:]))


class FunctionBuilder(Statements):
    """Converts one function; `captured` are the names it takes from the functions around it, `unbound` those of them
    that may be unbound when it is made."""

    def __init__(
        self,
        source: Source,
        scopes: Scopes,
        scope: Scope,
        captured: tuple[str, ...] = (),
        unbound: tuple[str, ...] = (),
    ) -> None:
        super().__init__(source, scopes, scope.declared_global)
        self.generator = False
        self.doc: str | None = None
        self.annotations: str | None = ""
        self.local_names = frozenset(scope.locals)
        self.deleted_names = frozenset(scope.deleted)
        self.free_names = frozenset(captured)
        self.captured = captured
        self.rebound = frozenset(scope.rebound)
        self.unsteady = frozenset({*scope.rebound, *scope.looped})  # names that inner functions may see change
        self.unsteady_captures = frozenset[str]()
        variables = {name: Var(name) for name in captured}
        flags = {name: Var(name + ".bound") for name in unbound}
        self.captures = (*variables.values(), *flags.values())
        for name, var in variables.items():
            self.env[name] = Binding(var, flags.get(name, TRUE))
        for name in scope.locals:
            self.env[name] = Binding(NOTHING, FALSE)

    def function(self, node: ast.FunctionDef | ast.Lambda, name: str, recursive: bool = False) -> Converted:
        """The finished function; one that is `recursive` reads its own name."""
        params = self.parameters(node.args)
        if recursive:
            itself = self.emit(Itself(), node, name)
            self.bind(name, itself)
            self.held[itself] = frozenset((one, self.env[one].identity()) for one in self.captured)
        if isinstance(node, ast.Lambda):
            return self.finish(name, params, self.expression(node.body, "result"))
        self.doc, self.annotations = ast.get_docstring(node, clean=False), self.annotations_of(node)
        self.generator = generators.is_generator(node)
        self.block([*node.body, ast.copy_location(ast.Return(None), node)])
        return self.finish(name, params, self.control(RETURN))

    def annotations_of(self, node: ast.FunctionDef) -> str | None:
        """See `ssa.Function`."""
        if getattr(node, ANNOTATED, False):
            return None
        given = [arg.annotation for arg in walk(node.args) if isinstance(arg, ast.arg)]
        annotations = [one for one in (*given, node.returns) if one is not None]
        if not annotations:
            return ""
        used = {name.id for one in annotations for name in walk(one) if isinstance(name, ast.Name)}
        if not used.isdisjoint(self.source.free_names) or not used.isdisjoint(_bound_in(self.source.node)):
            return None
        arguments = copy.copy(node.args)
        nothing = ast.Constant(None)
        arguments.defaults = [nothing] * len(arguments.defaults)
        arguments.kw_defaults = [default and nothing for default in arguments.kw_defaults]
        same = ast.FunctionDef("f", arguments, [ast.Pass()], [], node.returns)
        return ast.unparse(ast.fix_missing_locations(ast.Module([same], [])))

    def finish(self, name: str, params: tuple[Param, ...], result: Operand) -> Converted:
        body = prune(Block(tuple(self.arm.out), (result,)))
        source = self.source
        place = source.first_line, source.lines
        unsteady, states = tuple(sorted(self.unsteady_captures)), tuple(self.error_states)
        said = self.doc, self.annotations
        function = Function(
            name, params, self.captures, body, source.filename, *place, self.generator, unsteady, states, *said
        )
        if not isinstance(result, Var):
            return Converted(function, frozenset(), frozenset())
        returned = frozenset(captured for captured, _ in self.held.get(result, ()) if captured in self.captured)
        return Converted(function, returned, frozenset({result.name} if result in self.captures else ()))

    def parameters(self, arguments: ast.arguments) -> tuple[Param, ...]:
        params: list[Param] = []

        def add(arg: ast.arg, kind: str, positional_only: bool = False, has_default: bool = False) -> None:
            var = Var(arg.arg)
            self.bind(arg.arg, var)
            params.append(Param(var, arg.arg, kind, positional_only, has_default))

        positional = arguments.posonlyargs + arguments.args
        first_default = len(positional) - len(arguments.defaults)
        for index, arg in enumerate(positional):
            add(arg, "positional", index < len(arguments.posonlyargs), index >= first_default)
        if arguments.vararg:
            add(arguments.vararg, "vararg")
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            add(arg, "keyword", has_default=default is not None)
        if arguments.kwarg:
            add(arguments.kwarg, "varkw")
        return tuple(params)

    # ---- functions inside it ----------------------------------------------------------------------------------------

    def nested_function(
        self, node: ast.FunctionDef | ast.Lambda, name: str, defaults: tuple[Operand, ...], decorated: bool = False
    ) -> Definition:
        scope = self.scopes.scope(node)
        captured = tuple(free for free in scope.free if free in self.env)
        recursive = name in captured
        if recursive and (decorated or name in self.rebound or self.loops):  # the name stands for another function then
            self.refuse_recursion(name, node)
        captured = tuple(one for one in captured if one != name)

        def convert(unbound: tuple[str, ...]) -> Converted:
            builder = FunctionBuilder(self.source, self.scopes, scope, captured, unbound)
            builder.declared_global = {**self.declared_global, **scope.declared_global}
            builder.capture_unsteady(self.unsteady | frozenset(unbound))
            own = "<lambda>" if isinstance(node, ast.Lambda) and not recursive else name
            return builder.function(node, own, recursive)

        return Definition(name, captured, defaults, convert)

    def element_function(self, node: Comprehension, level: int, part: str) -> Definition:
        targets, element, condition = self.scopes.comprehension_names(node, level)
        used = condition if part == "condition" else element
        captured = tuple(name for name in used if name in self.env)
        scope = Scope(locals=dict.fromkeys(targets), declared_global=self.declared_global)

        def convert(unbound: tuple[str, ...]) -> Converted:
            builder = FunctionBuilder(self.source, self.scopes, scope, captured, unbound)
            builder.capture_unsteady(self.unsteady | frozenset(unbound))
            builder.unsteady |= frozenset(targets)  # they change from item to item
            if sys.version_info >= (3, 12) and not isinstance(node, ast.GeneratorExp):
                builder.free_names = self.free_names  # these comprehensions are no longer functions of their own
            return builder.element(node, level, part)

        return Definition(part, captured, (), convert)

    def capture_unsteady(self, names: frozenset[str]) -> None:
        """What is captured may be bound again if it is one of these names."""
        self.unsteady_captures = names & frozenset(self.captured)
        self.unsteady |= self.unsteady_captures

    def element(self, node: Comprehension, level: int, part: str) -> Converted:
        """The function of one item that gives an element of a comprehension, or whether it is wanted."""
        generator = node.generators[level]
        item = Var(generator.target.id if isinstance(generator.target, ast.Name) else "item")
        self.assign(generator.target, item, generator.target)
        if part == "condition":
            tests = generator.ifs
            test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])
            result = self.truth(test)
        elif level + 1 < len(node.generators):
            result = self.comprehension(node, "inner", level + 1)
        elif isinstance(node, ast.DictComp):
            pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
            result = self.expression(pair, "pair")
        else:
            result = self.expression(node.elt, "element")
        inner = part != "condition" and level + 1 < len(node.generators)  # is used up before the next item comes
        if isinstance(result, Var) and not inner:
            for name, _ in self.held.get(result, ()):
                if name in self.local_names:
                    self.refuse(
                        node,
                        f"the functions made here use `{name}`, which changes from item to item",
                        f"give them `{name}` as a default argument: `lambda ..., {name}={name}: ...`",
                    )
        return self.finish(part, (Param(item, item.name),), result)
