"""The model port over the `openai` client, against any compatible endpoint.

Sends each request once: the client's own retries are off, ours are in `orchestrator.models`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import openai

from orchestrator.adapters.openai.wire import read_delta, read_reply, request_body, translate
from orchestrator.errors import ModelFailed, ModelTimedOut
from orchestrator.ports.language_model import ChatDelta, ChatReply, ChatRequest
from orchestrator.types import Json

if TYPE_CHECKING:
    from collections.abc import Generator

NO_KEY = "none"
"""Local endpoints want no key, but the client insists on sending one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where models answer. `read_s` bounds the silence between two pieces of an answer.

    `token_limit_field` is what the endpoint calls the limit; `extra_body` goes into every request,
    for example ``{"store": true}`` where metadata are accepted only with it.
    """

    base_url: str
    api_key: str = field(default=NO_KEY, repr=False)
    connect_s: float = 3.0
    read_s: float = 30.0
    connections: int = 100
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    extra_body: Mapping[str, Json] = field(default_factory=dict[str, Json])


def open_client(endpoint: Endpoint, read_s: float, *, retries: int, **settings: Any) -> openai.AsyncOpenAI:
    """Make a client of an endpoint. `settings`: of its connections."""
    timeout = httpx2.Timeout(read_s, connect=endpoint.connect_s)
    return openai.AsyncOpenAI(
        api_key=endpoint.api_key or NO_KEY,
        base_url=endpoint.base_url,
        timeout=timeout,
        max_retries=retries,
        http_client=openai.DefaultAsyncHttpxClient(timeout=timeout, verify=_trusted(), **settings),
    )


@cache
def _trusted() -> SSLContext:
    """Read the certificates of all authorities, which takes a tenth of a second, once for all clients."""
    return httpx2.create_ssl_context()


class OpenAIChat:
    """A `ChatModel`. Belongs to the event loop that first uses it; close it with `aclose`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._settings = endpoint
        limits = httpx2.Limits(max_connections=endpoint.connections)
        self._client = open_client(endpoint, endpoint.read_s, retries=0, limits=limits)
        # Without a user's name and password, which a URL may carry.
        self._endpoint = str(httpx2.URL(endpoint.base_url).copy_with(userinfo=b""))

    @property
    def endpoint(self) -> str:
        """See `ChatModel`."""
        return self._endpoint

    async def complete(self, request: ChatRequest) -> ChatReply:
        """See `ChatModel`."""
        with self._translated(request):
            async with asyncio.timeout(request.timeout_s):
                return read_reply(await self._create(request))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """See `ChatModel`."""
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        with self._translated(request):
            async with asyncio.timeout_at(deadline):
                chunks = await self._create(request, stream=True, stream_options={"include_usage": True})
        async with chunks:
            while True:
                # The time limit must not be in force while the consumer holds the generator.
                with self._translated(request):
                    async with asyncio.timeout_at(deadline):
                        chunk = await anext(chunks, None)
                if chunk is None:
                    return
                yield read_delta(chunk)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _create(self, request: ChatRequest, **more: Any) -> Any:
        body = request_body(request, token_limit_field=self._settings.token_limit_field)
        completions: Any = self._client.chat.completions
        return await completions.create(**body, **more, extra_body=dict(self._settings.extra_body) or None)

    @contextmanager
    def _translated(self, request: ChatRequest) -> "Generator[None, None, None]":
        try:
            yield
        except openai.OpenAIError as error:
            raise translate(error, self._endpoint) from error
        except TimeoutError as error:
            raise ModelTimedOut(
                f"The model endpoint {self._endpoint} did not answer within {request.timeout_s:g} s."
            ) from error
        except (httpx2.HTTPError, ValueError) as error:
            # While a stream is read the client lets errors of its transport and of JSON through.
            raise ModelFailed(
                f"The model endpoint {self._endpoint} broke off: {type(error).__name__}."
            ) from error
