"""What an error says of a kernel that has failed: which it was, where in the source it comes from, its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base.types import Array, Scalar, is_complex
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.imp import ir as imp
from parakeet_py.ptx.kernels.codegen import strides_passed
from parakeet_py.ptx.outline import Kernel

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.transfer_counters import Meter
    from parakeet_py.hybrid.plan.device_plan import DevicePlan


def fault_text(plan: DevicePlan, device: Meter, error: DeviceError) -> str:
    """An error after which it is not known of these launches whether they have ended well."""
    suspects = [describe_launch(plan, *launch) for launch in device.unfinished]
    if len(suspects) == 1:
        return f"{device.name}: {error}\n  in {suspects[0]}"
    return f"{device.name}: {error}\n  in one of\n" + "\n".join(f"  {suspect}" for suspect in suspects)


def describe_launch(plan: DevicePlan, number: int, blocks: int, values: Sequence[Any]) -> str:
    kernel = plan.kernels[number]
    shape = f"{blocks} x {kernel.threads} threads" if blocks else "by cuBLAS"
    return f"kernel {kernel.name} ({place_of(plan.filename, kernel)}), {shape}, {arguments(kernel, values)}"


def lines_of(kernel: Kernel) -> list[int]:
    """The lines of the user's source that a kernel computes."""
    found = {statement.pos.line for statement in imp.walk(kernel.function.body) if isinstance(statement, imp.Let)}
    return sorted(found - {0})


def place_of(filename: str, kernel: Kernel) -> str:
    """``file:line``, or ``file, lines a, b`` for operators fused from several lines."""
    lines = lines_of(kernel)
    if len(lines) == 1:
        return f"{filename}:{lines[0]}"
    return f"{filename}, lines {', '.join(map(str, lines))}" if lines else filename


def arguments(kernel: Kernel, values: Sequence[Any]) -> str:
    """A kernel's arguments, from its machine parameters."""
    texts = []
    rest = list(values)
    for param in kernel.params:
        kind = param.type
        if isinstance(kind, Array):
            address, *extents = rest[: 1 + kind.rank]
            del rest[: 1 + kind.rank + len(strides_passed(kind))]
            texts.append(f"{param.name}: {kind.dtype}[{', '.join(map(str, extents))}] at {address:#x}")
        elif isinstance(kind, Scalar) and is_complex(kind.dtype):
            texts.append(f"{param.name} = {complex(rest.pop(0), rest.pop(0))}")
        else:
            texts.append(f"{param.name} = {rest.pop(0)}")
    return ", ".join(texts)
