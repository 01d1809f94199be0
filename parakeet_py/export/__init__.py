"""Libraries of exported functions, which need neither Python nor this package at run time."""
