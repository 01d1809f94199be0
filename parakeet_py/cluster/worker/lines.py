"""Several tasks as one: their steps one after another, or strip by strip where that keeps what is between them near."""

from __future__ import annotations

from typing import Any

from parakeet_py.cluster.worker.resident import device_here
from parakeet_py.cluster.worker.strips import Step, strips_of
from parakeet_py.cluster.worker.tasks import Value, run_part


def in_turn(steps: tuple[Step, ...], *given: Any) -> Any:
    """Several tasks, which read what is given or what those before them have made; gives what the last one makes."""
    return several_in_turn(steps, (len(given) + len(steps) - 1,), *given)[0]


def several_in_turn(steps: tuple[Step, ...], wanted: tuple[int, ...], *given: Any) -> tuple[Any, ...]:
    """Several tasks, which read what is given or what those before them have made; gives the values at some places."""
    values = list(given)
    last: dict[int, int] = {}
    for number, (_, args) in enumerate(steps):
        last |= {arg.place: number for arg in args if type(arg) is Value}
    last |= dict.fromkeys(wanted, len(steps))
    number = 0
    while number < len(steps):
        done = _strip_by_strip(steps, number, values, wanted)
        if not done:
            function, args = steps[number]
            own = [
                (values[arg.place] if arg.item < 0 else values[arg.place][arg.item]) if type(arg) is Value else arg
                for arg in args
            ]
            values.append(function(*own))
            del own
            done = 1
        for ended in range(number, number + done):
            for arg in steps[ended][1]:
                if type(arg) is Value and last[arg.place] == ended:
                    values[arg.place] = None  # nothing else holds it
        number += done
    return tuple(values[place] for place in wanted)


def _strip_by_strip(steps: tuple[Step, ...], number: int, values: list[Any], wanted: tuple[int, ...]) -> int:
    """Run parts from a step on strip by strip, if there are several of them; gives how many steps that were."""
    if number + 1 >= len(steps) or steps[number][0] is not run_part or device_here() is not None:
        return 0
    strips = strips_of(steps, number, values, wanted)
    if strips is None:
        return 0
    try:
        values += strips.run()
    except Exception:  # steps in their order tell what fails first
        return 0
    return strips.steps
