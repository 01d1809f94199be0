"""The kernels of each operator: maps, reductions, scans, scatters, compressions, sorts, products."""
