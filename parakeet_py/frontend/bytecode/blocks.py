"""The instructions of a code object as basic blocks of syntax.

Every block runs once on a stack of expressions (`bytecode_stack`). At its end, each slot of the stack has a variable,
the same on all ways to the next one: values that meet need no patterns, and conditional expressions are conditional
assignments, of which `bytecode_tidy` makes expressions again where that is the same.

Opcodes of CPython 3.11 to 3.15 are named here side by side; what is not known raises `Unknown`.
"""

from __future__ import annotations

import ast
import dis
import sys
from collections.abc import Iterator
from types import CodeType

from parakeet_py.frontend.bytecode.nodes import (
    Entered,
    EnterWith,
    Imported,
    Iterating,
    Kept,
    Leaving,
    Node,
    Null,
    Unknown,
)
from parakeet_py.frontend.bytecode.stack import SETTLED, Entries, MakeBody, Stack, items_of, load, parts_of
from parakeet_py.frontend.desugar.managers import is_kept, name_of

_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
    "@": ast.MatMult,
    "&": ast.BitAnd,
    "|": ast.BitOr,
    "^": ast.BitXor,
    "<<": ast.LShift,
    ">>": ast.RShift,
}
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt,
    "<=": ast.LtE,
    "==": ast.Eq,
    "!=": ast.NotEq,
    ">": ast.Gt,
    ">=": ast.GtE,
}
_UNARY: dict[str, type[ast.unaryop]] = {
    "UNARY_POSITIVE": ast.UAdd,
    "UNARY_NEGATIVE": ast.USub,
    "UNARY_NOT": ast.Not,
    "UNARY_INVERT": ast.Invert,
}
_NOTHING = {
    "RESUME", "NOP", "CACHE", "PRECALL", "MAKE_CELL", "COPY_FREE_VARS", "TO_BOOL", "NOT_TAKEN",
    "EXTENDED_ARG", "SETUP_ANNOTATIONS", "GEN_START",
}  # fmt: skip
# The operands of LOAD_COMMON_CONSTANT: builtins, and values.
_COMMON = ("AssertionError", "NotImplementedError", "tuple", "all", "any", "list", "set")
_COMMON_VALUES = (None, "", True, False, -1)
# Places on the stack that a loop's iterator takes.
_OF_ITERATOR = 1 if sys.version_info < (3, 15) else 2
# What the instructions that have no counterpart here stand for in the source.
_WORDS = {
    "LOAD_BUILD_CLASS": "a class cannot be defined in an accelerated function",
    "BEFORE_WITH": "a `with` statement cannot be accelerated",
    "BEFORE_ASYNC_WITH": "`async` cannot be accelerated",
    "GET_AWAITABLE": "`await` cannot be accelerated",
    "GET_AITER": "`async` cannot be accelerated",
    "GET_ANEXT": "`async` cannot be accelerated",
    "STORE_GLOBAL": "a global cannot be bound in an accelerated function",
    "DELETE_GLOBAL": "a global cannot be bound in an accelerated function",
    "DELETE_SUBSCR": "`del` of an item cannot be accelerated",
    "DELETE_ATTR": "`del` of an attribute cannot be accelerated",
    "MATCH_CLASS": "a pattern that looks into an object",
    "IMPORT_STAR": "`import *` cannot be accelerated",
}


def blocks(code: CodeType, body_of: MakeBody) -> dict[int, Node]:
    """The basic blocks that can be reached, by offset; the first begins at the smallest."""
    instructions = list(_without_sends(_without_shortcuts(list(dis.get_instructions(code)))))
    starts = {instructions[0].offset}
    for index, instruction in enumerate(instructions):
        if _is_jump(instruction):
            starts.add(instruction.argval)
            starts.update(each.offset for each in instructions[index + 1 : index + 2])
        if instruction.opname == "FOR_ITER":
            starts.add(instruction.offset)
        if instruction.opname == "PUSH_EXC_INFO" and instructions[index + 1].opname != "WITH_EXCEPT_START":
            raise Unknown("exceptions cannot be caught in an accelerated function", _place(instruction))
    made: dict[int, Node] = {}
    entries: Entries = {instructions[0].offset: ()}
    by_offset = {instruction.offset: index for index, instruction in enumerate(instructions)}
    todo = [instructions[0].offset]
    while todo:
        offset = todo.pop()
        if offset not in made:
            run = _Run(code, Node(offset), body_of, entries)
            made[offset] = run.node
            todo += run.block(instructions, by_offset[offset], starts)
    return made


def _without_sends(instructions: list[dis.Instruction]) -> Iterator[dis.Instruction]:
    """The instructions without the loops that hand on the items of `yield from`; GET_YIELD_FROM_ITER stands for all."""
    index = 0
    while index < len(instructions):
        yield instructions[index]
        if instructions[index].opname == "GET_YIELD_FROM_ITER":
            while instructions[index].opname != "JUMP_BACKWARD_NO_INTERRUPT":
                index += 1
            index += instructions[index + 1].opname == "END_SEND"
        index += 1


def _without_shortcuts(instructions: list[dis.Instruction]) -> list[dis.Instruction]:
    """The instructions without what Python writes twice or in parts from 3.14 on: calls of `all`, `any` and `tuple` on
    a generator have a loop of their own beside the call, taken if these are the builtins; `with` asks for its methods.
    In 3.15, GET_ITER is for `yield from` too."""
    found: list[dis.Instruction] = []
    index = 0
    while index < len(instructions):
        names = [one.opname for one in instructions[index : index + 6]]
        if names[:4] == ["COPY", "LOAD_COMMON_CONSTANT", "IS_OP", "POP_JUMP_IF_FALSE"]:
            jump = instructions[index + 3]
            first = instructions[index]
            found.append(jump._replace(opname="JUMP_FORWARD", opcode=dis.opmap["JUMP_FORWARD"], offset=first.offset))
            index += 4
        elif names == ["COPY", "LOAD_SPECIAL", "SWAP", "SWAP", "LOAD_SPECIAL", "CALL"]:
            found.append(instructions[index]._replace(opname="BEFORE_WITH", opcode=dis.opmap["NOP"]))
            index += 6
        elif names[0] == "GET_ITER" and names[2:3] == ["SEND"]:
            found.append(instructions[index]._replace(opname="GET_YIELD_FROM_ITER"))
            index += 1
        else:
            found.append(instructions[index])
            index += 1
    return found


def _is_jump(instruction: dis.Instruction) -> bool:
    return instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs


def _alike(one: tuple[ast.expr, ...], other: tuple[ast.expr, ...]) -> bool:
    return len(one) == len(other) and all(
        type(a) is type(b) and getattr(a, "id", None) == getattr(b, "id", None) for a, b in zip(one, other, strict=True)
    )


def _place(instruction: dis.Instruction) -> ast.expr:
    where = instruction.positions
    line = (where and where.lineno) or 0
    node = ast.Constant(None)
    node.lineno, node.end_lineno = line, (where and where.end_lineno) or line
    node.col_offset = (where and where.col_offset) or 0
    node.end_col_offset = (where and where.end_col_offset) or node.col_offset
    return node


class _Run(Stack):
    """The abstract run of one block."""

    # ---- a block ----------------------------------------------------------------------------------------------------

    def block(self, instructions: list[dis.Instruction], index: int, starts: set[int]) -> tuple[int, ...]:
        """Run until the block ends; the offsets where it may go."""
        first = index
        while True:
            at = instructions[index]
            if index > first and at.offset in starts:
                self.end(at.offset)
                break
            self.place = _place(at)
            following = instructions[index + 1].offset if index + 1 < len(instructions) else -1
            if self.jump(at, following) or self.leave(at):
                break
            if at.opname not in _NOTHING:
                self.step(at, instructions[index + 1 : index + 4])
            index += 1 + self.skip
            self.skip = 0
        return self.node.successors

    def jump(self, at: dis.Instruction, following: int) -> bool:
        """Whether the instruction ends the block by going elsewhere."""
        name = at.opname
        if name == "FOR_ITER":
            iterating = self.stack[-_OF_ITERATOR]
            if not isinstance(iterating, Iterating):
                raise Unknown("an iterator that is no `for` loop's", self.place)
            self.node.iterable = iterating.value
            self.node.item = self.made(ast.Name(f"$item{at.offset}", ast.Store()))
            self.node.successors = (following, at.argval)
            after = [*self.stack, Null()] if sys.version_info >= (3, 12) else self.stack[:-1]
            self.enter(at.argval, after)
            self.enter(following, [*self.stack, load(self.node.item)])
            return True
        if not _is_jump(at):
            return False
        if name.startswith("JUMP_IF_"):  # and leave it on the stack
            self.spill(at.argval)
            test = self.stack[-1]
            self.branch(test, name == "JUMP_IF_TRUE_OR_POP", at.argval, following)
            self.enter(at.argval, self.stack)
            self.enter(following, self.stack[:-1])
            return True
        if name.startswith("POP_JUMP_"):
            test = self.pop()
            if name.endswith("_NONE"):
                none = self.made(ast.Constant(None))
                is_not = name.endswith("NOT_NONE")
                test = self.made(ast.Compare(test, [ast.IsNot() if is_not else ast.Is()], [none]))
            if self.moves(at.argval, following):
                if not self.simple(test):
                    self.stack.append(test)
                    self.flush(names=True)
                    test = self.stack.pop()
                self.spill(at.argval, following)
            self.branch(test, name.endswith(("_TRUE", "_NONE")), at.argval, following)
            for each in self.node.successors:
                self.enter(each, self.stack)
            return True
        if name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            self.end(at.argval)
            return True
        raise Unknown(_WORDS.get(name, f"the instruction {name}"), self.place)

    def enter(self, offset: int, stack: list[ast.expr]) -> None:
        if not _alike(self.entries.setdefault(offset, tuple(stack)), tuple(stack)):
            raise Unknown("the stack is not the same on all ways to here", self.place)

    def branch(self, test: ast.expr, jumps_if: bool, target: int, following: int) -> None:
        self.node.test = test
        self.node.successors = (target, following) if jumps_if else (following, target)

    def leave(self, at: dis.Instruction) -> bool:
        match at.opname:
            case "RETURN_VALUE":
                self.emit(ast.Return(self.pop()))
            case "RETURN_CONST":
                self.emit(ast.Return(self.constant(at.argval)))
            case "RAISE_VARARGS":
                parts = self.pops(at.arg or 0)
                self.emit(ast.Raise(*parts))
            case _:
                return False
        return True

    def end(self, successor: int) -> None:
        self.spill(successor)
        self.node.successors = (successor,)
        self.enter(successor, self.stack)

    def moves(self, *successors: int) -> list[tuple[int, str]]:
        """The slots of the stack that are not yet in the variables the successors expect them in."""
        known = next((self.entries[each] for each in successors if each in self.entries), ())
        found = []
        for slot, item in enumerate(self.stack):
            if isinstance(item, SETTLED):
                continue
            name = item.id if isinstance(item, ast.Name) and item.id[:2] == "$s" else f"$s{self.node.offset}.{slot}"
            expected = known[slot] if slot < len(known) else None
            wanted = expected.id if isinstance(expected, ast.Name) else name
            if not (isinstance(item, ast.Name) and item.id == wanted):
                found.append((slot, wanted))
        return found

    def spill(self, *successors: int) -> None:
        """Give every slot of the stack its variable."""
        moved = self.moves(*successors)
        values = [self.plain(self.stack[slot]) for slot, _ in moved]
        read = {n.id for each in values for n in ast.walk(each) if isinstance(n, ast.Name)}
        targets: list[ast.expr] = [self.made(ast.Name(name, ast.Store())) for _, name in moved]
        if len(moved) > 1 and read & {name for _, name in moved}:
            self.emit(
                ast.Assign([self.made(ast.Tuple(targets, ast.Store()))], self.made(ast.Tuple(values, ast.Load())))
            )
        else:
            for target, value in zip(targets, values, strict=True):
                self.emit(ast.Assign([target], value))
        for (slot, _), target in zip(moved, targets, strict=True):
            self.stack[slot] = load(target)

    # ---- an instruction ---------------------------------------------------------------------------------------------

    def step(self, at: dis.Instruction, ahead: list[dis.Instruction]) -> None:
        name, value, count = at.opname, at.argval, at.arg or 0
        match name:
            case "LOAD_FAST" | "LOAD_FAST_BORROW" if (
                value == ".0"
            ):  # the iterator a comprehension's function is called with
                self.push(Iterating(self.made(ast.Name(value, ast.Load()))))
            case "LOAD_FAST" | "LOAD_FAST_CHECK" | "LOAD_DEREF" | "LOAD_NAME" | "LOAD_FAST_BORROW":
                self.push(ast.Name(value, ast.Load()))
            case "LOAD_CLOSURE":
                self.push(ast.Name(value, ast.Load()))
            case "LOAD_FAST_LOAD_FAST" | "LOAD_FAST_BORROW_LOAD_FAST_BORROW":
                for each in value:
                    self.push(ast.Name(each, ast.Load()))
            case "STORE_FAST_LOAD_FAST":
                self.store(self.made(ast.Name(value[0], ast.Store())))
                self.push(ast.Name(value[1], ast.Load()))
            case "STORE_FAST_STORE_FAST":
                for each in value:
                    self.store(self.made(ast.Name(each, ast.Store())))
            case "LOAD_FAST_AND_CLEAR" | "RETURN_GENERATOR":
                self.push(Kept())
            case "LOAD_GLOBAL":
                if count & 1 and sys.version_info < (3, 13):
                    self.push(Null())
                self.push(ast.Name(value, ast.Load()))
                if count & 1 and sys.version_info >= (3, 13):
                    self.push(Null())
            case "LOAD_ASSERTION_ERROR":
                self.push(ast.Name("AssertionError", ast.Load()))
                self.stack[-1].is_assertion = True  # type: ignore[attr-defined]
            case "LOAD_COMMON_CONSTANT":
                if count >= len(_COMMON):
                    self.stack.append(self.constant(_COMMON_VALUES[count - len(_COMMON)]))
                    return
                self.push(ast.Name(_COMMON[count], ast.Load()))
                self.stack[-1].is_assertion = count == 0  # type: ignore[attr-defined]
            case "LOAD_CONST" | "LOAD_SMALL_INT":
                self.stack.append(self.constant(value))
            case "PUSH_NULL":
                self.push(Null())
            case "LOAD_ATTR" | "LOAD_METHOD":
                method = name == "LOAD_METHOD" or (sys.version_info >= (3, 12) and count & 1)
                attribute = self.made(ast.Attribute(self.pop(), value, ast.Load()))
                both: list[ast.expr] = [attribute, Null()] if method else [attribute]
                self.stack += both
            case "BINARY_OP":
                right, left = self.pop(), self.pop()
                symbol = at.argrepr
                if symbol == "[]":
                    self.push(ast.Subscript(left, right, ast.Load()))
                    return
                operator = _BINARY[symbol.removesuffix("=")]()
                if symbol.endswith("="):
                    self.in_place(left, operator, right, ahead)
                else:
                    self.push(ast.BinOp(left, operator, right))
            case "UNARY_POSITIVE" | "UNARY_NEGATIVE" | "UNARY_NOT" | "UNARY_INVERT":
                self.push(ast.UnaryOp(_UNARY[name](), self.pop()))
            case "COMPARE_OP":
                right, left = self.pop(), self.pop()
                symbol = str(value).removeprefix("bool(").removesuffix(")")
                self.push(ast.Compare(left, [_COMPARE[symbol]()], [right]))
            case "IS_OP" | "CONTAINS_OP":
                right, left = self.pop(), self.pop()
                kinds: tuple[type[ast.cmpop], type[ast.cmpop]]
                kinds = (ast.Is, ast.IsNot) if name == "IS_OP" else (ast.In, ast.NotIn)
                self.push(ast.Compare(left, [kinds[count]()], [right]))
            case "BINARY_SUBSCR":
                index, owner = self.pop(), self.pop()
                self.push(ast.Subscript(owner, index, ast.Load()))
            case "BUILD_SLICE":
                self.push(self.slice(self.pops(count)))
            case "BINARY_SLICE":
                bounds = self.slice(self.pops(2))
                self.push(ast.Subscript(self.pop(), bounds, ast.Load()))
            case "STORE_SLICE":
                bounds = self.slice(self.pops(2))
                self.store(self.made(ast.Subscript(self.pop(), bounds, ast.Store())))
            case "STORE_SUBSCR":
                index, owner = self.pop(), self.pop()
                self.store(self.made(ast.Subscript(owner, index, ast.Store())))
            case "STORE_ATTR":
                self.store(self.made(ast.Attribute(self.pop(), value, ast.Store())))
            case "STORE_FAST" | "STORE_DEREF" | "STORE_NAME":
                self.store(self.made(ast.Name(value, ast.Store())))
            case "STORE_GLOBAL":
                self.emit(ast.Global([value]))
                self.store(self.made(ast.Name(value, ast.Store())))
            case "DELETE_FAST" | "DELETE_DEREF":
                self.flush()
                self.emit(ast.Delete([self.made(ast.Name(value, ast.Del()))]))
            case "DELETE_SUBSCR":
                index, owner = self.pop(), self.pop()
                self.flush()
                self.emit(ast.Delete([self.made(ast.Subscript(owner, index, ast.Del()))]))
            case "BUILD_TUPLE":
                self.push(ast.Tuple(self.pops(count), ast.Load()))
            case "BUILD_LIST":
                self.push(ast.List(self.pops(count), ast.Load()))
            case "BUILD_SET":
                self.push(ast.Set(self.pops(count)))
            case "BUILD_MAP":
                items = self.pops(2 * count)
                self.push(ast.Dict(list(items[::2]), items[1::2]))
            case "BUILD_CONST_KEY_MAP":
                keys = self.pop()
                self.push(ast.Dict(list(items_of(keys)), self.pops(count)))
            case "LIST_EXTEND" | "SET_UPDATE":
                more = self.pop()
                holder = self.stack[-count]
                if isinstance(holder, ast.List | ast.Set):
                    holder.elts += items_of(more) or [self.made(ast.Starred(more, ast.Load()))]
                else:
                    self.added(count, more, "extend" if name == "LIST_EXTEND" else "update")
            case "DICT_MERGE" | "DICT_UPDATE":
                more, mapping = self.pop(), self.stack[-count]
                if not isinstance(mapping, ast.Dict):
                    raise Unknown("a starred item after a conditional one", self.place)
                mapping.keys.append(None)
                mapping.values.append(more)
            case "LIST_APPEND" | "SET_ADD":
                element = self.pop()
                self.added(count, element, "append" if name == "LIST_APPEND" else "add")
            case "MAP_ADD":
                element, key = self.pop(), self.pop()
                held = self.stack[-count]
                self.emit(ast.Assign([self.made(ast.Subscript(held, key, ast.Store()))], element))
            case "YIELD_VALUE":
                self.emit(ast.Expr(self.made(ast.Yield(self.pop()))))
                self.push(ast.Constant(None))
            case "GET_YIELD_FROM_ITER":
                iterated = self.pop()
                self.flush()
                self.push(ast.YieldFrom(iterated))
            case "LIST_TO_TUPLE":
                self.as_tuple()
            case "CALL_INTRINSIC_1" if count == 6:
                self.as_tuple()
            case "CALL_INTRINSIC_1" if count == 5:
                self.push(ast.UnaryOp(ast.UAdd(), self.pop()))
            case "KW_NAMES":
                self.keywords = self.code.co_consts[count]
            case "CALL":
                self.call(count)
            case "CALL_KW":
                self.keywords = tuple(
                    str(each.value) for each in items_of(self.pop()) if isinstance(each, ast.Constant)
                )
                self.call(count)
            case "CALL_FUNCTION_EX":
                self.call_starred(bool(count & 1) if sys.version_info < (3, 14) else self.has_keywords())
            case "GET_ITER":
                if not isinstance(self.stack[-1], Iterating):  # as what a generator's function is called with
                    self.push(Iterating(self.pop()))
                self.stack += [Null()] * (_OF_ITERATOR - 1)
                self.node.begins = True
            case "POP_TOP":
                self.discard(self.stack.pop())
            case "POP_ITER":
                for _ in range(_OF_ITERATOR):
                    self.discard(self.stack.pop())
            case "END_FOR":
                del self.stack[-2 if sys.version_info < (3, 13) else -1 :]
            case "COPY":
                self.copy(count)
            case "SWAP":
                self.swap(count, ahead)
            case "UNPACK_SEQUENCE" | "UNPACK_EX":
                self.unpack(count if name == "UNPACK_SEQUENCE" else None, count)
            case "FORMAT_VALUE":
                spec = self.pop() if count & 4 else None
                self.format({0: -1, 1: 115, 2: 114, 3: 97}[count & 3], spec)
            case "CONVERT_VALUE":
                self.push(ast.FormattedValue(self.pop(), {0: -1, 1: 115, 2: 114, 3: 97}[count], None))
            case "FORMAT_SIMPLE":
                self.format(-1, None)
            case "FORMAT_WITH_SPEC":
                self.format(-1, self.pop())
            case "BUILD_STRING":
                self.push(ast.JoinedStr([part for each in self.pops(count) for part in parts_of(each)]))
            case "MAKE_FUNCTION":
                self.function(count)
            case "SET_FUNCTION_ATTRIBUTE":
                made = self.stack.pop()
                self.attach(made, self.pop(), count)
                self.stack.append(made)
            case "BEFORE_WITH":
                manager = self.pop()
                if not is_kept(ast.withitem(manager, None)):  # of others it is not enough to know where bodies end
                    raise Unknown(
                        f"a `with` statement of `{name_of(ast.withitem(manager, None))}` in bytecode", self.place
                    )
                self.flush()
                self.emit(EnterWith(manager))
                own: list[ast.expr] = [Null()] if sys.version_info >= (3, 14) else []
                self.stack += [Leaving(), *own, Entered()]
            case "IMPORT_NAME":
                listed, level = self.pop(), self.pop()
                imported = Imported()
                imported.module, imported.name = value, None
                imported.level = level.value if isinstance(level, ast.Constant) and isinstance(level.value, int) else 0
                imported.listed = isinstance(listed, ast.Tuple)
                self.push(imported)
            case "IMPORT_FROM":
                whole = self.stack[-1]
                if not isinstance(whole, Imported) or not whole.listed:
                    raise Unknown("an import of a submodule by another name", self.place)
                part = Imported()
                part.module, part.level, part.listed, part.name = whole.module, whole.level, True, value
                self.push(part)
            case _:
                raise Unknown(_WORDS.get(name, f"the instruction {name}"), self.place)
