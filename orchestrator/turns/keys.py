"""The text of API keys: ``parley_<id>_<secret>``. Only a digest of the secret is kept anywhere."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final, NamedTuple

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
