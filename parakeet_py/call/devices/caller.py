"""What calls on devices need of the dispatcher of an accelerated function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from parakeet_py.base.config import Config
from parakeet_py.signature.specs import Signature

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.fallback_cache import Refusals
    from parakeet_py.call.load import Knowledge
    from parakeet_py.hybrid.devices.team import Team


class Dispatcher(Protocol):
    """The dispatcher of an accelerated function.

    Attributes
    ----------
    function, options : the Python function, and what the decorator was given
    instance, inner : take calls; `inner` those in positional form, where `instance` does not
    knowledge : what compilations have found out
    repeated : the calls on arrays of devices that may come again (`call_cache`)
    left : the calls that teams leave to the CPU
    recorded : the calls that are done from schedules (`recorded_calls`)
    raw : a call in progress that was not made in positional form: that form, and its arguments and keywords
    """

    function: FunctionType
    options: dict[str, Any]
    instance: Any
    inner: Any
    knowledge: Knowledge
    repeated: Any
    left: Any
    recorded: Any
    raw: Any

    @property
    def refused(self) -> Refusals: ...

    def is_patched(self) -> bool: ...

    def config(self) -> Config: ...

    def device(self) -> Team | None: ...

    def signature(self, normal: tuple[Any, ...]) -> Signature: ...

    def kept(self, signature: Signature, extents: Any) -> Compiled | None: ...

    def compiled_for_device(self, normal: tuple[Any, ...], signature: Signature | None = None) -> Compiled: ...

    def run_python(self, normal: tuple[Any, ...]) -> Any: ...

    def evaluate(self, normal: tuple[Any, ...], signature: Signature, log: Sequence[tuple[Any, Any]] = ()) -> Any: ...

    def refuse(self, normal: tuple[Any, ...], signature: Signature | None, error: Exception) -> Any: ...

    def leave_for_ever(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None: ...

    def tell_fallback(self, reason: str, signature: Signature | None) -> None: ...
