"""An import hook that accelerates every function and method that the modules of some packages define.

Functions are replaced in their module and class once the module has run, so that calls between them are accelerated
calls, too. With a folder to keep calls in, functions are wrapped by what keeps the arguments of their first calls
instead (as pickles, made before the call), and nothing is accelerated.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

KEPT = 3  # calls of a function
LARGEST = 1 << 20  # bytes of a kept call
_OTHERS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # which stay as they are
MANY = 1000  # items of a container that are looked at


def install(packages: Sequence[str], change: Callable[[types.FunctionType], Any]) -> None:
    """Let `change` replace the functions of packages that are imported from now on, but not those of their tests."""
    sys.meta_path.insert(0, _Finder(tuple(packages), change))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: tuple[str, ...], change: Callable[[types.FunctionType], Any]) -> None:
        self.packages, self.change = packages, change

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in self.packages or _is_test(name):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path, self.change)
        return spec


def _is_test(name: str) -> bool:
    return any(part in ("tests", "test", "testing", "conftest") or part.startswith("test_") for part in name.split("."))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, change: Callable[[types.FunctionType], Any]) -> None:
        super().__init__(name, path)
        self.change = change

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        replace_functions(module, self.change)


def replace_functions(module: types.ModuleType, change: Callable[[types.FunctionType], Any]) -> None:
    """Change what a module defines: its functions, and the functions, static and class methods and properties of its
    classes.

    A function is replaced by one object wherever it stands, in dicts and lists of the module and its classes too: where
    it was decorated, it would be the same one everywhere.
    """
    replaced: dict[int, Any] = {}

    def changed(function: types.FunctionType) -> Any:
        if function.__code__.co_flags & _OTHERS:
            return function
        found = replaced.get(id(function))
        if found is None:
            found = replaced[id(function)] = change(function)
        return found

    containers = []
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            setattr(module, name, changed(value))
        elif type(value) in (dict, list) and not name.startswith("__"):
            containers.append(value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for attribute, member in list(vars(value).items()):
                kind = type(member)
                if kind is types.FunctionType:
                    new = changed(member)
                elif kind in (staticmethod, classmethod, property):
                    new = _changed_member(member, changed)
                else:
                    if kind in (dict, list) and not attribute.startswith("__"):
                        containers.append(member)
                    continue
                if new is not member and attribute not in ("__new__", "__init_subclass__", "__class_getitem__"):
                    try:
                        setattr(value, attribute, new)
                    except (AttributeError, TypeError):
                        continue
    for container in containers:
        if len(container) <= MANY:
            for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
                if id(item) in replaced:
                    container[key] = replaced[id(item)]


def _changed_member(member: Any, changed: Callable[[types.FunctionType], Any]) -> Any:
    """The same static or class method or property of other functions; itself if these do not change."""
    if type(member) is property:
        old = member.fget, member.fset, member.fdel
        made = [changed(one) if isinstance(one, types.FunctionType) else one for one in old]
        return member if tuple(made) == old else property(*made, member.__doc__)
    if not isinstance(member.__func__, types.FunctionType):
        return member
    new = changed(member.__func__)
    return member if new is member.__func__ else type(member)(new)


def neutral(function: types.FunctionType) -> Any:
    """What only calls a function: tests that fail with it ask which object a function is."""

    @functools.wraps(function)
    def calling(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return calling


def copied(function: types.FunctionType) -> Any:
    """A function like this one: what is left is the time of the hook itself."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    made.__module__, made.__doc__ = function.__module__, function.__doc__
    if function.__dict__:
        made.__dict__.update(function.__dict__)
    if function.__annotations__:
        made.__annotations__ = function.__annotations__
    return made


def keeping(folder: Path) -> Callable[[types.FunctionType], Any]:
    """What wraps a function so that the arguments of its first calls are kept in a folder."""

    def change(function: types.FunctionType) -> Any:
        left = [KEPT]

        @functools.wraps(function)
        def kept(*args: Any, **kwargs: Any) -> Any:
            if left[0] and "<locals>" not in function.__qualname__:
                left[0] -= 1
                try:
                    call = pickle.dumps((function.__module__, function.__qualname__, args, kwargs))
                except Exception:
                    call = b""
                if 0 < len(call) <= LARGEST:
                    name = f"{function.__module__}.{function.__qualname__}.{left[0]}.pickle"
                    (folder / name.replace("/", "_")).write_bytes(call)
            return function(*args, **kwargs)

        return kept

    return change
