"""Collect session content for session flows, which have no privileges on the session tables."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.states import DIFFS
from orchestrator.adapters.postgres.tables import sessions, states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.ports.material import CONVERSATION, HABITS, HISTORY, Conversation, History, SlotUse
from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, UserId, is_list, is_object

NEWEST = 200
"""Maximum number of turns, rows or tasks per session."""


class PostgresSessionMaterial:
    """A reader of session content for background flows, with the runtime's database privileges."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def collect(
        self, tenant_id: TenantId, session_id: SessionId, names: tuple[str, ...]
    ) -> Mapping[str, Any]:
        """Return the material named in `names` (CONVERSATION, HABITS or HISTORY), by name. Raises Unavailable."""
        readers = {CONVERSATION: self._conversation, HABITS: self._habits, HISTORY: self._history}
        return {name: await readers[name](tenant_id, session_id) for name in names}

    async def _conversation(self, tenant_id: TenantId, session_id: SessionId) -> Conversation | None:
        """Read the conversation and its epoch from the same state. Return None if the session has no state."""
        query = (
            select(sessions.c.user_id, sessions.c.domain, states.c.epoch, states.c.body, DIFFS)
            .join(states, states.c.session_id == sessions.c.session_id)
            .where(sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id)
        )
        row = await self._database.read_one(query)
        if row is None:
            return None
        state = rebuild(row.body, row.diffs)
        earlier: JsonObject = state.get("summary") or {"text": "", "through_turn": 0}
        lines = [line for line in state["messages"] if line["turn"] > earlier["through_turn"]]
        return Conversation(
            user_id=None if row.user_id is None else UserId(row.user_id),
            domain=row.domain,
            epoch=Epoch(row.epoch),
            earlier=earlier["text"],
            lines=lines,
            through_turn=max((line["turn"] for line in lines), default=earlier["through_turn"]),
            labels=sorted({source["label"] for source in state.get("labels", ())}),
        )

    async def _habits(self, tenant_id: TenantId, session_id: SessionId) -> list[SlotUse]:
        arguments = {"tenant_id": tenant_id, "session_id": session_id}
        return [SlotUse(*row) for row in await self._database.fetch_all(statement("habits"), arguments)]

    async def _history(self, tenant_id: TenantId, session_id: SessionId) -> History:
        arguments = {"tenant_id": tenant_id, "session_id": session_id, "most": NEWEST}
        found = await self._database.fetch_one(statement("session_history"), arguments)
        assert found is not None
        tasks, turns, frames = found
        return History(
            tasks,
            turns,
            [row for frame in frames for row in _rows_of(frame.get("data"))][:NEWEST],
        )


def _rows_of(data: Json) -> list[JsonObject]:
    """Return the objects in the lists in a frame's data, or the data object itself if it has no lists."""
    if is_object(data):
        nested = [row for value in data.values() for row in _rows_of(value) if is_list(value)]
        return nested or [data]
    return [row for row in data if is_object(row)] if is_list(data) else []
