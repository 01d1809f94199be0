"""datetime64 and timedelta64, as the int64 that they are underneath."""

from typing import TYPE_CHECKING

from parakeet_py.base.lazy_modules import submodules

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)
