"""Syntax trees to untyped SSA."""
