"""Low-level Python: what the native runtime is written in, translated to LLVM IR.

The text is Python to its grammar and C to its meaning: functions over machine words, with loads, stores and atomics.

    def pk_release(ctx: ptr, block: ptr):
        if block != null:
            block.COUNT.i64 -= 1
            if block.COUNT.i64 == 0:
                pk_detach(ctx, block)
                pk_free(block + HEADER)

Types are `ptr`, `i1`, `i8`, `i32`, `i64` and `double`; a number takes the type of what it meets, and is an `i64`
elsewhere.

    p.i64, p.i64[k]            the word at an address, the k-th from there; on the left of `=` it is stored
    p + 8, p.OFFSET            an address so many bytes further; names in capitals are constants of the `Source`
    i64(x), i32(x), ptr(x)     conversions, without a sign; `sext(x)` to i64 with one
    a // b, a % b, a >> b      without a sign; `<` and the like with one, `ult`, `ule`, `ugt`, `uge` without
    a and b, not a             by branches; `&` and `|` of `i1` compute both sides, as `a if c else b` does (`select`)
    f(x), g.i32(x)             a call of a function of the module; of an address, with the type of its result
    alloca(i64, 3)             room on the stack
    smin smax umin memset memcpy memmove, atomic_load and others of `_ATOMIC` (a word, operands, the order), asm

A function whose body is `...` is declared, others are defined; `@internal`, `@alwaysinline`, `@cold` and `@noinline`
are LLVM's words (`@internal.noinline` is two), and a decorator that is a constant is a calling convention. Variables of
a module are addresses: `lock: i32 @ 64 = 0` (aligned to 64 bytes), `ids: i32[MANY]`, `none: extern`, `text = b"..."`.
A condition that is a constant is decided here. Locals become SSA values, so that the text needs no pass of LLVM's to be
as one would write it by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from parakeet_py.llvm.engine.low_level_function import Function, Prototype, Symbols, constant
from parakeet_py.llvm.engine.low_level_source import Source


def translate(*sources: Source, prefix: str = "") -> str:
    """The LLVM IR of a module; symbols that are not internal to it begin with `prefix`."""
    module = _Module(prefix)
    parsed = [(node, source.constants) for source in sources for node in ast.parse(source.text).body]
    for node, constants in parsed:
        module.declare(node, constants)
    for node, constants in parsed:
        if isinstance(node, ast.FunctionDef) and not _is_declaration(node):
            module.parts.append(Function(node, constants, module.symbols).text())
    return "\n".join([*module.symbols.declarations.values(), *module.parts]) + "\n"


def _is_declaration(node: ast.FunctionDef) -> bool:
    match node.body:
        case [ast.Expr(ast.Constant(value=value))]:
            return value is ...
    return False


class _Module:
    """What the functions of a module know of each other."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.symbols = Symbols()
        self.defined: set[str] = set()
        self.parts: list[str] = []

    def declare(self, node: ast.stmt, constants: Mapping[str, int | str]) -> None:
        match node:
            case ast.FunctionDef():
                self._function(node, constants)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value=bytes(data))):
                text = "".join(f"\\{byte:02X}" for byte in data)
                self._variable(name, f'private constant [{len(data)} x i8] c"{text}"', name)
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("extern")):
                self._variable(name, "external global i8", f"{self.prefix}{name}")
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Call(args=[ast.Constant(value=str(symbol))])):
                self._variable(name, "external global i8", f"{self.prefix}{symbol}")
            case ast.AnnAssign(target=ast.Name(name), annotation=kind, value=value):
                align = ""
                if isinstance(kind, ast.BinOp):
                    align, kind = f", align {constant(kind.right, constants)}", kind.left
                number = 0 if value is None else constant(value, constants)
                if isinstance(kind, ast.Subscript):
                    of = f"[{constant(kind.slice, constants)} x {ast.unparse(kind.value)}]"
                else:
                    of = ast.unparse(kind)
                start = "null" if of == "ptr" else "zeroinitializer" if of[0] == "[" else str(number)
                self._variable(name, f"internal global {of} {start}{align}", name)
            case ast.Expr(ast.Call(func=ast.Name("ir"), args=[ast.Constant(value=str(text))])):
                self.parts.append(text)
            case _:
                raise SyntaxError(f"no part of a module: {ast.unparse(node)}")

    def _variable(self, name: str, definition: str, symbol: str) -> None:
        self.symbols.variables[name] = f"@{symbol}"
        self.symbols.declarations[name] = f"@{symbol} = {definition}"

    def _function(self, node: ast.FunctionDef, constants: Mapping[str, int | str]) -> None:
        words: list[str] = []
        convention, symbol = "", f"{self.prefix}{node.name}"
        for one in node.decorator_list:
            match one:
                case ast.Call(func=ast.Name("symbol"), args=[ast.Constant(value=str(name))]):
                    symbol = name
                case ast.Name(name) if name in constants:
                    convention = f"{constants[name]}".strip() + " " if constants[name] else ""
                case _:
                    words.extend(ast.unparse(one).split("."))
        if "internal" in words:
            symbol = node.name
        parameters = [ast.unparse(one.annotation) for one in node.args.args if one.annotation is not None]
        result = ast.unparse(node.returns) if node.returns is not None else "void"
        made = Prototype(f"@{symbol}", result, parameters, node.args.vararg is not None, words, convention)
        self.symbols.functions[node.name] = made
        if not _is_declaration(node):
            self.defined.add(node.name)
            self.symbols.declarations.pop(node.name, None)
        elif node.name not in self.defined:
            self.symbols.declarations[node.name] = f"declare {made.head()}"
