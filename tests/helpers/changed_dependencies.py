"""Programs that depend on something outside their function; `{V}` is 2, and then 3, as after an edit of the source.

Each is a module with a function `f` of one array, and for some there is a second module, which the first imports as
`{M}`. The child process (see `test_changed_dependencies`) runs them all against a disk cache that is kept between
versions.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

HEAD = "import collections, enum, functools, math, cmath\nimport numpy as np\nfrom parakeet_py import accelerate\n"
CALLER = "@accelerate\ndef f(x):\n    return "
CLASS = (
    "class C:\n    N = {V}\n    @staticmethod\n    def h(x): return x * {V}\n"
    "    @classmethod\n    def g(cls, x): return x * {V}\n"
)

INSTANCES = (
    "import dataclasses\n"
    "class C:\n    N = {V}\n    def __init__(self, v): self.v = v * {V}\n    def get(self): return self.v + self.N\n"
    "    @property\n    def more(self): return self.v + {V}\n"
    "class D(C):\n    def twice(self): return self.more + self.get()\n"
    "@dataclasses.dataclass\nclass E:\n    k: int = {V}\n"
    "    made: float = dataclasses.field(default_factory=lambda: {V} + 0.5)\n"
)

PROGRAMS: dict[str, tuple[str, str]] = {
    "global_scalar": ("G = {V}\n" + CALLER + "x * G", ""),
    "global_array": ("G = np.ones(3000); G[1500] = {V}\n" + CALLER + "x * G.sum()", ""),
    "global_string": ("MODE = 'ab'[{V} - 2]\n" + CALLER + "x * 2 if MODE == 'a' else x * 3", ""),
    "global_function": ("h = np.negative if {V} == 2 else np.abs\n" + CALLER + "h(x)", ""),
    "global_dtype": ("D = np.float32 if {V} == 2 else np.float64\n" + CALLER + "x.astype(D)", ""),
    "global_module": ("m = math if {V} == 2 else cmath\n" + CALLER + "x * m.sqrt(4.0)", ""),
    "builtin_replaced": ("if {V} == 3:\n    def abs(x): return x * 5\n" + CALLER + "abs(x)", ""),
    "own_default": ("@accelerate\ndef f(x, k={V}): return x * k", ""),
    "own_closure": ("def make(k):\n    @accelerate\n    def f(x): return x * k\n    return f\nf = make({V})", ""),
    "own_closure_function": (
        "def a(x): return x * 2\ndef b(x): return x * 3\n"
        "def make(g):\n    @accelerate\n    def f(x): return g(x)\n    return f\nf = make(a if {V} == 2 else b)",
        "",
    ),
    "helper": ("def h(x): return x * {V}\n" + CALLER + "h(x)", ""),
    "helper_lambda": ("h = lambda x: x * {V}\n" + CALLER + "h(x)", ""),
    "helper_accelerated": ("@accelerate\ndef h(x): return x * {V}\n" + CALLER + "h(x)", ""),
    "helper_default": ("def h(x, k={V}): return x * k\n" + CALLER + "h(x)", ""),
    "helper_keyword_default": ("def h(x, *, k={V}): return x * k\n" + CALLER + "h(x)", ""),
    "helper_array_default": (
        "D = np.ones(3000); D[1500] = {V}\ndef h(x, k=D): return x * k.sum()\n" + CALLER + "h(x)",
        "",
    ),
    "helper_function_default": ("def g(x): return x * {V}\ndef h(x, k=g): return k(x)\n" + CALLER + "h(x)", ""),
    "helper_closure": (
        "def a(x): return x * 2\ndef b(x): return x * 3\n"
        "def make(g):\n    def h(x): return g(x) + 1\n    return h\nh = make(a if {V} == 2 else b)\n" + CALLER + "h(x)",
        "",
    ),
    "helper_closure_data": (
        "def make(k):\n    def h(x): return x * k\n    return h\nh = make({V})\n" + CALLER + "h(x)",
        "",
    ),
    "partial": ("def h(k, x): return x * k\nh = functools.partial(h, {V})\n" + CALLER + "h(x)", ""),
    "class_constant": (CLASS + CALLER + "x * C.N", ""),
    "class_inherited": (CLASS + "class D(C): pass\n" + CALLER + "x * D.N + D.h(x)", ""),
    "instance_method": (INSTANCES + CALLER + "C(x).get() + D(1.0).twice()", ""),
    "instance_of_dataclass": (INSTANCES + CALLER + "x * E().k + E().made", ""),
    "class_method": (CLASS + CALLER + "C.h(x) + C.g(x)", ""),
    "namedtuple": (
        "P = collections.namedtuple('P', 'x y' if {V} == 2 else 'y x')\np = P(2.0, 3.0)\n"
        "@accelerate\ndef f(x):\n    return P(x=x * p.x, y=x * 2.0)",
        "",
    ),
    "enumeration": ("class E(enum.IntEnum):\n    A = {V}\n" + CALLER + "x * E.A", ""),
    "instance": ("class A: pass\na = A(); a.k = {V}\n" + CALLER + "x * a.k", ""),
    "module_data": (CALLER + "x * {M}.K if {M}.MODE == 'a' else x * {M}.K + 1", "K = {V}\nMODE = 'ab'[{V} - 2]"),
    "module_none": (CALLER + "x * 2 if {M}.K is None else x * 3", "K = None if {V} == 2 else 0"),
    "module_function": (CALLER + "{M}.h(x)", "def h(x): return x * {V}"),
    "module_chain": (
        "def h(x): return {M}.g(x)\n" + CALLER + "h(x)",
        "K = {V}\ndef g(x): return k(x) * K\ndef k(x): return x * {V}",
    ),
    "module_class": (CALLER + "x * {M}.C.N + {M}.C.h(x)", CLASS),
    "module_dtype": (CALLER + "x.astype({M}.D)", "import numpy as np\nD = np.float32 if {V} == 2 else np.float64"),
    "module_instance": (
        CALLER + "x * {M}.a.k + {M}.a.m(x)",
        "class A:\n    def m(self, x): return x * self.k\na = A(); a.k = {V}",
    ),
    "imported_in_body": (
        "@accelerate\ndef f(x):\n    from {M} import h, K\n    import {M} as m\n    return h(x) * K + m.h(x) * m.K",
        "K = {V}\ndef h(x): return x * {V}",
    ),
    "wrapper": (
        "K = 100.0\n@{M}.wrap\ndef h(x): return x + 1\n" + CALLER + "h(x)",
        "import functools\nK = {V}\ndef wrap(g):\n    @functools.wraps(g)\n    def w(x): return g(x) * K\n    return w",
    ),
}


def write(folder: Path, version: int) -> None:
    """Write the modules of all programs as of a version."""
    for name, texts in PROGRAMS.items():
        main, other = (text.replace("{V}", str(version)).replace("{M}", f"{name}_other") for text in texts)
        head = HEAD + (f"import {name}_other\n" if other else "")
        (folder / f"{name}.py").write_text(head + main + "\n")
        if other:
            (folder / f"{name}_other.py").write_text(other + "\n")


def shown(function: Any, *args: Any) -> str:
    try:
        result = function(*args)
    except Exception as error:
        result = error
    return f"{type(result).__name__} {getattr(result, 'dtype', '')} {result!r}"


def main(folder: str) -> None:
    """Run each program a few times; print what differs from plain Python, what fell back, what came from the disk."""
    import numpy as np

    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    found = {}
    for name in PROGRAMS:
        f = importlib.import_module(name).f
        x = np.arange(3.0) - 1
        results = [shown(f, x) for _ in range(3)]
        expected = shown(f.__wrapped__, x)
        wrong = [result for result in results if result != expected]
        disk = [one.from_disk for one in f.specializations]
        found[name] = {"wrong": wrong, "expected": expected, "fell_back": f.fell_back, "disk": disk}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
