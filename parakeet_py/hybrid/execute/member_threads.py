"""Members of a team at work at the same time: one thread for each, of which the calling one is the first.

A thread lives as long as the work it was made for, so nothing is left when a call has ended, however it ends: if the
user interrupts it, the threads at work are asked to stop and waited for, because it uses the user's memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context


class Stop:
    """Whether work should end early: a member has failed, or the user has interrupted."""

    def __init__(self) -> None:
        self.asked = False


def together(works: Sequence[Callable[[], None]], stop: Stop) -> None:
    """Do all of this at the same time, the first in this thread.

    If some raise, the others are asked to stop, and the exception of the first of them is raised when all have ended;
    an interrupt comes before all.
    """
    errors: list[BaseException | None] = [None] * len(works)

    def do(number: int) -> None:
        try:
            works[number]()
        except BaseException as error:
            errors[number] = error
            stop.asked = True

    threads = [
        threading.Thread(target=copy_context().run, args=(do, number), name=f"parakeet_py-{number}")
        for number in range(1, len(works))
    ]
    interrupt: BaseException | None = None
    try:
        for thread in threads:
            thread.start()
        do(0)
    except BaseException as error:
        interrupt, stop.asked = error, True
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:  # the user's impatience; the thread still uses the user's memory
                interrupt, stop.asked = error, True
    raised = [error for error in (interrupt, *errors) if error is not None]
    if raised:
        raise next((error for error in raised if not isinstance(error, Exception)), raised[0])
