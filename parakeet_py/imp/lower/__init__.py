"""From the typed IR to loop nests: control, and each of the array operators."""
