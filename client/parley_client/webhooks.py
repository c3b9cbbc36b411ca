"""Verify webhook deliveries, in the service that receives them."""

from collections.abc import Mapping, Sequence

import orjson
from standardwebhooks import Webhook, WebhookVerificationError

from parley_client.errors import InvalidInput, Unauthenticated
from parley_client.types import JsonObject, is_object


def verify_webhook(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes) -> JsonObject:
    """Verify a delivery's signature and timestamp (within five minutes of now), and return the delivered event.

    Args:
        secret: the tenant's webhook secret, or the new and the previous secret during rotation.
        headers: the request's headers. Names are case-insensitive.
        body: the exact bytes received.

    Raises:
        Unauthenticated: the delivery is not from Parley, was modified, or its timestamp is out of range.
        InvalidInput: the delivery is authentic, but not a JSON object.
    """
    _verify([secret] if isinstance(secret, str) else secret, dict(headers), body)
    try:
        event: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The body is not JSON.", field="body") from error
    if not is_object(event):
        raise InvalidInput("The body is not a JSON object.", field="body")
    return event


def _verify(secrets: Sequence[str], headers: dict[str, str], body: bytes) -> None:
    failure: Exception | None = None
    for secret in secrets:
        try:
            Webhook(secret).verify(body, headers, json_parse=False)
        except (WebhookVerificationError, ValueError) as error:  # ValueError: unreadable headers
            failure = error
        else:
            return
    raise Unauthenticated(f"The webhook signature could not be verified: {failure}.") from failure
