"""Executes the untyped IR on real Python values: what `ssa.py` means, and how types of results are found out.

`evaluate(ssa_function, python_function)` gives a callable that does exactly what the Python function does: the same
values, effects, exceptions and messages. The tests hold it against Python itself. Besides, it is how a function runs
whose compilation waits for the result type of something that is handed back to Python: an observer is given the result
of every operation, by the key the specializer has for it.

A key is `(*path, filename, position, name of the operator)`. The path grows by `(position of the call, name)` with each
function that is evaluated in turn, which are the nested functions, and the Python functions that `inline` names. The
path of a nested function that other code has called is not known: its keys have no path.

`replay` gives the results of operations that have been done already, in order; they are not done again.

Loops of more than a few turns go on as Python code (`hot_loops.py`), and functions that are called often are called.
"""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parakeet_py.base.interrupts import came_from_outside
from parakeet_py.base.tracebacks import TraceEntry, entry_at, placed, unseen
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar import caught_steps
from parakeet_py.frontend.desugar.generators import yielded
from parakeet_py.frontend.evaluate import binding
from parakeet_py.frontend.evaluate.binding import is_iterable, merged, shim_of, unpacker
from parakeet_py.frontend.evaluate.frames import deep_recursion
from parakeet_py.frontend.evaluate.hot_loops import HotLoop, code_of, codes
from parakeet_py.frontend.evaluate.kept_closures import may_keep
from parakeet_py.frontend.operators import BINARY, COMPARE, INPLACE, UNARY, formatted
from parakeet_py.frontend.ownership.lists import FUNCTIONS
from parakeet_py.frontend.ssa import Block, Const, Function, Let, Operand, Star, Var

_log = logging.getLogger("parakeet_py")
Key = tuple[Any, ...]
Observer = Callable[[Key, Any], None]
_DEEP = 16  # functions inside each other, after which Python's limit counts them alone, not what evaluates them
LONG = 64  # turns of a loop, or calls of a function, that are evaluated
MAX_DEPTH = 48  # functions inside each other; deeper ones are called


class Changed:
    """Observed instead of a result: the call has changed a list or dict that it was given, or what is watched."""

    def __repr__(self) -> str:
        return "changed"


CHANGED = Changed()


class Raised:
    """In a log, instead of a result: the exception with which an operation ended, and which the function has caught."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_CHANGED = frozenset({list, dict})  # what calls may change unnoticed
_STEADY = frozenset({bool, float, complex, types.NoneType, np.bool_, np.int64, np.float64})
OBSERVED = (ssa.Call, ssa.Attribute, ssa.Subscript, ssa.SetItem, ssa.Binary, ssa.Inplace, ssa.Compare, ssa.Unary)


def evaluate(
    function: Function,
    python: types.FunctionType,
    *,
    observe: Observer | None = None,
    inline: Callable[[Any], tuple[Function, types.FunctionType] | None] | None = None,
    replay: Sequence[tuple[Key, Any]] = (),
    watch: Callable[[], Sequence[list[Any]]] = tuple,
) -> Callable[..., Any]:
    """A callable that executes `function`, with the globals, closure cells and defaults of `python`.

    It is `python` itself where nested functions may be kept that Python gives other values (`kept_closures.py`).

    Parameters
    ----------
    observe : called with the key and the result of every operation that could be handed back to Python
    inline : the IR and the Python function of a callee that is to be evaluated rather than called; None for others
    replay : keys and results of operations already done, in order
    watch : gives lists of objects that calls are not expected to replace (the observer is given `CHANGED` if one does)
    """
    if not replay and may_keep(function, python):
        return python
    evaluation = _Evaluation(observe, inline, list(reversed(replay)), watch)
    inner = evaluation.entry(function, python, python.__defaults__, python.__kwdefaults__, ())

    @unseen
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        except BaseException as error:
            shown: BaseException | None = error
            while shown is not None and _is_evaluated(shown.__traceback__):
                shown.__traceback__ = _as_python_shows_it(shown.__traceback__)
                shown = shown.__context__
            raise

    call.__name__, call.__qualname__ = python.__name__, python.__qualname__
    return call


class _Evaluation:
    """What the functions of one evaluation share."""

    def __init__(self, observe: Observer | None, inline: Any, replay: list[tuple[Key, Any]], watch: Any) -> None:
        self.observe = observe
        self.watch = watch
        self.inline = inline
        self.replay = replay
        self.running: list[Function] = []
        self.kept: dict[int, bool] = {}
        self.calls: dict[int, int] = {}  # of functions that are looked into
        self.turns: dict[int, int] = {}  # of loops
        self.hot: dict[int, HotLoop | None] = {}
        self.hot_calls: dict[int, int] = {}  # in such loops
        self.shims: dict[int, types.FunctionType] = {}
        self.nested: dict[types.FunctionType, _Nested] = {}

    def entry(
        self,
        function: Function,
        python: types.FunctionType,
        defaults: tuple[Any, ...] | None,
        named: dict[str, Any] | None,
        path: Key | None,
        captures: tuple[Any, ...] = (),
        itself: types.FunctionType | None = None,
    ) -> types.FunctionType:
        """A Python function with the parameters of `function` that evaluates it; it knows itself as `itself`."""

        def run(values: tuple[Any, ...]) -> Any:
            frame = _Frame(self, function, python, path)
            frame.itself = itself or made
            frame.values.update(zip(function.captures, captures, strict=True))
            frame.values.update((param.var, value) for param, value in zip(function.params, values, strict=True))
            if function.generator:
                return frame.items_of(function.body)
            self.running.append(function)
            try:
                with deep_recursion(len(self.running) == _DEEP):
                    return frame.block(function.body)[0]
            finally:
                self.running.pop()

        shim = self.shims.get(id(function))
        if shim is None:
            shim = self.shims[id(function)] = shim_of(function)
        made = types.FunctionType(shim.__code__, python.__globals__, function.name, defaults, (types.CellType(run),))
        made.__kwdefaults__ = named
        made.__qualname__ = python.__qualname__ if path == () else f"{python.__qualname__}.<locals>.{function.name}"
        made.__module__ = python.__module__
        return made

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
                kept = self.kept[id(found[0])] = may_keep(*found)
        except Exception as error:
            self.stop_observing(error)
            return None
        return None if kept else found

    def stop_observing(self, error: Exception) -> None:
        """What the call itself does not depend on has failed: it goes on, and nothing more is observed of it."""
        if came_from_outside(error):
            raise error
        _log.error("nothing more is observed of this call", exc_info=error)
        self.observe = self.inline = None

    def call(self, frame: _Frame, let: Let, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`target(*args, **kwargs)`, evaluated where the specializer would look into it."""
        if frame.path is not None:
            path = (*frame.path, let.pos)
            try:
                nested = self.nested.get(target)
            except TypeError:  # not hashable
                nested = None
            if nested is not None:
                return self.entry(*nested.parts((*path, nested.function.name), target))(*args, **kwargs)
            found = self.looked_into(target) if len(self.running) < MAX_DEPTH else None
            if found is not None and all(found[0] is not function for function in self.running):
                function, python = found
                path = (*path, function.name)
                shim = self.entry(function, python, python.__defaults__, python.__kwdefaults__, path)
                shim.__qualname__ = python.__qualname__
                if not isinstance(target, types.MethodType):
                    return shim(*args, **kwargs)
                target, args = shim, [target.__self__, *args]  # to the specializer it may be a call of an object
        if self.observe is None:
            return target(*args, **kwargs)
        given = [value for value in (*args, *kwargs.values()) if type(value) in (list, dict)]
        before: list[list[int]] = []
        watched: Sequence[list[Any]] = ()
        try:
            before, watched = [contents(value) for value in given], self.watch()
        except Exception as error:
            self.stop_observing(error)
        result = target(*args, **kwargs)
        try:
            if self.observe is not None and (
                any(contents(value) != had for value, had in zip(given, before, strict=True)) or self.replaced(watched)
            ):
                self.observe(self.key(frame, let), CHANGED)
        except Exception as error:
            self.stop_observing(error)
        return result

    def replaced(self, watched: Sequence[list[Any]]) -> bool:
        """Is something that is watched another object now, or does it hold others? The call may have made more things
        watched."""
        now = self.watch()
        return len(now) < len(watched) or any(differ(one, then) for one, then in zip(now, watched, strict=False))

    def key(self, frame: _Frame, let: Let) -> Key:
        place = (frame.function.filename, let.pos, type(let.op).__name__)
        return place if frame.path is None else (*frame.path, *place)

    def result(self, frame: _Frame, let: Let) -> tuple[Any, ...]:
        """The result of an operation that may be observed, or is known already."""
        key = self.key(frame, let)
        if self.replay and self.replay[-1][0] == key:
            value = self.replay.pop()[1]
            if isinstance(value, Raised):
                raise value.error
            return (value,) if let.outs else ()
        values = frame.op(let)
        if let.outs:
            self.see(frame, let, values[0], key)
        return values

    def see(self, frame: _Frame, let: Let, value: Any, key: Key) -> None:
        """Tell the observer, unless it knows."""
        if self.observe is None:
            return
        kind = type(value)
        steady = kind in _STEADY or (kind is int and -(2**63) <= value < 2**63)
        if steady and frame.seen.get(id(let)) is kind:
            return
        if steady:
            frame.seen[id(let)] = kind
        try:
            self.observe(key, value)
        except Exception as error:
            self.stop_observing(error)

    def hot_loop(self, op: ssa.For | ssa.While, let: Let, frame: _Frame) -> HotLoop | None:
        """The code of a loop that has had many turns, if there is one."""
        turns = self.turns[id(op)] = self.turns.get(id(op), 0) + 1
        if turns <= LONG or self.replay:
            return None
        if id(op) not in self.hot:
            self.hot[id(op)] = None
            try:
                self.hot[id(op)] = code_of(op, let, frame.function)
            except Exception as error:
                self.stop_observing(error)
        return self.hot[id(op)]


def contents(value: list[Any] | dict[Any, Any]) -> list[int]:
    """What a list or dict holds, to be compared while its items live."""
    return [id(item) for item in (value.values() if isinstance(value, dict) else value)]


def with_items(value: Any) -> list[Any]:
    """An object, and what it holds now if it is a list or dict."""
    if type(value) is dict:
        return [value, *value.values()]
    return [value, *value] if type(value) is list else [value]


def differ(now: Sequence[Any], then: Sequence[Any]) -> bool:
    """Are these other objects?"""
    return len(now) != len(then) or any(one is not other for one, other in zip(now, then, strict=True))


class _Nested:
    """A function made by `MakeClosure`."""

    def __init__(self, frame: _Frame, function: Function, captures: tuple[Any, ...], defaults: tuple[Any, ...]) -> None:
        given = iter(defaults)
        plain = tuple(next(given) for param in function.params if param.has_default and param.kind == "positional")
        named = {param.name: next(given) for param in function.params if param.has_default and param.kind == "keyword"}
        self.function, self.python, self.captures = function, frame.python, captures
        self.plain, self.named = plain, named

    def parts(self, path: Key | None, itself: Any = None) -> tuple[Any, ...]:
        return self.function, self.python, self.plain or None, self.named or None, path, self.captures, itself


class _Frame:
    """The variables of one running function."""

    __slots__ = ("evaluation", "function", "itself", "path", "python", "seen", "values")

    def __init__(
        self, evaluation: _Evaluation, function: Function, python: types.FunctionType, path: Key | None
    ) -> None:
        self.evaluation = evaluation
        self.function = function
        self.python = python
        self.path = path
        self.itself: types.FunctionType | None = None
        self.values: dict[Var, Any] = {}
        self.seen: dict[int, type] = {}  # what an operation has given, of types that say all

    def get(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Const) else self.values[operand]

    def items(self, items: tuple[ssa.Item, ...]) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, Star):
                found = [*found, *self.get(item.operand)]
            else:
                found.append(self.get(item))
        return found

    def block(self, block: Block) -> tuple[Any, ...]:
        for let in block.statements:
            self.let(let)
        return tuple(self.get(result) for result in block.results)

    def items_of(self, block: Block) -> Generator[Any, None, tuple[Any, ...]]:
        """What a generator does: the same as `block`, with a stop at each yield."""
        for let in block.statements:
            match let.op:
                case ssa.Call(Const(value), (Var() | Const() as item,)) if value is yielded:
                    yield self.get(item)
                    values: tuple[Any, ...] = (False,)
                case ssa.If(condition, then, orelse) if _yields(let.op):
                    values = yield from self.items_of(then if self.get(condition) else orelse)
                case ssa.For() | ssa.While() as op if _yields(op):
                    values = yield from self.items_of_loop(op)
                case _:
                    self.let(let)
                    continue
            self.values.update(zip(let.outs, values, strict=True))
        return tuple(self.get(result) for result in block.results)

    def items_of_loop(self, op: ssa.For | ssa.While) -> Generator[Any, None, tuple[Any, ...]]:
        turns = self.turns(op, iter(self.get(op.iterable)) if isinstance(op, ssa.For) else None)
        state = tuple(self.get(init) for init in op.inits)
        stopped = False
        while not stopped and turns(state):
            state = yield from self.items_of(op.body)
            if op.stoppable:
                stopped, state = state[0], state[1:]
        return (stopped, *state) if op.stoppable else state

    def let(self, let: Let) -> None:
        if isinstance(let.op, OBSERVED):
            values = self.evaluation.result(self, let)
        else:
            values = self.op(let)
        if let.outs:
            self.values.update(zip(let.outs, values, strict=True))

    def op(self, let: Let) -> tuple[Any, ...]:
        get, op = self.get, let.op
        match op:
            case ssa.Binary(name, left, right):
                return (BINARY[name](get(left), get(right)),)
            case ssa.Call(function, args, kwargs):
                return (self.call(let, get(function), args, kwargs),)
            case ssa.Subscript(value, index):
                return (get(value)[get(index)],)
            case ssa.Attribute(value, name):
                return (getattr(get(value), name),)
            case ssa.Compare(name, left, right):
                return (COMPARE[name](get(left), get(right)),)
            case ssa.Inplace(name, left, right):
                result = INPLACE[name](get(left), get(right))
                if result is get(left) and isinstance(result, list | dict):
                    self.note_change(let)
                return (result,)
            case ssa.Unary(name, operand):
                return (UNARY[name](get(operand)),)
            case ssa.Global(name):
                return (self.read_global(name),)
            case ssa.Free(name):
                return (self.read_cell(name),)
            case ssa.If(condition, then, orelse):
                return self.block(then if get(condition) else orelse)
            case ssa.For() | ssa.While():
                return self.loop(op, let)
            case ssa.Guarded(body, classes, keeps):
                try:
                    return (0, *[None] * keeps, *self.block(body))
                except BaseException as error:
                    for number, caught in enumerate(map(get, classes)):
                        if isinstance(error, caught):
                            return (number + 1, *[error] * keeps, *(None for _ in body.results))
                    raise
            case ssa.SetItem(value, index, new):
                get(value)[get(index)] = get(new)
            case ssa.ChangeList():
                return self.change_list(op)
            case ssa.DeleteItem(value, index):
                del get(value)[get(index)]
            case ssa.SetAttribute(value, name, new):
                setattr(get(value), name, get(new))
            case ssa.BuildSet(items):
                return (set(self.items(items)),)
            case ssa.BuildSlice(lower, upper, step):
                return (slice(get(lower), get(upper), get(step)),)
            case ssa.BuildTuple(items):
                return (tuple(self.items(items)),)
            case ssa.BuildList(items):
                return (self.items(items),)
            case ssa.BuildDict(pairs):
                made: dict[Any, Any] = {}
                for key, value in pairs:
                    made |= {**get(value)} if key is None else {get(key): get(value)}
                return (made,)
            case ssa.BuildString(parts):
                return ("".join(formatted(get(part), *how) for part, *how in parts),)
            case ssa.Unpack(value, before, star, after):
                return unpacker(before, star, after)(get(value))
            case ssa.Itself():
                return (self.itself,)
            case ssa.MakeClosure(function, captures, defaults):
                return (self.closure(function, tuple(map(get, captures)), tuple(map(get, defaults))),)
            case ssa.Comprehension():
                wanted = None if op.condition is None else get(op.condition)
                return (self.comprehension(let, get(op.iterable), get(op.element), wanted),)
            case ssa.Import(module, name, level):
                return (self.import_(module, name, level),)
            case ssa.Raise(exception, Var() | Const() as cause):
                raise get(exception) from get(cause)
            case ssa.Raise(exception):
                raise get(exception)
            case ssa.Assert(condition, message):
                if not get(condition):
                    raise AssertionError(*(self.block(message) if message else ()))
            case ssa.CheckBound(flag, name, free):
                if not get(flag):
                    raise ssa.unbound_name(name, free)
            case _:
                raise TypeError(op)
        return ()

    def note_change(self, let: Let) -> None:
        """A list or dict has been changed in place."""
        if self.evaluation.observe is not None:
            self.evaluation.observe(self.evaluation.key(self, let), CHANGED)

    def change_list(self, op: ssa.ChangeList) -> tuple[Any, ...]:
        held, args = self.get(op.object), [self.get(arg) for arg in op.args]
        if op.at is None:
            return self.changed(op.change, held, args)
        return (*self.changed(op.change, held[self.get(op.at)], args)[:-1], held)

    def changed(self, change: str, changed: Any, args: list[Any]) -> tuple[Any, ...]:
        match change:
            case "pop":
                return changed.pop(*args), changed
            case "setdefault":
                return changed.setdefault(*args), changed
            case "set":
                changed[args[0]] = args[1]
            case "delete":
                del changed[args[0]]
            case "iadd":
                changed += args[0]
            case "heappop":
                return args[0](changed), changed
            case "deque" | "Counter":
                return (args[0](changed),)
            case "defaultdict":
                return (args[0](args[1]),)
            case "popleft":
                return changed.popleft(), changed
            case "popright":
                return changed.pop(), changed
            case name if name in FUNCTIONS:
                args[0](changed, *args[1:])
            case method:
                getattr(changed, method)(*args)
        return (changed,)

    def call(
        self, let: Let, target: Any, items: tuple[ssa.Item, ...], kwargs: tuple[tuple[str | None, Operand], ...]
    ) -> Any:
        for item in items:
            if isinstance(item, Star) and not is_iterable(self.get(item.operand)):
                target(*self.get(item.operand))  # raises TypeError
        args = self.items(items)
        keywords: dict[str, Any] = {}
        for key, operand in kwargs:
            value = self.get(operand)
            more = value if key is None else {key: value}
            if not isinstance(more, dict) or not keywords.keys().isdisjoint(more):
                more = merged(target, args, keywords, more)
            keywords.update(more)
        return self.evaluation.call(self, let, target, args, keywords)

    def read_global(self, name: str) -> Any:
        python: Any = self.python
        for scope in (python.__globals__, python.__builtins__):
            if name in scope:
                return scope[name]
        raise NameError(f"name {name!r} is not defined", name=name)

    def read_cell(self, name: str) -> Any:
        cells = self.python.__closure__
        assert cells is not None
        try:
            return cells[self.python.__code__.co_freevars.index(name)].cell_contents
        except ValueError:
            raise ssa.unbound_name(name, True) from None

    def closure(self, function: Function, captures: tuple[Any, ...], defaults: tuple[Any, ...]) -> types.FunctionType:
        nested = _Nested(self, function, captures, defaults)
        made = self.evaluation.entry(*nested.parts(None))
        self.evaluation.nested[made] = nested
        return made

    def import_(self, module: str, name: str | None, level: int) -> Any:
        if name is None:
            __import__(module, self.python.__globals__)
            return sys.modules[module]
        found = __import__(module, self.python.__globals__, None, (name,), level)
        try:
            return getattr(found, name)
        except AttributeError:
            inner = sys.modules.get(f"{found.__name__}.{name}")
            if inner is not None:
                return inner
        place = getattr(found, "__file__", None) or "unknown location"
        raise ImportError(f"cannot import name {name!r} from {found.__name__!r} ({place})", name=found.__name__)

    def comprehension(self, let: Let, iterable: Any, element: Any, condition: Any) -> Any:
        op, items = let.op, iter(iterable)
        assert isinstance(op, ssa.Comprehension)
        call = self.evaluation.call

        def generate() -> Iterator[Any]:
            for item in items:
                if condition is None or call(self, let, condition, [item], {}):
                    value = call(self, let, element, [item], {})
                    if op.flatten:
                        yield from value
                    else:
                        yield value

        if op.kind == "generator":
            return generate()
        kinds: dict[str, Callable[..., Any]] = {"list": list, "set": set, "dict": dict, "tuple": tuple, "inner": list}
        return kinds[op.kind](generate())

    def called(self, let: Let, target: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A call in a hot loop; what it gives is seen in its first turns, what it may change in all."""
        evaluation = self.evaluation
        times = evaluation.hot_calls[id(let)] = evaluation.hot_calls.get(id(let), 0) + 1
        given = (*args, *keywords.values())
        if times > LONG and not (evaluation.watch() or any(type(one) in _CHANGED for one in given)):
            return target(*args, **keywords)
        value = evaluation.call(self, let, target, args, keywords)
        if let.outs:
            evaluation.see(self, let, value, evaluation.key(self, let))
        return value

    def loop(self, op: ssa.For | ssa.While, let: Let) -> tuple[Any, ...]:
        items = iter(self.get(op.iterable)) if isinstance(op, ssa.For) else None
        turns = self.turns(op, items)
        state = tuple(self.get(init) for init in op.inits)
        stopped = False
        while True:
            hot = self.evaluation.hot_loop(op, let, self) if not stopped else None
            if hot is not None:
                return hot.run(self, items, state)
            if stopped or not turns(state):
                break
            state = self.block(op.body)
            if op.stoppable:
                stopped, state = state[0], state[1:]
        return (stopped, *state) if op.stoppable else state

    def turns(self, op: ssa.For | ssa.While, items: Iterator[Any] | None) -> Callable[[tuple[Any, ...]], bool]:
        """Whether there is another turn, for which what the loop carries is bound."""

        def another(state: tuple[Any, ...]) -> bool:
            self.values.update(zip(op.params, state, strict=True))
            if isinstance(op, ssa.While):
                return bool(self.block(op.condition)[0])
            assert items is not None
            try:
                self.values[op.item] = next(items)
            except StopIteration:
                return False
            return True

        return another


def _yields(op: ssa.Op) -> bool:
    """Is there a yield in the blocks of an operator?"""
    return any(
        (isinstance(let.op, ssa.Call) and isinstance(let.op.function, Const) and let.op.function.value is yielded)
        or _yields(let.op)
        for block in ssa.blocks_of(op)
        for let in block.statements
    )


# ---- tracebacks ------------------------------------------------------------------------------------------------------


_OWN_FILES = (__file__, binding.__file__, caught_steps.__file__)


def _is_evaluated(traceback: types.TracebackType | None) -> bool:
    """Does a traceback begin in these files?"""
    return traceback is not None and traceback.tb_frame.f_code.co_filename in _OWN_FILES


def _as_python_shows_it(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback with the evaluated functions in the place of this file's frames."""
    entries: list[TraceEntry | types.TracebackType] = []
    last: _Frame | None = None
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in codes:  # a loop, which is a statement of the frame before
            if last is not None:
                entries.pop()
            found = entry_at(traceback)
            if last is not None:
                found = replace(found, name=last.function.name, first_line=last.function.first_line)
            entries.append(found)
            last = None
        elif frame.f_code.co_filename not in _OWN_FILES:
            entries.append(traceback)
            last = None
        elif frame.f_code is _Frame.let.__code__:
            evaluated, let = frame.f_locals["self"], frame.f_locals["let"]
            if evaluated is last:  # a statement inside that statement
                entries.pop()
            function, pos = evaluated.function, let.pos
            ends = (pos.line, pos.column, pos.end_line, pos.end_column)
            entries.append(TraceEntry(function.filename, function.name, function.first_line, *ends))
            last = evaluated
        traceback = traceback.tb_next
    made: types.TracebackType | None = None
    for one in reversed(entries):
        if isinstance(one, TraceEntry):
            made = placed([one], made)
        else:
            made = types.TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


__all__ = ["CHANGED", "Key", "Observer", "Raised", "contents", "differ", "evaluate", "with_items"]
