"""The forms in which a function with machine code is called: with which keywords, and which arguments left out.

Machine code takes calls in positional form. Where calls of another form come again and again, they get a gate that
brings them into it (`llvm.entry.positional_gate`), so that they do not pass the dispatcher.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from parakeet_py.llvm.entry.callable_type import Plain, gates_of, install

ENOUGH: Final = 4  # calls of a form that have passed the dispatcher
MAX_FORMS: Final = 8  # that have gates, of one function


class FormsOfCalls:
    """How many calls of each form the dispatcher of one function has brought into positional form.

    Attributes
    ----------
    counts : by arguments given by position, and names of the others; of forms with gates, `ENOUGH`
    gates : how many forms have gates
    """

    __slots__ = ("counts", "gates")

    def __init__(self) -> None:
        self.counts: dict[tuple[int, tuple[str, ...]], int] = {}
        self.gates = 0

    def counted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Have there been enough calls of this form, with this one, that it should get a gate?"""
        form = len(args), tuple(kwargs)
        count = self.counts.get(form, 0) + 1
        if count > ENOUGH or len(self.counts) > 4 * MAX_FORMS:
            return False
        self.counts[form] = count
        return count == ENOUGH

    def open(self, function: FunctionType, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let a gate take the calls of a form; if there is no machine code yet, count anew. The caller has the lock."""
        from parakeet_py.llvm.entry.positional_gate import MAX_PARAMETERS, PositionalGate

        names = tuple(kwargs)
        gates = gates_of(instance)
        native = [gate for gate in gates if not isinstance(gate, Plain | PositionalGate)]
        if not native:
            self.counts[len(args), names] = 0
            return
        known = all(type(name) is str for name in names) and function.__code__.co_argcount <= MAX_PARAMETERS
        if not known or self.gates >= MAX_FORMS:
            return
        self.gates += 1
        gate = PositionalGate(function, instance, len(args), names)
        lasting = [one for one in gates if isinstance(one, Plain) and one.is_lasting]
        install(instance, [*lasting, gate, *(one for one in gates if one not in lasting)])
