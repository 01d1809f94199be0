"""Launches: lanes, warps, the order of blocks, what instructions ask of the machine."""
