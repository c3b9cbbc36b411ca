"""Signed paths of exports. A path gives access to one export for a limited time, without other credentials."""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import astuple, dataclass

import orjson

from orchestrator.types import SessionId, TenantId

PREFIX = "/v1/exports/"
_DIGEST = hashlib.sha256


@dataclass(frozen=True, slots=True)
class ExportLink:
    """A link to an export. `expires_at`: Unix seconds."""

    tenant_id: TenantId
    session_id: SessionId
    export_id: str
    expires_at: int

    def path(self, key: str) -> str:
        """Return the path. `key`: the export's secret, which is stored with the export and never displayed."""
        body = _encode(json.dumps(astuple(self)).encode())
        return f"{PREFIX}{body}.{_encode(self._sign(key))}"

    def is_signed(self, signature: bytes, key: str) -> bool:
        return hmac.compare_digest(signature, self._sign(key))

    def _sign(self, key: str) -> bytes:
        return hmac.digest(key.encode(), json.dumps(astuple(self)).encode(), _DIGEST)


def read_link(token: str) -> tuple[ExportLink, bytes] | None:
    """Parse the path of an export, without `PREFIX`. Return the link and its unverified signature.

    Return None if the path is malformed.
    """
    body, _, signature = token.partition(".")
    try:
        tenant_id, session_id, export_id, expires_at = orjson.loads(_decode(body))
        link = ExportLink(TenantId(tenant_id), SessionId(session_id), export_id, expires_at)
        names = (tenant_id, session_id, export_id)
        is_whole = all(isinstance(name, str) and "\0" not in name for name in names)
        return (link, _decode(signature)) if is_whole and isinstance(expires_at, int) else None
    except (ValueError, TypeError, binascii.Error):
        return None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
