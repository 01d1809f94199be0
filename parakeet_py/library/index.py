"""Where the library defines what: the names of each module, so that only the modules that are needed are imported.

Kept in step with the modules by a test, which shows the right contents when they differ.
"""

from __future__ import annotations

FUNCTIONS = {  # functions, by module and name
    "reductions.averages": "numpy.average numpy.corrcoef numpy.cov",
    "arrays.bits": "numpy.packbits numpy.unpackbits",
    "math.calculus": "numpy.gradient numpy.trapezoid",
    "math.cmath_functions": (
        "cmath.acos cmath.acosh cmath.asin cmath.asinh cmath.atan cmath.atanh cmath.cos cmath.cosh cmath.exp "
        "cmath.isfinite cmath.isinf cmath.isnan cmath.log cmath.log10 cmath.phase cmath.polar cmath.rect cmath.sin "
        "cmath.sinh cmath.sqrt cmath.tan cmath.tanh"
    ),
    "linalg.einsum": "numpy.einsum",
    "arrays.creation": (
        "numpy.arange numpy.array numpy.asanyarray numpy.asarray numpy.ascontiguousarray numpy.asfortranarray "
        "numpy.astype numpy.copy numpy.empty numpy.empty_like numpy.full numpy.full_like numpy.geomspace "
        "numpy.linspace numpy.logspace numpy.ndarray numpy.ones numpy.ones_like numpy.zeros numpy.zeros_like"
    ),
    "math.elementary": (
        "numpy.allclose numpy.angle numpy.around numpy.array_equal numpy.fix numpy.imag numpy.isclose "
        "numpy.iscomplex numpy.isneginf numpy.isposinf numpy.isreal numpy.nan_to_num numpy.real numpy.round "
        "numpy.sinc"
    ),
    "arrays.grids": (
        "numpy.ix_ numpy.lib._index_tricks_impl.None numpy.ravel_multi_index numpy.tril_indices numpy.triu_indices "
        "numpy.unravel_index"
    ),
    "reductions.histograms": "numpy.histogram numpy.histogram2d numpy.histogram_bin_edges numpy.histogramdd",
    "arrays.insertion": (
        "numpy.block numpy.broadcast_arrays numpy.broadcast_shapes numpy.delete numpy.insert numpy.resize "
        "numpy.trim_zeros numpy.unstack"
    ),
    "math.integer_functions": "math.comb math.factorial math.gcd math.isqrt math.lcm math.perm",
    "arrays.introspection": (
        "numpy.common_type numpy.iscomplexobj numpy.isrealobj numpy.isscalar numpy.iterable numpy.ndim "
        "numpy.result_type numpy.shape numpy.size"
    ),
    "arrays.iteration": (
        "numpy.apply_along_axis numpy.apply_over_axes numpy.ndenumerate numpy.ndindex numpy.nditer numpy.vectorize"
    ),
    "arrays.joining": (
        "numpy.append numpy.array_split numpy.column_stack numpy.concatenate numpy.dsplit numpy.dstack numpy.hsplit "
        "numpy.hstack numpy.repeat numpy.roll numpy.split numpy.stack numpy.tile numpy.vsplit numpy.vstack"
    ),
    "linalg.lapack": (
        "numpy.linalg.cholesky numpy.linalg.det numpy.linalg.eigh numpy.linalg.eigvalsh numpy.linalg.inv "
        "numpy.linalg.slogdet numpy.linalg.solve"
    ),
    "linalg.matrix_functions": (
        "numpy.linalg.cross numpy.linalg.diagonal numpy.linalg.matrix_norm numpy.linalg.matrix_power "
        "numpy.linalg.multi_dot numpy.linalg.vector_norm numpy.matvec numpy.vecmat"
    ),
    "linalg.matrices": "numpy.diag numpy.diagflat numpy.linalg.norm numpy.trace",
    "reductions.membership": "numpy.isin",
    "arrays.memory_views": (
        "numpy.diagonal numpy.lib.stride_tricks.as_strided numpy.lib.stride_tricks.sliding_window_view"
    ),
    "reductions.nan_reductions": (
        "numpy.nanargmax numpy.nanargmin numpy.nanmax numpy.nanmean numpy.nanmin numpy.nanprod numpy.nanstd "
        "numpy.nansum numpy.nanvar"
    ),
    "reductions.order_statistics": (
        "numpy.median numpy.nanmedian numpy.nanpercentile numpy.nanquantile numpy.percentile numpy.quantile"
    ),
    "linalg.factorizations": "numpy.linalg.eig numpy.linalg.eigvals numpy.linalg.qr",
    "arrays.aliases": (
        "numpy.diag_indices_from numpy.fft.fftshift numpy.fft.ifftshift numpy.linalg.matmul "
        "numpy.linalg.matrix_transpose numpy.linalg.outer numpy.linalg.tensordot numpy.linalg.trace "
        "numpy.linalg.vecdot numpy.tril_indices_from numpy.triu_indices_from"
    ),
    "arrays.padding": "numpy.pad",
    "python.parallel_operators": (
        "parakeet_py.operators.allpairs parakeet_py.operators.generate parakeet_py.operators.map "
        "parakeet_py.operators.reduce parakeet_py.operators.scan parakeet_py.operators.scatter "
        "parakeet_py.operators.stencil"
    ),
    "arrays.patterns": (
        "numpy.eye numpy.fromfunction numpy.identity numpy.indices numpy.meshgrid numpy.tri numpy.tril numpy.triu"
    ),
    "math.polynomials": (
        "numpy.poly numpy.polyadd numpy.polyder numpy.polydiv numpy.polyfit numpy.polyint numpy.polymul "
        "numpy.polysub numpy.vander"
    ),
    "linalg.products": (
        "numpy.cross numpy.dot numpy.inner numpy.kron numpy.matmul numpy.outer numpy.tensordot numpy.vdot numpy.vecdot"
    ),
    "random.legacy_generators": (
        "None.random numpy.random.rand numpy.random.randint numpy.random.random numpy.random.random_sample "
        "numpy.random.ranf numpy.random.sample numpy.random.uniform random.randint random.randrange random.uniform"
    ),
    "math.math_functions": (
        "math.cbrt math.dist math.frexp math.hypot math.ldexp math.modf math.nextafter math.remainder math.ulp"
    ),
    "reductions.reductions": (
        "numpy.all numpy.amax numpy.amin numpy.any numpy.argmax numpy.argmin numpy.count_nonzero numpy.max "
        "numpy.mean numpy.min numpy.prod numpy.ptp numpy.std numpy.sum numpy.var"
    ),
    "reductions.scans": (
        "numpy.cumprod numpy.cumsum numpy.cumulative_prod numpy.cumulative_sum numpy.diff numpy.ediff1d "
        "numpy.nancumprod numpy.nancumsum"
    ),
    "arrays.selection": (
        "numpy.argwhere numpy.choose numpy.clip numpy.compress numpy.extract numpy.flatnonzero numpy.nonzero "
        "numpy.select numpy.take numpy.take_along_axis numpy.where"
    ),
    "reductions.sets": (
        "numpy.intersect1d numpy.setdiff1d numpy.setxor1d numpy.union1d numpy.unique numpy.unique_all "
        "numpy.unique_counts numpy.unique_inverse numpy.unique_values"
    ),
    "arrays.shape": (
        "numpy.atleast_1d numpy.atleast_2d numpy.atleast_3d numpy.broadcast_to numpy.expand_dims numpy.flip "
        "numpy.fliplr numpy.flipud numpy.matrix_transpose numpy.moveaxis numpy.ravel numpy.reshape numpy.rollaxis "
        "numpy.rot90 numpy.squeeze numpy.swapaxes numpy.transpose"
    ),
    "math.convolution": "numpy.convolve numpy.correlate numpy.polyval",
    "linalg.singular_values": (
        "numpy.linalg.cond numpy.linalg.lstsq numpy.linalg.matrix_rank numpy.linalg.pinv numpy.linalg.svd "
        "numpy.linalg.svdvals"
    ),
    "reductions.sorting": "numpy.argsort numpy.lexsort numpy.sort numpy.sort_complex",
    "math.special": "numpy.array_equiv numpy.i0 numpy.real_if_close numpy.require numpy.unwrap",
    "reductions.searching": "numpy.bincount numpy.digitize numpy.interp numpy.searchsorted",
    "arrays.stores": (
        "numpy.copyto numpy.fill_diagonal numpy.piecewise numpy.place numpy.put numpy.put_along_axis numpy.putmask"
    ),
    "math.fourier": (
        "numpy.fft.fft numpy.fft.fft2 numpy.fft.fftn numpy.fft.hfft numpy.fft.ifft numpy.fft.ifft2 numpy.fft.ifftn "
        "numpy.fft.ihfft numpy.fft.irfft numpy.fft.irfft2 numpy.fft.irfftn numpy.fft.rfft numpy.fft.rfft2 "
        "numpy.fft.rfftn"
    ),
}
PLAIN = {  # functions of the standard library
    "math.cmath_functions": "cmath.isclose",
    "arrays.iteration": "numpy.fromiter",
    "python.standard_library": "_functools.reduce itertools.accumulate itertools.chain itertools.combinations "
    "itertools.combinations_with_replacement itertools.compress itertools.count itertools.dropwhile "
    "itertools.filterfalse itertools.islice itertools.pairwise itertools.permutations itertools.product "
    "itertools.repeat itertools.starmap itertools.takewhile math.isclose math.prod",
}
METHODS = {  # methods of arrays; with a dot, of ufuncs and random generators
    "arrays.creation": "__copy__ astype copy fill",
    "math.elementary": "conj conjugate round",
    "arrays.joining": "repeat",
    "linalg.matrices": "trace",
    "arrays.memory_views": "diagonal view",
    "linalg.products": "dot",
    "random.generators": (
        "generator.choice generator.exponential generator.integers generator.normal generator.permutation "
        "generator.random generator.shuffle generator.standard_exponential generator.standard_normal generator.uniform"
    ),
    "reductions.reductions": "all any argmax argmin max mean min prod std sum var",
    "reductions.scans": "cumprod cumsum",
    "arrays.selection": "choose clip compress nonzero take",
    "arrays.shape": "flatten ravel reshape squeeze swapaxes transpose",
    "reductions.sorting": "argsort sort",
    "reductions.searching": "searchsorted",
    "arrays.stores": "put",
    "reductions.ufunc_methods": "item tolist ufunc.accumulate ufunc.at ufunc.outer ufunc.reduce ufunc.reduceat",
}
UFUNCS = {  # scalar loops of ufuncs
    "math.complex_ufunc_loops": (
        "exp exp2 expm1 float_power fmax fmin greater greater_equal less less_equal log log10 log1p log2 maximum "
        "minimum rint sqrt"
    ),
    "math.complex_trigonometry": "arccos arccosh arcsin arcsinh arctan arctanh cos cosh sin sinh tan tanh",
    "math.real_ufunc_loops": (
        "bitwise_count clip deg2rad degrees divmod frexp gcd heaviside lcm ldexp logaddexp logaddexp2 modf power "
        "rad2deg radians reciprocal sign spacing"
    ),
}
HELPERS = {  # helpers the compiler calls by name
    "math.cmath_functions": "complex_power",
    "arrays.creation": "all_fit",
    "math.elementary": "set_part",
    "python.hash_tables": "are_entries chosen_entries distinct empty_table entries_of_both find_entry table_of",
    "python.heaps": "heap_all heap_down heap_up sorted_place_left sorted_place_right",
    "math.integer_functions": "int_bit_count int_bit_length int_pow",
    "arrays.iteration": "vectorized",
    "arrays.memory_views": "flat_item flat_line flat_read flat_write",
    "math.math_functions": "round_to_digits",
    "math.real_ufunc_loops": "int_power int_quotient",
    "arrays.shape": "reshaped_memory",
    "python.standard_library": "partial_of",
    "reductions.ufunc_methods": "counted lazy_all lazy_any lazy_items lazy_next lazy_next_or of_tuples python_all "
    "python_any python_complex_parts python_complex_sum python_complex_sum_end python_complex_sum_step "
    "python_dict python_item python_list python_list_part python_max python_min python_sum "
    "python_sum_end python_sum_rows python_sum_step sum_of_some_rows",
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
