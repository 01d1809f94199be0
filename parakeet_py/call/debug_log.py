"""What the "parakeet_py" logger is given about compiling.

At INFO, one line for each specialization that is compiled, or loaded from the disk cache, and for each signature that
falls back to Python; at DEBUG also what is handed back, and the stages. PARAKEET_DEBUG and PARAKEET_PRINT show more, on
stderr if the logger has no handler:

1   decisions: what was compiled for which types, what is handed back to Python, what fell back
2   and the typed IR and Imp of every specialization
3   and the LLVM IR
4   and the seconds of every stage
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING

from parakeet_py.base.debug_log import listen, log
from parakeet_py.signature.describe import describe_spec

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.signature.specs import Signature, Spec


def named(function: FunctionType, specs: Sequence[Spec]) -> str:
    """A function with the types of its arguments."""
    return f"{function.__qualname__}({', '.join(map(describe_spec, specs))})"


def tell_fallback(function: FunctionType, signature: Signature | None, reason: str) -> None:
    """Say that calls with a signature run in Python."""
    what = function.__qualname__ if signature is None else named(function, signature.params)
    log.info("%s fell back: %s", what, reason.partition("\n")[0])
    log.debug("%s fell back: %s", what, reason)


def tell_loaded(function: FunctionType, signature: Signature, seconds: float, level: int) -> None:
    """Say that a specialization has come from the disk cache."""
    if level:
        listen()
    log.info("%s: loaded from the disk cache in %.1f ms", named(function, signature.params), 1000 * seconds)


def tell_compiled(compiled: Compiled, level: int, checked: bool = False) -> None:
    """Say what has been compiled, in as much detail as the debug level asks for."""
    from parakeet_py.imp.print import format_function as imp_text
    from parakeet_py.typed_ir.print import format_function as typed_text

    if level:
        listen()
    name = compiled.function.__qualname__
    what = named(compiled.function, compiled.signature.params)
    took = 1000 * sum(compiled.times.values())
    log.info("%s: compiled, %d operators after fusion, in %.1f ms", what, compiled.passes.after.total(), took)
    told = logging.INFO if level else logging.DEBUG
    for site in compiled.specialization.opaque_sites:
        log.log(told, "%s: handed back: %s (%s)", name, site.text, site.reason)
    if level >= 2:
        log.info("%s: typed IR\n%s", name, typed_text(compiled.typed))
        log.info("%s: Imp\n%s", name, imp_text(compiled.imp))
    if level >= 3:
        from parakeet_py.call.compile import generate_llvm

        log.info("%s: LLVM IR\n%s", name, generate_llvm(compiled, checked)[0])
    stages = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in compiled.times.items())
    log.log(logging.INFO if level >= 4 else logging.DEBUG, "%s: %s", name, stages)
