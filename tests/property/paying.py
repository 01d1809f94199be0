"""Random programs as users run them, compiled when that pays: every call of a long series against plain Python.

What calls are expected to cost is set so low that a series of a dozen calls goes all the way: machine code of the
package takes the first ones, a gate to Python those after, the evaluator observes some, code is compiled or loaded, is
tried against Python, and is kept or left. Arguments change from call to call, also while the compiler looks at those of
one, as it works in a thread of its own for every second program.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from parakeet_py import accelerate
from parakeet_py.call import pricing, renting
from parakeet_py.call.dispatch import background, first_calls
from tests.corpus import Case
from tests.property.generated import compared, note
from tests.property.recipes import made

if TYPE_CHECKING:
    from tests.property.random_programs import Program

CALLS = 12
SETTINGS: tuple[dict[str, Any], ...] = (
    {"budget": 0, "price": 1e3, "few": 10**6, "gates": False},  # compiled with the second call
    {"budget": 0, "price": 1e4, "few": 1, "gates": True},  # taken by gates to Python until then
    {"budget": 10_000, "price": 1e4, "few": 2, "gates": True},  # by the package's own machine code before
    {"budget": 30_000, "price": 3e4, "few": 10**6, "gates": False},
)


@contextlib.contextmanager
def soon(budget: int, price: float, few: int, gates: bool) -> Iterator[None]:
    """Calls are decided about after `budget` ns, or `few` of them, and compiled when they have taken `price` ns."""
    with contextlib.ExitStack() as changed:
        for module, name, value in (
            (pricing.compile_cost, "of", lambda size: price),
            (pricing.CompileCost, "room", 1e18),
            (renting, "gates_pay", lambda calls=1: gates),
            (renting, "FOLLOWING", 0.0),
            (renting, "LONGEST", 1e18),
            (renting.Account, "goes_on", lambda self, normal: not (self.loading or self.waits)),
            (first_calls, "gates_pay", lambda calls=1: gates),
            (first_calls, "BUDGET", budget),
            (first_calls, "FEW", few),
        ):
            changed.enter_context(patch.object(module, name, value))
        yield


def check_paying(program: Program, f: Callable[..., Any], number: int) -> list[str]:
    """Compare a series of calls of a random program, arguments by turns; why it has fallen back to Python."""
    note(program.source)
    chosen = random.Random(number)
    calls = program.calls()
    found: list[str] = []
    beside = number // len(SETTINGS) % 2 == 1
    with soon(**SETTINGS[number % len(SETTINGS)]):
        fast = accelerate(when="pays", background=beside)(f)
        for turn in range(2 * CALLS if beside else CALLS):
            if beside and turn > chosen.randrange(CALLS):
                background.wait()
            recipes = calls[turn % len(calls) if turn < 4 else chosen.randrange(len(calls))]
            note(f"call {turn}: {recipes!r}")
            case = Case(functools.partial(made, recipes))
            tolerances = {"sums": program.sums, "ulp": program.ulp}
            found += compared(f, case, lambda _, args: fast(*args), False, tolerances, True)
    return found
