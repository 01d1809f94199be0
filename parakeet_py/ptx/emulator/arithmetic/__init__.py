"""The arithmetic of PTX where NumPy has no single operator for it."""
