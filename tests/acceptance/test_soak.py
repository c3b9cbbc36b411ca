"""`parley soak` as a user runs it: real processes, real faults, a verdict (RT-17)."""

from __future__ import annotations

import os
from typing import Any

import orjson
import pytest

from tests.processes.forked import run


def run_soak(*options: str) -> dict[str, Any]:
    ended = run(("-m", "parley", "soak", "--json", *options), environment=os.environ)
    assert ended.stdout, ended.stderr
    report = orjson.loads(ended.stdout)
    assert ended.returncode == (1 if report["breaches"] else 0), ended.stderr
    return report


@pytest.mark.slow
def test_a_short_soak_breaks_things_and_no_promise() -> None:
    report = run_soak("--minutes", "0.05", "--sessions", "2", "--fault-every", "0.7", "--seed", "11")
    assert report["breaches"] == []
    assert sum(report["faults"].values()) >= 1
    assert report["turns"] >= 5 * report["conversations"] > 0


@pytest.mark.slow
def test_a_long_soak_meets_every_fault() -> None:
    report = run_soak("--minutes", "6", "--sessions", "20", "--fault-every", "2", "--seed", "3")
    assert report["breaches"] == []
    assert len(report["faults"]) == 7
