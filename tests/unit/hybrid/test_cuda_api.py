"""What `hybrid/devices/cuda.py`, its launches and its copies ask of `cuda.core` and `cuda.bindings`, against the
packages.

No GPU takes part, and no driver: signatures and names are looked at. It holds for cuda-core 0.6.0, 0.7.0, 1.0.0, 1.2.2,
with cuda-bindings 13.5.0; where they are not installed there is nothing to check, and the stand-in is trusted.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from parakeet_py.hybrid.devices import cuda

core: Any = pytest.importorskip("cuda.core", reason="cuda-core is not installed")
driver: Any = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

SELF, STREAM = object(), object()


@pytest.mark.parametrize(
    ("call", "given", "named"),
    [
        ("Device.create_stream", (SELF,), {}),
        ("Device.set_current", (SELF,), {}),
        ("DeviceMemoryResource.allocate", (SELF, 1024), {"stream": STREAM}),
        ("LegacyPinnedMemoryResource.allocate", (SELF, 1024), {}),
        ("Buffer.close", (SELF, STREAM), {}),
        ("Stream.record", (SELF,), {"options": None}),
        ("Stream.record", (SELF,), {"event": None}),
        ("Stream.wait", (SELF, STREAM), {}),
        ("Stream.sync", (SELF,), {}),
        ("Stream.from_handle", (1,), {}),
        ("Stream.create_graph_builder", (SELF,), {}),
        ("Event.sync", (SELF,), {}),
        ("ObjectCode.from_ptx", (b"",), {}),
        ("ObjectCode.from_cubin", (b"",), {}),
        ("ObjectCode.get_kernel", (SELF, "name"), {}),
        ("launch", (STREAM, None, None, 1, 2), {}),
        ("GraphBuilder.begin_building", (SELF,), {}),
        ("GraphBuilder.end_building", (SELF,), {}),
        ("GraphBuilder.complete", (SELF,), {}),
        ("GraphBuilder.close", (SELF,), {}),
        ("Graph.launch", (SELF, STREAM), {}),
        ("KernelOccupancy.max_active_blocks_per_multiprocessor", (SELF, 256, 0), {}),
    ],
)
def test_calls(call: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    owner, _, name = call.rpartition(".")
    found = getattr(part(owner), name) if owner else getattr(core, name)
    inspect.signature(found).bind(*given, **named)


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        ("Device", "device_id compute_capability properties"),
        ("DeviceMemoryResource", "attributes peer_accessible_by"),
        ("Buffer", "handle"),
        ("Stream", "handle"),
        ("Event", "__sub__"),
        ("Kernel", "attributes occupancy"),
        ("KernelAttributes", "num_regs local_size_bytes shared_size_bytes"),
        ("DeviceProperties", "multiprocessor_count max_threads_per_multiprocessor"),
        ("_MemPoolAttributes", "reserved_mem_current used_mem_current"),
    ],
)
def test_names(owner: str, names: str) -> None:
    missing = [name for name in names.split() if not hasattr(part(owner), name)]
    assert not missing


def test_events_with_times() -> None:
    options = core.EventOptions(True)
    assert getattr(options, "timing_enabled", getattr(options, "enable_timing", None)) is True
    assert core.LEGACY_DEFAULT_STREAM is not None and core.PER_THREAD_DEFAULT_STREAM is not None


@pytest.mark.parametrize(
    "name",
    [
        "cuPointerGetAttribute",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpyDtoDAsync",
        "cuMemcpy2DAsync",
        "cuMemcpyPeerAsync",
        "cuMemcpy3DPeerAsync",
        "cuMemGetInfo",
        "cuMemHostRegister",
        "cuMemHostUnregister",
        "cuDeviceGetMemPool",
        "cuMemPoolTrimTo",
        "cuCtxGetCurrent",
        "cuCtxSetCurrent",
        "cuDeviceCanAccessPeer",
        "cuCtxSynchronize",
        "cuGetErrorString",
    ],
)
def test_driver(name: str) -> None:
    assert callable(getattr(driver, name))


def test_constants() -> None:
    attribute = driver.CUpointer_attribute
    assert int(attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE) == 2
    assert int(attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) == 9
    kinds = driver.CUmemorytype
    assert int(kinds.CU_MEMORYTYPE_HOST) == 1
    for what in (driver.CUDA_MEMCPY2D(), driver.CUDA_MEMCPY3D_PEER()):
        what.srcMemoryType, what.srcDevice, what.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, 1 << 40, 800
        what.dstMemoryType, what.dstHost, what.dstPitch = kinds.CU_MEMORYTYPE_HOST, 1 << 30, 80
        what.WidthInBytes, what.Height = 80, 3
        assert (int(what.srcDevice), int(what.dstHost), what.Height) == (1 << 40, 1 << 30, 3)
    what.srcContext, what.dstContext, what.Depth = driver.CUcontext(0), driver.CUcontext(0), 1


def part(name: str) -> Any:
    """A class of the package; some can be had from its inner modules only."""
    found = getattr(core, name, None)
    for module in ("_module", "_device", "_memory._memory_pool", "graph", "_graph"):
        if found is None:
            try:
                found = getattr(__import__(f"cuda.core.{module}", fromlist=["x"]), name, None)
            except ImportError:
                continue
    assert found is not None, f"cuda.core has no {name}"
    return found


def test_arguments() -> None:
    from cuda.core._kernel_arg_handler import ParamHolder

    codes = "bBhHiIqQfdPe"
    ParamHolder(tuple(cuda._arguments(codes, [np.float64(1.5) if code in "fde" else 1 for code in codes])))
    with pytest.raises(TypeError):
        ParamHolder((object(),))
