"""Who asks: a tenant's backend, one of its users, or an operator; what each may do; and the keys they show (RT-22).

Records and rules only. How callers authenticate is up to each interface.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from orchestrator.errors import Forbidden, NotFound
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId, UserId

KEY = "key"  # the credential of a key's caller begins with it


class Scope(StrEnum):
    """The rights of a caller."""

    USER = "user"
    """Talk in sessions, read them, decide approvals that users may decide."""
    OPERATOR = "operator"
    """Everything within the tenant."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request.

    `user_id`: with the scope `user` alone, only this user's sessions can be reached; None: a backend
    that speaks for all users of its tenant. `name` is for people to read, `credential` distinguishes one key
    or token holder from another; neither is secret.
    """

    tenant_id: TenantId
    scopes: frozenset[Scope]
    name: str
    user_id: UserId | None = None
    credential: str = ""
    known: bool = True
    """False where callers do not authenticate."""
    expires_at: float | None = None
    """Unix time in seconds at which a token ends; None: a key says so itself."""

    @property
    def operates(self) -> bool:
        return Scope.OPERATOR in self.scopes

    @property
    def only_user(self) -> UserId | None:
        """The one user whose sessions this caller may reach; None: all of the tenant's."""
        return None if self.operates else self.user_id

    def require_operator(self) -> None:
        """Raises Forbidden."""
        if not self.operates:
            raise Forbidden("Only operators may do this: use a key or token with the scope 'operator'.")

    def require_owner(self, session_id: SessionId, owner: UserId | None) -> None:
        """Raises NotFound, as for a session that does not exist: others learn nothing of it."""
        if self.only_user is not None and owner != self.only_user:
            raise NotFound("session", session_id)

    def acting_user(self, wanted: UserId | None) -> UserId | None:
        """Decide for whom a session is made. Raises Forbidden when it is somebody else."""
        if self.only_user is None:
            return wanted or self.user_id
        if wanted not in {None, self.only_user}:
            raise Forbidden("Sessions can be made for your own user only; leave user_id out.")
        return self.only_user

    def author(self, claimed: str | None) -> str | None:
        """The author of feedback: users speak for themselves, others for whom they name."""
        if self.user_id is not None:
            return self.user_id
        return claimed or (self.name if self.known else None)

    def decider(self, claimed: str | None) -> str:
        """Decide who is put on record for a decision: users as themselves, operators as whom they name."""
        if self.only_user is not None:
            return self.only_user
        return claimed or self.name


# The caller where nobody authenticates: on loopback only.
ANYBODY = Caller(DEFAULT_TENANT, frozenset(Scope), "operator", known=False)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is listed. The secret part is shown once, when the key is made, and stored hashed."""

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
    """A fresh key: 64 bits to name it, 256 bits that are secret."""
    return KeyText(secrets.token_hex(8), secrets.token_urlsafe(32))


def show_key(text: KeyText) -> str:
    return f"{PREFIX}_{text.key_id}_{text.secret}"


def read_key(text: str) -> KeyText | None:
    """The parts of a key; None for anything that is not in the form of one."""
    if len(text) > _LONGEST or not text.isascii():
        return None
    prefix, _, rest = text.partition("_")
    key_id, _, secret = rest.partition("_")
    return KeyText(key_id, secret) if prefix == PREFIX and key_id and secret else None


def digest(secret: str) -> str:
    """One pass of SHA-256 is enough: the secret is random and too long to be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def fits(secret: str, kept: str) -> bool:
    """Compare a secret with the digest that was kept, in constant time."""
    return hmac.compare_digest(digest(secret), kept)
