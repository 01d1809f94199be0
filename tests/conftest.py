"""Settings for the whole suite: every IR checked after every pass, no disk cache, reproducible hypothesis runs.

Tests that share what they compile stay in one worker process: those of a module, and in the corpus those of a topic.

The environment is set before parakeet_py can be imported. `PARAKEET_FUZZ=n` makes the property tests draw n random
examples each instead of the few fixed ones.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
import zlib
from typing import Any

import pytest

os.environ.setdefault("PARAKEET_CHECK", "1")
os.environ.setdefault("PARAKEET_CACHE", "0")
os.environ.setdefault("PARAKEET_BACKGROUND", "0")  # tests know which call is compiled
os.environ.setdefault("PARAKEET_TIERS", "0")  # optimised code is what is tested, but for tests of quick code
if "PARAKEET_CACHE_DIR" not in os.environ:  # else it is the folder of the process that began this one
    _folder = tempfile.TemporaryDirectory(prefix="parakeet-cache-")  # removed when this process ends
    os.environ["PARAKEET_CACHE_DIR"] = _folder.name

from hypothesis import HealthCheck, settings

# hundreds of tests start processes: without bytecode beside the sources each takes half a second more
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# each program is accelerated once for all tests of these
CORPUS = tuple(f"tests/test_{name}.py" for name in ("programs", "teams", "device_corpus", "assembled"))

_unhurried = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("short", max_examples=15, derandomize=True, database=None, **_unhurried)
settings.register_profile("fuzz", max_examples=int(os.environ.get("PARAKEET_FUZZ") or 1), **_unhurried)
settings.load_profile("fuzz" if os.environ.get("PARAKEET_FUZZ") else "short")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=int, default=1, metavar="N", help="run one test of N, drawn by their names")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (share := config.getoption("--share")) > 1:
        left_out = [item for item in items if zlib.crc32(item.nodeid.encode()) % share]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % share == 0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByTopic(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByTopic(config, log)


def group_of(nodeid: str) -> str:
    """What a test belongs to: the topic of the corpus its parameters name, else its module."""
    module, _, test = nodeid.partition("::")
    program = re.search(r"[\[-]([a-z_]+)\.[a-z]\w*", test) if module in CORPUS else None
    return f"corpus {program[1]}" if program else module


def pytest_collection_finish() -> None:
    """Twenty thousand test items live to the end: no collection needs to look at them, and many tests collect."""
    _leave_out_of_collections()
    gc.set_threshold(20_000)  # compiling makes many records and few cycles: a tenth of the time was collections


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what earlier modules have compiled."""
    if nextitem is not None and group_of(nextitem.nodeid) != group_of(item.nodeid):
        _leave_out_of_collections()


def _leave_out_of_collections() -> None:
    gc.collect()
    gc.freeze()
