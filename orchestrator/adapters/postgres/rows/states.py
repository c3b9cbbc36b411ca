"""The working state as it is stored: whole at some epoch, and as diffs since (ST-2).

A process remembers the states that it wrote last, each under the version of its row, which any change and any restart
of the server make another one.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.packing import Packed
from orchestrator.adapters.postgres.statements import parse, source
from orchestrator.adapters.postgres.tables import states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.types import Epoch, JsonObject, SessionId

KEPT_BYTES = 64 * 2**20
"""So much of states a process remembers; the one kept longest ago goes first."""

DIFFS = literal_column(parse(source("parts/diffs")).text, ARRAY(Packed)).label("diffs")
"""Column of a query over `states`: what came after `body`."""


async def fold(connection: AsyncConnection, session_id: SessionId) -> JsonObject | None:
    """Store a session's state whole, in a transaction that holds its lane; gives it. None: it has none yet."""
    here = states.c.session_id == session_id
    row = (await connection.execute(select(states.c.body, DIFFS).where(here))).one_or_none()
    if row is None:
        return None
    state = rebuild(row.body, row.diffs)
    now: dict[str, Any] = {"base_epoch": states.c.epoch, "body": state}
    await connection.execute(update(states).where(here).values(now))
    return state


class KnownState(NamedTuple):
    """The state of an epoch, under the version that its row had then; nothing, of a session that is not known."""

    version: str | None = None
    epoch: Epoch | None = None
    state: bytes | None = None


class KnownStates:
    """The states that this process wrote last, so that they are not sent again, or only what came after."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._room = most_bytes
        self._kept: OrderedDict[SessionId, tuple[KnownState, int]] = OrderedDict()

    def find(self, session_id: SessionId) -> KnownState:
        """What is known of a session."""
        return self._kept.get(session_id, _UNKNOWN)[0]

    def keep(self, session_id: SessionId, version: str | None, epoch: Epoch, state: bytes) -> None:
        """Remember a state by the version that its row has now; None: that was not to be learnt."""
        self._room += self._kept.pop(session_id, _UNKNOWN)[1]
        if version is None:
            return
        self._kept[session_id] = KnownState(version, epoch, state), len(state)
        self._room -= len(state)
        while self._room < 0:
            self._room += self._kept.popitem(last=False)[1][1]


_UNKNOWN = KnownState(), 0
