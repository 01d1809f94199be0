"""From a function to its syntax tree, and what that says of names."""
