"""A function compiled for devices: its host part as Python, its kernels, what each part would cost."""
