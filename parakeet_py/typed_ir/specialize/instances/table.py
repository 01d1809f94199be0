"""What is known of the instances that one function makes."""

from __future__ import annotations

from typing import Any

from parakeet_py.frontend.evaluate.observed_values import Key
from parakeet_py.signature.facts import Facts
from parakeet_py.typed_ir.specialize.restarts import (
    ChangingInstance,
    InstanceAttribute,
    PythonMakesInstances,
    ReferencedItems,
    Site,
)
from parakeet_py.typed_ir.specialize.values import Made


class Instances:
    """What is known of the instances of one specialization, from facts and from its walk so far."""

    def __init__(self, facts: Facts) -> None:
        self.wanted = not facts.of(PythonMakesInstances)
        self.changing = frozenset(one.site for one in facts.of(ChangingInstance))  # sites of instances that change
        self.declared: dict[Site, list[str]] = {}  # attributes that instances get in branches
        for one in facts.of(InstanceAttribute):
            self.declared.setdefault(one.site, []).append(one.name)
        self.items = dict.fromkeys(one.cls for one in facts.of(ReferencedItems))  # classes that change in lists
        self.listed: set[Any] = set()  # classes of which instances have been in lists so far
        self.first: Key | None = None  # what makes the first, as the evaluator knows it
        self.refs = False  # is there one that changes?
        self.list_changes = 0  # how many statements have changed lists
        self.used: list[int] = []  # depths of references into lists, used in loops that did not begin before them
        self.kept: set[Made] = set()  # those that changed, and are values somewhere
        self.returned: dict[Any, list[Any]] = {}  # the tokens of those in the result, by class
