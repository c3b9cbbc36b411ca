"""Processes for suspected poison turns (RT-26)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.settings import Settings
from orchestrator.types import SessionId
from workers import isolation


def isolate(offered: asyncio.Queue[SessionId], forks: object) -> isolation.Isolation:
    wakeup = SimpleNamespace(offer=offered.put)
    settings = cast("Settings", SimpleNamespace(turn_deadline_s=1.0))
    return isolation.Isolation(settings, cast("Any", None), cast("Any", wakeup), cast("Any", forks))


@pytest.mark.parametrize("error", [OSError("no room for a process"), EOFError()])
async def test_a_session_whose_process_cannot_start_is_offered_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    offered: asyncio.Queue[SessionId] = asyncio.Queue()
    monkeypatch.setattr(isolation._FORKS, "Process", fail)
    monkeypatch.setattr(isolation, "PAUSE_S", 0)
    suspects = isolate(offered, None)

    suspects.start(SessionId("s"), 2)

    assert await offered.get() == SessionId("s")


class Forks:
    """Starts no process, but a pipe. Records the sessions and the limit of each process."""

    def __init__(self) -> None:
        self.started: list[tuple[Sequence[SessionId], int | None]] = []
        self.pipes: list[Connection] = []

    def start(self, members: Sequence[SessionId], below: int | None) -> Connection:
        self.started.append((members, below))
        reader, writer = Pipe(duplex=False)
        self.pipes.append(writer)
        return reader


async def test_turns_of_one_crash_share_a_process_and_are_offered_as_they_end() -> None:
    forks, offered = Forks(), asyncio.Queue[SessionId]()
    one, two, other = map(SessionId, ("one", "two", "other"))
    suspects = isolate(offered, forks)
    for session_id, crashes in ((one, 2), (two, 2), (one, 2), (other, 4)):
        suspects.start(session_id, crashes)
    while len(forks.pipes) < 2:
        await asyncio.sleep(0.01)
    assert sorted(forks.started) == [([one, two], 3), ([other], None)]

    shared = forks.pipes[[members for members, _ in forks.started].index([one, two])]
    shared.send((isolation._DONE, (two,), {}))
    assert await offered.get() == two
    shared.close()  # the process crashed
    assert await offered.get() == one
    await suspects.close()
    for pipe in forks.pipes:
        pipe.close()


async def test_turns_that_come_slowly_do_not_wait_for_those_that_run() -> None:
    forks = Forks()
    sessions = [SessionId(f"s{number}") for number in range(30)]
    suspects = isolate(asyncio.Queue(), forks)
    for session_id in sessions:
        suspects.start(session_id, 2)
        await asyncio.sleep(isolation.GATHER_S * 0.75)
    async with asyncio.timeout(10):
        while sum(len(members) for members, _ in forks.started) < len(sessions):
            await asyncio.sleep(0.01)
    assert [session_id for members, _ in forks.started for session_id in members] == sessions
    assert len(forks.started) < isolation.AT_ONCE
    await suspects.close()
    for pipe in forks.pipes:
        pipe.close()


async def test_without_its_fork_server_a_worker_uses_that_of_multiprocessing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended:
        def start(self, *_: object) -> Connection:
            raise BrokenPipeError

    begun = list[object]()

    def begin(**arguments: object) -> SimpleNamespace:
        return SimpleNamespace(start=lambda: begun.append(arguments))

    monkeypatch.setattr(isolation._FORKS, "Process", begin)
    offered = asyncio.Queue[SessionId]()
    suspects = isolate(offered, Ended())

    suspects.start(SessionId("s"), 2)

    assert await offered.get() == SessionId("s")
    assert len(begun) == 1
