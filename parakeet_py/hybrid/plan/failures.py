"""Exceptions of failed checks, from what machine code of the CPU, kernels and host parts leave of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.frames.tracebacks import placed
from parakeet_py.imp import ir as imp
from parakeet_py.typed_ir.interpret import format_failure
from parakeet_py.typed_ir.ir import dtype_of
from parakeet_py.typed_ir.places import entries


def exception_of(function: imp.Function, bodies: Sequence[imp.Block], code: int, args: Any) -> Exception:
    """The exception of a failed check, which stands in one of these bodies; its arguments are values of the host part,
    or words as machine code leaves them."""
    checks = (one for body in bodies for one in imp.walk(body) if isinstance(one, imp.Check) and one.failure == code)
    check = next(checks, None)
    kinds = () if check is None else [dtype_of(arg) for arg in check.args]
    values: list[Any] = []
    for value, kind in zip(args, kinds, strict=False):
        if not kind.startswith("float"):
            values.append(np.int64(value))
        else:
            words = isinstance(args, np.ndarray)
            values.append(np.int64(value).view(np.float64) if words else np.float64(value))
    site = function.failures[code]
    return format_failure(site.failure, values).with_traceback(placed(entries(site.pos)))
