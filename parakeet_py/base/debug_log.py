"""The "parakeet_py" logger, and the handler that it gets where the debug settings ask for output."""

from __future__ import annotations

import logging

log = logging.getLogger("parakeet_py")


def listen() -> None:
    """Make sure that messages are seen: give the logger a handler unless it, or the root, has one."""
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("parakeet_py: %(message)s"))
        log.addHandler(handler)
    if log.getEffectiveLevel() > logging.INFO:
        log.setLevel(logging.INFO)
