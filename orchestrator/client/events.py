"""A session's events as clients read them: lines to events, and where to go on after an interruption. No network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from orchestrator.client.calls import Call, follow_events
from orchestrator.types import JsonObject

SILENT_FOR_S: Final = 40.0
"""The gateway sends a comment every 15 seconds; a connection that is silent for so long is dead."""
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
FROM_THE_END: Final = 2**53
"""A number beyond the log's end: only what comes from now on."""


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """What happened in a session.

    `number` is its place in the log; None for what is only told live: tokens, and what a turn at work does
    (the same comes again with a number when the turn is done).
    """

    session_id: str
    type: str
    turn_id: str | None
    payload: JsonObject
    number: int | None


class Following:
    """Where a client is in a session's log. Durable events come out once each, whatever is sent twice.

    `after` None: from the log's end on.
    """

    def __init__(self, session_id: str, after: int | None) -> None:
        self._session_id = session_id
        self._last = after
        self._data: list[str] = []
        self._pauses = 0

    def call(self) -> Call:
        """The request that goes on after the last event."""
        self._data.clear()
        return follow_events(self._session_id, FROM_THE_END if self._last is None else self._last)

    def take(self, line: str) -> SessionEvent | None:
        """Take a line without its end; the event that it completes, if it does and is new."""
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))
        if line or not self._data:
            return None
        body: JsonObject = orjson.loads("\n".join(self._data))
        self._data.clear()
        self._pauses = 0
        number: int | None = body["number"]
        if number is not None:
            if self._last is not None and number <= self._last:
                return None
            self._last = number
        return SessionEvent(self._session_id, body["type"], body["turn_id"], body["payload"], number)

    def pause_s(self) -> float:
        """How long to wait before the next attempt: longer each time, until something is heard."""
        self._pauses += 1
        return min(FIRST_PAUSE_S * 2 ** (self._pauses - 1), LONGEST_PAUSE_S)
