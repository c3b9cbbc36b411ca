"""Models that are trained once: the next process that would train with the same takes what was kept.

The key is a digest of all that decides what training gives: examples, strength, code and libraries.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import orjson

from orchestrator.nlu.linear import Features, LinearModel, train_linear
from orchestrator.ports.trained import TrainedModels
from orchestrator.telemetry import get_logger

LIBRARIES = ("numpy", "scipy", "scikit-learn")
_BROKEN = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What NumPy raises for files that are none of its own, or damaged."""

_log = get_logger(__name__)

Fit = Callable[[Sequence[Features], Sequence[str], float], LinearModel]
"""Makes a model of rows of features, a label for each, and the strength."""


def fit(rows: Sequence[Features], labels: Sequence[str], strength: float) -> LinearModel:
    """Train, whatever was trained before."""
    return train_linear(rows, labels, strength=strength)


@dataclass(frozen=True, slots=True)
class FitOnce:
    """A `Fit` that trains only what `kept` does not have."""

    kept: TrainedModels

    def __call__(self, rows: Sequence[Features], labels: Sequence[str], strength: float) -> LinearModel:
        key = key_of(rows, labels, strength)
        content = self.kept.get(key)
        if content is not None:
            try:
                return unpack(content, key)
            except _BROKEN as error:
                _log.warning("A kept model cannot be used; it is trained anew.", key=key, error=str(error))
        model = fit(rows, labels, strength)
        self.kept.put(key, pack(model, key))
        return model


def key_of(rows: Sequence[Features], labels: Sequence[str], strength: float) -> str:
    """The name of what training would give."""
    return hashlib.sha256(orjson.dumps([rows, labels, strength, *_surroundings()])).hexdigest()


@cache
def _surroundings() -> tuple[str, ...]:
    """The code that trains and the libraries that it uses."""
    code = files("orchestrator.nlu").joinpath("linear.py").read_bytes()
    return (hashlib.sha256(code).hexdigest(), *(f"{name} {version(name)}" for name in LIBRARIES))


def pack(model: LinearModel, key: str) -> bytes:
    """A model as a file of NumPy's: numbers as arrays, names as JSON."""
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
    """What was packed under this key. Raises ValueError and its like for anything else; runs no code."""
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
