"""The base of all response models, and types that they share."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

JsonMap = dict[str, Any]


def format_time(at: object) -> object:
    """ISO 8601 of a datetime or of unix seconds; anything else as it is."""
    if isinstance(at, datetime):
        return at.isoformat()
    return datetime.fromtimestamp(at, UTC).isoformat() if isinstance(at, float) else at


# Records hold datetimes or unix seconds; answers ISO 8601.
Timestamp = Annotated[str, BeforeValidator(format_time), Field(json_schema_extra={"format": "date-time"})]


class ResponseModel(BaseModel):
    """An answer, made from a record or an object. Members may be added; those that are named stay."""

    model_config = ConfigDict(extra="allow", from_attributes=True)


def documented(model: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that is stored as JSON and goes out as it is, without being checked again."""
    return {status: {"model": model}}


def optional(description: str) -> Any:
    """A member that is left out where there is nothing to say."""
    return Field(default=None, exclude_if=_is_none, description=description)


def _is_none(value: object) -> bool:
    return value is None
