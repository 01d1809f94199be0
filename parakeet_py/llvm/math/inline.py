"""Elementary functions where there is no C library (on a GPU): functions of the module itself.

    define internal double @pk_math_exp_f64(double %x)        called where an element's exp is needed

They are the kernels of the vector math library in their scalar form, and kernels of all else that a CPU has from its C
library. Arithmetic of float32 is float32 throughout, since most GPUs are slow with doubles. Rare arguments are put
right behind branches: threads with ordinary ones do not wait for them. LLVM inlines what is called once.
"""

from __future__ import annotations

from functools import partial

from parakeet_py.llvm.codegen.builder import LLVM_TYPE, PURE, FunctionText
from parakeet_py.llvm.math import gamma, hyperbolic, inverse, powers
from parakeet_py.llvm.math.forms import define
from parakeet_py.llvm.math.kernels import KERNELS, Kernel, cos, sin, tan
from parakeet_py.llvm.math.names import symbol
from parakeet_py.llvm.math.payne_hanek import reduce_all

FUNCTIONS: dict[str, tuple[Kernel, int]] = {
    **KERNELS,
    "sin": (partial(sin, reduction=reduce_all), 1),
    "cos": (partial(cos, reduction=reduce_all), 1),
    "tan": (partial(tan, reduction=reduce_all), 1),
    "expm1": (hyperbolic.expm1, 1),
    "log1p": (hyperbolic.log1p, 1),
    "sinh": (hyperbolic.sinh, 1),
    "cosh": (hyperbolic.cosh, 1),
    "asinh": (hyperbolic.asinh, 1),
    "acosh": (hyperbolic.acosh, 1),
    "atanh": (hyperbolic.atanh, 1),
    "asin": (inverse.asin, 1),
    "acos": (inverse.acos, 1),
    "atan2": (inverse.atan2, 2),
    "cbrt": (powers.cbrt, 1),
    "pow": (powers.pow, 2),
    "hypot": (powers.hypot, 2),
    "fmod": (powers.fmod, 2),
    "erfc": (gamma.erfc, 1),
    "gamma": (gamma.gamma, 1),
    "lgamma": (gamma.lgamma, 1),
}


def call(f: FunctionText, name: str, dtype: str, arguments: list[str]) -> str:
    """Call function `name` of float32 or float64 values; its first call defines it."""
    kind, function = LLVM_TYPE[dtype], symbol(name, dtype)
    if f.module.is_new(function):
        kernel, arity = FUNCTIONS[name]
        define(f.module, function, kernel, arity, dtype, part=kind, linkage="internal ", attributes=PURE)
    passed = ", ".join(f"{kind} {argument}" for argument in arguments)
    return f.value(f"call {kind} @{function}({passed})")
