"""The working state as it is stored: whole at some epoch, and as diffs since (ST-2).

Whoever reads it gets it whole. A process remembers the states that it wrote or read last, each under the version of
its row, which any change and any restart of the server make another one.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ARRAY, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.packing import Packed, unpack, unpack_json
from orchestrator.adapters.postgres.statements import parse, source
from orchestrator.adapters.postgres.tables import states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.types import JsonObject, SessionId

KEPT_BYTES = 64 * 2**20
"""So much of states a process remembers; the one kept longest ago goes first."""

DIFFS = literal_column(parse(source("parts/diffs")).text, ARRAY(Packed)).label("diffs")
"""Column of a query over `states`: what came after `body`."""


def write_whole(body: bytes, diffs: Sequence[bytes]) -> bytes:
    """The state of a row of `states`, as JSON; both are given packed."""
    return orjson.dumps(rebuild(unpack_json(body), map(unpack_json, diffs))) if diffs else unpack(body)


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


class KnownStates:
    """The states that this process wrote or read last, so that they are not sent and put together again."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._room = most_bytes
        self._kept: OrderedDict[SessionId, tuple[str, bytes]] = OrderedDict()

    def find(self, session_id: SessionId) -> tuple[str | None, bytes | None]:
        """The version that is known, and the state."""
        return self._kept.get(session_id, (None, None))

    def keep(self, session_id: SessionId, version: str | None, state: bytes) -> None:
        """Remember a state by the version that its row has now; None: that was not to be learnt."""
        _, before = self._kept.pop(session_id, (None, b""))
        self._room += len(before)
        if version is None:
            return
        self._kept[session_id] = (version, state)
        self._room -= len(state)
        while self._room < 0:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._room += len(oldest)
