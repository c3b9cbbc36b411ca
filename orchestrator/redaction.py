"""Redact secrets in logs and printed errors.

Known secrets are hidden in their JSON, Python, URL and base64 forms, as is text that looks like a secret.
User content is not recognized; see `telemetry.logs`.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

HIDDEN: Final = "[secret]"
LONGEST_ERROR: Final = 2000
SHORTEST_SECRET: Final = 6
"""Minimum length of a secret, in characters. Shorter secrets are too likely to occur in other text."""

_NAMES = r"(?:password|passwd|secret|api[_-]?key|access[_-]?key|[a-z_-]*token|signature)"
_SCHEMES = r"(?:bearer|basic|digest|token)\b"
_QUOTES = r"(?:b(?=['\"]))?[\\'\"]*"
_VALUE = rf"(?!{_SCHEMES}|(?:null|none|true|false)\b|\[secret\])[^\s\\'\",;&)}}\]]{{4,}}"
_SHAPES: Final = (
    # postgresql://user:password@host
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)[^\s/'\"]+(?=@)", re.IGNORECASE),
    # Authorization: Basic …, and headers written as mappings or pairs
    re.compile(
        rf"(?P<kept>\bauthorization\b[\\'\"]*\s*[:=,]\s*{_QUOTES}(?:{_SCHEMES}\s+)?){_VALUE}", re.IGNORECASE
    ),
    re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}", re.IGNORECASE),
    # password=…, "api_key": "…", ?access_token=…
    re.compile(
        rf"(?P<kept>(?<![a-z0-9]){_NAMES}[\\'\"]*\s*[:=]\s*(?:SecretStr\()?{_QUOTES}){_VALUE}", re.IGNORECASE
    ),
    # keys for model endpoints, webhooks and callers; signed tokens
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]{8,}"),
    re.compile(r"\bparley_[0-9a-f]{8,}_[A-Za-z0-9_-]{8,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"),
)


class Redactor:
    """A filter for known secrets, and for text that has the form of a secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets to hide. Texts shorter than `SHORTEST_SECRET` are ignored."""
        known = self._known | {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        if known == self._known:
            return
        self._known = known
        forms = {form for secret in known for form in forms_of(secret)}
        self._pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))

    def hide(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        for shape in _SHAPES:
            text = shape.sub(_keep_name, text)
        return text


def forms_of(secret: str) -> Iterator[str]:
    """Yield a secret as plain text, and in its JSON, Python, URL and base64 forms."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    # Base64 encodes three bytes at a time, so the first and last characters depend on the neighboring bytes.
    for before in range(3):
        padded = b"\0" * before + secret.encode()
        whole = len(padded) // 3 * 3
        for encode in (b64encode, urlsafe_b64encode):
            inner = encode(padded[:whole]).decode()[4 if before else 0 :]
            if len(inner) >= SHORTEST_SECRET:
                yield inner


def password_of(address: str) -> Iterator[str]:
    """Yield the password in a URL, encoded and decoded, if the URL has one."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)


def _keep_name(found: re.Match[str]) -> str:
    return found.groupdict().get("kept", "") + HIDDEN


_redactor = Redactor()
"""The redactor of this process.

All components share this redactor, because each component can have different secrets.
"""


def learn_secrets(secrets: Iterable[str]) -> None:
    _redactor.learn(secrets)


def hide_secrets(text: str) -> str:
    return _redactor.hide(text)


def describe_error(text: str) -> str:
    """Return an error's text for storage: without secrets, and up to `LONGEST_ERROR` characters long."""
    return hide_secrets(text)[:LONGEST_ERROR]
