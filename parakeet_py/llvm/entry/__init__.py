"""The native entry of calls: its text, arguments, results."""
