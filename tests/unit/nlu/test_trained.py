"""What System 1 has trained once is taken over by the next process, and by no other domain (NL-2, RT-21)."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from orchestrator.adapters.trained_files import TrainedFiles
from orchestrator.nlu import training as trained
from orchestrator.nlu.linear import LinearModel
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.training import FitOnce, fit, key_of, pack
from tests.unit.nlu.flights import AIRPORTS, ANSWERS, FLOWS, nothing_open, system1

ROWS = [{"w:go": 1.0, "b:go on": 0.5}, {"w:stop": 1.0}, {"w:go": 0.7}, {"w:stop": 0.9, "w:now": 0.2}]
LABELS = ["go", "stop", "go", "stop"]
KEY = key_of(ROWS, LABELS, 1.0)

STARTS = """
import sys
from pathlib import Path
from orchestrator.adapters.trained_files import TrainedFiles
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.training import FitOnce

FitOnce(TrainedFiles(Path(sys.argv[1])))([{"a": 1.0}, {"b": 1.0}] * 2, ["go", "stop"] * 2, 1.0)
print("trained" if "sklearn" in sys.modules else "taken over")
"""


class Kept(dict[str, bytes]):
    """`ports.trained.TrainedModels` in memory."""

    def put(self, key: str, content: bytes) -> None:
        self[key] = content


def same(one: LinearModel, other: LinearModel) -> bool:
    return (
        one.labels == other.labels
        and one.sharpness == other.sharpness
        and list(one.rows) == list(other.rows)
        and all(np.array_equal(one.rows[name], other.rows[name]) for name in one.rows)
        and np.array_equal(one.bias, other.bias)
    )


def test_what_was_kept_is_what_training_gives_to_the_last_bit() -> None:
    kept = Kept()
    first = FitOnce(kept)(ROWS, LABELS, 1.0)
    second = FitOnce(kept)(ROWS, LABELS, 1.0)
    assert list(kept) == [KEY]
    assert first is not second
    assert same(first, fit(ROWS, LABELS, 1.0))
    assert same(second, first)


def test_what_was_kept_is_not_trained_again() -> None:
    marked = replace(fit(ROWS, LABELS, 1.0), sharpness=123.0)
    assert FitOnce(Kept({KEY: pack(marked, KEY)}))(ROWS, LABELS, 1.0).sharpness == 123.0


def test_a_model_without_rows_is_kept_too() -> None:
    kept = Kept()
    assert same(FitOnce(kept)([], [], 1.0), FitOnce(kept)([], [], 1.0))


def test_another_example_label_or_strength_is_another_model() -> None:
    other_rows = [*ROWS[:-1], {"w:stop": 0.9, "w:now": 0.3}]
    keys = {
        KEY,
        key_of(other_rows, LABELS, 1.0),
        key_of(ROWS, ["go", "stop", "stop", "stop"], 1.0),
        key_of(ROWS, LABELS, 2.0),
    }
    assert len(keys) == 4


@pytest.mark.parametrize("changed", range(len(trained._surroundings())))
def test_other_code_or_another_release_of_a_library_is_another_model(
    monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    surroundings = list(trained._surroundings())
    surroundings[changed] += "+"
    monkeypatch.setattr(trained, "_surroundings", lambda: tuple(surroundings))
    assert key_of(ROWS, LABELS, 1.0) != KEY


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def _pickled(content: bytes) -> bytes:
    file = io.BytesIO()
    np.savez(file, about=np.array([{"key": KEY}], dtype=object), weights=np.zeros((1, 1)))
    return file.getvalue()


def _of_another_key(content: bytes) -> bytes:
    return pack(fit(ROWS, LABELS, 2.0), "0" * 64)


def _not_a_number(content: bytes) -> bytes:
    model = fit(ROWS, LABELS, 1.0)
    return pack(replace(model, rows=model.rows | {"w:go": np.array([np.nan, 0.0])}), KEY)


def _of_another_shape(content: bytes) -> bytes:
    return pack(replace(fit(ROWS, LABELS, 1.0), bias=np.zeros(3)), KEY)


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
    content = pack(fit(ROWS, LABELS, 1.0), KEY)
    kept = Kept({KEY: spoil(content)})
    with capture_logs() as logs:
        model = FitOnce(kept)(ROWS, LABELS, 1.0)
    assert same(model, fit(ROWS, LABELS, 1.0))
    assert [entry["event"] for entry in logs] == ["A kept model cannot be used; it is trained anew."]
    assert same(FitOnce(kept)(ROWS, LABELS, 1.0), model)
    assert kept[KEY] != spoil(content)


def test_a_domain_understands_the_same_from_what_was_kept() -> None:
    kept = Kept()
    for _ in range(2):
        taken = System1.train(FLOWS, {"airport": AIRPORTS}, ANSWERS, fit=FitOnce(kept))
    assert len(kept) == 2  # what a message wants, and which value fills which slot
    for text in ("please book two seats to Madrid", "from Oslo", "cancel AB12CD", "hello"):
        assert taken.think(text, nothing_open()) == system1().think(text, nothing_open())


def test_a_process_that_takes_over_does_not_even_load_what_trains(tmp_path: Path) -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", STARTS, str(tmp_path)], check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert told == ["trained", "taken over"]
    assert TrainedFiles(tmp_path).get("0" * 64) is None
