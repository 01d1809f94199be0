"""Operations handed back to Python, as far as they can be prepared: a `Plan` for each place.

For each a Python function is written, `perform_call`, that does nothing but read the slots of the operands, do the
operation, look at the type of the result and write its slots. What it calls sees a frame of the user's function there.

    def perform_call(state, ctx, arguments, results):
        given = Given.from_address(arguments)
        x1 = given.f1
        ...
        result = function(x0, x1)
        ...

Results of other types are left to `CallState.settle`.
"""

from __future__ import annotations

import ctypes
import types
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from parakeet_py.base.frames.tracebacks import in_frames
from parakeet_py.base.types import Array, Object, Scalar, Type, itemsize
from parakeet_py.call.give_back import lists_in
from parakeet_py.frontend.desugar import managers
from parakeet_py.frontend.evaluate.observed_values import contents
from parakeet_py.frontend.evaluate.operation_text import function_of, operation_text
from parakeet_py.llvm.codegen.arrays import slots_in
from parakeet_py.llvm.runtime.error_state import asks_for_errors
from parakeet_py.llvm.runtime.object_layout import Flags, Layout
from parakeet_py.llvm.runtime.watched_lists import WatchedLists
from parakeet_py.signature.object_assembly import ContainerT, LeafT, Recipe, StaticT, expression
from parakeet_py.signature.specs import ArraySpec, NoneSpec, ObjectSpec, RecordsSpec, ScalarSpec, Spec, TupleSpec
from parakeet_py.typed_ir.specialize.observed import ANY, observed_spec
from parakeet_py.typed_ir.specialize.opaque.result_leaves import result_types
from parakeet_py.typed_ir.specialize.opaque.sites import CONTINUE, OpaqueSite, can_be_replayed, is_logged, makes_lists

MAX_LOG = 16 << 20  # bytes of results that are kept so that a call can be replayed; objects count as an eighth of it
FLAGS = Flags.C | Flags.ALIGNED | Flags.WRITEABLE | Flags.WARN_ON_WRITE
LOGGED = 64  # bytes that a scalar in the log counts for
C_TYPES: dict[str, Any] = {"float64": ctypes.c_double, "int64": ctypes.c_int64, "bool": ctypes.c_bool}
_Word = ctypes.c_int64

Perform = Callable[[Any, int, int, int], int]  # (call state, ctx, slots of the operands, of the results): a status


class Plan:
    """One operation, as far as it can be prepared."""

    __slots__ = (
        "accepted",
        "called",
        "dtype",
        "evaluated",
        "flags",
        "late",
        "lists",
        "result",
        "safe",
        "site",
        "slots",
        "types",
    )

    def __init__(self, site: OpaqueSite, types: tuple[Type, ...], late: bool = False) -> None:
        self.site, self.types, self.late = site, types, late
        static = site.operands[0] if site.operands else None
        self.called = static.value if isinstance(static, StaticT) else None  # by the operation, if it is a call
        self.result = site.result
        self.evaluated = is_logged(site, types)
        self.lists = makes_lists(site) and site.operation != "same"
        kinds = [] if site.result is None else result_types(site.result)
        self.slots = site.has_flag + sum(map(slots_in, kinds))
        self.safe = can_be_replayed(site, types)
        self.accepted: type | None = None  # the type of results that are accepted without a further look
        if isinstance(site.result, ScalarSpec):
            kind = np.dtype(site.result.dtype).type
            self.accepted = {"bool": bool, "float64": float, "complex128": complex}.get(site.result.dtype)
            self.accepted = self.accepted if site.result.python else kind
        self.dtype: np.dtype[Any] | None = None  # likewise for arrays in C order, with their flags
        self.flags = 0
        if isinstance(site.result, ArraySpec):
            self.dtype = np.dtype(site.result.dtype)
            self.flags = _flags(site.result.writeable)

    def performer(self, function: FunctionType, hidden: bool) -> Perform:
        """What does this operation, in frames that show its place. `hidden`: globals have to be looked at after it."""
        if self.site.operation == CONTINUE:
            return _go_on(self)
        made: Perform = in_frames(_Writer(self, hidden).function(), self.site.trace, function)
        return made


def _go_on(plan: Plan) -> Perform:
    """Python does the rest of the call."""

    def perform_call(state: Any, ctx: int, arguments: int, results: int) -> int:
        return state.go_on(plan, ctx, arguments)  # type: ignore[no-any-return]

    return perform_call


def _flags(writeable: bool) -> int:
    """Those of an array in C order that say how it may be used."""
    return Flags.C | Flags.ALIGNED | (Flags.WRITEABLE if writeable else 0)


def scalar_at(address: int, dtype: str, python: bool) -> Any:
    """The scalar in the slots at an address."""
    value = np.frombuffer(ctypes.string_at(address, itemsize(dtype)), dtype)[0]
    return value.item() if python else value


class OfRecords:
    """Called with any value: is it an array of records as a spec says, of a dtype that has been seen?"""

    __slots__ = ("dtype", "spec", "writeable")

    def __init__(self, spec: RecordsSpec) -> None:
        self.spec = spec
        self.dtype: np.dtype[Any] = np.dtype(np.void)
        self.writeable = all(column.writeable for column in spec.columns)

    def __call__(self, value: Any) -> bool:
        kind: Any = self.spec.type
        if type(value) is not kind or value.ndim != self.spec.rank:
            return False
        if value.dtype != self.dtype:
            if observed_spec(value) != self.spec:
                return False
            self.dtype = value.dtype
        flags = value.flags
        return bool(flags.forc and flags.writeable == self.writeable)


class _Writer:
    """Writes `perform_call` for one plan."""

    def __init__(self, plan: Plan, hidden: bool) -> None:
        self.plan, self.hidden = plan, hidden
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"plan": plan, "key": plan.site.key, "MAX_LOG": MAX_LOG}

    def put(self, line: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + line)

    def function(self) -> Perform:
        self.take()
        if self.plan.late or (self.plan.evaluated and not self.plan.safe):
            self.put("state.safe = False")
        operands = [self.operand(recipe) for recipe in self.plan.site.operands]
        call = operation_text(self.plan.site.operation, operands, self.plan.site.keywords, self.names)
        if self.plan.lists:
            self.names |= {"recipes": self.plan.site.operands, "lists_in": lists_in, "contents": contents}
            self.put(f"state.operands = ({', '.join(operands)},)")
            self.put("lists = lists_in(recipes, state.operands)")
            self.put("before = [*map(contents, lists)]")
        if self.plan.site.arrays:
            if not self.plan.lists:
                self.put(f"state.operands = ({', '.join(operands)},)")
            self.put(f"forms = ({self.forms()})")
        if self.plan.site.watched:
            count = len(self.plan.types)
            holders = [f"x{number}" for number in range(count - len(self.plan.site.watched), count)]
            self.names |= {"WatchedLists": WatchedLists, "paths": self.plan.site.watched}
            self.put("if state.watched is None:")
            self.put(f"state.watched = WatchedLists(({', '.join(holders)},), paths)", 2)
        called = self.plan.called
        if called is managers.left:
            self.put("state.managers.pop()")
        if called is managers.entered:
            self.names |= {"warnings": warnings, "asks_for_errors": asks_for_errors}
            self.put("filters = warnings.filters")
        if self.plan.site.catches:
            self.put("try:")
            self.put(call, 2)
            self.put("except BaseException as error:")
            self.look_at_lists(2)
            self.put("if not state.catch(plan, results, error):", 2)
            self.put("raise", 3)
            self.put("return 0", 2)
        else:
            self.put(call)
        self.look_at_lists()
        if self.plan.site.has_flag:
            self.names["flag"] = _Word.from_address
            self.put("flag(results).value = 0")
            self.put("results += 8")
        self.log()
        if called is managers.entered:
            self.put(f"state.managers.append({operands[1]})")
            self.put("if warnings.filters is not filters or asks_for_errors():")
            self.put("return state.leave(plan, results, lambda: result)", 2)
        self.check_and_store()
        self.put("return 0")
        made: Perform = function_of(["state", "ctx", "arguments", "results"], self.lines, self.names)
        return made

    def forms(self) -> str:
        """What compiled code takes arrays to be, which the operation might set."""
        parts = ("shape", "strides", "dtype", "flags.writeable")
        return ", ".join(f"x{number}.{part}" for number in self.plan.site.arrays for part in parts)

    def look_at_lists(self, depth: int = 1) -> None:
        """Has the operation changed a list or dict of which compiled code has the items?"""
        if self.plan.lists:
            self.put("if [*map(contents, lists)] != before:", depth)
            self.put("state.changed = True", depth + 1)
        if self.plan.site.arrays:
            self.put(f"if ({self.forms()}) != forms:", depth)
            self.put("state.changed = True", depth + 1)
        if self.plan.site.watched:
            self.put("if state.watched.have_changed():", depth)
            self.put("state.changed = True", depth + 1)

    def operand(self, recipe: Recipe) -> str:
        """The name of an operand, which has been put together."""
        match recipe:
            case LeafT(position):
                return f"x{position}"
            case StaticT(value):
                return self.static(value)
            case ContainerT():
                made = f"operand{len(self.lines)}"
                self.put(f"{made} = {expression(recipe, self.names)}")
                return made
        raise AssertionError(recipe)

    def take(self) -> None:
        """Read the operands."""
        fields: list[tuple[str, Any]] = []
        reads: list[tuple[str, int]] = []
        offset = 0
        for number, kind in enumerate(self.plan.types):
            x = f"x{number}"
            match kind:
                case Scalar(dtype, python) if dtype in C_TYPES:
                    fields.append((f"f{number}", C_TYPES[dtype]))
                    if C_TYPES[dtype] is ctypes.c_bool:
                        fields.append((f"p{number}", ctypes.c_char * 7))
                    if python:
                        reads.append((f"{x} = given.f{number}", 1))
                    else:
                        self.names[f"type{number}"] = np.dtype(dtype).type
                        reads.append((f"{x} = type{number}(given.f{number})", 1))
                    offset += 8
                case Scalar(dtype, python):
                    fields.append((f"p{number}", _Word * slots_in(kind)))
                    self.names["scalar"] = scalar_at
                    reads.append((f"{x} = scalar(arguments + {offset}, {dtype!r}, {python})", 1))
                    offset += 8 * slots_in(kind)
                case Object():
                    fields.append((f"f{number}", ctypes.py_object))
                    reads.append((f"{x} = given.f{number}", 1))
                    offset += 8
                case Array(dtype, rank):
                    words = 4 + 2 * rank
                    fields += [(f"w{number}", _Word), (f"p{number}", _Word * (words - 1))]
                    self.names["object_at"] = ctypes.py_object.from_address
                    reads += [
                        (f"if given.w{number}:", 1),
                        (f"{x} = object_at(arguments + {offset}).value", 2),
                        ("else:", 1),
                        (f"{x} = state.array(ctx, arguments + {offset}, {dtype!r}, {rank})", 2),
                    ]
                    offset += 8 * words
        if fields:
            self.names["at"] = type("Given", (ctypes.Structure,), {"_fields_": fields}).from_address  # type: ignore[attr-defined]
            self.put("given = at(arguments)")
        for line, depth in reads:
            self.put(line, depth)

    def log(self) -> None:
        if not self.plan.evaluated:
            return
        self.put("if state.safe:")
        if isinstance(self.plan.result, ScalarSpec | NoneSpec):
            self.put(f"state.logged += {LOGGED}", 2)
            self.put("state.log.append((key, result))", 2)
            self.put("if state.logged > MAX_LOG:", 2)
            self.put("state.forget_log()", 3)
        else:
            self.put("state.note(key, result)", 2)

    def check_and_store(self) -> None:
        """Store a result of the usual type; leave all others to `settle`."""
        condition, store = self.usual(self.plan.result, "result", 0)
        if self.plan.result is None:
            pass
        elif condition:
            self.put(f"if {condition}:")
            for line in store or ["pass"]:
                self.put(line, 2)
            self.put("elif status := state.settle(plan, results, result):")
            self.put("return status", 2)
        else:
            self.put("if status := state.settle(plan, results, result):")
            self.put("return status", 2)
        looks = self.hidden or self.plan.lists or self.plan.site.watched
        if looks or self.plan.site.arrays:
            asked = "" if looks else "state.changed and "
            self.put(f"if {asked}(status := state.look_for_changes(plan, results, result)):")
            self.put("return status", 2)

    def usual(self, expected: Spec | None, result: str, offset: int) -> tuple[str, list[str]]:
        """The condition for a usual result, and what stores it that many bytes on."""
        names = self.names
        stores: list[str]
        at = f"results + {offset}" if offset else "results"
        match expected:
            case NoneSpec():
                return f"{result} is None", []
            case ScalarSpec(dtype, python) if dtype in C_TYPES:
                names[f"out_{dtype}"] = C_TYPES[dtype].from_address
                store = [f"out_{dtype}({at}).value = {result}"]
                if python and dtype == "int64":
                    return f"type({result}) is int and {-(1 << 63)} <= {result} < {1 << 63}", store
                kind = self.static({"bool": bool, "float64": float}[dtype] if python else np.dtype(dtype).type)
                return f"type({result}) is {kind}", store
            case ArraySpec(dtype, rank, writeable=writeable):
                names |= {"ndarray": np.ndarray, f"words{rank}": (_Word * (2 + 2 * rank)).from_address}
                names["word"] = _Word.from_address
                condition = (
                    f"type({result}) is ndarray and {result}.dtype is {self.static(np.dtype(dtype))} "
                    f"and {result}.ndim == {rank} and {result}.flags.num & {FLAGS} == {_flags(writeable)}"
                )
                store = [
                    f"array = {result}",
                    "state.keep(array)",
                    f"words{rank}({at})[:] = "
                    f"(id(array), word(id(array) + {Layout.DATA}).value, *array.shape, *array.strides)",
                ]
                return condition, store
            case ObjectSpec(kind) if expected == ANY or _says_all(kind):
                names["word"] = _Word.from_address
                condition = "True" if expected == ANY else f"type({result}) is {self.static(kind)}"
                return condition, [f"state.keep({result})", f"word({at}).value = id({result})"]
            case RecordsSpec(_, _, fields, columns):
                names["word"] = _Word.from_address
                stores = [f"state.keep({result})", f"word({at}).value = id({result})"]
                offset += 8
                for name, column in zip(fields, columns, strict=True):
                    stores += self.usual(column, f"{result}[{self.static(name)}]", offset)[1]
                    offset += 8 * sum(map(slots_in, result_types(column)))
                return f"{self.static(OfRecords(expected))}({result})", stores
            case TupleSpec(items, "tuple" | "list" as kind, None) if items:
                conditions = [f"type({result}) is {kind} and len({result}) == {len(items)}"]
                stores = []
                for number, item in enumerate(items):
                    condition, store = self.usual(item, f"{result}[{number}]", offset)
                    if not condition:
                        return "", []
                    conditions.append(condition)
                    stores += store
                    offset += 8 * sum(map(slots_in, result_types(item)))
                return " and ".join(conditions), stores
        return "", []

    def static(self, value: Any) -> str:
        """The name of a known value."""
        name = f"static{len(self.names)}"
        self.names[name] = value
        return name


def _says_all(kind: type) -> bool:
    """Have all values of a class the same spec, that of any object of the class?"""
    known = (np.ndarray, int, str, type(np.mean), types.BuiltinFunctionType, types.MethodType)
    if kind in known or issubclass(kind, tuple | list | slice | type) or not isinstance(kind, type):
        return False
    return "__call__" not in dir(kind)
