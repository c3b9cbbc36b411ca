"""The stored working state: a snapshot at some epoch, and later diffs (ST-2).

A process remembers the states it wrote last with their row versions, which any change or restart of the
server invalidates.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, JSON, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.statements import parse, source
from orchestrator.adapters.postgres.tables import states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.types import Epoch, JsonObject, SessionId

KEPT_BYTES = 64 * 2**20
"""Memory limit for remembered states, in bytes; the oldest are evicted first."""

DIFFS = literal_column(parse(source("parts/diffs")).text, ARRAY(JSON)).label("diffs")
"""Query column over `states`: the diffs after `body`."""


async def fold(connection: AsyncConnection, session_id: SessionId) -> JsonObject | None:
    """Store a session's state as a snapshot and return it, or None if it has none.

    Runs in a transaction that holds the session's lane.
    """
    here = states.c.session_id == session_id
    row = (await connection.execute(select(states.c.body, DIFFS).where(here))).one_or_none()
    if row is None:
        return None
    state = rebuild(row.body, row.diffs)
    now: dict[str, Any] = {"base_epoch": states.c.epoch, "body": state}
    await connection.execute(update(states).where(here).values(now))
    return state


class KnownState(NamedTuple):
    """The state of an epoch with its row version; empty for an unknown session."""

    version: str | None = None
    epoch: Epoch | None = None
    state: bytes | None = None


class KnownStates:
    """The states that this process wrote last, so that only later changes are fetched."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._room = most_bytes
        self._kept: OrderedDict[SessionId, tuple[KnownState, int]] = OrderedDict()

    def find(self, session_id: SessionId) -> KnownState:
        """Return what is known of a session."""
        return self._kept.get(session_id, _UNKNOWN)[0]

    def keep(self, session_id: SessionId, version: str | None, epoch: Epoch, state: bytes) -> None:
        """Remember a state under its row version; None if the version is unknown."""
        self._room += self._kept.pop(session_id, _UNKNOWN)[1]
        if version is None:
            return
        self._kept[session_id] = KnownState(version, epoch, state), len(state)
        self._room -= len(state)
        while self._room < 0:
            self._room += self._kept.popitem(last=False)[1][1]


_UNKNOWN = KnownState(), 0
