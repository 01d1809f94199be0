"""What pyproject.toml cannot say: the description that package indexes show.

It is README.md. Its links lead to files of the checkout, which are not there: their names stay, as text, and the
picture goes. All else is in pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup

_NOTE = "Files named here are in the source distribution: `pip download --no-binary :all: --no-deps parakeet-py`.\n"


def description(text: str) -> str:
    """A page without what leads to files beside it; links with a scheme, and within the page, stay."""
    text = re.sub(r"^!\[[^\]]*\]\((?!\w+:)[^)]*\)\n+", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\((?!\w+:|#)[^)]*\)", r"`\1`", text)
    return f"{text.rstrip()}\n\n{_NOTE}"


setup(
    long_description=description((Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
