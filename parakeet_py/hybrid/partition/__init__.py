"""How operators are cut into parts, and how the results of parts are joined."""
