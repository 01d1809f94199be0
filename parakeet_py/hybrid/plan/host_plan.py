"""What all plans have: a host part as Imp and as a Python function, and what it hands back to Python.

What the host part asks for besides is kernels (`device_plan`), where all of a function runs in one device's memory, or
regions (`team_plan`), which several members share.
"""

from __future__ import annotations

from typing import Any

from parakeet_py.base.config import Config
from parakeet_py.base.types import Type
from parakeet_py.hybrid.devices.timeline import Timeline
from parakeet_py.hybrid.plan.host_code import HostFunction, host_function
from parakeet_py.hybrid.plan.routine_calls import RoutineCall
from parakeet_py.imp import ir as imp


class HostPlan:
    """How a specialization runs.

    Attributes
    ----------
    function, host, host_text : the host part, as Imp, as a Python function, and that one's source
    opaque_args, opaque_outs : the types of what goes to and comes from each operation handed back to Python
    routines : of NumPy's, which the host does, by the numbers of their calls
    filename : where the function was read from
    last_run : what the last call has done, None before the first
    timeline : what the last call that was recorded has done when
    """

    def __init__(self, function: imp.Function, config: Config, filename: str, routines: dict[int, RoutineCall]) -> None:
        self.function, self.config, self.filename, self.routines = function, config, filename, routines
        self.host: HostFunction
        self.host, self.host_text = host_function(function)
        self.opaque_args: dict[int, tuple[Type, ...]] = {}
        self.opaque_outs: dict[int, tuple[Type, ...]] = {}
        for statement in imp.walk(function.body):
            if isinstance(statement, imp.Opaque):
                self.opaque_args[statement.site] = tuple(arg.type for arg in statement.args)
                self.opaque_outs[statement.site] = tuple(out.type for out in statement.outs)
        self.last_run: Any = None
        self.timeline: Timeline | None = None
