"""Functions without source: from bytecode to a syntax tree."""
