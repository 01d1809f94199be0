"""Row programs: operators along the rows of one space as one kernel, for rows of every length."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import device_plan_of
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions

RNG = np.random.default_rng(0)
# a warp has a row, a block, a block with elements in memory; apart: short rows, a few long ones
ONE_KERNEL, APART = [(20, 40), (9, 300), (2, 1500), (2, 2500)], [(50, 9), (1, 33_000)]


def softmax(x: Any, weight: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any, weight: Any) -> Any:
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weight


def rmsnorm(x: Any, weight: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def logsumexp(x: Any, weight: Any) -> Any:
    top = x.max(axis=-1)
    return top + np.log(np.exp(x - top[..., None]).sum(axis=-1))


def cross_entropy(x: Any, weight: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=-1, keepdims=True)) - shifted
    return (losses * weight).sum(axis=-1)


def standardize(x: Any, weight: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)


def variance(x: Any, weight: Any) -> Any:
    return x.var(axis=-1)


def weights_and_places(x: Any, weight: Any) -> Any:
    """What is read again also leaves; a place beside a number."""
    top = x.argmax(axis=-1)
    e = np.exp(x - x.max(axis=-1)[..., None])
    return e, e / e.sum(axis=-1)[..., None], top, top * 2


PROGRAMS = [softmax, layernorm, rmsnorm, logsumexp, cross_entropy, standardize, variance, weights_and_places]


def launches(function: Any, x: Any, weight: Any) -> tuple[Any, list[str]]:
    with options(devices="emulated", strict=True):
        found = function(x, weight)
    plan = device_plan_of(function._dispatcher.compiled_for_normal((x, weight)))
    assert plan.last_run is not None
    return found, [plan.kernels[number].name for (number, _), times in plan.last_run.launches for _ in range(times)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_of_every_length(program: Any) -> None:
    function = accelerate(program)
    for shape in (*ONE_KERNEL, *(APART if program in (softmax, variance) else ())):
        x, weight = RNG.standard_normal(shape).astype(np.float32), RNG.random(shape[-1]).astype(np.float32)
        found, kernels = launches(function, x, weight)
        wanted = program(x, weight)
        for one, other in zip(
            *((value,) if isinstance(value, np.ndarray) else value for value in (found, wanted)), strict=True
        ):
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(one, other, 2e-5, 1e-5)
        if shape in ONE_KERNEL and program is not weights_and_places:
            assert len(kernels) == 1 and "_rows_by_" in kernels[0], kernels
        elif shape in APART:
            assert len(kernels) > 1


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4", "c8"])
def test_dtypes_and_leading_axes(dtype: str) -> None:
    def centred(x: Any) -> Any:
        e = x - x.sum(axis=-1, keepdims=True) // 3 if x.dtype.kind == "i" else x / abs(x).sum(axis=-1, keepdims=True)
        return e * e.sum(axis=-1, keepdims=True)

    x = RNG.integers(-9, 9, (2, 3, 70)).astype(dtype)
    with options(devices="emulated", strict=True):
        found = accelerate(centred)(x)
    wanted = centred(x)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, 1e-2 if dtype == "f2" else 1e-5, 1e-5)


def test_what_is_no_row_program() -> None:
    """Columns, rows of another length, elements of another row, memory that changes in between."""

    def columns(x: Any, weight: Any) -> Any:
        return x - x.mean(axis=0)

    def turned(x: Any, weight: Any) -> Any:
        return x - x.mean(axis=1)[::-1, None]

    def shorter(x: Any, weight: Any) -> Any:
        return x[:, 1:] - x.sum(axis=1)[:, None]

    def changed(x: Any, weight: Any) -> Any:
        top = x.max(axis=1)
        x[0, 0] = 100.0
        return x - top[:, None]

    for program in (columns, turned, shorter, changed):
        x, weight = RNG.integers(-9, 9, (30, 30)).astype(float), np.ones(30)
        wanted = program(x.copy(), weight)
        found, kernels = launches(accelerate(program), x, weight)
        np.testing.assert_allclose(found, wanted, 1e-14, 1e-14)
        assert not any("_rows_by_" in name and "reduce" not in name for name in kernels)


def test_a_row_that_is_nan_or_infinite() -> None:
    x = RNG.standard_normal((4, 50))
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        found, _ = launches(accelerate(softmax), x, x[0])
        np.testing.assert_allclose(found, softmax(x, x[0]), 1e-12)


def test_equal_bits_in_every_run_and_beside_others() -> None:
    """The order of sums follows from the length of a row alone."""
    function, x = accelerate(layernorm), RNG.standard_normal((40, 300)).astype(np.float32)
    first, _ = launches(function, x, x[0])
    again, _ = launches(function, x[7:11].copy(), x[0])
    assert np.array_equal(first[7:11], again)


def test_elements_stay_in_registers() -> None:
    """The exponential is computed once for each element; no local memory."""
    text = accelerate(softmax).ptx(np.ones((64, 128), np.float32), np.ones(128, np.float32))
    (kernel,) = re.findall(r"\.entry softmax_rows_by_warp_\d+\(.*?\n}", text, re.DOTALL)
    assert ".local" not in kernel and kernel.count("st.global") == 8  # of a lane's eight elements
    assert kernel.count("ld.global.nc") == 16 and kernel.count("ex2") <= 8  # the maximum, the exponential


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="ptxas and nvdisasm are not installed")
@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_120"])
def test_machine_code(target: str, tmp_path: Path) -> None:
    """No spills, and so few registers that nearly all threads of a multiprocessor fit; each element is loaded in two
    passes and stored once, and its exponential is not computed again for the quotient."""
    text = accelerate(softmax).ptx(np.ones((64, 128), "f4"), np.ones(128, "f4"), target=target)
    code, resources = assembled(text, target, tmp_path)
    kernels = {name: used for name, used in resources.items() if "_rows_by_" in name and "reduce" not in name}
    assert len(kernels) == 3 and all(spilled == 0 and used <= 48 for spilled, used in kernels.values()), kernels
    (by_warp,) = (names for name, names in instructions(code).items() if "softmax_rows_by_warp" in name)
    assert sum(name.startswith("LDG") for name in by_warp) == 2 * 8
    assert sum(name.startswith("STG") for name in by_warp) == 8
    assert sum(name.startswith("SHFL") for name in by_warp) == 2 * 6  # five to combine, one to hand on
    assert not any(name.startswith(("LDL", "STL")) for name in by_warp)
