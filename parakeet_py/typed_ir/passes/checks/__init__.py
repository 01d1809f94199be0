"""Where checks are made."""
