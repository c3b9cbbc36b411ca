"""Signed paths of exports. A path gives access to one export for a limited time, without other credentials."""

import hashlib
import hmac
import json
from dataclasses import astuple, dataclass

import orjson

from orchestrator.types import SessionId, TenantId, decode_base64url, encode_base64url

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
        body = encode_base64url(json.dumps(astuple(self)).encode())
        return f"{PREFIX}{body}.{encode_base64url(self._sign(key))}"

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
        tenant_id, session_id, export_id, expires_at = orjson.loads(decode_base64url(body))
        link = ExportLink(TenantId(tenant_id), SessionId(session_id), export_id, expires_at)
        names = (tenant_id, session_id, export_id)
        is_whole = all(isinstance(name, str) and "\0" not in name for name in names)
        return (link, decode_base64url(signature)) if is_whole and isinstance(expires_at, int) else None
    except (ValueError, TypeError):
        return None
