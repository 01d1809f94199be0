"""Running programs on teams at chosen places of every index space."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from parakeet_py.hybrid.devices.team import Range, Team, evenly
from tests.backends import accelerated
from tests.corpus import Case, Outcome, Program, outcome

PLACES: dict[str, Any] = {
    "0": lambda n: 0,
    "1": lambda n: min(1, n),
    "n/2": lambda n: n // 2,
    "n-1": lambda n: max(n - 1, 0),
    "n": lambda n: n,
}
TEAMS = ("cpu,emulated", "emulated*2", "cpu,emulated*3")


@contextmanager
def cut_at(place: str) -> Iterator[None]:
    """The first of every team gets what is before a place; the others divide the rest."""

    whole = Team.ranges

    def ranges(team: Team, extent: int, costs: object) -> tuple[Range, ...]:
        if team.only is not None:  # a task is of those that it was given to
            return whole(team, extent, costs)
        front = PLACES[place](extent)
        rest = evenly(front, extent, len(team.devices) - (not team.cpu))
        return team.from_bounds((front, *rest) if team.cpu else (0, front, *rest))

    with mock.patch.object(Team, "ranges", ranges):
        yield


def run_on_team(program: Program, case: Case, devices: str, place: str) -> Outcome:
    """What a team does with fresh arguments of the case."""
    from parakeet_py import options

    args, kwargs = case.make()

    def call(*args: Any, **kwargs: Any) -> Any:
        with options(devices=devices, check=True), cut_at(place):
            return accelerated(program.function)(*args, **kwargs)

    return outcome(call, args, kwargs)
