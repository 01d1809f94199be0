"""What this machine offers the compiler: versions, processor, threads, cache, libraries, GPUs.

Every examination answers with what it found and never raises: a broken machine is what it is for.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from parakeet_py.base import config
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record


@record
class Finding:
    """One examined thing: its name, what was found, and whether it serves the compiler."""

    topic: str
    text: str
    good: bool = True


def examine() -> Iterator[Finding]:
    """All findings, in the order they are to be read."""
    for topic, examination in (
        ("Python", _python),
        ("packages", _packages),
        ("entry", _entry),
        ("processor", _processor),
        ("threads", _threads),
        ("disk cache", _disk_cache),
        ("vector math", _vector_math),
        ("BLAS", _blas),
        ("C compiler", _c_compiler),
        ("CUDA", _cuda),
        ("settings", _settings),
    ):
        try:
            text, good = examination()
        except Exception as error:
            text, good = f"{type(error).__name__}: {error}", False
        yield Finding(topic, text, good)


def _python() -> tuple[str, bool]:
    good = (3, 11) <= sys.version_info < (3, 16)
    return f"{platform.python_version()} on {platform.platform()}" + ("" if good else " (3.11 to 3.15 wanted)"), good


def _entry() -> tuple[str, bool]:
    from parakeet_py.llvm.entry.entry_kind import why_portable
    from parakeet_py.llvm.runtime.object_layout import check_interpreter

    try:
        check_interpreter()
    except UnsupportedError as refused:
        return f"functions run in Python: {refused}", False
    why = why_portable()
    return (f"portable, by ctypes: {why}", False) if why else ("stubs in machine code", True)


def _packages() -> tuple[str, bool]:
    found, missing = [], []
    for name in ("parakeet-py", "numpy", "llvmlite", "numba", "scipy", "jax", "cuda-core"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    needed = [name for name in missing if name in ("numpy", "llvmlite")]
    return ", ".join(found) + (f"; not installed: {', '.join(missing)}" if missing else ""), not needed


def _processor() -> tuple[str, bool]:
    from parakeet_py.llvm.engine import compiler

    host = compiler.host()
    return f"{host.cpu}, {host.vector_bits}-bit vectors, {host.triple}", True


def _threads() -> tuple[str, bool]:
    settings = config.current()
    usable, total = config.available_cpus(), os.cpu_count() or 1
    limited = "" if usable == total else f" of {total} (affinity or container quota)"
    return f"{settings.thread_count} used by a parallel region; {usable} CPUs{limited}", True


def _disk_cache() -> tuple[str, bool]:
    from parakeet_py.llvm.engine import disk_cache

    if not config.current().cache:
        return "switched off (PARAKEET_CACHE=0)", False
    folder = disk_cache.directory()
    if folder is None:
        return "no folder that this user owns and only this user can write", False
    sizes = [entry.size for entry in disk_cache.kept(folder)]
    bound = f"at most {config.current().cache_size / 1e6:.0f} MB, what was not used for longest goes first"
    return f"{folder}: {len(sizes)} entries, {sum(sizes) / 1e6:.1f} MB ({bound})", True


def _vector_math() -> tuple[str, bool]:
    from parakeet_py.llvm.runtime import symbols

    names = ("_ZGVeN8v_exp", "_ZGVdN4v_exp", "_ZGVbN2v_exp", "_ZGVnN2v_exp")
    if any(symbols.resolve(name) for name in names):
        return "libmvec of the C library", True
    return "no libmvec: the built-in polynomials are used", True


def _blas() -> tuple[str, bool]:
    import numpy as np

    build = np.show_config(mode="dicts")
    blas = build.get("Build Dependencies", {}).get("blas", {}) if isinstance(build, dict) else {}
    name = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    return f"NumPy's own: {name}", "openblas" in name


def _c_compiler() -> tuple[str, bool]:
    import shutil

    path = shutil.which("gcc")
    return (path, True) if path else ("no gcc: the benchmark has no C column (nothing else needs it)", False)


def _cuda() -> tuple[str, bool]:
    """GPUs; what CUDA's packages warn of is a part of the finding."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text, good = _gpus()
    return "; ".join([text, *dict.fromkeys(str(one.message) for one in caught)]), good


def _gpus() -> tuple[str, bool]:
    from parakeet_py.hybrid.devices import cuda
    from parakeet_py.hybrid.devices.device import DeviceError

    found = cuda.probe()
    parts = []
    if found.driver is not None:
        parts.append(f"driver for CUDA {found.driver[0]}.{found.driver[1]}")
    if not found.devices:
        parts += found.names
        return "; ".join([*parts, f"{found.reason}; everything runs on the CPU"]), False
    good, lacks_cublas = False, False
    for number, name in enumerate(found.names):
        try:
            (device,) = cuda.devices(number)
            memory = f"{device.free_bytes() / 1e9:.1f} GB free"
        except DeviceError as error:
            parts.append(f"{name} cannot be used: {error}")
            continue
        good = True
        has_cublas = device.cublas.ready()
        lacks_cublas |= not has_cublas
        products = "products by cuBLAS" if has_cublas else f"products by kernels ({device.cublas.why_not})"
        for library, what, own in ((device.cufft, "transforms", "cuFFT"), (device.cusolver, "systems", "cuSOLVER")):
            products += f", {what} by " + (own if library.ready() else f"the CPU ({library.why_not})")
        size = f"{device.multiprocessors} multiprocessors"
        parts.append(f"{device.name} is a {name}: {device.architecture}, {size}, {memory}, {products}")
    assert found.driver is not None
    advice = _advice(found.driver, lacks_cublas)
    return "; ".join([*parts, *advice]), good


def _advice(driver: tuple[int, int], lacks_cublas: bool) -> list[str]:
    """What to install for a driver, if something is missing or newer than it."""
    from parakeet_py.base.cuda_probe import extra_for
    from parakeet_py.ptx import libdevice

    reasons = []
    try:
        bindings = version("cuda-bindings")
    except PackageNotFoundError:
        bindings = ""
    if bindings and int(bindings.partition(".")[0]) > driver[0]:
        reasons.append(f"cuda-bindings {bindings} is newer than the driver")
    if lacks_cublas:
        reasons.append("cuBLAS is not installed")
    if libdevice.find() is None:
        reasons.append("libdevice is not installed")
    return [f"{', '.join(reasons)}: pip install 'parakeet-py[{extra_for(driver)}]'"] if reasons else []


def _settings() -> tuple[str, bool]:
    given = sorted(name for name in os.environ if name.startswith("PARAKEET_"))
    return ", ".join(f"{name}={os.environ[name]}" for name in given) or "no PARAKEET_* variable is set", True
