"""Reductions, scans, sorting, searching, sets and histograms; the methods of ufuncs."""
