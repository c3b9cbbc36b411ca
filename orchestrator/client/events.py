"""A session's events as clients read them: lines to events, and where to go on after an interruption. No network."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import orjson

from orchestrator.client.calls import Call, answer, path_of, translated_errors
from orchestrator.errors import Unavailable
from orchestrator.types import JsonObject

SILENT_FOR_S: Final = 40.0  # the gateway sends a comment every 15 seconds; a silent connection is dead
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
FROM_THE_END: Final = 2**53  # a number beyond the log's end: only what comes from now on


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """What happened in a session.

    `number` is its place in the log; None for what is only sent live: tokens, and what a turn at work does
    (the same comes again with a number when the turn is done).
    """

    session_id: str
    type: str
    turn_id: str | None
    payload: JsonObject
    number: int | None


class EventCursor:
    """Where a client is in a session's log. Durable events come out once each, whatever is sent twice.

    `after` None: from the log's end on.
    """

    def __init__(self, session_id: str, after: int | None) -> None:
        self._session_id = session_id
        self._last = after
        self._data: list[str] = []
        self._pauses = 0
        self._connected = False

    def call(self) -> Call:
        """The request that goes on after the last event."""
        self._data.clear()
        after = FROM_THE_END if self._last is None else self._last
        return Call("GET", path_of("sessions", self._session_id, "events"), query={"after": after})

    @contextmanager
    def connection(self, base_url: str) -> Generator[None]:
        """One connection, which may break: then another one goes on. Raises when the first never came about."""
        try:
            with translated_errors(base_url):
                yield
        except Unavailable:
            if not self._connected:
                raise

    def connected(self, response: httpx.Response) -> None:
        """Take note of a connection that came about. Raises the error that the gateway answered."""
        if not response.is_success:
            answer(response)
        self._connected = True

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
