"""Calls of accelerated functions on a team: compile for the signature, run the divided plan, box the result.

What has never been observed, and what cannot be compiled, is done by Python as on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base import config
from parakeet_py.base.errors import NoSourceError, NotObservedError, OpaqueResultChanged, UnsupportedError
from parakeet_py.call.compile import python_may_begin_again
from parakeet_py.call.devices.caller import RECURSIVE
from parakeet_py.call.interpreters import Log, box, contents_kept, is_for_python, opaque_of, put_back, values_of
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.cpu_only_calls import Left
from parakeet_py.hybrid.execute.task_estimates import Foresight
from parakeet_py.hybrid.execute.team_run import run_divided
from parakeet_py.hybrid.plan.team_plan import DividedPlan
from parakeet_py.hybrid.residency.team_arguments import Held
from parakeet_py.imp.schedule.effects import stores_only_into_its_own
from parakeet_py.signature.results import listed

if TYPE_CHECKING:
    from parakeet_py.call.compile import Compiled
    from parakeet_py.call.devices.caller import Dispatcher


def left_of(dispatcher: Dispatcher) -> Left:
    """What a function's teams leave to the CPU."""
    if dispatcher.left is None:
        dispatcher.left = Left()
    found: Left = dispatcher.left
    return found


def divided_plan_of(compiled: Compiled) -> DividedPlan:
    """The divided plan of a specialization, made once."""
    if compiled.typed.procedures:
        raise UnsupportedError(RECURSIVE, compiled.template.filename)
    if compiled.divided is None:
        compiled.divided = DividedPlan(compiled, Foresight)
    plan: DividedPlan = compiled.divided
    return plan


def call_held(dispatcher: Dispatcher, held: Held) -> Any:
    """A call in positional form on a team that holds some of its arguments; what it makes stays there."""
    signature = dispatcher.signature(held.args)
    if signature in dispatcher.refused:
        return held.leaving(held.by_python(lambda: dispatcher.run_python(held.args)))
    try:
        return held.leaving(call_on_team(dispatcher, held.args, held.team, held))
    except (UnsupportedError, NoSourceError) as found:
        error = found
    return held.leaving(held.by_python(lambda: dispatcher.refuse(held.args, signature, error)))


def call_on_team(dispatcher: Dispatcher, normal: Sequence[Any], team: Team, held: Held | None = None) -> Any:
    """A call in positional form, on a team."""
    args = tuple(normal)

    def in_python(work: Callable[[], Any]) -> Any:
        return work() if held is None else held.by_python(work)

    try:
        compiled = dispatcher.compiled_for_device(args)
    except NotObservedError:
        return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args)))
    if compiled.typed.procedures or compiled.specialization.shared_with_python:
        target = dispatcher.instance if dispatcher.inner is None else dispatcher.inner
        return in_python(lambda: config.on_cpu(target, args))
    log = Log()
    leaves = values_of(compiled, args)
    plan = divided_plan_of(compiled)
    if held is None and left_of(dispatcher).decide(args, team, plan, leaves):
        return config.on_cpu(dispatcher.instance if dispatcher.inner is None else dispatcher.inner, args)
    kept = contents_kept(compiled, leaves) if held is None else contents_kept(compiled, leaves, held.kept)
    if held is not None:
        held.listed = listed(compiled.specialization.result)
    try:
        results = run_divided(plan, team, leaves, opaque_of(compiled, log), held)
    except OpaqueResultChanged:
        if not stores_only_into_its_own(compiled.imp):
            raise
        return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args), log))
    except Exception as error:
        if not is_for_python(compiled, error):
            raise
        unchanged = stores_only_into_its_own(compiled.imp)
        if not (put_back(kept) or python_may_begin_again(compiled, error, unchanged)):
            if unchanged and log.tells(error):
                return in_python(lambda: dispatcher.evaluate(args, dispatcher.signature(args), log))
            raise
        return in_python(lambda: dispatcher.run_python(args))
    return box(compiled.specialization.result, results, leaves)
