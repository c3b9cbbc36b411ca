"""A worker that trains a domain frees the memory afterward."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from orchestrator.bootstrap import build_agent, open_ports
from orchestrator.nlu.system1 import reader
from orchestrator.nlu.system1.training import process
from orchestrator.settings import read_settings


def count_files(folder: Path) -> int:
    return len([*folder.iterdir()])


async def test_an_agent_is_trained_in_another_process(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """scikit-learn would keep 100 MB until the worker ends."""
    settings = read_settings(
        DATABASE_URL=database_url, REDIS_URL=redis_url, PARLEY_TRAINED_FOLDER=str(tmp_path)
    )
    for module in (reader, process):  # also without the fallback
        monkeypatch.setattr(module, "fit", None)
    async with open_ports(settings) as ports:
        await asyncio.to_thread(build_agent, ports.domains.resolve(None), ports)

    assert count_files(tmp_path) == 1
