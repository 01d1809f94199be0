"""Memory of a lowered function: extents, aliasing, reuse, reference counts."""
