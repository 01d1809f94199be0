"""Shapes, axes, joining, splitting, repeating; attributes of arrays."""

from __future__ import annotations

from tests.numpy_table.rows import NUMBERS, REAL, Family

family = Family("shapes")

family.row("np.reshape", "a, -1; a, (-1, 1); a, (1, -1), order='F'; a, a.shape[::-1]", NUMBERS, "0123")
family.row("ndarray.reshape", "-1; -1, 1; a.shape[::-1]; (1, -1), order='F'", NUMBERS, "0123")
family.row("np.ravel", "a; a, {order}", NUMBERS, "0123")
family.row("ndarray.ravel", "; {order}", NUMBERS, "0123")
family.row("ndarray.flatten", "; {order}", NUMBERS, "0123")
family.row("np.transpose", "a; a, tuple(range(a.ndim))[::-1]", NUMBERS, "0123")
family.row("ndarray.transpose", "; *range(a.ndim)", NUMBERS, "0123")
family.row("np.permute_dims", "a", NUMBERS, "12")
family.row("ndarray.T", "-", NUMBERS, "0123")
family.row("ndarray.mT", "-", NUMBERS, "23")
family.row("np.matrix_transpose", "a", NUMBERS, "23")
family.row("np.swapaxes", "a, 0, -1", NUMBERS, "123")
family.row("ndarray.swapaxes", "0, -1", NUMBERS, "123")
family.row("np.moveaxis", "a, 0, -1; a, [0, 1], [1, 0]", NUMBERS, "23")
family.row("np.rollaxis", "a, 1; a, -1, 0", NUMBERS, "23")
family.row("np.expand_dims", "a, 0; a, -1; a, (0, 1)", NUMBERS, "0123")
family.row("np.squeeze", "a; a[None]; a[None], 0", NUMBERS, "0123")
family.row("ndarray.squeeze", "", NUMBERS, "0123")
family.row("np.atleast_1d", "a; a, b; 3", NUMBERS, "0123")
family.row("np.atleast_2d", "a; a, b; 3", NUMBERS, "0123")
family.row("np.atleast_3d", "a; a, b; 3", NUMBERS, "0123")
family.row("np.broadcast_to", "r, a.shape; 3, (2, 2)", NUMBERS, "0123")
family.row("np.broadcast_arrays", "a, r; a, b; v", NUMBERS, "123")
family.row("np.broadcast_shapes", "a.shape, r.shape; (2, 1), (1, 3); (1,), (3, 1)", "d", "123")
WINDOWS = "np.lib.stride_tricks.sliding_window_view"
family.row(
    WINDOWS,
    f"= {WINDOWS}(v, 3).max(axis=-1); = {WINDOWS}(a, 1, -1) == 2; = {WINDOWS}(a, (1,) * a.ndim) != 0",
    NUMBERS,
    "123",
)
family.row(
    "np.lib.stride_tricks.as_strided",
    "v, (2, v.size // 2), 2 * v.strides; a, a.shape, a.strides",
    NUMBERS,
    "123",
)
family.row("np.flip", "a; a, {axis}", NUMBERS, "0123")
family.row("np.flipud", "a", NUMBERS, "123")
family.row("np.fliplr", "a", NUMBERS, "23")
family.row("np.rot90", "a; a, 2; a, -1; a, 3, (1, 0)", NUMBERS, "23")
family.row("ndarray.view", "; a.dtype; f'i{a.itemsize}'; = a.view(f'u{a.itemsize}') ^ 1", REAL, "0123")
family.row("np.roll", "a, 1; a, -2, 0; a, (1, 2), (0, 1); a, 1, {one}", NUMBERS, "123")
family.row(
    "np.concatenate",
    "(a, b); (a, b), -1; (a, b), None; [a, a, b]; (a, b), dtype=complex; (a, b), out=o; (2, v, 300), None",
    NUMBERS,
    "123",
)
family.row("np.concat", "(a, b); [a, b], -1", NUMBERS, "123")
for name in ("stack", "vstack", "hstack", "dstack"):
    more = "; (a, b), -1; [a, b, a], 0, out=o" if name == "stack" else ""
    family.row(f"np.{name}", f"(a, b); [a, b, a]{more}", NUMBERS, "0123")
family.row("np.column_stack", "(a, b); [v, v]", NUMBERS, "12")
family.row("np.block", "[a, b]; [[a, b], [b, a]]", NUMBERS, "012")
family.row("np.append", "a, b; a, 5; a, b, axis=0; a, [1, 2]", NUMBERS, "0123")
family.row(
    "np.insert",
    "v, 2, 5; v, [1, 3], [6, 7]; a, 1, 5, axis=0; v, slice(1, 3), 9; a, 0, r, axis=0; a, 1, 5",
    NUMBERS,
    "12",
)
family.row("np.delete", "v, 2; v, [1, 3]; a, 1, axis=0; v, slice(1, 5, 2); v, c; a, 0, axis=-1; a, 1", NUMBERS, "12")
family.row("np.resize", "a, (2, 5); a, 4; v, (3, 3)", NUMBERS, "12")
family.row("np.trim_zeros", "v; v, 'f'; v, 'b'", "bild", "1")
for name in ("split", "array_split"):
    family.row(f"np.{name}", "v, [2, 4]; a, 1; a, [1, 2], -1; v, 7; v, 3; v, n[1:3]", NUMBERS, "12")
family.row("np.hsplit", "a, 1; a, [1, 2]", NUMBERS, "123")
family.row("np.vsplit", "a, 1; a, [1, 2]", NUMBERS, "23")
family.row("np.dsplit", "a, 2; a, [1, 2]", NUMBERS, "3")
family.row("np.unstack", "a; a, axis=-1", NUMBERS, "123")
family.row(
    "np.repeat",
    "a, 2; a, 2, axis={one}; v, n; v, [1, 2, 0, 1, 1, 1, 3]; a, 3, 0; a, [2], -1; "
    "v, c; a, i + 9, 0; v, n[2:3]; a, n - 1; "
    "a, np.arange(a.shape[-1]), -1; v, n - 1; v, -n[:1]",
    NUMBERS,
    "0123",
)
family.row("ndarray.repeat", "2; 2, 0; np.arange(a.shape[0]), 0", NUMBERS, "123")
family.row("np.tile", "a, 2; a, (2, 1); a, (1, 2, 1)", NUMBERS, "0123")
family.row(
    "np.pad",
    "v, 2, mode={pad}; a, 1, mode={pad}; v, (1, 3), mode='constant', constant_values=(4, 6); "
    "a, ((0, 1),) * a.ndim, 'edge'; v, 9, 'reflect'; v, 2, 'reflect', reflect_type='odd'; "
    "v, 3, 'mean', stat_length=2; v, 2, 'linear_ramp', end_values=5; "
    "a, 1, constant_values=300; a, 1, constant_values=((1, 300),) * a.ndim; a, 5, 'symmetric', reflect_type='odd'; "
    "a, (1, 2), 'minimum', stat_length=(2, 1); v, 12, 'symmetric'; v, 15, 'wrap'",
    REAL[1:],
    "12",
    sums=4,
)
family.row("np.ndim", "a; 3; [1, 2]", NUMBERS, "0123")
family.row("np.shape", "a; 3; [[1, 2]]", NUMBERS, "0123")
family.row("np.size", "a; a, 0; 3", NUMBERS, "0123")
for name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "real", "imag"):
    family.row(f"ndarray.{name}", "-", NUMBERS, "0123")
family.row("ndarray.flat", "= [x for x in a.flat]; = a.flat[0]; = a.flat[1:3]; = a.flat.copy()", NUMBERS, "12")
family.row("ndarray.flags", "= a.flags.c_contiguous; = a.flags.writeable; = a.flags.f_contiguous", "d", "12")
family.row("ndarray.astype", "np.float32; np.int16; complex; float, copy=False; bool; 'i4'", REAL, "0123")
family.row("ndarray.copy", "; {order}", NUMBERS, "0123")
family.row("ndarray.fill", "2; 2.5", NUMBERS, "0123")
family.row("ndarray.item", "= a[..., :1].ravel()[:1].item(); 0; -2; (1,) * a.ndim; *(1,) * a.ndim", NUMBERS, "12")
family.row("ndarray.tolist", "", NUMBERS, "0123")
family.row("ndarray.conj", "", NUMBERS, "0123")
family.row("ndarray.conjugate", "", NUMBERS, "0123")
family.row("ndarray.round", "; 1", NUMBERS, "0123")
family.row("ndarray.clip", "1, 3; None, 2; min=1", REAL, "0123")
family.row("ndarray.dot", "r", NUMBERS, "12", sums=8)
family.row("ndarray.byteswap", "", NUMBERS, "1")
family.row("ndarray.resize", "= a.resize(4)", "d", "1")
family.row("np.common_type", "a; a, t", NUMBERS, "1")
family.row("np.isdtype", "= np.isdtype(a.dtype, 'numeric'); = np.isdtype(a.dtype, ('bool', np.float64))", NUMBERS, "1")
family.row("np.iterable", "a; a.size; [a]; range(3)", NUMBERS, "012")
family.row("np.result_type", "a, b; a, 1; a, 1.5; np.int8, np.float32", NUMBERS, "1")
family.row("np.iscomplexobj", "a; 1j", NUMBERS, "1")
family.row("np.isrealobj", "a; 1j", NUMBERS, "1")
family.row("np.isscalar", "a; 1; 2.5", NUMBERS, "1")
family.row("np.can_cast", "np.int8, np.float32; 'f8', 'f4'", "d", "1")
family.row("np.promote_types", "np.int8, np.float32", "d", "1")
family.row("np.issubdtype", "a.dtype, np.floating; a.dtype, np.integer", NUMBERS, "1")
family.row("np.finfo", "= np.finfo(a.dtype).eps; = np.finfo(a.dtype).max", "efd", "1")
family.row("np.iinfo", "= np.iinfo(a.dtype).max", "bilBL", "1")
family.row("np.shares_memory", "a, a; a, b", "d", "12")
family.row("np.may_share_memory", "a, a; a, b", "d", "12")
