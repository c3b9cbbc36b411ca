"""Types that parameters, request bodies and responses share."""

from collections.abc import Collection
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, get_type_hints

from fastapi import Header, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.config import JsonDict

from orchestrator.errors import Refused
from orchestrator.turns.submission import MAX_WAIT_S

JsonMap = dict[str, Any]

Limit = Annotated[int, Query(ge=1, le=1000)]
Number = Annotated[int, Query(ge=0, le=2**53)]
Before = Annotated[int | None, Query(ge=1, le=2**53, description="Only turns with a lower `seq`.")]
Wait = Annotated[float | None, Query(ge=0, le=MAX_WAIT_S)]
KeyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)]
AtEpoch = Annotated[
    int | None, Query(ge=0, le=2**53, description="Version to read. Default: the current version.")
]

# JSON Schemas of members that must be present or absent, which the types can't express.
GIVEN: JsonDict = {"not": {"type": "null"}}
ABSENT: JsonDict = {"type": "null"}


def format_time(at: object) -> object:
    """Format a datetime or Unix seconds as ISO 8601. Return other values unchanged."""
    if isinstance(at, datetime):
        return at.isoformat()
    return datetime.fromtimestamp(at, UTC).isoformat() if isinstance(at, float) else at


# Records use datetimes or Unix seconds, and responses use ISO 8601.
Timestamp = Annotated[str, BeforeValidator(format_time), Field(json_schema_extra={"format": "date-time"})]
OptionalTimestamp = Timestamp | None


class ResponseModel(BaseModel):
    """The base class of responses, created from a record. Later versions can add members, but never remove them."""

    model_config = ConfigDict(extra="allow", from_attributes=True)


def response_of(record: type, *, without: Collection[str] = ()) -> type[ResponseModel]:
    """Return the response model of a dataclass: its fields except `without`, with times in ISO 8601.

    A subclass can describe or replace fields.
    """
    hints = get_type_hints(record, include_extras=True)
    members: dict[str, Any] = {
        field.name: (_shown(field.name, hints[field.name]), ...)
        for field in fields(record)
        if field.name not in without
    }
    return create_model(record.__name__, __base__=ResponseModel, **members)


def _shown(name: str, kind: Any) -> Any:
    if kind is datetime or (kind is float and name.endswith("_at")):
        return Timestamp
    return OptionalTimestamp if kind == datetime | None else kind


def documented(model: Any) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` argument for a route that sends stored JSON without validation."""
    return {200: {"model": model}}


def optional(description: str) -> Any:
    """Return a field that is omitted from the response if its value is None."""
    return Field(default=None, exclude_if=_is_none, description=description)


def _is_none(value: object) -> bool:
    return value is None


def require_same_key(header: str | None, body: str | None) -> None:
    """Raise Refused if a request's header and body have different idempotency keys."""
    if header and body and header != body:
        raise Refused("The header and the body have different idempotency keys; send only one.")
