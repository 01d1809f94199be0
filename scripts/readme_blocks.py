"""Write the Python of README.md as one file, for type checkers: python scripts/readme_blocks.py build/readme.py"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def blocks(text: str) -> list[str]:
    """The blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def main(target: str) -> None:
    root = Path(__file__).resolve().parents[1]
    path = root / target
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(blocks((root / "README.md").read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
