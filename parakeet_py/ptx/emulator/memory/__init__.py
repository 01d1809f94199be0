"""The memory of an emulated device: allocations, accesses, atomics, asynchronous copies."""
