"""What Python's own containers and standard library need: hash tables, heaps, `itertools` and their like."""
