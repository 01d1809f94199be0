"""Devices: the interface, CUDA and emulated ones, which there are, their rates, failures and timelines."""
