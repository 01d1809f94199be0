"""From Imp to LLVM IR text."""
