"""Instances of classes in Python, and attributes that are assigned."""
