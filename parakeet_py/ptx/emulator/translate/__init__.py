"""From PTX instructions to Python functions over NumPy arrays, one for each basic block."""
