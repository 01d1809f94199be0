"""The plugin of pytest that accelerates packages, or keeps their calls, as the environment says.

STRANGERS          packages, with commas; none: all stays plain
STRANGERS_CALLS    a folder: calls are kept there, and nothing is accelerated
STRANGERS_NEUTRAL  anything: functions are replaced by wrappers that do nothing but call them
STRANGERS_COPIES   anything: functions are replaced by copies of themselves, which shows what the hook costs
STRANGERS_TESTS    how many tests run, drawn at random but the same ones each time
STRANGERS_REPORT   a file: functions whose calls have waited for the compiler, and what is known of them
"""

from __future__ import annotations

import atexit
import json
import os
import random
from pathlib import Path
from typing import Any

from tests.strangers import hook

_packages = os.environ.get("STRANGERS", "")
_folder = os.environ.get("STRANGERS_CALLS")
_tests = os.environ.get("STRANGERS_TESTS")
_report = os.environ.get("STRANGERS_REPORT")
_made: list[Any] = []


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep some of the tests, in their order."""
    if _tests is not None and len(items) > int(_tests):
        kept = set(random.Random(0).sample(range(len(items)), int(_tests)))
        items[:] = [item for place, item in enumerate(items) if place in kept]


def _accelerated(function: Any) -> Any:
    from parakeet_py import accelerate

    made = accelerate(function)
    if _report:
        _made.append(made)
    return made


def _write_report() -> None:
    found = []
    for function in _made:
        if function._complete is None:  # it has a dispatcher
            account = function._dispatcher.account
            account.settle_gates()
            found.append(
                {
                    "function": f"{function.__module__}.{function.__qualname__}",
                    "compiling": account.waited / 1e9,
                    "python": account.total / 1e9,
                    "specializations": len(function.specializations),
                    "decision": account.decided(),
                }
            )
    Path(_report or "").write_text(json.dumps(sorted(found, key=lambda row: -row["compiling"]), indent=1))


if _packages and _folder:
    hook.install(_packages.split(","), hook.keeping(Path(_folder)))
elif _packages and os.environ.get("STRANGERS_NEUTRAL"):
    hook.install(_packages.split(","), hook.neutral)
elif _packages and os.environ.get("STRANGERS_COPIES"):
    hook.install(_packages.split(","), hook.copied)
elif _packages:
    hook.install(_packages.split(","), _accelerated)
    if _report:
        atexit.register(_write_report)
