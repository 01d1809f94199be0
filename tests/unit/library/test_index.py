"""The index of the library says what its modules define."""

from __future__ import annotations

from parakeet_py.library import index, registry


def test_index_is_in_step() -> None:
    for table, contents in registry.definitions().items():
        written = {module: " ".join(sorted(names.split())) for module, names in getattr(index, table).items()}
        assert written == contents, f"{table} should be {contents}"
