"""The corpus: small NumPy programs by topic, each with inputs and what must be true of it (see tests/corpus.py)."""
