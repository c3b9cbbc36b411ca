"""A small agent whose state counts its turns, so that lane errors show in the count.

The turn's text is a program with words such as ``wait 0.2``, ``until FILE``, ``effect``, ``fail``, ``exit``.
The result contains the process ID.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import orjson

from orchestrator.adapters.postgres.statements import parse
from orchestrator.bootstrap import Ports
from orchestrator.runtime.journal import Journal
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import NotBegun, UnknownOutcome
from orchestrator.turns.turn import TurnStatus

LOOK_EVERY_S = 0.05
EMPTY = {"count": 0, "digest": ""}
EFFECTS = """CREATE TABLE IF NOT EXISTS counted_effects (
    id bigserial PRIMARY KEY, session_id text, turn_id text, idempotency_key text)"""

INSERT_EFFECT = parse(
    "INSERT INTO counted_effects (session_id, turn_id, idempotency_key)"
    " VALUES (%(session)s, %(turn)s, %(key)s) RETURNING id"
)


def fold(state: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the state after another turn: the count and a digest of all texts so far."""
    digest = hashlib.sha256(f"{state['digest']}|{text}".encode()).hexdigest()[:16]
    return {"count": state["count"] + 1, "digest": digest}


class CountingAgent:
    deadline_s = 600.0

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        before = orjson.loads(lease.present_state) if lease.present_state else EMPTY
        text = work.input.text or ""
        effect = await self._obey(text.split(), lease, journal)
        state = fold(before or EMPTY, text)
        reply = f"{state['count']} {effect}".strip()
        return TurnCommit(
            status=TurnStatus.DONE,
            state=orjson.dumps(state),
            diff=orjson.dumps(state),
            snapshot=False,
            result={"reply": reply, "count": state["count"], "pid": os.getpid()},
            events=(Event(lease.session_id, "answer", work.turn_id, {"reply": reply}),),
        )

    async def _obey(self, words: list[str], lease: Lease, journal: Journal) -> str:
        said = ""
        for place, word in enumerate(words):
            if word in {"wait", "until"} and journal.stopped:
                break  # report completed calls, and make no further calls
            if word == "wait":
                await asyncio.sleep(float(words[place + 1]))
            elif word == "until":
                await _exists(Path(words[place + 1]))
            elif word == "fail":
                raise RuntimeError("told to fail")
            elif word == "exit":
                os._exit(3)
            elif word == "effect":
                said = await self._have_effect(lease, journal)
        return said

    async def _have_effect(self, lease: Lease, journal: Journal) -> str:
        """Have an effect outside the turn's transaction, which only the journal prevents from repeating."""

        async def insert(idempotency_key: str) -> str:
            await self._ports.stores.database.fetch_all(
                INSERT_EFFECT,
                {"session": lease.session_id, "turn": journal.turn_id, "key": idempotency_key},
            )
            return "had effect"

        outcome = await journal.call("tool:effect:1", "tool", {"of": "effect"}, insert, idempotent=False)
        return "unknown" if isinstance(outcome, UnknownOutcome | NotBegun) else outcome


async def _exists(path: Path) -> None:
    while not await asyncio.to_thread(path.exists):
        await asyncio.sleep(LOOK_EVERY_S)


def build(domain: str, ports: Ports) -> CountingAgent:
    return CountingAgent(ports)
