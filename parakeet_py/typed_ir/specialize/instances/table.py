"""What is known of the instances that one function makes."""

from __future__ import annotations

from typing import Any

from parakeet_py.typed_ir.specialize.values import Made


class NeedInstance(Exception):
    """An instance has to be made in another way: start again with what is known now."""


class Instances:
    """What is known of the instances of one specialization, from earlier ones too."""

    def __init__(self) -> None:
        self.wanted = True
        self.changing: set[Any] = set()  # sites of instances that change
        self.declared: dict[Any, tuple[str, ...]] = {}  # attributes that instances get in branches
        self.made = False  # is there any?
        self.refs = False  # is there one that changes?
        self.items: set[Any] = set()  # classes whose instances change in lists
        self.used: list[int] = []  # depths of references into lists, used in loops that did not begin before them
        self.kept: set[Made] = set()  # those that changed, and are values somewhere
        self.returned: dict[Any, list[Any]] = {}  # the tokens of those in the result, by class

    def again(self) -> Instances:
        """For another attempt."""
        other = Instances()
        other.wanted, other.changing, other.declared = self.wanted, self.changing, self.declared
        other.items = self.items
        return other
