"""Lists, dicts, sets, strings and tables."""
