"""Callers, their rights and their keys (RT-22). Each API has its own authentication."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from orchestrator.errors import Forbidden, NotFound
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId, UserId

KEY = "key"  # prefix of a key holder's credential


class Scope(StrEnum):
    USER = "user"
    """Send messages to sessions, read sessions, and decide approvals, except grants that require an operator."""
    OPERATOR = "operator"
    """Access everything within the tenant."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    `user_id`: restricts callers without the operator scope to this user's sessions, or None for a backend
    that acts for all users of its tenant. `name`: a name for display. `credential`: an ID of the key or token.
    `name` and `credential` are not secret.
    """

    tenant_id: TenantId
    scopes: frozenset[Scope]
    name: str
    user_id: UserId | None = None
    credential: str = ""
    known: bool = True
    """True if the caller was authenticated, False if authentication is off."""
    expires_at: float | None = None
    """Expiry time of a token in Unix seconds, or None for keys, whose expiry is checked in the store."""

    @property
    def operates(self) -> bool:
        return Scope.OPERATOR in self.scopes

    @property
    def only_user(self) -> UserId | None:
        """Return the only user whose sessions the caller can access, or None if access is not restricted."""
        return None if self.operates else self.user_id

    def require_operator(self) -> None:
        if not self.operates:
            raise Forbidden("Only operators can do this: use a key or token with the 'operator' scope.")

    def require_owner(self, session_id: SessionId, owner: UserId | None) -> None:
        """Raise NotFound if the caller can't access the session, so that its existence remains hidden."""
        if self.only_user is not None and owner != self.only_user:
            raise NotFound("session", session_id)

    def acting_user(self, wanted: UserId | None) -> UserId | None:
        """Return the user for a new session, if any. Raise Forbidden if the caller can't act for `wanted`."""
        if self.only_user is None:
            return wanted or self.user_id
        if wanted not in {None, self.only_user}:
            raise Forbidden("You can create sessions only for your own user; omit user_id.")
        return self.only_user

    def author(self, claimed: str | None) -> str | None:
        """Return the author of feedback: the caller's user, `claimed` or the caller's name, in this order.

        Return None if authentication is off and `claimed` is empty.
        """
        if self.user_id is not None:
            return self.user_id
        return claimed or (self.name if self.known else None)

    def decider(self, claimed: str | None) -> str:
        """Return the name to record as an approval's decider.

        Users are recorded by user ID, operators and backends by `claimed` or the caller's name.
        """
        if self.only_user is not None:
            return self.only_user
        return claimed or self.name


# The caller if authentication is off, which is possible only on loopback addresses.
ANYBODY = Caller(DEFAULT_TENANT, frozenset(Scope), "operator", known=False)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without its secret. The secret is displayed once, on creation. Only its hash is stored."""

    key_id: str
    tenant_id: TenantId
    name: str
    scopes: frozenset[Scope]
    user_id: UserId | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def caller(self) -> Caller:
        return Caller(self.tenant_id, self.scopes, self.name, self.user_id, f"{KEY}:{self.key_id}")


PREFIX: Final = "parley"
_LONGEST: Final = 200


class KeyText(NamedTuple):
    key_id: str
    secret: str


def make_key_text() -> KeyText:
    return KeyText(secrets.token_hex(8), secrets.token_urlsafe(32))


def show_key(text: KeyText) -> str:
    return f"{PREFIX}_{text.key_id}_{text.secret}"


def read_key(text: str) -> KeyText | None:
    if len(text) > _LONGEST or not text.isascii():
        return None
    prefix, _, rest = text.partition("_")
    key_id, _, secret = rest.partition("_")
    return KeyText(key_id, secret) if prefix == PREFIX and key_id and secret else None


def digest(secret: str) -> str:
    """Hash a secret. A single pass of SHA-256 is enough because the secret is long and random."""
    return hashlib.sha256(secret.encode()).hexdigest()


def fits(secret: str, kept: str) -> bool:
    """Return whether a secret matches the stored digest `kept`. The comparison takes constant time."""
    return hmac.compare_digest(digest(secret), kept)
