"""Processes for suspected turns (RT-26)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.settings import Settings
from orchestrator.types import SessionId
from workers import isolation


@pytest.mark.parametrize("error", [OSError("no room for a process"), EOFError()])
async def test_a_session_whose_process_cannot_start_is_offered_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    offered: asyncio.Queue[SessionId] = asyncio.Queue()
    monkeypatch.setattr(isolation._FORKS, "Process", fail)
    monkeypatch.setattr(isolation, "PAUSE_S", 0)
    settings = cast("Settings", SimpleNamespace(turn_deadline_s=1.0))
    suspects = isolation.Isolation(
        settings, cast("Any", None), cast("Any", SimpleNamespace(offer=offered.put))
    )

    suspects.start(SessionId("s"), 2)

    assert await offered.get() == SessionId("s")
