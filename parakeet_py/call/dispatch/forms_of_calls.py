"""The forms in which a function with machine code is called: with which keywords, and which arguments left out.

Machine code takes calls in positional form. Where calls of another form come again and again, they get a gate that
brings them into it (`llvm.entry.positional_gate`), so that they do not pass the dispatcher.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import FunctionType
from typing import Any, Final

from parakeet_py.llvm.entry.callable_type import Plain, gates_of, install
from parakeet_py.signature.positional import VARARGS, VARKEYWORDS, parameter_names

ENOUGH: Final = 4  # calls of a form that have passed the dispatcher
MAX_FORMS: Final = 8  # that have gates, of one function


class FormsOfCalls:
    """How many calls of each form the dispatcher of one function has brought into positional form.

    Attributes
    ----------
    counts : by arguments given by position, and names of the others; of forms with gates, `ENOUGH`
    forms, gates : those that have gates
    last : the form of the call that a gate has taken last, a number
    """

    __slots__ = ("counts", "forms", "function", "gates", "last")

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.counts: dict[tuple[int, tuple[str, ...]], int] = {}
        self.forms: list[tuple[int, tuple[str, ...]]] = []
        self.gates: list[Any] = []
        self.last = ctypes.c_int64()

    def counted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Have there been enough calls of this form, with this one, that it should get a gate?"""
        form = len(args), tuple(kwargs)
        count = self.counts.get(form, 0) + 1
        if count > ENOUGH or len(self.counts) > 4 * MAX_FORMS:
            return False
        self.counts[form] = count
        return count == ENOUGH

    def open(self, instance: Any, inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let a gate take the calls of a form; if there is no machine code yet, count anew. The caller has the lock.

        `inner`: what takes calls in positional form, if the function itself cannot.
        """
        from parakeet_py.llvm.entry.positional_gate import MAX_PARAMETERS, PositionalGate

        form = len(args), tuple(kwargs)
        code = self.function.__code__
        target = instance if inner is None else inner
        if all(isinstance(gate, Plain | PositionalGate) for gate in gates_of(target)):
            self.counts[form] = 0
            return
        few = max(len(parameter_names(code)), len(kwargs)) <= MAX_PARAMETERS and len(self.forms) < MAX_FORMS
        if not few or any(type(name) is not str for name in kwargs):
            return
        gate = PositionalGate(self.function, target, *form, len(self.forms), self.last)
        self.forms.append(form)
        self.gates.append(gate)
        gates = gates_of(instance)
        first = [one for one in gates if isinstance(one, Plain) and (one.is_lasting or inner is not None)]
        install(instance, [*first, gate, *(one for one in gates if one not in first)])

    def of_last(self, normal: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call in positional form that a gate has brought into it just now, as it was made."""
        given, names = self.forms[self.last.value]
        code = self.function.__code__
        places, count = parameter_names(code), code.co_argcount
        args = tuple(normal[: min(given, count)])
        if code.co_flags & VARARGS:
            args += normal[count]
        pairs = normal[-1] if code.co_flags & VARKEYWORDS else ()
        collected = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return args, {name: collected[name] if name in collected else normal[places.index(name)] for name in names}
