"""The places of a module that are checked, with their failure codes."""

from __future__ import annotations

from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.positions import Pos


@record
class Site:
    """A place in the user's source where something is checked, and what is done there."""

    operation: str
    pos: Pos | None


@record(frozen=False)
class Checks:
    """The places of a module where something is checked; their failure codes follow those of the program."""

    first_code: int
    sites: dict[Site, int] = field(default_factory=dict)
    pos: Pos | None = None  # of the statement being written

    def code(self, operation: str) -> int:
        """The failure code of an operation at the present place."""
        return self.first_code + self.sites.setdefault(Site(operation, self.pos), len(self.sites))
