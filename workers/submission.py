"""`orchestrator.submit_turn`: from the arguments of a message to an accepted turn, or one clear error."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from orchestrator.bootstrap import Ports
from orchestrator.errors import InvalidInput, ParleyError, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.result import turn_object
from orchestrator.turns.submission import (
    MAX_WAIT_S,
    NO_NUL,
    Identifier,
    TurnRequest,
    invalid_input,
    require_bounded_arguments,
)
from orchestrator.turns.turn import Submission
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, UserId

_log = get_logger(__name__)


class QueuedTurnRequest(TurnRequest):
    """The arguments of the task: a turn, its session and how long to wait for the answer."""

    session_id: Identifier
    domain: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL)] | None = None
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    user_id: Identifier | None = None

    def for_inbox(self, default_domain: str) -> Submission:
        """The turn as the inbox takes it; a session that does not exist is created."""
        return replace(
            self.to_submission(SessionId(self.session_id), TenantId(self.tenant_id)),
            create_session=True,
            domain=self.domain or default_domain,
            user_id=None if self.user_id is None else UserId(self.user_id),
        )


def parse_request(arguments: dict[str, Any]) -> QueuedTurnRequest:
    """Validate the arguments of a message. Raises InvalidInput naming the first offending field."""
    require_bounded_arguments(arguments)
    try:
        return QueuedTurnRequest.model_validate(arguments)
    except ValidationError as error:
        raise invalid_input(error) from error


async def submit(request: QueuedTurnRequest, ports: Ports, default_domain: str) -> JsonObject:
    """Accept a turn and leave a wake-up; with `wait` also its turn object. Raises ParleyError."""
    submission = request.for_inbox(default_domain)
    receipt = await ports.stores.inbox.submit(submission)
    await ports.shared.wakeup.offer(receipt.session_id)
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
    described: JsonObject = {"code": error.code, "message": str(error)}
    if isinstance(error, InvalidInput):
        described["field"] = error.field
    return {"status": "rejected", "error": described}
