"""How kernels touch memory, as the emulator counts it: whole sectors, nothing twice, few instructions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import team_of
from parakeet_py.hybrid.execute.execution import execute
from parakeet_py.hybrid.plan.device_plan import DevicePlan, Form
from parakeet_py.ptx import emulator
from parakeet_py.ptx.emulator.execute.counters import Counters


def profile(function: Any, *args: Any) -> tuple[Counters, Any]:
    """What the kernels of a call do on an emulated device, and what the call gives."""
    device = EmulatedDevice("emulated:profile")
    device._device = emulator.Device(1 << 28, profile=True)
    dispatcher = accelerate(function)._dispatcher
    plan = device_plan_of(dispatcher.compiled_for_normal(args))
    (result,) = execute(plan, team_of(device), list(args))
    return device._device.counters, result


@pytest.mark.parametrize("order", ["CC", "CF", "FF", "FC"])
def test_accesses_are_coalesced_whatever_the_layout(order: str) -> None:
    def plus_transposed(a: Any, b: Any) -> Any:
        return a.T + b

    rng = np.random.default_rng(0)
    a, b = np.asarray(rng.random((128, 64)), order=order[0]), np.asarray(rng.random((64, 128)), order=order[1])
    counters, result = profile(plus_transposed, a, b)
    assert (result == a.T + b).all()
    assert counters.sectors * 32 == 3 * a.nbytes  # each sector of the three arrays is touched once
    assert counters.warp_accesses == 3 * a.size // 32


def test_a_stencil_loads_what_neighbouring_points_share_once() -> None:
    def mean(u: Any) -> Any:
        return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

    u = np.random.default_rng(0).random((66, 66))
    counters, result = profile(mean, u)
    assert (result == mean(u)).all()
    assert counters.bytes_loaded["global"] == 8 * 64 * 64 * (
        3.5
    )  # of a column's six elements four twice: 14 for 4 points
    assert counters.instructions < 30 * 64 * 64


@pytest.mark.parametrize("shape", [(300, 1000), (1000, 3), (3, 1000), (20, 30, 40)])
def test_spaces_are_walked_without_long_division(shape: tuple[int, ...]) -> None:
    def shifted(a: Any) -> Any:
        return a[..., 1:] + a[..., :-1]

    text = accelerate(shifted).ptx(np.ones(shape))
    assert not re.search(r"(div|rem)\.[su]64", text)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_matrices_load_runs_and_fuse(dtype: str) -> None:
    def product(a: Any, b: Any) -> Any:
        return a @ b + 1

    rng = np.random.default_rng(0)
    a, b = rng.random((70, 1100)).astype(dtype), rng.random((1100, 40)).astype(dtype)
    text = accelerate(product).ptx(a, b)
    inner = text.split(".entry")[1]
    if dtype == "f4":
        assert re.search(r"ld\.shared\.v[24]", inner) and "fma.rn" in inner
    else:
        assert "cp.async" in inner and "mma.sync" in inner
    assert "fma" not in text.split(".entry")[-1]  # + 1 is not part of the product
    counters, result = profile(product, a, b)
    assert np.allclose(result, product(a, b), rtol=1e-5 if dtype == "f4" else 1e-12)
    assert counters.launches >= 3  # parts of the long axis, their sum, and + 1


@pytest.mark.parametrize("orders", ["CC", "FC"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_matrices_are_loaded_by_runs(orders: str, dtype: str) -> None:
    """Where lines are of whole runs, doubles for tensor cores; what comes out is the same, bit for bit."""

    def product(a: Any, b: Any) -> Any:
        return a @ b

    rng = np.random.default_rng(0)
    a, b = (
        rng.random(shape).astype(dtype).copy(order) for shape, order in zip([(68, 36), (36, 72)], orders, strict=True)
    )
    wide = np.zeros((68, 72), dtype)
    wide[:, ::2] = a
    by_runs, result = profile(product, a, b)
    one_by_one, same = profile(product, wide[:, ::2], b)
    assert np.array_equal(result, same) and np.allclose(result, a @ b, rtol=1e-5)
    texts = accelerate(product).ptx(a, b).split(".entry ")[1:]
    name = {"f4": "_by_runs_", "f8": "_tensor_"}[dtype]
    kernels = [text for text in texts if name in text.partition("(")[0]]
    assert len(kernels) == 3  # two sizes of tiles, and parts of small ones
    for kernel in kernels:  # both matrices, the first slice and those ahead
        found = len(re.findall(r"ld\.global(?:\.nc)?\.v[24]", kernel))
        if dtype == "f4":
            assert found == 4 or ("_parts_" in kernel and found >= 3)
            assert "ld.shared.v" in kernel and not re.search(r"ld\.shared\.b", kernel)
        else:  # a run of each, of large tiles two of one: four slices, past registers
            runs = 2 if "_small_" in kernel.partition("(")[0] else 3
            assert found == 0 and kernel.count("cp.async.cg.shared.global") == 4 * runs
    assert by_runs.instructions < one_by_one.instructions


@pytest.mark.parametrize("narrow", [True, False])
def test_kernels_compute_the_same_in_64_bits_and_beside_whole_runs(
    narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forms for more elements than 32 bits count, and for arrays that do not start at 16 bytes."""
    forms: list[Form] = []
    form = DevicePlan.form

    def chosen(self: DevicePlan, *given: Any) -> Form:
        found = form(self, *given)
        forms.append(found if narrow else found._replace(narrow=False))
        return forms[-1]

    monkeypatch.setattr(DevicePlan, "form", chosen)

    def everything(x: Any, m: Any, c: Any) -> Any:
        return (
            x + x,
            m.T + m[::-1].T,
            x.sum(),
            m.sum(axis=0),
            m.max(axis=1),
            np.cumsum(c),
            x[x > 0.5],
            np.sort(x),
            np.argsort(c, kind="stable"),
            np.bincount(c),
            0.5 * (m[1:-1] + m[:-2] + m[2:]),
            m.T @ m,
        )

    memory = np.random.default_rng(1).random(1 + 40 * 33)
    memory[:] = np.round(memory * 8) / 8  # sums are exact
    x, m = memory[:600], memory[1:].reshape(40, 33)  # uploaded together
    c = np.arange(1, 1026, dtype=np.int8 if narrow else np.int64)[1:] % 7
    with options(devices="emulated", cache=False):
        found = accelerate(everything)(x, m, c)
    for one, other in zip(found, everything(x, m, c), strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype
    assert len(forms) >= 12 and {one.narrow for one in forms} == {narrow} and not all(one.aligned for one in forms)
