"""Ways in for other packages: the engine of pandas, functions that numba can call."""
