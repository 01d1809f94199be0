"""Where the library defines what: the names of each module, so that only the modules that are needed are imported.

Kept in step with the modules by a test, which shows the right contents when they differ.
"""

from __future__ import annotations

FUNCTIONS = {  # functions, by module and name
    "averages": "numpy.average numpy.corrcoef numpy.cov",
    "bits": "numpy.packbits numpy.unpackbits",
    "calculus": "numpy.gradient numpy.trapezoid",
    "complex_functions": (
        "cmath.acos cmath.acosh cmath.asin cmath.asinh cmath.atan cmath.atanh cmath.cos cmath.cosh cmath.exp "
        "cmath.isfinite cmath.isinf cmath.isnan cmath.log cmath.log10 cmath.phase cmath.polar cmath.rect cmath.sin "
        "cmath.sinh cmath.sqrt cmath.tan cmath.tanh"
    ),
    "contractions": "numpy.einsum",
    "creation": (
        "numpy.arange numpy.array numpy.asanyarray numpy.asarray numpy.ascontiguousarray numpy.asfortranarray "
        "numpy.astype numpy.copy numpy.empty numpy.empty_like numpy.full numpy.full_like numpy.geomspace "
        "numpy.linspace numpy.logspace numpy.ndarray numpy.ones numpy.ones_like numpy.zeros numpy.zeros_like"
    ),
    "elementary": (
        "numpy.allclose numpy.angle numpy.around numpy.array_equal numpy.fix numpy.imag numpy.isclose "
        "numpy.iscomplex numpy.isneginf numpy.isposinf numpy.isreal numpy.nan_to_num numpy.real numpy.round "
        "numpy.sinc"
    ),
    "grids": (
        "numpy.ix_ numpy.lib._index_tricks_impl.None numpy.ravel_multi_index numpy.tril_indices numpy.triu_indices "
        "numpy.unravel_index"
    ),
    "histograms": "numpy.histogram numpy.histogram2d numpy.histogram_bin_edges numpy.histogramdd",
    "insertion": (
        "numpy.block numpy.broadcast_arrays numpy.broadcast_shapes numpy.delete numpy.insert numpy.resize "
        "numpy.trim_zeros numpy.unstack"
    ),
    "integers": "math.comb math.factorial math.gcd math.isqrt math.lcm math.perm",
    "introspection": (
        "numpy.common_type numpy.iscomplexobj numpy.isrealobj numpy.isscalar numpy.iterable numpy.ndim "
        "numpy.result_type numpy.shape numpy.size"
    ),
    "iteration": (
        "numpy.apply_along_axis numpy.apply_over_axes numpy.ndenumerate numpy.ndindex numpy.nditer numpy.vectorize"
    ),
    "joining": (
        "numpy.append numpy.array_split numpy.column_stack numpy.concatenate numpy.dsplit numpy.dstack numpy.hsplit "
        "numpy.hstack numpy.repeat numpy.roll numpy.split numpy.stack numpy.tile numpy.vsplit numpy.vstack"
    ),
    "lapack": (
        "numpy.linalg.cholesky numpy.linalg.det numpy.linalg.eigh numpy.linalg.eigvalsh numpy.linalg.inv "
        "numpy.linalg.slogdet numpy.linalg.solve"
    ),
    "linear": (
        "numpy.linalg.cross numpy.linalg.diagonal numpy.linalg.matrix_norm numpy.linalg.matrix_power "
        "numpy.linalg.multi_dot numpy.linalg.vector_norm numpy.matvec numpy.vecmat"
    ),
    "matrices": "numpy.diag numpy.diagflat numpy.linalg.norm numpy.trace",
    "membership": "numpy.isin",
    "memory": "numpy.diagonal numpy.lib.stride_tricks.as_strided numpy.lib.stride_tricks.sliding_window_view",
    "nan_reductions": (
        "numpy.nanargmax numpy.nanargmin numpy.nanmax numpy.nanmean numpy.nanmin numpy.nanprod numpy.nanstd "
        "numpy.nansum numpy.nanvar"
    ),
    "order_statistics": (
        "numpy.median numpy.nanmedian numpy.nanpercentile numpy.nanquantile numpy.percentile numpy.quantile"
    ),
    "orthogonal": "numpy.linalg.eig numpy.linalg.eigvals numpy.linalg.qr",
    "other_names": (
        "numpy.diag_indices_from numpy.fft.fftshift numpy.fft.ifftshift numpy.linalg.matmul "
        "numpy.linalg.matrix_transpose numpy.linalg.outer numpy.linalg.tensordot numpy.linalg.trace "
        "numpy.linalg.vecdot numpy.tril_indices_from numpy.triu_indices_from"
    ),
    "padding": "numpy.pad",
    "parallel": (
        "parakeet_py.operators.allpairs parakeet_py.operators.generate parakeet_py.operators.map "
        "parakeet_py.operators.reduce parakeet_py.operators.scan parakeet_py.operators.scatter "
        "parakeet_py.operators.stencil"
    ),
    "patterns": (
        "numpy.eye numpy.fromfunction numpy.identity numpy.indices numpy.meshgrid numpy.tri numpy.tril numpy.triu"
    ),
    "polynomials": (
        "numpy.poly numpy.polyadd numpy.polyder numpy.polydiv numpy.polyfit numpy.polyint numpy.polymul "
        "numpy.polysub numpy.vander"
    ),
    "products": (
        "numpy.cross numpy.dot numpy.inner numpy.kron numpy.matmul numpy.outer numpy.tensordot numpy.vdot numpy.vecdot"
    ),
    "random_numbers": (
        "None.random numpy.random.rand numpy.random.randint numpy.random.random numpy.random.random_sample "
        "numpy.random.ranf numpy.random.sample numpy.random.uniform random.randint random.randrange random.uniform"
    ),
    "real_functions": ("math.cbrt math.frexp math.ldexp math.modf math.nextafter math.remainder math.ulp"),
    "reductions": (
        "numpy.all numpy.amax numpy.amin numpy.any numpy.argmax numpy.argmin numpy.count_nonzero numpy.max "
        "numpy.mean numpy.min numpy.prod numpy.ptp numpy.std numpy.sum numpy.var"
    ),
    "scans": (
        "numpy.cumprod numpy.cumsum numpy.cumulative_prod numpy.cumulative_sum numpy.diff numpy.ediff1d "
        "numpy.nancumprod numpy.nancumsum"
    ),
    "selection": (
        "numpy.argwhere numpy.choose numpy.clip numpy.compress numpy.extract numpy.flatnonzero numpy.nonzero "
        "numpy.select numpy.take numpy.take_along_axis numpy.where"
    ),
    "sets": (
        "numpy.intersect1d numpy.setdiff1d numpy.setxor1d numpy.union1d numpy.unique numpy.unique_all "
        "numpy.unique_counts numpy.unique_inverse numpy.unique_values"
    ),
    "shape": (
        "numpy.atleast_1d numpy.atleast_2d numpy.atleast_3d numpy.broadcast_to numpy.expand_dims numpy.flip "
        "numpy.fliplr numpy.flipud numpy.matrix_transpose numpy.moveaxis numpy.ravel numpy.reshape numpy.rollaxis "
        "numpy.rot90 numpy.squeeze numpy.swapaxes numpy.transpose"
    ),
    "signals": "numpy.convolve numpy.correlate numpy.polyval",
    "singular_values": (
        "numpy.linalg.cond numpy.linalg.lstsq numpy.linalg.matrix_rank numpy.linalg.pinv numpy.linalg.svd "
        "numpy.linalg.svdvals"
    ),
    "sorting": "numpy.argsort numpy.lexsort numpy.sort numpy.sort_complex",
    "special": "numpy.array_equiv numpy.i0 numpy.real_if_close numpy.require numpy.unwrap",
    "statistics": "numpy.bincount numpy.digitize numpy.interp numpy.searchsorted",
    "stores": (
        "numpy.copyto numpy.fill_diagonal numpy.piecewise numpy.place numpy.put numpy.put_along_axis numpy.putmask"
    ),
    "transforms": (
        "numpy.fft.fft numpy.fft.fft2 numpy.fft.fftn numpy.fft.hfft numpy.fft.ifft numpy.fft.ifft2 numpy.fft.ifftn "
        "numpy.fft.ihfft numpy.fft.irfft numpy.fft.irfft2 numpy.fft.irfftn numpy.fft.rfft numpy.fft.rfft2 "
        "numpy.fft.rfftn"
    ),
}
PLAIN = {  # functions of the standard library
    "complex_functions": "cmath.isclose",
    "iteration": "numpy.fromiter",
    "real_functions": "math.dist",
    "standard": "_functools.reduce itertools.accumulate itertools.chain itertools.combinations "
    "itertools.combinations_with_replacement itertools.compress itertools.count itertools.dropwhile "
    "itertools.filterfalse itertools.islice itertools.pairwise itertools.permutations itertools.product "
    "itertools.repeat itertools.starmap itertools.takewhile math.isclose math.prod",
}
METHODS = {  # methods of arrays; with a dot, of ufuncs and random generators
    "creation": "__copy__ astype copy fill",
    "elementary": "conj conjugate round",
    "joining": "repeat",
    "matrices": "trace",
    "memory": "diagonal view",
    "products": "dot",
    "random_generators": (
        "generator.choice generator.exponential generator.integers generator.normal generator.permutation "
        "generator.random generator.shuffle generator.standard_exponential generator.standard_normal generator.uniform"
    ),
    "reductions": "all any argmax argmin max mean min prod std sum var",
    "scans": "cumprod cumsum",
    "selection": "choose clip compress nonzero take",
    "shape": "flatten ravel reshape squeeze swapaxes transpose",
    "sorting": "argsort sort",
    "statistics": "searchsorted",
    "stores": "put",
    "ufunc_methods": "item tolist ufunc.accumulate ufunc.at ufunc.outer ufunc.reduce ufunc.reduceat",
}
UFUNCS = {  # scalar loops of ufuncs
    "complex_scalars": (
        "exp exp2 expm1 float_power fmax fmin greater greater_equal less less_equal log log10 log1p log2 maximum "
        "minimum rint sqrt"
    ),
    "complex_trigonometry": "arccos arccosh arcsin arcsinh arctan arctanh cos cosh sin sinh tan tanh",
    "scalars": (
        "bitwise_count clip deg2rad degrees divmod frexp gcd heaviside lcm ldexp logaddexp logaddexp2 modf power "
        "rad2deg radians reciprocal sign spacing"
    ),
}
HELPERS = {  # helpers the compiler calls by name
    "complex_functions": "complex_power",
    "creation": "all_fit",
    "elementary": "set_part",
    "hash_maps": "distinct empty_table find_entry table_of",
    "heaps": "heap_all heap_down heap_up sorted_place_left sorted_place_right",
    "integers": "int_bit_count int_bit_length int_pow",
    "iteration": "vectorized",
    "memory": "flat_item flat_line flat_read flat_write",
    "real_functions": "round_to_digits",
    "scalars": "int_power",
    "shape": "reshaped_memory",
    "standard": "partial_of",
    "ufunc_methods": "all_items chosen_items counted joined_items lazy_all lazy_any lazy_items lazy_next "
    "lazy_next_or of_tuples python_all python_any python_dict python_list python_list_part "
    "python_max python_min python_sum python_sum_int python_sum_rows",
}

_lookups: dict[int, dict[str, str]] = {}


def lookup(table: dict[str, str]) -> dict[str, str]:
    """The module of every name of a table."""
    found = _lookups.get(id(table))
    if found is None:
        found = _lookups[id(table)] = {name: module for module, names in table.items() for name in names.split()}
    return found


def modules() -> list[str]:
    """All modules of the library."""
    return sorted({*FUNCTIONS, *PLAIN, *METHODS, *UFUNCS, *HELPERS})
