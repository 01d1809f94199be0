"""The pytest plugin of `python -m tests.gpu`: opens the device, chooses the tests, gathers what they have found.

What a test has launched travels in its report's user properties, so that it is all there where the session ends, in
however many processes the tests have run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from parakeet_py import options
from parakeet_py.hybrid.devices import cuda, cuda_memory
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.selection import forget
from tests import backends
from tests.gpu.twin import Twin

KIND = os.environ.get("PARAKEET_TEST_GPU", "")
PROPERTY_TESTS = ("test_random_programs",)  # those that go through all stages by themselves

_stack = ExitStack()
_twin: list[Twin] = []
_reports: list[tuple[str, str, float, dict[str, Any], str]] = []
_started = time.time()


def install() -> Twin:
    """Put a twin in the place of cuda:0."""
    if KIND == "driver":
        from tests import driver

        driver.load(memory=1 << 32, capability=(9, 0))
        cuda.probe.cache_clear()
    elif KIND == "packages":
        from tests.helpers import fake_cuda

        _stack.enter_context(fake_cuda.installed(memory=1 << 32, capability=(9, 0)))
    (real,) = cuda.devices(0)
    twin = Twin(real, EmulatedDevice("emulated", architecture=real.architecture))  # type: ignore[arg-type]
    cuda_memory.opened[0] = twin  # type: ignore[assignment]
    forget()
    return twin


def run_gpu(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with options(devices="cuda:0"):
        return backends.accelerated(function)(*args, **kwargs)


def pytest_configure() -> None:
    """The device is the only way to run a program."""
    from tests.property import generated

    backends.BACKENDS.clear()
    backends.BACKENDS["gpu"] = run_gpu
    generated.STAGES.clear()
    generated.STAGES["gpu"] = ("gpu",)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what runs on a device."""
    chosen, others = [], []
    for item in items:
        names = getattr(getattr(item, "callspec", None), "params", {})
        on_device = "backend" in names or "stage" in names or item.name in PROPERTY_TESTS
        (chosen if on_device else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


@pytest.fixture(autouse=True)
def _launches(record_property: Any) -> Iterator[None]:
    if not _twin:
        _twin.append(install())
    twin = _twin[0]
    before = twin.exact, twin.approximate
    yield
    record_property("exact", twin.exact - before[0])
    record_property("approximate", twin.approximate - before[1])
    leave_if_broken(twin)


def leave_if_broken(twin: Twin) -> None:
    """After a kernel has faulted nothing of CUDA works in its process: what is left is for a new worker."""
    if getattr(twin.real, "broken", None) is not None and "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(3)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.failed:
        text = report.longreprtext.splitlines()[-1] if report.failed and report.longreprtext else ""
        _reports.append((report.nodeid, report.outcome, report.duration, {}, text))
    if report.when == "teardown" and _reports and _reports[-1][0] == report.nodeid:
        _reports[-1][3].update(dict(report.user_properties))


def pytest_sessionfinish(session: pytest.Session) -> None:
    place = os.environ.get("PARAKEET_GPU_RESULTS")
    if hasattr(session.config, "workerinput") or not place:
        return
    tests = [
        {"test": name, "outcome": outcome, "seconds": round(seconds, 4), **launches, **({"why": why} if why else {})}
        for name, outcome, seconds, launches, why in _reports
    ]
    Path(place).write_text(json.dumps({"seconds": round(time.time() - _started, 1), "tests": tests}))
    _stack.close()
