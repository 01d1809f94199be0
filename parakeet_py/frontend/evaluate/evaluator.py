"""Executes the untyped IR on real Python values: what `ssa.py` means, and how types of results are found out.

`evaluate(ssa_function, python_function)` gives a function that does exactly what the Python function does: the same
values, effects, exceptions and messages. The tests hold it against Python itself. It is Python code made from the IR
(`python_code.py`). Besides, it is how a function runs whose compilation waits for the result type of something that is
handed back to Python: the code has hooks then (`observed_code.py`), and an observer is given the results of operations,
by the key the specializer has for them, until their types are known.

A key is `(*path, filename, position, name of the operator)`. The path grows by `(position of the call, name)` with each
function that is evaluated in turn, which are the nested functions, and the Python functions that `inline` names. The
path of a nested function that other code has called is not known: its keys have no path.

`replay` gives the results of operations that have been done already, in order; they are not done again.
"""

from __future__ import annotations

import builtins
import math
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.callee_effects import effects_of
from parakeet_py.base.debug_log import log
from parakeet_py.base.interrupts import came_from_outside
from parakeet_py.frontend.evaluate.kept_closures import may_keep
from parakeet_py.frontend.evaluate.observed_code import CONTAINERS, MISSING, ObservedWriter, ReplayingWriter
from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key, Observer, contents, differ
from parakeet_py.frontend.evaluate.python_code import Code, Writer, code_of, is_made_code
from parakeet_py.frontend.ssa import Function
from parakeet_py.signature.annotations import annotate

Compared = tuple[list[Any], list[list[int]], Sequence[list[Any]]]  # lists, what they held, what was watched
LONG = 64  # results of an operation that are observed, and calls of a function that is evaluated
MOST = 1 << 20  # items of lists and dicts that are compared, in all calls together
MAX_DEPTH = 48  # functions inside each other; deeper ones are called


_STEADY = frozenset({bool, float, complex, types.NoneType, np.bool_, np.int64, np.float64})
# Functions that change nothing and call only methods of their arguments: nothing is asked before they are called.
QUIET = frozenset(
    id(function)
    for function in (
        *(getattr(builtins, name) for name in ("abs", "bool", "divmod", "float", "int", "len", "max", "min", "range")),
        *(function for function in vars(math).values() if type(function) is types.BuiltinFunctionType),
    )
)


def evaluate(
    function: Function,
    python: types.FunctionType,
    *,
    observe: Observer | None = None,
    inline: Callable[[Any], tuple[Function, types.FunctionType] | None] | None = None,
    replay: Sequence[tuple[Key, Any]] = (),
    watch: Callable[[], Sequence[list[Any]]] = tuple,
) -> Callable[..., Any]:
    """A function that does what `function` means, with the globals, closure cells and defaults of `python`.

    It is `python` itself where nested functions may be kept that Python gives other values (`kept_closures.py`).

    Parameters
    ----------
    observe : called with the key and the result of operations that could be handed back to Python
    inline : the IR and the Python function of a callee that is to be evaluated rather than called; None for others
    replay : keys and results of operations already done, in order
    watch : gives lists of objects that calls are not expected to replace (the observer is given `CHANGED` if one does)
    """
    if not replay and may_keep(function, python):
        return python
    evaluation = Evaluation(observe, inline, list(reversed(replay)), watch)
    try:
        made = evaluation.hooks(function, python, (), ()).made(python.__defaults__, python.__kwdefaults__)
    except Exception as error:
        if replay:
            raise
        evaluation.stop_observing(error)
        return python
    made.__qualname__ = python.__qualname__
    return made


class Evaluation:
    """What the functions of one evaluation share."""

    def __init__(self, observe: Observer | None, inline: Any, replay: list[tuple[Key, Any]], watch: Any) -> None:
        self.observe = observe
        self.watch = watch
        self.inline = inline
        self.replay = replay
        self.hooked = bool(replay) or observe is not None or inline is not None
        self.writer = ReplayingWriter if replay else ObservedWriter if self.hooked else Writer
        self.left = MOST  # items to be compared, before calls are taken for ones that change what they are given
        self.kept: dict[int, bool] = {}
        self.calls: dict[int, int] = {}  # of functions that are looked into
        self.nested: weakref.WeakKeyDictionary[types.FunctionType, Hooks] = weakref.WeakKeyDictionary()
        self.known: dict[tuple[int, types.FunctionType, Key | None], Hooks] = {}

    def hooks(
        self, function: Function, python: types.FunctionType, path: Key | None, around: tuple[Function, ...]
    ) -> Hooks:
        """Those of a function along a path."""
        key = (id(function), python, path)
        found = self.known.get(key)
        if found is None:
            code = code_of(function, self.writer)
            found = self.known[key] = Hooks(self, code, python, path, (*around, function))
        return found

    def looked_into(self, target: Any) -> tuple[Function, types.FunctionType] | None:
        """What is evaluated in place of a call of Python's."""
        try:
            found = self.inline(target) if self.inline is not None else None
            if found is None:
                return None
            often = self.calls[id(found[0])] = self.calls.get(id(found[0]), 0) + 1
            if often > LONG and not self.replay:
                return None
            kept = self.kept.get(id(found[0]))
            if kept is None:
                kept = self.kept[id(found[0])] = may_keep(*found) or is_made_code(found[1].__code__)
        except Exception as error:
            self.stop_observing(error)
            return None
        return None if kept else found

    def stop_observing(self, error: Exception) -> None:
        """What the call itself does not depend on has failed: it goes on, and nothing more is observed of it."""
        if came_from_outside(error):
            raise error
        log.error("nothing more is observed of this call", exc_info=error)
        self.observe = self.inline = None

    def replaced(self, watched: Sequence[list[Any]]) -> bool:
        """Is something that is watched another object now, or does it hold others? The call may have made more things
        watched."""
        now = self.watch()
        return len(now) < len(watched) or any(differ(one, then) for one, then in zip(now, watched, strict=False))


class Hooks:
    """What the code of one function calls, and takes from outside, along one path of calls."""

    def __init__(
        self,
        evaluation: Evaluation,
        code: Code,
        python: types.FunctionType,
        path: Key | None,
        around: tuple[Function, ...],
    ) -> None:
        self.evaluation, self.code, self.python, self.path, self.around = evaluation, code, python, path, around
        self.seen: dict[int, type] = {}  # the type that a site has given, where it says all
        self.times: dict[int, int] = {}  # results and calls of a site
        self.callees: dict[int, tuple[Any, types.FunctionType]] = {}
        self.looking: dict[int, tuple[Any, bool]] = {}  # does what a site calls change nothing?
        self.uncompared: set[int] = set()  # sites whose calls are no longer compared
        given: dict[str, Any] = {".closure": self.closure, ".global": self.read_global}
        if evaluation.hooked:
            given |= {".see": self.see, ".enter": self.enter, ".leave": self.leave, ".changed": self.changed}
            given |= {".bound": self.bound, ".quiet": QUIET, ".log": evaluation.replay, ".again": self.again}
        own = dict(zip(python.__code__.co_freevars, python.__closure__ or (), strict=True))
        own |= {name: types.CellType(value) for name, value in given.items()} | code.constants
        names = code.code.co_freevars
        empty = types.CellType()
        self.cells = [empty if name in code.captures else own.get(name, empty) for name in names]
        self.captures = [names.index(name) if name in names else -1 for name in code.captures]
        self.itself = names.index(".itself") if ".itself" in names else -1
        self.nested: dict[int, Hooks] = {}

    def made(
        self,
        defaults: tuple[Any, ...] | None,
        named: dict[str, Any] | None,
        captures: Sequence[types.CellType] = (),
        itself: types.FunctionType | None = None,
    ) -> types.FunctionType:
        """The function; it knows itself as `itself`."""
        cells = self.cells.copy()
        for place, cell in zip(self.captures, captures, strict=True):
            if place >= 0:
                cells[place] = cell
        if self.itself >= 0:
            cells[self.itself] = types.CellType()
        code = self.code
        made = types.FunctionType(code.code, self.python.__globals__, code.function.name, defaults, tuple(cells))
        if named:
            made.__kwdefaults__ = named
        if self.itself >= 0:
            cells[self.itself].cell_contents = itself or made
        return made

    def key(self, site: int) -> Key:
        pos, operator = self.code.sites[site]
        place = (self.code.function.filename, pos, operator)
        return place if self.path is None else (*self.path, *place)

    # ---- called by the code ------------------------------------------------------------------------------------------

    def closure(self, function: Function, captures: tuple[Any, ...], defaults: tuple[Any, ...]) -> types.FunctionType:
        """A nested function."""
        hooks = self.nested.get(id(function))
        if hooks is None:
            hooks = self.nested[id(function)] = self.evaluation.hooks(function, self.python, None, ())
        plain, named = _defaults(function, defaults) if defaults else (None, None)
        made = hooks.made(plain, named, tuple(map(types.CellType, captures)))
        made.__qualname__ = f"{self.python.__qualname__}.<locals>.{function.name}"
        if function.annotations:
            annotate(made, function.annotations, self.python)
        if self.evaluation.hooked:
            self.evaluation.nested[made] = hooks
        return made

    def read_global(self, name: str) -> Any:
        python: Any = self.python
        for scope in (python.__globals__, python.__builtins__):
            if name in scope:
                return scope[name]
        raise NameError(f"name {name!r} is not defined", name=name)

    def see(self, site: int, value: Any) -> type | None:
        """Inform the observer of a result; gives the type of results that need not be seen any more."""
        observe, kind = self.evaluation.observe, type(value)
        if observe is None:
            return kind
        times = self.times[site] = self.times.get(site, 0) + 1
        steady = kind in _STEADY or (kind is int and -(2**63) <= value < 2**63)
        says_all = steady or times > LONG
        if not (says_all and self.seen.get(site) is kind):
            try:
                observe(self.key(site), value)
            except Exception as error:
                self.evaluation.stop_observing(error)
        if says_all:
            self.seen[site] = kind
        return kind if (steady and kind is not int) or times > LONG else None

    def enter(
        self, site: int, target: Any, given: tuple[Any, ...], spread: tuple[Any, ...]
    ) -> tuple[Any, Compared | None]:
        """What is to be called for `target`, and what is to be compared afterwards."""
        evaluation = self.evaluation
        if id(target) in QUIET:
            return target, None
        for more in spread:
            if isinstance(more, list | tuple | dict):
                given = (*given, *(more.values() if isinstance(more, dict) else more))
        lists = [value for value in given if type(value) in CONTAINERS]
        times = self.times[-1 - site] = self.times.get(-1 - site, 0) + 1
        if times > LONG and not (lists or evaluation.replay or evaluation.watch()):
            return target, None
        if self.path is not None:
            callee = self.callee(site, target)
            if callee is not target and not isinstance(target, types.MethodType):
                return callee, None
            target = callee  # a method may be a call of an object to the specializer
        if evaluation.observe is None or site in self.uncompared or self.only_looks(site, target):
            return target, None
        try:
            watched = evaluation.watch()
            evaluation.left -= sum(map(len, lists)) + sum(map(len, watched))
            if evaluation.left < 0:
                self.uncompared.add(site)
                evaluation.observe(self.key(site), CHANGED)
                return target, None
            before = [contents(value) for value in lists]
        except Exception as error:
            evaluation.stop_observing(error)
            return target, None
        return target, (lists, before, watched) if lists or watched else None

    def only_looks(self, site: int, target: Any) -> bool:
        """Is a callee known to change nothing, and to call no function that it is given?"""
        known = self.looking.get(site)
        if known is None or known[0] is not target:
            effects = effects_of(target)
            known = self.looking[site] = target, not (effects.stores or effects.keeps or effects.calls)
        return known[1]

    def callee(self, site: int, target: Any) -> Any:
        """The function that is evaluated for a call of `target` where the specializer would look into it."""
        bound = self.bound(site, target)
        if bound is not target:
            return bound
        found = self.evaluation.looked_into(target) if len(self.around) < MAX_DEPTH else None
        if found is None or any(found[0] is function for function in self.around):
            return target
        function, python = found
        known = self.callees.get(site)
        if known is not None and known[0] is python:
            made = known[1]
        else:
            try:
                made = self.inlined(site, function, python)
            except Exception as error:
                self.evaluation.stop_observing(error)
                return target
            self.callees[site] = (python, made)
        return types.MethodType(made, target.__self__) if isinstance(target, types.MethodType) else made

    def inlined(self, site: int, function: Function, python: types.FunctionType) -> types.FunctionType:
        assert self.path is not None
        path = (*self.path, self.code.sites[site][0], function.name)
        hooks = self.evaluation.hooks(function, python, path, self.around)
        made = hooks.made(python.__defaults__, python.__kwdefaults__)
        made.__qualname__ = python.__qualname__
        return made

    def bound(self, site: int, target: Any) -> Any:
        """A nested function as it is called here; others are as they are."""
        own = self.evaluation.nested.get(target) if type(target) is types.FunctionType else None
        if own is None or self.path is None:
            return target
        path = (*self.path, self.code.sites[site][0], own.code.function.name)
        hooks = self.evaluation.hooks(own.code.function, own.python, path, self.around)
        cells = target.__closure__ or ()
        captures = [cells[place] if place >= 0 else types.CellType() for place in own.captures]
        made = hooks.made(target.__defaults__, target.__kwdefaults__, captures, target)
        made.__qualname__ = target.__qualname__
        if own.code.function.annotations:
            annotate(made, own.code.function.annotations, own.python)
        return made

    def leave(self, site: int, compared: Compared | None) -> None:
        """Inform the observer if a call has changed what nothing but the function was to change."""
        if compared is None:
            return
        lists, before, watched = compared
        evaluation = self.evaluation
        try:
            if evaluation.observe is not None and (
                any(contents(value) != had for value, had in zip(lists, before, strict=True))
                or evaluation.replaced(watched)
            ):
                evaluation.observe(self.key(site), CHANGED)
        except Exception as error:
            evaluation.stop_observing(error)

    def changed(self, site: int) -> None:
        """A list or dict has been changed in place."""
        if self.evaluation.observe is not None:
            self.evaluation.observe(self.key(site), CHANGED)

    def again(self, site: int) -> Any:
        """What an operation has given already."""
        replay = self.evaluation.replay
        return replay.pop()[1] if replay and replay[-1][0] == self.key(site) else MISSING


def _defaults(function: Function, given: Sequence[Any]) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    """Those of positional and of keyword parameters."""
    params = [param for param in function.params if param.has_default]
    pairs = list(zip(params, given, strict=True))
    plain = tuple(value for param, value in pairs if param.kind == "positional")
    return plain or None, {param.name: value for param, value in pairs if param.kind == "keyword"} or None
