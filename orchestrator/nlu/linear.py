"""A linear model over sparse features: trained by scikit-learn at start-up, applied by dictionaries.

The libraries that only training needs are imported there. Knows features and labels only; what
they mean is the business of `classifier` and `roles`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Features = Mapping[str, float]
_FOLDS_TRIED = 1
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3)


@dataclass(frozen=True, slots=True)
class LinearModel:
    """`rows`: feature → its weights by label. `bias` by label. `sharpness` multiplies the scores."""

    labels: tuple[str, ...]
    rows: Mapping[str, Any]
    bias: Any
    sharpness: float = 1.0

    def probabilities(self, scores: Any) -> list[float]:
        """Turn summed scores (one per label) into probabilities."""
        values = [value * self.sharpness for value in scores.tolist()]
        highest = max(values)
        powers = [math.exp(value - highest) for value in values]
        total = sum(powers)
        return [power / total for power in powers]


def train_linear(rows: Sequence[Features], labels: Sequence[str], *, strength: float = 10.0) -> LinearModel:
    """Fit a multinomial logistic regression, with its confidence calibrated on held-out folds.

    The result depends on nothing but the arguments. `strength` is the inverse of regularisation.
    """
    names = sorted({name for row in rows for name in row})
    index = {name: position for position, name in enumerate(names)}
    known = tuple(sorted(set(labels)))
    if len(known) < 2:
        return LinearModel(known or ("",), {}, np.zeros(1))
    targets = np.array([known.index(label) for label in labels])
    matrix = _matrix(rows, index)
    sharpness = _calibrate(matrix, targets, len(known), strength)
    weights, bias = _fit(matrix, targets, strength)
    return LinearModel(known, {name: weights[position] for name, position in index.items()}, bias, sharpness)


def _matrix(rows: Sequence[Features], index: Mapping[str, int]) -> Any:
    from scipy.sparse import csr_matrix  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    pointers, columns, values = [0], list[int](), list[float]()
    for row in rows:
        columns += (index[name] for name in row)
        values += row.values()
        pointers.append(len(columns))
    return csr_matrix((values, columns, pointers), shape=(len(rows), max(1, len(index))))


def _fit(matrix: Any, targets: Any, strength: float) -> tuple[Any, Any]:
    """Weights as (feature, label) and bias by label; two labels are spread over two columns."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    model: Any = LogisticRegression(C=strength, max_iter=400, tol=1e-3, class_weight="balanced")
    with threadpool_limits(1):  # small matrices: more threads only wait for each other
        model.fit(matrix, targets)
    weights: Any = np.asarray(model.coef_)
    bias: Any = np.asarray(model.intercept_)
    if len(weights) == 1:
        weights, bias = np.vstack([-weights / 2, weights / 2]), np.array([-bias[0] / 2, bias[0] / 2])
    return np.ascontiguousarray(weights.T), bias


def _calibrate(matrix: Any, targets: Any, labels: int, strength: float) -> float:
    """The sharpness under which held-out examples are most likely; 1 when there are too few to tell."""
    folds = 3
    count = len(targets)
    if count < 12 * folds:
        return 1.0
    order = np.arange(count)
    held: list[tuple[Any, Any]] = []
    for fold in range(_FOLDS_TRIED):
        inside = order % folds != fold
        if len(set(targets[inside].tolist())) < labels:
            continue
        weights, bias = _fit(matrix[inside], targets[inside], strength)
        held.append((matrix[~inside] @ weights + bias, targets[~inside]))
    if not held:
        return 1.0
    return 1.0 / min(_TEMPERATURES, key=lambda temperature: sum(_loss(s / temperature, t) for s, t in held))


def _loss(scores: Any, targets: Any) -> float:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-logarithms[np.arange(len(targets)), targets].sum())


def merge(features: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Sum the weights of features that occur more than once."""
    merged: dict[str, float] = {}
    for name, weight in features:
        merged[name] = merged.get(name, 0.0) + weight
    return merged
