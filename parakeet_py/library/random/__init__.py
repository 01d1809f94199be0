"""Random numbers from the states of NumPy's and Python's generators."""
