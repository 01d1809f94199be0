"""`heapq` and `bisect` on lists of the function's own; the steps are in `library.heaps`."""

from __future__ import annotations

import bisect
import heapq
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.python.table import builtin
from parakeet_py.typed_ir.specialize.values import ScalarV, Static, TupleV, Value, grows, is_none, is_rows, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

FUNCTIONS = {
    "heappush": heapq.heappush,
    "heappop": heapq.heappop,
    "heapify": heapq.heapify,
    "insort": bisect.insort,
    "insort_left": bisect.insort_left,
    "insort_right": bisect.insort_right,
}

_NEGATIVE = "lo must be non-negative" if sys.version_info < (3, 15) else "lo cannot be negative"


def change(s: Context, grown: Value, name: str, function: Value, args: Sequence[Value]) -> list[Value]:
    """The outs of a change by one of these functions: the item it gives, the list."""
    if not isinstance(function, Static) or function.object is not FUNCTIONS[name]:
        raise s.unsupported(f"a list that is changed, given to a function called {name}")
    assert grows(grown)
    b = s.builder
    length = grown.length.operand
    match name:
        case "heappush":
            made = dynamic_lists.append(s, grown, args[0])
            s.call_library("heap_up", [made, py(0), ScalarV(length)])
            return [made]
        case "heapify":
            s.call_library("heap_all", [grown])
            return [grown]
        case "heappop":
            s.check(b.prim("gt", length, ZERO, type=PYBOOL), "IndexError", "index out of range")
            last, rest = dynamic_lists.pop(s, grown, None)
            assert grows(rest)

            def first() -> list[Value]:
                item = dynamic_lists.item_at(s, rest, ZERO)
                dynamic_lists.replace_item(s, rest, py(0), last)
                s.call_library("heap_down", [rest, py(0)])
                return [item]

            some = b.prim("gt", rest.length.operand, ZERO, type=PYBOOL)
            (item,) = s.branch(some, first, lambda: [last])
            return [item, rest]
    side = "left" if name == "insort_left" else "right"
    place = s.call_library(f"sorted_place_{side}", [grown, args[0], py(0), grown.length])
    return [dynamic_lists.insert(s, grown, place, args[0])]


def _place(side: str) -> Callable[..., Value]:
    def handle(
        s: Context,
        a: Value,
        x: Value,
        lo: Value | None = None,
        hi: Value | None = None,
        *,
        key: Value | None = None,
    ) -> Value:
        if key is not None and not is_none(key):
            raise s.hand_back("bisect with a key")
        if isinstance(a, TupleV) and a.kind == "list" and dynamic_lists.is_uniform(a):
            a = dynamic_lists.of_scalars(s, a)
        low = py(0) if lo is None else lo
        high = s.call(Static(len), [a], {}) if hi is None or is_none(hi) else hi
        bounds = (low, high)
        empty = isinstance(a, TupleV) and not a.items
        if not (empty or grows(a) or is_rows(a)) or not all(
            isinstance(one, ScalarV) and one.type == PYINT for one in bounds
        ):
            raise s.hand_back("bisect of such a sequence")
        if lo is not None:
            s.check(s.truth(s.compare("ge", low, py(0))), "ValueError", _NEGATIVE)
        if empty:  # any item that is looked at is out of range
            s.check(s.truth(s.compare("ge", low, high)), "IndexError", "list index out of range")
            return low
        return s.call_library(f"sorted_place_{side}", [a, x, low, high])

    return handle


for _function, _side in ((bisect.bisect_left, "left"), (bisect.bisect_right, "right")):
    builtin(_function)(_place(_side))
