"""Authenticate the caller by the request's credentials (RT-22). For permissions, see `authorization`.

Clients send a key or token in the `Authorization` header. A browser's EventSource and WebSocket can't send
headers, so they send a ticket in the query. A ticket is valid for up to a minute, and never longer than its
key or token.

An interrupted EventSource reconnects to the same URL. Therefore, a ticket can reopen its session's stream
until ten minutes after the stream closed, for up to half a day. URLs never contain a long-lived secret.
"""

import hashlib
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from starlette.requests import HTTPConnection

from orchestrator.errors import Unauthenticated, Unavailable
from orchestrator.ports.access import ApiKeys, RequestLimits, Tickets
from orchestrator.turns.access import ANYBODY, KEY, PREFIX, Caller
from orchestrator.types import SessionId

UNKNOWN = "These credentials are invalid or expired: use another key or token."
MISSING = "Authentication required: send a key or token as `Authorization: Bearer …`."
TICKET = "access_token"  # query parameter of the ticket
KEY_KEPT_S = 1.0  # how long a valid key is cached, in seconds
KEYS_KEPT = 10_000
STREAM_AWAY_S = 600
LONGEST_STREAM_S = 12 * 3600
"""Maximum time during which a ticket can reopen its stream, in seconds."""
RECHECK_EVERY_S = 30.0  # seconds between checks of an open stream's credentials


class TokenReader(Protocol):
    def caller(self, token: str) -> Caller:
        """Return the caller that a token identifies.

        Raises Unauthenticated, or Forbidden if the scope grants no rights.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rates:
    """Maximum numbers of requests per minute for each caller, tenant and session, or 0 for no limit."""

    caller: int = 0
    tenant: int = 0
    session: int = 0


@dataclass(slots=True)
class Access:
    """Authentication and rate limits. If `required` is False, every caller is an operator.

    `open_metrics`: True if metrics need no credentials on private hosts.
    """

    required: bool = False
    keys: ApiKeys | None = None
    tokens: TokenReader | None = None
    tickets: Tickets | None = None
    limits: RequestLimits | None = None
    rates: Rates = field(default_factory=Rates)
    open_metrics: bool = False
    key_kept_s: float = KEY_KEPT_S
    recheck_every_s: float = RECHECK_EVERY_S
    _kept: dict[bytes, tuple[Caller, float]] = field(default_factory=dict[bytes, tuple[Caller, float]])

    async def identify(
        self, connection: HTTPConnection, *, by_ticket: bool = False, stream: SessionId | None = None
    ) -> Caller:
        """Authenticate the caller. Raises Unauthenticated, Forbidden, or Unavailable if a store does not respond.

        Args:
            connection: the request.
            by_ticket: True if the route accepts a ticket.
            stream: the session whose events the route streams, or None for other routes.
        """
        if not self.required:
            return ANYBODY
        header = connection.headers.get("authorization")
        if header is None:
            ticket = connection.query_params.get(TICKET) if by_ticket else None
            return await self._of_ticket(ticket, stream)
        scheme, _, credential = header.partition(" ")
        credential = credential.strip()
        if scheme.lower() != "bearer" or not credential:
            raise Unauthenticated(MISSING)
        if credential.startswith(f"{PREFIX}_"):
            return await self._of_key(credential)
        if self.tokens is None:
            raise Unauthenticated(UNKNOWN)
        return self.tokens.caller(credential)

    async def holds(self, caller: Caller) -> bool:
        """Return True if the caller's credentials are still valid, or if the key store does not respond."""
        if has_ended(caller):
            return False
        kind, _, key_id = caller.credential.partition(":")
        if kind != KEY or self.keys is None:
            return True
        try:
            return await self.keys.is_valid(key_id)
        except Unavailable:
            return True

    async def keep_ticket(self, connection: HTTPConnection, stream: SessionId, caller: Caller) -> None:
        """Allow an open stream's ticket to reopen the stream.

        If Redis does not respond, the page has to request another ticket.
        """
        ticket = connection.query_params.get(TICKET)
        if self.tickets is None or ticket is None or "authorization" in connection.headers:
            return
        ends_at = min(caller.expires_at or math.inf, time.time() + LONGEST_STREAM_S)
        lives_s = min(STREAM_AWAY_S, math.floor(ends_at - time.time()))
        if lives_s > 0:
            with suppress(Unavailable):
                await self.tickets.keep(ticket, stream, replace(caller, expires_at=ends_at), lives_s=lives_s)

    async def _of_ticket(self, ticket: str | None, stream: SessionId | None) -> Caller:
        if ticket is None or self.tickets is None:
            raise Unauthenticated(MISSING)
        caller = await self.tickets.redeem(ticket, stream=stream)
        if caller is None or has_ended(caller):
            raise Unauthenticated(UNKNOWN)
        kind, _, key_id = caller.credential.partition(":")
        if kind == KEY and (self.keys is None or not await self.keys.is_valid(key_id)):
            raise Unauthenticated(UNKNOWN)
        return caller

    async def _of_key(self, text: str) -> Caller:
        if self.keys is None:
            raise Unauthenticated(UNKNOWN)
        now = time.monotonic()
        digest = hashlib.sha256(text.encode()).digest()
        caller, until = self._kept.get(digest, (None, 0.0))
        if caller is not None and now < until:
            return caller
        key = await self.keys.find(text)
        if key is None:
            self._kept.pop(digest, None)
            raise Unauthenticated(UNKNOWN)
        if len(self._kept) >= KEYS_KEPT:
            self._kept.clear()
        self._kept[digest] = (key.caller(), now + self.key_kept_s)
        return key.caller()


def has_ended(caller: Caller) -> bool:
    """Return True if the caller's token has expired."""
    return caller.expires_at is not None and caller.expires_at <= time.time()
