"""Requests that submit turns, for all APIs: fields, limits and validation errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from orchestrator.domain.locales import check_locale, check_timezone, locale_tags, timezone_names
from orchestrator.errors import InputTooLarge, InvalidInput
from orchestrator.turns.turn import IfBusy, Submission, TurnInput
from orchestrator.types import SessionId, TenantId

MAX_INPUT_BYTES = 64 * 1024  # per encoded request
MAX_DEPTH = 64  # levels of nested lists and objects
MAX_WAIT_S = 300.0

IDENTIFIER_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}", re.ASCII)

# Up to 128 letters, digits and ``. _ : @ -``, starting with a letter or digit.
Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")
]
NO_NUL = r"^[^\x00]*$"
NUL_REFUSED = "contains a NUL character, which can't be stored; remove it"
DecisionReason = Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)]
IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL)]


@dataclass(frozen=True, slots=True)
class _NamesInSchema:
    """An annotation that lists a string's valid values in the JSON Schema.

    `names`: returns the values when the schema is generated.
    """

    names: Callable[[], Iterable[str]]

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "enum": sorted(self.names())}


# Named types, so that an OpenAPI schema defines each type only once.
Timezone = TypeAliasType(
    "Timezone",
    Annotated[
        str,
        StringConstraints(max_length=64),
        AfterValidator(check_timezone),
        _NamesInSchema(timezone_names),
    ],
)
LocaleTag = TypeAliasType(
    "LocaleTag",
    Annotated[
        str,
        StringConstraints(max_length=35, pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$"),
        AfterValidator(check_locale),
        _NamesInSchema(locale_tags),
    ],
)

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; send the user's message")
    if "\x00" in text:
        raise ValueError(NUL_REFUSED)
    return text


PlainText = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"})
]


def _fit_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains an unpaired surrogate, which UTF-8 cannot encode") from error
    if "\x00" in text:
        raise ValueError(NUL_REFUSED)
    return text


def _fit(value: JsonValue) -> JsonValue:
    """Convert integers larger than 64 bits to floats, recursively. Raise ValueError for values that stores reject."""
    if isinstance(value, list):
        return [_fit(one) for one in value]
    if isinstance(value, dict):
        return {_fit_text(name): _fit(one) for name, one in value.items()}
    if isinstance(value, str):
        return _fit_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("contains NaN or infinity, which JSON does not support")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError as error:
            raise ValueError("contains a number that is too large") from error
    return value


# Integers larger than 64 bits become the nearest floating-point number, as in JavaScript.
AnyJson = Annotated[JsonValue, AfterValidator(_fit)]


class RequestBody(BaseModel):
    """A request body. Unknown fields are rejected, so that misspelled names are reported."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Action(RequestBody):
    """An input other than text, such as a button, a selected row or a form."""

    name: Identifier
    payload: AnyJson = None


class TurnRequest(RequestBody):
    """A turn to submit, with either `text` or `action`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in ("text", "action")
            ],
            "examples": [
                {"text": "Book a flight from Oslo to Madrid", "idempotency_key": "order-7"},
                {"action": {"name": "select_option", "payload": {"index": 0}}},
            ],
        }
    )

    text: PlainText | None = None
    action: Action | None = None
    form: Annotated[str, StringConstraints(pattern=r"^(text|speech|image|action)$")] | None = None
    idempotency_key: IdempotencyKey | None = None
    sequence: Annotated[int, Field(ge=1, le=2**53)] | None = None
    if_busy: IfBusy | None = None
    timezone: Timezone | None = None
    """The user's IANA time zone, stored with the session."""
    locale: LocaleTag | None = None
    """The user's locale, for example ``de-DE``, stored with the session."""

    @model_validator(mode="after")
    def _one_of_text_and_action(self) -> TurnRequest:
        if (self.text is None) == (self.action is None):
            raise ValueError("requires either text or action")
        return self

    def to_submission(
        self, session_id: SessionId, tenant_id: TenantId, *, idempotency_key: str | None = None
    ) -> Submission:
        """Return the submission. `idempotency_key`: the key to use if the request has no key."""
        action = None if self.action is None else self.action.model_dump()
        form = self.form or ("text" if action is None else "action")
        turn_input = TurnInput(self.text, action, form, timezone=self.timezone, locale=self.locale)
        return Submission(
            session_id,
            turn_input,
            tenant_id,
            idempotency_key=self.idempotency_key or idempotency_key,
            sequence=self.sequence,
            if_busy=self.if_busy,
        )


class Mistake(NamedTuple):
    """A validation error. `field`: dotted path, or ``body`` for the whole request."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}."


def mistakes_in(errors: Sequence[Any]) -> list[Mistake]:
    """Convert a Pydantic ValidationError's errors to mistakes.

    The location ``("body", "action", "name")`` becomes the field ``action.name``.
    """
    mistakes: list[Mistake] = []
    for error in errors:
        place = error["loc"]
        if len(place) > 1 and place[0] in {"body", "query", "path"}:
            place = place[1:]
        field = ".".join(str(part) for part in place) or "body"
        mistakes.append(Mistake(field, str(error["msg"]).removeprefix("Value error, ")))
    return mistakes


def invalid_input(error: ValidationError) -> InvalidInput:
    first = mistakes_in(error.errors(include_url=False, include_input=False))[0]
    return InvalidInput(str(first), field=first.field)


def too_large(most: int = MAX_INPUT_BYTES) -> InputTooLarge:
    return InputTooLarge(f"A request can have at most {most} bytes; send a shorter text.", field="body")


def require_bounded(encoded: bytes, most: int = MAX_INPUT_BYTES) -> None:
    """Raise InputTooLarge or InvalidInput if a request is too large or nested too deeply."""
    if len(encoded) > most:
        raise too_large(most)
    if is_too_deep(encoded):
        raise _too_deep()


def require_bounded_arguments(arguments: dict[str, Any]) -> None:
    """Raise InputTooLarge or InvalidInput if a decoded request is too large, nested too deeply or not JSON."""
    try:
        encoded = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise _too_deep() from error
    except (TypeError, ValueError) as error:
        raise InvalidInput("The arguments are not JSON.", field="body") from error
    require_bounded(encoded.encode("utf-8", errors="surrogatepass"))


def _too_deep() -> InvalidInput:
    return InvalidInput(f"Lists and objects can be nested at most {MAX_DEPTH} levels deep.", field="body")


def is_too_deep(encoded: bytes) -> bool:
    if encoded.count(b"[") + encoded.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(encoded):
        match found[0][:1]:
            case b"[" | b"{":
                depth += 1
                if depth > MAX_DEPTH:
                    return True
            case b"]" | b"}":
                depth -= 1
            case _:
                pass
    return False
