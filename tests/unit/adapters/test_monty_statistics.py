"""The functions that stand for `statistics` in model-written Python return what CPython's return."""

from __future__ import annotations

import math
import statistics
from random import Random
from typing import Any

import pytest

from orchestrator.adapters.sandbox import monty_statistics
from tests.cases import for_each

OF_ONE = [
    *("mean", "fmean", "geometric_mean", "harmonic_mean", "median", "median_low", "median_high", "mode"),
    *("multimode", "pvariance", "variance", "pstdev", "stdev", "quantiles"),
]
OF_TWO = ["covariance", "correlation", "linear_regression"]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)


def call(module: Any, name: str, *data: Any, **options: Any) -> Any:
    try:
        return getattr(module, name)(*data, **options)
    except ValueError:
        return None


@for_each("name", [*OF_ONE, *OF_TWO])
def test_each_function_returns_what_the_one_of_cpython_returns(name: str) -> None:
    random = Random(1)
    for number in range(200):
        data = [random.randint(1, 9) if number % 2 else random.uniform(0.1, 50) for _ in range(number % 12)]
        more = [[random.uniform(-5, 5) for _ in data]] if name in OF_TWO else []
        expected, found = (call(module, name, data, *more) for module in (statistics, monty_statistics))

        assert found is None if expected is None else same(expected, found), (data, expected, found)


@for_each("method", ["exclusive", "inclusive"])
@for_each("count", [1, 2, 10, 100])
def test_quantiles_take_a_number_and_a_method(method: str, count: int) -> None:
    data = [Random(1).uniform(0, 9) for _ in range(7)]

    expected = statistics.quantiles(data, n=count, method=method)  # type: ignore[arg-type]
    assert same(expected, monty_statistics.quantiles(data, n=count, method=method))


def test_weights_count() -> None:
    data, weights = [1.0, 2.0, 4.0], [1, 2, 5]

    for name in ("fmean", "harmonic_mean"):
        expected, found = (call(module, name, data, weights) for module in (statistics, monty_statistics))
        assert same(float(expected), float(found)), name
    with pytest.raises(ValueError, match="same length"):
        monty_statistics.fmean(data, [1])
