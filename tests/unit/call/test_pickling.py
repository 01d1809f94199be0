"""Accelerated functions in pickles and copies, here and in other processes."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from parakeet_py import UnsupportedError, accelerate

SCALE = 3.0


def helper(x):
    return x * SCALE


@accelerate
def by_name(x):
    return helper(x) + 1


def taken(x):
    return x - 1


other_name = accelerate(taken)  # its name leads to the plain function


@accelerate
def replaced(x):
    return x + 100


first_replaced = replaced
replaced = accelerate(lambda x: x)


class Model:
    @accelerate
    def method(self, x):
        return x * 2

    @staticmethod
    @accelerate
    def static(x):
        return x + 1

    @classmethod
    @accelerate
    def of_class(cls, x):
        return x + len(cls.__name__)


def nested(k: float) -> Any:
    @accelerate(threads=1, strict=True)
    def inner(x):
        return x * k + SCALE

    return inner


def factorial_nested() -> Any:
    @accelerate
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    return factorial


DUMPS = [pickle.dumps, cloudpickle.dumps, *(functools.partial(pickle.dumps, protocol=n) for n in range(5))]
X = np.arange(4.0)


@pytest.mark.parametrize("dumps", DUMPS)
@pytest.mark.parametrize("f", [by_name, Model.method, Model.static])
def test_by_name_where_the_name_leads_back(f: Any, dumps: Any) -> None:
    assert pickle.loads(dumps(f)) is f
    assert len(dumps(f)) < 120


@pytest.mark.parametrize("dumps", DUMPS)
def test_bound_methods(dumps: Any) -> None:
    assert pickle.loads(dumps(Model().method))(2) == 4
    assert pickle.loads(dumps(Model.of_class))(2) == 7


VALUES = [
    lambda: (other_name, (X,)),
    lambda: (first_replaced, (X,)),
    lambda: (replaced, (X,)),
    lambda: (nested(2.0), (X,)),
    lambda: (factorial_nested(), (5,)),
    lambda: (accelerate(lambda x, /, y=2.0, *, z=1: x + y * z), (X,)),
    lambda: (accelerate(np.add), (X, X)),
    lambda: (accelerate(functools.partial(operator.mul, 2)), (X,)),
    lambda: (accelerate(abs), (-3,)),
]


@pytest.mark.parametrize("dumps", DUMPS)
@pytest.mark.parametrize("case", VALUES)
def test_by_value_elsewhere(case: Any, dumps: Any) -> None:
    f, args = case()
    found, again = pickle.loads(dumps([f, f]))
    assert found is again and found is not f and type(found) is type(f)
    assert np.array_equal(found(*args), f(*args)) and np.array_equal(found(*args), f(*args))
    assert not found.fell_back and len(found.specializations) == 1
    assert (found.__name__, found.__qualname__, found.__module__) == (f.__name__, f.__qualname__, f.__module__)
    assert pickle.loads(dumps(found))(*args) is not None


def test_settings_and_attributes_survive() -> None:
    f = nested(2.0)
    f.note = [1, 2]
    found = pickle.loads(pickle.dumps(f))
    assert found._dispatcher.options == {"threads": 1, "strict": True} and found.note == [1, 2]
    refused = accelerate(strict=True)(lambda x: __import__("os").getpid() + x)
    for f in (refused, pickle.loads(cloudpickle.dumps(refused))):
        with pytest.raises(UnsupportedError):
            f(1)


def test_what_is_recursive_comes_back_so() -> None:
    found = pickle.loads(cloudpickle.dumps(factorial_nested()))
    assert found.__wrapped__.__closure__[0].cell_contents is found
    f = nested(1.0)
    f.me = {"self": f}
    found = pickle.loads(pickle.dumps(f))
    assert found.me["self"] is found


def doubled(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return 2 * function(*args)

    return wrapper


def test_wrappers_of_accelerated_functions() -> None:
    f = doubled(nested(1.0))
    assert "_dispatcher" not in vars(f) and f.__wrapped__._dispatcher.options["strict"]
    found = cloudpickle.loads(cloudpickle.dumps(f))
    assert np.array_equal(found(X), f(X))
    f = accelerate(doubled(nested(1.0)))
    for dumps in (pickle.dumps, cloudpickle.dumps):
        assert np.array_equal(pickle.loads(dumps(f))(X), f(X))


def test_modules_registered_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("a_module_of_its_own")
    exec("def f(x):\n    return x + K\nK = 5\n", module.__dict__)
    module.f = accelerate(module.f)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert pickle.loads(cloudpickle.dumps(module.f)) is module.f
    cloudpickle.register_pickle_by_value(module)
    try:
        found = pickle.loads(cloudpickle.dumps(module.f))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert found is not module.f and found(X).tolist() == (X + 5).tolist()


def test_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    assert pickle.loads(pickle.dumps(other_name))(1) == 0
    assert pickle.loads(pickle.dumps(accelerate(np.add)))(1, 2) == 3
    with pytest.raises(pickle.PicklingError) as caught:
        pickle.dumps(nested(1.0))
    text = str(caught.value)
    assert f"{__name__}.nested.<locals>.inner is not that object" in text
    assert "if the package cloudpickle is installed" in text


def test_copies_are_the_object_itself() -> None:
    for f in (by_name, nested(1.0), accelerate(np.add)):
        assert copy.copy(f) is f and copy.deepcopy([f])[0] is f


SCRIPT = """
import multiprocessing, os, pickle, sys
import cloudpickle
import numpy as np
from joblib import Parallel, delayed
from parakeet_py import accelerate

SCALE = 3.0


def helper(x):
    return x * SCALE


@accelerate
def error(y, p):
    total = 0.0
    for i in range(len(y)):
        total += helper(abs(y[i] - p[i]))
    return total / len(y)


@accelerate(strict=True)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Model:
    @accelerate
    def method(self, x):
        return x * 2

    @staticmethod
    @accelerate
    def static(x):
        return x + 1


def nested(k):
    return accelerate(lambda x: x * k + SCALE)


def run(f, args):
    assert np.array_equal(f(*args), f(*args))
    return os.getpid(), f(*args), f.fell_back, len(f.specializations)


if __name__ == "__main__":
    a = np.arange(4.0)
    calls = [(error, (a, a + 1)), (fib, (10,)), (nested(2.0), (a,)), (accelerate(np.add), (a, a)), (Model.static, (a,))]
    expected = [f(*args) for f, args in calls]

    def check(found):
        for (process, value, fell_back, count), wanted in zip(found, expected, strict=True):
            assert process != os.getpid() and np.array_equal(value, wanted) and not fell_back and count == 1

    if sys.argv[1] == "joblib":
        check(Parallel(n_jobs=2)(delayed(run)(f, args) for f, args in calls))
        assert Parallel(n_jobs=2)(delayed(Model().method)(n) for n in range(3)) == [0, 2, 4]
    elif sys.argv[1] == "spawn":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            check(pool.starmap(run, calls))
    else:
        from sklearn.linear_model import Ridge
        from sklearn.metrics import make_scorer
        from sklearn.model_selection import GridSearchCV

        rng = np.random.default_rng(0)
        x = rng.random((60, 3))
        y = x @ np.arange(3.0) + rng.random(60)
        scores = []
        for loss, jobs in ((error, 2), (error.__wrapped__, 1)):
            scorer = make_scorer(loss, greater_is_better=False)
            search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, scoring=scorer, n_jobs=jobs).fit(x, y)
            scores.append(search.cv_results_["mean_test_score"])
            if jobs == 2:
                assert pickle.loads(pickle.dumps(search)).best_params_ == search.best_params_
        assert np.allclose(*scores)
    print("done")
"""


@pytest.mark.parametrize("way", ["joblib", "spawn", "search"])
def test_other_processes(way: str, tmp_path: Path) -> None:
    if way == "search":
        pytest.importorskip("sklearn")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), way], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr


def test_a_process_without_the_source() -> None:
    code = "from parakeet_py import accelerate\nK = 2.0\n@accelerate\ndef f(x):\n    return x * K\nf(1.0)\n"
    code += "import cloudpickle, sys\nsys.stdout.buffer.write(cloudpickle.dumps(f))\n"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert made.returncode == 0, made.stderr
    f = pickle.loads(made.stdout)
    assert f(X).tolist() == (X * 2).tolist() and not f.fell_back and len(f.specializations) == 1
