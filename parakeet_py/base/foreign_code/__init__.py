"""Compiled code of other packages: where it lies, and what it is called with."""
