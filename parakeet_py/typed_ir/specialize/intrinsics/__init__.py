"""The words of `library/intrinsics.py`."""
