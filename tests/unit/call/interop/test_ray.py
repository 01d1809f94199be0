"""Accelerated functions travel through Ray, by value where they have to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

SCRIPT = """
import logging
import numpy as np
import ray
from parakeet_py import accelerate

@accelerate(when="now")
def top(x):
    return np.sum(x * 2)

class Model:
    def __init__(self, k):
        self.k = k

    @accelerate(when="now")
    def method(self, x):
        return self.k * x.sum()

    @staticmethod
    @accelerate
    def static(x):
        return x + 1

    @accelerate
    def __call__(self, x):
        return self.method(x) + 1

def nested(k):
    @accelerate(when="now")
    def inner(x):
        return x * k
    return inner

@accelerate(when="now")
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)

@accelerate(when="now")
def refuses(x):
    if x[0] == 0:
        raise ValueError("no zeros")
    return x

@accelerate(when="now")
def stores(x):
    x[0] = 1
    return x

class Actor:
    def __init__(self, k):
        self.model = Model(k)

    def go(self, x):
        return float(self.model.method(x) + top(x)), len(Model.method.specializations)

    def call(self, function, x):
        return function(x)

def apply(function, *args):
    return function(*args), type(function).__name__, len(getattr(function, "specializations", ()))

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
x = np.arange(10.0)
task = ray.remote(apply)

def sent(function, *args):
    return ray.get(task.remote(function, *args))

assert sent(top, x) == (90.0, "AcceleratedFunction", 1)
assert sent(factorial, 10) == (3628800, "AcceleratedFunction", 1)
assert sent(Model(3.0).method, x) == (135.0, "method", 1)
assert sent(Model.method, Model(3.0), x)[0] == 135.0
assert sent(Model(3.0), x)[0] == 136.0
for function, first in ((nested(4), 4.0), (accelerate(lambda y: y + 3), 4.0), (Model.static, 2.0)):
    result, kind, _ = sent(function, x)
    assert result[1] == first and kind == "AcceleratedFunction"
actor = ray.remote(Actor).remote(2.0)
assert ray.get(actor.go.remote(x)) == (180.0, 1) and ray.get(actor.call.remote(nested(9), x))[1] == 9.0
kept = ray.get(ray.put((top, nested(2), Model(3).method)))
assert [type(one).__name__ for one in kept] == ["AcceleratedFunction", "AcceleratedFunction", "method"]
assert kept[2](x) == 135.0
for function, wanted in ((refuses, "no zeros"), (stores, "read-only"), (stores.__wrapped__, "read-only")):
    try:
        sent(function, ray.put(x))  # arrays of the object store are read-only
    except ValueError as error:
        assert wanted in str(error), error
    else:
        raise AssertionError(function)
print("all well")
"""


def test_tasks_actors_and_the_object_store(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "PARAKEET_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.strip().endswith("all well"), done.stdout + done.stderr
