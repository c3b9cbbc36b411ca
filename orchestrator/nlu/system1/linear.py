"""Linear models over sparse features, stored so that later processes can reuse them. `training` fits the models."""

from __future__ import annotations

import hashlib
import platform
import zipfile
import zlib
from collections.abc import Callable, Mapping
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

LIBRARIES = ("numpy", "scikit-learn")
_UNREADABLE = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""Errors that NumPy raises for damaged or foreign files."""

_log = get_logger(__name__)

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model.

    `places`: row of each feature in `weights`, which has a column per label. `bias`: offset per label. `sharpness`:
    factor for the scores.
    """

    labels: tuple[str, ...]
    places: Mapping[str, int]
    weights: Any
    bias: Any
    sharpness: float = 1.0

    def score(self, features: Features) -> Any:
        """Return the calibrated score of each label, in label order."""
        known = [(self.places[name], weight) for name, weight in features.items() if name in self.places]
        rows, counts = [row for row, _ in known], np.array([weight for _, weight in known])
        return (counts @ self.weights[rows] + self.bias if known else self.bias) * self.sharpness


class TrainedModels(Protocol):
    """Storage of trained models by key. A missing model is trained again.

    A key covers everything that determines the content, so content never changes.
    """

    def get(self, key: str, /) -> bytes | None:
        """Return stored content, or None if the content is missing or can't be trusted."""
        ...

    def put(self, key: str, content: bytes, /) -> None:
        """Store content atomically. Do nothing if storage is unavailable."""
        ...


def train_once(kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]) -> LinearModel:
    if kept is None:
        return train()
    content = kept.get(key)
    if content is not None:
        try:
            return unpack(content, key)
        except _UNREADABLE as error:
            _log.warning("A stored model is unusable; retraining it.", key=key, error=str(error))
    model = train()
    kept.put(key, pack(model, key))
    return model


def key_of(*material: object) -> str:
    """Return a digest of `material`, such as training data, and of the code and library versions."""
    return hashlib.sha256(orjson.dumps([material, _versions()], _as_json)).hexdigest()


def _as_json(part: object) -> object:
    if isinstance(part, Pattern):
        pattern = cast("Pattern[str]", part)
        return [pattern.pattern, pattern.flags]
    if isinstance(part, Mapping):
        return dict(cast("Mapping[object, object]", part))
    raise TypeError(f"can't compute a digest of type {type(part).__name__}")


@cache
def _versions() -> tuple[str, ...]:
    """Return a digest of this package's code, and the versions of Python and the libraries."""
    code = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.*")):
        if file.suffix in {".py", ".txt"}:
            code.update(file.read_bytes())
    libraries = (f"{name} {version(name)}" for name in LIBRARIES)
    return (code.hexdigest(), platform.python_version(), *libraries)


def pack(model: LinearModel, key: str) -> bytes:
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
    """Deserialize content without running code.

    Raises one of `_UNREADABLE` if the content is invalid or was stored under another key.
    """
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        about: Mapping[str, Any] = orjson.loads(arrays["about"].tobytes())
        weights, bias = arrays["weights"], arrays["bias"]
        sharpness = float(arrays["sharpness"][0])
    labels, names = tuple(about["labels"]), about["names"]
    if about["key"] != key:
        raise ValueError(f"it was stored for key {about['key']!r}")
    if weights.shape != (len(names), len(labels)) or bias.shape != (len(labels),):
        raise ValueError("the array sizes don't match the labels and features")
    if not (np.isfinite(weights).all() and np.isfinite(bias).all() and np.isfinite(sharpness)):
        raise ValueError("the weights contain NaN or infinite values")
    places = {name: place for place, name in enumerate(names)}
    return LinearModel(labels, places, weights, bias, sharpness)
