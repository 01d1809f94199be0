"""What NumPy's arrays can do, for `DeviceArray`: operators, views, methods, conversions, protocols.

Nothing here computes. A view is made by NumPy from the array that stands for it on the host (`stand_in`), whose
elements are not looked at: shape, strides and offset of the result, and every error, are NumPy's. Everything else is an
accelerated function (`call/devices/array_functions`), and its result stays where the array is. Elements come to the
host where they are asked for: by `numpy.asarray`, `tolist`, `item`, and where Python wants a number or a truth value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from parakeet_py.hybrid.residency.array_flags import ArrayFlags
from parakeet_py.hybrid.residency.arrays import Layout
from parakeet_py.hybrid.residency.flat_elements import FlatElements
from parakeet_py.hybrid.residency.operations import operations

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def _is_element(key: Any) -> bool:
    """Whether a basic index without axes is an element, not an array without axes."""
    return Ellipsis not in key if type(key) is tuple else key is not Ellipsis


def _binary(symbol: str) -> tuple[Any, Any, Any]:
    """An operator: of this array and another operand, the other way round, and in place."""

    def forward(self: Any, other: Any) -> Any:
        return operations().expression(f"a0 {symbol} a1", self, other)

    def reflected(self: Any, other: Any) -> Any:
        return operations().expression(f"a0 {symbol} a1", other, self)

    def in_place(self: Any, other: Any) -> Any:
        found = operations().statement(f"a0 {symbol}= a1", self, other)
        return NotImplemented if found is NotImplemented else self

    return forward, reflected, in_place


def _compared(symbol: str) -> Any:
    def compare(self: Any, other: Any) -> Any:
        if (other is None or isinstance(other, str)) and symbol in ("==", "!="):  # no element is equal to it
            return operations().function(np.full_like, (self, symbol == "!=", np.bool), {})
        return operations().expression(f"a0 {symbol} a1", self, other)

    return compare


def _unary(text: str) -> Any:
    def apply(self: Any) -> Any:
        return operations().expression(text, self)

    return apply


def _method(function: Any) -> Callable[..., Any]:
    """The method that a function of NumPy with the array as its first argument is."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return operations().function(function, (self, *args), kwargs)

    method.__name__, method.__doc__ = function.__name__, f"As `numpy.{function.__name__}`; the result is on the device."
    return method


class ArrayMethods:
    """The part of a `DeviceArray` that follows from what it is; see the top of this file."""

    _layout: Layout
    _array: np.ndarray[Any, Any] | None

    @property
    def stand_in(self) -> np.ndarray[Any, Any]:
        """It in the memory of the host, its elements valid or not."""
        raise NotImplementedError

    def _view_of(self, part: np.ndarray[Any, Any]) -> Any:
        """The array that a view of `stand_in` stands for."""
        raise NotImplementedError

    def take_layout(self) -> None:
        """Be what Python has made of `stand_in`."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    # ---- what it is --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._layout.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        other = self.stand_in.reshape(value, copy=False)
        self._layout = self._layout._replace(shape=other.shape, strides=other.strides)
        self._array = other

    @property
    def strides(self) -> tuple[int, ...]:
        return self._layout.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._layout.dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        other = self._view_of(self.stand_in.view(value))
        self._layout, self._array = other._layout, other._array

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> ArrayFlags:
        return ArrayFlags(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[number] for number in range(self.shape[0]))

    # ---- views -------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        view = self._basic(key)
        return operations().taken(self, key) if view is None else view

    def __setitem__(self, key: Any, value: Any) -> None:
        view = self._basic(key)
        if view is None:
            operations().put(self, key, value)
        elif not (type(value) is type(self) and view.is_same(value)):  # as after `x[k] += y`
            if not view.shape and _is_element(key) and isinstance(value, ArrayMethods | np.ndarray | list | tuple):
                np.empty(1, self.dtype)[0] = np.empty(np.shape(value), self.dtype)  # NumPy's error, if it has one
            operations().assign(view, value)

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")

    def _basic(self, key: Any) -> Any:
        """The view that a basic index means; None if the index is none."""
        keys = key if type(key) is tuple else (key,)
        if not _BASIC.issuperset(map(type, keys)):
            keys = tuple(int(one) if isinstance(one, np.integer) else one for one in keys)
            if not _BASIC.issuperset(map(type, keys)):
                return None
        return self._view_of(self.stand_in[keys if Ellipsis in keys else (*keys, Ellipsis)])

    @property
    def T(self) -> Any:
        return self._view_of(self.stand_in.T)

    @property
    def mT(self) -> Any:
        return self._view_of(self.stand_in.mT)

    def transpose(self, *axes: Any) -> Any:
        return self._view_of(self.stand_in.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return self._view_of(self.stand_in.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> Any:
        return self._view_of(self.stand_in.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return self._view_of(self.stand_in.diagonal(offset, axis1, axis2))

    def view(self, dtype: Any = None) -> Any:
        """The same bytes, as elements of another dtype if one is given."""
        return self._view_of(self.stand_in.view() if dtype is None else self.stand_in.view(dtype))

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """A view, or a copy on the device where there is no such view."""
        extents = shape[0] if len(shape) == 1 else shape
        if not copy:
            try:
                return self._view_of(self.stand_in.reshape(extents, order=order, copy=False))
            except ValueError:
                flags = self.flags
                if copy is False or (flags.f_contiguous if order == "F" else flags.c_contiguous):
                    raise
        return operations().function(np.reshape, (self, extents), {"order": order, "copy": True} if copy else {})

    def ravel(self, order: Any = "C") -> Any:
        """A view, or a copy on the device where there is no such view."""
        return operations().function(np.ravel, (self, order), {})

    @property
    def real(self) -> Any:
        return self._view_of(self.stand_in.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return self._view_of(self.stand_in.imag) if self.dtype.kind == "c" else operations().expression("a0.imag", self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    @property
    def flat(self) -> FlatElements:
        return FlatElements(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Whether it may be stored to, as NumPy's method says it."""
        self.stand_in.setflags(write=write, align=align, uic=uic)
        self.take_layout()

    # ---- new arrays --------------------------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> Any:
        return operations().expression(f"a0.copy({order!r})", self)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        kind = np.dtype(dtype)
        if not np.can_cast(self.dtype, kind, casting):  # type: ignore[arg-type]
            np.empty(0, self.dtype).astype(kind, casting=casting)  # type: ignore[call-overload]
        if kind.kind not in "biufc":
            raise TypeError(f"a device has no elements of dtype {kind}")
        if kind == self.dtype and not copy and order == "K":
            return self
        return operations().expression(f"a0.astype(np.dtype({kind.name!r}), {order!r})", self)

    def flatten(self, order: str = "C") -> Any:
        return operations().expression(f"a0.flatten({order!r})", self)

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sort in place."""
        if order is not None:
            raise ValueError("Cannot specify order when the array has no fields.")
        operations().statement(f"a0.sort({operator.index(axis)})", self)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
        """Partition in place."""
        self[...] = operations().function(np.partition, (self, kth, axis, kind, order), {})

    all, any, argmax, argmin, argsort = map(_method, (np.all, np.any, np.argmax, np.argmin, np.argsort))
    argpartition, choose, clip = map(_method, (np.argpartition, np.choose, np.clip))
    cumprod, cumsum, dot, max, mean, min = map(_method, (np.cumprod, np.cumsum, np.dot, np.max, np.mean, np.min))
    nonzero, prod, put, repeat, round = map(_method, (np.nonzero, np.prod, np.put, np.repeat, np.round))
    searchsorted, std, sum, take = map(_method, (np.searchsorted, np.std, np.sum, np.take))
    trace, var = map(_method, (np.trace, np.var))

    def conj(self) -> Any:
        """The array itself where it is real, whatever its dtype, as NumPy's method gives (np.conj makes a copy)."""
        return operations().function(np.conjugate, (self,), {}) if self.dtype.kind == "c" else self

    conjugate = conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return operations().function(np.compress, (condition, self, axis, out), {})

    # ---- operators ---------------------------------------------------------------------------------------------------

    __add__, __radd__, __iadd__ = _binary("+")
    __sub__, __rsub__, __isub__ = _binary("-")
    __mul__, __rmul__, __imul__ = _binary("*")
    __truediv__, __rtruediv__, __itruediv__ = _binary("/")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("//")
    __mod__, __rmod__, __imod__ = _binary("%")
    __pow__, __rpow__, __ipow__ = _binary("**")
    __matmul__, __rmatmul__, __imatmul__ = _binary("@")
    __and__, __rand__, __iand__ = _binary("&")
    __or__, __ror__, __ior__ = _binary("|")
    __xor__, __rxor__, __ixor__ = _binary("^")
    __lshift__, __rlshift__, __ilshift__ = _binary("<<")
    __rshift__, __rrshift__, __irshift__ = _binary(">>")
    __lt__, __le__, __gt__, __ge__ = _compared("<"), _compared("<="), _compared(">"), _compared(">=")
    __eq__, __ne__ = _compared("=="), _compared("!=")
    __hash__ = None  # type: ignore[assignment]  # comparison is by element
    __neg__, __pos__, __invert__, __abs__ = _unary("-a0"), _unary("+a0"), _unary("~a0"), _unary("abs(a0)")

    def __divmod__(self, other: Any) -> Any:
        return operations().expression("divmod(a0, a1)", self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return operations().expression("divmod(a0, a1)", other, self)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # ---- numbers of Python -------------------------------------------------------------------------------------------

    def _element(self) -> np.ndarray[Any, Any]:
        """It on the host, if it has one element; else what gives the same errors where a number is wanted."""
        return np.asarray(self) if self.size == 1 else np.zeros(min(self.size, 2), self.dtype)

    def __bool__(self) -> bool:
        return bool(self._element())

    def __int__(self) -> int:
        return int(self._element())

    def __float__(self) -> float:
        return float(self._element())

    def __complex__(self) -> complex:
        return complex(self._element())

    def __index__(self) -> int:
        return operator.index(self._element())

    def __round__(self, digits: Any = None) -> Any:
        """As of the number that NumPy would give, on the device if digits are kept."""
        if self.shape:
            raise TypeError("type DeviceArray doesn't define __round__ method")
        return round(self._element().item()) if digits is None else operations().function(np.round, (self, digits), {})

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else format(str(self), spec)

    def item(self, *index: Any) -> Any:
        """An element as a number of Python: the only one, or the one at a place."""
        if len(index) == 1 and not isinstance(index[0], tuple):
            place = operator.index(index[0])
            if not -self.size <= place < self.size:
                raise IndexError(f"index {place} is out of bounds for size {self.size}")
            index = tuple(map(int, np.unravel_index(place % self.size, self.shape)))
        elif len(index) == 1:
            index = index[0]
        if len(index) not in (0, self.ndim):
            raise ValueError("incorrect number of indices for array")
        return self[index]._element().item() if index or self.size == 1 else np.zeros(2).item()

    def tolist(self) -> Any:
        """The elements as numbers of Python, in lists."""
        return np.asarray(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return np.asarray(self).tobytes(order)

    def tofile(self, file: Any, sep: str = "", format: str = "%s") -> None:
        np.asarray(self).tofile(file, sep, format)

    def dump(self, file: Any) -> None:
        np.asarray(self).dump(file)

    def dumps(self) -> bytes:
        return np.asarray(self).dumps()

    # ---- protocols ---------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return operations().ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = all(issubclass(one, ArrayMethods | np.ndarray | np.generic) for one in types)
        if not known:
            return NotImplemented
        made = operations().made_like(self, function, args, kwargs)
        return operations().function(function, args, kwargs) if made is NotImplemented else made

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard, for arrays like this one."""
        return operations().namespace(self, api_version)
