import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Self

import httpx

from parley_client.calls import DEFAULT_TIMEOUT_S, Call, answer, headers, translated_errors
from parley_client.errors import Unavailable
from parley_client.events import SILENT_FOR_S, EventCursor, SessionEvent
from parley_client.methods import Methods
from parley_client.types import JsonObject


class Client(Methods[JsonObject, list[JsonObject]]):
    """A blocking client of a gateway.

    Args:
        base_url: the gateway's URL, for example ``http://127.0.0.1:8600``.
        timeout_s: timeout of one request, in seconds. A request with `wait_s` can take `wait_s` seconds longer.
        api_key: API key, sent as a bearer token.
    """

    def __init__(
        self, base_url: str, timeout_s: float = DEFAULT_TIMEOUT_S, api_key: str | None = None
    ) -> None:
        self.base_url = base_url
        self._timeout_s = timeout_s
        self._http = httpx.Client(base_url=base_url, headers=headers(api_key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client can't be reused."""
        self._http.close()

    def stream(self, session_id: str, after: int | None = 0) -> Generator[SessionEvent]:
        """Stream a session's events after event number `after`, or only new events if `after` is None.

        The stream ends when the client or the generator is closed. The client reconnects and resumes
        automatically, and each stored event arrives once and in order. Raises NotFound, or Unavailable if the
        first connection fails.
        """
        cursor = EventCursor(session_id, after)
        while not self._http.is_closed:
            with cursor.connection(self.base_url):
                request = cursor.call().request(self._timeout_s, SILENT_FOR_S)
                with self._http.stream(**request) as response:
                    if not response.is_success:
                        response.read()
                    cursor.connected(response)
                    for line in response.iter_lines():
                        if (event := cursor.take(line)) is not None:
                            yield event
            time.sleep(cursor.pause_s())

    def _send(self, call: Call) -> Any:
        for pause_s in call.pauses_s:
            with suppress(Unavailable):
                return self._send_once(call)
            time.sleep(pause_s)
        return self._send_once(call)

    def _send_once(self, call: Call) -> Any:
        with translated_errors(self.base_url):
            return answer(self._http.request(**call.request(self._timeout_s)))
