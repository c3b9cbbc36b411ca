"""Train the message classifier with scikit-learn.

Only training imports scikit-learn, which takes seconds and more than 100 MB. Processes that find stored
models do not import it, and workers train in another process.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from orchestrator.nlu.system1.classifier import delexicalize, features_of
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.linear import Features, LinearModel
from orchestrator.nlu.system1.training.examples import Example
from orchestrator.nlu.text import clean, tokenize

Fit: TypeAlias = Callable[[Sequence[Features], Sequence[str]], LinearModel]
_TRAINING_DAY = date(2031, 3, 5)
_FOLDS = 3
_INVERSE_REGULARIZATION = 10.0
_SHARPEST = 5.0
"""Upper limit of the calibration factor, because few separable examples would make the model too certain."""


def learn_labels(examples: Iterable[Example], extractor: Extractor, fit: Fit) -> LinearModel:
    """Train the message classifier from labeled examples. The result is deterministic."""
    labelled = [(tokenize(clean(one.text)), one.label) for one in examples]
    rows = [features_of(delexicalize(said, extractor.find(said, _TRAINING_DAY))) for said, _ in labelled]
    return fit(rows, [label for _, label in labelled])


def fit(rows: Sequence[Features], labels: Sequence[str]) -> LinearModel:
    """Fit a logistic regression. Calibrate its confidence if each label has at least `_FOLDS` examples.

    Rare labels count as much as frequent labels.
    """
    known = tuple(sorted(set(labels)))
    if len(known) < 2:
        return LinearModel(known or ("",), {}, np.zeros((0, 1)), np.zeros(1))
    from sklearn.calibration import CalibratedClassifierCV  # noqa: PLC0415
    from sklearn.feature_extraction import DictVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    vectorizer: Any = DictVectorizer()
    matrix = vectorizer.fit_transform(rows)
    estimator: Any = LogisticRegression(C=_INVERSE_REGULARIZATION, class_weight="balanced", max_iter=400)
    sharpness = 1.0
    with threadpool_limits(1):  # small matrices: more threads only wait for each other
        if min(Counter(labels).values()) >= _FOLDS:
            options: dict[str, Any] = {"method": "temperature", "cv": _FOLDS, "ensemble": False}
            calibrated: Any = CalibratedClassifierCV(estimator, **options).fit(matrix, labels)
            fitted = calibrated.calibrated_classifiers_[0]
            estimator = fitted.estimator
            sharpness = min(_SHARPEST, float(fitted.calibrators[0].beta_))
        else:
            estimator.fit(matrix, labels)
    weights, bias = estimator.coef_.T, estimator.intercept_
    if len(known) == 2:  # scikit-learn stores only the second label's distance from the first label
        weights, bias = np.hstack([0 * weights, weights]), np.concatenate([0 * bias, bias])
    places = {name: place for place, name in enumerate(vectorizer.feature_names_)}
    return LinearModel(known, places, np.ascontiguousarray(weights), bias, sharpness)
