"""What the threads of a kernel do, and its LLVM IR."""
