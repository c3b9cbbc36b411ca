"""The grammar of a submission: its fields, its bounds and the words of complaint.

Every way in uses it: HTTP, WebSocket and Celery. The clients and the command line hand on the verdict of
the gateway.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from orchestrator.errors import InputTooLarge, InvalidInput
from orchestrator.turns.turn import IfBusy, Submission, TurnInput
from orchestrator.types import SessionId, TenantId

MAX_INPUT_BYTES = 64 * 1024  # of one request, encoded
MAX_DEPTH = 64  # of lists and objects within each other
MAX_WAIT_S = 300.0

IDENTIFIER_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}", re.ASCII)

# Letters, digits and `. _ : @ -`, at most 128.
Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")
]
NO_NUL = r"^[^\x00]*$"
NUL_REFUSED = "holds a NUL character, which no store takes; leave it out"
IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL)]

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; write what the user said")
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
        raise ValueError("holds half a character, which UTF-8 cannot write") from error
    if "\x00" in text:
        raise ValueError(NUL_REFUSED)
    return text


def _fit(value: JsonValue) -> JsonValue:
    """Give numbers a form that every reader of JSON has, and refuse what no store takes."""
    if isinstance(value, list):
        return [_fit(one) for one in value]
    if isinstance(value, dict):
        return {_fit_text(name): _fit(one) for name, one in value.items()}
    if isinstance(value, str):
        return _fit_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds NaN or an infinite number, which JSON does not have")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError as error:
            raise ValueError("holds a number that is too large") from error
    return value


# Whole numbers of more than 64 bits become the nearest number with a decimal point, as in JavaScript.
AnyJson = Annotated[JsonValue, AfterValidator(_fit)]


class RequestBody(BaseModel):
    """Refuse unknown fields, so that a misspelt one does not go unnoticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Action(RequestBody):
    """What a user did instead of writing: pressed a button, chose a row, sent a form."""

    name: Identifier
    payload: AnyJson = None


class TurnRequest(RequestBody):
    """`text` or `action`, never both."""

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

    @model_validator(mode="after")
    def _one_of_text_and_action(self) -> TurnRequest:
        if (self.text is None) == (self.action is None):
            raise ValueError("give either text or action")
        return self

    def to_submission(
        self, session_id: SessionId, tenant_id: TenantId, *, idempotency_key: str | None = None
    ) -> Submission:
        """The turn as the inbox takes it. `idempotency_key` counts where the request names none."""
        if self.action is not None:
            turn_input = TurnInput(action=self.action.model_dump(), form=self.form or "action")
        else:
            turn_input = TurnInput(text=self.text, form=self.form or "text")
        return Submission(
            session_id,
            turn_input,
            tenant_id,
            idempotency_key=self.idempotency_key or idempotency_key,
            sequence=self.sequence,
            if_busy=self.if_busy,
        )


class Mistake(NamedTuple):
    """One thing that is wrong with a request. `field`: dotted; ``body`` for the request as a whole."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}."


def mistakes_in(errors: Sequence[Any]) -> list[Mistake]:
    """Pydantic's errors in the words of all interfaces; ``("body", "action", "name")`` is ``action.name``."""
    mistakes: list[Mistake] = []
    for error in errors:
        place = error["loc"]
        if len(place) > 1 and place[0] in {"body", "query", "path"}:
            place = place[1:]
        field = ".".join(str(part) for part in place) or "body"
        mistakes.append(Mistake(field, str(error["msg"]).removeprefix("Value error, ")))
    return mistakes


def invalid_input(error: ValidationError) -> InvalidInput:
    """The first mistake, as the error that every interface reports."""
    first = mistakes_in(error.errors(include_url=False, include_input=False))[0]
    return InvalidInput(str(first), field=first.field)


def too_large() -> InputTooLarge:
    """The complaint about a request of more than `MAX_INPUT_BYTES`."""
    return InputTooLarge(
        f"A request may have at most {MAX_INPUT_BYTES} bytes; send a shorter text.", field="body"
    )


def require_bounded(encoded: bytes) -> None:
    """Check the size and the depth of a request. Raises InputTooLarge, InvalidInput."""
    if len(encoded) > MAX_INPUT_BYTES:
        raise too_large()
    if is_too_deep(encoded):
        raise _too_deep()


def require_bounded_arguments(arguments: dict[str, Any]) -> None:
    """Check the size and the depth of a request that was decoded already. Raises like `require_bounded`."""
    try:
        encoded = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise _too_deep() from error
    except (TypeError, ValueError) as error:
        raise InvalidInput("The arguments are not JSON.", field="body") from error
    require_bounded(encoded.encode("utf-8", errors="surrogatepass"))


def _too_deep() -> InvalidInput:
    return InvalidInput(
        f"Lists and objects may be nested {MAX_DEPTH} deep; send a flatter request.", field="body"
    )


def is_too_deep(encoded: bytes) -> bool:
    """Decide if JSON is nested deeper than `MAX_DEPTH`; most requests have too few brackets to be searched."""
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
