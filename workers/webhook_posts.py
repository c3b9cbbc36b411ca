"""HTTP posts to webhook receivers, with limits on time, response size and addresses (RT-16).

The client ignores redirects and proxy settings, so that it connects only to addresses that it has checked.
"""

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import httpx2

from orchestrator.adapters.tools.addresses import AddressGuard
from orchestrator.adapters.tools.guarded import AddressRefused, GuardedTransport, LookUp
from orchestrator.turns.webhook import Delivered, DeliveryFailed, DeliveryResult

MAX_ANSWER_BYTES = 64 * 1024


class WebhookPosts:
    """An HTTP client for webhook deliveries.

    Args:
        private_networks: non-public networks that receivers may be in.
        timeout_s: maximum duration of a post, in seconds.
        look_up: resolves host names. Default: the system's resolver.
    """

    def __init__(
        self, private_networks: Iterable[str], *, timeout_s: float, look_up: LookUp | None = None
    ) -> None:
        guard = AddressGuard(private_networks)
        self._timeout_s = timeout_s
        self._client = httpx2.AsyncClient(
            transport=GuardedTransport(guard, max_bytes=MAX_ANSWER_BYTES, look_up=look_up),
            timeout=timeout_s,
            follow_redirects=False,
            trust_env=False,
            headers={"User-Agent": "Parley", "Accept-Encoding": "identity"},
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryResult:
        """Post once. Return timeouts, connection errors and error statuses as `DeliveryFailed`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.post(url, headers=dict(headers), content=body)
        except TimeoutError:
            return DeliveryFailed(f"no response within {self._timeout_s:g} s")
        except AddressRefused:
            return DeliveryFailed(
                "the address is not public; an operator can allow its network with PARLEY_WEBHOOK_NETWORKS"
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            return DeliveryFailed(f"{type(error).__name__}: {error}"[:300])
        if answer.is_success:
            return Delivered()
        if answer.has_redirect_location:
            return DeliveryFailed(f"returned {answer.status_code}: redirects are not followed")
        return DeliveryFailed(f"returned {answer.status_code}", final=answer.status_code == HTTPStatus.GONE)

    async def aclose(self) -> None:
        await self._client.aclose()
