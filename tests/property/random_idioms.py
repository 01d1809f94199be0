"""What users' functions are made of, in random programs: a few lines each, around arrays and numbers of the program.

Lists that grow in loops, work lists, counting in dicts and sets, nested searches that end early, recursion on parts,
generators, closures that keep state, `try` in loops, views of views changed in place, stores by repeated indices,
`out=` and `where=`, arrays of rank 0, small, unsigned and complex types beside others, small kernels, heaps, queues and
what else Python's modules have, callees that keep what changes later.

{0}, {1}, {2} are new names, {x} and {y} any values, {n} a number, {a} and {b} arrays of rank 1 or more, {v} one of
rank 1, {m} of rank 2, {z} of rank 0; a form is drawn only where there is what it takes.
"""

from __future__ import annotations

import functools
import string
from typing import Any

from tests.property.idioms_of_arrays import IN_PLACE, RECORDS, TYPES
from tests.property.idioms_of_control import LOOPS, TABLES
from tests.property.idioms_of_functions import FUNCTIONS, KERNELS
from tests.property.idioms_of_kept import KEPT
from tests.property.idioms_of_modules import MODULES
from tests.property.random_syntax import Syntax

FAMILIES = (LOOPS, TABLES, FUNCTIONS, IN_PLACE, TYPES, KERNELS, MODULES, KEPT, RECORDS)


@functools.cache
def words_of(form: str) -> frozenset[str]:
    """The words that a form leaves open."""
    return frozenset(word for _, word, _, _ in string.Formatter().parse(form) if word)


class Idioms(Syntax):
    def idiom(self, scope: dict[str, Any]) -> list[str]:
        """One of the forms, filled in."""
        self.refusable = True
        words = {"x": self.leaf(scope), "y": self.leaf(scope), "n": self.pick([*self.numbers(scope), "2", "0.5"])}
        arrays = self.arrays(scope, lambda a: a.ndim > 0)
        if arrays:
            words |= {"a": self.pick(arrays), "b": self.pick(arrays)}
        for word, rank in ("z", 0), ("v", 1), ("m", 2):
            some = self.arrays(scope, lambda a, rank=rank: a.ndim == rank)  # type: ignore[misc]
            if some:
                words[word] = self.pick(some)
        known = {*words, "0", "1", "2"}
        fitting = [[form for form in family if words_of(form) <= known] for family in FAMILIES]
        form = self.pick(self.pick([family for family in fitting if family]))
        return str(form.format(self.name(), self.name(), self.name(), **words)).splitlines()
