"""Running functions on devices: their memory, launching kernels, the host part between launches.

`plan` compiles a function for GPUs and keeps its PTX; `host_code` turns the host part into a Python function; `arrays`
are arrays in a device's memory; `run` is one call. A `Device` (device.py) is what executes kernels: the emulator
(`emulated`), or a GPU through CUDA (`cuda`).
"""
