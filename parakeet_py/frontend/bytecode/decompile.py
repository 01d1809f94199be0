"""Functions without source: from their bytecode to a syntax tree, which the one frontend there is then reads.

Bytecode could go straight to SSA. That would be a second conversion beside `ast_to_ssa`, and all it knows about
closures, own lists, merges, names that may be unbound, and what to say when it refuses, would have to be there twice
and agree. Syntax is the narrower bridge, and one that can be read: three steps make it, each right by itself.

* `bytecode_blocks`: every basic block becomes statements, by running the value stack on expressions;
* `bytecode_structure`: the graph of blocks becomes loops and branches, by dominators;
* `bytecode_tidy`: conditional assignments become conditional expressions again, and so on.

numba's bytecode analysis could take the first step, at the price of importing numba (more than a second) for the first
function without source, of what numba itself does not compile, and of finding the syntax again in its flat code.

What has no form here (exceptions that are caught, irreducible loops, an unknown opcode) is an `UnsupportedError`
with its line, as for source.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

from parakeet_py.base.config import current
from parakeet_py.base.debug_log import log
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend.build.bindings import pos_of
from parakeet_py.frontend.bytecode.blocks import blocks
from parakeet_py.frontend.bytecode.nodes import Unknown
from parakeet_py.frontend.bytecode.structure import structured
from parakeet_py.frontend.bytecode.tidy import as_expression, tidied
from parakeet_py.frontend.source.function_source import Source


def read_bytecode(function: FunctionType) -> Source:
    """The syntax tree of a function, from its code object alone.

    Raises
    ------
    UnsupportedError
        The code has something that cannot be made syntax.
    """
    code = function.__code__
    try:
        body, arguments = _body(code, frozenset())
    except Unknown as error:
        raise _refusal(code, str(error), error.position) from None
    except Exception:
        if current().check:
            raise
        log.debug("bytecode of %s", code.co_qualname, exc_info=True)
        raise _refusal(code, "its bytecode is not understood", None) from None
    # A default that is there is all that is known of it here: its value is the function object's.
    nothing = [ast.Constant(None) for _ in function.__defaults__ or ()]
    arguments.defaults = list(nothing)
    given = function.__kwdefaults__ or {}
    arguments.kw_defaults = [ast.Constant(None) if each.arg in given else None for each in arguments.kwonlyargs]
    value = as_expression(body) if code.co_name == "<lambda>" else None
    node: ast.FunctionDef | ast.Lambda = (
        ast.FunctionDef(code.co_name, arguments, body, []) if value is None else ast.Lambda(arguments, value)
    )
    first = code.co_firstlineno
    node.lineno = node.end_lineno = first
    node.col_offset = node.end_col_offset = 0
    ast.fix_missing_locations(node)
    return Source(node, code.co_filename, first, (), code.co_freevars)


_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_YIELDS = ("YIELD_VALUE", "GET_YIELD_FROM_ITER")


def _refusal(code: CodeType, message: str, position: ast.AST | None) -> UnsupportedError:
    where = position if position is not None else ast.Constant(None, lineno=code.co_firstlineno, col_offset=0)
    return UnsupportedError(message, code.co_filename, pos_of(where))


def _body(code: CodeType, around: frozenset[str]) -> tuple[list[ast.stmt], ast.arguments]:
    if code.co_flags & _ASYNC:
        raise Unknown("`async` cannot be accelerated")
    own = {*code.co_varnames, *code.co_cellvars}
    visible = (around | own) - {".0"}
    body = tidied(structured(blocks(code, lambda inner: _body(inner, frozenset(visible)))))
    instructions = list(dis.get_instructions(code))
    if code.co_flags & inspect.CO_GENERATOR and not any(each.opname in _YIELDS for each in instructions):
        raise Unknown("a generator that gives nothing")
    hidden = {each.argval for each in instructions if each.opname == "LOAD_GLOBAL"} & around - set(code.co_freevars)
    bound = {each for instruction in instructions for each in _stored(instruction)}
    free = set(code.co_freevars)
    if hidden:
        body.insert(0, ast.Global(sorted(hidden)))
    if bound & free:
        body.insert(0, ast.Nonlocal(sorted(bound & free)))
    arguments = _arguments(code)
    parameters = {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}
    read = {each for instruction in instructions for each in _read(instruction)} - free - parameters - bound
    if read - {".0"}:
        raise Unknown(f"`{sorted(read)[0]}` is read but never bound")
    return body, arguments


def _stored(instruction: dis.Instruction) -> Iterator[str]:
    match instruction.opname:
        case "STORE_FAST" | "STORE_DEREF":
            yield instruction.argval
        case "STORE_FAST_STORE_FAST":
            yield from instruction.argval
        case "STORE_FAST_LOAD_FAST":
            yield instruction.argval[0]


def _read(instruction: dis.Instruction) -> Iterator[str]:
    match instruction.opname:
        case "LOAD_FAST" | "LOAD_FAST_CHECK" | "LOAD_DEREF" | "LOAD_CLOSURE":
            yield instruction.argval
        case "LOAD_FAST_LOAD_FAST":
            yield from instruction.argval
        case "STORE_FAST_LOAD_FAST":
            yield instruction.argval[1]


def _arguments(code: CodeType) -> ast.arguments:
    names = [ast.arg(name) for name in code.co_varnames]
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    end = positional + keyword
    vararg = names[end] if code.co_flags & 4 else None
    kwarg = names[end + (vararg is not None)] if code.co_flags & 8 else None
    only = code.co_posonlyargcount
    keywords = names[positional:end]
    return ast.arguments(names[:only], names[only:positional], vararg, keywords, [None] * keyword, kwarg, [])
