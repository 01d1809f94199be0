"""Programs on a Dask cluster: accelerated functions beside `dask.array`, and `map_blocks` with numba."""
