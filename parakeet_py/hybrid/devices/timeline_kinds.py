"""The kinds of events in a timeline."""

from __future__ import annotations

PART = "parts"  # of the CPU's threads
KERNEL, COPY_IN, COPY_OUT, COPY_OVER = "kernels", "copies in", "copies out", "copies from others"
KINDS = (PART, KERNEL, COPY_IN, COPY_OUT, COPY_OVER)
