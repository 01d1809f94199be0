"""A part of a region that has been started: its host part goes on in steps, as far as it need not wait."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from parakeet_py.hybrid.execute.device_loss import Lost


class Started:
    """A part under way; called, it waits for its results.

    Parameters
    ----------
    steps : its host part on a device, see `host_code`; None if all its work is left to `results`
    results : what the host part gives, as values of the call
    tell : lets the loss of a device tell what it was doing
    """

    def __init__(
        self,
        steps: Generator[None, None, Sequence[Any]] | None,
        results: Callable[[Sequence[Any]], list[Any]],
        tell: Callable[[Lost], None] = lambda lost: None,
    ) -> None:
        self._steps, self._results, self._tell = steps, results, tell
        self._made: Sequence[Any] = ()
        self._error: Exception | None = None
        self.advance()

    def advance(self) -> bool:
        """Go on to where the device has to be waited for next; False if all has been launched.

        What the host part raises is kept until results are asked for.
        """
        if self._steps is None:
            return False
        try:
            next(self._steps)
            return True
        except StopIteration as end:
            self._made = end.value
        except Lost as lost:
            self._steps = None
            self._tell(lost)
            raise
        except Exception as error:
            self._error = error
        self._steps = None
        return False

    def launch_all(self) -> None:
        """Launch all that is left to launch, waiting for what that needs."""
        while self.advance():
            pass

    @property
    def launched(self) -> bool:
        """Whether all has been launched."""
        return self._steps is None

    def __call__(self) -> list[Any]:
        self.launch_all()
        if self._error is not None:
            raise self._error
        try:
            return self._results(self._made)
        except Lost as lost:
            self._tell(lost)
            raise
