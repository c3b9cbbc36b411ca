"""`orchestrator.submit_turn`: from the arguments of a message to an accepted turn, or one clear error."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from orchestrator.bootstrap import Ports
from orchestrator.errors import InputTooLarge, InvalidInput, ParleyError, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.request import MAX_DEPTH, is_too_deep
from orchestrator.turns.result import turn_object
from orchestrator.turns.turn import IfBusy, Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, UserId

MAX_TEXT_BYTES = 64 * 1024
MAX_WAIT_S = 600.0

_log = get_logger(__name__)

Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$")
]


class Action(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Identifier
    payload: JsonValue = None


class TurnRequest(BaseModel):
    """The arguments of the task: `text` or `action`, never both."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: Identifier
    text: Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")] | None = None
    action: Action | None = None
    form: Annotated[str, StringConstraints(pattern=r"^(text|speech|image|action)$")] | None = None
    domain: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | None = None
    idempotency_key: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    sequence: Annotated[int, Field(ge=1, le=2**53)] | None = None
    if_busy: IfBusy | None = None
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    user_id: Identifier | None = None

    @model_validator(mode="after")
    def _one_of_text_and_action(self) -> TurnRequest:
        if (self.text is None) == (self.action is None):
            raise ValueError("give either text or action")
        if self.text is not None and not self.text.strip():
            raise ValueError("text is empty; write what the user said")
        return self

    def to_submission(self, default_domain: str) -> Submission:
        """The turn as the inbox takes it."""
        if self.action is not None:
            given = TurnInput(action=self.action.model_dump(), form=self.form or "action")
        else:
            given = TurnInput(text=self.text, form=self.form or "text")
        return Submission(
            SessionId(self.session_id),
            given,
            TenantId(self.tenant_id),
            idempotency_key=self.idempotency_key,
            sequence=self.sequence,
            if_busy=self.if_busy,
            create_session=True,
            domain=self.domain or default_domain,
            user_id=None if self.user_id is None else UserId(self.user_id),
        )


def parse_request(arguments: dict[str, Any]) -> TurnRequest:
    """Validate the arguments of a message. Raises InvalidInput naming the first offending field."""
    _require_bounded(arguments.get("action"))
    text = arguments.get("text")
    if isinstance(text, str) and _size(text) > MAX_TEXT_BYTES:
        raise InputTooLarge(
            f"A text may have at most {MAX_TEXT_BYTES} bytes; send a shorter one.", field="text"
        )
    try:
        return TurnRequest.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "text"
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{field}: {message}", field=field) from error


def _require_bounded(action: object) -> None:
    """Raises InputTooLarge; what is nested hundreds deep the encoder itself refuses."""
    too_deep = f"An action may be nested {MAX_DEPTH} deep, and has to be JSON; send a flatter one."
    try:
        encoded = orjson.dumps(action)
    except orjson.JSONEncodeError as error:
        raise InputTooLarge(too_deep, field="action") from error
    if is_too_deep(encoded):
        raise InputTooLarge(too_deep, field="action")
    if len(encoded) > MAX_TEXT_BYTES:
        raise InputTooLarge(
            f"An action may have at most {MAX_TEXT_BYTES} bytes; send a smaller one.", field="action"
        )


async def submit(request: TurnRequest, ports: Ports, default_domain: str) -> JsonObject:
    """Accept a turn and leave a wake-up; with `wait` also its turn object. Raises ParleyError."""
    submission = request.to_submission(default_domain)
    receipt = await ports.inbox.submit(submission)
    await ports.wakeup.offer(receipt.session_id)
    if request.wait is not None:
        record = await ports.waiter.finished(
            submission.tenant_id, receipt.session_id, receipt.turn_id, request.wait
        )
        return turn_object(record)
    return {
        "session_id": receipt.session_id,
        "turn_id": receipt.turn_id,
        "seq": receipt.seq,
        "status": receipt.status.value,
    }


def error_result(error: Exception) -> JsonObject:
    """An error as the result of a task: `error` with its stable code and a message."""
    if not isinstance(error, ParleyError):
        _log.error("A submission failed.", exc_info=error)
        error = Unavailable("The turn could not be accepted; try again.")
    told: JsonObject = {"code": error.code, "message": str(error)}
    if isinstance(error, InvalidInput):
        told["field"] = error.field
    return {"status": "rejected", "error": told}


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="surrogatepass"))
