"""`super()` in accelerated methods, and in methods that they call: what classes above hold is compiled, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


class Base:
    factor = 3

    def __init__(self, k: float) -> None:
        self.k = k

    def total(self, x: Any) -> Any:
        return (x * self.k).sum()

    @staticmethod
    def above(x: Any) -> Any:
        return x + 1

    @classmethod
    def scaled(cls, x: Any) -> Any:
        return x * cls.factor


class Middle(Base):
    pass


class Derived(Middle):
    factor = 7

    @accelerate(strict=True)
    def total(self, x: Any) -> Any:
        return super().total(x) + super().above(x)[0] + super().scaled(x)[1]

    def twice(self, x: Any) -> Any:
        return super().total(x) * 2

    @accelerate(strict=True)
    def through_a_method(self, x: Any) -> Any:
        return self.twice(x) + 1

    @accelerate
    def missing(self, x: Any) -> Any:
        return super().nothing(x)  # type: ignore[misc]


X = np.arange(10.0)


def test_methods_of_classes_above_are_compiled() -> None:
    one = Derived(3.0)
    method = Derived.__dict__["total"]
    for _ in range(2):
        assert one.total(X) == (X * 3).sum() + 1 + 7
        assert one.through_a_method(X) == (X * 3).sum() * 2 + 1
    assert len(method.specializations) == 1 and method.opaque_calls == []


def test_changes_of_the_classes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Derived(2.0)
    assert one.total(X) == 90 + 1 + 7
    with monkeypatch.context() as patch:
        patch.setattr(Base, "total", lambda self, x: self.k)
        assert one.total(X) == 2 + 1 + 7
    assert one.total(X) == 90 + 1 + 7
    with monkeypatch.context() as patch:
        patch.setattr(Middle, "total", lambda self, x: 100.0, raising=False)
        assert one.total(X) == 100 + 1 + 7
    assert one.total(X) == 90 + 1 + 7


def test_a_name_that_no_class_above_has() -> None:
    with pytest.raises(AttributeError, match="'super' object has no attribute 'nothing'"):
        Derived(1.0).missing(X)
