"""What calls do with containers: methods, functions of modules, Python's builtins.

A callee that is not known keeps what it is given (`base/callee_effects.py`); methods of other objects and functions of
modules are left to specialization, which looks at the callee itself (`containers/owned_containers.py`).
"""

from __future__ import annotations

from types import CellType

from parakeet_py.base.callee_effects import MADE, MAKERS, named
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.aliases import SPECIAL, Aliases, View
from parakeet_py.frontend.ownership.changes import name_of

_COUNTING = named(items_only=True)
_KNOWN = named(keeps=False)
_LAZY = named(lazy=True)
_MADE = {name: MADE[name] for name in MAKERS & _KNOWN if MADE[name] not in ("frozenset", "tuple")}
_VIEWS = frozenset({"items", "keys", "values"})
_NUMBERS = {"int": 0, "float": 0.0, "bool": False, "complex": 0j}
GOES_THROUGH = _KNOWN | _LAZY


class Calls(Aliases):
    """What becomes of the objects that are given to callees, and what these give."""

    def called(self, op: ssa.Call) -> tuple[str, str]:
        """What is called, as far as that can be seen: a method or a function of a module, a name, a literal."""
        if isinstance(op.function, ssa.Const):
            return "literal", getattr(op.function.value, "__name__", "")
        made = self.definitions.get(op.function)
        name = name_of(made)
        if not name:
            return "unknown", ""
        return ("attribute" if made is not None and isinstance(made.op, ssa.Attribute) else "name"), name

    def call(self, let: ssa.Let, op: ssa.Call) -> None:
        how, name = self.called(op)
        given = [item.operand if isinstance(item, ssa.Star) else item for item in op.args]
        given += [operand for _, operand in op.kwargs]
        if how == "literal":
            self.literal_call(let, op, given)
        elif how == "attribute":
            self.attribute_call(let, op, name, given)
        elif how == "name" and name in GOES_THROUGH:
            self.known_call(let, op, name, given)
        elif how == "name" and self.made_by_class(let, op, name, given):
            pass
        else:
            for operand in given:
                self.share(operand)
            self.of(let.outs[0]).unknown = True

    def literal_call(self, let: ssa.Let, op: ssa.Call, given: list[ssa.Operand]) -> None:
        assert isinstance(op.function, ssa.Const)
        out = let.outs[0]
        if op.function.value is CellType:
            made = self.make(let, "cell")
            if given:
                self.merge_object(self.items(made), given[0])
            if given and isinstance(given[0], ssa.Var):
                self.stored.setdefault(id(let), []).append(given[0])
        elif op.function.value is len or op.function.value is range:
            self.of(out).foreign = True
        else:
            self.view_of(out, given)
            for operand in given:
                self.as_list(operand)

    def attribute_call(self, let: ssa.Let, op: ssa.Call, name: str, given: list[ssa.Operand]) -> None:
        """A method of a container, or of something else, or a function of a module."""
        assert isinstance(op.function, ssa.Var)
        made = self.definitions[op.function].op
        assert isinstance(made, ssa.Attribute)
        out, held = let.outs[0], made.object
        if isinstance(held, ssa.Var) and name == "copy" and not given and not op.kwargs and not self.of(held).kinds:
            self.spread_over(let, self.make(let, "copy"), held)
            return
        if not isinstance(held, ssa.Var) or not self.of(held).kinds:
            if self.made_by_class(let, op, name, given):
                return
            self.of(out).unknown = True
            for operand in given:
                self.as_list(operand)
            return
        of_held = self.of(held)
        if name in ("index", "count"):
            self.as_list(held)
            self.of(out).foreign = True
        elif name == "copy" and not given:
            self.as_list(held)
            self.spread_over(let, self.make(let, "copy"), held)
        elif name == "get":
            if of_held.kinds & {"deque"}:
                self.share(held)
            self.unify(self.of(out), self.items(of_held))
            self.views[out] = View("item", (held,))
            for operand in given[1:]:
                if isinstance(operand, ssa.Var):
                    self.unify(self.of(out), self.of(operand))
                    self.stored.setdefault(id(let), []).append(operand)
        elif name in _VIEWS and not given:
            made_view = self.of(out)
            made_view.kinds.add("iterator")
            self.views[out] = View("iterator", (held,))
            if name == "items":
                made_view.kinds.add("pairs")
                self.parts[out] = (None, self.items(of_held))
            elif name == "values":
                made_view.inner = self.items(of_held)
        elif name == "most_common" and "Counter" in of_held.kinds and len(given) < 2 and not op.kwargs:
            self.of(out).foreign = True
        else:
            self.share(held)
            self.of(out).unknown = True
        for operand in given:
            self.as_list(operand)

    def known_call(self, let: ssa.Let, op: ssa.Call, name: str, given: list[ssa.Operand]) -> None:
        out = let.outs[0]
        if name not in _COUNTING | _LAZY:
            for operand in given:
                self.as_list(operand)
        if name in _MADE:
            made = self.make(let, _MADE[name])
            for item in op.args[:1]:
                operand = item.operand if isinstance(item, ssa.Star) else item
                if name == "dict" and isinstance(operand, ssa.Var) and operand in self.parts:
                    self.share_items(operand)
                self.spread_over(let, made, operand)
            for _, operand in op.kwargs if name == "dict" else ():
                self.share(operand)
        elif name in ("min", "max") and len(given) == 1 and isinstance(given[0], ssa.Var):
            self.unify(self.of(out), self.element(given[0]))
            self.views[out] = View("item", (given[0],))
        elif name == "tuple":
            for operand in given:
                self.share_items(operand)
        elif name in _LAZY:
            self.lazy(let, name, given)
        else:
            self.of(out).foreign = True

    def lazy(self, let: ssa.Let, name: str, given: list[ssa.Operand]) -> None:
        out = let.outs[0]
        if name in ("enumerate", "zip"):
            of_items = [self.element(one) if isinstance(one, ssa.Var) else None for one in given]
            self.parts[out] = (None, *of_items[:1]) if name == "enumerate" else tuple(of_items)
            self.of(out).kinds |= {"iterator", "pairs"}
            self.views[out] = View("iterator", tuple(one for one in given if isinstance(one, ssa.Var)))
            return
        self.view_of(out, given)

    def made_by_class(self, let: ssa.Let, op: ssa.Call, name: str, given: list[ssa.Operand]) -> bool:
        """`deque(items)`, `Counter(items)`, `defaultdict(int)`"""
        if name not in SPECIAL or op.kwargs or len(given) > 1 or any(isinstance(arg, ssa.Star) for arg in op.args):
            return False
        if name == "defaultdict" and self.default_of(let) is None:
            return False
        made = self.make(let, name)
        self.has_special = True
        if name != "defaultdict":
            for operand in given:
                self.spread_over(let, made, operand)
        if name == "Counter":
            made.changed = True
        return True

    def default_of(self, let: ssa.Let) -> object:
        """The number that a defaultdict gives for what it does not have, or `list`; None if it is none of these."""
        args = let.op.args if isinstance(let.op, ssa.Call) else ()
        made = self.definitions.get(args[0]) if len(args) == 1 and isinstance(args[0], ssa.Var) else None
        if made is None:
            return None
        if isinstance(made.op, ssa.MakeClosure):
            function = made.op.function
            if function.params or function.body.statements or not isinstance(function.body.results[0], ssa.Const):
                return None
            value = function.body.results[0].value
            return value if type(value) in (bool, int, float, complex) else None
        name = name_of(made)
        return list if name == "list" else _NUMBERS.get(name)
