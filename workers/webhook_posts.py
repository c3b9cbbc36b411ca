"""HTTP posts to webhook receivers: format, signatures, retries, and limits on time, size and addresses (RT-16).

Deliveries are signed according to Standard Webhooks. The client ignores redirects and proxy settings, so that it
connects only to addresses that it has checked.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, TypeAlias

import httpx2
import orjson
from standardwebhooks import Webhook as Signer

from orchestrator.adapters.tools.addresses import AddressGuard
from orchestrator.adapters.tools.guarded import AddressRefused, GuardedTransport, LookUp
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, TenantId

MAX_ANSWER_BYTES = 64 * 1024
EVENT_TYPE_HEADER: Final = "Parley-Event"
ATTEMPT_HEADER: Final = "Parley-Attempt"

FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Delivered:
    """A delivery that the receiver confirmed."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """A delivery that the receiver did not confirm. `final`: True if the receiver unsubscribed."""

    why: str
    final: bool = False


DeliveryResult: TypeAlias = Delivered | DeliveryFailed


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


def event_id(event: Event) -> str:
    """Return the event's ID, which is the same in all deliveries, so that receivers can detect duplicates."""
    return f"{event.session_id}:{event.number}"


def delivery_body(tenant_id: TenantId, event: Event) -> bytes:
    body: JsonObject = {
        "id": event_id(event),
        "type": event.type,
        "tenant_id": tenant_id,
        "session_id": event.session_id,
        "turn_id": event.turn_id,
        "number": event.number,
        "payload": event.payload,
    }
    return orjson.dumps(body)


def signed_headers(keys: Sequence[str], event_id: str, body: bytes, now: float) -> dict[str, str]:
    """Return the Standard Webhooks headers: ID, timestamp and a signature for each active secret."""
    at = datetime.fromtimestamp(int(now), UTC)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(Signer(key).sign(event_id, at, body.decode()) for key in keys),
    }


def retry_after(attempts: int) -> float:
    """Return the delay in seconds after failed attempt number `attempts`: exponential backoff with jitter.

    The delay before jitter is at most `LONGEST_RETRY_S`.
    """
    delay = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(attempts - 1, 20))
    return delay * random.uniform(0.75, 1.25)
