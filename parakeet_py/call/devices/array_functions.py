"""What computes with `DeviceArray`s outside of accelerated functions: operators, ufuncs, functions of NumPy.

Each form of a call is an accelerated function of its own, made once: `x + 1` runs ``a0 + a1``, `np.sum(x, axis=0)` runs
``F(a0, axis=a1)`` with `np.sum` for ``F``. What is data (arrays, numbers) is an argument, what says how (strings, None,
truth values, dtypes) is part of the form. So a call is compiled, kept on the disk and executed as any other, and its
results stay on the devices. Where NumPy gives a number the result is an array without axes; nothing is fetched for it.

What only looks at shapes and dtypes, and what makes views, is asked of the arrays that stand for those on devices.
A function that is not compiled runs on copies on the host, and a `DeviceWarning` says so, once for each function.
"""

from __future__ import annotations

import linecache
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.errors import DeviceWarning, advised
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.call.accelerate import accelerate
from parakeet_py.call.devices.calls import residents_of
from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice, is_known
from parakeet_py.library import registry
from parakeet_py.signature.device_classes import class_lives_elsewhere

FEW = 32  # numbers in a list that are arguments one by one; more are an array
_NUMBERS = (bool, int, float, complex, np.bool, np.number)

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
_STATIC = frozenset(("axis", "axes", "axis1", "axis2", "decimals", "ddof", "ndmin", "k", "n"))


def _leave(value: Any) -> Any:
    """Compiled with each function: numbers leave as arrays without axes, those in named tuples later (`_leaving`)."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([np.asarray(item) if isinstance(item, np.generic) else item for item in value])
    return value


class _Form:
    """The text of a call, and its arguments."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    def add(self, value: Any) -> str:
        self.arguments.append(value)
        return f"a{len(self.arguments) - 1}"

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind is DeviceArray:
            return self.add(value)
        if value is None or kind in (bool, str):
            return repr(value)
        if value is Ellipsis:
            return "..."
        if kind is slice:
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        if kind in (tuple, list):
            return self.items(value)
        if isinstance(value, np.dtype) or (isinstance(value, type) and value in _TYPES):
            return f"np.dtype({np.dtype(value).name!r})"
        if isinstance(value, np.ndarray) and not is_known(value.dtype):
            raise TypeError(f"a device has no elements of dtype {value.dtype}")
        return self.add(value)

    def items(self, value: Any) -> str:
        if len(value) > FEW and all(isinstance(item, _NUMBERS) for item in value):
            return self.add(np.asarray(value))
        texts = [self.text(item) for item in value]
        return f"[{', '.join(texts)}]" if type(value) is list else f"({''.join(f'{text}, ' for text in texts)})"

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        texts = [self.text(value) for value in args]
        for key, value in kwargs.items():
            small = key in _STATIC and (type(value) is int or _is_of_ints(value))
            texts.append(f"{key}={value!r}" if small else f"{key}={self.text(value)}")
        return f"{name}({', '.join(texts)})"


_TYPES = frozenset((bool, int, float, complex, *(np.dtype(code).type for code in "?bhilqBHILQefdFD")))


def _is_of_ints(value: Any) -> bool:
    return type(value) is tuple and all(type(item) is int for item in value)


# ---- accelerated functions -------------------------------------------------------------------------------------------


class _Made:
    """An accelerated function, and how many specializations have been looked at for what they hand back."""

    def __init__(self, name: str, callee: Any, body: str, count: int) -> None:
        source = f"def {name}({', '.join(f'a{number}' for number in range(count))}):\n    {body}\n"
        filename = f"<{name} of arrays on devices: {body}>"
        linecache.cache[filename] = len(source), None, source.splitlines(True), filename
        names: dict[str, Any] = {"np": np, "F": callee, "leave": _leave}
        exec(compile(source, filename, "exec"), names)
        self.plain: Callable[..., Any] = names[name]
        self.function: Any = accelerate(when="now")(self.plain)
        self.looked_at = 0
        self.warned = False


_made: dict[tuple[Any, str, int], _Made] = {}
_making = threading.Lock()


class _Running(threading.local):
    active = False  # an operation on devices is on this thread's stack


_running = _Running()


def _made_for(callee: Any, body: str, count: int) -> _Made:
    key = callee, body, count
    found = _made.get(key)
    if found is None:
        with _making:
            name = getattr(callee, "__name__", "apply")
            found = _made.setdefault(key, _Made(name if name.isidentifier() else "apply", callee, body, count))
    return found


@hidden
def _run(callee: Any, body: str, arguments: Sequence[Any]) -> Any:
    made = _made_for(callee, body, len(arguments))
    if _running.active:  # Python runs it, with acceleration disabled or under a debugger: on the host, then
        return _on_host(made, arguments)
    _running.active = True
    try:
        found = made.function(*arguments)
    finally:
        _running.active = False
    if not made.warned:
        _look_at(made, callee)
    return found if type(found) is DeviceArray else _leaving(found, arguments)


def _on_host(made: _Made, arguments: Sequence[Any]) -> Any:
    place = next(value._place for value in arguments if type(value) is DeviceArray)
    with residents_of(made.function._dispatcher, arguments, place) as residents:
        return residents.by_python(lambda args: made.plain(*args), arguments)


def _look_at(made: _Made, callee: Any) -> None:
    """Say what a function hands back to Python."""
    count = len(made.function._dispatcher.compilations)
    if count != made.looked_at or made.function.fell_back:
        made.looked_at = count
        if made.function.opaque_calls or made.function.fell_back:
            made.warned = True
            _warn(callee)


_warned: set[int] = set()


def _warn(callee: Any) -> None:
    name = f"numpy.{getattr(callee, '__name__', 'this operation')}"
    if id(callee) not in _warned:
        _warned.add(id(callee))
        text = f"{name} is not compiled for this call: it runs on copies of arrays on the host, its results go back"
        warnings.warn(DeviceWarning(advised(text)), stacklevel=user_level())


def _leaving(value: Any, arguments: Sequence[Any]) -> Any:
    """What leaves: arrays on devices, also of what has been found on the host."""
    if isinstance(value, np.ndarray | np.generic):
        place = next(one._place for one in arguments if type(one) is DeviceArray)
        return asdevice(value, place) if is_known(value.dtype) else value
    if isinstance(value, tuple):
        items = [_leaving(item, arguments) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return [_leaving(item, arguments) for item in value] if type(value) is list else value


# ---- operators and indices -------------------------------------------------------------------------------------------


def _operand(value: Any) -> Any:
    """An operand as an argument; NotImplemented if it means nothing to devices."""
    kind: Any = type(value)
    if kind is DeviceArray or isinstance(value, _NUMBERS):
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
    return _run(None, f"return leave({text})", given)


@hidden
def statement(text: str, *operands: Any) -> Any:
    """Run a statement, see `Operations`."""
    given = [_operand(value) for value in operands]
    if any(value is NotImplemented for value in given):
        return NotImplemented
    return _run(None, text, given)


def _index(form: _Form, key: Any) -> str:
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
def taken(array: DeviceArray, key: Any) -> Any:
    """Elements by an index that has arrays in it: a copy, as NumPy makes one."""
    form = _Form()
    text = f"{form.add(array)}[{_index(form, key)}]"
    return _run(None, f"return leave({text})", form.arguments)


@hidden
def put(array: DeviceArray, key: Any, value: Any) -> None:
    """Assign to elements by an index that has arrays in it."""
    form = _Form()
    text = f"{form.add(array)}[{_index(form, key)}] = {form.add(_storable(value, array.dtype))}"
    _run(None, text, form.arguments)


@hidden
def assign(array: DeviceArray, value: Any) -> None:
    """Assign to all elements."""
    _run(None, "a0[...] = a1", [array, _storable(value, array.dtype)])


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
    form = _Form()
    found = _run(
        ufunc,
        f"return leave({form.call('F' if method == '__call__' else f'F.{method}', given, kwargs)})",
        form.arguments,
    )
    return outs[0] if len(outs) == 1 else found


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
    if function in _METHODS and args and type(args[0]) is DeviceArray and not _running.active:
        found = _by_method(_METHODS[function], args, kwargs)
        if found is not None:
            return found
    if function in _LOOK_AT_ALL:
        raise TypeError(f"{name} takes arrays of the host: numpy.asarray(x) makes a copy there")
    if function in _FIRST_CHANGES:
        _refuse_host(name, args[:1])
    _refuse_host(name, [kwargs.get("out")])
    form = _Form()
    kwargs = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    text = form.call("F", args, kwargs)
    if registry.function_for(function) is None and not isinstance(function, np.ufunc):
        _warn(function)
    return _run(function, f"return leave({text})", form.arguments)


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
        assert not isinstance(value, np.generic), "an element of what only stands for an array"
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
