"""The module `statistics` for Monty, which lacks it. Monty runs this file; Parley only reads it.

For numbers, the functions return the same as CPython's, except for the last digits of floats. Monty doesn't support
inheritance, so `StatisticsError` is ValueError.
"""

from collections import Counter, namedtuple
from math import exp, fsum, log, sqrt
from typing import Any


def _need(data: Any, least: int, name: str) -> list[Any]:
    values = list(data)
    if len(values) < least:
        points = "one data point" if least == 1 else "two data points"
        raise ValueError(f"{name} requires at least {points}")
    return values


def _total(values: Any) -> Any:
    return sum(values) if all(isinstance(value, int) for value in values) else fsum(values)


def _divide(total: Any, number: int) -> Any:
    return total // number if isinstance(total, int) and total % number == 0 else total / number


def _squares(values: Any, center: Any, number: int) -> Any:
    """Return the sum of squared distances from the center, divided by a number. It is exact for integers."""
    count = len(values)
    if center is None and all(isinstance(value, int) for value in values):
        return _divide(count * sum([value * value for value in values]) - sum(values) ** 2, count * number)
    middle = fsum(values) / count if center is None else center
    return _divide(_total([(value - middle) ** 2 for value in values]), number)


def _pairs(x: Any, y: Any, name: str) -> tuple[list[Any], list[Any], float, float, float]:
    xs, ys = list(x), list(y)
    if len(xs) != len(ys):
        raise ValueError(f"{name} requires that both inputs have same number of data points")
    if len(xs) < 2:
        raise ValueError(f"{name} requires at least two data points")
    mean_x, mean_y = fsum(xs) / len(xs), fsum(ys) / len(ys)
    products = fsum([(a - mean_x) * (b - mean_y) for a, b in zip(xs, ys, strict=True)])
    return xs, ys, mean_x, mean_y, products


def mean(data: Any) -> Any:
    values = _need(data, 1, "mean")
    return _divide(_total(values), len(values))


def fmean(data: Any, weights: Any = None) -> float:
    values = _need(data, 1, "fmean")
    if weights is None:
        return fsum(values) / len(values)
    shares = list(weights)
    if len(shares) != len(values):
        raise ValueError("data and weights must be the same length")
    if not fsum(shares):
        raise ValueError("sum of weights must be non-zero")
    return fsum([value * share for value, share in zip(values, shares, strict=True)]) / fsum(shares)


def geometric_mean(data: Any) -> float:
    values = _need(data, 1, "geometric_mean")
    if min(values) <= 0:
        raise ValueError("geometric mean requires a non-empty dataset containing positive numbers")
    return exp(fsum([log(value) for value in values]) / len(values))


def harmonic_mean(data: Any, weights: Any = None) -> Any:
    values = _need(data, 1, "harmonic_mean")
    shares = [1] * len(values) if weights is None else list(weights)
    if min(values) < 0:
        raise ValueError("harmonic mean does not support negative values")
    if min(values) == 0 or len(values) == 1:
        return min(values)
    return _total(shares) / fsum([share / value for value, share in zip(values, shares, strict=True)])


def median(data: Any) -> Any:
    values = sorted(_need(data, 1, "median"))
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def median_low(data: Any) -> Any:
    values = sorted(_need(data, 1, "median_low"))
    return values[(len(values) - 1) // 2]


def median_high(data: Any) -> Any:
    values = sorted(_need(data, 1, "median_high"))
    return values[len(values) // 2]


def mode(data: Any) -> Any:
    return Counter(_need(data, 1, "mode")).most_common(1)[0][0]


def multimode(data: Any) -> list[Any]:
    counts: dict[Any, int] = dict(Counter(data))
    most = max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]


def pvariance(data: Any, mu: Any = None) -> Any:
    values = _need(data, 1, "pvariance")
    return _squares(values, mu, len(values))


def variance(data: Any, xbar: Any = None) -> Any:
    values = _need(data, 2, "variance")
    return _squares(values, xbar, len(values) - 1)


def pstdev(data: Any, mu: Any = None) -> float:
    return sqrt(pvariance(data, mu))


def stdev(data: Any, xbar: Any = None) -> float:
    return sqrt(variance(data, xbar))


def quantiles(data: Any, *, n: int = 4, method: str = "exclusive") -> list[Any]:
    if n < 1:
        raise ValueError("n must be at least 1")
    values = sorted(_need(data, 2, "quantiles"))
    spaces = len(values) + (1 if method == "exclusive" else -1)
    cuts: list[Any] = []
    for number in range(1, n):
        place, rest = divmod(number * spaces, n)
        if method == "exclusive":
            kept = min(max(place, 1), len(values) - 1)
            place, rest = kept - 1, number * spaces - kept * n
        above = values[min(place + 1, len(values) - 1)]
        cuts.append((values[place] * (n - rest) + above * rest) / n)
    return cuts


def covariance(x: Any, y: Any) -> float:
    xs, _, _, _, products = _pairs(x, y, "covariance")
    return products / (len(xs) - 1)


def correlation(x: Any, y: Any) -> float:
    xs, ys, mean_x, mean_y, products = _pairs(x, y, "correlation")
    spread = sqrt(fsum([(a - mean_x) ** 2 for a in xs]) * fsum([(b - mean_y) ** 2 for b in ys]))
    if not spread:
        raise ValueError("at least one of the inputs is constant")
    return products / spread


LinearRegression = namedtuple("LinearRegression", ["slope", "intercept"])  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple]


def linear_regression(x: Any, y: Any) -> LinearRegression:
    xs, _, mean_x, mean_y, products = _pairs(x, y, "linear regression")
    spread = fsum([(a - mean_x) ** 2 for a in xs])
    if not spread:
        raise ValueError("x is constant")
    return LinearRegression(products / spread, mean_y - products / spread * mean_x)
