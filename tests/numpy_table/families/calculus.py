"""Products, differences, polynomials, signals, linear algebra and transforms."""

from __future__ import annotations

from tests.numpy_table.rows import NUMBERS, REAL, Family

family = Family("calculus")

family.row("np.dot", "a, r; v, v; a, 2; q, q; a, b.T", NUMBERS, "12", sums=8)
family.row("np.vdot", "a, b; v, v", NUMBERS, "12", sums=8)
family.row("np.inner", "a, r; v, v; a, b; a, 2", NUMBERS, "123", sums=8)
family.row("np.outer", "a, b; v, w; v, w, out=o", NUMBERS, "0123")
family.row("np.kron", "v, w; a, q; a, b", NUMBERS, "12")
family.row("np.cross", "w, w; np.ones((4, 3)), w", REAL[1:], "1", sums=8)
family.row("np.tensordot", "a, b, a.ndim; a, b, 0; a, b, ([0], [0]); a, r, 1", NUMBERS, "123", sums=8)
family.row(
    "np.einsum",
    "'ij,ij->', a, b; 'ij->ji', a; 'ij,j->i', a, r; 'ij->', a; 'ij,kj->ik', a, b; 'ij->j', a; '...j->...', a; "
    "'ii', q; 'ii->i', q; 'ij,kj', a, b; 'i...,i...', a, b; '...ij,kj->...ik', a, b; a, [0, 1], b, [2, 1], [0, 2]; "
    "'ij,kj->ki', a, b, out=np.zeros((b.shape[0], a.shape[0]), complex); 'ij,kj', a, b, optimize=True",
    "ldD",
    "2",
    sums=8,
)
family.row("np.einsum_path", "'ij,jk', q, q", "d", "2")
family.row("np.convolve", "v, w; v, w, {mode}; w, v, {mode}", NUMBERS, "1", sums=8)
family.row("np.correlate", "v, w; v, w, {mode}; w, v, {mode}", NUMBERS, "1", sums=8)
family.row("np.diff", "a; a, 2; a, axis=0; a, prepend=0; a, append=1; a, 1, {one}", NUMBERS, "123")
family.row("np.ediff1d", "a; a, to_begin=1, to_end=[2, 3]", NUMBERS[1:], "123")
family.row(
    "np.gradient",
    "a; a, 2.0; v, t; a, edge_order=2; a, axis=0; v, t, edge_order=2; a, 1, axis=-1",
    "ilefdD",
    "12",
    sums=8,
    ulp=16,
)
family.row("np.trapezoid", "a; a, dx=0.5; v, t; a, axis=0; v, x=v", NUMBERS, "12", sums=16)
family.row("np.polyval", "v, 2; w, a; w, 1.5; w, t", "ilfdD", "012", sums=32, ulp=16)
family.row("np.polyfit", "t, v, 2; t, v, 1; t, v, 3, w=t + 1; t, v, 2, full=True", "ld", "1", sums=4096)
family.row("np.polyadd", "v, w; w, v; v, [1, 2]", "ild", "1")
family.row("np.polysub", "v, w; w, v", "ild", "1")
family.row("np.polymul", "v, w; w, v", "ild", "1", sums=8)
family.row("np.polyder", "v; v, 2; w, 0", "ild", "1")
family.row("np.polyint", "v; w, 2; w, k=3", "ild", "1")
family.row("np.polydiv", "v, w", "d", "1", sums=64)
family.row("np.poly", "w; q", "d", "1", sums=64)
family.row("np.roots", "w", "d", "1", sums=64)
for name in ("eigvals", "eig"):
    family.row(
        f"np.linalg.{name}", "q + 1j; (q + 1j).astype('F'); q", "d", "2", sums=256,
        note="real matrices: by NumPy, whose result is real or complex",
    )  # fmt: skip
family.row("np.linalg.qr", "q; q[:, 1:]; q[1:], 'complete'; q, 'r'; q, 'raw'; np.stack([q, q + 1j])", "d", "2", sums=16)
SQUARES = "q; np.stack([q, q + 1]); q.astype('f'); q + 1j; (q + 1j).astype('F'); q.astype(int); q.T"
SYMMETRIC = "q @ q.T; np.stack([q @ q.T, q.T @ q]); (q @ q.T).astype('f'); q @ q.T + 0j"
for name in ("inv", "det", "slogdet"):
    family.row(f"np.linalg.{name}", f"{SQUARES}; q * 0; q[1:]; q[:0, :0]", "d", "2", sums=16)
for name, further in {"cholesky": "q @ q.T, upper=True", "eigvalsh": "q, 'U'", "eigh": "q, 'U'"}.items():
    family.row(f"np.linalg.{name}", f"{SYMMETRIC}; {further}; -q @ q.T; q[1:]", "d", "2", sums=16)
family.row(
    "np.linalg.solve",
    "q, q; q, q[0]; np.stack([q, q + 1]), q; np.stack([q, q.T]), w; q.astype('f'), w.astype('f'); q, w + 1j; q * 0, w; "
    "q, q[1:]",
    "d",
    "2",
    sums=16,
)
WIDE = "q; q[1:]; np.stack([q, q + 1]); q.astype('f'); q + 1j; (q[:2] + 1j).astype('F'); q.astype(int); q[:, 1:].T"
for name, further in {
    "svd": "q[1:], False; q, compute_uv=False; q[:0]",
    "svdvals": "q * 0",
    "matrix_rank": "q * 0; np.outer(w, w)",
    "pinv": "q, 0.1; q, rtol=None; q[:0]; np.outer(w, w)",
    "cond": "q, -2; q * 0; q, 1",
}.items():
    family.row(f"np.linalg.{name}", f"{WIDE}; {further}", "d", "2", sums=64)
family.row(
    "np.linalg.lstsq",
    "q, w; q, q; q[:, :2], w; q[:2], w[:2]; q.astype('f'), w.astype('f'); q, w + 1j; q * 0, w; q[1:], w; q, w, 1e-3",
    "d",
    "2",
    sums=64,
)
family.row("np.linalg.matrix_power", "q, 3; q, 0; q, -1", "d", "2", sums=256)
family.row("np.linalg.multi_dot", "[q, q, q]", "d", "2", sums=64)
family.row(
    "np.linalg.norm",
    "a; a, axis={one}; v, 1; v, np.inf; a, 'fro'; a, 1; v, 3; a, axis=0, keepdims=True; v, 0; a, 2; a, -2; a, 'nuc'",
    "ilfdD",
    "12",
    sums=16,
    ulp=8,
)
family.row("np.linalg.vector_norm", "a; a, axis=0; a, ord=1", "ilfdD", "12", sums=16, ulp=8)
family.row("np.linalg.matrix_norm", "q; q, ord=1", "d", "2", sums=16, ulp=8)
for name, call in {
    "cross": "w, w",
    "outer": "v, w",
    "matmul": "q, q",
    "tensordot": "q, q",
    "vecdot": "v, v",
    "trace": "q",
    "diagonal": "q",
    "matrix_transpose": "q",
}.items():
    family.row(f"np.linalg.{name}", call, "lfd", "1", sums=16)
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    real = name in ("rfft", "ihfft")
    family.row(
        f"np.fft.{name}",
        "v; a, axis={one}; a, 6, -1, 'ortho'; b, n=3, axis=0, norm='forward'",
        "?ilfd" if real else "?ilfdFD",
        "123",
        sums=64,
    )
for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    real = name.startswith("rfft")
    calls = "a; a, (2, 3), (0, 1); a, norm='ortho'; a, axes=(1, 0)"
    family.row(f"np.fft.{name}", calls, "ifd" if real else "ifdD", "23", sums=64)
family.row("np.fft.fftfreq", "8; 7, 0.5", "d", "1")
family.row("np.fft.rfftfreq", "8; 7, 0.5", "d", "1")
family.row("np.fft.fftshift", "v; q; q, 0", "d", "1")
family.row("np.fft.ifftshift", "v; q; q, 0", "d", "1")
