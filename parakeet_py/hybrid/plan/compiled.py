"""What plans for devices read of a compiled specialization: a protocol that `Compiled` of the call layer fulfils."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Protocol

from parakeet_py.base.config import Config
from parakeet_py.signature.results import Result
from parakeet_py.typed_ir.ir import Function


class Specialized(Protocol):
    """What is known of the typed function."""

    @property
    def stored_params(self) -> frozenset[int]: ...

    @property
    def result(self) -> Result: ...


class Compiled(Protocol):
    """One specialization: its typed IR after and before fusion, and the settings that it was compiled with."""

    @property
    def config(self) -> Config: ...

    @property
    def function(self) -> FunctionType | Any: ...

    @property
    def typed(self) -> Function: ...

    @property
    def unfused(self) -> Function: ...

    @property
    def specialization(self) -> Specialized: ...
