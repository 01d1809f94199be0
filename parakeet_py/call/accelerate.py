"""The decorator, and what an accelerated function reports of itself.

An accelerated function is an `AcceleratedFunction`, a native callable. Its calls try the gates of the specializations
made so far; what none of them takes goes to its `Dispatcher`, in Python.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from parakeet_py.base import config as settings
from parakeet_py.base import errors
from parakeet_py.call.dispatch.first_calls import begin, begins, completing, first_calls_of, leave_to_python
from parakeet_py.call.interop.pandas_engine import PandasEngine
from parakeet_py.hybrid.residency import fingerprint
from parakeet_py.llvm.entry.booked_time import not_of_the_call
from parakeet_py.llvm.entry.callable_type import (
    LATER,
    AcceleratedFunction,
    begin_with,
    complete_with,
    make_slow,
    seal,
    set_reduce,
    set_slow,
)

if TYPE_CHECKING:
    from pathlib import Path

    from parakeet_py.call.dispatcher import Dispatcher
    from parakeet_py.call.load import Loaded

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

if TYPE_CHECKING:
    from parakeet_py.call.explain.report import Explanation
    from parakeet_py.call.explain.roofline import Roofline
    from parakeet_py.export.library import Exported


def _reduce(instance: AcceleratedFunction, frame: types.FrameType) -> str | tuple[Any, ...]:
    from parakeet_py.call.pickling import reduce

    return reduce(instance, frame)


def _entry_of(message: str) -> errors.Refusal | None:
    from parakeet_py.messages.lookup import entry_of

    return entry_of(message)


set_reduce(_reduce)
errors.look_up_with(_entry_of)


def _make(function: Callable[..., Any], options: dict[str, Any], checked: bool | None = None) -> Any:
    if isinstance(function, AcceleratedFunction):
        return function if not options else _make(function.__wrapped__, options)
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_make(function.__func__, options))
    if isinstance(function, type):
        raise TypeError(f"{function.__qualname__} is a class: decorate the methods that are to be accelerated")
    if not callable(function):
        raise TypeError(f"{function!r} is not callable")
    instance = AcceleratedFunction.__new__(AcceleratedFunction)
    equip(instance, function, options, checked)
    return instance


def equip(
    instance: AcceleratedFunction, given: Callable[..., Any], options: dict[str, Any], checked: bool | None = None
) -> None:
    """Make an accelerated function, which has been allocated only, the one of what `accelerate` was given.

    Its machine code is `checked`; as the environment says, if that is not given. Packages have thousands of functions,
    most of which are never called: nothing is made for them but the instance.
    """
    function = given if isinstance(given, types.FunctionType) else _wrapper(given)
    config = settings.environment()
    if not options and checked is None:
        known, waits, made_of = _usual_for
        if known is not config:
            waits, made_of = _usual(config)
    else:
        checked = config.checked if checked is None else checked
        own = dataclasses.replace(config, **options) if options else config
        waits, made_of = own.pays and own.on_cpu and not checked, (options, checked)
    of_what = made_of if function is given else (*made_of, given)
    left_to_python = (function.__name__ in _ASKED_BY_THE_COMPILER and not options.get("strict")) or not config.enabled
    if left_to_python:
        AcceleratedFunction.__init__(instance, function, None, of_what, begins())
        leave_to_python(instance)
    elif waits:
        how = begins()
        AcceleratedFunction.__init__(instance, function, LATER, of_what, how)
        if not how[-1]:
            make_slow(instance)  # where other code looks for it
    else:
        AcceleratedFunction.__init__(instance, function, None, of_what)
        set_slow(instance, instance._dispatcher.slow)


# The compiler looks at objects, which calls these: to look at their arguments would never end.
_ASKED_BY_THE_COMPILER = frozenset(("__getattribute__", "__getattr__"))
# Settings, whether functions without options have `FirstCalls` under these, and what their dispatchers are made of.
_usual_for: tuple[settings.Config | None, bool, tuple[dict[str, Any], bool]] = None, False, ({}, False)


def _usual(config: settings.Config) -> tuple[bool, tuple[dict[str, Any], bool]]:
    """How functions without options begin: see `_usual_for`."""
    global _usual_for
    waits = config.pays and config.on_cpu and not config.checked
    made_of: tuple[dict[str, Any], bool] = {}, config.checked
    _usual_for = config, waits, made_of
    return waits, made_of


@not_of_the_call()
def _complete(instance: Any) -> Dispatcher:
    """The dispatcher of an accelerated function, which is asked for it first."""
    from parakeet_py.call.dispatcher import Dispatcher  # which the first calls do without

    with completing:
        if instance._complete is not None:
            options, checked, *others = instance._complete
            given = others[0] if others else instance._function
            dispatcher = Dispatcher(instance._function, options, checked, first_calls_of(instance))
            dispatcher.make_other = lambda: _make(given, options, not checked)
            dispatcher.make_exact = lambda: _make(given, {**options, "exact": True}, checked)
            dispatcher.given = given
            dispatcher.instance = instance
            if not dispatcher.plain:
                dispatcher.inner = AcceleratedFunction(instance._function, dispatcher.call_positional)
            instance._dispatcher = dispatcher
            instance._complete = None
    made: Dispatcher = instance._dispatcher
    return made


complete_with(_complete)
begin_with(begin)


def _wrapper(target: Callable[..., Any]) -> types.FunctionType:
    """A Python function that calls a ufunc, a builtin or a callable object."""
    import functools

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    made: Any = call
    functools.update_wrapper(made, target, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    del made.__wrapped__
    assert isinstance(made, types.FunctionType)
    return made


class Options(TypedDict, total=False):
    """The settings that a function can have of its own."""

    strict: bool
    when: str
    background: bool
    tiers: bool
    threads: int | None
    devices: str | None
    split: float | None
    deterministic: bool
    contract: bool
    fastmath: bool
    exact: bool
    engine: str
    chunks: int | str
    gather_limit: int | str
    libdevice: bool


class Accelerated(Protocol[P, R]):
    """What type checkers know of an accelerated function: it is called as the function is, and can be asked."""

    __name__: str
    __qualname__: str
    __module__: str
    __doc__: str | None
    __wrapped__: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __get__(self, instance: None, owner: type | None = None, /) -> Accelerated[P, R]: ...
    @overload
    def __get__(
        self: Accelerated[Concatenate[Any, Q], S], instance: object, owner: type | None = None, /
    ) -> Callable[Q, S]: ...

    @property
    def specializations(self) -> list[Loaded]:
        """What has been compiled or loaded so far, one for each set of argument types."""
        ...

    @property
    def opaque_calls(self) -> list[str]:
        """What compiled code hands back to Python, of all that has been compiled: ``"name (line n): reason"``."""
        ...

    @property
    def fell_back(self) -> str | bool:
        """False, or why some call ran as a whole in Python."""
        ...

    def compile(self, /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Compile a call with these arguments now, without making it; later calls like it run that code.

        Raises
        ------
        UnsupportedError
            The call cannot be compiled, or hands operations back of which no call has shown what they give.
        """
        ...

    def explain(self, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """What happens in a call with these arguments, which is compiled but not made: kernels, fusion, storage, what
        is handed back and why."""
        ...

    def roofline(self, /, *args: P.args, **kwargs: P.kwargs) -> Roofline:
        """Time each kernel of a call beside what memory and arithmetic allow on this machine. The function is called
        on copies of the arguments."""
        ...

    def untyped_ir(self) -> str:
        """The function in static single assignment form, before anything is typed, as text."""
        ...

    def typed_ir(self, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """What it is for arguments of these types, after fusion, as text."""
        ...

    def imp(self, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """The loops and allocations that this becomes, as text."""
        ...

    def llvm(self, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """The LLVM IR of these, before LLVM's own optimization, as text."""
        ...

    def ptx(self, /, *args: Any, target: str = ..., **kwargs: Any) -> str:
        """The kernels for a GPU architecture such as ``"sm_90"``, as PTX; no GPU is needed."""
        ...

    def export(
        self,
        folder: str | Path,
        /,
        *args: Any,
        kwargs: Mapping[str, Any] | None = ...,
        also: Sequence[tuple[Any, ...]] = ...,
        name: str | None = ...,
        target: str | None = ...,
        threads: str = ...,
        blas: str = ...,
        link_flags: Sequence[str] = ...,
        ptx: str | None = ...,
    ) -> Exported:
        """Write a library for calls with arguments of these types, which needs neither Python nor this package: see
        `export`."""
        ...


class _Decorator(Protocol):
    """`accelerate` with options."""

    @overload
    def __call__(self, function: staticmethod[P, R], /) -> staticmethod[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: classmethod[T, P, R], /) -> classmethod[T, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Accelerated[P, R]: ...


@overload
def accelerate(function: staticmethod[P, R], /) -> staticmethod[P, R]: ...  # type: ignore[overload-overlap]
@overload
def accelerate(function: classmethod[T, P, R], /) -> classmethod[T, P, R]: ...
@overload
def accelerate(function: Callable[P, R], /, **options: Unpack[Options]) -> Accelerated[P, R]: ...
@overload
def accelerate(**options: Unpack[Options]) -> _Decorator: ...


def accelerate(function: Any = None, /, **options: Any) -> Any:
    """Make a NumPy function fast; its results, side effects and exceptions stay what they are.

    Parameters
    ----------
    function : callable, optional
        A Python function or method, a lambda, a ufunc or a builtin. Used as a decorator with or without options.
    strict : bool, default: False
        Raise `UnsupportedError` instead of falling back to Python or handing single calls back to it.
    when : str, default: "pays"
        "pays": calls run in Python until they have cost what compiling will; larger ones are compiled at
        once; and code that turns out to be slower than Python is not used. "now": the first call of a signature is
        compiled.
    background : bool, default: True
        With "pays": calls go on in Python while the function is compiled in another thread, if there are several CPUs.
    tiers : bool, default: True
        With "now": what has little to do is compiled without being optimised, until its calls have taken as long as
        that takes.
    threads : int, default: None
        Threads a parallel region may use; all CPUs of the process by default.
    devices : str, default: "cpu"
        Devices to run on, such as ``"cpu"``, ``"cuda:0"`` or ``"cpu,emulated*2"``, which share the work of a call.
    split : float, default: None
        The share of every index space that devices other than the CPU get, between 0 and 1; chosen for each by default.
    deterministic : bool, default: True
        Results are bit-identical for any number of threads.
    contract, fastmath : bool, default: False
        Allow fused multiply-add; allow reassociation of floating point, and on GPUs products of float32 matrices
        whose factors are rounded to TF32.
    exact : bool, default: False
        Elementary functions, powers, products of complex numbers and of matrices, and all else have the very bits of
        NumPy and Python, whose functions are called for them; calls run on the CPU.
    libdevice : bool, default: False
        Elementary functions on GPUs are those of NVIDIA's libdevice, where CUDA or the package ``nvidia-cuda-nvcc`` is
        installed: faster in single precision, but not those of the CPU to the bit.

    Returns
    -------
    AcceleratedFunction
        A callable with what `Accelerated` lists: `specializations`, `opaque_calls`, `fell_back`, `compile(*args)`,
        `explain(*args)`, `roofline(*args)`, `untyped_ir()`, `typed_ir(*args)`, `imp(*args)`, `llvm(*args)`,
        `ptx(*args, target="sm_90")` and `export(folder, *args)`.
    """
    if not options and type(function) is types.FunctionType:  # nearly always
        usual, waits, made_of = _usual_for
        if waits and usual is settings.environment() and function.__name__ not in _ASKED_BY_THE_COMPILER:
            how = begins()
            if how[-1] and usual.enabled:
                return AcceleratedFunction(function, LATER, made_of, how)
        return _make(function, options)
    if options.get("exact") is False:
        del options["exact"]  # the settings may still ask for it
    for name in options:
        if name not in Options.__annotations__:
            known = sorted(Options.__annotations__)
            hint = settings.nearest(name, known)
            raise TypeError(f"accelerate() has no option {name!r}; {hint}the options are {', '.join(known)}")
    if options:
        with settings.options(**options):
            pass  # refuses values that make no sense now, not at the first call
        options = settings.validated(options)
    if function is not None:
        return _make(function, options)

    def decorate(target: Any) -> Any:
        return _make(target, options)

    decorate.__pandas_udf__ = PandasEngine  # type: ignore[attr-defined]
    return decorate


accelerate.__pandas_udf__ = PandasEngine  # type: ignore[attr-defined]


# ---- what an accelerated function can be asked -----------------------------------------------------------------------


def _dispatcher(instance: Any) -> Dispatcher:
    found: Dispatcher = instance._dispatcher
    return found.in_force()


def _specializations(self: Any) -> list[Loaded]:
    """The specializations loaded so far."""
    dispatcher = _dispatcher(self)
    return list(dict.fromkeys((*dispatcher.specializations.values(), *dispatcher.general.values())))


def _opaque_calls(self: Any) -> list[str]:
    """What is handed back to Python, over all specializations: "name (line n): reason"."""
    dispatcher = _dispatcher(self)
    found: dict[str, None] = {}
    for compiled in dispatcher.compilations.values():
        found |= dict.fromkeys(compiled.specialization.opaque_calls)
    for loaded in dispatcher.specializations.values():
        if loaded.state is not None and loaded.from_disk:
            found |= dict.fromkeys(loaded.state.handed_back.opaque_calls)
    return list(found)


def _fell_back(self: Any) -> str | bool:
    """False, or the reason why some call ran as plain Python."""
    return _dispatcher(self).fell_back or False


def _untyped_ir(self: Any) -> str:
    """The untyped SSA as text."""
    from parakeet_py.frontend import to_ssa_cached
    from parakeet_py.frontend.print import format_function

    return format_function(to_ssa_cached(_dispatcher(self).function))


def _typed_ir(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The typed IR of a call's signature, after fusion, as text."""
    from parakeet_py.typed_ir.print import format_function

    return format_function(_dispatcher(self).compiled_for(args, kwargs).typed)


def _imp(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The loops of a call's signature as text."""
    from parakeet_py.imp.print import format_function

    return format_function(_dispatcher(self).compiled_for(args, kwargs).imp)


def _llvm(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The LLVM IR of a call's signature, before LLVM's own optimization, as text."""
    from parakeet_py.call.compile import generate_llvm

    dispatcher = _dispatcher(self)
    return generate_llvm(dispatcher.compiled_for(args, kwargs), dispatcher.checked)[0]


def _ptx(self: Any, /, *args: Any, target: str = "sm_80", **kwargs: Any) -> str:
    """The PTX of a call's kernels, as one module, for a GPU architecture such as "sm_90"; no GPU is needed."""
    dispatcher = _dispatcher(self)
    return _ptx_of(dispatcher, dispatcher.positional(args, kwargs), target)


def _ptx_of(dispatcher: Dispatcher, normal: tuple[Any, ...], target: str) -> str:
    from parakeet_py.call.devices.calls import device_plan_of
    from parakeet_py.ptx.join_modules import join

    plan = device_plan_of(dispatcher.compiled_for_normal(normal))
    return join([plan.ptx(target, number) for number in range(len(plan.kernels))])


def _compile(self: Any, /, *args: Any, **kwargs: Any) -> None:
    """Compile a call with these arguments now, without making it; later calls like it run that code.

    Raises
    ------
    UnsupportedError
        The call cannot be compiled, or hands operations back of which no call has shown what they give.
    """
    dispatcher = _dispatcher(self)
    dispatcher.compile_now(dispatcher.positional(args, kwargs))


def export(
    self: Any,
    folder: str | Path,
    /,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    also: Sequence[tuple[Any, ...]] = (),
    ptx: str | None = None,
    **settings: Any,
) -> Exported:
    """Write a library that needs neither Python nor this package: a shared library, a C header, a Python module.

    Parameters
    ----------
    folder : str or Path
        Where the files go; it is made.
    *args
        Arguments of a call (nothing is called), whose types are exported.
    kwargs : mapping of str, default: None
        Keyword arguments of the same call.
    also : sequence of tuples, default: ()
        Arguments of further calls, as tuples; a dict that is the last of one has keyword arguments.
    name : str, default: None
        Of the library and its functions; by default the function's.
    target : str, default: None
        What it has code for, such as ``"x86-64-v2,x86-64-v4"``, or ``"aarch64"``; what the processor has is looked at
        when it runs. By default, all there is for this processor: x86-64-v2, x86-64-v3 and x86-64-v4.
    threads : str, default: "serial"
        How loops run: ``"serial"``, ``"pool"`` (threads of its own) or ``"openmp"``.
    blas : str, default: "none"
        ``"none"``: matrix products are loops; ``"cblas"``: they call a CBLAS.
    link_flags : sequence of str, default: ()
        Further arguments of the C compiler, such as ``["-lopenblas"]``.
    ptx : str, default: None
        A GPU architecture such as ``"sm_90"``, for which the kernels of each signature are written as PTX, beside the
        library, which does not use them. By default, none.

    Returns
    -------
    Exported
        `library`, the path of the shared library (None where there is no C compiler), `files`, and the `command` that
        links them.

    Raises
    ------
    ExportError
        The function or a setting cannot be exported; the text says why.
    """
    from functools import partial
    from importlib.metadata import version

    from parakeet_py.call.exporting import export as write
    from parakeet_py.export.errors import ExportError

    dispatcher = _dispatcher(self)
    if isinstance(dispatcher.given, (partial, types.MethodType)):
        what = "a bound method" if isinstance(dispatcher.given, types.MethodType) else "a partial object"
        raise ExportError(f"{dispatcher.given!r} is {what}: export a function that calls it")
    calls = [dispatcher.positional(args, dict(kwargs or {}))]
    for one in also:
        has_keywords = bool(one) and isinstance(one[-1], dict)
        calls.append(
            dispatcher.positional(tuple(one[:-1]), one[-1]) if has_keywords else dispatcher.positional(one, {})
        )
    kernels = None if ptx is None else partial(_ptx_of, dispatcher, target=ptx)
    config = dispatcher.config()
    return write(dispatcher.function, calls, folder, config, version("parakeet-py"), ptx=kernels, **settings)


def _explain(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """What happens in a call with these arguments: stages, kernels, storage, what is handed back."""
    from parakeet_py.call.explain.report import explain

    return explain(_dispatcher(self), args, kwargs)


def _roofline(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call the function on copies of these arguments, and say how near each kernel comes to this machine's limits."""
    from parakeet_py.call.explain.roofline import measure

    return measure(_dispatcher(self), args, kwargs, accelerate)


def _numba_type(self: Any) -> Any:
    """What numba takes this for in functions that it compiles: the Python function, compiled by numba.

    Raises
    ------
    AttributeError
        numba is not there.
    """
    dispatcher = _dispatcher(self)
    if dispatcher.numba is None:
        try:
            from numba import njit
        except ImportError:
            raise AttributeError("_numba_type_") from None
        dispatcher.numba = njit(dispatcher.function)
    return dispatcher.numba._numba_type_


def _dask_tokenize(self: Any) -> tuple[Any, ...]:
    """What Dask knows the function by, the same in every process."""
    from parakeet_py.call.interop.dask_tokens import token_of

    return token_of(self._dispatcher)


AcceleratedFunction.__dask_tokenize__ = _dask_tokenize
AcceleratedFunction._numba_type_ = property(_numba_type)
AcceleratedFunction.specializations = property(_specializations)
AcceleratedFunction.opaque_calls = property(_opaque_calls)
AcceleratedFunction.fell_back = property(_fell_back)
AcceleratedFunction.untyped_ir = _untyped_ir
AcceleratedFunction.typed_ir = _typed_ir
AcceleratedFunction.imp = _imp
AcceleratedFunction.llvm = _llvm
AcceleratedFunction.ptx = _ptx
AcceleratedFunction.compile = _compile
AcceleratedFunction.explain = _explain
AcceleratedFunction.roofline = _roofline
AcceleratedFunction.export = export
seal()

__all__ = ["AcceleratedFunction", "accelerate"]


fingerprint.compile_with(accelerate(devices="cpu", split=None, when="now"))
