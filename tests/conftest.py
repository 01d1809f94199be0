"""Settings for the whole suite: every IR checked after every pass, no disk cache, reproducible hypothesis runs.

Tests that share what they compile stay in one worker process: those of a module, and in the corpus those of a topic.

The environment is set before parakeet_py can be imported. `PARAKEET_FUZZ=n` makes the property tests draw n random
examples each instead of the few fixed ones.
"""

from __future__ import annotations

import gc
import os
import tempfile

import pytest

os.environ.setdefault("PARAKEET_CHECK", "1")
os.environ.setdefault("PARAKEET_CACHE", "0")
os.environ.setdefault("PARAKEET_CACHE_DIR", tempfile.mkdtemp(prefix="parakeet-cache-"))

from hypothesis import HealthCheck, settings

_unhurried = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("short", max_examples=15, derandomize=True, database=None, **_unhurried)
settings.register_profile("fuzz", max_examples=int(os.environ.get("PARAKEET_FUZZ") or 1), **_unhurried)
settings.load_profile("fuzz" if os.environ.get("PARAKEET_FUZZ") else "short")


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group = item.nodeid.partition("::")[0]
        program = getattr(item, "callspec", None) and item.callspec.params.get("program")
        if program is not None and hasattr(program, "cases"):
            group = f"corpus {program.name.partition('.')[0]}"
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish() -> None:
    """Thirty thousand test items live to the end: no collection needs to look at them, and many tests collect."""
    gc.collect()
    gc.freeze()
