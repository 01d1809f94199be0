"""Calls while NumPy's error state asks for more than warnings (`np.seterr(all="raise")`): Python runs them.

No machine code takes them. Programs that set such a state seldom set it back, so a gate to Python soon takes such calls
for `SPAN` nanoseconds of their time; then one call looks again whether that is still so. Where the state has been set
back meanwhile, machine code takes its calls, before that gate (behind it those that are not positional).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from parakeet_py.call.dispatch.first_calls import gates_pay
from parakeet_py.call.pricing import MOST
from parakeet_py.signature.small_arguments import are_small, unsized

SPAN: Final = 5_000_000
FEW: Final = 8  # calls before a gate


class ErrorStates:
    """The calls of one function that Python runs as errors are asked for.

    Attributes
    ----------
    calls : how many there have been, but for those that the gate took
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.calls = 0
        self.gate: Any = None

    def gate_for(self, values: tuple[Any, ...]) -> Any:
        """A gate to Python for calls with arguments as these, with time to take them; None if it does not pay yet."""
        self.calls += 1
        if self.calls < FEW or not gates_pay():
            return None
        from parakeet_py.llvm.entry.argument_sizes import add_unsized
        from parakeet_py.llvm.entry.plain_gate import PlainGate

        are_small(values, MOST)
        add_unsized(unsized.intersection(map(type, values)))
        if self.gate is None:
            self.gate = PlainGate(self.function, None, MOST, 0)
        self.gate.left = SPAN
        return self.gate
