"""A turn as callers send it, over HTTP or in a message: the same fields, bounds and words of complaint."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from orchestrator.turns.turn import IfBusy, TurnInput

IDENTIFIER_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}", re.ASCII)
Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")
]
"""Letters, digits and ``. _ : @ -``, at most 128."""


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; write what the user said")
    if "\x00" in text:
        raise ValueError("holds a NUL character, which no store takes; leave it out")
    return text


PlainText = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"})
]
"""Text with something in it."""


def _fit_numbers(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_fit_numbers(one) for one in value]
    if isinstance(value, dict):
        return {name: _fit_numbers(one) for name, one in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError as error:
            raise ValueError("holds a number that is too large") from error
    return value


AnyJson = Annotated[JsonValue, AfterValidator(_fit_numbers)]
"""Whole numbers of more than 64 bits become the nearest number with a decimal point, as in JavaScript."""

Key = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
"""An idempotency key."""

MAX_INPUT_BYTES = 64 * 1024
"""Of one request, encoded."""
MAX_DEPTH = 64
"""Lists and objects within each other."""
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def is_too_deep(body: bytes) -> bool:
    """Whether JSON is nested deeper than `MAX_DEPTH`; most bodies have too few brackets to be looked at."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(body):
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


class Request(BaseModel):
    """Unknown fields are refused, so that a misspelt one is not lost without a word."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Action(Request):
    """What a user did instead of writing: pressed a button, chose a row, sent a form."""

    name: Identifier
    payload: AnyJson = None


class TurnRequest(Request):
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
    idempotency_key: Key | None = None
    sequence: Annotated[int, Field(ge=1, le=2**53)] | None = None
    if_busy: IfBusy | None = None

    @model_validator(mode="after")
    def _one_of_text_and_action(self) -> TurnRequest:
        if (self.text is None) == (self.action is None):
            raise ValueError("give either text or action")
        return self

    def turn_input(self) -> TurnInput:
        """The input as the inbox takes it."""
        if self.action is not None:
            return TurnInput(action=self.action.model_dump(), form=self.form or "action")
        return TurnInput(text=self.text, form=self.form or "text")
