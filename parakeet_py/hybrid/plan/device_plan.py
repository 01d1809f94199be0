"""A specialization for devices: its host part as Python, its kernels as PTX.

A `DevicePlan` is made once for each specialization, from the typed IR after fusion. PTX is made for an architecture
when a device of that architecture first runs the plan.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from parakeet_py.base.config import Config
from parakeet_py.base.types import Array, Scalar, is_complex, real_dtype
from parakeet_py.hybrid.devices.device import Device, TensorMap
from parakeet_py.hybrid.plan.host_code import HostSteps, host_steps
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.plan.routine_calls import as_calls
from parakeet_py.imp import ir as imp
from parakeet_py.llvm.codegen.builder import Locations
from parakeet_py.ptx import libdevice, target
from parakeet_py.ptx.kernels.bulk_products import SHARED, has_boxes, is_quicker, tensors_of
from parakeet_py.ptx.kernels.codegen import NARROW, kernel_ir, stored_roots, strides_passed
from parakeet_py.ptx.kernels.lowering import lower_for_gpu
from parakeet_py.ptx.kernels.regions import WARP
from parakeet_py.ptx.outline import Kernel
from parakeet_py.typed_ir.ir import Function, Stride, Var

_CODES = {
    "bool": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


class Form(NamedTuple):
    """What is known of the arguments of a launch; each kernel is compiled in those forms that are launched.

    Attributes
    ----------
    aligned : all arrays start at multiples of 16 bytes
    narrow : all integers, and the number of threads, fit in 32 bits
    parts : how many blocks the device makes of one, see `occupancy_limit`
    boxes : matrices come by bulk copies, see `bulk_products`
    """

    aligned: bool
    narrow: bool
    parts: int = 1
    boxes: bool = False


USUAL = Form(True, True)
_FORMS = tuple(tuple(Form(aligned, narrow) for narrow in (False, True)) for aligned in (False, True))


class DevicePlan(HostPlan):
    """How a specialization, or a part of a region, runs in the memory of one device.

    Attributes
    ----------
    kernels : in the order of their numbers
    codes : the `struct` characters of each kernel's parameters, by whether it is narrow
    tensors : of which parameters each kernel takes tensor maps in the form for bulk copies
    stores : the parameters of each kernel that it stores to
    stored_params : the array parameters that are stored to
    gives_views : a result may be a view of an argument
    asks_strides : the function asks for strides, which have to be those that the host has
    check : wait for every kernel
    resources : what kernels take on a device, by their numbers, as far as `occupancy_limit` has asked
    parts : how many blocks are made of one, of kernels whose blocks are too large for a device, by the ids of devices
        and the kernels' numbers, see `occupancy_limit`
    instead : the plans that run in place of this one, by the ids of devices, see `occupancy_limit`
    rounds : what is known of rounds of the host part, by the ids of devices and their numbers, see `execute.rounds`
    """

    def __init__(self, function: Function, config: Config, filename: str) -> None:
        self.flags = {
            "contract": config.contract,
            "fastmath": config.fastmath,
            "libdevice": config.libdevice and libdevice.find() is not None,
        }
        function, routines = as_calls(function)
        device_function = lower_for_gpu(function, config.fastmath)
        if config.check:
            from parakeet_py.imp.check import check_function

            for kernel in device_function.kernels:
                check_function(imp.Function(kernel.name, kernel.params, _as_region(kernel), (), *_rest(kernel)))
            check_function(device_function.host)
        super().__init__(device_function.host, config, filename, routines)
        self.kernels: tuple[Kernel, ...] = device_function.kernels
        codes = ["".join(codes_of(kernel)) for kernel in self.kernels]
        self._integers = [[place for place, code in enumerate(found) if code == "q"] for found in codes]
        last = ["Pqq" if kernel.checked else "Pq" if kernel.guarded else "" for kernel in self.kernels]
        self.codes = tuple(
            {narrow: (found.replace("q", "i") if narrow else found) + more for narrow in (False, True)}
            for found, more in zip(codes, last, strict=True)
        )
        self.expanders = tuple(tuple(_expander(param) for param in kernel.params) for kernel in self.kernels)
        stored = [stored_roots(kernel.function) for kernel in self.kernels]
        self.tensors = tuple(map(tensors_of, self.kernels))
        self.stores = tuple(map(_stores, self.kernels, stored))
        self.stored_params = _stored_params(self.function, stored)
        self.gives_views = _gives_views(self.function)
        self.asks_strides = any(isinstance(let.op, Stride) for let in function.statements())
        self.check = bool(config.check)
        self.resources: dict[int, Any] = {}
        self.parts: dict[tuple[int, int], int] = {}
        self.instead: dict[int, DevicePlan] = {}
        self.rounds: dict[tuple[int, int], Any] = {}
        self._loaded: list[tuple[int, Any]] = []
        self._lock = threading.Lock()
        self._ptx: dict[tuple[str, int, Form], str] = {}
        self._modules: dict[tuple[int, int, Form], tuple[Device, Any]] = {}

    @property
    def bodies(self) -> list[imp.Block]:
        """The code of the host part and of all kernels."""
        return [self.function.body, *(kernel.function.body for kernel in self.kernels)]

    @cached_property
    def steps(self) -> HostSteps:
        """The host part in steps, for callers that fetch numbers of the result themselves."""
        return host_steps(self.function)

    def llvm(self, architecture: str, kernel: int, form: Form = USUAL, locations: Locations | None = None) -> str:
        """The LLVM IR of a kernel."""
        gpu = target.gpu(architecture)
        return kernel_ir(self.kernels[kernel], gpu, **form._asdict(), **self.flags, locations=locations)

    def form(
        self, device: Device, kernel: int, blocks: int, aligned: bool, values: Sequence[Any], args: Sequence[Any] = ()
    ) -> Form:
        """The form of a kernel that a launch can have; `args` as the host part has them, for products."""
        narrow = blocks * self.kernels[kernel].threads <= NARROW
        for place in self._integers[kernel]:
            if not -NARROW <= values[place] < NARROW:
                narrow = False
        tensors = self.tensors[kernel]
        if tensors and args and narrow and has_boxes(device.architecture) and is_quicker(tensors, args):
            return Form(aligned, narrow, boxes=True)
        if not self.parts:
            return _FORMS[aligned][narrow]
        return Form(aligned, narrow, self.parts.get((id(device), kernel), 1))

    def threads(self, kernel: int, form: Form) -> int:
        """Of a block."""
        return self.kernels[kernel].threads // form.parts + WARP * form.boxes

    def tensor_maps(self, kernel: int, args: Sequence[Any]) -> Iterator[TensorMap]:
        """The tensor maps of a launch in the form for bulk copies."""
        for one in self.tensors[kernel]:
            array = args[one.place]
            extents = tuple(array.shape[axis] for axis in one.order)
            strides = tuple(array.strides[axis] for axis in one.order[1:])
            yield TensorMap(array.address, array.dtype, extents, strides, one.box)

    def ptx(self, architecture: str, kernel: int, form: Form = USUAL) -> str:
        """The PTX of a kernel."""
        key = architecture, kernel, form
        with self._lock:
            if key not in self._ptx:
                self._ptx[key] = target.compile_ptx(self.llvm(*key), architecture, self.kernels[kernel].name)
            return self._ptx[key]

    def module(self, device: Device, kernel: int, form: Form = USUAL) -> Any:
        """The loaded module of a kernel on a device."""
        key = id(device), kernel, form
        found = self._modules.get(key)
        if found is None:
            found = self._modules[key] = (
                device,
                device.load(self.ptx(device.architecture, kernel, form), SHARED if form.boxes else 0),
            )
            self._loaded.append((kernel, found[1]))
        return found[1]

    def take_loaded(self) -> list[tuple[int, Any]]:
        """The kernels, and their modules, that have been loaded since the last question."""
        loaded, self._loaded = self._loaded, []
        return loaded


def _stored_params(host: imp.Function, by_kernels: Sequence[frozenset[int]]) -> frozenset[Var]:
    stored = stored_roots(host).union(*by_kernels)
    return frozenset(param for param in host.params if host.roots.get(param, frozenset()) & stored)


def _stores(kernel: Kernel, stored: frozenset[int]) -> tuple[int, ...]:
    """The parameters of a kernel that stores to these memory roots, which it may store to."""
    roots = kernel.function.roots
    return tuple(
        place
        for place, param in enumerate(kernel.params)
        if isinstance(param.type, Array) and roots.get(param, stored) & stored
    )


def _gives_views(host: imp.Function) -> bool:
    given: frozenset[int] = frozenset()
    for param in host.params:
        given |= host.roots.get(param, frozenset())
    return any(isinstance(result, Var) and host.roots.get(result, frozenset()) & given for result in host.results)


def _as_region(kernel: Kernel) -> imp.Block:
    from parakeet_py.imp.writer import ONE

    return imp.Block((imp.Grid(ONE, kernel.threads, kernel.function.body, kernel.name),))


def _rest(kernel: Kernel) -> tuple[Any, Any]:
    return kernel.function.failures, kernel.function.roots


def codes_of(kernel: Kernel) -> list[str]:
    """The `struct` characters of a kernel's machine parameters, without those of its failures."""
    codes: list[str] = []
    for param in kernel.params:
        kind = param.type
        if isinstance(kind, Array):
            codes.append("P" + "q" * (kind.rank + len(strides_passed(kind))))
        else:
            assert isinstance(kind, Scalar)
            codes.append(2 * _CODES[real_dtype(kind.dtype)] if is_complex(kind.dtype) else _CODES[kind.dtype])
    return codes


def _expander(param: Var) -> Any:
    """A function from an argument to its machine parameters."""
    kind = param.type
    if isinstance(kind, Array):
        axes = strides_passed(kind)
        if not axes:
            return lambda array: (array.address, *array.shape)
        return lambda array: (array.address, *array.shape, *(array.strides[axis] for axis in axes))
    assert isinstance(kind, Scalar)
    if is_complex(kind.dtype):
        return lambda value: (value.real, value.imag)
    return lambda value: (value,)
