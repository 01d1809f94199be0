"""Signatures: what a specialization knows of its arguments, where hidden ones come from, how results are assembled."""
