"""Making arrays, changing their shape, putting them together and taking them apart, choosing and storing elements."""
