"""Calls of the driver that do nothing and return at once, in C: for measuring what the host takes.

What is launched or copied is counted; memory is addresses that are never given out twice. All that comes to the host is
zeros.
"""

from __future__ import annotations

HELPERS = """
static long long counted[4]; /* launches, copies, memory, waits */
static unsigned long long next_address = 1ull << 44;
static __thread void *current_context;
long long *counts(void) { return counted; }
"""
_LAUNCH, _COPY, _WAIT = "counted[0]++; return 0;", "counted[1]++; return 0;", "counted[3]++; return 0;"

QUICK = {
    "cuLaunchKernel": _LAUNCH,
    "cuLaunchKernelEx": _LAUNCH,
    "cuGraphLaunch": _LAUNCH,
    "cuMemcpyHtoDAsync": _COPY,
    "cuMemcpyDtoHAsync": f"memset(a0, 0, a2); {_COPY}",
    "cuMemcpyDtoDAsync": _COPY,
    "cuMemcpy2DAsync": _COPY,
    "cuMemcpyPeerAsync": _COPY,
    "cuMemcpy3DPeerAsync": _COPY,
    "cuMemAllocFromPoolAsync": "counted[2]++; *(unsigned long long *)a0 = next_address; "
    "next_address += (a1 + 511) / 512 * 512; return 0;",
    "cuMemFreeAsync": "return 0;",
    "cuCtxSetCurrent": "if (current_context != a0 && enter()) { current_context = a0; "
    "return leave(((int (*)(void *))answer[NUMBER])(a0)); } return 0;",
    "cuCtxGetCurrent": "if (current_context) { *(void **)a0 = current_context; return 0; } "
    "return enter() ? leave(((int (*)(void *))answer[NUMBER])(a0)) : 0;",
    "cuStreamSynchronize": _WAIT,
    "cuEventCreate": "*(void **)a0 = (void *)0x77770; return 0;",
    "cuEventDestroy": "return 0;",
    "cuEventRecord": "return 0;",
    "cuEventSynchronize": _WAIT,
    "cuEventQuery": "return 0;",
    "cuTensorMapReplaceAddress": "return 0;",
    "cuEventElapsedTime": "*(float *)a0 = 0.02f; return 0;",
    "cuStreamWaitEvent": "return 0;",
}
