"""The type of decorated functions: a Python object whose calls can enter machine code directly.

CPython calls an object through a pointer in the instance (the vectorcall protocol, PEP 590) when its type says so.
`AcceleratedFunction` has such a pointer. While it is null, CPython falls back to `__call__`, an ordinary Python method
that hands the call to `slow`. `set_vectorcall` points it at a native gate: from then on a call goes from the
interpreter to machine code without a Python frame. The pointer is one aligned word, written with the GIL held, so calls
in other threads see the old gate or the new one.

Callers in C may also use the type's `tp_call`, with a tuple and a dict; Cython's do. The class statement puts there
what looks up `__call__` and runs it in Python. Once the native support is loaded, `tp_call` is `gate.call` of
`stub_support` instead, which goes on to where the instance's pointer leads; without support there are no gates to
enter. So it is in subclasses that have no `__call__` of their own. `f.__call__(...)` itself does the same.

Attribute look-ups that make bound methods, such as those of NumPy's `__array_finalize__`, would run a `__get__` in
Python. The type has the one of Python's own functions (`tp_descr_get`), which makes a method of any callable.

Two levels make the type. The base comes from `PyType_FromSpec` through ctypes and has nothing but the word for the
pointer, and some that count. The class is an ordinary Python subclass, which brings `__dict__`, weak references,
garbage collection and deallocation from CPython itself: no destructor or traversal is written by hand. Two flags that a
class statement cannot ask for are set in the finished type: HAVE_VECTORCALL (a class with a `__call__` of its own does
not inherit it), and METHOD_DESCRIPTOR, which lets the interpreter call a decorated method with `self` in front instead
of building a bound method first.

Where type objects are not as they are known to be, nothing is set in them, and calls stay in Python
(`call/dispatch/portable_entry` says how they get to compiled code).

Before there is code for its calls, Python runs them (see `call.dispatch.first_calls`), and `first_gate` is all that is
between. Where there is no such gate, it is `__call__`, which passes some short calls on untimed, so that they cost a
quarter of a microsecond more than the function alone.

Gates are kept as long as the instance lives, even those no longer in use: another thread may still be running one.
The caller of an instance holds a reference to it, so code is never freed under a call.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from numpy import ndarray

from parakeet_py.base import machine
from parakeet_py.base.config import open_blocks
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.signature.small_arguments import SIZED, SMALL, are_small, unsized

VECTORCALL_OFFSET: Final = object.__basicsize__
ENTRY_WORDS: Final = ("_table", "_left", "_largest", "_largest_int", "_untimed", "_estimate")
"""Words behind the vectorcall pointer: attributes that are ints, which machine code reads and writes, too.

The table that `first_gate` needs; nanoseconds that calls may take in Python before something is decided; the size of
their arguments at most, but of ints, and of these; how many pass before one is timed; and nanoseconds of each.
"""
TP_FLAGS: Final = 168  # offset of tp_flags in PyTypeObject
_TP_CALL: Final = 128  # offset of tp_call
_TP_DESCR_GET: Final = 272  # offset of tp_descr_get
_DEFAULT: Final = 1 << 18  # Py_TPFLAGS_DEFAULT
_BASETYPE: Final = 1 << 10
_HAVE_VECTORCALL: Final = 1 << 11
_METHOD_DESCRIPTOR: Final = 1 << 17
_IMMUTABLE: Final = 1 << 8
_T_LONGLONG: Final = 17
_T_PYSSIZET: Final = 19
_READONLY: Final = 1
_TP_MEMBERS: Final = 72  # Py_tp_members, a slot number


class Gate(Protocol):
    """A native entry: where it is, what it calls when the arguments are not its own, and what does the rest of calls
    that it has given up half-way."""

    @property
    def address(self) -> int: ...

    def follow(self, target: Any) -> None: ...

    def leave_to(self, slow: Any) -> None: ...


def is_gate(target: object) -> bool:
    """Is this a gate, which is entered at its address, or any callable?"""
    return isinstance(getattr(target, "address", None), int) and hasattr(target, "follow")


class Plain:
    """A gate to the plain Python function (see `plain_gate`)."""

    is_lasting: bool
    shape: Any
    left: int
    largest: int


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


_kept: list[object] = []  # C structures that the type points into


def _make_base() -> Any:
    """A type whose instances are an object header, the vectorcall pointer, `_entry` in Python, and `ENTRY_WORDS`."""
    words = ("_entry", *ENTRY_WORDS)
    names = [name.encode() for name in words]
    members = (_Member * (len(words) + 2))(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, VECTORCALL_OFFSET, _READONLY, None),
        *(_Member(name, _T_LONGLONG, VECTORCALL_OFFSET + 8 * place, 0, None) for place, name in enumerate(names)),
        _Member(),
    )
    slots = (_Slot * 2)(_Slot(_TP_MEMBERS, ctypes.addressof(members)), _Slot())
    name = b"parakeet_py.VectorcallBase"
    size = VECTORCALL_OFFSET + 8 * len(words)
    spec = _Spec(name, size, 0, _DEFAULT | _BASETYPE | _HAVE_VECTORCALL, ctypes.addressof(slots))
    _kept.extend((members, names, slots, name, spec))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyType_FromSpec", ctypes.pythonapi))(ctypes.addressof(spec))


_Base: Any = _make_base()


# What introspection reads of a function. Instances have none of it of their own, so that most need no dict: packages
# have thousands of functions.
_OF_FUNCTIONS = (
    "__name__",
    "__qualname__",
    "__code__",
    "__defaults__",
    "__kwdefaults__",
    "__globals__",
    "__closure__",
    "__builtins__",
    "__annotations__",
    "__annotate__",
    "__type_params__",
)


class _OfFunction(str):
    """The type's own `__module__` or docstring, in whose place an instance shows those of its function, unless it has
    been given others."""

    shows = "__module__"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance._function, self.shows)


class _Type(type):
    """The type of the type, whose `__module__` is no descriptor, as pickle wants it."""

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        return str(vars(cls)["__module__"])


# What slots hold that are not set yet. Packages have thousands of functions, most of which never set these.
_UNSET: Final[dict[str, Any]] = {
    "_calls": None,  # what takes the first calls, once there are any
    "_first": None,  # the first gate, if it asks for itself there
    "_gates": (),
    "_retired": (),
}
LATER: Final[Any] = object()  # stands for a `slow` that is not made yet


class _Signature:
    """`__signature__`: that of the wrapped function; None on the type, so that its own is still found."""

    def __get__(self, instance: Any, owner: type | None = None) -> inspect.Signature | None:
        return None if instance is None else inspect.signature(instance.__wrapped__)


class AcceleratedFunction(_Base, metaclass=_Type):  # type: ignore[misc]
    """A function that runs as machine code once its argument types have been seen.

    Parameters
    ----------
    function : the Python function; its name, docstring, annotations and attributes are taken over
    slow : called with the same arguments whenever no native entry takes the call; `function` by default. `LATER`: what
        `begin_with` has set makes it when it is asked for.
    made_of : what its dispatcher is made of when that is first asked for
    begins : nanoseconds that calls may take in Python before something is decided, the table of the first gate, and
        where calls enter that; None: it is not known yet how calls begin
    """

    __module__ = _OfFunction(__name__)

    # What calls need is in slots: `functools.wraps` copies what is in `__dict__` to other functions.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_calls",
        "_complete",
        "_dispatcher",
        "_first",
        "_framed",
        "_function",
        "_gates",
        "_retired",
        "_slow",
    )

    # Typing arguments: an object of this type stands for itself (see `signature.spec_of`).
    stands_for_itself = True

    __signature__ = _Signature()

    def __init__(
        self,
        function: Callable[..., Any],
        slow: Callable[..., Any] | None = None,
        made_of: Any = None,
        begins: tuple[int, int, int] | None = None,
    ) -> None:
        self._function = function
        if slow is not LATER:
            self._slow: Callable[..., Any] = function if slow is None else slow
        # These are set when there is something to set. (Annotations of the class would hide those of the function.)
        self._calls: Any
        self._first: object
        self._gates: tuple[Gate, ...]
        self._retired: Sequence[object]
        self._largest = self._largest_int = SMALL
        self._complete: Any = made_of
        if begins is not None:
            self._left, self._table, self._entry = begins
        if type(function) is not types.FunctionType:
            functools.update_wrapper(self, function)
            return
        if attributes := function.__dict__:
            self.__dict__.update(attributes)
            self.__dict__["__wrapped__"] = function

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _set_call(cls)

    @hidden
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._entry:
            return _vectorcall_call(self, args, kwargs)
        if self._untimed and not open_blocks[0]:
            values = (*args, *kwargs.values()) if kwargs else args
            largest = self._largest
            for value in values:
                kind = type(value)
                if kind in unsized:
                    continue
                if kind is int:
                    if -largest <= value <= largest:
                        continue
                elif kind is ndarray:
                    if value.size <= largest:
                        continue
                elif kind in SIZED and len(value) <= largest:
                    continue
                small = are_small(values, largest)
                break
            else:
                small = True
            if small:
                self._untimed -= 1
                booked[0] += self._estimate
                return self._function(*args, **kwargs) if kwargs else self._function(*args)
        return self._slow(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name in _UNSET:
            return _UNSET[name]
        if name in _OF_FUNCTIONS:
            return getattr(self._function, name)
        if name == "__wrapped__":
            return self._function
        if name == "_dispatcher" and self._complete is not None:
            return _complete(self)
        if name == "_slow":
            make_slow(self)
            return self._slow
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", None) or repr(self.__wrapped__)
        return f"<accelerated function {name} at {id(self):#x}>"

    def __copy__(self) -> AcceleratedFunction:
        return self  # as functions do

    def __deepcopy__(self, memo: object) -> AcceleratedFunction:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _reduce(self, sys._getframe(1))


_documentation = _OfFunction(AcceleratedFunction.__doc__)
_documentation.shows = "__doc__"
AcceleratedFunction.__doc__ = _documentation


def _without_dispatcher(instance: AcceleratedFunction) -> Any:
    raise AttributeError("_dispatcher")


_complete: Callable[[AcceleratedFunction], Any] = _without_dispatcher


def complete_with(complete: Callable[[AcceleratedFunction], Any]) -> None:
    """Set what makes the dispatcher of an accelerated function out of its `_complete`."""
    global _complete
    _complete = complete


def _begin_in_python(instance: AcceleratedFunction, /, *args: Any, **kwargs: Any) -> Any:
    return instance._function(*args, **kwargs)


_begin: Callable[..., Any] = _begin_in_python


def begin_with(begin: Callable[..., Any]) -> None:
    """Set what `LATER` stands for: a function that is called with the accelerated function and then the arguments."""
    global _begin
    _begin = begin


def make_slow(instance: AcceleratedFunction) -> None:
    """Make what has been left for later."""
    instance._slow = types.MethodType(_begin, instance)


def _by_name(instance: AcceleratedFunction, frame: types.FrameType) -> str | tuple[Any, ...]:
    return str(getattr(instance, "__qualname__", ""))


_reduce: Callable[[AcceleratedFunction, types.FrameType], str | tuple[Any, ...]] = _by_name


def set_reduce(reduce: Callable[[AcceleratedFunction, types.FrameType], str | tuple[Any, ...]]) -> None:
    """Set what a pickler keeps of an accelerated function, given the frame of its caller."""
    global _reduce
    _reduce = reduce


def _flags(cls: type) -> ctypes.c_ulong:
    return ctypes.c_ulong.from_address(id(cls) + TP_FLAGS)


def _offset_of(slot: str) -> int:
    """Where an instance keeps a slot: CPython lays slots out by itself, so look."""
    probe, mark = AcceleratedFunction(_make_base), object()
    setattr(probe, slot, mark)
    words = (ctypes.c_void_p * (AcceleratedFunction.__basicsize__ // 8)).from_address(id(probe))
    return 8 * next(index for index, word in enumerate(words) if word == id(mark) and 8 * index > VECTORCALL_OFFSET)


class _Called:
    """Any class with a `__call__` and a `__get__` in Python."""

    def __call__(self) -> None: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...


def _call_slot(cls: type) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(cls) + _TP_CALL)


def _get_slot(cls: type) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(cls) + _TP_DESCR_GET)


_vectorcall_call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)(
    ("PyVectorcall_Call", ctypes.pythonapi)
)
_CALL_IN_PYTHON: Final = _call_slot(_Called).value  # what looks `__call__` up
HAS_NATIVE_CALLS: Final = (
    not machine.PORTABLE_ENTRY
    and _flags(AcceleratedFunction).value == AcceleratedFunction.__flags__
    and _call_slot(AcceleratedFunction).value == _CALL_IN_PYTHON
    and _get_slot(AcceleratedFunction).value == _get_slot(_Called).value
    and _get_slot(types.FunctionType).value not in (None, _get_slot(_Called).value, _get_slot(property).value)
)
"""Type objects are as they are known to be. Elsewhere the type stays an ordinary class, whose calls are in Python."""
if HAS_NATIVE_CALLS:
    _get_slot(AcceleratedFunction).value = _get_slot(types.FunctionType).value
    _flags(AcceleratedFunction).value |= _HAVE_VECTORCALL | _METHOD_DESCRIPTOR


def seal() -> None:
    """The type has all its attributes: from now on they cannot be set, so that the interpreter may look methods of this
    type up as quickly as those that are plain functions."""
    if HAS_NATIVE_CALLS:
        _flags(AcceleratedFunction).value |= _IMMUTABLE


SLOW_OFFSET: Final = _offset_of("_slow")
FIRST_OFFSET: Final = _offset_of("_first")
FUNCTION_OFFSET: Final = _offset_of("_function")

# A vectorcall function that hands every call to the object at SLOW_OFFSET, and what `tp_call` is then; known once the
# native support is loaded.
_forward: int | None = None
_native_call: int | None = None


def set_support(forward: int, call: int) -> None:
    """Set where the native code is that calls `slow` without a detour through `__call__`, and the `tp_call` for it."""
    global _forward, _native_call
    _forward, _native_call = forward, call
    found: list[type] = [AcceleratedFunction]
    for cls in found:
        _set_call(cls)
        found.extend(cls.__subclasses__())


def _set_call(cls: type) -> None:
    """Let callers of a class's `tp_call` enter machine code, unless the class has a `__call__` of its own."""
    inherited = inspect.getattr_static(cls, "__call__") is AcceleratedFunction.__call__
    if _native_call is not None and inherited and _call_slot(cls).value == _CALL_IN_PYTHON:
        _call_slot(cls).value = _native_call


def set_vectorcall(instance: AcceleratedFunction, address: int | None) -> None:
    """Let calls enter machine code at `address`, a vectorcall function; None: back to `slow`.

    The caller keeps the code alive; `install` does both.
    """
    instance._entry = address or 0


def vectorcall_of(instance: AcceleratedFunction) -> int | None:
    """Where calls enter; None before there is native code."""
    return instance._entry or None


def set_slow(instance: AcceleratedFunction, slow: Callable[..., Any]) -> None:
    """Change what takes the calls that no gate takes."""
    _retire(instance, [instance._slow])
    instance._slow = slow
    install(instance, instance._gates)


def install(instance: AcceleratedFunction, gates: Sequence[Gate]) -> None:
    """Let calls try `gates` in this order, and then `slow`.

    Safe while other threads call the instance: links are made from the last gate to the first, so that at every
    moment every chain ends in `slow`.
    """
    following: object = instance._slow
    instance._untimed = 0
    if (framed := getattr(instance, "_framed", None)) is not None:  # behind all others, as they let such calls pass
        framed.follow(following)
        following = framed
    for gate in reversed(gates):
        gate.leave_to(instance._slow)
        gate.follow(following)
        following = gate
    first = getattr(gates[0], "first_address", None) if gates else None
    if first is not None:
        _retire(instance, [instance._first])
        instance._first = gates[0]
    set_vectorcall(instance, first or (gates[0].address if gates else _forward))
    _retire(instance, [gate for gate in instance._gates if gate not in gates])
    instance._gates = tuple(gates)


def set_framed(instance: AcceleratedFunction, gate: Gate) -> None:
    """Let a gate take calls that a profiler sees and no other gate has taken."""
    instance._framed = gate
    install(instance, instance._gates)


def _retire(instance: AcceleratedFunction, targets: Sequence[object]) -> None:
    """Keep what calls are led to no longer: a thread may be running in it."""
    if targets:
        if not isinstance(instance._retired, list):
            instance._retired = []
        instance._retired.extend(targets)


def gates_of(instance: AcceleratedFunction) -> tuple[Gate, ...]:
    """The gates that calls try, in order."""
    return instance._gates
