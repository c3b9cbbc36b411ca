"""Store submitted turns and events, and wake a worker if a turn is ready. Every API uses this module."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.ports.turns import Inbox
from orchestrator.ports.wakeup import Wakeup
from orchestrator.turns.scheduled import NewEvent, ScheduledEvent
from orchestrator.turns.turn import FINISHED, Receipt, Submission
from orchestrator.types import JsonObject, SessionId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """A service that submits turns and events. Its methods raise the same errors as `inbox` and `scheduled`."""

    inbox: Inbox
    scheduled: ScheduledEvents
    wakeup: Wakeup

    async def submit(
        self, submission: Submission, accepted: Callable[[Receipt], Awaitable[None]] | None = None
    ) -> Receipt:
        """Accept a turn, and wake a worker unless the submission repeats a finished turn.

        `accepted`: called with the receipt before a worker is woken. If it raises an error, no worker is woken.
        """
        receipt = await self.inbox.submit(submission)
        if accepted is not None:
            await accepted(receipt)
        if receipt.status not in FINISHED:
            await self.wakeup.offer(submission.session_id, tenant_id=submission.tenant_id)
        return receipt

    async def schedule(self, event: NewEvent) -> ScheduledEvent:
        """Store an event. If the event is due, deliver it and wake a worker."""
        return await self._wake_for(await self.scheduled.schedule(event))

    async def move(
        self, tenant_id: TenantId, session_id: SessionId, event_id: str, not_before: datetime
    ) -> ScheduledEvent:
        """Reschedule an event. If the event is due, deliver it and wake a worker."""
        return await self._wake_for(await self.scheduled.move(tenant_id, session_id, event_id, not_before))

    async def answer(
        self, tenant_id: TenantId, reference: str, signature: str, outcome: JsonObject
    ) -> ScheduledEvent:
        return await self._wake_for(await self.scheduled.answer(tenant_id, reference, signature, outcome))

    async def deliver_due(self) -> None:
        if sessions := await self.scheduled.deliver_due():
            await self.wakeup.offer(*sessions)

    async def _wake_for(self, event: ScheduledEvent) -> ScheduledEvent:
        if event.turn_id is not None:
            await self.wakeup.offer(event.session_id, tenant_id=event.tenant_id)
        return event
