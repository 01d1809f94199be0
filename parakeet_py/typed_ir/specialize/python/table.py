"""The table of Python's builtins: what each does with abstract values. The modules that know them fill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parakeet_py.base.lazy_modules import LateTable
from parakeet_py.typed_ir.specialize.values import Value

BUILTINS: LateTable[Any, Callable[..., Value]] = LateTable()


def builtin(*targets: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Enters the decorated function as what these do."""

    def register(handler: Callable[..., Value]) -> Callable[..., Value]:
        for target in targets:
            BUILTINS[target] = handler
        return handler

    return register
