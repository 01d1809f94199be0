"""Emission of typed IR: a stack of open blocks, with sharing and facts about integers.

Equal pure expressions become one variable (value numbering, scoped by block), and index arithmetic is kept in linear
normal form (sum of coefficient * atom + constant), so that two extents that are equal for every input are the *same*
operand. Equality of operands is how the specializer knows that two shapes agree, and bounds of linear forms are how it
knows that an index is in range: whatever is decided here needs no run-time check and no pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import exact_loops
from parakeet_py.base.types import BOOL, PYBOOL, PYFLOAT, PYINT, TWICE_ROUNDED, Scalar, Type
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir import ir

if TYPE_CHECKING:
    from parakeet_py.signature.specs import Source
    from parakeet_py.typed_ir.specialize.values import Value

NO_POS = Pos(0, 0, 0, 0)
SMALL = 1 << 47  # extents and indices of real arrays are below this
SAFE = 1 << 60

# A linear form: ((var, coefficient), ...) ordered by uid, and the constant.
Form = tuple[tuple[tuple[ir.Var, int], ...], int]


class _Scope:
    __slots__ = ("excluded", "forms", "learned", "shared", "statements")

    def __init__(self) -> None:
        self.statements: list[ir.Let] = []
        self.shared: dict[Any, ir.Var] = {}
        self.forms: dict[Form, ir.Operand] = {}
        self.excluded: dict[ir.Var, frozenset[int]] = {}
        self.learned: list[tuple[set[ir.Var], ir.Var]] = []  # facts that a check in this block has made sure of


# Elementary functions that are rounded in one of several ways, and the C library's names of them.
_OF_C = {name: name for name in ir.ELEMENTARY} | {"power": "pow", "gamma": "tgamma"}


class Builder:
    def __init__(self, refusal: Callable[[str], Exception] = ValueError) -> None:
        self.refusal = refusal  # of what exact code has no form of
        self.outermost = _Scope()
        self.entry = _Scope()  # what stands before all of it
        self.scopes: list[_Scope] = [self.outermost]
        self.pos = NO_POS
        self.form_of: dict[ir.Var, Form] = {}
        self.nonnegative: set[ir.Var] = set()
        self.nonzero: set[ir.Var] = set()
        self.small: set[ir.Var] = set()  # |v| <= SMALL
        self.lower: dict[ir.Var, Form] = {}  # v >= form
        self.upper: dict[ir.Var, Form] = {}  # v <= form
        self.definition: dict[ir.Var, ir.Op] = {}
        self.still: dict[ir.Var, tuple[int, ...]] = {}  # axes of arguments with a stride of 0
        self.place: dict[ir.Var, int] = {}  # which of several outs of its definition a variable is
        self.home: dict[ir.Var, _Scope] = {}  # the block a variable was bound in
        self.tags: dict[ir.Var, int] = {}  # tags of values of several kinds (see `variants`), and how many they have
        self.fields: dict[Source, Value] = {}  # what assigned attributes hold (see `field_state`)
        self.equal: dict[ir.Var, Form] = {}  # facts learned from checks: extents that have been found equal

    # ---- blocks ------------------------------------------------------------------------------------------------------

    @contextmanager
    def block(self) -> Iterator[list[ir.Let]]:
        """Open a block; what is emitted inside is appended to the list it gives. Attributes made inside end with it."""
        scope = _Scope()
        self.scopes.append(scope)
        facts, fields = dict(self.equal), set(self.fields)
        try:
            yield scope.statements
        finally:
            if scope in self.scopes:
                self.close(scope)
            self.equal = facts
            if not fields.issuperset(self.fields):
                self.fields = {source: value for source, value in self.fields.items() if source in fields}

    def open_block(self) -> _Scope:
        """Open a block that stays open until it is dropped from `scopes`."""
        self.scopes.append(_Scope())
        return self.scopes[-1]

    def close(self, scope: _Scope) -> None:
        """Drop an open block and those in it; what their checks have shown holds there only."""
        at = self.scopes.index(scope)
        for one in self.scopes[at:]:
            _forget(one.learned, 0)
        del self.scopes[at:]

    def mark(self) -> tuple[Any, ...]:
        """The state of the open blocks, to return to by `rollback` when what follows has to be undone."""
        scope = self.scopes[-1]
        known = dict(scope.shared), dict(scope.forms), dict(scope.excluded), dict(self.equal)
        return len(self.scopes), len(scope.statements), len(scope.learned), *known, dict(self.fields)

    def rollback(self, mark: tuple[Any, ...]) -> None:
        depth, count, learned, shared, forms, excluded, equal, self.fields = mark
        if len(self.scopes) > depth:
            self.close(self.scopes[depth])
        scope = self.scopes[-1]
        del scope.statements[count:]
        _forget(scope.learned, learned)
        scope.shared, scope.forms, scope.excluded, self.equal = shared, forms, excluded, equal
        if scope is self.outermost:
            scope.shared |= self.entry.shared

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """What is emitted inside stands before all else, wherever the walk is, and is not undone."""
        scopes, self.scopes = self.scopes, [self.entry]
        pos, self.pos = self.pos, NO_POS
        start = len(self.entry.statements)
        try:
            yield
        finally:
            self.scopes, self.pos = scopes, pos
            self.outermost.shared |= self.entry.shared
            for let in self.entry.statements[start:]:
                self.home |= dict.fromkeys(let.outs, self.outermost)

    def emit(self, op: ir.Op, *types: Type, name: str = "t") -> tuple[ir.Var, ...]:
        """Append a statement; returns its outs, one per type."""
        outs = tuple(ir.Var(name, kind) for kind in types)
        self.scopes[-1].statements.append(ir.Let(outs, op, self.pos))
        for place, out in enumerate(outs):
            self.definition[out] = op
            if place:
                self.place[out] = place
            self.home[out] = self.scopes[-1]
        return outs

    def emit1(self, op: ir.Op, kind: Type, name: str = "t") -> ir.Var:
        return self.emit(op, kind, name=name)[0]

    def in_scope(self, operand: ir.Operand) -> bool:
        """True for constants and for variables bound by a statement of an open block."""
        return isinstance(operand, ir.Const) or self.home.get(operand) in self.scopes

    def excluded(self, tag: ir.Var) -> frozenset[int]:
        """What a tag is known not to be here."""
        return frozenset(number for scope in self.scopes for number in scope.excluded.get(tag, ()))

    def exclude(self, tag: ir.Var, numbers: Iterable[int]) -> None:
        """A tag is none of these numbers, as long as the innermost block is open."""
        excluded = self.scopes[-1].excluded
        excluded[tag] = excluded.get(tag, frozenset()) | frozenset(numbers)

    def hoisted(self, operand: ir.Operand) -> ir.Operand | None:
        """An operand of a closed block, computed again where we are; None if it depends on more than is in scope."""
        if self.in_scope(operand):
            return operand
        assert isinstance(operand, ir.Var)
        op = self.definition.get(operand)
        if isinstance(op, ir.Prim):
            args = [self.hoisted(arg) for arg in op.args]
            if None not in args:
                made = self.pure(ir.Prim(op.name, tuple(arg for arg in args if arg is not None)), operand.type)
                if operand in self.nonnegative:
                    self.nonnegative.add(made)
                if operand in self.small:
                    self.small.add(made)
                return made
        return None

    def pure(self, op: ir.Op, kind: Type, name: str = "t") -> ir.Var:
        """Emit a pure expression unless an open block has it already."""
        key = (op, kind)
        for scope in reversed(self.scopes):
            found = scope.shared.get(key)
            if found is not None:
                return found
        var = self.emit1(op, kind, name)
        self.scopes[-1].shared[key] = var
        return var

    # ---- scalars -----------------------------------------------------------------------------------------------------

    def prim(self, name: str, *args: ir.Operand, type: Scalar | None = None) -> ir.Operand:
        """A primitive of the type of its last argument (comparisons and tests: NumPy bool) unless `type` is given."""
        if type is None:
            if name in ir.COMPARE or name in ir.FLOAT_TESTS:
                type = BOOL
            else:
                kind = args[-1].type
                assert isinstance(kind, Scalar)
                type = kind
        if exact_loops.exact.get() and name in _OF_C:
            exactly = self._by_c(name, args, type)
            if exactly is not None:
                return exactly
        folded = _fold(name, args, type)
        if folded is not None:
            return folded
        if name in ("eq", "ne") and args[0] in self.nonzero and args[1] == ir.ZERO:
            return ir.Const(name == "ne", type)
        return self.pure(ir.Prim(name, args), type)

    def _by_c(self, name: str, args: tuple[ir.Operand, ...], kind: Scalar) -> ir.Operand | None:
        """An elementary function as the C library has it, whose bits are those of `math` and of NumPy's scalars."""
        dtype = ir.dtype_of(args[0])
        if dtype == "float16":
            single = Scalar("float32")
            return self.cast(self.prim(name, *[self.cast(arg, single) for arg in args]), kind)
        full = f"libm.{_OF_C[name]}"
        if exact_loops.c_address(full, ir.dtype_of(args[0])) is None:
            raise self.refusal(f"{name}, which the C library has in no exact form, in exact code")
        return self.pure(ir.Prim(full, args), kind)

    def cast(self, arg: ir.Operand, kind: Scalar) -> ir.Operand:
        source = arg.type
        assert isinstance(source, Scalar)
        if source == kind:
            return arg
        if isinstance(arg, ir.Const) and (source.dtype == kind.dtype or _exact(arg.value, kind.dtype)):
            return ir.Const(np.dtype(kind.dtype).type(arg.value).item(), kind)
        if source == PYINT and kind.dtype in TWICE_ROUNDED and not self.is_small(arg):
            arg = self.cast(arg, PYFLOAT)  # NumPy asks Python for a float, which is rounded once more
        return self.pure(ir.Cast(arg), kind)

    def select(self, condition: ir.Operand, yes: ir.Operand, no: ir.Operand) -> ir.Operand:
        if isinstance(condition, ir.Const):
            return yes if condition.value else no
        if yes == no:
            return yes
        return self.prim("select", condition, yes, no)

    def logical_and(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        """Both of two bools; the result is a Python bool."""
        left, right = self.cast(left, PYBOOL), self.cast(right, PYBOOL)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ir.Const):
                return other if one.value else one
        return left if left == right else self.prim("and", left, right, type=PYBOOL)

    def logical_or(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        """Either of two bools; the result is a Python bool."""
        left, right = self.cast(left, PYBOOL), self.cast(right, PYBOOL)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ir.Const):
                return one if one.value else other
        return left if left == right else self.prim("or", left, right, type=PYBOOL)

    # ---- linear index arithmetic -------------------------------------------------------------------------------------

    def form(self, operand: ir.Operand) -> Form:
        """The linear form of an integer operand."""
        if isinstance(operand, ir.Const):
            return ((), int(operand.value.real))
        return self.form_of.get(operand) or (((operand, 1),), 0)

    def resolved(self, form: Form) -> Form:
        """The form with extents replaced by those they were checked equal to."""
        if not self.equal or not any(var in self.equal for var, _ in form[0]):
            return form
        made: Form = ((), form[1])
        for var, coefficient in form[0]:
            made = combine_forms(made, self.equal.get(var, (((var, 1),), 0)), coefficient)
        return self.resolved(made)

    def from_form(self, form: Form) -> ir.Operand:
        """The operand whose value is the form, by plain arithmetic (the caller knows that it does not overflow)."""
        form = self.resolved(form)
        terms, constant = form
        if not terms:
            return ir.Const(constant, PYINT)
        if constant == 0 and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        for scope in reversed(self.scopes):
            found = scope.forms.get(form)
            if found is not None:
                return found
        result: ir.Operand | None = None
        for var, coefficient in sorted(terms, key=lambda term: term[1] < 0):
            term: ir.Operand = var
            if coefficient not in (1, -1):
                term = self.pure(ir.Prim("mul", (var, ir.Const(abs(coefficient), PYINT))), PYINT)
            if result is None and coefficient > 0:
                result = term
            elif result is None:
                result = self.pure(ir.Prim("neg", (term,)), PYINT)
            else:
                result = self.pure(ir.Prim("add" if coefficient > 0 else "sub", (result, term)), PYINT)
        assert result is not None
        if constant:
            name = "add" if constant > 0 else "sub"
            result = self.pure(ir.Prim(name, (result, ir.Const(abs(constant), PYINT))), PYINT)
        assert isinstance(result, ir.Var)
        if form != (((result, 1),), 0):
            self.form_of[result] = form
        self.scopes[-1].forms[form] = result
        if self.form_is_small(form):
            self.small.add(result)
        if self.at_least_zero(form):
            self.nonnegative.add(result)
        return result

    def form_is_small(self, form: Form) -> bool:
        """True when evaluating the form cannot overflow: few small atoms, small constant."""
        total = abs(form[1])
        for var, coefficient in form[0]:
            if var not in self.small:
                return False
            total += abs(coefficient) * SMALL
        return total < SAFE

    def is_small(self, operand: ir.Operand) -> bool:
        if isinstance(operand, ir.Const):
            return abs(operand.value) <= SMALL
        return operand in self.small or self.form_is_small(self.form(operand))

    def as_count(self, operand: ir.Operand) -> ir.Operand:
        """An operand that is known to be a count of things in memory: small, and not negative."""
        if isinstance(operand, ir.Var):
            self.nonnegative.add(operand)
            self.small.add(operand)
        return operand

    def index_add(self, left: ir.Operand, right: ir.Operand, sign: int = 1) -> ir.Operand:
        return self.from_form(combine_forms(self.form(left), self.form(right), sign))

    def index_sub(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        return self.index_add(left, right, -1)

    def index_mul(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ir.Const):
                return self.from_form(combine_forms(((), 0), self.form(other), int(one.value.real)))
        product = self.pure(ir.Prim("mul", (left, right)), PYINT)
        if self.at_least_zero(self.form(left)) and self.at_least_zero(self.form(right)):
            self.nonnegative.add(product)
        return product

    def bounds(self, form: Form, *, upper: bool) -> Iterator[Form]:
        """Forms that bound the given one from below (or above), by replacing loop indices and clamped values."""
        form = self.resolved(form)
        yield form
        for _ in range(8):
            for var, coefficient in form[0]:
                table = self.upper if (coefficient > 0) == upper else self.lower
                if var in table:
                    rest: Form = (tuple(term for term in form[0] if term[0] is not var), form[1])
                    form = self.resolved(combine_forms(rest, table[var], coefficient))
                    yield form
                    break
            else:
                return

    def at_least_zero(self, form: Form) -> bool:
        """True when the form is provably >= 0."""
        return any(
            constant >= 0 and all(coefficient >= 0 and var in self.nonnegative for var, coefficient in terms)
            for terms, constant in self.bounds(form, upper=False)
        )

    def provably_le(self, left: ir.Operand, right: ir.Operand) -> bool:
        return self.at_least_zero(combine_forms(self.form(right), self.form(left), -1))

    def provably_lt(self, left: ir.Operand, right: ir.Operand) -> bool:
        terms, constant = combine_forms(self.form(right), self.form(left), -1)
        return self.at_least_zero((terms, constant - 1))

    def same(self, left: ir.Operand, right: ir.Operand) -> bool:
        """True when two integers are provably equal."""
        if left == right:
            return True
        return self.resolved(combine_forms(self.form(left), self.form(right), -1)) == ((), 0)

    def index_min(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        if self.provably_le(left, right):
            return left
        if self.provably_le(right, left):
            return right
        result = self.pure(ir.Prim("minimum", (left, right)), PYINT)
        self._clamped(result, left, right, self.upper)
        if self.at_least_zero(self.form(left)) and self.at_least_zero(self.form(right)):
            self.nonnegative.add(result)
            if self.is_small(left) or self.is_small(right):
                self.small.add(result)
        return result

    def index_max(self, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        if self.provably_le(left, right):
            return right
        if self.provably_le(right, left):
            return left
        result = self.pure(ir.Prim("maximum", (left, right)), PYINT)
        self._clamped(result, left, right, self.lower)
        if self.at_least_zero(self.form(left)) or self.at_least_zero(self.form(right)):
            self.nonnegative.add(result)
        return result

    def _clamped(self, result: ir.Var, left: ir.Operand, right: ir.Operand, table: dict[ir.Var, Form]) -> None:
        if self.is_small(left) and self.is_small(right):
            self.small.add(result)
        symbolic = left if isinstance(right, ir.Const) else right
        table.setdefault(result, self.form(symbolic))

    def max0(self, operand: ir.Operand) -> ir.Operand:
        return self.index_max(operand, ir.Const(0, PYINT))

    def learn_extent(self, operand: ir.Operand, upper: Form | None = None) -> None:
        """A check has made sure that an integer is not negative, nor too large for an index, and at most `upper`.

        That holds in the innermost block, as long as it is open: where the check is not reached, nothing is known.
        """
        if not isinstance(operand, ir.Var):
            return
        scope = self.scopes[-1]
        for facts in (self.nonnegative, self.small):
            if operand not in facts:
                facts.add(operand)
                scope.learned.append((facts, operand))
        if upper is not None and self.home.get(operand) is scope:
            self.upper[operand] = upper

    def learn_equal(self, left: ir.Operand, right: ir.Operand) -> None:
        """A check has made sure that two integers are equal: use the left one from now on (in open blocks)."""
        terms, constant = self.resolved(combine_forms(self.form(right), self.form(left), -1))
        for var, coefficient in sorted(terms, key=lambda term: -term[0].uid):
            if abs(coefficient) == 1:
                rest: Form = (tuple(term for term in terms if term[0] is not var), constant)
                self.equal[var] = combine_forms(((), 0), rest, -coefficient)
                return


def combine_forms(left: Form, right: Form, factor: int) -> Form:
    """left + factor * right."""
    if not right[0]:
        return (left[0], left[1] + factor * right[1])
    terms = dict(left[0])
    for var, coefficient in right[0]:
        total = terms.get(var, 0) + factor * coefficient
        if total:
            terms[var] = total
        else:
            terms.pop(var, None)
    return (tuple(sorted(terms.items(), key=lambda term: term[0].uid)), left[1] + factor * right[1])


_FOLDABLE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "neg": operator.neg,
    "minimum": min,
    "maximum": max,
}
_FOLDABLE.update({f"{name}_checked": _FOLDABLE[name] for name in ("add", "sub", "mul", "neg")})


def _fold(name: str, args: tuple[ir.Operand, ...], kind: Scalar) -> ir.Const | None:
    """Fold what is exact in Python's own arithmetic: int64 that does not overflow, and bool connectives."""
    values = [arg.value for arg in args if isinstance(arg, ir.Const)]
    if len(values) != len(args):
        return None
    argument = args[0].type
    assert isinstance(argument, Scalar)
    if argument.dtype == "bool" and kind.dtype == "bool":
        match name, values:
            case "not", [value]:
                return ir.Const(not value, kind)
            case "and", [left, right]:
                return ir.Const(bool(left and right), kind)
            case "or", [left, right]:
                return ir.Const(bool(left or right), kind)
            case (("eq" | "ne" | "xor"), [left, right]):
                return ir.Const((left == right) == (name == "eq"), kind)
    if argument.dtype == "int64" and name in _FOLDABLE:
        value = _FOLDABLE[name](*values)
        if isinstance(value, bool) or -(1 << 63) <= value < 1 << 63:
            return ir.Const(value, kind)
    if argument.dtype == "float64" and name in ir.COMPARE:
        return ir.Const(bool(_FOLDABLE[name](*values)), kind)
    return None


def _exact(value: Any, dtype: str) -> bool:
    """True when a constant is the same number in the other dtype."""
    if isinstance(value, complex):
        return False
    if dtype == "bool":
        return True
    if isinstance(value, float) and np.dtype(dtype).kind in "iu" and not value.is_integer():
        return False
    try:
        with np.errstate(all="ignore"):
            made = np.dtype(dtype).type(value)
    except (OverflowError, ValueError):
        return False
    return bool(made == value) or value != value


def _forget(learned: list[tuple[set[ir.Var], ir.Var]], count: int) -> None:
    """Undo all but the first facts."""
    for facts, var in learned[count:]:
        facts.discard(var)
    del learned[count:]


def ends_in_failure(statements: Sequence[ir.Let]) -> bool:
    """Do these statements end in a check that always fails, or one on each side of a branch?"""
    last = statements[-1].op if statements else None
    if isinstance(last, ir.If):
        return ends_in_failure(last.then.statements) and ends_in_failure(last.orelse.statements)
    return isinstance(last, ir.Check) and isinstance(last.condition, ir.Const) and not last.condition.value


def may_raise(statements: Sequence[ir.Let]) -> bool:
    """May statements end in an exception, of the program's or of Python's?"""
    return any(isinstance(let.op, ir.Check | ir.Opaque) for let in ir.walk(ir.Block(tuple(statements), ())))
