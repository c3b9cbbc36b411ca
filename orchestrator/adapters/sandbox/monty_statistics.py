"""The module `statistics` for Monty, which has none. Monty runs this file; Parley only reads it.

The functions return what CPython's return for numbers, except for the last digits of floats. Monty has no classes of
errors, so `StatisticsError` is ValueError.
"""

from collections import Counter, namedtuple
from math import exp, fsum, log, sqrt


def _need(data, least, name):
    values = list(data)
    if len(values) < least:
        points = "one data point" if least == 1 else "two data points"
        raise ValueError(f"{name} requires at least {points}")
    return values


def _total(values):
    return sum(values) if all(isinstance(value, int) for value in values) else fsum(values)


def _divide(total, number):
    return total // number if isinstance(total, int) and total % number == 0 else total / number


def _squares(values, center):
    middle = _divide(_total(values), len(values)) if center is None else center
    return _total([(value - middle) ** 2 for value in values])


def _pairs(x, y, name):
    xs, ys = list(x), list(y)
    if len(xs) != len(ys):
        raise ValueError(f"{name} requires that both inputs have same number of data points")
    if len(xs) < 2:
        raise ValueError(f"{name} requires at least two data points")
    mean_x, mean_y = fsum(xs) / len(xs), fsum(ys) / len(ys)
    products = fsum([(a - mean_x) * (b - mean_y) for a, b in zip(xs, ys)])
    return xs, ys, mean_x, mean_y, products


def mean(data):
    values = _need(data, 1, "mean")
    return _divide(_total(values), len(values))


def fmean(data, weights=None):
    values = _need(data, 1, "fmean")
    if weights is None:
        return fsum(values) / len(values)
    shares = list(weights)
    if len(shares) != len(values):
        raise ValueError("data and weights must be the same length")
    if not fsum(shares):
        raise ValueError("sum of weights must be non-zero")
    return fsum([value * share for value, share in zip(values, shares)]) / fsum(shares)


def geometric_mean(data):
    values = _need(data, 1, "geometric_mean")
    if min(values) <= 0:
        raise ValueError("geometric mean requires a non-empty dataset containing positive numbers")
    return exp(fsum([log(value) for value in values]) / len(values))


def harmonic_mean(data, weights=None):
    values = _need(data, 1, "harmonic_mean")
    shares = [1] * len(values) if weights is None else list(weights)
    if min(values) < 0:
        raise ValueError("harmonic mean does not support negative values")
    if min(values) == 0:
        return 0
    return _total(shares) / fsum([share / value for value, share in zip(values, shares)])


def median(data):
    values = sorted(_need(data, 1, "median"))
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def median_low(data):
    values = sorted(_need(data, 1, "median_low"))
    return values[(len(values) - 1) // 2]


def median_high(data):
    values = sorted(_need(data, 1, "median_high"))
    return values[len(values) // 2]


def mode(data):
    return Counter(_need(data, 1, "mode")).most_common(1)[0][0]


def multimode(data):
    counts = Counter(data)
    most = max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]


def pvariance(data, mu=None):
    values = _need(data, 1, "pvariance")
    return _divide(_squares(values, mu), len(values))


def variance(data, xbar=None):
    values = _need(data, 2, "variance")
    return _divide(_squares(values, xbar), len(values) - 1)


def pstdev(data, mu=None):
    return sqrt(pvariance(data, mu))


def stdev(data, xbar=None):
    return sqrt(variance(data, xbar))


def quantiles(data, *, n=4, method="exclusive"):
    if n < 1:
        raise ValueError("n must be at least 1")
    values = sorted(_need(data, 2, "quantiles"))
    spaces = len(values) + (1 if method == "exclusive" else -1)
    cuts = []
    for number in range(1, n):
        place, rest = divmod(number * spaces, n)
        if method == "exclusive":
            kept = min(max(place, 1), len(values) - 1)
            place, rest = kept - 1, number * spaces - kept * n
        above = values[min(place + 1, len(values) - 1)]
        cuts.append((values[place] * (n - rest) + above * rest) / n)
    return cuts


def covariance(x, y):
    xs, _, _, _, products = _pairs(x, y, "covariance")
    return products / (len(xs) - 1)


def correlation(x, y):
    xs, ys, mean_x, mean_y, products = _pairs(x, y, "correlation")
    spread = sqrt(fsum([(a - mean_x) ** 2 for a in xs]) * fsum([(b - mean_y) ** 2 for b in ys]))
    if not spread:
        raise ValueError("at least one of the inputs is constant")
    return products / spread


LinearRegression = namedtuple("LinearRegression", ["slope", "intercept"])


def linear_regression(x, y):
    xs, _, mean_x, mean_y, products = _pairs(x, y, "linear regression")
    spread = fsum([(a - mean_x) ** 2 for a in xs])
    if not spread:
        raise ValueError("x is constant")
    return LinearRegression(products / spread, mean_y - products / spread * mean_x)
