"""Operations handed back to Python, as the specializer sees them: a name and operands, and what is known of them.

Names are those of `frontend/evaluate`: `call`, `attribute:shape`, `subscript`, `set_item`, `binary:add`, `inplace:add`,
`compare:lt`, `unary:neg`, and two of the specializer's own: `same` (a value as an object) and `truth` (of an object).
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.callee_effects import STORING_METHODS, effects_of, is_fresh
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import OBJECT
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar import managers
from parakeet_py.frontend.evaluate.kept_closures import uses_up
from parakeet_py.signature.specs import NoneSpec, ObjectSpec, ScalarSpec, Spec
from parakeet_py.typed_ir.specialize.containers import dict_items
from parakeet_py.typed_ir.specialize.forms import array_of
from parakeet_py.typed_ir.specialize.observed import ANY, without_lists
from parakeet_py.typed_ir.specialize.opaque.purity import is_pure, of_random
from parakeet_py.typed_ir.specialize.opaque.result_leaves import result_types
from parakeet_py.typed_ir.specialize.opaque.sites import RAISES, TRUTHS, is_rare
from parakeet_py.typed_ir.specialize.restarts import HandBack
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ComprehensionV,
    GeneratorV,
    IteratorV,
    MapV,
    MessageV,
    MethodV,
    ObjectV,
    ScalarV,
    Static,
    TextV,
    Value,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

BOOL = ScalarSpec("bool", True)
INT = ScalarSpec("int64", True)
_CHEAP = frozenset({"binary", "compare", "inplace", "same", "truth", "unary"})  # for Python itself
_GIVING_BOOL = (isinstance, issubclass, callable, hasattr, any, all)
_GIVING_INT = (len, hash, id)  # none of which is longer than an index
_OF_TEXT = (repr, ascii, format, hex, oct, bin, chr, np.array2string, np.array_repr, np.array_str, np.binary_repr)


@record
class Operation:
    """The operation `name`, of `values` by place (of a call, the callee is the first) and `keywords` by name."""

    name: str
    values: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def operands(self) -> tuple[Value, ...]:
        """All values, in the order of a site's operands."""
        return (*self.values, *(value for _, value in self.keywords))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the keywords."""
        return tuple([name for name, _ in self.keywords])

    @property
    def calls_known(self) -> bool:
        """Is this a call of a function that is known (`callee`)?"""
        return self.name == "call" and isinstance(self.values[0], Static)

    @property
    def callee(self) -> Any:
        """The function that is called, where it is known; else None."""
        return self.values[0].object if self.name == "call" and isinstance(self.values[0], Static) else None

    @property
    def is_cheap(self) -> bool:
        """Does Python do it faster than compiled code can ask for it?"""
        return self.kind in _CHEAP

    @property
    def is_seldom(self) -> bool:
        """Does it make or raise an exception, or print?"""
        return self.calls_known and is_rare(self.callee)

    @property
    def is_pure(self) -> bool:
        """Is this a call of a function that is known to change none of its arguments?"""
        return self.calls_known and is_pure(self.callee, len(self.values) - 1, self.names)

    @property
    def is_fresh(self) -> bool:
        """Is this a call that gives memory of its own?"""
        return self.calls_known and is_fresh(self.callee, len(self.values) - 1, self.names)

    @property
    def may_store(self) -> bool:
        """May it change the arrays it is given?"""
        if self.name != "call":
            return self.kind in ("set_item", "inplace")
        match self.values[0]:
            case MethodV(ArrayV(), name):
                return name in STORING_METHODS or "out" in self.names
            case Static():
                return not self.is_pure
        return True

    @property
    def may_keep(self) -> bool:
        """May it keep, or give back, a list or dict that it is given? What is not known does."""
        match self.kind, self.values[0]:
            case "call", function:
                return _may_keep(function)
            case "same", value:
                return not isinstance(value, MessageV)  # which is formatted at once
            case "truth", _:
                return False
            case "attribute", value:
                return not isinstance(value, ObjectV)
        return any(isinstance(value, ObjectV) for value in self.values)

    @property
    def may_keep_items(self) -> bool:
        """The same of the lists in a list that a function is given; what only goes through items is not meant: of that
        the frontend has seen what becomes of them."""
        if not isinstance(self.values[0], Static):
            return False
        effects = effects_of(self.values[0].object)
        return effects.keeps_items and not effects.items_only

    @property
    def may_give_items(self) -> bool:
        """May its result have the lists in a list that it is given?"""
        return (
            self.kind == "call" and isinstance(self.values[0], Static) and effects_of(self.values[0].object).keeps_items
        )

    def keeps_functions(self, result: Spec | None) -> bool:
        """May it keep a function that it is given, or give it back in a result of this spec?"""
        if not self.calls_known or not uses_up(self.callee):
            return True
        return result is not None and OBJECT in result_types(result)

    @property
    def may_ask_what_is_handled(self) -> bool:
        """May it look at the exception that is handled around it?"""
        if self.kind in ("same", "truth") or self.name in TRUTHS or self.is_seldom or self.is_pure:
            return False
        if self.kind != "call":
            return any(isinstance(value, ObjectV) for value in self.values)
        match self.values[0]:
            case Static(target):
                return effects_of(target).calls
            case MethodV(ArrayV() | MapV() | TextV() | CharV()):
                return False
        return True

    @property
    def reads_frame(self) -> bool:
        """Does it look at the frame of its caller?"""
        if not self.calls_known or not effects_of(self.callee).frame:
            return False
        return len(self.values) == 1 or self.callee not in (vars, dir)

    def result(self) -> Spec | None:
        """What it gives whenever it returns, if that is known of it."""
        if self.name in TRUTHS:
            return BOOL
        if self.name == "attribute:__name__":
            return ANY  # of the class of what was caught, mostly: a text for each, which nothing else depends on
        if self._is_text():
            return ANY  # another text for each call, mostly
        if not self.calls_known:
            return None
        callee, given = self.callee, self.values[1:]
        if callee is print or any(callee is one for one in RAISES):
            return NoneSpec()
        for functions, spec in ((_GIVING_BOOL, BOOL), (_GIVING_INT, INT)):
            if any(callee is one for one in functions):
                return spec
        if (callee is list or callee is tuple) and len(given) == 1 and isinstance(given[0], ArrayV):
            return ANY  # of another length for other arguments
        if callee is np.random.default_rng and not any(map(_may_be_generator, given)):
            return ObjectSpec(np.random.Generator)
        known = type(callee) is type and (issubclass(callee, BaseException) or callee in of_random())
        return ObjectSpec(callee) if known else None

    def _is_text(self) -> bool:
        """Does it make a text of values?"""
        match self.name, self.values[0]:
            case "binary:mod", Static(str()):
                return True
            case "call", MethodV(Static(str()), "format" | "join"):
                return True
            case "call", Static(types.BuiltinMethodType(__self__=str(), __name__="format" | "join")):
                return True
            case "call", Static(target):
                return any(target is one for one in _OF_TEXT)
        return False

    def unshared(self, result: Spec) -> Spec:
        """Its result, with lists as objects that others may know, too."""
        match self.name, self.values[0]:
            case "call", Static(target):
                return result if self.is_fresh else without_lists(result, effects_of(target).makes == "list")
            case "call", MethodV(ArrayV() | TextV() | CharV()):
                return result
        return without_lists(result)

    def describe(self) -> str:
        """A short name for people: `numpy.linalg.svd`, `.method`, `x[...]`."""
        kind, _, name = self.name.partition(":")
        if kind == "call":
            match self.values[0]:
                case Static(object=target) if target in (managers.entered, managers.left):
                    return "with"
                case Static(obj):
                    module = getattr(obj, "__module__", None)
                    own = getattr(obj, "__qualname__", getattr(obj, "__name__", repr(obj)))
                    return f"{module}.{own}" if module and module != "builtins" else own
                case MethodV(_, method):
                    return f".{method}"
            return "a call of an object"
        names = {"attribute": f".{name}", "subscript": "subscript", "set_item": "item assignment", "truth": "bool"}
        return names.get(kind, name or "a value of varying type")


def operation_of(s: Context, op: ssa.Op) -> Operation:
    """An operation of the untyped IR, if it can be handed back."""
    match op:
        case ssa.Call(function, args, kwargs):
            target, given, named = s.value(function), s.items(args), s.keywords(kwargs)
            if len(given) + len(named) <= 2 and _uses_up(target):
                given = [_listed(s, arg) for arg in given]
            return Operation("call", (target, *given), tuple(named.items()))
        case ssa.Attribute(obj, name):
            return Operation(f"attribute:{name}", (s.value(obj),))
        case ssa.Subscript(obj, index):
            return Operation("subscript", (s.value(obj), s.value(index)))
        case ssa.SetItem(obj, index, value):
            return Operation("set_item", (s.value(obj), s.value(index), s.value(value)))
        case ssa.Binary(name, left, right):
            return Operation(f"binary:{name}", (s.value(left), s.value(right)))
        case ssa.Inplace(name, left, right):
            return Operation(f"inplace:{name}", (s.value(left), s.value(right)))
        case ssa.Compare(name, left, right):
            return Operation(f"compare:{name}", (s.value(left), s.value(right)))
        case ssa.Unary(name, operand):
            return Operation(f"unary:{name}", (s.value(operand),))
        case ssa.BuildString(parts) if not any("{" in spec or "}" in spec for _, _, spec in parts):
            fields = [(f"!{how}" if how else "") + (f":{spec}" if spec else "") for _, how, spec in parts]
            template = "".join(f"{{{field}}}" for field in fields)
            return Operation("call", (Static(str.format), lift(template), *(s.value(part) for part, _, _ in parts)))
    raise s.unsupported(f"{type(op).__name__} of objects that are not compiled")


def _listed(s: Context, value: Value) -> Value:
    """What a function goes through whole, as a list."""
    if isinstance(value, GeneratorV):
        return s.as_list(value)
    if not isinstance(value, ComprehensionV):
        return dict_items.listed(s, value) if isinstance(value, IteratorV) else value
    try:
        return s.as_list(value)
    except HandBack as reason:
        raise s.unsupported(f"{reason}, among what is given to Python code") from None


def _uses_up(target: Value) -> bool:
    """Does this function go through a whole iterator, so that a list will do?"""
    match target:
        case Static(obj):
            return effects_of(obj).uses_up
        case MethodV(Static(str()), "join"):
            return True
    return False


def _may_keep(function: Value) -> bool:
    """May a function keep a list or dict that it is given?"""
    match function:
        case Static(target):
            return effects_of(target).keeps
        case MethodV(Static(target), method):
            return effects_of(getattr(target, method, None)).keeps
        case MethodV(ArrayV() | MapV()):
            return False
    return True


def _may_be_generator(seed: Value) -> bool:
    """May this be a generator, perhaps of a class of the user's, which `default_rng` gives as it is?"""
    if isinstance(seed, Static):
        return _is_random(seed.object)
    return not isinstance(seed, ScalarV) and array_of(seed) is None


def _is_random(seed: Any) -> bool:
    return isinstance(seed, np.random.Generator | np.random.BitGenerator | np.random.RandomState)
