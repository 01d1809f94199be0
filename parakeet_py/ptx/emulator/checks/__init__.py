"""Mistakes of kernels that the emulator finds: missing barriers, races, invalid accesses."""
