"""Linear models over sparse features: fitted, and kept for the next process. `classifier` applies them.

A process that finds kept models needs no SciPy, which only training imports.
"""

from __future__ import annotations

import hashlib
import platform
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from re import Pattern
from typing import Any, Protocol, cast

import numpy as np
import orjson

from orchestrator.nlu.system1.classifier import Features, LinearModel
from orchestrator.telemetry import get_logger

LIBRARIES = ("numpy", "scipy")
_UNREADABLE = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""Errors that NumPy raises for damaged or foreign files."""
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3)
_FOLDS = 3
_LEAST_EXAMPLES = 12 * _FOLDS
_PRECISION = 1e-4
"""The steepest slope, for an example, at which a fit is done."""

_log = get_logger(__name__)


class TrainedModels(Protocol):
    """Contents by key, kept from one process to the next; losing one costs its training.

    A key names everything that determines its content, so nothing is ever changed.
    """

    def get(self, key: str, /) -> bytes | None:
        """Return a stored content, or None if it is missing or can't be trusted."""
        ...

    def put(self, key: str, content: bytes, /) -> None:
        """Store a content completely or not at all; do nothing if nothing can be stored."""
        ...


@dataclass(frozen=True, slots=True)
class Examples:
    """Training data of a model.

    `rows`: features. `labels`: the right label of each row. `allowed`: possible labels of each row with
    initial scores, or None for all. `parts`: common parts of labels, by which they learn from each other.
    `importance`: weight of each row, or None for equal weights. `balanced`: rare labels count as much as
    frequent ones.
    """

    rows: Sequence[Features]
    labels: Sequence[str]
    allowed: Sequence[Mapping[str, float]] | None = None
    parts: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    importance: Sequence[float] | None = None
    balanced: bool = False


@dataclass(frozen=True, slots=True)
class _Problem:
    """The same in numbers. `mask`: the scores that labels begin with, minus infinity where one was impossible.

    `shared`: how much of what one label learns another does, label × label. `importance` by row.
    """

    matrix: Any
    targets: Any
    mask: Any
    shared: Any
    importance: Any

    def some(self, chosen: Any) -> _Problem:
        return _Problem(
            self.matrix[chosen], self.targets[chosen], self.mask[chosen], self.shared, self.importance[chosen]
        )


def fit(examples: Examples, strength: float) -> LinearModel:
    """Fit a multinomial logistic regression, with its confidence calibrated on held-out examples.

    The weights of a label are the sum of its parts' weights. Each row decides between the labels that were
    possible for it. The result depends on nothing but the arguments. `strength` is the inverse of regularisation.
    """
    known = tuple(sorted(set(examples.labels)))
    if len(known) < 2:
        return LinearModel(known or ("",), {}, np.zeros((0, 1)), np.zeros(1))
    names = sorted({name for row in examples.rows for name in row})
    places = {name: place for place, name in enumerate(names)}
    problem = _in_numbers(examples, known, places)
    sharpness = _calibrate(problem, strength)
    weights, bias = _regress(problem, strength)
    return LinearModel(known, places, weights, bias, sharpness)


def _in_numbers(examples: Examples, known: Sequence[str], index: Mapping[str, int]) -> _Problem:
    from scipy.sparse import csr_matrix  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    pointers, columns, values = [0], list[int](), list[float]()
    for row in examples.rows:
        columns += (index[name] for name in row)
        values += row.values()
        pointers.append(len(columns))
    matrix: Any = csr_matrix((values, columns, pointers), shape=(len(examples.rows), max(1, len(index))))
    place = {label: position for position, label in enumerate(known)}
    mask = np.zeros((len(examples.rows), len(known)))
    if examples.allowed is not None:
        mask -= np.inf
        for row, allowed in enumerate(examples.allowed):
            for label, score in allowed.items():
                if label in place:
                    mask[row, place[label]] = score
    targets = np.array([place[label] for label in examples.labels])
    importance = np.ones(len(targets)) if examples.importance is None else np.array(examples.importance)
    if examples.balanced:
        importance = importance * (len(targets) / (len(known) * np.bincount(targets)))[targets]
    return _Problem(matrix, targets, mask, _share(known, examples.parts), importance)


def _share(known: Sequence[str], parts: Mapping[str, Collection[str]]) -> Any:
    """Return the root of the matrix that counts what each two labels have in common.

    Weights that are the sum of their parts' weights, each kept small separately, are free weights times this root.
    """
    common = np.eye(len(known))
    for one, first in enumerate(known):
        for other, second in enumerate(known):
            common[one, other] += len(set(parts.get(first, ())).intersection(parts.get(second, ())))
    own = np.sqrt(np.diag(common))
    common *= np.mean(own**2) / np.outer(own, own)  # a label of many parts learns no faster than one of few
    values, vectors = np.linalg.eigh(common)
    return (vectors * np.sqrt(values)) @ vectors.T


def _regress(problem: _Problem, strength: float) -> tuple[Any, Any]:
    """Return the weights by (feature, label) and the bias by label."""
    from scipy import optimize  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    minimize: Any = getattr(optimize, "minimize")  # noqa: B009  # its types are unknown
    matrix, targets, shared = problem.matrix, problem.targets, problem.shared
    (rows, features), labels = matrix.shape, len(shared)
    turned, size = matrix.T.tocsr(), features * labels

    def loss(flat: Any) -> tuple[float, Any]:
        free = flat[:size].reshape(features, labels)
        scores = (matrix @ free) @ shared + flat[size:] + problem.mask
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        totals = shares.sum(axis=1, keepdims=True)
        missed = problem.importance @ (np.log(totals[:, 0]) - scores[range(rows), targets])
        shares /= totals
        shares[range(rows), targets] -= 1.0
        shares *= strength * problem.importance[:, None]
        slope = (turned @ (shares @ shared)).ravel() + flat[:size]
        value = strength * missed + 0.5 * float(flat[:size] @ flat[:size])
        return value, np.concatenate([slope, shares.sum(axis=0)])

    options = {"maxiter": 400, "gtol": _PRECISION * strength * rows, "ftol": 1e-10}
    with threadpool_limits(1):  # small matrices: more threads only wait for each other
        found: Any = minimize(loss, np.zeros(size + labels), jac=True, method="L-BFGS-B", options=options)
    weights = found.x[:size].reshape(features, labels) @ shared
    return np.ascontiguousarray(weights), found.x[size:]


def _calibrate(problem: _Problem, strength: float) -> float:
    """Find the sharpness under which held-out examples are most likely; 1 when there are too few."""
    inside = np.arange(len(problem.targets)) % _FOLDS != 0
    labels = len(problem.shared)
    if len(problem.targets) < _LEAST_EXAMPLES or len(set(problem.targets[inside].tolist())) < labels:
        return 1.0
    weights, bias = _regress(problem.some(inside), strength)
    held = problem.some(~inside)
    scores = held.matrix @ weights + bias + held.mask
    return 1.0 / min(_TEMPERATURES, key=lambda temperature: _loss(scores / temperature, held.targets))


def _loss(scores: Any, targets: Any) -> float:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-logarithms[np.arange(len(targets)), targets].sum())


def train_once(kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]) -> LinearModel:
    """Load the model stored under the key, or train and store it."""
    if kept is None:
        return train()
    content = kept.get(key)
    if content is not None:
        try:
            return unpack(content, key)
        except _UNREADABLE as error:
            _log.warning("A stored model is unusable and is trained again.", key=key, error=str(error))
    model = train()
    kept.put(key, pack(model, key))
    return model


def key_of(*material: object) -> str:
    """Return a digest of the training data, code and libraries."""
    return hashlib.sha256(orjson.dumps([material, _versions()], _as_json)).hexdigest()


def _as_json(part: object) -> object:
    if isinstance(part, Pattern):
        pattern = cast("Pattern[str]", part)
        return [pattern.pattern, pattern.flags]
    if isinstance(part, Mapping):
        return dict(cast("Mapping[object, object]", part))
    raise TypeError(f"{type(part).__name__} has no digest")


@cache
def _versions() -> tuple[str, ...]:
    """List the code that reads examples and learns from them, as a digest, Python, and the libraries."""
    code = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.*")):
        if file.suffix in {".py", ".txt"}:
            code.update(file.read_bytes())
    libraries = (f"{name} {version(name)}" for name in LIBRARIES)
    return (code.hexdigest(), platform.python_version(), *libraries)


def pack(model: LinearModel, key: str) -> bytes:
    """Write a model as a file of NumPy's: numbers as arrays, names as JSON."""
    about = {"key": key, "labels": model.labels, "names": list(model.places)}
    arrays: dict[str, Any] = {
        "about": np.frombuffer(orjson.dumps(about), dtype=np.uint8),
        "weights": np.asarray(model.weights, dtype=np.float64),
        "bias": np.asarray(model.bias, dtype=np.float64),
        "sharpness": np.array([model.sharpness]),
    }
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def unpack(content: bytes, key: str) -> LinearModel:
    """Unpack content stored under this key. Raises ValueError or similar for anything else; runs no code."""
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        about: Mapping[str, Any] = orjson.loads(arrays["about"].tobytes())
        weights, bias = arrays["weights"], arrays["bias"]
        sharpness = float(arrays["sharpness"][0])
    labels, names = tuple(about["labels"]), about["names"]
    if about["key"] != key:
        raise ValueError("it was kept under another key")
    if weights.shape != (len(names), len(labels)) or bias.shape != (len(labels),):
        raise ValueError("its array sizes don't match")
    if not (np.isfinite(weights).all() and np.isfinite(bias).all() and np.isfinite(sharpness)):
        raise ValueError("it contains values that aren't numbers")
    places = {name: place for place, name in enumerate(names)}
    return LinearModel(labels, places, weights, bias, sharpness)
