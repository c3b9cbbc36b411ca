"""Linear models over sparse features: trained by scikit-learn, kept for the next process, applied elsewhere.

Applying one is adding up a few rows of weights by name, which `classifier` and `slot_assignment` do with
dictionaries: a process that finds kept models needs no scikit-learn, which only training imports.
"""

from __future__ import annotations

import hashlib
import platform
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from re import Pattern
from typing import Any, Protocol, cast

import numpy as np
import orjson

from orchestrator.telemetry import get_logger

LIBRARIES = ("numpy", "scipy", "scikit-learn")
_UNREADABLE = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What NumPy raises for files that are none of its own, or damaged."""
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3)
_FOLDS = 3
_LEAST_EXAMPLES = 12 * _FOLDS

_log = get_logger(__name__)

Features = Mapping[str, float]


class TrainedModels(Protocol):
    """Contents by key, kept from one process to the next; losing one costs its training.

    A key names everything that determines its content, so nothing is ever changed.
    """

    def get(self, key: str) -> bytes | None:
        """Return what was put; None when there is nothing, or nothing that may be trusted."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Keep a content, whole or not at all; where nothing can be kept, nothing happens."""
        ...


@dataclass(frozen=True, slots=True)
class LinearModel:
    """`rows`: feature → its weights by label. `bias` by label. `sharpness` multiplies the scores."""

    labels: tuple[str, ...]
    rows: Mapping[str, Any]
    bias: Any
    sharpness: float = 1.0


def fit(rows: Sequence[Features], labels: Sequence[str], strength: float) -> LinearModel:
    """Fit a multinomial logistic regression, with its confidence calibrated on held-out examples.

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
    weights, bias = _regress(matrix, targets, strength)
    return LinearModel(known, {name: weights[position] for name, position in index.items()}, bias, sharpness)


def _matrix(rows: Sequence[Features], index: Mapping[str, int]) -> Any:
    from scipy.sparse import csr_matrix  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    pointers, columns, values = [0], list[int](), list[float]()
    for row in rows:
        columns += (index[name] for name in row)
        values += row.values()
        pointers.append(len(columns))
    return csr_matrix((values, columns, pointers), shape=(len(rows), max(1, len(index))))


def _regress(matrix: Any, targets: Any, strength: float) -> tuple[Any, Any]:
    """Give weights as (feature, label) and bias by label; two labels are spread over two columns."""
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
    """Find the sharpness under which held-out examples are most likely; 1 when there are too few."""
    inside = np.arange(len(targets)) % _FOLDS != 0
    if len(targets) < _LEAST_EXAMPLES or len(set(targets[inside].tolist())) < labels:
        return 1.0
    weights, bias = _regress(matrix[inside], targets[inside], strength)
    scores, held = matrix[~inside] @ weights + bias, targets[~inside]
    return 1.0 / min(_TEMPERATURES, key=lambda temperature: _loss(scores / temperature, held))


def _loss(scores: Any, targets: Any) -> float:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-logarithms[np.arange(len(targets)), targets].sum())


def train_once(kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]) -> LinearModel:
    """Take what is kept under the key; train, and keep it, when nothing there can be used."""
    if kept is None:
        return train()
    content = kept.get(key)
    if content is not None:
        try:
            return unpack(content, key)
        except _UNREADABLE as error:
            _log.warning("A kept model cannot be used; it is trained anew.", key=key, error=str(error))
    model = train()
    kept.put(key, pack(model, key))
    return model


def key_of(*material: object) -> str:
    """Name what training would give: a digest of what is learnt from, and of the code and libraries that learn."""
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
    about = {"key": key, "labels": model.labels, "names": list(model.rows)}
    arrays: dict[str, Any] = {
        "about": np.frombuffer(orjson.dumps(about), dtype=np.uint8),
        "weights": np.array(list(model.rows.values()), dtype=np.float64).reshape(-1, len(model.labels)),
        "bias": np.asarray(model.bias, dtype=np.float64),
        "sharpness": np.array([model.sharpness]),
    }
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def unpack(content: bytes, key: str) -> LinearModel:
    """Read what was packed under this key. Raises ValueError and its like for anything else; runs no code."""
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        about: Mapping[str, Any] = orjson.loads(arrays["about"].tobytes())
        weights, bias = arrays["weights"], arrays["bias"]
        sharpness = float(arrays["sharpness"][0])
    labels, names = tuple(about["labels"]), about["names"]
    if about["key"] != key:
        raise ValueError("it was kept under another key")
    if weights.shape != (len(names), len(labels)) or bias.shape != (len(labels),):
        raise ValueError("its parts do not fit together")
    if not (np.isfinite(weights).all() and np.isfinite(bias).all() and np.isfinite(sharpness)):
        raise ValueError("it holds what is no number")
    return LinearModel(labels, dict(zip(names, weights, strict=True)), bias, sharpness)
