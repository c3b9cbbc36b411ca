"""For receivers of webhooks: is this delivery genuine?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import orjson

from orchestrator.dialogue.json_values import is_object
from orchestrator.errors import InvalidInput
from orchestrator.turns.webhook import TOLERANCE_S, verify_signature
from orchestrator.types import JsonObject


def verify_webhook(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> JsonObject:
    """The event of a delivery, once its signature and its time were checked.

    Args:
        secret: the tenant's webhook secret; several while one is replaced by the next.
        headers: of the request, in any case of letters.
        body: exactly as it was received.
        tolerance_s: how far the signature's time may be from `now`.
        now: unix seconds; the present when left out.

    Raises:
        Unauthenticated: it is not from Parley, was changed, or is too old.
        InvalidInput: genuine, and no JSON object.
    """
    secrets = [secret] if isinstance(secret, str) else secret
    at = time.time() if now is None else now
    verify_signature(secrets, headers, body, now=at, tolerance_s=tolerance_s)
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The body is not JSON.", field="body") from error
    if not is_object(event):
        raise InvalidInput("The body is no JSON object.", field="body")
    return event
