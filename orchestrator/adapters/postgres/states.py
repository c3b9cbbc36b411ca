"""The stored working state: a snapshot and the diffs that follow it (ST-2)."""

from typing import Any

from sqlalchemy import ARRAY, JSON, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.statements import parse, source
from orchestrator.adapters.postgres.tables import states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.types import JsonObject, SessionId

DIFFS = literal_column(parse(source("parts/diffs")).text, ARRAY(JSON)).label("diffs")
"""A query column of `states`: the diffs since `body`."""


async def fold(connection: AsyncConnection, session_id: SessionId) -> JsonObject | None:
    """Merge a session's diffs into its stored state. Return the state, or None if the session has no state.

    The transaction must hold the lock on the session's lane.
    """
    here = states.c.session_id == session_id
    row = (await connection.execute(select(states.c.body, DIFFS).where(here))).one_or_none()
    if row is None:
        return None
    state = rebuild(row.body, row.diffs)
    now: dict[str, Any] = {"base_epoch": states.c.epoch, "body": state}
    await connection.execute(update(states).where(here).values(now))
    return state
