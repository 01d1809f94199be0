"""What PARAKEET_DEBUG and PARAKEET_PRINT show: messages of the "parakeet_py" logger, on stderr if nobody else listens.

1   decisions: what was compiled for which types, what is handed back to Python, what falls back
2   and the typed IR and Imp of every specialization
3   and the LLVM IR
4   and the seconds of every stage
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parakeet_py.compile import Compiled

log = logging.getLogger("parakeet_py")


def listen() -> None:
    """Make sure that messages are seen: give the logger a handler unless it, or the root, has one."""
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("parakeet_py: %(message)s"))
        log.addHandler(handler)
    if log.getEffectiveLevel() > logging.INFO:
        log.setLevel(logging.INFO)


def tell_compiled(compiled: Compiled, level: int) -> None:
    """Say what has been compiled, in as much detail as the debug level asks for."""
    from parakeet_py.explain import describe_spec
    from parakeet_py.imp.print import format_function as imp_text
    from parakeet_py.typed_ir.print_ir import format_function as typed_text

    listen()
    name = compiled.function.__qualname__
    specs = ", ".join(describe_spec(spec) for spec in compiled.signature.params)
    log.info("%s(%s): compiled, %d operators after fusion", name, specs, compiled.passes.after.total())
    for site in compiled.specialization.opaque_sites:
        log.info("%s: hands back %s (%s)", name, site.text, site.reason)
    if level >= 2:
        log.info("%s: typed IR\n%s", name, typed_text(compiled.typed))
        log.info("%s: Imp\n%s", name, imp_text(compiled.imp))
    if level >= 3:
        from parakeet_py.compile import generate_llvm

        log.info("%s: LLVM IR\n%s", name, generate_llvm(compiled)[0])
    if level >= 4:
        stages = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in compiled.times.items())
        log.info("%s: %s", name, stages)
