"""The ways to run a program: plain Python, the interpreters of the IRs, native code on one and on two threads, and
machine code that checks what it does to memory.

A program is accelerated once; all backends share the specializations of that one object, as a user's calls would. The
package is imported where it is needed, so that a missing stage fails the tests of that stage and no others.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tests.corpus import Case, Outcome, Program, outcome

_accelerated: dict[Callable[..., Any], Any] = {}


def accelerated(function: Callable[..., Any]) -> Any:
    """The function behind the decorator, made once (and again if it has fallen back to Python for another input)."""
    from parakeet_py import accelerate
    from parakeet_py.call.dispatch import compiling

    compiling.LONGEST_EVALUATIONS = float("inf")  # what is compiled does not depend on how fast the machine is
    known = _accelerated.get(function)
    if known is None or known.fell_back:
        known = _accelerated[function] = accelerate(function)
    return known


def forget_accelerated() -> None:
    """Nothing of the programs that have been run is needed any more."""
    _accelerated.clear()


def has_fallen_back(backend: str, function: Callable[..., Any]) -> bool:
    """Whether the object of the last run has fallen back to Python (the next run gets a fresh one then)."""
    from parakeet_py import options

    with options(check=_level(backend == "checked")):
        return bool(_accelerated[function].fell_back)


def run_python(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def run_untyped_ir(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from parakeet_py.frontend import to_ssa
    from parakeet_py.frontend.evaluate.evaluator import evaluate

    assert isinstance(function, FunctionType)
    return evaluate(to_ssa(function), function)(*args, **kwargs)


def run_typed_ir(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from parakeet_py.call import interpreters

    return interpreters.run_typed(accelerated(function), args)


def run_imp(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from parakeet_py.call import interpreters

    return interpreters.run_imp(accelerated(function), args)


def _level(checked: bool) -> int:
    """How much is checked: the IRs, and the machine code, too, if it is `checked` or the environment says so."""
    from parakeet_py.base.config import environment

    return max(environment().check, 2 if checked else 1)


def run_native(threads: int, checked: bool = False, tiers: bool = False) -> Callable[..., Any]:
    def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from parakeet_py import options

        with options(threads=threads, check=_level(checked), tiers=tiers):
            callable_ = accelerated(function)
            if not (tiers or checked) and _is_optimized(function):
                with contextlib.suppress(Exception):  # the call itself shows what is wrong
                    callable_.compile(*args, **kwargs)  # optimised code takes the place of what was made quickly
            return callable_(*args, **kwargs)

    return run


def _is_optimized(function: Callable[..., Any]) -> bool:
    """Whether a program is of the share that is compiled again, optimised, where it was compiled quickly."""
    name = f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    return os.environ.get("PARAKEET_TEST_OPTIMIZED") == "all" or zlib.crc32(name.encode()) % 4 == 0


def run_emulated(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from parakeet_py import options

    with options(devices="emulated", check=_level(False)):
        return accelerated(function)(*args, **kwargs)


BACKENDS: dict[str, Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = {
    "python": run_python,
    "untyped_ir": run_untyped_ir,
    "typed_ir": run_typed_ir,
    "imp": run_imp,
    "native-1": run_native(1, tiers=True),  # what is made quickly, where it may be
    "native-2": run_native(2),  # and optimised: a share of the programs, or all with `PARAKEET_TEST_OPTIMIZED=all`
    "checked": run_native(2, checked=True),
    "emulated": run_emulated,
}

INTERPRETERS = ("untyped_ir", "typed_ir", "imp")


def run(backend: str, program: Program, case: Case) -> Outcome:
    """What this backend does with fresh arguments of the case."""
    args, kwargs = case.make()
    return outcome(lambda *a, **k: BACKENDS[backend](program.function, a, k), args, kwargs)
