"""Frames of Python functions: which show, what tracebacks say, and tools that ask for events."""
