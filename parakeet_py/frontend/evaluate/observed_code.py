"""The same Python code with calls of hooks, for functions that are observed while they run.

Operators whose results the compiler may ask for are numbered: these are the code's sites. Further free variables:

    `.see(site, value)`  called after such an operation; in loops unless the result has the type that this gave last
    `.enter(site, callee, given, spread)`
                         called before a call: what is to be called, and what is to be compared afterwards or None; in
                         loops unless the id of the callee is in `.quiet`
    `.leave(site, compared)`
                         called after a call; in loops if there is something to be compared
    `.changed(site)`     called after a list or dict has been changed in place by an operator
    `.bound(site, f)`    called before a comprehension: gives the function for its elements

Code that is to replay has two more:

    `.again(site)`       called before such an operation, as long as there is something in `.log`: what it has given
                         already, or `MISSING`
"""

from __future__ import annotations

import ast

from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.caught_steps import item_of
from parakeet_py.frontend.evaluate.observed_values import Raised
from parakeet_py.frontend.evaluate.python_code import Writer
from parakeet_py.frontend.ssa import Const, Let, Pos, Star, Var

CONTAINERS = frozenset({list, dict})  # what operations may change unnoticed
OBSERVED = (ssa.Call, ssa.Attribute, ssa.Subscript, ssa.SetItem, ssa.Binary, ssa.Inplace, ssa.Compare, ssa.Unary)


class Missing:
    """Not in the log."""


MISSING = Missing()


class ObservedWriter(Writer):
    """Makes code that is observed."""

    def site(self, op: ssa.Op, pos: Pos) -> ast.expr:
        """The number of an operation, as a literal."""
        self.sites.append((pos, type(op).__name__))
        return self.literal(len(self.sites) - 1)

    def operation(self, let: Let, out: str | None) -> list[ast.stmt]:
        if not isinstance(let.op, OBSERVED):
            return super().operation(let, out)
        site = self.site(let.op, let.pos)
        see = None if out is None else self.call(self.outside(".see"), site, self.load(out))
        seen = f"seen.{len(self.sites)}"
        made = self.done(let, out, site)
        if see is not None and not self.loops:
            made.append(self.set(None, see))
        elif see is not None and out is not None:
            self.locals.append(seen)
            other = self.test(self.type_of(self.load(out)), ast.IsNot(), self.load(seen))
            made.append(self.when(other, [self.set(seen, see)]))
        return made

    def done(self, let: Let, out: str | None, site: ast.expr) -> list[ast.stmt]:
        """An operation, and what is to be known of its effects."""
        match let.op:
            case ssa.Call(function) as op if not (isinstance(function, Const) and function.value is item_of):
                return self.entered(op, out, site)
            case ssa.Inplace(_, Var() as left):
                out = out or self.new("value")
                lists = self.test(self.type_of(self.load(out)), ast.In(), self.constant(CONTAINERS))
                same = self.test(self.load(out), ast.Is(), self.read(left))
                note = self.set(None, self.call(self.outside(".changed"), site))
                return [*super().operation(let, out), self.when(lists, [self.when(same, [note])])]
        return super().operation(let, out)

    def entered(self, op: ssa.Call, out: str | None, site: ast.expr) -> list[ast.stmt]:
        callee, compared, target = self.new("callee"), self.new("compared"), self.named(op.function)
        given = [self.read(one) for one in op.args if not isinstance(one, Star)]
        given += [self.read(operand) for name, operand in op.kwargs if name is not None]
        spread = [self.read(one.operand) for one in op.args if isinstance(one, Star)]
        spread += [self.read(operand) for name, operand in op.kwargs if name is None]
        entered = self.call(self.outside(".enter"), site, target, self.tuple_of(given), self.tuple_of(spread))
        enter = self.assign(self.pair(callee, compared), entered)
        done = self.set(out, self.applied(self.load(callee), op))
        leave = self.set(None, self.call(self.outside(".leave"), site, self.load(compared)))
        if not self.loops:
            return [enter, done, leave]
        unknown = self.test(self.call(self.predefined("id"), target), ast.NotIn(), self.outside(".quiet"))
        plain = [self.set(callee, target), self.set(compared, self.literal(None))]
        some = self.test(self.load(compared), ast.IsNot(), self.literal(None))
        return [self.when(unknown, [enter], plain), done, self.when(some, [leave])]

    def functions(self, op: ssa.Comprehension, pos: Pos) -> tuple[list[ast.stmt], list[ast.expr]]:
        _, functions = super().functions(op, pos)
        site = self.site(op, pos)
        names = [self.new("function") for _ in functions]
        bound = [self.call(self.outside(".bound"), site, one) for one in functions]
        return [self.set(name, one) for name, one in zip(names, bound, strict=True)], list(map(self.load, names))


class ReplayingWriter(ObservedWriter):
    """Makes code that asks for what operations have given already."""

    def operation(self, let: Let, out: str | None) -> list[ast.stmt]:
        made = super().operation(let, out)
        if not isinstance(let.op, OBSERVED):
            return made
        again, site = self.new("again"), self.sites.index((let.pos, type(let.op).__name__))
        known = self.load(again)
        ask = self.set(again, self.call(self.outside(".again"), self.literal(site)))
        raised = self.test(self.type_of(known), ast.Is(), self.constant(Raised))
        taken = [self.when(raised, [self.throw(self.attribute(known, "error"))])]
        taken += [] if out is None else [self.set(out, known)]
        missing = self.constant(MISSING)
        asked = self.when(self.outside(".log"), [ask], [self.set(again, missing)])
        return [asked, self.when(self.test(known, ast.Is(), missing), made, taken)]
