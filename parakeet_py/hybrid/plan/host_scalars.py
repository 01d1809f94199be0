"""Elementary functions of single numbers in host parts: the code that compiled functions have for them.

Compiled functions have approximations of their own, which may differ from NumPy's in the last place. So that a call
gives the same numbers wherever it runs, the host part of a plan does not ask NumPy for them: each function is compiled
for each dtype when it is first needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from parakeet_py.base.config import Config
from parakeet_py.base.types import Scalar
from parakeet_py.hybrid.plan.host_parts import HostPart
from parakeet_py.typed_ir.ir import Function, Var
from parakeet_py.typed_ir.writer import Writer


def elementary(name: str, args: Sequence[Any]) -> Any:
    """The value of a primitive for NumPy scalars of one dtype."""
    return _compiled(name, args[0].dtype.name, len(args))(args, 1)[0]


@lru_cache(maxsize=256)
def _compiled(name: str, dtype: str, count: int) -> HostPart:
    kind = Scalar(dtype)
    params = tuple(Var("x", kind) for _ in range(count))
    w = Writer()
    result = w.prim(name, *params, type_=kind)
    return HostPart(Function(name, params, w.block(result)), Config())
