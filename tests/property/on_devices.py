"""Random programs with every array among their arguments on devices, ours and another library's, against Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.backends import accelerated
from tests.corpus import Case
from tests.property.generated import judged, note
from tests.property.recipes import made
from tests.residents import KINDS, PLACES, call_with_residents, can_nothing

if TYPE_CHECKING:
    from tests.property.random_programs import Program

WAYS = [(kind, place) for place in PLACES for kind in KINDS]


def check_on_devices(program: Program, f: Callable[..., Any], number: int) -> list[str]:
    """Compare all calls of a random program, whose arrays are on one device or a team by turns, with plain Python.

    Returns why it has fallen back to Python.
    """
    note(program.source)
    found: list[str] = []
    for turn, recipes in enumerate(program.calls()):
        kind, place = WAYS[(number + turn) % len(WAYS)]
        note(f"arguments: {recipes!r}, arrays: {kind} on {place}")
        case = Case(functools.partial(made, recipes))
        actual = call_with_residents(accelerated(f), case, kind, place)
        if can_nothing(actual, kind):
            found.append("left: an array of a library that knows nothing but its interface")
            continue
        sums = max(program.sums, 16.0)  # members of a team sum apart
        found += judged(f, case, actual, False, {"sums": sums, "ulp": program.ulp}, True)
    return found
