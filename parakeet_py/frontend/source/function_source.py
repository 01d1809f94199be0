"""From a Python function object to its syntax tree.

The source is what `linecache` holds for the file (which covers IPython cells and doctests). Only the function's own
lines are parsed, never the whole file, as the first call pays for it. They are parsed where they stand (blank lines
above, a block header around an indented function), so line and column numbers are those of the file and multi-line
strings keep their text.

What is found is only believed when compiling it gives the function's bytecode again: an edited file, or a wrong guess
at where a function ends, can then never give a wrong answer. Lambdas are distinguished by their instructions'
positions. Anything else raises `NoSourceError`.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import warnings
from collections.abc import Iterator, Set
from contextlib import contextmanager
from inspect import CO_NESTED
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from parakeet_py.base.errors import NoSourceError
from parakeet_py.base.fast_dataclass import record

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURE_FLAGS = 0x1FE0000  # the bits of co_flags that `from __future__ import` sets
_NAME = re.compile(r"[^\W\d]\w*")
_LAMBDA_WINDOW = 12  # lines around a lambda that are tried before the whole file is parsed


@record
class Source:
    """A function's syntax tree and where it stands. `lines` are its own lines, from `first_line` on."""

    node: FunctionNode
    filename: str
    first_line: int
    lines: tuple[str, ...]
    free_names: tuple[str, ...]


def read_source(function: FunctionType) -> Source:
    """The syntax tree of a function, its decorators dropped.

    Raises
    ------
    NoSourceError
        There is no source, or it does not compile to the function's bytecode.
    """
    code = function.__code__
    filename = code.co_filename
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    if not 0 < code.co_firstlineno <= len(lines):
        raise NoSourceError(f"{function.__qualname__}: no source for {filename}:{code.co_firstlineno}")
    node: FunctionNode | None
    if code.co_name == "<lambda>":
        node = _find_lambda(function, lines)
        first_line = code.co_firstlineno
    else:
        node = _find_def(function, lines)
        first_line = code.co_firstlineno
    if node is None:
        raise NoSourceError(
            f"{function.__qualname__}: the source at {filename}:{code.co_firstlineno} is not what it was compiled from"
        )
    own_lines = tuple(lines[first_line - 1 : node.end_lineno])
    class_name = _class_of(code.co_qualname)
    if class_name and any("__" in line for line in own_lines):
        _mangle(node, class_name)
    if not isinstance(node, ast.Lambda):
        node.decorator_list = []
    return Source(node, filename, first_line, own_lines, code.co_freevars)


def _find_def(function: FunctionType, lines: list[str]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    code = function.__code__
    start = code.co_firstlineno - 1
    for end in _def_ends(lines, start):
        tree = _parse(lines[start:end], start + 1, code)
        if tree is None:
            continue
        node = _innermost(tree)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != code.co_name:
            continue
        if any(
            _same_code(found, code)
            for compiled in _compiled(tree.body, function, lines)
            for found in _codes(compiled)
            if found.co_firstlineno == code.co_firstlineno
        ):
            return node
        # pytest compiles the `assert`s of test modules to something else; everything around them is as written.
        if "@pytest_ar" in function.__globals__ and any(isinstance(n, ast.Assert) for n in ast.walk(node)):
            return node
    return None


def _def_ends(lines: list[str], start: int) -> Iterator[int]:
    """Guesses at the end of the `def` that begins at line index `start`: by indentation, then by tokens."""
    base = _indent(lines[start])
    index = start
    while index < len(lines) and not lines[index].lstrip().startswith(("def", "async")):
        index += 1
    index += 1
    while index < len(lines):
        stripped = lines[index].strip()
        if stripped and stripped[0] not in "#)]}" and _indent(lines[index]) <= base:
            break
        index += 1
    yield index
    import inspect
    import tokenize

    try:
        yield start + len(inspect.getblock(lines[start:]))
    except (SyntaxError, tokenize.TokenError):
        return


def _find_lambda(function: FunctionType, lines: list[str]) -> ast.Lambda | None:
    code = function.__code__
    line = code.co_firstlineno - 1
    for start in range(line, max(line - _LAMBDA_WINDOW, -1), -1):
        for end in range(line + 1, min(line + _LAMBDA_WINDOW, len(lines)) + 1):
            tree = _parse(lines[start:end], start + 1, code)
            found = tree and _matching_lambda(tree, function, lines)
            if found:
                return found
    tree = _parse(lines, 1, code)
    return _matching_lambda(tree, function, lines) if tree else None


def _matching_lambda(tree: ast.Module, function: FunctionType, lines: list[str]) -> ast.Lambda | None:
    code = function.__code__
    for node in ast.walk(tree):
        if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno:
            continue
        outer: ast.expr = _without_defaults(node)
        if code.co_freevars:  # a lambda around it whose parameters are the free names makes them free again
            names = [ast.copy_location(ast.arg(name), node) for name in code.co_freevars]
            arguments = ast.arguments([], names, None, [], [], None, [])
            outer = ast.copy_location(ast.Lambda(arguments, outer), node)
        statement = ast.copy_location(ast.Expr(outer), node)
        for found in _compiled([statement], function, lines):
            for _ in range(1 + bool(code.co_freevars)):
                found = next(constant for constant in found.co_consts if isinstance(constant, CodeType))
            if _same_code(found, code) and list(found.co_positions()) == list(code.co_positions()):
                return node
    return None


def _without_defaults(node: ast.Lambda) -> ast.Lambda:
    """The lambda with trivial defaults, as those that are written may hold lambdas themselves."""
    a = node.args
    none = ast.copy_location(ast.Constant(None), node)
    keywords = [default and none for default in a.kw_defaults]
    defaults: list[ast.expr] = [none for _ in a.defaults]
    arguments = ast.arguments(a.posonlyargs, a.args, a.vararg, a.kwonlyargs, keywords, a.kwarg, defaults)
    return ast.copy_location(ast.Lambda(arguments, node.body), node)


def _compiled(body: list[ast.stmt], function: FunctionType, lines: list[str]) -> Iterator[CodeType]:
    """Statements compiled as part of the module in `lines`: below the imports they are likely to need, without any,
    then below all that may be there.

    CPython compiles `np.sin(x)` to other instructions where `np` is imported by the module than where it is not, even
    if it is a parameter.
    """
    code = function.__code__
    used = {
        name
        for each in (code, *_codes(code))
        for names in (each.co_names, each.co_varnames, each.co_cellvars, each.co_freevars)
        for name in names
        if name.isidentifier()
    }
    likely = frozenset(name for name in used if isinstance(function.__globals__.get(name), ModuleType))
    yield _compiled_below(likely, body, code)
    if likely:
        yield _compiled_below(frozenset(), body, code)
    imported = used & _imported_names(lines)
    if imported and imported != likely:
        yield _compiled_below(imported, body, code)


def _compiled_below(imported: Set[str], body: list[ast.stmt], code: CodeType) -> CodeType:
    imports: list[ast.stmt] = []
    if imported:
        aliases = [ast.alias(name, lineno=1, col_offset=0) for name in sorted(imported)]
        imports.append(ast.Import(aliases, lineno=1, col_offset=0))
    module = ast.Module([*imports, *body], [])
    with _heard_already():
        compiled: CodeType = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE_FLAGS, dont_inherit=True)
    return compiled


@contextmanager
def _heard_already() -> Iterator[None]:
    """What is odd about a source Python has said when it compiled it.

    A block of `catch_warnings` would let Python forget which warnings it has given, and give them again.
    """
    filters, all_of_them = cast("list[Any]", warnings.filters), ("ignore", None, Warning, None, 0)
    filters.insert(0, all_of_them)
    try:
        yield
    finally:
        filters.remove(all_of_them)


def _imported_names(lines: list[str]) -> set[str]:
    """The names that import statements of these lines may bind, read without parsing the file."""
    names: set[str] = set()
    open_list = False
    for line in lines:
        if open_list or line.lstrip().startswith(("import ", "from ")):
            names.update(_NAME.findall(line))
            open_list = (open_list or "(" in line or line.rstrip().endswith("\\")) and ")" not in line
    return names


def _parse(block: list[str], first_line: int, code: CodeType) -> ast.Module | None:
    """Parse lines as lines `first_line`... of a file; headers that stand for what is around them make names free,
    private names mangled and the indentation right."""
    headers = []
    if block and block[0][:1] in (" ", "\t"):
        class_name = _class_of(code.co_qualname)
        if code.co_freevars and code.co_name != "<lambda>":
            headers.append(f"def _({','.join(code.co_freevars)}):\n")
        if class_name and code.co_name != "<lambda>":
            headers.append(" " * len(headers) + f"class {class_name}:\n")
        headers = headers or ["if 1:\n"]
    blank = first_line - 1 - len(headers)
    try:
        with _heard_already():
            tree = ast.parse("\n" * max(blank, 0) + "".join(headers) + "".join(block))
    except (SyntaxError, ValueError):
        return None
    if not tree.body:
        return None
    return ast.increment_lineno(tree, blank) if blank < 0 else tree


def _innermost(tree: ast.Module) -> ast.stmt:
    """The first statement of the parsed lines, inside the headers that `_parse` put around it."""
    node = tree.body[0]
    while isinstance(node, ast.If | ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node.name == "_"):
        if isinstance(node, ast.FunctionDef) and not isinstance(node.body[0], ast.FunctionDef | ast.ClassDef):
            break
        node = node.body[0]
    return node


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


_CO_METHOD = 0x8000000  # defined in a class, from Python 3.14 on


def _same_code(a: CodeType, b: CodeType) -> bool:
    return (
        a.co_code == b.co_code
        and a.co_exceptiontable == b.co_exceptiontable
        and (a.co_flags ^ b.co_flags) & ~(CO_NESTED | _CO_METHOD) == 0
        and a.co_argcount == b.co_argcount
        and a.co_posonlyargcount == b.co_posonlyargcount
        and a.co_kwonlyargcount == b.co_kwonlyargcount
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_cellvars == b.co_cellvars
        and len(a.co_consts) == len(b.co_consts)
        and all(_same_constant(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))
    )


def _same_constant(x: object, y: object) -> bool:
    if isinstance(x, CodeType) and isinstance(y, CodeType):
        return _same_code(x, y)
    # repr tells 0.0 from -0.0 and 1 from True; a frozenset's repr has no fixed order
    return type(x) is type(y) and (x == y if isinstance(x, frozenset) else repr(x) == repr(y))


def _class_of(qualname: str) -> str:
    """The innermost class around a function: it decides how private names are mangled."""
    parts = qualname.split(".")
    classes = [part for part, after in itertools.pairwise(parts) if "<" not in part + after]
    return classes[-1] if classes else ""


def _mangle(node: ast.AST, class_name: str) -> None:
    prefix = "_" + class_name.lstrip("_")

    def mangled(name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return prefix + name if private else name

    for inner in ast.walk(node):
        match inner:
            case ast.Name():
                inner.id = mangled(inner.id)
            case ast.Attribute():
                inner.attr = mangled(inner.attr)
            case ast.arg():
                inner.arg = mangled(inner.arg)
            case ast.keyword(arg=str(name)):
                inner.arg = mangled(name)
            case ast.FunctionDef() if inner is not node:
                inner.name = mangled(inner.name)
            case ast.Global() | ast.Nonlocal():
                inner.names = [mangled(name) for name in inner.names]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
