"""PTX text to records: lexer, parser, types, the grammar."""
