"""Tensors of PyTorch in the host's memory mean what they mean to Python, and cost no more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate

torch = pytest.importorskip("torch")

KINDS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: torch.tensor([1, 0, 3], dtype=getattr(torch, name))
       for name in ("float32", "float64", "int32", "int64", "bool", "bfloat16", "float16", "complex64")},
    "requires_grad": lambda: torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
    "not contiguous": lambda: torch.arange(6.0)[::2],
    "0-d": lambda: torch.tensor(2.5),
    "conjugate": lambda: torch.tensor([1 + 2j, 3, 4j]).conj(),
}  # fmt: skip


def operators(t):
    return t * 2 + 1, t / 2, -t, t > 1, t @ t, np.float32(2) * t


def functions(t):
    return np.sin(t), np.where(t > 1, t, 0)


def reduced(t):
    return t.sum(), t.mean(axis=0)


def by_numpy(t):
    return np.sum(t)


def converted(t):
    return np.asarray(t) * 2, t.shape, len(t)


def over_memory(t):
    t.numpy()[...] = 3
    return t.numpy() + 1


def stored(t):
    t[0] = 7
    t += 1
    return t


def looped(t):
    total = 0.0
    for i in range(len(t)):
        total += t[i] * 2
    return total


def of_a_list(ts):
    return ts[0] + ts[1], [one * 2 for one in ts]


def of_a_dict(d):
    return d["a"] * 2 + d["b"]


WRAPPED: dict[Callable[..., Any], Callable[[Any], Any]] = {
    of_a_list: lambda t: [t, t],
    of_a_dict: lambda t: {"a": t, "b": t + 1},
}
FUNCTIONS = (operators, functions, reduced, by_numpy, converted, over_memory, stored, looped, of_a_list, of_a_dict)


def described(value: Any) -> Any:
    """All there is to be seen of a value."""
    if isinstance(value, list | tuple):
        return type(value), [described(one) for one in value]
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, value.shape, value.stride(), value.requires_grad, str(value.tolist())
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, value.strides, str(value.tolist())
    return type(value), repr(value)


def outcome(function: Callable[..., Any], argument: Any) -> Any:
    try:
        result = described(function(argument))
    except Exception as error:
        result = type(error), str(error)
    return result, described(argument)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_python(function: Callable[..., Any]) -> None:
    made, wrapped = accelerate(when="now")(function), WRAPPED.get(function, lambda t: t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, tensor in KINDS.items():
            try:
                wrapped(tensor())
            except Exception:  # PyTorch has no such operation
                continue
            for _ in range(4):
                assert repr(outcome(made, wrapped(tensor()))) == repr(outcome(function, wrapped(tensor()))), name


def test_their_memory_as_an_array() -> None:
    """What howto.md says: nothing is copied."""

    @accelerate(when="now", strict=True)
    def running(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]
        return x

    t = torch.arange(6.0)[::2]
    result = running(t.numpy())
    assert torch.from_numpy(result).data_ptr() == t.data_ptr() and t.tolist() == [0.0, 2.0, 6.0]


@pytest.mark.parametrize(
    "convert", [np.asarray, np.from_dlpack, lambda t: t.numpy()], ids=["asarray", "dlpack", "numpy"]
)
def test_made_an_array_in_the_function(convert: Callable[[Any], Any]) -> None:
    @accelerate(when="now")
    def running(t):
        x = convert(t)
        for i in range(1, len(x)):
            x[i] += x[i - 1]
        return t, x

    for _ in range(3):
        t = torch.arange(4.0)
        same, array = running(t)
        assert same is t and t.tolist() == array.tolist() == [0.0, 1.0, 3.0, 6.0]
        assert torch.from_numpy(array).data_ptr() == t.data_ptr()
    assert running.specializations and len(running.opaque_calls) == 1 and not running.fell_back
