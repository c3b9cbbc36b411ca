"""The Celery API: tasks to submit, show or cancel a turn, decide an approval, and send or cancel an event.

A task that waits for its turn is stored with the turn and occupies no thread; see `workers.answers`.
"""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from celery.exceptions import Reject
from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.adapters.postgres.turns.awaited import AwaitedTask, PostgresAwaitedTasks
from orchestrator.bootstrap import Ports
from orchestrator.errors import InvalidInput, NotFound, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.approval import Decision, resuming_turn
from orchestrator.turns.scheduled import EventRequest, require_known_event
from orchestrator.turns.submission import (
    MAX_WAIT_S,
    NO_NUL,
    DecisionReason,
    IdempotencyKey,
    Identifier,
    RequestBody,
    TurnRequest,
    invalid_input,
    require_bounded_arguments,
)
from orchestrator.turns.turn import FINISHED, Receipt, Submission, TurnRecord, turn_object
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, TurnId, UserId

CANCELS_WITHIN_S: Final = 30.0
"""Default time that `cancel_turn` waits for a running turn to stop, in seconds."""
DECIDED_BY: Final = "a backend"
_REVOKE_AGAIN_AFTER_S: Final = (1, 2, 5, 10, 10, 10, 10, 10)

_log = get_logger(__name__)

WaitS = Annotated[float, Field(ge=0, le=MAX_WAIT_S)]


class QueuedTurnRequest(TurnRequest):
    """Arguments of `submit_turn`.

    `wait`: maximum time to wait for the turn's end, in seconds, or None to return a receipt immediately.
    """

    session_id: Identifier
    domain: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL)] | None = None
    wait: WaitS | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    user_id: Identifier | None = None

    def for_inbox(self, domains: DomainRegistry) -> Submission:
        """Return the submission, which creates the session if it doesn't exist.

        Raises InvalidInput if the domain is not served.
        """
        domain = domains.resolve(self.domain)
        return replace(
            self.to_submission(SessionId(self.session_id), TenantId(self.tenant_id)),
            create_session=True,
            domain=domain,
            session_if_busy=domains.if_busy(domain),
            user_id=None if self.user_id is None else UserId(self.user_id),
        )


def _named(given: Any) -> Any:
    """Return the turn ID from a previous task's receipt or turn object. Return other input unchanged."""
    return given.get("turn_id") if isinstance(given, Mapping) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


class TurnReference(RequestBody):
    """A reference to a turn, by turn ID or idempotency key.

    `session_id`: the turn's session, if several sessions use the idempotency key. `wait`: maximum time to
    wait for the turn's end, in seconds.
    """

    turn_id: Annotated[Identifier, BeforeValidator(_named)] | None = None
    idempotency_key: IdempotencyKey | None = None
    session_id: Identifier | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    wait: WaitS | None = None

    async def read(self, ports: Ports) -> TurnRecord:
        """Return the turn. Raises NotFound, or InvalidInput if the reference is missing or ambiguous."""
        tenant_id = TenantId(self.tenant_id)
        if self.turn_id is not None:
            return await ports.stores.inbox.turn(tenant_id, TurnId(self.turn_id))
        if self.idempotency_key is None:
            raise InvalidInput("turn_id: specify turn_id or idempotency_key.", field="turn_id")
        session_id = None if self.session_id is None else SessionId(self.session_id)
        found = await ports.stores.inbox.submitted_as(tenant_id, self.idempotency_key, session_id)
        if not found:
            raise NotFound("turn", self.idempotency_key)
        if len(found) > 1:
            message = "idempotency_key: several sessions have a turn with this key; specify session_id too."
            raise InvalidInput(message, field="session_id")
        return found[0]


class ApprovalRequest(RequestBody):
    """Arguments of `decide_approval`."""

    approval_id: Identifier
    decision: Literal["grant", "deny"]
    reason: DecisionReason | None = None
    decided_by: Identifier | None = None
    tenant_id: Identifier = DEFAULT_TENANT


class QueuedEvent(EventRequest):
    """Arguments of `send_event`.

    A request that repeats an idempotency key returns the first event, even if `not_before` differs.
    """

    session_id: Identifier
    tenant_id: Identifier = DEFAULT_TENANT


class EventReference(RequestBody):
    """Arguments of `cancel_event`. `event_id`: the event's ID or its idempotency key."""

    session_id: Identifier
    event_id: IdempotencyKey
    tenant_id: Identifier = DEFAULT_TENANT


Request = TypeVar("Request", bound=RequestBody)


def parse_arguments(kind: type[Request], arguments: Mapping[str, Any]) -> Request:
    """Validate a message's arguments. Raises InvalidInput for the first invalid field."""
    require_bounded_arguments(dict(arguments))
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        raise invalid_input(error) from error


def parse_request(arguments: Mapping[str, Any]) -> QueuedTurnRequest:
    return parse_arguments(QueuedTurnRequest, arguments)


def name_arguments(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], *, follows: bool
) -> dict[str, Any]:
    """Return all arguments by name. Positional arguments fill the remaining `names` in order.

    `follows`: True if `args` can start with a previous task's result, which is dropped if there is one
    argument too many. Raises InvalidInput if there are too many arguments.
    """
    free = [name for name in names if name not in kwargs]
    given = list(args)
    if follows and len(given) == len(free) + 1:
        del given[0]
    if len(given) > len(free):
        message = f"At most {len(free)} positional arguments are allowed ({', '.join(free) or 'none'})."
        raise InvalidInput(message, field="body")
    return {**kwargs, **dict(zip(free, given, strict=False))}


@dataclass(frozen=True, slots=True)
class BrokerTask:
    """A Celery task. `expires_at`: the task's expiry time, or None if it doesn't expire.

    `request`: request fields needed to end the task later, as JSON.
    """

    task_id: str
    request: JsonObject
    expires_at: datetime | None = None


class Submissions:
    """The Celery API's tasks, bound to the process's event loop.

    Each task method returns the task's result, or None if the task ends later together with its turn. All
    methods can raise ParleyError.
    """

    def __init__(self, ports: Ports, awaited: PostgresAwaitedTasks) -> None:
        self._ports = ports
        self._submitter = ports.submitter
        self._awaited = awaited

    async def submit(self, arguments: JsonObject, task: BrokerTask) -> JsonObject | None:
        """Accept a turn and wake a worker. A redelivered message doesn't create another turn."""
        request = parse_request({"idempotency_key": task.task_id, **arguments})
        submission = request.for_inbox(self._ports.domains)
        waits = request.wait is not None

        async def register(receipt: Receipt) -> None:
            if task.expires_at is not None and datetime.now(UTC) >= task.expires_at:
                # The task expired while the database was busy. On redelivery, Celery revokes the message.
                await self._stop(submission.tenant_id, receipt.turn_id)
                raise Reject("The task has expired.", requeue=True)
            if waits or task.expires_at is not None:
                await self._awaited.add(_awaited(task, submission.tenant_id, receipt, request.wait))

        receipt = await self._submitter.submit(submission, register)
        if waits:
            return None
        return {
            "session_id": receipt.session_id,
            "turn_id": receipt.turn_id,
            "seq": receipt.seq,
            "status": receipt.status.value,
            "position": receipt.position,
        }

    async def show(self, arguments: JsonObject, task: BrokerTask) -> JsonObject | None:
        """Return a turn, immediately or, with a `wait`, after the turn ends or the wait times out."""
        request = parse_arguments(TurnReference, arguments)
        turn = await request.read(self._ports)
        if not request.wait or turn.status in FINISHED:
            return turn_object(turn)
        await self._awaited.add(_awaited(task, turn.tenant_id, turn, request.wait, cancels=False))
        return None

    async def cancel(self, arguments: JsonObject, task: BrokerTask) -> JsonObject | None:
        """Cancel a turn, and return the turn with its side effects.

        If the turn is running, the task ends when the turn stops, but at the latest after the wait.
        """
        request = parse_arguments(TurnReference, arguments)
        turn = await request.read(self._ports)
        wait_s = CANCELS_WITHIN_S if request.wait is None else request.wait
        turn = await self._ports.stores.inbox.cancel(turn.tenant_id, turn.turn_id)
        if wait_s == 0 or turn.status in FINISHED:
            return await describe_end(self._ports, turn)
        await self._awaited.add(_awaited(task, turn.tenant_id, turn, wait_s, cancels=False))
        return None

    async def decide(self, arguments: JsonObject, _: BrokerTask) -> JsonObject:
        """Decide an approval for a backend, and resume the flow in a new turn.

        Approvals that require an operator can't be granted here, only over HTTP.
        """
        request = parse_arguments(ApprovalRequest, arguments)
        tenant_id, granted = TenantId(request.tenant_id), request.decision == "grant"
        decision = Decision(granted, request.decided_by or DECIDED_BY, request.reason)
        record = await self._ports.stores.approvals.decide(tenant_id, request.approval_id, decision)
        receipt = await self._submitter.submit(resuming_turn(tenant_id, record, granted=granted))
        return {**record.as_json(), "resumed_by": receipt.turn_id}

    async def send_event(self, arguments: JsonObject, task: BrokerTask) -> JsonObject:
        """Schedule an outside event, or deliver it now. A redelivered message doesn't create another event."""
        request = parse_arguments(QueuedEvent, {"idempotency_key": task.task_id, **arguments})
        tenant_id, session_id = TenantId(request.tenant_id), SessionId(request.session_id)
        session = await self._ports.stores.sessions.get(tenant_id, session_id)
        require_known_event(request.name, self._ports.domains.events(session.domain))
        return (await self._submitter.schedule(request.to_event(session_id, tenant_id))).as_json()

    async def cancel_event(self, arguments: JsonObject, _: BrokerTask) -> JsonObject:
        """Cancel an event, and its turn if the turn hasn't started."""
        request = parse_arguments(EventReference, arguments)
        tenant_id, session_id = TenantId(request.tenant_id), SessionId(request.session_id)
        return (await self._ports.stores.scheduled.cancel(tenant_id, session_id, request.event_id)).as_json()

    async def revoke(self, task_id: str) -> None:
        """Cancel a revoked task's unfinished turns, retrying while the database is unavailable."""
        for pause_s in _REVOKE_AGAIN_AFTER_S:
            try:
                for tenant_id, turn_id in await self._awaited.revoked(task_id):
                    await self._stop(tenant_id, turn_id)
            except Unavailable:
                await asyncio.sleep(pause_s)
            else:
                return
        _log.error("Could not cancel a revoked task's turn: the database is not responding.", task=task_id)

    async def end_waits(self) -> bool:
        """Cancel the turns of expired tasks, and end tasks that have reached their wait timeout.

        Return True if any tasks ended.
        """
        for tenant_id, turn_id in await self._awaited.expired():
            await self._stop(tenant_id, turn_id)
        return await self._awaited.end_waits() > 0

    async def _stop(self, tenant_id: TenantId, turn_id: TurnId) -> None:
        await self._ports.stores.inbox.cancel(tenant_id, turn_id)


def _awaited(
    task: BrokerTask,
    tenant_id: TenantId,
    turn: Receipt | TurnRecord,
    wait_s: float | None,
    *,
    cancels: bool = True,
) -> AwaitedTask:
    return AwaitedTask(
        task_id=task.task_id,
        tenant_id=tenant_id,
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        request=None if wait_s is None else task.request,
        wait_s=wait_s,
        expires_at=task.expires_at,
        cancels=cancels,
    )


async def describe_end(ports: Ports, turn: TurnRecord) -> JsonObject:
    """Return a turn object with `done`, the list of side effects that the turn has or may have caused."""
    effects = await ports.stores.effects.list(turn.tenant_id, turn.session_id)
    done = [
        {"tool_id": effect.tool_id, "arguments": effect.arguments, "status": effect.status.value}
        for effect in effects
        if effect.turn_id == turn.turn_id
    ]
    return {**turn_object(turn), "done": done}


def follow_up_id(task_id: str, place: str) -> str:
    """Return the ID of the task that follows `task_id` at `place`. The ID is the same in every attempt.

    `place`: for example ``callbacks:0``.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{task_id}:{place}"))
