"""Simplification of scalars and extents, common subexpressions, dead code."""
