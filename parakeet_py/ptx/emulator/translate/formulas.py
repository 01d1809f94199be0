"""Instructions that are one expression of their operands, as a table.

In a formula `{0}`, `{1}`, ... are the operands behind the destination, `{m[0]}`, `{m[1]}` the modifiers that are
chosen, `{T}` the kind of the instruction's type as a dtype, and `{zero}` its zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits

_CLAMP = ("clamp", "wrap")


@dataclass(frozen=True, slots=True)
class Formula:
    """What an instruction gives.

    Attributes
    ----------
    text : the expression
    operands : the kind in which each operand is read; "t" is that of the instruction's type
    result : the kind of the expression
    choices : modifiers of which one each may be there
    """

    text: str
    operands: str
    result: str = "t"
    choices: tuple[tuple[str, ...], ...] = ()


FORMULAS = {
    "rem": Formula("integers.remainder({0}, {1})", "t t"),
    "sad": Formula("{2} + where({0} < {1}, {1} - {0}, {0} - {1})", "t t t"),
    "and": Formula("({0}) & ({1})", "t t"),
    "or": Formula("({0}) | ({1})", "t t"),
    "xor": Formula("({0}) ^ ({1})", "t t"),
    "not": Formula("~({0})", "t"),
    "cnot": Formula("({0} == {zero}).astype({T})", "t"),
    "popc": Formula("integers.popc({0})", "t", "u4"),
    "clz": Formula("integers.clz({0})", "t", "u4"),
    "brev": Formula("integers.brev({0})", "t"),
    "bfind": Formula("integers.bfind({0}, {m[0]!r} == 'shiftamt')", "t", "u4", (("shiftamt",),)),
    "bfe": Formula("integers.bit_field_extract({0}, {1}, {2})", "t u4 u4"),
    "bfi": Formula("integers.bit_field_insert({0}, {1}, {2}, {3})", "t t u4 u4"),
    "bmsk": Formula("integers.bit_mask({0}, {1}, {m[0]!r} == 'clamp')", "u4 u4", "u4", (_CLAMP,)),
    "szext": Formula("integers.sign_or_zero_extend({0}, {1}, {m[0]!r} == 'clamp')", "t u4", "t", (_CLAMP,)),
    "fns": Formula("integers.find_nth_set({0}, {1}, {2})", "u4 u4 i4", "u4"),
    "shf": Formula(
        "integers.funnel_shift({0}, {1}, {2}, {m[0]!r} == 'l', {m[1]!r} == 'clamp')",
        "u4 u4 u4",
        "u4",
        (("l", "r"), _CLAMP),
    ),
    "prmt": Formula(
        "integers.permute_bytes({0}, {1}, {2}, {m[0]!r})",
        "u4 u4 u4",
        "u4",
        (("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"),),
    ),
    "copysign": Formula("np.copysign({1}, floats.quiet({0}))", "t t"),
}


@emits(*FORMULAS)
def _formula(c: Emitter) -> None:
    formula = FORMULAS[c.instruction.opcode]
    chosen = [c.take_any(choices) for choices in formula.choices]
    kind = KIND_OF_TYPE[c.type()]
    kinds = [kind if wanted == "t" else wanted for wanted in formula.operands.split()]
    operands = [c.source(place, wanted) for place, wanted in enumerate(kinds, 1)]
    zero = c.constants.number(0, kind) if "{zero}" in formula.text else ""
    text = formula.text.format(*operands, m=chosen, T=kind.upper(), zero=zero)
    c.write(c.operands[0], text, kind if formula.result == "t" else formula.result)
