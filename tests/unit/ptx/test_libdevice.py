"""NVIDIA's elementary functions on GPUs: only where they are asked for, all of them, as accurate as they should be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.ptx import libdevice
from tests.ptxas import PTXAS, assemble, kernels

installed = pytest.mark.skipif(libdevice.find() is None, reason="libdevice is not installed")


def several(x: Any, y: Any) -> Any:
    small = x / (1 + np.abs(x))
    return (
        (np.exp(small), np.exp2(small), np.expm1(small), np.log(y), np.log2(y), np.log10(y), np.log1p(y)),
        (np.sin(x), np.cos(x), np.tan(x), np.arcsin(small), np.arccos(small), np.arctan(x)),
        (np.sinh(small), np.cosh(small), np.tanh(x), np.arcsinh(x), np.arccosh(1 + y), np.arctanh(small)),
        (np.cbrt(x), y ** small, np.arctan2(x, y), np.hypot(x, y)),
    )  # fmt: skip


def of_python(x: Any) -> Any:
    out = np.empty((3, len(x)))
    for i in range(len(x)):
        out[0, i], out[1, i], out[2, i] = math.erf(x[i]), math.gamma(x[i] * x[i] + 1), math.lgamma(x[i] * x[i] + 1)
    return out


@installed
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-9, 9, 300).astype(dtype), rng.uniform(0.01, 9, 300).astype(dtype)
    text = accelerate(libdevice=True)(several).ptx(x, y)
    assert "__nv_" not in text and (dtype == "f8" or "ex2.approx" in text)
    function = accelerate(libdevice=True)(several)
    with options(devices="emulated"):
        found = function(x, y)
    for one, other in zip(np.concatenate(found), np.concatenate(several(x, y)), strict=True):
        np.testing.assert_allclose(one, other, rtol=8 * np.finfo(dtype).eps, atol=2 * np.finfo(dtype).eps)


@installed
def test_functions_of_python() -> None:
    x = np.linspace(-3, 3, 50)
    with options(devices="emulated"):
        np.testing.assert_allclose(accelerate(libdevice=True)(of_python)(x), of_python(x), rtol=1e-14, atol=1e-15)


@installed
@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_120"])
def test_kernels_are_assembled(architecture: str, tmp_path: Path) -> None:
    x = np.ones(8)
    assemble(kernels(accelerate(libdevice=True)(several), (x, x), architecture), architecture, tmp_path)


def test_without_it_there_are_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(8, "f4")
    own = accelerate(np.exp).ptx(x)
    assert "approx" not in own
    monkeypatch.setattr(libdevice, "find", lambda: None)
    assert accelerate(libdevice=True)(np.exp).ptx(x) == own
