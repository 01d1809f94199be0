"""Executing untyped SSA on Python values: what it means, and how types of results are observed."""
