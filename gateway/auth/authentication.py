"""Authentication: from a request's credentials to a caller (RT-22). `authorisation` decides what they may do.

A key or token comes in the `Authorization` header. Where no header can be sent, by a browser's EventSource and
WebSocket, a ticket comes in the query: it opens nothing else, and lives for a minute at most and no longer than
the key or token that it was given for. So no lasting secret stands in an address.
"""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Protocol

from starlette.requests import HTTPConnection

from orchestrator.errors import Unauthenticated, Unavailable
from orchestrator.ports.access import ApiKeys, RequestLimits, Tickets
from orchestrator.turns.access import ANYBODY, KEY, PREFIX, Caller

UNKNOWN = "These credentials are not valid, or no longer: use another key or token."
MISSING = "Say who you are: send a key or token as `Authorization: Bearer …`."
TICKET = "access_token"  # the query's name for a ticket
KEY_KEPT_S = 1.0  # a key that was found is believed for so long, without asking the store again
KEYS_KEPT = 10_000
RECHECK_EVERY_S = 30.0  # how often the credentials of an open stream are checked again


class TokenReader(Protocol):
    def caller(self, token: str) -> Caller:
        """The caller that a token names. Raises Unauthenticated."""
        ...


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests per minute; 0: not limited."""

    caller: int = 0
    tenant: int = 0
    session: int = 0


@dataclass(slots=True)
class Access:
    """How callers are identified, and how often they may ask. Without `required`, everybody is an operator."""

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

    async def identify(self, connection: HTTPConnection, *, by_ticket: bool = False) -> Caller:
        """Authenticate the caller. Raises Unauthenticated; Unavailable when no store can answer.

        Args:
            connection: what was sent.
            by_ticket: this route takes a ticket.
        """
        if not self.required:
            return ANYBODY
        header = connection.headers.get("authorization")
        if header is None:
            return await self._of_ticket(connection.query_params.get(TICKET) if by_ticket else None)
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
        """Check the credentials of a connection that stays open long; they hold while no store can answer."""
        if has_ended(caller):
            return False
        kind, _, key_id = caller.credential.partition(":")
        if kind != KEY or self.keys is None:
            return True
        try:
            return await self.keys.is_valid(key_id)
        except Unavailable:
            return True

    async def _of_ticket(self, ticket: str | None) -> Caller:
        if ticket is None or self.tickets is None:
            raise Unauthenticated(MISSING)
        caller = await self.tickets.redeem(ticket)
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
    """Say whether the token that a caller came with has expired."""
    return caller.expires_at is not None and caller.expires_at <= time.time()
