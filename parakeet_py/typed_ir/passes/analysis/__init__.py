"""Facts about programs: aliasing, ranges, linear forms."""
