"""What arrays on devices ask of `call/devices/array_functions`, which is loaded when something is computed."""

from __future__ import annotations

from typing import Any, Protocol

from parakeet_py.signature.device_classes import array_operations


class Operations(Protocol):
    """What computes with arrays on devices."""

    def expression(self, text: str, *operands: Any) -> Any:
        """The value of an expression over ``a0``, ``a1``...; NotImplemented if an operand means nothing to devices."""

    def statement(self, text: str, *operands: Any) -> Any:
        """Run a statement over ``a0``, ``a1``..."""

    def function(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function of NumPy gives."""

    def ufunc(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a ufunc, or a method of it, gives."""

    def made_like(self, array: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function of NumPy makes where the array is; NotImplemented if it makes nothing."""

    def taken(self, array: Any, key: Any, flat: bool = False) -> Any:
        """Elements by an index that has arrays in it, or of the array in one line."""

    def put(self, array: Any, key: Any, value: Any, flat: bool = False) -> None:
        """Assign to elements by an index that has arrays in it, or to those of the array in one line."""

    def assign(self, array: Any, value: Any) -> None:
        """Assign to all elements."""

    def namespace(self, array: Any, version: str | None) -> Any:
        """The functions of the array API standard."""


def operations() -> Operations:
    """What computes, loaded when something is first to be computed."""
    found: Operations = array_operations.load()
    return found
