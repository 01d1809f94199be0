"""The index of the library says what its modules define."""

from __future__ import annotations

from parakeet_py.library import index, registry


def test_index_is_in_step() -> None:
    for table, contents in registry.definitions().items():
        written = {module: " ".join(sorted(names.split())) for module, names in getattr(index, table).items()}
        entries = [f'"{module}": "{names}"' for module, names in contents.items() if names != written.get(module)]
        assert not entries, f"{table} in library/index.py should have {', '.join(entries)}"
        assert list(written) == [module for module in written if module in contents], f"{table} has modules too many"
