"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Self

import httpx

from orchestrator.client import calls
from orchestrator.client.calls import DEFAULT_TIMEOUT_S, PAUSES_S, Call
from orchestrator.client.events import SILENT_FOR_S, Following, SessionEvent
from orchestrator.client.methods import Methods
from orchestrator.errors import Unavailable
from orchestrator.types import JsonObject


class Client(Methods[JsonObject, list[JsonObject]]):
    """The gateway's calls, each waiting for its answer.

    Args:
        base_url: the gateway's address, for example ``http://127.0.0.1:8600``.
        timeout_s: seconds for one request, without the time it was asked to wait.
        api_key: sent as a bearer token when given.
    """

    def __init__(
        self, base_url: str, timeout_s: float = DEFAULT_TIMEOUT_S, api_key: str | None = None
    ) -> None:
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._http = httpx.Client(base_url=base_url, headers=calls.headers(api_key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client cannot be used again."""
        self._http.close()

    def stream(self, session_id: str, after: int | None = 0) -> Generator[SessionEvent]:
        """A session's events from number `after` on (None: from now on), without end; close it when you have enough.

        Comes back by itself after an interruption and goes on where it was: each durable event comes once
        and in order. Raises `NotFound`; `Unavailable` when not even the first attempt succeeds.
        """
        following, connected = Following(session_id, after), False
        while True:
            try:
                with self._http.stream(**self._request_events(following)) as response:
                    if not response.is_success:
                        response.read()
                        calls.answer(response)
                    connected = True
                    for line in response.iter_lines():
                        event = following.take(line)
                        if event is not None:
                            yield event
            except httpx.TransportError as error:
                if not connected:
                    raise calls.unreachable(self._base_url, error) from error
            except Unavailable:
                if not connected:
                    raise
            time.sleep(following.pause_s())

    def _request_events(self, following: Following) -> JsonObject:
        request = calls.request(following.call(), self._timeout_s)
        return {**request, "timeout": httpx.Timeout(self._timeout_s, read=SILENT_FOR_S)}

    def _send(self, call: Call) -> Any:
        for pause_s in PAUSES_S if call.repeatable else ():
            try:
                return self._send_once(call)
            except Unavailable:
                time.sleep(pause_s)
        return self._send_once(call)

    def _send_once(self, call: Call) -> Any:
        try:
            response = self._http.request(**calls.request(call, self._timeout_s))
        except httpx.HTTPError as error:
            raise calls.unreachable(self._base_url, error) from error
        return calls.answer(response)
