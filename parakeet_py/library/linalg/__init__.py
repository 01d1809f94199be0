"""Linear algebra: products, norms, LAPACK, einsum."""
