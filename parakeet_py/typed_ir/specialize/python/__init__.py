"""Python's own operations: calls, attributes, operators, builtins, recursion."""
