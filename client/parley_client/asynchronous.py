import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Any, Self

import httpx

from parley_client.calls import DEFAULT_TIMEOUT_S, Call, answer, headers, translated_errors
from parley_client.errors import Unavailable
from parley_client.events import SILENT_FOR_S, EventCursor, SessionEvent
from parley_client.methods import Methods
from parley_client.types import JsonObject


class AsyncClient(Methods[Awaitable[JsonObject], Awaitable[list[JsonObject]]]):
    """An asynchronous client of a gateway.

    Args:
        base_url: the gateway's URL, for example ``http://127.0.0.1:8600``.
        timeout_s: timeout of one request, in seconds. A request with `wait_s` can take `wait_s` seconds longer.
        api_key: API key, sent as a bearer token.
    """

    def __init__(
        self, base_url: str, timeout_s: float = DEFAULT_TIMEOUT_S, api_key: str | None = None
    ) -> None:
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(base_url=base_url, headers=headers(api_key))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. The client can't be reused."""
        await self._http.aclose()

    async def stream(self, session_id: str, after: int | None = 0) -> AsyncGenerator[SessionEvent]:
        """Stream a session's events, like `Client.stream`. Close the generator to end the stream."""
        cursor = EventCursor(session_id, after)
        while True:
            with cursor.connection(self._base_url):
                request = cursor.call().request(self._timeout_s, SILENT_FOR_S)
                async with self._http.stream(**request) as response:
                    if not response.is_success:
                        await response.aread()
                    cursor.connected(response)
                    async for line in response.aiter_lines():
                        if (event := cursor.take(line)) is not None:
                            yield event
            await asyncio.sleep(cursor.pause_s())

    async def _send(self, call: Call) -> Any:
        for pause_s in call.pauses_s:
            with suppress(Unavailable):
                return await self._send_once(call)
            await asyncio.sleep(pause_s)
        return await self._send_once(call)

    async def _send_once(self, call: Call) -> Any:
        with translated_errors(self._base_url):
            return answer(await self._http.request(**call.request(self._timeout_s)))
