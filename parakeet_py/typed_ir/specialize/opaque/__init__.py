"""opaque"""
