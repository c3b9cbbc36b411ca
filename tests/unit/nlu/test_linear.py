"""Models of the local classifier, which later processes reuse, but other domains don't (NL-2, RT-21)."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.system1 import linear as trained
from orchestrator.nlu.system1.linear import LinearModel, key_of, pack, train_once
from orchestrator.nlu.system1.training.learning import fit
from orchestrator.nlu.system1.training.process import fit_in_process
from tests.unit.nlu.flights import AIRPORTS, ANSWERS, CHECK, SEARCH

ROWS = [{"w:go": 1.0, "b:go on": 0.5}, {"w:stop": 1.0}, {"w:go": 0.7}, {"w:stop": 0.9, "w:now": 0.2}]
LABELS = ["go", "stop", "go", "stop"]
KEY = key_of(ROWS, LABELS)


def learn() -> LinearModel:
    return fit(ROWS, LABELS)


STARTS = """
import sys
from pathlib import Path
from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.system1.linear import train_once
from orchestrator.nlu.system1.training.learning import fit

train_once(TrainedFiles(Path(sys.argv[1])), sys.argv[2], lambda: sys.exit("there is nothing to take over"))
print(fit.__name__, "sklearn" in sys.modules)
"""


class Kept(dict[str, bytes]):
    """An in-memory `TrainedModels`."""

    def put(self, key: str, content: bytes) -> None:
        self[key] = content


def same(one: LinearModel, other: LinearModel) -> bool:
    return (
        one.labels == other.labels
        and one.sharpness == other.sharpness
        and one.places == other.places
        and np.array_equal(one.weights, other.weights)
        and np.array_equal(one.bias, other.bias)
    )


def test_what_was_kept_is_what_training_gives_to_the_last_bit() -> None:
    kept = Kept()
    first = train_once(kept, KEY, learn)
    second = train_once(kept, KEY, learn)
    assert list(kept) == [KEY]
    assert first is not second
    assert same(first, learn())
    assert same(second, first)


def test_a_model_without_rows_is_kept_too() -> None:
    kept = Kept()
    assert same(*(train_once(kept, KEY, lambda: fit([], [])) for _ in range(2)))


FEW = (SEARCH, CHECK)
DOMAIN: dict[str, Any] = {"flows": FEW, "entities": {"airport": AIRPORTS}, "answers": ANSWERS}
"""A small domain, because each of its versions is trained."""


@cache
def kept_of_domain() -> Kept:
    kept = Kept()
    System1.train(**DOMAIN, kept=kept)
    return kept


@pytest.mark.parametrize(
    "changed",
    [
        {"flows": FEW[:-1]},
        {"flows": [*FEW[:-1], replace(FEW[-1], examples=(*FEW[-1].examples, "one more"))]},
        {"entities": {"airport": replace(AIRPORTS, values=AIRPORTS.values[:-1])}},
        {"answers": [*ANSWERS[:-1], replace(ANSWERS[-1], examples=("what else",))]},
        {"patterns": {"code": re.compile("[a-z]+")}},
        {"patterns": {"code": re.compile("[a-z]+", re.IGNORECASE)}},
    ],
)
def test_another_version_of_a_domain_is_trained_for_itself(changed: dict[str, Any]) -> None:
    kept = Kept(kept_of_domain())
    for version in (DOMAIN | changed, DOMAIN):
        System1.train(**version, kept=kept)
    assert len(kept) == 2


def test_another_wording_of_an_answer_asks_for_no_training() -> None:
    kept = Kept(kept_of_domain())
    reworded = [*ANSWERS[:-1], replace(ANSWERS[-1], text="It is said otherwise now.")]
    changed: dict[str, Any] = DOMAIN | {"answers": reworded}
    taken = System1.train(**changed, kept=kept)
    assert kept == kept_of_domain()
    assert taken.answers[reworded[-1].name].text == "It is said otherwise now."


@pytest.mark.parametrize("changed", range(len(trained._versions())))
def test_other_code_or_another_release_of_a_library_is_another_model(
    monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    surroundings = list(trained._versions())
    surroundings[changed] += "+"
    monkeypatch.setattr(trained, "_versions", lambda: tuple(surroundings))
    assert key_of(ROWS, LABELS) != KEY


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def _pickled(content: bytes) -> bytes:
    file = io.BytesIO()
    np.savez(file, about=np.array([{"key": KEY}], dtype=object), weights=np.zeros((1, 1)))
    return file.getvalue()


def _of_another_key(content: bytes) -> bytes:
    return pack(fit(ROWS, LABELS), "0" * 64)


def _not_a_number(content: bytes) -> bytes:
    model = learn()
    return pack(replace(model, weights=np.full_like(model.weights, np.nan)), KEY)


def _of_another_shape(content: bytes) -> bytes:
    return pack(replace(learn(), bias=np.zeros(3)), KEY)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: b"not an archive",
        lambda content: content[:-40],
        lambda content: pickle.dumps({"weights": 1}),
        _flip,
        _pickled,
        _of_another_key,
        _not_a_number,
        _of_another_shape,
    ],
)
def test_a_spoilt_or_foreign_file_is_told_and_trained_anew(spoil: Callable[[bytes], bytes]) -> None:
    content = pack(learn(), KEY)
    kept = Kept({KEY: spoil(content)})
    with capture_logs() as logs:
        model = train_once(kept, KEY, learn)
    assert same(model, learn())
    assert [entry["event"] for entry in logs] == ["A stored model is unusable; retraining it."]
    assert same(train_once(kept, KEY, learn), model)
    assert kept[KEY] != spoil(content)


def test_a_process_that_takes_over_does_not_even_load_what_trains(tmp_path: Path) -> None:
    train_once(TrainedFiles(tmp_path), KEY, learn)
    command = [sys.executable, "-c", STARTS, str(tmp_path), KEY]
    started = subprocess.run(command, check=True, capture_output=True, text=True)
    assert started.stdout == "fit False\n"
    assert TrainedFiles(tmp_path).get("0" * 64) is None


TRAINS = """
import sys
from orchestrator.nlu.system1 import System1

system1 = System1.train((), {}, apart=True)
print(len(system1.classifier.labels) > 1, "sklearn" in sys.modules)
"""


def test_a_process_that_trains_apart_does_not_load_what_trains() -> None:
    """It would keep 100 MB until its end."""
    trained_apart = subprocess.run([sys.executable, "-c", TRAINS], check=True, capture_output=True, text=True)
    assert trained_apart.stdout == "True False\n"


@pytest.mark.parametrize("python", [sys.executable, "/bin/false", "/no/such/program"])
def test_training_apart_gives_the_same_model(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no process can be started, and if it fails."""
    monkeypatch.setattr(sys, "executable", python)
    assert same(fit_in_process(ROWS, LABELS), fit(ROWS, LABELS))
