"""The "parakeet_py" logger, and the handler that it gets where the debug settings ask for output.

Importing `logging` takes a tenth of a first call from the disk cache, so `log` does it with the first message that
may be seen. Where nothing has imported it, nothing has asked for messages below warnings.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


class _Log:
    """The logger, without `logging` until it is needed."""

    def __getattr__(self, name: str) -> Any:
        import logging

        return getattr(logging.getLogger("parakeet_py"), name)

    def info(self, text: str, *args: object, **options: Any) -> None:
        if "logging" in sys.modules:
            self.__getattr__("info")(text, *args, **options)

    def debug(self, text: str, *args: object, **options: Any) -> None:
        if "logging" in sys.modules:
            self.__getattr__("debug")(text, *args, **options)


log: logging.Logger = _Log()  # type: ignore[assignment]


def shows_info() -> bool:
    """Whether messages of the level INFO are seen."""
    return "logging" in sys.modules and log.isEnabledFor(sys.modules["logging"].INFO)


def listen() -> None:
    """Make sure that messages are seen: give the logger a handler unless it, or the root, has one."""
    import logging

    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("parakeet_py: %(message)s"))
        log.addHandler(handler)
    if log.getEffectiveLevel() > logging.INFO:
        log.setLevel(logging.INFO)
