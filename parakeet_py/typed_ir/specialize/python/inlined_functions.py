"""Which functions a call inlines: those with source that nothing else is known of."""

from __future__ import annotations

import types
from typing import Any

from parakeet_py.base.errors import NoSourceError, UnsupportedError
from parakeet_py.frontend import ssa, to_ssa_cached
from parakeet_py.frontend.evaluate.frames import reads_its_frame
from parakeet_py.library import registry
from parakeet_py.typed_ir.specialize.intrinsics.words import HANDLERS
from parakeet_py.typed_ir.specialize.python.table import BUILTINS


def is_accelerated(target: Any) -> bool:
    """Is this what `accelerate` gives?"""
    return type(target).__module__.startswith("parakeet_py")


def looked_into(target: Any) -> tuple[ssa.Function, types.FunctionType] | None:
    """The function that the specializer would inline in a call of `target` (as `known_calls` decides)."""
    function = target.__func__ if isinstance(target, types.MethodType) else target
    if is_accelerated(function):
        function = getattr(function, "__wrapped__", None)
    if not isinstance(function, types.FunctionType):
        return None
    if HANDLERS.find(id(target)) or registry.is_static(target) or BUILTINS.find(target):
        return None
    if registry.function_for(target) is not None:
        return None
    try:
        untyped = to_ssa_cached(function)
    except (UnsupportedError, NoSourceError):
        return None
    return None if untyped.generator or reads_its_frame(untyped) else (untyped, function)
