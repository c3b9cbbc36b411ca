"""An HTTP client that limits response sizes, for providers that use the `openai` client."""

from functools import cache
from ssl import SSLContext
from typing import cast

import httpx2
import openai

from orchestrator.adapters.tools.guarded import BoundedStream

LONGEST_RESPONSE = 8_000_000
"""Maximum response size in bytes, far above the longest answer that Parley requests."""


async def _bound(response: httpx2.Response) -> None:
    response.stream = BoundedStream(cast("httpx2.AsyncByteStream", response.stream), LONGEST_RESPONSE)


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
