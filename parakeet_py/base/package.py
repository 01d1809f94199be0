"""Where the package lies."""

from __future__ import annotations

import os
from typing import Final

NAME: Final = __name__.partition(".")[0]
FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
