"""What compiled code calls: memory, threads, BLAS, loops of NumPy."""

from typing import TYPE_CHECKING

from parakeet_py.base.lazy_modules import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)
