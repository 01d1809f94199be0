"""Which lists, dicts and sets belong to a function alone, so that changing one is binding its name anew."""

from typing import TYPE_CHECKING

from parakeet_py.base.lazy_modules import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)
