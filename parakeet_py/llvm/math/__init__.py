"""Elementary functions, scalar and vector."""
