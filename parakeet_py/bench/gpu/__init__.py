"""The benchmark on a GPU: `parakeet bench-gpu`, `make bench-gpu`.

For every benchmark program, and for one small function per operator (`operators`), three times are taken: of the
kernels alone, of a call whose arrays live on the device, of a call with NumPy arrays, transfers included. The fewest
bytes and operations that the task needs, over the time of the kernels, are compared with what this very device can do:
the bandwidth of a large copy and the rate of fused multiply-adds in registers (`ceilings`). The same source runs on
CuPy, JAX, PyTorch and numba where they are installed (`peers`), on arrays that live on the device, and every result is
compared with NumPy's.

Without a GPU all of it runs on an emulated device, with times that mean nothing: so it is tested.
"""
