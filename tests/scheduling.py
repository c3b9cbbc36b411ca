"""Order and distribution of test files: long files first, and files with a shared stack in one process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TIMES: Final = Path(__file__).with_name("times.json")
"""File with the seconds of long units; `make test-times` updates it."""
WORTH_NOTING_S: Final = 2.0
TOGETHER: Final = ("tests/browser", "tests/shape")
"""Folders with expensive shared fixtures, such as a stack or parsed sources, which one process runs."""
FEWEST: Final = 2
MOST: Final = 6


def count_processes() -> int:
    """Return two for each core, because tests that wait for other processes don't use their core."""
    return max(FEWEST, min(MOST, 2 * len(os.sched_getaffinity(0))))


def unit_of(nodeid: str) -> str:
    """Return the scheduling unit of a test: its file, or the folder that shares a stack."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in TOGETHER if path.startswith(f"{folder}/")), path)


def put_long_ones_first(items: list[pytest.Item]) -> None:
    """Sort units by their last recorded time, so that no long unit is left alone at the end."""
    known: dict[str, float] = json.loads(TIMES.read_bytes())
    items.sort(key=lambda item: -known.get(unit_of(item.nodeid), 0.0))


def note_times(seconds: Mapping[str, float]) -> None:
    """Write the times of long units, longest first."""
    long = {unit: round(took) for unit, took in seconds.items() if took >= WORTH_NOTING_S}
    ordered = dict(sorted(long.items(), key=lambda each: (-each[1], each[0])))
    TIMES.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


class UnitScheduling(LoadScopeScheduling):
    """A scheduler that distributes units in collection order."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
