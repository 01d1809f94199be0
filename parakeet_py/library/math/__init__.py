"""Elementary functions, loops of ufuncs over scalars, `math` and `cmath`, polynomials, transforms."""
