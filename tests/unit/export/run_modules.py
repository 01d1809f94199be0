"""Calls modules of exported libraries in a process without the compiler: `python run_modules.py FOLDER`.

`calls.pickle` there has (name, arguments, keyword arguments) of each call. Of each, the result or exception goes to
`results.pickle`, with the arguments afterwards, and of arrays in the result which argument they are or show.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any


class Blocked:
    """Imports of the compiler are errors."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in ("llvmlite", "parakeet_py", "typer", "rich"):
            raise ImportError(f"{name} is not there")


def outcome(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a call has given; see the top of the file."""
    import numpy as np

    try:
        result = function(*args, **named)
    except Exception as error:
        return "raised", type(error).__name__, str(error), args
    origins = []

    def look(value: Any) -> None:
        if isinstance(value, np.ndarray):
            arrays = [one for one in args if isinstance(one, np.ndarray)]
            same = [number for number, one in enumerate(arrays) if one is value]
            parts = [number for number, one in enumerate(arrays) if np.shares_memory(one, value)]
            origins.append((same, parts, value.flags.writeable, value.strides if value.size else None))
        elif isinstance(value, tuple | list):
            for item in value:
                look(item)

    look(result)
    arrays = [item for item in result if isinstance(item, np.ndarray)] if isinstance(result, tuple) else []
    together = [[one is other, np.shares_memory(one, other)] for one in arrays for other in arrays]
    return "returned", result, origins, together, args


def main(folder: Path) -> None:
    sys.meta_path.insert(0, Blocked())  # type: ignore[arg-type]
    sys.path.insert(0, str(folder))
    calls = pickle.loads((folder / "calls.pickle").read_bytes())
    found = [outcome(getattr(importlib.import_module(name), name), args, named) for name, args, named in calls]
    assert not {"llvmlite", "parakeet_py"} & set(sys.modules)
    (folder / "results.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
