"""Fusion of array operators, and what makes it possible."""
