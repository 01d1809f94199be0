"""Writing the text of a gate: blocks, checks, symbols.

A gate is one function made of checks that all leave for the same block, `miss`. Conditions are gathered with `need` and
tested together by `checkpoint`: before whatever may only be read once they hold, and at the latest before the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from parakeet_py.llvm.entry.stub_support import increment_ir
from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.signature.results import Result
from parakeet_py.signature.specs import ArraySpec, ListSpec, Signature, TextSpec


class Extent:
    """What a gate knows of an array leaf: the addresses it spans and its number of elements, as IR values."""

    __slots__ = ("elements", "high", "low")

    def __init__(self, low: str, high: str, elements: str) -> None:
        self.low, self.high, self.elements = low, high, elements


class GateWriter:
    """The text of one gate so far, and what its parts must know of each other."""

    def __init__(self, signature: Signature, result: Result, entry: str, name: str, has_state: bool) -> None:
        self.signature, self.result, self.entry, self.name = signature, result, entry, name
        self.has_state = has_state
        self.lines: list[str] = []
        self.counter = 0
        self.externals: set[str] = set()
        self.slot = 0
        self.leaf = 0
        self.extents: dict[int, Extent] = {}
        self.paired = {index for pair in signature.pairs for index in pair}
        self.pins: list[str] = []
        self.long_lists: list[tuple[str, ListSpec | TextSpec, int]] = []  # with the first slot of their leaf
        self.made: list[str] = []  # arrays of their items
        self.arrays: dict[int, str] = {}  # the objects of array leaves
        self.specs: dict[int, ArraySpec] = {}
        self.kept: tuple[int, ...] = ()  # leaves whose contents are copied before the call
        self.checks: list[str] = []
        self.built = 0  # entries of %objects
        self.columns = 0  # entries of %columns: new objects that hidden arguments are
        self.records: dict[int, str] = {}  # of array leaves that are columns: the arrays of records
        self.numeric = False  # does NumPy's error state matter?
        self.warns = False  # are floating-point flags reported?
        self.watched = 0  # modules whose names must not have been replaced
        self.checked = False
        self.limits: Mapping[int, int] | None = None  # of quick code, by slots

    def put(self, line: str) -> None:
        self.lines.append("  " + line)

    def let(self, value: str) -> str:
        self.counter += 1
        self.put(f"%v{self.counter} = {value}")
        return f"%v{self.counter}"

    def need(self, *conditions: str) -> None:
        """Remember conditions for the next `checkpoint`."""
        self.checks.extend(conditions)

    def checkpoint(self) -> None:
        """Go on only if all remembered conditions hold."""
        if not self.checks:
            return
        both = self.checks[0]
        for condition in self.checks[1:]:
            both = self.let(f"and i1 {both}, {condition}")
        self.checks.clear()
        self.go_on_if(both, "miss")

    def external(self, name: str) -> str:
        """A symbol of the whole process."""
        self.externals.add(f"gate.{name}")
        return f"@gate.{name}"

    def own(self, name: str) -> str:
        """A symbol of this gate."""
        self.externals.add(f"{self.name}.{name}")
        return f"@{self.name}.{name}"

    def at(self, pointer: str, offset: int) -> str:
        return pointer if offset == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, pointer: str, offset: int, type_: str = "ptr") -> str:
        return self.let(f"load {type_}, ptr {self.at(pointer, offset)}")

    def store_slot(self, type_: str, value: str) -> None:
        place = self.at("%arguments", 8 * self.slot)
        self.put(f"store {type_} {value}, ptr {place}")
        self.slot += 1

    def increment(self, pointer: str) -> None:
        if self.checked:
            self.go_on_if(self.let(f"call i1 @gate.reference(ptr {pointer})"), "unsafe")
            return
        self.counter += 1
        self.lines.extend(increment_ir(f"r{self.counter}", pointer).rstrip().split("\n"))

    def labels(self, *names: str) -> list[str]:
        """Labels of blocks with these names."""
        self.counter += 1
        return [f"{name}{self.counter}" for name in names]

    def begin(self, label: str) -> None:
        """What follows is in the block with this label."""
        self.lines.append(f"{label}:")

    def branch(self, condition: str, then: str, other: str) -> None:
        self.put(f"br i1 {condition}, label %{then}, label %{other}")

    def jump(self, label: str) -> None:
        """Go on in the next block, which has this label."""
        self.put(f"br label %{label}")
        self.begin(label)

    def go_on_if(self, condition: str, otherwise: str) -> None:
        (here,) = self.labels("b")
        self.branch(condition, here, otherwise)
        self.begin(here)

    def go_on_unless(self, condition: str, otherwise: str) -> None:
        (here,) = self.labels("b")
        self.branch(condition, otherwise, here)
        self.begin(here)

    def go_on_unless_null(self, pointer: str, otherwise: str) -> None:
        self.go_on_unless(self.let(f"icmp eq ptr {pointer}, null"), otherwise)

    def either(self, condition: str, type_: str, value: str, other: Callable[[], str]) -> str:
        """`value` if the condition holds, else what `other` writes the code of, in one block."""
        here, aside, join = self.labels("here", "other", "join")
        self.jump(here)
        self.branch(condition, join, aside)
        self.begin(aside)
        found = other()
        self.jump(join)
        return self.let(f"phi {type_} [{value}, %{here}], [{found}, %{aside}]")

    def settle(self, value: str) -> str:
        """What a call gives if no reference is wrong; else null, with an exception."""
        return (
            self.let(f"call ptr @gate.settle(ptr {value}, ptr {self.own('raise_failure')})") if self.checked else value
        )

    def miss_if_settled(self) -> None:
        """Let the call go on to the next callable, unless a reference is wrong. What operations handed back to Python
        have done already only `slow` knows how to go on from."""
        following = "slow" if self.has_state else "miss"
        if self.checked:
            self.settle("null")
            self.go_on_unless_null(self.let("call ptr @gate.PyErr_Occurred()"), following)
            self.put("ret ptr null")
        else:
            self.put(f"br label %{following}")

    def of_type(self, value: str, type_symbol: str) -> None:
        self.need(self.let(f"icmp eq ptr {self.field(value, Layout.TYPE)}, {type_symbol}"))
