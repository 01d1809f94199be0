"""Calls of accelerated functions: from the decorator to the specialization that runs."""
