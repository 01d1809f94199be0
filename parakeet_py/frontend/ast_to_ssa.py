"""Functions to SSA: parameters, captures, nested functions and the elements of comprehensions.

`ast_to_ssa` converts the syntax tree of one function in a single walk (builder.py holds the state, expressions.py and
statements.py the grammar), then drops the gates nobody reads (prune.py). Functions inside it are converted where they
are defined, lambda-lifted: what they take from around them becomes `Function.captures`.
"""

from __future__ import annotations

import ast

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend.builder import FALSE, NOTHING, RETURN, Binding, Template, pos_of
from parakeet_py.frontend.prune import prune
from parakeet_py.frontend.scopes import Comprehension, Scope, Scopes
from parakeet_py.frontend.source import Source
from parakeet_py.frontend.ssa import Block, Function, Operand, Param, Var
from parakeet_py.frontend.statements import Statements

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
    try:
        builder = FunctionBuilder(source, scopes, scopes.scope(node), ())
        return builder.function(node, "<lambda>" if isinstance(node, ast.Lambda) else node.name)
    except RecursionError:
        message = "the function is too deeply nested to be accelerated"
        hint = "split it into smaller functions"
        first = source.first_line
        raise UnsupportedError(message, source.filename, pos_of(node), source.lines, hint, first_line=first) from None


class FunctionBuilder(Statements):
    """Converts one function; `captured` are the names it takes from the functions around it."""

    def __init__(self, source: Source, scopes: Scopes, scope: Scope, captured: tuple[str, ...]) -> None:
        super().__init__(source, scopes, scope.declared_global)
        self.local_names = frozenset(scope.locals)
        self.deleted_names = frozenset(scope.deleted)
        self.captures = tuple(Var(name) for name in captured)
        for name, var in zip(captured, self.captures, strict=True):
            self.bind(name, var)
        for name in scope.locals:
            self.env[name] = Binding(NOTHING, FALSE)

    def function(self, node: ast.FunctionDef | ast.Lambda, name: str) -> Function:
        """The finished function."""
        params = self.parameters(node.args)
        if isinstance(node, ast.Lambda):
            result = self.expression(node.body, "result")
        else:
            last = ast.copy_location(ast.Return(None), node)
            self.block([*node.body, last])
            result = self.control(RETURN)
        self.result = result
        return self.finish(name, params, result, node.lineno, node.end_lineno or node.lineno)

    def finish(self, name: str, params: tuple[Param, ...], result: Operand, first: int, last: int) -> Function:
        body = prune(Block(tuple(self.arm.out), (result,)))
        source = self.source
        return Function(name, params, self.captures, body, source.filename, source.first_line, source.lines)

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

    def template(self, function: Function, captured: tuple[str, ...], defaults: tuple[Operand, ...]) -> Template:
        """The finished function with what is known of the functions it returns."""
        returned, passed_on = frozenset[str](), frozenset[str]()
        if isinstance(self.result, Var):
            returned = frozenset(name for name, _ in self.held.get(self.result, ()) if name in captured)
            passed_on = frozenset({self.result.name} if self.result in self.captures else ())
        return Template(function, captured, defaults, returned, passed_on)

    # ---- functions inside it ----------------------------------------------------------------------------------------

    def nested_function(self, node: ast.FunctionDef | ast.Lambda, name: str, defaults: tuple[Operand, ...]) -> Template:
        scope = self.scopes.scope(node)
        captured = tuple(free for free in scope.free if free in self.env)
        if name in captured and (isinstance(node, ast.FunctionDef) or name != "<lambda>"):
            self.refuse(
                node,
                f"the nested function `{name}` calls itself",
                "write the recursion as a loop, or move the function to the top level of the module",
            )
        builder = FunctionBuilder(self.source, self.scopes, scope, captured)
        builder.declared_global = {**self.declared_global, **scope.declared_global}
        function = builder.function(node, name)
        return builder.template(function, captured, defaults)

    def element_function(self, node: ast.AST, level: int, part: str) -> Template:
        assert isinstance(node, Comprehension)
        generator = node.generators[level]
        targets, used = self.scopes.comprehension_names(node, level)
        captured = tuple(name for name in used if name in self.env)
        scope = Scope(locals=dict.fromkeys(targets), declared_global=self.declared_global)
        builder = FunctionBuilder(self.source, self.scopes, scope, captured)
        return builder.element(node, generator, level, part, captured)

    def element(
        self, node: Comprehension, generator: ast.comprehension, level: int, part: str, captured: tuple[str, ...]
    ) -> Template:
        """The function of one item that gives an element of a comprehension, or whether it is wanted."""
        item = Var(generator.target.id if isinstance(generator.target, ast.Name) else "item")
        self.assign(generator.target, item, generator.target)
        if part == "condition":
            tests = generator.ifs
            test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])
            self.result = self.truth(test)
        elif level + 1 < len(node.generators):
            self.result = self.comprehension(node, "inner", level + 1)
        elif isinstance(node, ast.DictComp):
            pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
            self.result = self.expression(pair, "pair")
        else:
            self.result = self.expression(node.elt, "element")
        if isinstance(self.result, Var):
            for name, _ in self.held.get(self.result, ()):
                if name in self.local_names:
                    self.refuse(
                        node,
                        f"the functions made here use `{name}`, which changes from item to item",
                        f"give them `{name}` as a default argument: `lambda ..., {name}={name}: ...`",
                    )
        function = self.finish(part, (Param(item, item.name),), self.result, node.lineno, node.lineno)
        return self.template(function, captured, ())
