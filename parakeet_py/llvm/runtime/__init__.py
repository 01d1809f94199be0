"""What compiled code calls: memory, threads, BLAS, loops of NumPy."""
