"""Run the AG-UI protocol on sessions: a run submits turns, and its interrupts are approvals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from ag_ui.core import (
    BaseEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunStartedEvent,
    TextPart,
    UserMessage,
)
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent

from gateway.agui import TurnTranslator, end_run
from gateway.auth.disclosure import turn_for
from gateway.dependencies import Dependencies, leave_of
from gateway.routes.events import HEARTBEAT_EVERY_S, SLOW_FOR_S
from orchestrator.errors import NotFound, ParleyError, Unavailable
from orchestrator.turns.access import Caller
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision, resuming_turn
from orchestrator.turns.event import ENDINGS
from orchestrator.turns.submission import IDENTIFIER_PATTERN, TurnRequest, invalid_input, require_bounded
from orchestrator.turns.turn import FINISHED, turn_object
from orchestrator.types import JsonObject, SessionId, TurnId, hash_json, is_object

MOST_INTERRUPTS: Final = 100
LONGEST_REASON: Final = 2000
OF_THE_USER: Final = frozenset({"timezone", "locale"})
"""Members of `forwardedProps` that are copied to the turn."""
_ENCODER = EventEncoder()


async def start_run(body: JsonObject, dependencies: Dependencies, caller: Caller) -> EventSourceResponse:
    """Submit a run's turns and stream their events. Raises InvalidInput."""
    try:
        given = RunAgentInput.model_validate(body)
    except ValidationError as error:
        raise invalid_input(error) from error
    run = _Run(dependencies, caller, given, _session_of(given.thread_id))
    await run.open_session()
    after = await dependencies.sessions.events.last_number(caller.tenant_id, run.session_id)
    turns = await run.resume(given.resume) if given.resume else await run.submit()
    return EventSourceResponse(
        run.stream(turns, after),
        ping=HEARTBEAT_EVERY_S,
        ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        send_timeout=SLOW_FOR_S,
        sep="\n",
    )


@dataclass(frozen=True, slots=True)
class _Run:
    dependencies: Dependencies
    caller: Caller
    given: RunAgentInput
    session_id: SessionId

    async def open_session(self) -> None:
        """Create the thread's session unless the session exists.

        Raises NotFound if the session belongs to another user.
        """
        sessions, caller = self.dependencies.sessions, self.caller
        try:
            owner = await sessions.store.owner(caller.tenant_id, self.session_id)
        except NotFound:
            domain = sessions.domains.resolve(self._domain())
            record = await sessions.store.create(
                caller.tenant_id,
                domain,
                session_id=self.session_id,
                user_id=caller.acting_user(None),
                if_busy=sessions.domains.if_busy(domain),
            )
            owner = record.user_id
        caller.require_owner(self.session_id, owner)

    def _domain(self) -> str | None:
        named = self._props().get("domain")
        return named if isinstance(named, str) else None

    def _props(self) -> JsonObject:
        props = self.given.forwarded_props
        return props if is_object(props) else {}

    async def submit(self) -> list[TurnId]:
        """Submit the last message if it is text from the user. Return a list with the turn's ID, or an empty list."""
        last = self.given.messages[-1] if self.given.messages else None
        text = _text_of(last) if isinstance(last, UserMessage) else ""
        if not text.strip():
            return []
        require_bounded(text.encode())
        try:
            chosen = {name: given for name, given in self._props().items() if name in OF_THE_USER}
            request = TurnRequest.model_validate({"text": text, **chosen})
        except ValidationError as error:
            raise invalid_input(error) from error
        key = f"agui:{hash_json([self.given.run_id, text])}"
        submission = request.to_submission(self.session_id, self.caller.tenant_id, idempotency_key=key)
        return [(await self.dependencies.turns.submit(submission)).turn_id]

    async def resume(self, answers: Sequence[ResumeEntry]) -> list[TurnId]:
        """Decide the approvals that the answers name. Return the IDs of the turns that resume the flows."""
        return [await self._decide(answer) for answer in answers[:MOST_INTERRUPTS]]

    async def _decide(self, answer: ResumeEntry) -> TurnId:
        approvals, caller = self.dependencies.approvals, self.caller
        asked = await approvals.get(caller.tenant_id, answer.interrupt_id)
        if asked.session_id != self.session_id:
            raise NotFound("approval", answer.interrupt_id)
        payload: JsonObject = answer.payload if is_object(answer.payload) else {}
        granted = answer.status == "resolved" and payload.get("approved") is True
        reason = payload.get("reason")
        decision = Decision(
            granted,
            caller.decider(None),
            reason[:LONGEST_REASON] if isinstance(reason, str) else None,
            by_operator=caller.operates,
        )
        if not decision.suffices(operator_only=asked.operator_only):
            caller.require_operator()
        resuming = resuming_turn(caller.tenant_id, asked, granted=granted)
        inbox, key = self.dependencies.turns.inbox, resuming.idempotency_key
        for turn in await inbox.submitted_as(caller.tenant_id, key or "", self.session_id):
            if turn.input.action == resuming.input.action:  # a repeated run
                return turn.turn_id
        await approvals.decide(caller.tenant_id, answer.interrupt_id, decision)
        return (await self.dependencies.turns.submit(resuming)).turn_id

    async def stream(self, turns: Sequence[TurnId], after: int) -> AsyncGenerator[bytes]:
        yield _encode(RunStartedEvent(thread_id=self.given.thread_id, run_id=self.given.run_id))
        try:
            ended: JsonObject | None = None
            for turn_id in turns:
                translator = TurnTranslator(self.given, turn_id)
                async for event in self._follow(turn_id, after, translator):
                    yield event
                ended = await self._read(turn_id)
                for event in translator.at_end(ended):
                    yield _encode(event)
            yield _encode(end_run(self.given, ended, await self._interrupts()))
        except ParleyError as error:
            yield _encode(RunErrorEvent(message=str(error), code=error.code))

    async def _follow(self, turn_id: TurnId, after: int, translator: TurnTranslator) -> AsyncGenerator[bytes]:
        """Yield a turn's events until the turn has ended. Raises Unavailable if the stream ends earlier."""
        tenant = self.caller.tenant_id
        leave = leave_of(self.dependencies.access, self.caller)
        events = self.dependencies.sessions.events.follow(tenant, self.session_id, after=after, leave=leave)
        if (await self.dependencies.turns.inbox.turn(tenant, turn_id)).status in FINISHED:
            return
        async with aclosing(events):
            async for event in events:
                if event.turn_id != turn_id:
                    continue
                for one in translator.during(event):
                    yield _encode(one)
                if event.type in ENDINGS and event.number is not None:
                    return
        raise Unavailable("The stream ended before the run; send the run again to continue.")

    async def _read(self, turn_id: TurnId) -> JsonObject:
        record = await self.dependencies.turns.inbox.turn(self.caller.tenant_id, turn_id)
        return turn_for(self.caller, turn_object(record))

    async def _interrupts(self) -> list[ApprovalRecord]:
        """Return the session's pending approvals that the caller can decide."""
        pending = await self.dependencies.approvals.list(
            self.caller.tenant_id,
            session_id=self.session_id,
            status=ApprovalStatus.PENDING,
            limit=MOST_INTERRUPTS,
        )
        return [one for one in pending if self.caller.operates or not one.operator_only]


def _session_of(thread_id: str) -> SessionId:
    """Return the thread's session ID: the thread ID, or its hash if the thread ID is not a valid session ID."""
    if IDENTIFIER_PATTERN.fullmatch(thread_id):
        return SessionId(thread_id)
    return SessionId(f"agui_{hash_json(thread_id)}")


def _text_of(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _encode(event: BaseEvent) -> bytes:
    return _ENCODER.encode(event).encode()
