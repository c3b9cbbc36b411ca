"""HTTP connections to permitted addresses only. A host's addresses are resolved and checked before connecting.

The connection uses the checked address, so that a second lookup cannot change it.
"""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import httpx2

from orchestrator.adapters.tools.addresses import AddressGuard

LookUp: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""A function that resolves a host and port to addresses, or raises OSError."""


class AddressRefused(httpx2.TransportError):
    """Raised if the host resolves to an address that tools may not reach."""


class AnswerTooLong(httpx2.StreamError):
    """Raised if the response exceeds the size limit."""


class AnswerEncoded(httpx2.TransportError):
    """Raised for a compressed response, which the request did not permit and whose size can't be limited."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that checks addresses and limits response sizes.

    Args:
        max_bytes: maximum response size, in bytes. Reading a longer response raises AnswerTooLong.
        listens: True to exempt event streams from the limit, because their reader limits each event.
    """

    def __init__(
        self, guard: AddressGuard, *, max_bytes: int, listens: bool = False, look_up: LookUp | None = None
    ) -> None:
        self._guard = guard
        self._max_bytes = max_bytes
        self._listens = listens
        self._look_up = look_up or _look_up
        self._of_host: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises AddressRefused, AnswerTooLong, AnswerEncoded, and httpx2's errors."""
        addresses = await self._find_addresses(request)
        response = await self._send(request, addresses)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise AnswerEncoded("The response is compressed.", request=request)
        is_stream = "text/event-stream" in response.headers.get("content-type", "")
        if not (self._listens and is_stream):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = BoundedStream(response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        for transport in self._of_host.values():
            await transport.aclose()

    async def _find_addresses(self, request: httpx2.Request) -> list[str]:
        url = request.url
        try:
            addresses = await self._look_up(url.host, url.port or (443 if url.scheme == "https" else 80))
        except OSError as error:
            raise httpx2.ConnectError(
                f"Could not resolve host {url.host}: {error}", request=request
            ) from error
        refused = [address for address in addresses if not self._guard.allows(address)]
        if refused or not addresses:
            raise AddressRefused(f"{url.host} is not public: {', '.join(refused)}", request=request)
        return addresses

    async def _send(self, request: httpx2.Request, addresses: list[str]) -> httpx2.Response:
        """Send a request to the first address that accepts a connection, and to no other address."""
        *first, last = addresses
        for address in first:
            try:
                return await self._send_to(address, request)
            except httpx2.ConnectError:
                continue
        return await self._send_to(last, request)

    async def _send_to(self, address: str, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        extensions = dict(request.extensions)
        if not _is_address(host):
            extensions["sni_hostname"] = host  # the certificate contains the host name
        directed = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
        return await self._connections(host).handle_async_request(directed)

    def _connections(self, host: str) -> httpx2.AsyncHTTPTransport:
        """Return the host's transport. Hosts never share connections, even at the same address."""
        transport = self._of_host.get(host)
        if transport is None:
            transport = self._of_host[host] = httpx2.AsyncHTTPTransport()
        return transport


class BoundedStream(httpx2.AsyncByteStream):
    """A response's stream. Reading more than `max_bytes` raises AnswerTooLong."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise AnswerTooLong("The response is too long.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _look_up(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
