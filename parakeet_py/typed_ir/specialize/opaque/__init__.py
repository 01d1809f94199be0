"""Operations handed back to Python."""
