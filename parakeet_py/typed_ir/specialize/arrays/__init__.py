"""Arrays: conversions, elementwise operators, indexing, views, stores."""
