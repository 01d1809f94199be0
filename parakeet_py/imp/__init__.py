"""Imp, the loop language: `lower/` makes it of the typed IR, `schedule/` orders loops, `storage/` places memory."""
