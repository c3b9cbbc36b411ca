"""Parse a session's event stream, and resume it after an interruption. This module does no I/O."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import orjson

from parley_client.calls import Call, answer, path_of, translated_errors
from parley_client.errors import Unavailable
from parley_client.types import JsonObject

SILENT_FOR_S: Final = 40.0  # the gateway sends a comment every 15 seconds, so a silent connection is dead
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
FROM_THE_END: Final = 2**53  # event number past the end of any log, to receive only new events


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event of a session.

    `number`: the event's position in the session's log, or None for live events (tokens and the progress of a
    running turn). After the turn, progress events are sent again, with a number.
    """

    session_id: str
    type: str
    turn_id: str | None
    payload: JsonObject
    number: int | None


class EventCursor:
    """A client's position in a session's log. Stored events that are sent twice are returned once.

    `after`: number of the event to start after, or None to receive only new events.
    """

    def __init__(self, session_id: str, after: int | None) -> None:
        self._session_id = session_id
        self._last = after
        self._data: list[str] = []
        self._pauses = 0
        self._connected = False

    def call(self) -> Call:
        """Return the request for events after the last received event."""
        self._data.clear()
        after = FROM_THE_END if self._last is None else self._last
        return Call("GET", path_of("sessions", self._session_id, "events"), query={"after": after})

    @contextmanager
    def connection(self, base_url: str) -> Generator[None]:
        """Translate connection errors in the block to Unavailable.

        Once a connection has been established, suppress the errors instead, so that the caller reconnects.
        """
        try:
            with translated_errors(base_url):
                yield
        except Unavailable:
            if not self._connected:
                raise

    def connected(self, response: httpx.Response) -> None:
        """Record an established connection, or raise the error in the gateway's response."""
        if not response.is_success:
            answer(response)
        self._connected = True

    def take(self, line: str) -> SessionEvent | None:
        """Parse a line of the stream. Return the event that the line completes, or None."""
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
        """Return the delay before the next connection, in seconds. The delay doubles until an event arrives."""
        self._pauses += 1
        return min(FIRST_PAUSE_S * 2 ** (self._pauses - 1), LONGEST_PAUSE_S)
