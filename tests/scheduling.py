"""In which order, and in how many processes, files are run: the longest first, and what shares a stack together."""

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
"""How many seconds the long ones took; `make test-times` writes them anew."""
WORTH_NOTING_S: Final = 2.0
TOGETHER: Final = ("tests/browser", "tests/shape")
"""Folders whose files share what is dear, a stack or the parsed sources, so that one process runs them all."""
FEWEST: Final = 2
MOST: Final = 6


def count_processes() -> int:
    """Two for each core, since a test that waits for others' processes leaves its core to them."""
    return max(FEWEST, min(MOST, 2 * len(os.sched_getaffinity(0))))


def unit_of(nodeid: str) -> str:
    """Return what a test is run together with: its file, or the folder that shares a stack."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in TOGETHER if path.startswith(f"{folder}/")), path)


def put_long_ones_first(items: list[pytest.Item]) -> None:
    """Sort by what each unit took the last time that somebody noted it, so that none is left alone at the end."""
    known: dict[str, float] = json.loads(TIMES.read_bytes())
    items.sort(key=lambda item: -known.get(unit_of(item.nodeid), 0.0))


def note_times(seconds: Mapping[str, float]) -> None:
    """Write how long the units took that are worth noting, the longest first."""
    long = {unit: round(took) for unit, took in seconds.items() if took >= WORTH_NOTING_S}
    ordered = dict(sorted(long.items(), key=lambda each: (-each[1], each[0])))
    TIMES.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


class UnitScheduling(LoadScopeScheduling):
    """Hands out units in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
