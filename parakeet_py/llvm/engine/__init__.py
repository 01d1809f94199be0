"""LLVM itself: compiling, loading, keeping object code."""
