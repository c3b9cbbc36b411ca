"""An HTTP client that limits response sizes, for providers that use the `openai` client."""

from collections.abc import AsyncIterator
from functools import cache
from ssl import SSLContext
from typing import cast

import httpx2
import openai

LONGEST_RESPONSE = 8_000_000
"""Maximum response size in bytes, far above the longest answer that Parley requests."""


class ResponseTooLong(httpx2.TransportError):
    """Raised if a response exceeds `LONGEST_RESPONSE`."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if read > LONGEST_RESPONSE:
                raise ResponseTooLong(f"The response exceeds {LONGEST_RESPONSE} bytes.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))


@cache
def _trusted() -> SSLContext:
    """Return an SSL context with the trusted certificates. All clients share it, because loading them takes 0.1 s."""
    return httpx2.create_ssl_context()


def open_http_client(*, connect_s: float, connections: int) -> httpx2.AsyncClient:
    """Create a client that limits response sizes. Requests set their own timeouts, except for connecting."""
    return openai.DefaultAsyncHttpxClient(
        timeout=httpx2.Timeout(None, connect=connect_s),
        limits=httpx2.Limits(max_connections=connections),
        verify=_trusted(),
        event_hooks={"response": [_bound]},
    )
