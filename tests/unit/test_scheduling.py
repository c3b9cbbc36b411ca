"""Test files run longest first, and those that share a stack run in one process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import scheduling
from tests.scheduling import count_processes, note_times, put_long_ones_first, unit_of


def items(*nodeids: str) -> list[Any]:
    return [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]


def test_a_file_is_a_unit_and_so_are_all_that_share_a_stack() -> None:
    assert unit_of("tests/unit/test_logs.py::test_one[a::b]") == "tests/unit/test_logs.py"
    assert unit_of("tests/browser/test_talking.py::test_one") == unit_of(
        "tests/browser/test_reading.py::test_two"
    )


def test_what_took_longest_is_begun_first_and_the_rest_keeps_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "TIMES", tmp_path / "times.json")
    note_times({"b.py": 5.0, "c.py": 60.4, "a.py": 0.3})
    assert list(json.loads((tmp_path / "times.json").read_bytes()).items()) == [("c.py", 60), ("b.py", 5)]

    found = items("d.py::1", "a.py::1", "b.py::1", "b.py::2", "c.py::1")
    put_long_ones_first(found)

    assert [item.nodeid for item in found] == ["c.py::1", "b.py::1", "b.py::2", "d.py::1", "a.py::1"]


@pytest.mark.parametrize(("cores", "processes"), [(1, 2), (2, 4), (3, 6), (64, 6)])
def test_there_are_more_processes_than_cores_but_not_many(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))

    assert count_processes() == processes
