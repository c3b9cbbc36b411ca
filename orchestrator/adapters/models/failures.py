"""Translate Pydantic AI's errors to the errors in `orchestrator.errors`.

The translated errors never quote an endpoint's message, because it can contain the key or parts of the request.
"""

import re
from collections.abc import Iterable

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UserError,
)

from orchestrator.errors import (
    EndpointError,
    ModelContextExceeded,
    ModelFailed,
    ModelFiltered,
    ModelNotAllowed,
    ModelOverloaded,
    ModelQuotaExceeded,
    ModelRejected,
    ModelTimedOut,
    ModelUnavailable,
    ModelUnknown,
    RateLimited,
)
from orchestrator.ports.language_model import RequestField
from orchestrator.types import Json, JsonObject, is_list, is_object

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{2,60}")
_WORTH_A_RETRY = frozenset({408, 409, 425})
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_WIRE_NAMES: dict[RequestField, tuple[str, ...]] = {
    RequestField.SYSTEM_ROLE: ("system role",),
    RequestField.METADATA: ("metadata",),
    RequestField.STREAM_USAGE: ("stream_options", "include_usage"),
    RequestField.STRICT: ("strict",),
    RequestField.OUTPUT: (
        "response_format",
        "json_schema",
        "json_object",
        "text.format",
        "structured output",
    ),
    RequestField.TOKEN_LIMIT: ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    RequestField.TEMPERATURE: ("temperature",),
    RequestField.EFFORT: ("reasoning_effort", "reasoning.effort", "reasoning", "thinking"),
    RequestField.TOOL_CHOICE: ("tool_choice",),
    RequestField.STREAM: ("stream",),
}
"""Names that endpoints use for optional parts of a request, in search order."""
_TOO_LONG = re.compile(r"context (size|length|window)|too many tokens", re.IGNORECASE)
_LOOKED_AT = 600
"""Maximum number of characters to search in an endpoint's message."""


def translate(error: Exception, endpoint: str, timeout_s: float) -> ModelUnavailable:
    """Translate a failed request's error to a ModelUnavailable. `timeout_s`: the request's timeout, in seconds."""
    said = EndpointError(endpoint)
    match error:
        case TimeoutError() | ModelTimeoutError() | ModelRequestTimeout():
            return ModelTimedOut(f"The model endpoint {endpoint} timed out after {timeout_s:g} s.", said=said)
        case ModelConnectionError():
            return ModelFailed(f"The model endpoint {endpoint} cannot be reached.", said=said)
        case ModelAPIError():
            return _of_answer(error, endpoint)
        case UserError():
            text = f"The model client can't send this request to {endpoint}: {error.message}"
            return ModelRejected(text, said=said)
        case _:
            kind = type(error).__name__
            text = f"The model endpoint {endpoint} returned an unreadable response: {kind}."
            return ModelFailed(text, said=said)


def _of_answer(error: ModelAPIError, endpoint: str) -> ModelUnavailable:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    names = tuple(_codes(error))
    refused = _rejected_field(error.body, status)
    said = EndpointError(endpoint, status, names[0] if names else None, refused)
    text = (
        f"The model endpoint {endpoint} returned {status or 'an error'}{f' ({names[0]})' if names else ''}."
    )
    if any(name.lower() in _FILTER_CODES for name in names):
        return ModelFiltered(text, said=said)
    match error:
        case ModelQuotaExceededError():
            return ModelQuotaExceeded(text, said=said)
        case ModelRateLimitError():
            return RateLimited(text, said=said, retry_after_s=_wait_s(error))
        case ModelOverloadedError():
            return ModelOverloaded(text, said=said, retry_after_s=_wait_s(error))
        case ModelContextWindowExceededError():
            return ModelContextExceeded(text, said=said)
        case ModelRequestRejectedError() if _is_too_long(error.body):
            return ModelContextExceeded(text, said=said)
        case ModelNotFoundError() if refused is None:
            return ModelUnknown(text, said=said)
        case ModelAuthenticationError():
            return ModelNotAllowed(text, said=said)
        case ModelRequestRejectedError():
            return ModelRejected(text, said=said)
        case _:
            return _of_status(status, text, said, _wait_s(error))


def _of_status(status: int | None, text: str, said: EndpointError, wait_s: float | None) -> ModelUnavailable:
    if said.field is not None:
        return ModelRejected(text, said=said)
    if status is None or status >= 500 or status in _WORTH_A_RETRY:
        return ModelFailed(text, said=said, retry_after_s=wait_s)
    if status == 429:
        return RateLimited(text, said=said, retry_after_s=wait_s)
    if status == 413:
        return ModelContextExceeded(text, said=said)
    if status in {401, 403}:
        return ModelNotAllowed(text, said=said)
    return ModelUnknown(text, said=said) if status == 404 else ModelRejected(text, said=said)


def _rejected_field(body: object, status: int | None) -> str | None:
    """Return the `RequestField` that an error response rejects, or None."""
    if status in {400, 404, 422}:
        return find_field(body)
    # Some servers report a rejection as an internal error: ik_llama.cpp if it rejects an output mode, others
    # if a chat template rejects a role.
    field = find_field(body) if status in {500, 501} else None
    return field if field in {RequestField.OUTPUT, RequestField.SYSTEM_ROLE} else None


def _is_too_long(body: object) -> bool:
    """Return whether a rejection mentions the context window in words that Pydantic AI doesn't recognize."""
    message = _error_of(body).get("message", body)
    return isinstance(message, str) and _TOO_LONG.search(message[:_LOOKED_AT]) is not None


def _wait_s(error: ModelAPIError) -> float | None:
    """Return the endpoint's retry delay in seconds, or None. Pydantic AI doesn't parse decimals."""
    asked = (error.headers or {}).get("retry-after", "") if isinstance(error, ModelHTTPError) else ""
    return float(asked) if re.fullmatch(r"\s*\d+\.\d+\s*", asked) else error.retry_after


def _codes(error: ModelAPIError) -> Iterable[str]:
    """Yield the endpoint's error codes, most specific first."""
    own = _error_of(error.body)
    nested = _error_of({"error": own.get("innererror")}).get("code")
    for name in (
        own.get("code"),
        error.provider_error_code,
        nested,
        own.get("status"),
        own.get("type"),
        error.provider_error_type,
    ):
        if isinstance(name, str) and _NAME.fullmatch(name):
            yield name


def _error_of(body: object) -> JsonObject:
    """Return a body's `error` object, or the body if it has none. For a list, use the first item.

    Return an empty object if the body is not an object.
    """
    if is_list(body) and body:
        body = body[0]
    if not is_object(body):
        return {}
    inner = body.get("error")
    return inner if is_object(inner) else body


def find_field(body: object) -> str | None:
    """Return the `RequestField` that a rejection is about, or None if the body doesn't mention a field.

    Endpoints name the field in a member such as `param`, in a validation error's location, or in the message.
    """
    error = _error_of(body)
    nested = _error_of({"error": error.get("message")})
    places = [*_places(error.get("detail")), *_places(nested.get("detail"))]
    named = [error.get("param"), error.get("parameter"), error.get("field"), *places]
    exact = " ".join(name for name in named if isinstance(name, str))
    said = [error.get("message"), error.get("detail"), error.get("error"), *_violations(error)]
    if isinstance(body, str):
        said.append(body)
    words = " ".join(text[:_LOOKED_AT] for text in said if isinstance(text, str))
    return _mentioned(exact) or _mentioned(words)


def _mentioned(text: str) -> str | None:
    for field, names in _WIRE_NAMES.items():
        if any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in names):
            return field.value
    return None


def _places(detail: Json) -> Iterable[str]:
    """Yield the locations of validation errors such as `[{"loc": ["body", "metadata"], …}]`."""
    for one in detail if is_list(detail) else []:
        if is_object(one) and is_list(place := one.get("loc")):
            yield " ".join(map(str, place))


def _violations(error: JsonObject) -> Iterable[str]:
    """Yield the `details[].fieldViolations[].description` values in a Google error."""
    details = error.get("details")
    for detail in details if is_list(details) else []:
        listed = detail.get("fieldViolations") if is_object(detail) else None
        for violation in listed if is_list(listed) else []:
            if is_object(violation):
                yield str(violation.get("description", ""))
