"""Syntax trees to simpler syntax trees: exceptions, generators, cells, patterns."""
