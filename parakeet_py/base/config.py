"""Settings: one frozen record, read from PARAKEET_* variables, changed with `options(...)`.

The environment is read once, when the first setting is asked for (`reload()` reads it again).  `options(...)` is a
context manager that changes settings for the code inside it, in the current thread (or task) only: the changed
copy lives in a context variable.  Everything that asks for settings asks `current()`.

Boolean variables take 1/0, true/false, yes/no, on/off.  A value that cannot be understood raises `ValueError`
naming the variable: a misspelt setting that is silently ignored costs more than an error. So does a variable under
another name, which gives a warning only, as it may be meant for something else.

The number of threads is, unless it is given, the number of CPUs this process may use: the affinity mask, cut to the
CPU quota of its control group (containers), at least one.

Nothing heavy is imported here, because every import of the package passes through this file.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from parakeet_py.base import machine
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import user_level

MAX_THREADS = 1024


@record
class Config:
    """All settings.  `None` means "decide yourself".

    Attributes
    ----------
    threads : threads a parallel region, and LLVM, may use (PARAKEET_NUM_THREADS); `thread_count` resolves the default
    check : 0, 1: run every IR's checker after every pass, 2: check the machine code's accesses to memory, too
        (PARAKEET_CHECK; False and True are 0 and 1)
    strict : refuse what cannot be compiled instead of handing it back to Python (PARAKEET_STRICT)
    cache : keep compiled code on disk (PARAKEET_CACHE)
    cache_dir : where to keep it (PARAKEET_CACHE_DIR)
    cache_size : bytes it may take, or text such as "500MB"; the code not used for longest goes (PARAKEET_CACHE_SIZE)
    devices : devices to run on, such as "cpu,cuda:0,emulated*2" (PARAKEET_DEVICES)
    engine : "dask": calls run on Dask's current scheduler (PARAKEET_ENGINE); where arguments are Dask arrays, they do
    chunks : bytes of the chunks that NumPy arrays are cut into there, or text such as "128MB" (PARAKEET_CHUNKS)
    gather_limit : bytes of a Dask array that one task may need all of, or text (PARAKEET_GATHER_LIMIT)
    split : the share of every index space that devices other than the CPU get, 0 to 1 (PARAKEET_SPLIT)
    deterministic : bit-identical results for any number of threads (PARAKEET_DETERMINISTIC)
    contract : a*b+c may be rounded once (PARAKEET_CONTRACT)
    fastmath : floating point may be reassociated and assumed finite (PARAKEET_FASTMATH)
    exact : elementary functions, powers, products and all else have the bits of NumPy and Python (PARAKEET_EXACT)
    libdevice : elementary functions on GPUs are NVIDIA's, where its library is installed (PARAKEET_LIBDEVICE)
    debug : 0 to 4, how much is logged (PARAKEET_DEBUG)
    print_passes : passes after which the IR is logged (PARAKEET_PRINT, comma separated)
    stop_pass : pass after which compilation stops (PARAKEET_STOP)
    timeline : record what calls on devices do when, for `explain(...).timeline` (PARAKEET_TIMELINE)
    when : compile "now", at the first call, or when it "pays" (PARAKEET_WHEN)
    background : calls go on in Python while their function is compiled in another thread (PARAKEET_BACKGROUND)
    tiers : make the code of a first call quickly, and optimise it when calls have taken as long (PARAKEET_TIERS)
    enabled : accelerate; else decorated functions run as plain Python (switched off by PARAKEET_DISABLE)
    perf : "map" or "jitdump": write names of machine code where `perf` finds them; "gdb": announce names and lines to
        debuggers; "kernels": count the runs and the time of every kernel, for `roofline` (PARAKEET_PERF)
    """

    threads: int | None = None
    check: int = 0
    strict: bool = False
    cache: bool = True
    cache_dir: str | None = None
    cache_size: int = 1 << 30
    devices: str | None = None
    engine: str = ""
    chunks: int = 128_000_000
    gather_limit: int = 2_000_000_000
    split: float | None = None
    deterministic: bool = True
    contract: bool = False
    fastmath: bool = False
    exact: bool = False
    libdevice: bool = False
    debug: int = 0
    print_passes: tuple[str, ...] = ()
    stop_pass: str | None = None
    timeline: bool = False
    when: str = "pays"
    background: bool = True
    tiers: bool = True
    enabled: bool = True
    perf: str = ""

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads must be between 1 and {MAX_THREADS}, not {self.threads}")
        if self.cache_size < 0:
            raise ValueError(f"cache_size is a number of bytes, not {self.cache_size}")
        if self.engine not in ("", "dask"):
            raise ValueError(f"engine is 'dask' or '', not {self.engine!r}")
        if self.chunks < 1:
            raise ValueError(f"chunks is a number of bytes of at least 1, not {self.chunks}")
        if self.gather_limit < 0:
            raise ValueError(f"gather_limit is a number of bytes, not {self.gather_limit}")
        if self.split is not None and not 0 <= self.split <= 1:
            raise ValueError(f"split is a share, between 0 and 1, not {self.split}")
        if not 0 <= self.check <= 2:
            raise ValueError(f"check must be between 0 and 2, not {self.check}")
        if self.when not in ("now", "pays"):
            raise ValueError(f"when is 'now' or 'pays', not {self.when!r}")
        if self.perf not in ("", "map", "jitdump", "gdb", "kernels"):
            raise ValueError(f"perf is 'map', 'jitdump', 'gdb' or 'kernels', not {self.perf!r}")
        if not 0 <= self.debug <= 4:
            raise ValueError(f"debug must be between 0 and 4, not {self.debug}")

    @property
    def thread_count(self) -> int:
        """The number of threads a parallel region may use, at least 1."""
        return available_cpus() if self.threads is None else self.threads

    @property
    def uses_disk(self) -> bool:
        """Whether code is kept on disk: not when the user wants to see how it is made, or half of it."""
        return self.cache and self.uses_archive

    @property
    def uses_archive(self) -> bool:
        """Whether code of the package's own that is part of the installation is used: likewise."""
        shown = self.debug > 1 or self.print_passes or self.stop_pass is not None
        return not shown and self.perf != "kernels"

    @property
    def checked(self) -> bool:
        """Whether machine code checks what it does to memory."""
        return self.check > 1

    @property
    def pays(self) -> bool:
        """Whether calls run in Python until compiling pays."""
        return (
            self.when == "pays" and not self.strict and not self.checked and self.debug < 2 and self.stop_pass is None
        )

    @property
    def on_cpu(self) -> bool:
        """Whether calls run on the CPU alone."""
        return self.devices in (None, "", "cpu") and not self.engine

    @property
    def asked_by_gates(self) -> bool:
        """Whether gates have to ask for these settings, which do not let them take calls."""
        return not (self.on_cpu and self.enabled) or self.checked


def _parse_bool(text: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off":
            return False
    raise ValueError("expected one of 1, 0, true, false, yes, no, on, off")


def _parse_level(text: str) -> int:
    return int(text) if text.strip().isdecimal() else int(_parse_bool(text))


def _parse_path(text: str) -> str:
    """A path; "~" stays where there is no home directory."""
    first, *rest = text.replace(os.altsep or os.sep, os.sep).split(os.sep, 1)
    if first != "~":
        return os.path.expanduser(text) if first.startswith("~") else text or os.curdir
    found = home()
    return text if found is None else os.path.join(found, *rest)


def home() -> str | None:
    """The user's home directory; None if there is none. A relative path depends on where a process runs: it is none."""
    found = os.path.expanduser("~")
    return found if os.path.isabs(found) and os.environ.get("HOME") != "" else None


def _parse_size(text: str) -> int:
    """Bytes: "1000000", "500 kB", "2GB" (powers of 1000), "1.5 GiB" (powers of 1024)."""
    import re

    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", text, re.IGNORECASE)
    if match is None or (match[3] and not match[2]):
        raise ValueError("expected a size such as 500MB, 2GB or 1.5GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " "))


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


_FLAGS = (
    "strict",
    "cache",
    "deterministic",
    "contract",
    "fastmath",
    "exact",
    "libdevice",
    "timeline",
    "background",
    "tiers",
    "enabled",
)


def _parse_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _parse_share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number from 0 to 1") from None


# field -> (variable, how its text is read)
_VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "threads": ("PARAKEET_NUM_THREADS", _parse_whole),
    "check": ("PARAKEET_CHECK", _parse_level),
    "strict": ("PARAKEET_STRICT", _parse_bool),
    "cache": ("PARAKEET_CACHE", _parse_bool),
    "cache_dir": ("PARAKEET_CACHE_DIR", _parse_path),
    "cache_size": ("PARAKEET_CACHE_SIZE", _parse_size),
    "devices": ("PARAKEET_DEVICES", str.strip),
    "engine": ("PARAKEET_ENGINE", str.strip),
    "chunks": ("PARAKEET_CHUNKS", _parse_size),
    "gather_limit": ("PARAKEET_GATHER_LIMIT", _parse_size),
    "split": ("PARAKEET_SPLIT", _parse_share),
    "deterministic": ("PARAKEET_DETERMINISTIC", _parse_bool),
    "contract": ("PARAKEET_CONTRACT", _parse_bool),
    "fastmath": ("PARAKEET_FASTMATH", _parse_bool),
    "exact": ("PARAKEET_EXACT", _parse_bool),
    "libdevice": ("PARAKEET_LIBDEVICE", _parse_bool),
    "debug": ("PARAKEET_DEBUG", _parse_whole),
    "print_passes": ("PARAKEET_PRINT", _parse_names),
    "stop_pass": ("PARAKEET_STOP", str.strip),
    "timeline": ("PARAKEET_TIMELINE", _parse_bool),
    "when": ("PARAKEET_WHEN", str.strip),
    "background": ("PARAKEET_BACKGROUND", _parse_bool),
    "tiers": ("PARAKEET_TIERS", _parse_bool),
    "enabled": ("PARAKEET_DISABLE", lambda text: not _parse_bool(text)),
    "perf": ("PARAKEET_PERF", str.strip),
}

# How many `options` blocks are open, in all threads together.  Native code reads it at `open_blocks_address()`: at 0
# the settings are those of the environment, and there is no need to ask Python for `current()`.
open_blocks = array("q", [0])
_default_threads = array("i", [1])  # `thread_count` of the environment's settings, once they have been read
_reloads = array("q", [0])  # how often the environment has been read
_open_blocks_lock = allocate_lock()


def open_blocks_address() -> int:
    """Address of an i64: the number of `options` blocks that are open anywhere in this process."""
    return open_blocks.buffer_info()[0]


def default_threads_address() -> int:
    """Address of an i32: the number of threads where no `options` block is open."""
    environment()
    return _default_threads.buffer_info()[0]


def reloads_address() -> int:
    """Address of an i64: how often the environment has been read."""
    return _reloads.buffer_info()[0]


def reloads() -> int:
    """How often the environment has been read."""
    return _reloads[0]


def variable() -> ContextVar[Config | None]:
    """The variable that holds the settings of the innermost `options` block of a context; None outside of blocks."""
    return _changed


def environment() -> Config:
    """The settings of the environment, whatever blocks are open."""
    return _from_environment or reload()


def _count_blocks(change: int) -> None:
    with _open_blocks_lock:
        open_blocks[0] += change


_from_environment: Config | None = None
_OF_TESTS = (
    "PARAKEET_TEST_GPU",
    "PARAKEET_TEST_RESIDENTS",
    "PARAKEET_TEST_EXACT",
    "PARAKEET_TEST_TEAMS",
    "PARAKEET_TEST_DASK",
    "PARAKEET_FUZZ",
    "PARAKEET_GPU_RESULTS",
    "PARAKEET_PORTABLE",
)
_changed: ContextVar[Config | None] = ContextVar("parakeet_py_options", default=None)


def reload() -> Config:
    """Read the PARAKEET_* variables again; empty variables count as not set."""
    global _from_environment
    values: dict[str, Any] = {}
    for name, (variable, parse) in _VARIABLES.items():
        text = os.environ.get(variable, "")
        if not text.strip():
            continue
        try:
            values[name] = parse(text)
            Config(**{name: values[name]})
        except ValueError as error:
            raise ValueError(f"{variable}={text!r}: {error}") from None
    if _from_environment is not None and _from_environment.asked_by_gates:
        _count_blocks(-1)
    _from_environment = _consistent(Config(**values))
    if _from_environment.asked_by_gates:
        _count_blocks(1)  # gates have to ask
    _default_threads[0] = _from_environment.thread_count
    _reloads[0] += 1
    _warn_of_unknown(os.environ)
    return _from_environment


def _warn_of_unknown(names: Iterable[str]) -> None:
    """One warning for each PARAKEET_* variable that nothing reads."""
    known = [variable for variable, _ in _VARIABLES.values()]
    for name in names:
        if name.startswith("PARAKEET_") and name not in known and name not in _OF_TESTS:
            import warnings

            from parakeet_py.base.errors import advised

            prefix, names = "PARAKEET_", [one.removeprefix("PARAKEET_") for one in known]
            meant = (
                nearest(name.removeprefix(prefix), names, str.upper).replace("'", f"'{prefix}", 1)
                or f"there are {', '.join(known)}"
            )
            text = f"the environment variable {name} is no setting of parakeet_py; {meant.strip()}"
            warnings.warn(advised(text), stacklevel=user_level())


def current() -> Config:
    """The settings in force here and now."""
    return _changed.get() or environment()


@contextmanager
def options(**changes: Any) -> Iterator[Config]:
    """Change settings for the code inside the `with` block, in this thread or task only.

    Parameters
    ----------
    **changes
        Settings, such as ``threads=1`` or ``check=2``: those that `docs/settings.md` lists.

    Raises
    ------
    TypeError
        A name that is no setting, or a value of the wrong type.
    ValueError
        A value out of range.
    """
    token = _changed.set(_consistent(replace(current(), **validated(changes))))
    _count_blocks(1)
    try:
        yield current()
    finally:
        _count_blocks(-1)
        _changed.reset(token)


@hidden
def on_cpu(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of a call that runs on the CPU, inside settings that name devices, or of a function whose own do."""
    token, left = _changed.set(_without_devices(current())), _left_to_cpu.set(True)
    try:
        return function(*args)
    finally:
        _left_to_cpu.reset(left)
        _changed.reset(token)


def with_own(own: Mapping[str, Any]) -> Config:
    """The settings in force, changed by those of a function; a call that is left to the CPU stays there."""
    with options(**own) as found:
        return _without_devices(found) if _left_to_cpu.get() else found


_left_to_cpu: ContextVar[bool] = ContextVar("parakeet_py left to the CPU", default=False)
_for_cpu: tuple[Config | None, Config | None] = None, None  # settings, and the same for the CPU


def _without_devices(config: Config) -> Config:
    """The settings without devices; most calls ask for the same ones."""
    global _for_cpu
    given, found = _for_cpu
    if given is not config or found is None:
        found = replace(config, devices="cpu", split=None, engine="")
        _for_cpu = config, found
    return found


def _consistent(config: Config) -> Config:
    """The settings, if they do not contradict each other."""
    if config.split is not None:
        from parakeet_py.base.device_names import check_split

        check_split(config.devices or "cpu", config.split)
    return config


def validated(changes: dict[str, Any]) -> dict[str, Any]:
    """`changes` with text and path-like values brought to the types of the fields."""
    result: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in _VARIABLES:
            known = [field.name for field in fields(Config)]
            raise TypeError(f"{name!r} is not a setting; {nearest(name, known)}the settings are {', '.join(known)}")
        result[name] = _typed(name, value)
    return result


def nearest(name: str, known: list[str], case: Callable[[str], str] = str.lower) -> str:
    """A question about the known name that is most like `name`; empty if none is."""
    from difflib import get_close_matches

    found = get_close_matches(case(name), known, n=1)
    return f"did you mean {found[0]!r}? " if found else ""


def _typed(name: str, value: Any) -> Any:
    match name:
        case "check" if isinstance(value, int):
            return int(value)
        case "threads" | "debug" if (value is None and name == "threads") or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            return value
        case "split" if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return None if value is None else float(value)
        case "cache_dir" if value is None or isinstance(value, (str, os.PathLike)):
            return None if value is None else _parse_path(os.fspath(value))
        case "cache_size" | "chunks" | "gather_limit" if isinstance(value, str):
            return _parse_size(value)
        case "cache_size" | "chunks" | "gather_limit" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "print_passes" if isinstance(value, (str, tuple, list)):
            names = _parse_names(value) if isinstance(value, str) else tuple(value)
            if all(isinstance(item, str) for item in names):
                return names
        case "devices" if isinstance(value, str) and value != "cpu":
            from parakeet_py.base.device_names import parse

            parse(value)
            return value
        case "when" | "perf" | "engine" if isinstance(value, str):
            return value
        case "devices" | "stop_pass" if value is None or isinstance(value, str):
            return value
        case _ if name in _FLAGS and isinstance(value, bool):
            return value
    expected = _EXPECTED.get(name, "True or False" if name in _FLAGS else "a text")
    raise TypeError(f"the setting {name} cannot be {value!r}; it is {expected}")


_EXPECTED = {
    "threads": "a whole number, or None",
    "debug": "a whole number",
    "check": "0, 1 or 2",
    "split": "a number from 0 to 1, or None",
    "cache_dir": "a path, or None",
    **dict.fromkeys(("cache_size", "chunks", "gather_limit"), "a number of bytes, or a text such as '2GB'"),
    "print_passes": "a text, or a list of texts",
}  # what settings are, in messages


@lru_cache(maxsize=1)
def available_cpus() -> int:
    """CPUs this process may use: affinity mask, cut to the control group's CPU quota; at least 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        count = os.cpu_count() or 1
    quota = _cgroup_quota() if machine.LINUX and not machine.PORTABLE else None
    if quota is not None:
        count = min(count, max(1, int(quota + 0.5)))
    return max(1, min(count, MAX_THREADS))


def product_parts() -> int:
    """Into so many parts large products are cut: the CPUs of this process, or the threads that its environment allows.

    The threads of a single call do not matter: they are to change no bit.
    """
    return min(available_cpus(), environment().thread_count)


def _cgroup_quota(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> float | None:
    """The tightest CPU quota, in CPUs, of this process's control group and those above it (v2, then v1)."""
    quotas: list[float] = []
    for line in _read(membership).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            quotas += _quotas_upwards(root, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            quotas += _quotas_upwards(os.path.join(root, "cpu"), path, _quota_v1)
    return min(quotas, default=None)


def _quotas_upwards(root: str, path: str, quota_of: Callable[[str], float | None]) -> Iterator[float]:
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        quota = quota_of(os.path.join(root, *parts[:depth]))
        if quota is not None:
            yield quota


def _quota_v2(folder: str) -> float | None:
    words = _read(os.path.join(folder, "cpu.max")).split()
    return _ratio(*words) if len(words) == 2 else None


def _quota_v1(folder: str) -> float | None:
    return _ratio(_read(os.path.join(folder, "cpu.cfs_quota_us")), _read(os.path.join(folder, "cpu.cfs_period_us")))


def _ratio(quota: str, period: str) -> float | None:
    """quota/period, or None where there is no limit ("max", -1, or nothing to read)."""
    try:
        microseconds, per = int(quota), int(period)
    except ValueError:
        return None
    return microseconds / per if microseconds > 0 and per > 0 else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
