"""Bodies of requests. Answers are the objects of the interfaces as they are stored."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from orchestrator.turns.turn import IfBusy

Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")
]
"""Letters, digits and ``. _ : @ -``, at most 128."""

PlainText = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""Text that PostgreSQL can hold: no NUL."""


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewSession(Body):
    domain: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    tenant_id: Identifier | None = None
    if_busy: IfBusy = IfBusy.ENQUEUE
    webhook: Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://")] | None = None


class Action(Body):
    name: Identifier
    payload: JsonValue = None


class NewTurn(Body):
    """`text` or `action`, never both."""

    text: PlainText | None = None
    action: Action | None = None
    form: Annotated[str, StringConstraints(pattern=r"^(text|speech|image|action)$")] | None = None
    idempotency_key: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    sequence: Annotated[int, Field(ge=1, le=2**53)] | None = None
    if_busy: IfBusy | None = None

    @model_validator(mode="after")
    def _one_of_text_and_action(self) -> NewTurn:
        if (self.text is None) == (self.action is None):
            raise ValueError("give either text or action")
        if self.text is not None and not self.text.strip():
            raise ValueError("text is empty; write what the user said")
        return self


class Rollback(Body):
    epoch: Annotated[int, Field(ge=0)]
