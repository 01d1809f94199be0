"""Factors of large matrices by blocks of columns: NumPy's, whatever the layout and the threads, and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options


def factor(a: Any) -> Any:
    return np.linalg.cholesky(a)


def positive(n: int) -> Any:
    """A symmetric matrix whose upper triangle is not to be read."""
    a = np.random.default_rng(n).standard_normal((n, n))
    return np.tril(a @ a.T + n * np.eye(n)) + np.triu(np.full((n, n), np.nan), 1)


@pytest.mark.parametrize("n", [255, 300])
def test_a_large_factor_is_that_of_numpy(n: int) -> None:
    compiled: Any = accelerate(when="now")(factor)
    whole = positive(2 * n)
    for a in (positive(n), np.asfortranarray(positive(n)), whole[::2, ::2], whole[:n, :n], positive(n)[None]):
        expected = np.linalg.cholesky(a)
        found = []
        for threads in (1, 2):
            with options(threads=threads):
                found.append(compiled(a))
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-13 * n)
        assert not np.triu(found[0], 1).any()
        assert n < 256 or found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("at", [0, 130, 299])
def test_a_large_matrix_that_is_not_positive_definite(at: int) -> None:
    compiled: Any = accelerate(when="now")(factor)
    a = positive(300)
    a[at, at] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        compiled(a)
    a[at, at] = 300.0
    assert np.isfinite(compiled(a)).all()


def test_exact_code_has_the_bits_of_numpy() -> None:
    a = positive(300)
    assert accelerate(when="now", exact=True)(factor)(a).tobytes() == np.linalg.cholesky(a).tobytes()
