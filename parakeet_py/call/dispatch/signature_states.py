"""The states of a signature, and what is done with a call that no entry stub has taken.

What a dispatcher knows of the calls with one signature is a `State`. `STEPS` has what each does with a call, which is
one of five `Action`s, and with the signature:

| state | a call | then |
|---|---|---|
| `NEW` | is compiled for the usual extents, and runs natively | `USUAL`, `COMPILED`, `GUESSED` or `UNTRIED` |
| | is evaluated, as an operation handed back to Python has not been observed | `OBSERVED`, then `NEW` |
| | is refused: it cannot be compiled | `REFUSED` |
| | is Python's, until compiling pays (`renting`), and while it is compiled (`background`) | `NEW` |
| `UNTRIED` | is a trial of machine code against Python | `UNTRIED`, until it has been won |
| `USUAL` | has other extents: it is compiled for all, and runs natively | `COMPILED` |
| `QUICK` | its entry stub has let it pass: the code is optimised, and runs natively | `USUAL` or `COMPILED` |
| `COMPILED` | runs natively, if another thread has compiled it meanwhile | `COMPILED` |
| | is Python's, as its own entry stub has let it pass | `COMPILED` |
| `GUESSED` | reaches what no call had reached: the code is forgotten, the call evaluated | `OBSERVED`, then `NEW` |
| `OBSERVED` | is Python's: the evaluator is running another one | `OBSERVED` |
| `REFUSED` | is Python's | `REFUSED`, until one like it raises no more |
| `INTERRUPTED` | is evaluated from where compiled code has given it up | `OBSERVED`, then as before |

A call that is evaluated where the function makes others that unknown code may keep is Python's, and its signature
`REFUSED`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

from parakeet_py.base.debug_log import log
from parakeet_py.base.errors import NoSourceError, UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.call.dispatch import background
from parakeet_py.call.dispatch.specializations import DoneByPython, NotEarned
from parakeet_py.signature import patches
from parakeet_py.signature.specs import Signature

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Extents
    from parakeet_py.call.dispatch.compiling import Compiling


class State(Enum):
    NEW = auto()
    UNTRIED = auto()
    QUICK = auto()
    USUAL = auto()
    COMPILED = auto()
    GUESSED = auto()
    OBSERVED = auto()
    REFUSED = auto()
    INTERRUPTED = auto()


class Action(Enum):
    NATIVE = auto()
    EVALUATE = auto()
    RENT = auto()
    PYTHON = auto()
    REFUSE = auto()


@record
class Call:
    """A call in positional form; the entry stubs that were `tried`; `log`: what it has done already."""

    normal: tuple[Any, ...]
    signature: Signature
    tried: Sequence[object]
    log: Sequence[tuple[Any, Any]] | None = None


@record
class Decision:
    """What is done with a call. `missed`: code has reached what no call had; `error`: why it is refused."""

    action: Action
    signature: Signature | None
    missed: bool = False
    error: Exception | None = None


HANDED_BACK = "almost all is handed back"
OUTLIVES = "functions made here may outlive what they use"
_BETTER_IN_PYTHON = frozenset((HANDED_BACK, OUTLIVES))  # reasons that are no errors under `strict`


def state_of(of: Compiling, call: Call) -> State:
    """The state of a call's signature."""
    signature = call.signature
    if call.log is not None:
        return State.INTERRUPTED
    if signature in of.guessed and signature in of.specializations:
        return State.GUESSED
    if signature in of.refused:
        return State.REFUSED
    if signature in of.observing:
        return State.OBSERVED
    if signature in of.untried:
        return State.UNTRIED
    known = of.last_gate(signature)
    if known is None:
        return State.NEW
    if of.is_used_up(known, call.normal):
        return State.QUICK
    return State.USUAL if known.native.guarded else State.COMPILED


def decide(of: Compiling, call: Call) -> Decision:
    """What is to be done with a call that no entry stub has taken, after it has been compiled if it can be."""
    decision = STEPS[state_of(of, call)](of, call)
    if decision.action is not Action.EVALUATE:
        return decision
    if call.log is None and of.may_keep_closures():
        of.refused.add(call.signature, OUTLIVES)
        return Decision(Action.PYTHON, call.signature, decision.missed)
    signature = of.signature(call.normal)  # what is known by now may have changed it
    of.observing.add(signature)
    return Decision(Action.EVALUATE, signature, decision.missed)


def _new(of: Compiling, call: Call) -> Decision:
    if of.refused.raises_again() and not of.config().strict:
        return Decision(Action.PYTHON, call.signature)
    if (found := of.found_for(call.signature)) is not None:
        return found
    if of.config().pays and of.account.must_earn(call.normal, of.has_stored):
        return Decision(Action.RENT, call.signature)
    return _compiled_now(of, call, "usual")


def _untried(of: Compiling, call: Call) -> Decision:
    return Decision(Action.NATIVE, call.signature)


def _quick(of: Compiling, call: Call) -> Decision:
    of.optimize(call.normal, call.signature)
    return Decision(Action.NATIVE, call.signature)


def _usual(of: Compiling, call: Call) -> Decision:
    return _compiled_now(of, call, "general")


def _compiled_now(of: Compiling, call: Call, extents: Extents) -> Decision:
    """Compile a call, which waits for that, or goes on in Python meanwhile."""
    if of.goes_on(call.normal) and background.begin(partial(_off_path, of, call, extents), of.cpus()):
        return Decision(Action.RENT, call.signature)
    try:
        return _compiled(of, call, extents)
    except Exception as found:
        return Decision(Action.REFUSE, call.signature, error=of.failure(found))


def _off_path(of: Compiling, call: Call, extents: Extents) -> None:
    """Compile a call that goes on in Python. A later one does what has to be done with it besides."""
    with of.lock:
        try:
            found = _compiled(of, call, extents)
            if found.action in (Action.EVALUATE, Action.REFUSE):
                of.has_found(replace(found, signature=of.signature(call.normal)))
        except Exception:
            log.info("%s: a call will compile what the thread could not", of.function.__qualname__, exc_info=True)
            of.account.waits = True


def _compiled(of: Compiling, call: Call, extents: Extents) -> Decision:
    try:
        loaded = of.specialize(call.normal, call.signature, extents)
        of.refused.unsettle(call.normal)
        return Decision(Action.EVALUATE if loaded is None else Action.NATIVE, call.signature)
    except patches.Patched:
        return Decision(Action.PYTHON, call.signature)
    except NotEarned:
        return Decision(Action.RENT, call.signature)
    except DoneByPython:
        of.refused.add(call.signature, HANDED_BACK)
        log.info("%s: Python runs such calls, as almost all is handed back", of.function.__qualname__)
        of.refused.settle(call.normal)
        return Decision(Action.PYTHON, call.signature)
    except (UnsupportedError, NoSourceError) as found:
        return Decision(Action.REFUSE, of.signature(call.normal), error=found)  # with the hidden arguments found


def _has_code(of: Compiling, call: Call) -> Decision:
    known = of.last_gate(call.signature)
    if known is None or known.gate not in call.tried:
        return Decision(Action.NATIVE, call.signature)
    of.refused.leave(call.normal)
    return Decision(Action.PYTHON, call.signature)


def _guessed(of: Compiling, call: Call) -> Decision:
    of.forget(of.specializations[call.signature])
    return Decision(Action.EVALUATE, call.signature, missed=True)


def _observed(of: Compiling, call: Call) -> Decision:
    return Decision(Action.PYTHON, call.signature)


def _refused(of: Compiling, call: Call) -> Decision:
    if of.config().strict and of.refused.reason(call.signature) not in _BETTER_IN_PYTHON:
        return _new(of, call)  # refused under other settings: now it raises, with the place in the source
    of.refused.settle(call.normal)
    return Decision(Action.PYTHON, call.signature)


def _interrupted(of: Compiling, call: Call) -> Decision:
    return Decision(Action.EVALUATE, call.signature)


STEPS: Mapping[State, Callable[[Compiling, Call], Decision]] = {
    State.NEW: _new,
    State.UNTRIED: _untried,
    State.QUICK: _quick,
    State.USUAL: _usual,
    State.COMPILED: _has_code,
    State.GUESSED: _guessed,
    State.OBSERVED: _observed,
    State.REFUSED: _refused,
    State.INTERRUPTED: _interrupted,
}
