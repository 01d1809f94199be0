"""Branches, loops, exceptions, iteration: values where paths meet."""
