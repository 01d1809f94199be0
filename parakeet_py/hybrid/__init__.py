"""Running functions on devices, alone and in teams.

`devices/` are what executes kernels: emulated ones and GPUs through CUDA. `residency/` knows where the bytes of arrays
are. `partition/` says how operators are cut into parts and how results are joined. `plan/` compiles a function for
devices: its host part as Python, its kernels as PTX, the cost of each part. `execute/` runs calls.
"""
