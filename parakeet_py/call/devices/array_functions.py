"""What computes with `DeviceArray`s outside of accelerated functions: operators, ufuncs, functions of NumPy.

Each is an accelerated function, see `array_forms`.

What only looks at shapes and dtypes, and what makes views, is asked of the arrays that stand for those on devices.
A function that is not compiled runs on copies on the host, and a `DeviceWarning` says so, once for each function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.call.devices.array_forms import NUMBERS, Form, run, running, warn
from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice, is_known
from parakeet_py.library import registry
from parakeet_py.signature.device_classes import class_lives_elsewhere

# Answers follow from shapes and dtypes.
_OF_TYPES = frozenset(
    (
        *(np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.common_type),
        *(np.iscomplexobj, np.isrealobj, np.may_share_memory, np.shares_memory),
    )
)
# Results are views, of every array or of those whose layout allows it.
_VIEWS = frozenset(
    (
        *(np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.matrix_transpose, np.linalg.matrix_transpose),
        *(np.expand_dims, np.squeeze, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.diagonal, np.linalg.diagonal),
        *(np.broadcast_to, np.broadcast_arrays, np.flip, np.fliplr, np.flipud, np.rot90),
        *(np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.lib.stride_tricks.sliding_window_view),
    )
)
_METHODS = {np.reshape: "reshape", np.real: "real", np.imag: "imag"}  # views by methods of arrays
_FIRST_CHANGES = frozenset((np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal))
_LOOK_AT_ALL = frozenset((np.array2string, np.array_repr, np.array_str, np.save, np.savez, np.savetxt))
# They get here by `like=` alone, an array on devices, which says where the result shall be.
_MAKES = frozenset(
    (
        *(np.arange, np.array, np.asanyarray, np.asarray, np.ascontiguousarray, np.asfortranarray, np.empty, np.eye),
        *(np.frombuffer, np.fromfunction, np.fromiter, np.fromstring, np.full, np.genfromtxt, np.identity),
        *(np.loadtxt, np.ones, np.require, np.tri, np.zeros),
    )
)


# ---- operators and indices -------------------------------------------------------------------------------------------


def _operand(value: Any) -> Any:
    """An operand as an argument; NotImplemented if it means nothing to devices."""
    kind: Any = type(value)
    if kind is DeviceArray or isinstance(value, NUMBERS):
        return value
    if kind is np.ndarray:
        return value if is_known(value.dtype) else NotImplemented
    if kind in (list, tuple):
        array = np.asarray(value)
        return array if is_known(array.dtype) else NotImplemented
    return value if class_lives_elsewhere(kind) else NotImplemented


@hidden
def expression(text: str, *operands: Any) -> Any:
    """The value of an expression, see `Operations`."""
    given = [_operand(value) for value in operands]
    if any(value is NotImplemented for value in given):
        return NotImplemented
    return run(None, f"return leave({text})", given)


@hidden
def statement(text: str, *operands: Any) -> Any:
    """Run a statement, see `Operations`."""
    given = [_operand(value) for value in operands]
    if any(value is NotImplemented for value in given):
        return NotImplemented
    return run(None, text, given)


def _index(form: Form, key: Any) -> str:
    keys = key if type(key) is tuple else (key,)
    texts = [form.text(_index_array(one) if type(one) in (list, tuple) else one) for one in keys]
    return ", ".join(texts) + ("," if type(key) is tuple and len(texts) == 1 else "")


def _index_array(items: Sequence[Any]) -> Any:
    array = np.asarray(items)
    return array if array.size else array.astype(np.intp)  # nothing is an index, too


def _index_arrays(key: Any) -> Any:
    """An index with arrays for lists, which mean others than tuples do."""
    if type(key) is tuple:
        return tuple([_index_array(one) if type(one) in (list, tuple) else one for one in key])
    return _index_array(key) if type(key) is list else key


@hidden
def taken(array: DeviceArray, key: Any, flat: bool = False) -> Any:
    """Elements by an index that has arrays in it, or of the array in one line: a copy, as NumPy makes one."""
    form = Form()
    text = f"{form.add(array)}{'.flat' if flat else ''}[{_index(form, key)}]"
    return run(None, f"return leave({text})", form.arguments)


@hidden
def put(array: DeviceArray, key: Any, value: Any, flat: bool = False) -> None:
    """Assign to elements by an index that has arrays in it, or to those of the array in one line."""
    form = Form()
    stored = form.add(_storable(value, array.dtype))
    text = f"{form.add(array)}{'.flat' if flat else ''}[{_index(form, key)}] = {stored}"
    run(None, text, form.arguments)


@hidden
def assign(array: DeviceArray, value: Any) -> None:
    """Assign to all elements."""
    run(None, "a0[...] = a1", [array, _storable(value, array.dtype)])


@hidden
def _storable(value: Any, dtype: np.dtype[Any]) -> Any:
    """What is stored, as an argument: texts, None, fractions are what NumPy makes of them, or its exception."""
    given = _operand(value)
    return np.asarray(value, dtype) if given is NotImplemented else given


# ---- functions of NumPy ----------------------------------------------------------------------------------------------


def _refuse_host(name: str, outputs: Sequence[Any]) -> None:
    if any(isinstance(one, np.ndarray) for one in outputs):
        raise TypeError(
            f"{name} of arrays on devices stores into such arrays only, not into one of the host; "
            "numpy.asarray(x) makes a copy there"
        )


@hidden
def ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc gives, or a method of it: see `numpy.lib.mixins.NDArrayOperatorsMixin` for the protocol."""
    outs = kwargs.pop("out", ())
    _refuse_host(f"numpy.{ufunc.__name__}", outs)
    if method == "at":
        _refuse_host(f"numpy.{ufunc.__name__}.at", inputs[:1])
    indexed = method in ("at", "reduceat")
    given = [_index_arrays(x) if indexed and place == 1 else _operand(x) for place, x in enumerate(inputs)]
    if any(value is NotImplemented for value in given):
        return NotImplemented
    if len(outs) == 1:
        kwargs["out"] = outs[0]
    elif any(one is not None for one in outs):
        kwargs["out"] = tuple(outs)
    elif method == "__call__":
        kwargs.pop("where", None)  # what is not chosen has no value then: any will do
    if method == "reduce" and kwargs.get("initial", 0) is np._NoValue:
        del kwargs["initial"]
    form = Form()
    found = run(
        ufunc,
        f"return leave({form.call('F' if method == '__call__' else f'F.{method}', given, kwargs)})",
        form.arguments,
    )
    return outs[0] if len(outs) == 1 else found


def made_like(array: DeviceArray, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A new array, where another one is (`like=`); NotImplemented if the function makes none."""
    if function not in _MAKES:
        return NotImplemented
    if not (args and type(args[0]) is DeviceArray):
        return asdevice(function(*args, **kwargs), array._place)
    given = args[0].to_device(array._place)
    dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None)
    order = "C" if function is np.ascontiguousarray else "F" if function is np.asfortranarray else kwargs.get("order")
    copy = function is np.array and kwargs.get("copy", True)
    flags = given.flags
    if copy or (order == "C" and not flags.c_contiguous) or (order == "F" and not flags.f_contiguous):
        given = given.copy(order or "K")
    return given if dtype is None else given.astype(dtype, copy=False)


@hidden
def function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy gives."""
    name = f"{function.__module__}.{function.__name__}"
    if function in _OF_TYPES:
        return function(*_standing(args), **_standing(kwargs))
    if function is np.unstack and args and type(args[0]) is DeviceArray:
        axis = args[1] if len(args) > 1 else kwargs.get("axis", 0)
        return tuple(_views(np.moveaxis, (args[0], axis, 0), {}))
    if function in _VIEWS or (function is np.ravel and _is_flat(args, kwargs)):
        return _views(function, args, kwargs)
    if function in _METHODS and args and type(args[0]) is DeviceArray and not running.active:
        found = _by_method(_METHODS[function], args, kwargs)
        if found is not None:
            return found
    if function in _LOOK_AT_ALL:
        raise TypeError(f"{name} takes arrays of the host: numpy.asarray(x) makes a copy there")
    if function in _FIRST_CHANGES:
        _refuse_host(name, args[:1])
    _refuse_host(name, [kwargs.get("out")])
    form = Form()
    kwargs = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    text = form.call("F", args, kwargs)
    if registry.function_for(function) is None and not isinstance(function, np.ufunc):
        warn(function)
    return run(function, f"return leave({text})", form.arguments)


def _standing(value: Any) -> Any:
    """A value with what stands for arrays on devices in their places."""
    if type(value) is DeviceArray:
        return value.stand_in
    if type(value) in (tuple, list):
        return type(value)(map(_standing, value))
    return {key: _standing(one) for key, one in value.items()} if type(value) is dict else value


def _is_flat(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether `np.ravel` gives a view."""
    array = args[0]
    order = args[1] if len(args) > 1 else kwargs.get("order", "C")
    flags = array.stand_in.flags if type(array) is DeviceArray else None
    return flags is not None and (flags.c_contiguous if order == "C" else flags.forc and order in ("A", "K"))


def _views(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    arrays: list[DeviceArray] = []

    def find(value: Any) -> None:
        if type(value) is DeviceArray:
            arrays.append(value)
        elif type(value) in (tuple, list):
            for one in value:
                find(one)

    find((args, tuple(kwargs.values())))
    if function is np.broadcast_arrays:  # read-only, as NumPy's will be
        shape = np.broadcast_shapes(*map(np.shape, args))
        return tuple([one if np.shape(one) == shape else np.broadcast_to(one, shape) for one in args])

    def leaving(value: Any) -> Any:
        if isinstance(value, np.generic):  # the element of an array without axes
            (alone,) = arrays
            assert not alone.shape, "an element of what only stands for an array"
            return alone.copy()
        if isinstance(value, np.ndarray):
            same = next((one for one in arrays if one.stand_in is value), None)
            if same is not None:
                return same
            owner = next((one for one in arrays if not value.size or one._home.has(value)), None)
            return asdevice(value, arrays[0]._place) if owner is None else owner._view_of(value)
        return type(value)(map(leaving, value)) if type(value) in (tuple, list) else value

    return leaving(function(*_standing(args), **_standing(kwargs)))


def _by_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A view that a method gives, or None."""
    array = args[0]
    if name != "reshape":
        return getattr(array, name) if len(args) == 1 and not kwargs and array.dtype.kind == "c" else None
    order = kwargs.get("order", "C")
    if len(args) + len(kwargs) - ("order" in kwargs) != 2 or "copy" in kwargs:
        return None
    shape = args[1] if len(args) == 2 else kwargs.get("shape", kwargs.get("newshape"))
    try:
        return array._view_of(array.stand_in.reshape(shape, order=order, copy=False))
    except ValueError:
        if array.flags.f_contiguous if order == "F" else array.flags.c_contiguous:
            raise
        return None


def namespace(array: DeviceArray, version: str | None) -> Any:
    """The functions of the array API standard."""
    from parakeet_py.call.devices.array_namespace import namespace_of

    return namespace_of(array, version)
