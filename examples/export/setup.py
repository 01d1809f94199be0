"""Builds the wheel: `plates/heat.py` becomes a library, which the wheel has in place of that source.

    pip wheel --no-deps --no-build-isolation .

`build_py` exports the function into the package. `bdist_wheel` tags the wheel: for this system and processor, for every
Python 3, as the library does not know Python.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SHIPPED = (".so", ".py")  # headers, objects and C source are for programs in C


class BuildWithLibrary(build_py):
    """Copies the package, then writes the library and its Python module into the copy."""

    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "plates"
        made = heat().spread.export(
            Path(self.build_lib).parent / "exported",
            np.zeros((64, 64)),
            100,
            0.2,
            also=[(np.zeros((64, 64), np.float32), 100, 0.2)],
        )
        if made.library is None:
            raise SystemExit(f"a C compiler is needed to link the library: {made.command}")
        for path in made.files:
            if path.suffix in SHIPPED:
                self.copy_file(str(path), str(package / path.name))
        (package / "heat.py").unlink()


class WheelOfLibrary(bdist_wheel):
    """A wheel for one platform and every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


def heat() -> ModuleType:
    """The module with the decorated function, which is not installed yet."""
    spec = importlib.util.spec_from_file_location("heat", HERE / "plates" / "heat.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup(distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfLibrary})
