"""The programs of `make bench-cluster`: all forms without numba give the same, and ours is lazy."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")

from parakeet_py.bench.on_dask import compare, functions, peers  # noqa: E402


@pytest.mark.parametrize("name", compare.NAMES)
def test_forms_agree(name: str) -> None:
    args = compare.arguments(name, 0.0005)
    with dask.config.set(scheduler="sync"):
        lazy = compare.forms(name)["parakeet"](*args)
        assert compare.tasks_of(lazy) > 0
        plain = getattr(functions, name)(*(arg.compute() if hasattr(arg, "compute") else arg for arg in args))
        np.testing.assert_allclose(lazy, plain, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(peers.DASK[name](*args), plain, rtol=1e-9, atol=1e-9)
