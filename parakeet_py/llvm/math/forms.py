"""The text of the vector math library: every form of a function, from its kernel.

A form is a function on one lane or on as many as fill a vector, or half of one, of this machine. Kernels that find odd
lanes have them put right behind a branch that is seldom taken.
"""

from __future__ import annotations

from parakeet_py.llvm.codegen.builder import PURE, FunctionText, ModuleText
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.math import kernels
from parakeet_py.llvm.math.inverse import acos, asin
from parakeet_py.llvm.math.kernels import SINGLE, Kernel, Result
from parakeet_py.llvm.math.lanes import Lanes
from parakeet_py.llvm.math.names import BITS, symbol
from parakeet_py.llvm.math.powers import hypot, power

__all__ = ["KERNELS", "define", "lane_counts", "library_ir", "supported"]

KERNELS: dict[str, tuple[Kernel, int]] = {
    **kernels.KERNELS,
    "asin": (asin, 1),
    "acos": (acos, 1),
    "pow": (power, 2),
    "hypot": (hypot, 2),
}
_UNLIKELY = '!{!"branch_weights", i32 1, i32 1048575}'


def supported(host: HostInfo) -> bool:
    """Whether the kernels run well here: they are built on fused multiply-add."""
    return host.fma


def lane_counts(host: HostInfo, dtype: str) -> tuple[int, ...]:
    """The vector forms there are: full and half width."""
    full = host.vector_bits // BITS[dtype]
    return tuple(lanes for lanes in (full, full // 2) if lanes > 1)


def library_ir(name: str, dtype: str, host: HostInfo) -> str:
    """The module with all forms of one function."""
    module = ModuleText(host)
    kernel, arity = KERNELS[name]
    part = "float" if dtype == "float32" and name in SINGLE else "double"
    width = f'nounwind "prefer-vector-width"="{host.vector_bits}"'
    for lanes in (1, *lane_counts(host, dtype)):
        function = symbol(name, dtype, lanes)
        define(module, function, kernel, arity, dtype, part=part, lanes=lanes, library=name, attributes=width)
    return module.text()


def define(
    module: ModuleText,
    function: str,
    kernel: Kernel,
    arity: int,
    dtype: str,
    *,
    part: str,
    lanes: int = 1,
    library: str = "",
    linkage: str = "",
    attributes: str,
) -> None:
    """Add a form of a kernel to a module.

    Parameters
    ----------
    dtype : of the function's arguments and result
    part : the type it computes in, double or float
    library : the C function that puts odd lanes right, if the kernel cannot
    """
    f = FunctionText(module)
    short = dtype == "float32"
    k = Lanes(f, lanes, part, short, "+avx512f" in module.host.features.split(","))
    outside = k.of("float" if short else "double")
    arguments = ["%x", "%y"][:arity]
    parameters = ", ".join(f"{outside} {argument}" for argument in arguments)
    if outside != k.kind:
        arguments = [f.value(f"fpext {outside} {argument} to {k.kind}") for argument in arguments]
    value = _repaired(k, library, arguments, kernel(k, *arguments))
    if outside != k.kind:
        value = f.value(f"fptrunc {k.kind} {value} to {outside}")
    f.effect(f"ret {outside} {value}")
    group = module.attributes(attributes)
    module.functions.append(f.text(f"define {linkage}{outside} @{function}({parameters}) {group}"))


def _repaired(k: Lanes, name: str, arguments: list[str], result: Result) -> str:
    """The result with its odd lanes put right."""
    if result.odd is None:
        return result.value
    f = k.f
    some = result.odd
    if k.count > 1:
        mask = k.of("i1")
        function = f.module.declare("i1", f"llvm.vector.reduce.or.v{k.count}i1", mask, "")
        some = f.value(f"call i1 {function}({mask} {result.odd})")
    rare, done = f.label("rare"), f.label("done")
    before = f.block
    f.branch_if(some, rare, done, f", !prof {f.module.shared_node(_UNLIKELY)}")
    f.begin(rare)
    if result.repair is not None:
        repaired = result.repair()
    elif k.count == 1:
        repaired = _library_call(k, name, arguments)
    else:
        repaired = _lane_by_lane(k, name, arguments, result)
    after = f.block
    f.branch(done)
    f.begin(done)
    return f.value(f"phi {k.kind} [ {result.value}, %{before} ], [ {repaired}, %{after} ]")


def _library_call(k: Lanes, name: str, scalars: list[str]) -> str:
    function = k.f.module.declare("double", name, ", ".join(["double"] * len(scalars)), PURE)
    return k.f.value(f"call double {function}({', '.join(f'double {scalar}' for scalar in scalars)})")


def _lane_by_lane(k: Lanes, name: str, arguments: list[str], result: Result) -> str:
    """Ask the C library for the odd lanes."""
    f = k.f
    bytes_, mask = k.of("i8"), k.of("i1")
    places = [f.alloca(k.kind) for _ in arguments]
    results, flags = f.alloca(k.kind), f.alloca(f"[{k.count} x i8]")
    for place, argument in zip(places, arguments, strict=True):
        f.effect(f"store {k.kind} {argument}, ptr {place}")
    f.effect(f"store {k.kind} {result.value}, ptr {results}")
    f.effect(f"store {bytes_} {f.value(f'zext {mask} {result.odd} to {bytes_}')}, ptr {flags}")
    head, fix, following, end = (f.label(stem) for stem in ("lane", "fix", "next", "end"))
    start = f.block
    f.branch(head)
    f.begin(head)
    lane = f.value(f"phi i64 [ 0, %{start} ], [ %lane.next, %{following} ]")
    flag = f.value(f"load i8, ptr {f.value(f'getelementptr i8, ptr {flags}, i64 {lane}')}")
    f.branch_if(f.value(f"icmp ne i8 {flag}, 0"), fix, following)
    f.begin(fix)
    scalars = [
        f.value(f"load double, ptr {f.value(f'getelementptr double, ptr {place}, i64 {lane}')}") for place in places
    ]
    answer = _library_call(k, name, scalars)
    f.effect(f"store double {answer}, ptr {f.value(f'getelementptr double, ptr {results}, i64 {lane}')}")
    f.branch(following)
    f.begin(following)
    f.effect(f"%lane.next = add i64 {lane}, 1")
    f.branch_if(f.value(f"icmp ult i64 %lane.next, {k.count}"), head, end)
    f.begin(end)
    return f.value(f"load {k.kind}, ptr {results}")
