"""The plugin of pytest that accelerates packages, or keeps their calls, as the environment says."""

from __future__ import annotations

import os
from pathlib import Path

from tests.strangers import hook

_packages = os.environ["STRANGERS"].split(",")
_folder = os.environ.get("STRANGERS_CALLS")

if _folder:
    hook.install(_packages, hook.keeping(Path(_folder)))
else:
    from parakeet_py import accelerate

    hook.install(_packages, accelerate)
