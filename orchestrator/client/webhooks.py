"""For receivers of webhooks: is this delivery genuine?"""

from collections.abc import Mapping, Sequence

import orjson
from standardwebhooks import Webhook, WebhookVerificationError

from orchestrator.errors import InvalidInput, Unauthenticated
from orchestrator.types import JsonObject, is_object


def verify_webhook(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes) -> JsonObject:
    """The event of a delivery, once its signature was checked, and its time: within five minutes of now.

    Args:
        secret: the tenant's webhook secret; several while one is replaced by the next.
        headers: of the request, in any case of letters.
        body: exactly as it was received.

    Raises:
        Unauthenticated: it is not from Parley, was changed, or is too old.
        InvalidInput: genuine, and no JSON object.
    """
    _verify([secret] if isinstance(secret, str) else secret, dict(headers), body)
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The body is not JSON.", field="body") from error
    if not is_object(event):
        raise InvalidInput("The body is no JSON object.", field="body")
    return event


def _verify(secrets: Sequence[str], headers: dict[str, str], body: bytes) -> None:
    """Raise Unauthenticated unless one of the secrets fits."""
    failure: Exception | None = None
    for secret in secrets:
        try:
            Webhook(secret).verify(body, headers, json_parse=False)
        except (WebhookVerificationError, ValueError) as error:  # the latter for headers that cannot be read
            failure = error
        else:
            return
    raise Unauthenticated(f"The delivery is not genuine: {failure}.") from failure
