"""Every program under `when="pays"`: calls in Python, in the trial and in machine code give what Python gives.

Whether something pays is decided by times, which tests do not depend on: here the first calls run in Python, then the
program is compiled, and the verdict of the trial is drawn by the program's name.
"""

from __future__ import annotations

from types import FunctionType

import pytest

from parakeet_py import accelerate
from parakeet_py.call.renting import Account, Trial
from tests.corpus import Program, all_programs, assert_same, lot, outcome

EVERY = 5
PROGRAMS = [
    program
    for program in all_programs()
    if isinstance(program.function, FunctionType) and not program.overflow and lot(program, EVERY) == 1
]


def let_one_pass(account: Account) -> None:
    """Each gate takes one call; the next one is looked at."""
    account.settle_gates()
    for gate in account.gates:
        account.given += 1 - gate.left
        gate.left = 1


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_corpus(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    native = lot(program, 2 * EVERY) == 1
    monkeypatch.setattr(Account, "rents", lambda self, normal, disk: self.calls < 2)
    enough = 3 if native else 2
    monkeypatch.setattr(Trial, "judge", lambda self, one, two: len(one) + len(two) >= enough and self.finish(native))
    monkeypatch.setattr(Account, "share_budget", let_one_pass)
    monkeypatch.setattr("parakeet_py.call.dispatch.first_calls.BUDGET", 1)
    monkeypatch.setattr("parakeet_py.call.renting.CALLS", 1)
    gates = lot(program, 3 * EVERY) % 2 == 0
    monkeypatch.setattr("parakeet_py.call.renting.gates_pay", lambda calls=1: gates)
    function = accelerate(when="pays")(program.function)
    for _ in range(5):
        for case in program.cases:
            if case.native_only:
                continue
            args, kwargs = case.make()
            expected = outcome(program.function, args, kwargs)
            args, kwargs = case.make()
            actual = outcome(function, args, kwargs)
            assert_same(
                expected, actual, ulp=program.ulp, sums=program.sums, message=program.message, order=program.order
            )
