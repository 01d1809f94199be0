"""What NumPy gives on AArch64 and not on x86-64, because it is what the processor's instructions give.

`FMINNM` and the like take -0.0 to be below 0.0; NumPy's loops over float32 and float64 consist of them, also where they
reduce. (In half precision NumPy compares, as everywhere.) `FCVTZS` and `FCVTZU` give the nearest integer there is, and
0 for NaN. C converts to the narrower integers through a word of 32 bits of the same signedness, of which the lower bits
are taken. Where NumPy's loops are over memory without gaps, compilers have made some of these conversions signed, or
from float64 through 64 bits, for as many elements as fill vectors: there is no one result, and what is given is what
NumPy gives for single numbers, remainders and strided memory.
"""

from __future__ import annotations

from parakeet_py.base.types import is_unsigned, itemsize
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, SUFFIX, FunctionText

_EXTREMUM = {"minimum": "minimum", "maximum": "maximum", "fmin": "minimumnum", "fmax": "maximumnum"}


def extremum(f: FunctionText, name: str, kind: str, left: str, right: str) -> str:
    """`minimum`, `maximum`, `fmin` or `fmax` of floats or doubles."""
    return f.intrinsic(_EXTREMUM[name], kind, left, right)


def to_integer(f: FunctionText, value: str, kind: str, target: str) -> str:
    """A float or double as an integer of dtype `target`."""
    word = "i64" if itemsize(target) == 8 else "i32"
    operation = f"llvm.fpto{'u' if is_unsigned(target) else 's'}i.sat.{word}.{SUFFIX[kind]}"
    nearest = f.value(f"call {word} {f.module.declare(word, operation, kind, '')}({kind} {value})")
    wanted = LLVM_TYPE[target]
    return nearest if wanted == word else f.value(f"trunc {word} {nearest} to {wanted}")
