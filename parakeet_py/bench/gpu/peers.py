"""The libraries that are compared on a GPU, where they are installed: each runs the program's own source.

CuPy gets it with `cupy` in the place of `np`, plain and through `cupy.fuse`; JAX with `jax.numpy`, jitted; PyTorch
compiles the NumPy source itself; numba vectorizes the scalar form of an elementwise function for CUDA. Arguments are
on the device beforehand.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.bench.peers import Absent, rebound
from parakeet_py.bench.program import Arguments, Program


@record
class Prepared:
    """A program made callable by a library; `synchronize` waits for what has been called."""

    call: Callable[..., Any]
    convert: Callable[[Arguments], Arguments]
    synchronize: Callable[[], Any]
    to_numpy: Callable[[Any], Any]


@record
class Peer:
    """A library: how it prepares a program, given the scalar form of an elementwise one."""

    name: str
    prepare: Callable[[Program, Any], Prepared]


def installed() -> tuple[list[Peer], dict[str, str]]:
    """The libraries that can use a GPU here, and why the others cannot."""
    found: list[Peer] = []
    missing: dict[str, str] = {}
    for name, check, some in (
        ("cupy", _cupy_ready, [Peer("cupy", _cupy), Peer("cupy fused", _cupy_fused)]),
        ("jax", _jax_ready, [Peer("jax", _jax)]),
        ("numba.cuda", _numba_ready, [Peer("numba.cuda", _numba)]),
        ("torch", _torch_ready, [Peer("torch.compile", _torch)]),  # compiles for seconds: it comes last
    ):
        try:
            if importlib.util.find_spec(name.partition(".")[0]) is None:
                raise ImportError("not installed")
            check()
        except Exception as error:
            missing[name] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        else:
            found += some
    return found, missing


def _vectorised(program: Program) -> Callable[..., Any]:
    """The form of a program in operations on whole arrays."""
    if program.numpy is None and not program.jax and program.loops is not None:
        raise Absent("written as Python loops over elements")
    return program.baseline


def _structure(leaf: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`leaf` on all items of nested tuples and lists."""

    def convert(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(convert(item) for item in value)
        return leaf(value)

    return convert


def _arrays(convert: Callable[[Any], Any]) -> Callable[[Arguments], Arguments]:
    return lambda arguments: tuple(convert(a) if isinstance(a, np.ndarray) else a for a in arguments)


# ---- CuPy ------------------------------------------------------------------------------------------------------------


def _cupy_ready() -> None:
    cupy = importlib.import_module("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 1:
        raise RuntimeError("finds no device")


def _with_cupy(program: Program, decorate: Callable[[Any], Any]) -> Prepared:
    cupy = importlib.import_module("cupy")
    function = decorate(rebound(_vectorised(program), lambda f: f, {"np": cupy}))
    back = _structure(lambda value: cupy.asnumpy(value) if isinstance(value, cupy.ndarray) else value)
    return Prepared(function, _arrays(cupy.asarray), cupy.cuda.Device().synchronize, back)


def _cupy(program: Program, scalar: Any) -> Prepared:
    return _with_cupy(program, lambda function: function)


def _cupy_fused(program: Program, scalar: Any) -> Prepared:
    return _with_cupy(program, importlib.import_module("cupy").fuse())


# ---- JAX -------------------------------------------------------------------------------------------------------------


def _jax_ready() -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # it would take most of the memory for itself
    jax = importlib.import_module("jax")
    if jax.default_backend() != "gpu":
        raise RuntimeError("runs on the CPU only")


def _jax(program: Program, scalar: Any) -> Prepared:
    if not program.jax:
        raise Absent("not expressible without a rewrite")
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    numpy: Any = importlib.import_module("jax.numpy")
    static = tuple(i for i, a in enumerate(program.arguments("XS")) if not isinstance(a, np.ndarray))
    jitted = jax.jit(rebound(program.function, lambda f: f, {"np": numpy}), static_argnums=static)
    return Prepared(
        lambda *given: jax.block_until_ready(jitted(*given)),
        _arrays(numpy.asarray),
        lambda: None,
        _structure(np.asarray),
    )


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def _torch_ready() -> None:
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise RuntimeError("finds no device")


def _torch(program: Program, scalar: Any) -> Prepared:
    torch = importlib.import_module("torch")
    function = torch.compile(torch.compiler.wrap_numpy(_vectorised(program)))
    back = _structure(lambda value: value.cpu().numpy() if isinstance(value, torch.Tensor) else value)
    return Prepared(function, _arrays(lambda a: torch.as_tensor(a).cuda()), torch.cuda.synchronize, back)


# ---- numba -----------------------------------------------------------------------------------------------------------


def _numba_ready() -> None:
    cuda: Any = importlib.import_module("numba.cuda")
    if not cuda.is_available():
        raise RuntimeError("finds no device")


def _numba(program: Program, scalar: Any) -> Prepared:
    if scalar is None:
        raise Absent("not elementwise")
    numba: Any = importlib.import_module("numba")
    cuda: Any = importlib.import_module("numba.cuda")
    signature, element = scalar
    function = numba.vectorize([signature], target="cuda")(element)
    back = _structure(lambda value: value.copy_to_host() if hasattr(value, "copy_to_host") else value)
    return Prepared(function, _arrays(cuda.to_device), cuda.synchronize, back)


PEERS: Mapping[str, str] = {
    "cupy": "CuPy",
    "cupy fused": "CuPy fused",
    "jax": "JAX",
    "torch.compile": "torch.compile",
    "numba.cuda": "numba-cuda",
}
