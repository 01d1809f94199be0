"""PTX text: what is in it, for whom it is made, and that the assembler accepts it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.bench.programs import select
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.hybrid.plan.device_plan import DevicePlan, Form
from parakeet_py.imp import ir
from tests.ptxas import ARCHITECTURES, PTXAS, assemble, kernels


def axpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + y


def test_loads_are_wide_and_read_only() -> None:
    text = accelerate(axpy).ptx(np.float32(2), np.ones(8, "f4"), np.ones(8, "f4"))
    assert "ld.global.nc.v4" in text and "st.global.v4" in text


def test_no_other_process_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("another process")

    for place in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"):
        monkeypatch.setattr(place, refuse)
    with options(cache=False):
        assert ".entry" in accelerate(axpy).ptx(np.float32(3), np.ones(8, "f4"), np.ones(8, "f4"))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, n: np.repeat(x, n), (np.ones(9), np.arange(9))),
        (lambda x: np.percentile(x, 30, axis=0), (np.ones((4, 5)),)),
        (lambda x, y: np.sum(np.searchsorted(x, y)), (np.ones(9), np.ones(9))),
        (lambda x: np.histogram2d(x, x, 3)[0], (np.ones(9),)),
    ],
    ids=["repeat", "percentile", "searches", "histogram"],
)
def test_nothing_is_walked_through_by_one_thread(function: Any, args: tuple[Any, ...]) -> None:
    plan = device_plan_of(accelerate(function)._dispatcher.compiled_for_normal(args))
    assert not any(isinstance(s, ir.For | ir.While) for k in plan.kernels if k.single for s in ir.walk(k.function.body))


def test_no_contraction_unless_allowed() -> None:
    args = 2.0, np.ones(8), np.ones(8)
    assert "fma" not in accelerate(axpy).ptx(*args)
    assert "fma.rn.f64" in accelerate(contract=True)(axpy).ptx(*args)


def test_architectures() -> None:
    function = accelerate(axpy)
    assert ".target sm_90" in function.ptx(2.0, np.ones(8), np.ones(8), target="sm_90")
    with pytest.raises(ValueError, match="sm_90"):
        function.ptx(2.0, np.ones(8), np.ones(8), target="sm_12")


def test_names_do_not_change() -> None:
    args = 2.0, np.ones(8), np.ones(8)
    assert accelerate(axpy).ptx(*args) == accelerate(axpy).ptx(*args)
    assert ".entry axpy_map_0(" in accelerate(axpy).ptx(*args)


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("program", select([]), ids=lambda program: program.name)
def test_benchmark_programs_are_assembled(program: Any, tmp_path: Path) -> None:
    function = accelerate(program.function)
    for architecture in ARCHITECTURES:
        assemble(kernels(function, program.arguments("XS"), architecture), architecture, tmp_path)


# ---- forms of a kernel -----------------------------------------------------------------------------------------------


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each launch was of a narrow kernel."""
    found: list[bool] = []
    choose = DevicePlan.form

    def remember(self: DevicePlan, *args: Any) -> Any:
        form = choose(self, *args)
        found.append(form.narrow)
        return form

    monkeypatch.setattr(DevicePlan, "form", remember)
    return found


LIMIT = 1 << 31
DEVICE: Any = object()


@pytest.mark.parametrize(
    ("k", "narrow"), [(LIMIT - 1, True), (LIMIT, False), (-LIMIT, True), (-LIMIT - 1, False), (1 << 40, False)]
)
def test_integers_at_the_limit(k: int, narrow: bool, forms: list[bool]) -> None:
    function = accelerate(lambda x, k: x * k + k // 3)
    x = np.arange(-3, 4)
    with options(devices="emulated"):
        assert np.array_equal(function(x, k), x * k + k // 3)
    assert forms == [narrow]


@pytest.mark.parametrize(("extent", "narrow"), [(LIMIT - 1, True), (LIMIT, False), (LIMIT + 5, False)])
def test_extents_at_the_limit(extent: int, narrow: bool, forms: list[bool]) -> None:
    """An array of so many elements that all lie in one place, and one that is read backwards."""
    many = np.broadcast_to(np.float64(3), (extent,))
    places = np.array([0, extent - 1, -extent])
    function = accelerate(lambda many, i: many[i] + len(many))
    with options(devices="emulated"):
        assert np.array_equal(function(many, places), [3.0 + extent] * 3)
        with pytest.raises(IndexError, match=f"index {extent} is out of bounds for axis 0 with size {extent}"):
            function(many, np.array([1, extent]))
    assert forms and set(forms) == {narrow}


def test_threads_and_strides_at_the_limit() -> None:
    plan = device_plan_of(accelerate(lambda x: x[::2] * 2)._dispatcher.compiled_for((np.ones(5)[::-1],), {}))
    threads = plan.kernels[0].threads
    codes = plan.codes[0][False]
    place = codes.index("P") + 2  # the stride comes after the extent
    values = [1] * len(codes)
    assert plan.codes[0][True] == codes.replace("q", "i") and codes[place] == "q"
    assert plan.form(DEVICE, 0, LIMIT // threads, True, values) == Form(True, True)
    assert not plan.form(DEVICE, 0, LIMIT // threads + 1, True, values).narrow
    for stride in (LIMIT, -LIMIT - 1):
        values[place] = stride
        assert plan.form(DEVICE, 0, 1, False, values) == Form(False, False)


def test_narrow_kernels_compute_in_32_bits() -> None:
    plan = device_plan_of(
        accelerate(lambda a, b: a.T * b)._dispatcher.compiled_for((np.ones((40, 50)), np.ones((50, 40))), {})
    )
    narrow, wide = (plan.ptx("sm_90", 0, Form(True, narrow)) for narrow in (True, False))
    assert len(re.findall(r"\.[bsu]64\s", narrow)) < len(re.findall(r"\.[bsu]64\s", wide))
    assert ".param .u32" in narrow and ".param .u32" not in wide


def test_elementary_functions_keep_neighbours_together() -> None:
    """Functions that branch do not come between the loads of a thread's points, nor between its stores."""
    text = accelerate(lambda x: np.exp(-x) * np.sin(x)).ptx(np.ones(1000, np.float32))
    assert text.count("ld.global.nc.v4.b32") == text.count("st.global.v4.b32") == 1


def test_counts_are_of_32_bits_in_shared_memory() -> None:
    text = accelerate(lambda i: np.bincount(i, minlength=256)).ptx(np.ones(1000, np.int64))
    assert "atom.shared.add.u32" in text and "atom.shared.add.u64" not in text
