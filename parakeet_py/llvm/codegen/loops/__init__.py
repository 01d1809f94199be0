"""Loops and branches as LLVM is to see them: hints, polls, choices, the ends of vector loops."""

from typing import TYPE_CHECKING

from parakeet_py.base.lazy_modules import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)
