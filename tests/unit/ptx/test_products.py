"""Products of matrices on a GPU: tensor cores, tiles, and the reductions that are products."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.hybrid.devices.device import KernelError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import team_of
from parakeet_py.hybrid.execute.execution import execute
from parakeet_py.hybrid.plan import device_plan
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.imp.ir import WarpTile
from parakeet_py.ptx.kernels import bulk_products, tensor_core_cost
from parakeet_py.ptx.kernels.warp_products import GROUPED
from parakeet_py.ptx.skeletons import tensor_core_products, tiled_products
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions


def product(a: Any, b: Any) -> Any:
    return a @ b


def matrices(dtype: str, rows: int, depth: int, columns: int, layout: str = "CC") -> tuple[Any, Any]:
    rng = np.random.default_rng(rows + columns)
    shapes = (rows, depth), (depth, columns)
    if np.dtype(dtype).kind == "f":
        made = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    else:
        made = [rng.integers(-90, 90, shape).astype(dtype) for shape in shapes]
    return tuple(np.asarray(a, order=order) for a, order in zip(made, layout, strict=True))  # type: ignore[call-overload,return-value]


def launched(function: Any, args: tuple[Any, ...]) -> list[str]:
    """The kernels of the last call, by what `explain` says of them."""
    lines = str(function.explain(*args)).splitlines()
    return [line.split()[0] for line in lines if " x 256 threads" in line]


def tf32(a: Any) -> Any:
    """Rounded to ten bits behind the point, halves away from zero."""
    return ((a.view("i4") + 0x1000) & ~0x1FFF).view("f4")


@pytest.mark.parametrize("layout", ["CC", "FF"])
def test_float16(layout: str) -> None:
    """Products are exact, sums are of float32: as NumPy has it, but for the last place."""
    args = matrices("f2", 40, 72, 56, layout)
    function = accelerate(product)
    with options(devices="emulated"):
        result = function(*args)
        assert any("matmul_tensor" in name for name in launched(function, args))
    assert result.dtype == np.float16
    np.testing.assert_array_max_ulp(result, product(*args), 1)


@pytest.mark.parametrize("layout", ["CF", "FC"])
def test_tf32_where_it_is_asked_for(layout: str) -> None:
    args = matrices("f4", 40, 72, 56, layout)
    args[0][0, 0], args[0][3, 3] = np.inf, np.nan
    function = accelerate(fastmath=True)(product)
    with options(devices="emulated"):
        result = function(*args)
        assert any("matmul_tensor" in name for name in launched(function, args))
    exact = tf32(args[0]).astype("f8") @ tf32(args[1]).astype("f8")
    assert np.array_equal(np.isnan(result), np.isnan(exact))
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
    assert not np.allclose(result[5:], product(*args)[5:], rtol=1e-6)
    assert "mma" not in accelerate(product).ptx(*args)


def test_a_long_shared_axis_in_parts() -> None:
    args = matrices("f2", 24, 560, 16)
    function = accelerate(product)
    with options(devices="emulated"):
        result = function(*args)
        assert [name for name in launched(function, args) if "matmul_tensor_small_parts" in name]
    np.testing.assert_array_max_ulp(result, product(*args), 1)


@pytest.mark.parametrize(
    ("dtype", "extents"), [("i4", (33, 65, 70)), ("i1", (40, 20, 30)), ("u8", (20, 520, 20)), ("f2", (33, 65, 71))]
)
def test_reductions_that_are_products(dtype: str, extents: tuple[int, int, int]) -> None:
    args = matrices(dtype, *extents)
    function = accelerate(product)
    with options(devices="emulated"):
        assert np.array_equal(function(*args), product(*args))
        assert any("matmul" in name for name in launched(function, args))


def test_reductions_that_are_none() -> None:
    """Other combines and elements, and slim ones, stay reductions."""

    def several(a: Any, b: Any) -> Any:
        return (
            np.max(a[:, :, None] * b[None, :, :], axis=1),
            np.sum(a[:, :, None] * b[None, :, :] + 1, axis=1),
            np.sum(a[:, :, None] * a[:, :, None], axis=1),
            a[:3] @ b,
        )

    args = matrices("i4", 20, 20, 20)
    function = accelerate(several)
    with options(devices="emulated"):
        for one, other in zip(function(*args), several(*args), strict=True):
            assert np.array_equal(one, other)
        assert not any("matmul" in name for name in launched(function, args))


def _tensor_kernels(plan: DevicePlan, architecture: str) -> list[str]:
    return [
        plan.ptx(architecture, number)
        for number, kernel in enumerate(plan.kernels)
        if "tensor" in kernel.name and "small" not in kernel.name
    ]


@pytest.mark.parametrize("layout", ["CC", "FF", "CF", "FC"])
def test_float64(layout: str) -> None:
    """Products by tensor cores have the bits of those by threads, on each architecture, in parts and beyond tiles."""
    function = accelerate(product)
    for extents in ((16, 20, 66), (16, 528, 16)) if layout == "CF" else ((16, 20, 24),):
        args = matrices("f8", *extents, layout)
        args[0][1, 2], args[1][3, 4] = np.inf, np.nan
        apart = np.zeros((extents[0], 2 * extents[1]))[:, ::2]  # with gaps: by threads
        apart[:] = args[0]
        with options(devices="emulated"):
            by_threads = function(apart, args[1])
            assert not any("tensor" in name for name in launched(function, (apart, args[1])))
            assert np.array_equal(function(*args), by_threads, equal_nan=True)
            assert any("tensor_small" in name for name in launched(function, args))
        np.testing.assert_allclose(by_threads, product(*args), 1e-12, 1e-12)
        if layout != "CF" or extents[1] > 50:
            continue
        for architecture in ("sm_75", "sm_90"):
            device = EmulatedDevice(f"emulated:{architecture}", architecture=architecture)
            plan = device_plan_of(function._dispatcher.compiled_for_normal(args))
            (result,) = execute(plan, team_of(device), list(args))
            assert np.array_equal(result, by_threads, equal_nan=True)


@pytest.mark.parametrize(("dtype", "gap", "by_tensor_cores"), [("f8", 2, True), ("f8", 3, False), ("f2", 8, True)])
def test_windows_of_matrices(dtype: str, gap: int, by_tensor_cores: bool) -> None:
    """Lines with gaps between them, whose beginnings are whole pieces apart."""
    a, b = matrices(dtype, 16, 24, 32)
    wide = np.full((16, 24 + gap), np.nan, dtype)
    wide[:, :24] = a
    function = accelerate(product)
    with options(devices="emulated"):
        result = function(wide[:, :24], b)
        assert any("tensor" in name for name in launched(function, (wide[:, :24], b))) == by_tensor_cores
        assert np.array_equal(result, function(a, b))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_large_tiles(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the bits of small ones."""
    args = matrices(dtype, 136, 40, 72)
    found = []
    for many, name in ((1000, "tensor_small"), (2, "tensor")):
        monkeypatch.setattr(tensor_core_products, "MANY_TILES", many)
        function = accelerate(fastmath=True)(product)
        with options(devices="emulated", cache=False):
            found.append(function(*args))
            assert any(name in kernel and ("small" in kernel) == (many > 2) for kernel in launched(function, args))
    assert np.array_equal(*found)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_kernels_for_tensor_cores(dtype: str, tmp_path: Path) -> None:
    """Pieces of 16 bytes all the way, past registers where the architecture can, and what each has to multiply."""
    args = matrices(dtype, 64, 64, 64)
    function = accelerate(fastmath=True)(product)
    plan = device_plan_of(function._dispatcher.compiled_for_normal(args))
    targets = {"f2": ("sm_75", "sm_80", "sm_120"), "f4": ("sm_75", "sm_90"), "f8": ("sm_75", "sm_80", "sm_90")}[dtype]
    copies = 3 * 4  # three slices of two pieces of each matrix, four of two and one of doubles
    for architecture in targets:
        (text,) = _tensor_kernels(plan, architecture)
        old = architecture == "sm_75"
        assert len(re.findall(r"ld\.global\.nc\.v[24]\.b(?:32|64)", text)) == (copies if old else 0)
        assert text.count("cp.async.cg.shared.global") == (0 if old else copies)
        assert "ld.global.nc.b" not in text and ".local" not in text
        assert (".minnctapersm 2" in text) != (old and dtype != "f2")
        shape = {"f2": "m16n8k8" if old else "m16n8k16", "f4": "m16n8k8.row.col.f32.tf32"}.get(
            dtype, "m16n8k8.row.col.f64" if architecture == "sm_90" else "m8n8k4.row.col.f64"
        )
        assert (f"mma.sync.aligned.{shape}" in text) != (old and dtype != "f2")
        if PTXAS is None or NVDISASM is None:
            continue
        code, resources = assembled(text, architecture, tmp_path)
        ((spilled, registers),) = resources.values()
        assert spilled == 0 and (registers <= 128 or (old and dtype != "f2"))
        (names,) = instructions(code).values()
        wanted = {
            ("f2", "sm_75"): ("HMMA.1688.F32", 64),
            ("f2", "sm_80"): ("HMMA.16816.F32", 32),
            ("f2", "sm_120"): ("HMMA.16816.F32", 32),
            ("f4", "sm_90"): ("HMMA.1688.F32.TF32", 32),
            ("f8", "sm_80"): ("DMMA.884", 32),
            ("f8", "sm_90"): ("DMMA.16x8x8", 8),
        }.get((dtype, architecture))
        if wanted is not None:
            assert names.count(wanted[0]) == wanted[1]
        if not old:
            assert names.count("LDGSTS.E.BYPASS.128") == copies
            assert sum(name.startswith("BAR") for name in names) == 1  # threads meet once for a slice
            assert dtype != "f2" or sum(name.startswith("LDSM.16") for name in names) == 12


@pytest.mark.parametrize("layout", ["CC", "FF"])
def test_groups_of_warps(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`wgmma`, where the architecture has it: factors along either axis, from the slices that are copied for `mma`, no
    spills, and one wait for each slice."""
    monkeypatch.setattr(tensor_core_products, "MANY_TILES", 2)
    args = matrices("f2", 136, 72, 200, layout)
    plan = device_plan_of(accelerate(product)._dispatcher.compiled_for_normal(args))
    device = EmulatedDevice("emulated:groups", architecture="sm_90a")
    (found,) = execute(plan, team_of(device), list(args))
    np.testing.assert_allclose(found, product(*(one.astype("f8") for one in args)), 2**-11, 1e-5)
    (text,) = _tensor_kernels(plan, "sm_90a")
    statements = re.sub(r"//.*", "", text).split(";")
    fence = next(number for number, one in enumerate(statements) if "fence.proxy.async.shared::cta" in one)
    assert "cp.async.wait_group" in statements[fence - 1] and "bar.sync" in statements[fence + 1]
    assert text.count("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 2
    if layout == "FF":
        return
    (key,) = (key for key, one in plan._ptx.items() if one == text)
    monkeypatch.setitem(plan._ptx, key, re.sub(r"bar\.sync\s+0;", "", text))
    plan._modules.clear()
    with pytest.raises(KernelError, match="races with a write"):
        execute(plan, team_of(device), list(args))
    if PTXAS is None or NVDISASM is None:
        return
    code, resources = assembled(text, "sm_90a", tmp_path)
    ((spilled, registers),) = resources.values()
    (names,) = instructions(code).values()
    assert spilled == 0 and registers <= 128  # two blocks fit
    assert names.count("HGMMA.64x128x16.F32") == 2 and not any(name.startswith(("HMMA", "LDSM")) for name in names)
    assert names.count("LDGSTS.E.BYPASS.128") == 12 and names.count("WARPGROUP.DEPBAR.LE") == 1


@pytest.mark.parametrize("layout", ["CC", "FF"])
def test_boxes(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices by bulk copies (TMA), along either axis, where they are deep enough: one warp asks for boxes, two groups
    multiply them, and a slice's place is given back when its product is there."""
    monkeypatch.setattr(tensor_core_products, "MANY_TILES", 2)
    monkeypatch.setattr(device_plan, "is_quicker", lambda tensors, args: True)
    args = matrices("f2", 136, 264, 200, layout)  # five boxes, in a ring of three
    plan = device_plan_of(accelerate(product)._dispatcher.compiled_for_normal(args))
    device = EmulatedDevice("emulated:boxes", architecture="sm_90a")
    (found,) = execute(plan, team_of(device), list(args))
    np.testing.assert_allclose(found, product(*(one.astype("f8") for one in args)), 2**-11, 1e-2)
    ((key, text),) = ((key, text) for key, text in plan._ptx.items() if key[2].boxes)
    boxes = sum(2 if one else 1 for one in (layout[0] == "F", layout[1] == "C"))
    assert text.count("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes") == boxes
    assert not any(word in text for word in ("ldmatrix", "cp.async.cg", "mma.sync", "_shared0"))
    assert PTXAS is not None and NVDISASM is not None
    code, resources = assembled(text, "sm_90a", tmp_path)
    ((spilled, registers),) = resources.values()
    (names,) = instructions(code).values()
    assert spilled == 0 and registers <= 112  # two blocks of 288 threads fit
    assert names.count("UTMALDG.2D") == boxes and names.count("HGMMA.64x128x16.F32") == 4
    waits = [name for name in names if name.startswith("SYNCS.PHASECHK")]
    assert waits and names.count("WARPGROUP.DEPBAR.LE") == 2 and names.count("SYNCS.EXCH.64") == 6
    if layout != "CC":
        return
    for old, new, message in (
        (
            r"mbarrier\.try_wait\S+ done, \[full\], parity;\s+@!done bra MULTIPLY_WAIT;",
            "",
            "nothing has written|has not been waited for",
        ),
        (r"wgmma.wait_group.sync.aligned 1;", "", "wgmma may still read"),
        (r"@\S+ fence.mbarrier_init.release.cluster;\s+@\S+ fence.proxy.async;", "", "no fence makes"),
    ):
        assert re.search(old, text)
        monkeypatch.setitem(plan._ptx, key, re.sub(old, new, text))
        plan._modules.clear()
        with pytest.raises(KernelError, match=message):
            execute(plan, team_of(device), list(args))


def test_boxes_need_whole_lines() -> None:
    """Lines that overlap or run backwards, and matrices that are not deep, come by slices."""

    class Lying(NamedTuple):
        shape: tuple[int, int]
        strides: tuple[int, int]
        address: int = 1 << 20
        dtype: str = "float16"

    tensors = bulk_products.TensorOf(0, (1, 0), (64, 128), 1), bulk_products.TensorOf(1, (0, 1), (64, 128), 0)
    right = Lying((1024, 300), (2, 2048))
    for left, boxes in (
        (Lying((200, 1024), (2048, 2)), True),
        (Lying((200, 1024), (2064, 2)), True),
        (Lying((200, 1024), (2048, 2), (1 << 20) + 8), False),
        (Lying((200, 1024), (-2048, 2)), False),
        (Lying((200, 1024), (0, 2)), False),
        (Lying((200, 64), (2048, 2)), False),
        (Lying((0, 1024), (2048, 2)), False),
    ):
        assert bulk_products.is_quicker(tensors, (left, right)) == boxes


def scores(a: Any, b: Any) -> Any:
    return np.einsum("bid,bjd->bij", a, b)


@pytest.mark.parametrize("boxes", [True, False])
@pytest.mark.parametrize(
    ("function", "left", "right", "ranks"),
    [
        (product, (2, 136, 200), (2, 200, 72), "33"),
        (scores, (2, 72, 72), (2, 80, 72), "33"),
        (product, (72, 72), (1, 2, 72, 80), "24"),  # one matrix with all
        (product, (1, 1, 2, 1, 72, 72), (2, 1, 1, 1, 72, 72), ""),  # more axes than a tensor map has
    ],
)
def test_batches_by_groups_of_warps(
    function: Any, left: Any, right: Any, ranks: str, boxes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices of a batch come by boxes of arrays of more axes, or by slices, and are multiplied as single ones are."""
    monkeypatch.setattr(tensor_core_products, "MANY_TILES", 2)
    monkeypatch.setattr(device_plan, "is_quicker", lambda tensors, args: boxes)
    rng = np.random.default_rng(3)
    args = [rng.standard_normal(shape).astype("f2") for shape in (left, right)]
    plan = device_plan_of(accelerate(function)._dispatcher.compiled_for_normal(tuple(args)))
    (found,) = execute(plan, team_of(EmulatedDevice("emulated:batches", architecture="sm_90a")), args)
    wanted = function(*(one.astype("f8") for one in args))
    assert found.shape == wanted.shape and found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, 2**-11, 1e-2)
    ((key, text),) = ((key, text) for key, text in plan._ptx.items() if "wgmma" in text)
    assert "tensor_batch" in plan.kernels[key[1]].name
    assert key[2].boxes == (boxes and ranks != "")
    if not key[2].boxes or PTXAS is None or NVDISASM is None:
        assert "cp.async.cg" in text or key[2].boxes
        return
    code, resources = assembled(text, "sm_90a", tmp_path)
    ((spilled, registers),) = resources.values()
    (names,) = instructions(code).values()
    assert spilled == 0 and registers <= 112 and names.count("HGMMA.64x128x16.F32") == 4
    assert {name for name in names if name.startswith("UTMALDG")} == {f"UTMALDG.{rank}D" for rank in ranks}


@pytest.mark.parametrize(
    ("left", "right", "kernel"),
    [((3, 24, 40), (3, 40, 16), "matmul_tensor_small_batch"), ((2, 2, 20, 30), (1, 2, 30, 18), "matmul_batch")],
)
def test_batches_of_float16(left: Any, right: Any, kernel: str) -> None:
    """By tensor cores where lines are of whole pieces, by threads elsewhere; slim ones are sums."""
    rng = np.random.default_rng(4)
    args = tuple(rng.standard_normal(shape).astype("f2") for shape in (left, right))
    function = accelerate(product)
    with options(devices="emulated", strict=True):
        result = function(*args)
        assert any(kernel in name for name in launched(function, args))
        np.testing.assert_array_max_ulp(result, product(*args), 1)
        slim = args[0][..., :8], args[1][..., :8, :]
        np.testing.assert_array_max_ulp(function(*slim), product(*slim), 1)
        assert not any("matmul" in name for name in launched(function, slim))
        nothing = args[0][:0], args[1][:0]
        if left[0] == right[0]:
            assert function(*nothing).shape == product(*nothing).shape


def weighted(a: Any, b: Any) -> Any:
    return np.einsum("bhid,bhdj->bhij", a, b)


@pytest.mark.parametrize(
    ("function", "left", "right", "dtype"),
    [
        (product, (3, 20, 30), (3, 30, 40), "f4"),
        (product, (3, 20, 9), (1, 9, 70), "c16"),
        (product, (20, 30), (2, 30, 16), "f8"),  # one matrix with all
        (product, (2, 2, 70, 9), (2, 2, 9, 66), "f8"),
        (product, (2, 20, 30), (2, 30, 16), "i2"),
        (weighted, (2, 2, 20, 16), (2, 2, 16, 24), "f4"),
    ],
)
def test_batches_are_tiles_of_one_launch(function: Any, left: Any, right: Any, dtype: str) -> None:
    rng = np.random.default_rng(1)
    args = rng.integers(-9, 9, left).astype(dtype), rng.integers(-9, 9, right).astype(dtype)
    with options(devices="emulated", strict=True):
        accelerated = accelerate(function)
        result = accelerated(*args)
        assert [name for name in launched(accelerated, args) if "matmul_batch" in name] == launched(accelerated, args)
    wanted = function(*args)
    assert result.dtype == wanted.dtype and np.array_equal(result, wanted)


def test_large_tiles_and_slim_matrices_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled_products, "MANY_TILES", 4)
    for shape, kernel in (((2, 65, 10), "matmul_batch"), ((9, 3, 3), "map")):
        a = np.random.default_rng(2).integers(-9, 9, shape).astype(np.float32)
        b = np.ascontiguousarray(a.transpose(0, 2, 1))
        with options(devices="emulated", strict=True, cache=False):
            function = accelerate(lambda a, b: a @ b)
            assert np.array_equal(function(a, b), a @ b)
            plan = device_plan_of(function._dispatcher.compiled_for_normal((a, b)))
        assert plan.last_run is not None
        ((number, _),) = [launch for launch, _ in plan.last_run.launches]
        assert kernel in plan.kernels[number].name


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_resources_of_batches(dtype: str, tmp_path: Path) -> None:
    """Those of a single product: sums in registers; ptxas spills 16 bytes at most, addresses of matrices, on some."""
    a = np.ones((3, 200, 200), dtype)
    for target in ("sm_75", "sm_90", "sm_120"):
        _, resources = assembled(accelerate(product).ptx(a, a, target=target), target, tmp_path)
        found = [used for name, used in resources.items() if "matmul_batch" in name]
        assert len(found) == (2 if dtype == "f4" else 1)
        assert all(spilled <= 16 and used <= 128 for spilled, used in found), found


def test_groups_of_warps_where_they_take_less() -> None:
    """By estimate: large tiles, but not small ones, for which groups would wait."""
    small = WarpTile(1, 1, 16)
    for resident in (2, 4):
        assert tensor_core_cost.by_groups(GROUPED, 8, resident) < tensor_core_cost.by_warps(GROUPED, 8)
    assert tensor_core_cost.by_groups(small, 8, 2) > tensor_core_cost.by_warps(small, 8)


def test_boxes_where_they_take_less() -> None:
    """By estimate: of deep matrices, whose first box is a small part of all."""

    def boxes_pay(depth: int) -> bool:
        return tensor_core_cost.by_boxes(depth, 64, GROUPED, 8) < tensor_core_cost.by_slices(depth, GROUPED, 8, 4)

    assert not boxes_pay(64) and boxes_pay(1024) and boxes_pay(1 << 16)
