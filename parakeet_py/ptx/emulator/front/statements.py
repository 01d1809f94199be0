"""The body of a function: declarations, labels, scopes and instructions.

Registers are resolved here: `%r<9>` declares nine names at once, and an inner scope hides the outer one's names. A
`.param` variable declared in a body, and the parameters of a device function, are values and not memory: they become
registers (`bytes:N` for an aggregate), which is what makes calls cheap and recursion free of trouble. Parameters of a
kernel stay names in the param space.
"""

from __future__ import annotations

import re
from dataclasses import replace

from parakeet_py.ptx.emulator.checks.errors import PtxSyntaxError
from parakeet_py.ptx.emulator.front.declarations import read_prototype, read_variables
from parakeet_py.ptx.emulator.front.ir import (
    Address,
    Call,
    Coordinates,
    Function,
    Guard,
    Immediate,
    Instruction,
    ModuleText,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE
from parakeet_py.ptx.emulator.front.tokens import TokenStream, integer_of, number_of

_SPECIAL = re.compile(
    r"WARP_SZ$|%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi|clock64|globaltimer"
    r"|globaltimer_lo|globaltimer_hi|lanemask_(eq|le|lt|ge|gt)|(total|dynamic|aggr)_smem_size|is_explicit_cluster"
    r"|n?clusterid|cluster_n?cta(id|rank)|envreg\d+|pm\d+(_64)?|reserved_smem_offset_\w+)$"
)
_NUMBERED = re.compile(r"%(envreg|pm|reserved_smem_offset_)\d*\w*$")
_NUMBERED = re.compile(r"(.*?)(\d+)$")


class _Scope:
    """Names of one `{ }`: single registers, numbered families, parameter and memory variables."""

    __slots__ = ("families", "registers", "variables")

    def __init__(self) -> None:
        self.registers: dict[str, Register] = {}
        self.families: dict[str, tuple[int, str]] = {}
        self.variables: dict[str, str] = {}


class BodyReader:
    """Reads one function's body into its `Function`."""

    def __init__(self, module: ModuleText, function: Function, stream: TokenStream) -> None:
        self.module = module
        self.function = function
        self.stream = stream
        self.scopes = [_Scope()]
        if not function.entry:
            function.results = tuple(self._formal(v) for v in function.results)
            function.parameters = tuple(self._formal(v) for v in function.parameters)

    def _formal(self, variable: Variable) -> Variable:
        return replace(variable, register=self._value_variable(variable))

    def _new_register(self, name: str, ptx_type: str) -> Register:
        register = Register(len(self.function.registers), name, ptx_type)
        self.function.registers.append(register)
        self.scopes[-1].registers[name] = register
        return register

    def _value_variable(self, variable: Variable) -> Register:
        ptx_type = f"bytes:{variable.size}" if variable.array else variable.type
        register = self._new_register(variable.name, ptx_type)
        self.function.value_registers.add(register.number)
        return register

    def read(self) -> None:
        """Read from the opening to the closing brace."""
        stream = self.stream
        stream.expect("{")
        while True:
            kind, text = stream.kind, stream.text
            if text == "}":
                stream.take()
                self.scopes.pop()
                if not self.scopes:
                    break
            elif text == "{":
                stream.take()
                self.scopes.append(_Scope())
            elif kind == "name" and stream.peek().text == ":":
                self._label()
            elif kind == "header" or text == ";":
                stream.take()
            elif text == ".pragma":
                stream.skip_past(";")
            elif kind == "modifier":
                self._declaration()
            else:
                self.function.body.append(self._instruction())
        self._check_labels()

    def _check_labels(self) -> None:
        function = self.function
        for instruction in function.body:
            if instruction.opcode == "bra":
                target = instruction.operands[0] if instruction.operands else None
                if not isinstance(target, Symbol) or target.name not in function.labels:
                    raise PtxSyntaxError(
                        "branch to a label that does not exist",
                        instruction.line,
                        self.module.source(instruction.line),
                    )

    def _label(self) -> None:
        stream = self.stream
        name = stream.name()
        stream.expect(":")
        if stream.text == ".callprototype":
            stream.take()
            self.function.prototypes[name] = read_prototype(stream)
        elif stream.text in (".branchtargets", ".calltargets"):
            table = self.function.branch_targets if stream.take().text == ".branchtargets" else None
            names = [stream.name()]
            while stream.accept(","):
                names.append(stream.name())
            stream.expect(";")
            (self.function.call_targets if table is None else table)[name] = tuple(names)
        else:
            if name in self.function.labels:
                raise stream.error(f"label {name} is defined twice")
            self.function.labels[name] = len(self.function.body)

    def _declaration(self) -> None:
        stream = self.stream
        if stream.text == ".reg":
            self._registers()
            return
        if stream.text not in (".local", ".shared", ".param", ".global", ".const"):
            raise stream.unsupported(f"directive {stream.text}")
        for variable in read_variables(stream):
            if variable.space == "param":
                self._value_variable(variable)
                continue
            # The same name may be declared in several scopes of a function, and they are different variables.
            unique = variable.name
            while unique in self.function.variables or unique in self.module.variables:
                unique += "'"
            self.scopes[-1].variables[variable.name] = unique
            self.function.variables[unique] = replace(variable, name=unique)

    def _registers(self) -> None:
        stream = self.stream
        stream.take()
        ptx_type = stream.take().text[1:]
        if ptx_type not in KIND_OF_TYPE:
            raise stream.unsupported(f"registers of type .{ptx_type}")
        scope = self.scopes[-1]
        while True:
            name = stream.name()
            if stream.accept("<"):
                scope.families[name] = (integer_of(stream.take()), ptx_type)
                stream.expect(">")
            else:
                self._new_register(name, ptx_type)
            if not stream.accept(","):
                break
        stream.expect(";")

    def _lookup(self, name: str) -> Register | Symbol | None:
        for scope in reversed(self.scopes):
            register = scope.registers.get(name)
            if register is not None:
                return register
            unique = scope.variables.get(name)
            if unique is not None:
                return Symbol(unique)
            if scope.families and (match := _NUMBERED.match(name)):
                # `%r1<5>` declares %r10 … %r14: every split of the digits is a possible family.
                for cut in range(len(match[1]), len(name)):
                    family = scope.families.get(name[:cut])
                    digits = name[cut:]
                    if family is not None and digits == str(int(digits)) and int(digits) < family[0]:
                        register = Register(len(self.function.registers), name, family[1])
                        self.function.registers.append(register)
                        scope.registers[name] = register
                        return register
        return None

    def _instruction(self) -> Instruction:
        stream = self.stream
        guard = None
        if stream.accept("@"):
            negated = stream.accept("!")
            register = self._lookup(stream.name())
            if not isinstance(register, Register) or register.type != "pred":
                raise stream.error("the guard is not a declared predicate")
            guard = Guard(register, negated)
        line = stream.line
        opcode = stream.name()
        modifiers: list[str] = []
        while stream.kind == "modifier":
            modifiers.append(stream.take().text[1:])
        if opcode == "call":
            return Instruction(line, opcode, tuple(modifiers), (), guard, self._call())
        operands: list[Operand] = []
        while not stream.accept(";"):
            operands.append(self._operand())
            if not stream.accept(","):
                stream.expect(";")
                break
        return Instruction(line, opcode, tuple(modifiers), tuple(operands), guard)

    def _call(self) -> Call:
        stream = self.stream
        results: tuple[Operand, ...] = ()
        arguments: tuple[Operand, ...] = ()
        prototype = None
        if stream.text == "(":
            results = self._list()
            stream.expect(",")
        target = self._operand()
        if stream.accept(","):
            if stream.text == "(":
                arguments = self._list()
            else:
                prototype = stream.name()
            if stream.accept(","):
                prototype = stream.name()
        stream.expect(";")
        return Call(results, target, arguments, prototype)

    def _list(self) -> tuple[Operand, ...]:
        stream = self.stream
        stream.expect("(")
        found: list[Operand] = []
        while not stream.accept(")"):
            found.append(self._operand())
            stream.accept(",")
        return tuple(found)

    def _operand(self) -> Operand:
        stream = self.stream
        kind, text = stream.kind, stream.text
        if kind == "name":
            first = self._named()
            if stream.text == "|":
                stream.take()
                return Pair(first, self._named())
            return first
        if kind == "number" or text == "-":
            return self._number()
        if text == "[":
            return self._address()
        if text == "{":
            stream.take()
            items: list[Operand] = []
            while not stream.accept("}"):
                items.append(self._operand())
                stream.accept(",")
            return Vector(tuple(items))
        if text == "!":
            stream.take()
            register = self._named()
            if not isinstance(register, Register):
                raise stream.error("'!' needs a predicate register")
            return Not(register)
        raise stream.error(f"expected an operand before {text!r}")

    def _number(self) -> Immediate:
        stream = self.stream
        negative = stream.accept("-")
        value = number_of(stream.take())
        if not negative:
            return value
        if value.float_bits:
            return Immediate(value.value ^ (1 << (value.float_bits - 1)), value.float_bits)
        return Immediate(-value.value)

    def _named(self) -> Register | Special | Symbol | Sink:
        stream = self.stream
        name = stream.name()
        if name == "_":
            return Sink()
        found = self._lookup(name)
        if found is None:
            if _SPECIAL.match(name):
                component = stream.take().text[1:] if stream.kind == "modifier" else ""
                return Special(name, component)
            if name.startswith("%"):
                raise stream.error(f"register {name} is not declared")
            found = Symbol(name)
        elif isinstance(found, Register) and stream.kind == "modifier":
            raise stream.unsupported(f"component {stream.text} of a vector register")
        if isinstance(found, Symbol) and stream.text in ("+", "-"):
            sign = -1 if stream.take().text == "-" else 1
            if stream.accept("-"):
                sign = -sign
            return Symbol(found.name, sign * integer_of(stream.take()))
        return found

    def _address(self) -> Address | Coordinates:
        stream = self.stream
        stream.expect("[")
        base: Register | Symbol | Immediate | Special
        offset = 0
        if stream.kind == "name":
            named = self._named()
            if isinstance(named, Sink):
                raise stream.error("'_' is not an address")
            base = named
            if isinstance(named, Symbol):
                base, offset = Symbol(named.name), named.offset
        else:
            base = self._number()
        while stream.text in ("+", "-"):
            sign = -1 if stream.take().text == "-" else 1
            if stream.accept("-"):
                sign = -sign
            offset += sign * integer_of(stream.take())
        if stream.accept(","):
            at = self._operand()
            if not isinstance(at, Vector):
                raise stream.error("coordinates in braces were expected")
            stream.expect("]")
            return Coordinates(Address(base, offset), at)
        stream.expect("]")
        return Address(base, offset)
