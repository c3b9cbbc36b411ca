"""`orchestrator.submit_turn`: from the arguments of a message to an accepted turn, or one clear error.

A sender that wants the answer gets it when it is there; no thread waits for that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import Ports
from orchestrator.errors import InvalidInput, ParleyError, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.submission import (
    MAX_WAIT_S,
    NO_NUL,
    Identifier,
    TurnRequest,
    invalid_input,
    require_bounded_arguments,
)
from orchestrator.turns.turn import Submission, turn_object
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, TurnId, UserId

_log = get_logger(__name__)


class QueuedTurnRequest(TurnRequest):
    """The arguments of the task: a turn, its session and how long to wait for the answer."""

    session_id: Identifier
    domain: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL)] | None = None
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    user_id: Identifier | None = None

    def for_inbox(self, domains: DomainRegistry) -> Submission:
        """The turn as the inbox takes it; a session that does not exist is created.

        Raises InvalidInput for a domain that is not served here.
        """
        domain = domains.resolve(self.domain)
        return replace(
            self.to_submission(SessionId(self.session_id), TenantId(self.tenant_id)),
            create_session=True,
            domain=domain,
            session_if_busy=domains.if_busy(domain),
            user_id=None if self.user_id is None else UserId(self.user_id),
        )


def parse_request(arguments: dict[str, Any]) -> QueuedTurnRequest:
    """Validate the arguments of a message. Raises InvalidInput naming the first offending field."""
    require_bounded_arguments(arguments)
    try:
        return QueuedTurnRequest.model_validate(arguments)
    except ValidationError as error:
        raise invalid_input(error) from error


Answer = Callable[[JsonObject], None]
"""Gives the sender its result; blocks, and may raise when the store of results does not answer."""


class Submissions:
    """Accepts turns on the process's loop, and answers those who wait once their turns have ended."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._waiting: set[asyncio.Task[None]] = set()

    async def accept(self, request: QueuedTurnRequest, answer: Answer) -> JsonObject | None:
        """Accept a turn and leave a wake-up; its receipt, or None for a sender that is answered later.

        Raises ParleyError.
        """
        submission = request.for_inbox(self._ports.domains)
        receipt = await self._ports.stores.inbox.submit(submission)
        await self._ports.shared.wakeup.offer(receipt.session_id)
        shown: JsonObject = {
            "session_id": receipt.session_id,
            "turn_id": receipt.turn_id,
            "seq": receipt.seq,
            "status": receipt.status.value,
        }
        if request.wait is None:
            return shown
        task = asyncio.create_task(self._answer(submission.tenant_id, shown, request.wait, answer))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return None

    async def close(self) -> None:
        """Give those who still wait what they have: the receipt of their turn."""
        waiting = list(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _answer(self, tenant_id: TenantId, shown: JsonObject, wait_s: float, answer: Answer) -> None:
        result = shown
        try:
            record = await self._ports.waiter.finished(
                tenant_id, SessionId(shown["session_id"]), TurnId(shown["turn_id"]), wait_s
            )
            result = turn_object(record)
        except ParleyError as error:
            result = error_result(error)
        finally:
            await _give(answer, result)


async def _give(answer: Answer, result: JsonObject) -> None:
    try:
        await run_in_thread(answer, result)
    except Exception as error:  # noqa: BLE001 - whatever the store of results raises; the turn itself is safe
        _log.warning("An answer could not be given to its sender.", turn=result.get("turn_id"), error=error)


def error_result(error: Exception) -> JsonObject:
    """An error as the result of a task: `error` with its stable code and a message."""
    if not isinstance(error, ParleyError):
        _log.error("A submission failed.", exc_info=error)
        error = Unavailable("The message could not be dealt with; try again.")
    described: JsonObject = {"code": error.code, "message": str(error)}
    if isinstance(error, InvalidInput):
        described["field"] = error.field
    return {"status": "rejected", "error": described}
