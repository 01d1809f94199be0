"""The order and kind of loops, and where their checks and stores happen."""
