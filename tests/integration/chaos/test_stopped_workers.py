"""Turns of real workers, stopped at every 50 ms in five ways, and submitted again (RT-25).

Each turn makes two calls with side effects: the first is fast, the second slow. An external service counts
them.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from internal_flows.maintenance.states import REPAIR_STATE
from orchestrator.bootstrap import Ports
from orchestrator.ports.runs.records import RunRecord
from orchestrator.turns.turn import FINISHED, IfBusy, TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId
from tests.conversation import submit
from tests.integration.chaos.errands import served
from tests.integration.chaos.fleet import Fleet, Worker, fleet

ROOT = Path(__file__).resolve().parents[3]
MAILROOM = ROOT / "tests" / "domains" / "mailroom"
SERVICES = Path(__file__).parent / "processes" / "outside_mailroom.py"
APPLICATION = "workers.app"
ASK = "send a parcel to Bob"
QUICK_S = 0.05
WITHIN_S = 120
NAMES = {"label": "Print a label", "parcel": "Send a parcel"}
"""Names of the calls, in order."""
AT_ONCE = 21
"""Number of turns that one shutdown or kill ends."""

Times: TypeAlias = tuple[float, float]
"""Duration of the slow call, and interval between the stops, in seconds."""
FEW: Times = 1.0, 0.2
MANY: Times = 3.95, 0.05


class Outside:
    """A counter of calls by kind and session, at their start."""

    def __init__(self, slow_s: float) -> None:
        self.url = ""
        self.slow_s = slow_s
        self.held_s: dict[str, float] = {}
        """Delay of the first call by session, in seconds."""
        self.calls: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        if path == "label":
            time.sleep(self.held_s.pop(body["session"], 0.0))
        with self._lock:
            self.calls[path, body["session"]] += 1
        time.sleep(self.slow_s if path == "parcel" else QUICK_S)
        return {}


@dataclass
class Setting:
    """Stopped turns. `stopped`: sessions whose turn had not ended when it was stopped."""

    ports: Ports
    crew: Fleet
    world: Outside
    deadline_s: float
    stopped: set[str] = field(default_factory=set)

    async def submit(self, session: str, text: str = ASK, if_busy: IfBusy = IfBusy.ENQUEUE) -> TurnId:
        return (await submit(self.ports, session, text, if_busy=if_busy)).turn_id

    async def ended(self, session: str, turn_id: TurnId) -> TurnRecord:
        return await self.ports.waiter(DEFAULT_TENANT, SessionId(session), turn_id, WITHIN_S)

    async def note_unended(self, session: str, turn_id: TurnId) -> None:
        turn = await self.ports.stores.inbox.turn(DEFAULT_TENANT, turn_id)
        if turn.status not in FINISHED:
            self.stopped.add(session)

    async def find_repairs(self, within_s: float) -> list[RunRecord]:
        """List the status queries for sessions whose worker died, and wait for a query if necessary."""
        until = time.monotonic() + within_s
        while True:
            found = await self.ports.stores.runs.list(DEFAULT_TENANT, flow=REPAIR_STATE)
            if found or time.monotonic() >= until:
                return found
            await asyncio.sleep(0.2)

    def counts(self, session: str) -> dict[str, int]:
        return {kind: self.world.calls[kind, session] for kind in NAMES}


Moments: TypeAlias = dict[str, float]
"""Delay of the stop after the submission, by session."""
Stop: TypeAlias = Callable[[Setting, Moments], Awaitable[dict[str, TurnId]]]


async def submit_in_turn(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    """Submit the turns so that all are stopped at the same moment."""
    turns: dict[str, TurnId] = {}
    began, longest = time.monotonic(), max(moments.values())
    for session, moment in sorted(moments.items(), key=lambda pair: -pair[1]):
        await asyncio.sleep(began + longest - moment - time.monotonic())
        turns[session] = await setting.submit(session)
    await asyncio.sleep(began + longest - time.monotonic())
    return turns


async def by_deadline(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    """Stop by deadline: all turns have the same deadline, so the first call delays its work."""
    setting.world.held_s = {
        session: setting.deadline_s - moment - QUICK_S for session, moment in moments.items()
    }
    turns: dict[str, TurnId] = {}
    for session in moments:
        turns[session] = await setting.submit(session)
        await asyncio.sleep(QUICK_S)
    for session, turn_id in turns.items():
        if (await setting.ended(session, turn_id)).status is TurnStatus.FAILED:
            setting.stopped.add(session)
    return turns


async def _one_by_one(
    setting: Setting, moments: Moments, stop: Callable[[str, TurnId], Awaitable[object]]
) -> dict[str, TurnId]:
    async def one(place: int, session: str, moment: float) -> tuple[str, TurnId]:
        await asyncio.sleep(place * QUICK_S)
        turn_id = await setting.submit(session)
        await asyncio.sleep(moment)
        await setting.note_unended(session, turn_id)
        await stop(session, turn_id)
        return session, turn_id

    stopping = (one(place, *pair) for place, pair in enumerate(moments.items()))
    return dict(await asyncio.gather(*stopping))


async def by_cancel(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    inbox = setting.ports.stores.inbox
    return await _one_by_one(setting, moments, lambda _, turn_id: inbox.cancel(DEFAULT_TENANT, turn_id))


async def by_interrupt(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    return await _one_by_one(
        setting, moments, lambda session, _: setting.submit(session, "read the web page", IfBusy.INTERRUPT)
    )


async def _with_the_worker(
    setting: Setting, moments: Moments, end: Callable[[Worker], object]
) -> dict[str, TurnId]:
    """Repeatedly end the worker during several turns, and continue with another."""
    turns: dict[str, TurnId] = {}
    rounds = -(-len(moments) // AT_ONCE)
    for number in range(rounds):
        share = dict(list(moments.items())[number::rounds])
        submitted = await submit_in_turn(setting, share)
        for session, turn_id in submitted.items():
            await setting.note_unended(session, turn_id)
        await asyncio.to_thread(end, setting.crew.workers[-1])
        await asyncio.to_thread(setting.crew.start, application=APPLICATION)
        turns |= submitted
    return turns


async def by_shutdown(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    return await _with_the_worker(setting, moments, Worker.stop)


async def by_kill(setting: Setting, moments: Moments) -> dict[str, TurnId]:
    return await _with_the_worker(setting, moments, Worker.kill)


WAYS: dict[str, Stop] = {
    "deadline": by_deadline,
    "cancel": by_cancel,
    "interrupt": by_interrupt,
    "shutdown": by_shutdown,
    "kill": by_kill,
}
SHORT = ("cancel", "kill")
"""Kinds of stop to test here. Other kinds are equivalent; `tests/unit/agent/test_stopped_turns.py` tests all."""


@asynccontextmanager
async def mailroom(
    database_url: str, redis_url: str, folder: Path, slow_s: float, way: str
) -> AsyncIterator[Setting]:
    """Yield a worker of a mailroom with external calls."""
    domain = folder / "mailroom"
    shutil.copytree(MAILROOM, domain)
    shutil.copy(SERVICES, domain / "services.py")
    with (domain / "domain.yaml").open("a") as configuration:
        configuration.write("\nresilience: {tool_timeout_ms: 60000}\n")
    world, deadline_s = Outside(slow_s), slow_s + 1.0 if way == "deadline" else 120.0
    with served(world):
        environment = {
            "PARLEY_DOMAIN": str(domain),
            "PARLEY_TURN_DEADLINE_S": str(deadline_s),
            "PARLEY_SHUTDOWN_GRACE_S": "0.1",
            "MAILROOM_URL": world.url,
        }
        with fleet(database_url, redis_url, folder, environment) as crew:
            await asyncio.to_thread(crew.start, application=APPLICATION)
            async with crew.ports(PARLEY_DOMAIN=str(domain)) as ports:
                yield Setting(ports, crew, world, deadline_s)


@pytest.mark.parametrize("times", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize(
    "way", [way if way in SHORT else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
async def test_a_stopped_turn_does_nothing_twice_and_its_answers_name_what_was_done(
    way: str,
    times: Times,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow_s, every_s = times
    moments = {
        f"{way}-{slow_s}-{number}": number * every_s for number in range(round((slow_s + 0.25) / every_s))
    }
    async with mailroom(database_url, redis_url, tmp_path, slow_s, way) as setting:
        turns = await WAYS[way](setting, moments)
        answers = {session: await setting.ended(session, turn_id) for session, turn_id in turns.items()}
        before = {session: setting.counts(session) for session in moments}
        setting.world.slow_s = QUICK_S
        setting.world.held_s.clear()
        completed = {session for session, turn in answers.items() if _has_completed(turn)}
        again = {session: await setting.submit(session) for session in moments if session not in completed}
        resent = {session: await setting.ended(session, turn_id) for session, turn_id in again.items()}
        after = {session: setting.counts(session) for session in moments}
        repairs = await setting.find_repairs(WITHIN_S if way == "kill" else 0)

    with capsys.disabled():
        statuses = Counter(turn.status.value for turn in answers.values())
        midway = Counter(str(before[session]) for session in again)
        print(
            f"\n{way}: {len(setting.stopped)} stops of {len(moments)} turns, ended {dict(statuses)}; "
            f"sent again after {dict(midway)}"
        )
    assert max(max(counts.values()) for counts in after.values()) == 1, after
    assert bool(repairs) == (way == "kill"), (
        "the sessions of a worker that died are looked through, and no others"
    )
    for session, turn in resent.items():
        done, first, second = before[session], _reply(answers[session]), _reply(turn)
        shown = session, done, first, second
        named = [NAMES[kind] for kind, times in done.items() if times]
        if answers[session].status is not TurnStatus.DONE:  # continued: only the last call is uncertain
            assert [name for name in named if name not in first] == [], shown
        if named:
            assert named[-1] in first, shown
            assert named[-1] in second or _has_completed(turn), shown
            assert "send it again" not in f"{first} {second}".lower(), shown
        elif "can't tell" not in first:  # started, but may not have arrived: the user decides
            assert set(after[session].values()) == {1}, shown
    assert len(setting.stopped) >= len(moments) - 0.35 / every_s - 1


def _reply(turn: TurnRecord) -> str:
    return turn.result["reply"] if turn.result else ""


def _has_completed(turn: TurnRecord) -> bool:
    return turn.result is not None and "send_parcel" in turn.result.get("completed", ())
