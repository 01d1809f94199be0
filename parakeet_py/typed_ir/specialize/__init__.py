"""Executing untyped SSA over abstract values, which writes the typed IR."""
