"""`functools.lru_cache` on nested functions: a dict of what has been computed. Syntax trees to syntax trees.

    @lru_cache(maxsize=None)        $memo.fib = {}
    def fib(n):                     def fib(n):
        if n < 2:                       $key.fib = n
            return n                    if $key.fib in $memo.fib:
        return fib(n - 1) + ...             return $memo.fib[$key.fib]
                                        ...
                                        $result.fib = fib(n - 1) + ...
                                        $memo.fib[$key.fib] = $result.fib
                                        return $result.fib

The dict is one that functions share (`cells`). A call has the result that it would have without a cache, or with one
that forgets, so that the size that is asked for does not matter. That the decorator is that of `functools` is checked
when the function is specialized (`check_cache`).
"""

from __future__ import annotations

import ast
import copy
import functools
from typing import Any, TypeVar

from parakeet_py.frontend.desugar.nodes import listed, place
from parakeet_py.frontend.syntax_walk import walk

_N = TypeVar("_N", bound=ast.AST)
CACHES = (functools.lru_cache, functools.cache)


def check_cache(decorator: object) -> None:
    """Raise TypeError unless this is a decorator that keeps results."""
    if decorator not in CACHES:
        raise TypeError("a decorator called like one of functools that is another one")


_CHECK: Any = check_cache  # stands for itself among literals


def without_caches(node: _N) -> _N:
    """The same function, or a copy of it whose nested functions keep their results themselves."""
    if not any(isinstance(inner, ast.FunctionDef) and _decorator(inner) is not None for inner in _inside(node)):
        return node
    rewritten: _N = copy.deepcopy(node)
    for inner in [node for node in walk(rewritten) if isinstance(node, ast.stmt)]:
        for name, value in ast.iter_fields(inner):
            if isinstance(value, list) and any(isinstance(part, ast.FunctionDef) for part in value):
                setattr(inner, name, [made for part in value for made in _kept(part)])
    return rewritten


def _inside(node: ast.AST) -> list[ast.AST]:
    return [inner for inner in walk(node) if inner is not node]


def _decorator(node: ast.FunctionDef) -> ast.expr | None:
    """The `lru_cache` of a function whose arguments can be a key."""
    own = node.args
    if len(node.decorator_list) != 1 or own.vararg or own.kwarg or own.kwonlyargs or not _parameters(node):
        return None
    match node.decorator_list[0]:
        case ast.Call(func=decorator, args=args, keywords=keywords):
            known = all(isinstance(part, ast.Constant) for part in (*args, *(keyword.value for keyword in keywords)))
            if not known or any(keyword.arg == "typed" for keyword in keywords) or len(args) > 1:
                return None
        case decorator:
            pass
    match decorator:
        case ast.Name(id="lru_cache" | "cache") | ast.Attribute(value=ast.Name(), attr="lru_cache" | "cache"):
            return decorator
    return None


def _parameters(node: ast.FunctionDef) -> list[str]:
    return [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]


def _kept(node: ast.stmt) -> list[ast.stmt]:
    """The statements that a decorated function becomes; any other statement as it is."""
    decorator = _decorator(node) if isinstance(node, ast.FunctionDef) else None
    if not isinstance(node, ast.FunctionDef) or decorator is None:
        return [node]
    memo, key, result = (f"${part}.{node.name}" for part in ("memo", "key", "result"))

    def load(name: str) -> ast.expr:
        return ast.Name(name, ast.Load())

    def bind(name: str, value: ast.expr) -> ast.stmt:
        return ast.Assign([ast.Name(name, ast.Store())], value)

    parts = [load(name) for name in _parameters(node)]
    found = ast.Return(ast.Subscript(load(memo), load(key), ast.Load()))
    first = [
        bind(key, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())),
        ast.If(ast.Compare(load(key), [ast.In()], [load(memo)]), [found], []),
    ]

    class Returns(ast.NodeTransformer):
        def visit_Return(self, inner: ast.Return) -> list[ast.AST]:
            item = ast.Assign([ast.Subscript(load(memo), load(key), ast.Store())], load(result))
            made = bind(result, inner.value or ast.Constant(None))
            return [place(one, inner) for one in (made, item, ast.Return(load(result)))]

        def visit_FunctionDef(self, inner: ast.FunctionDef) -> ast.AST:
            return inner

        def visit_Lambda(self, inner: ast.Lambda) -> ast.AST:
            return inner

    body = [*node.body, place(ast.Return(None), node)]
    kept = [made for one in body for made in listed(Returns().visit(one))]
    node.body = [*(place(one, node) for one in first), *kept]
    node.decorator_list = []
    check = ast.Expr(ast.Call(ast.Constant(_CHECK), [decorator], []))
    return [place(check, node), place(bind(memo, ast.Dict([], [])), node), node]
