"""What code is made for, as LLVM describes a machine."""

from __future__ import annotations

from typing import NamedTuple


class HostInfo(NamedTuple):
    """What LLVM says about a machine.

    Attributes
    ----------
    cpu : LLVM's name of the CPU
    features : LLVM's feature string
    vector_bits : widest vectors worth asking for: 512, 256 or 128
    triple, data_layout : for the head of a module
    """

    cpu: str
    features: str
    vector_bits: int
    triple: str
    data_layout: str

    @property
    def gpu(self) -> bool:
        """Whether this is a GPU: without a C library, vectors, or traps on division."""
        return self.triple.startswith("nvptx")

    @property
    def aarch64(self) -> bool:
        """Whether this is an AArch64 processor, which macOS calls arm64."""
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def root_estimate(self) -> bool:
        """Whether an instruction gives 14 bits of 1 / sqrt(x), of float64 and in vectors of any length: AVX-512."""
        features = self.features.split(",")
        return "+avx512f" in features and "+avx512vl" in features

    @property
    def fma(self) -> bool:
        """Whether a product and a sum with one rounding are an instruction of this CPU."""
        return self.aarch64 or "+fma" in self.features.split(",")
