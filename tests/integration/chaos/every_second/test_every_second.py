"""A fault of every kind each second, with default settings: no turn is lost, duplicated, reordered or skipped
(RT-17).
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from orchestrator.errors import Unavailable
from tests.integration.chaos.checker import History, check, read_history
from tests.integration.chaos.every_second.world import DOWN, FAULTS, break_again_and_again, world
from tests.integration.chaos.processes.counting import EFFECTS
from tests.integration.chaos.submitting import Submitter, all_finished, submitter

AGAIN_AFTER_S = 0.2


@dataclass(frozen=True)
class Load:
    """Sessions with turns, spread over some seconds."""

    sessions: int
    turns: int
    seconds: float
    longest_freeze_s: float
    down_after: int | None = None


SHORT = Load(sessions=8, turns=5, seconds=8, longest_freeze_s=2)
LONG = Load(sessions=500, turns=20, seconds=270, longest_freeze_s=20, down_after=60)  # for a lease of 15 s


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler, which the shifted clocks need")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("load", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"])
async def test_nothing_is_lost_doubled_reordered_repeated_or_skipped(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        world(Path(folder), load.sessions, load.longest_freeze_s) as broken,
    ):
        with psycopg.connect(broken.database.url) as connection:
            connection.execute(EFFECTS)
        async with submitter(broken.database.url, broken.redis.url) as client:
            stopping = asyncio.Event()
            breaking = asyncio.create_task(
                break_again_and_again(broken, stopping, down_after=load.down_after)
            )
            await _submit_all(client, load)
            stopping.set()
            await breaking
            await all_finished(broken.database.url, within_s=300)
            history = read_history(broken.database.url, client.accepted)

    breaches = [*check(history), *_check_texts(history, load)]
    with capsys.disabled():
        faults = ", ".join(f"{name} {times}" for name, times in broken.happened.most_common())
        statuses = Counter(turn.status for turn in history.turns)
        print(
            f"\n{len(history.turns)} turns of {load.sessions} sessions in {time.monotonic() - began:.0f} s: {statuses};"
            f" {broken.happened.total()} faults: {faults}; breaches: {len(breaches)}"
        )
    assert breaches == []
    assert {turn.status for turn in history.turns} == {"done"}
    assert set(broken.happened) >= set(FAULTS) - ({DOWN} if load.down_after is None else set())
    for name, plant in PLANTED.items():
        assert check(plant(history)), f"the checker does not find what was {name}"


async def _submit_all(client: Submitter, load: Load) -> None:
    """Submit each session's turns in order, each until it is accepted."""
    chance = random.Random(load.turns)

    async def one(session: str) -> None:
        for number in range(load.turns):
            await asyncio.sleep(chance.uniform(0, 2) * load.seconds / load.turns)
            await _insist(client, session, number)

    async with asyncio.TaskGroup() as group:
        for number in range(load.sessions):
            group.create_task(one(f"session-{number}"))


async def _insist(client: Submitter, session: str, number: int) -> None:
    text = f"{number} {'effect ' if number % 2 else ''}wait 0.3"
    while True:
        try:
            await client.submit(session, text, key=f"{session}/{number}")
        except Unavailable:
            await asyncio.sleep(AGAIN_AFTER_S)
        else:
            return


def _check_texts(history: History, load: Load) -> list[str]:
    """Check that each session has each of its turns once, in submission order."""
    wanted = [str(number) for number in range(load.turns)]
    return [
        f"{name} has the turns {said}"
        for name, session in history.sessions.items()
        if (said := [(turn.text or "").split()[0] for turn in session.turns]) != wanted
    ]


def _lose(history: History) -> History:
    return replace(history, accepted=history.accepted | {"turn_never_stored"})


def _damaged(damage: Callable[[History, str], History]) -> Callable[[History], History]:
    return lambda history: damage(history, next(iter(history.sessions)))


def _double(history: History, name: str) -> History:
    session = history.sessions[name]
    twice = session.answers + Counter([session.turns[0].turn_id])
    return replace(history, sessions={**history.sessions, name: replace(session, answers=twice)})


def _reorder(history: History, name: str) -> History:
    session = history.sessions[name]
    first, second, *rest = session.turns
    turns = [replace(first, epoch=second.epoch), replace(second, epoch=first.epoch), *rest]
    return replace(history, sessions={**history.sessions, name: replace(session, turns=turns)})


def _repeat(history: History, name: str) -> History:
    turn = history.sessions[name].turns[0].turn_id
    return replace(history, effects=Counter({turn: 2}))


def _skip(history: History, name: str) -> History:
    session = history.sessions[name]
    return replace(
        history,
        sessions={
            **history.sessions,
            name: replace(session, epochs=session.epochs[:-2] + session.epochs[-1:]),
        },
    )


def _forget(history: History, name: str) -> History:
    return replace(history, states={**history.states, name: {"count": 0, "digest": "another"}})


PLANTED = {
    "lost": _lose,
    "doubled": _damaged(_double),
    "reordered": _damaged(_reorder),
    "repeated": _damaged(_repeat),
    "skipped": _damaged(_skip),
    "forgotten": _damaged(_forget),
}
