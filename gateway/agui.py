"""Translate a session's events to AG-UI events; see docs.ag-ui.com."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from orchestrator.turns.approval import ApprovalRecord
from orchestrator.turns.event import TOKEN, Event
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import JsonObject, TurnId

APPROVAL_ANSWER: Final[JsonObject] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""JSON Schema of the payload that resumes a run after an approval."""
STATE: Final = ("session_id", "turn_id", "epoch", "flows", "completed", "frames", "actions", "interaction")
"""Members of the turn object that form an AG-UI client's state."""


class TurnTranslator:
    def __init__(self, given: RunAgentInput, turn_id: TurnId) -> None:
        self._given = given
        self._turn_id = turn_id
        self._message_id = f"{turn_id}:answer"
        self._text = ""
        self._is_open = False
        self._is_replaced = False
        """True if the reply no longer begins with the text sent so far. AG-UI deltas can't express this."""
        self._calls = 0
        self._started: list[tuple[str, str]] = []
        """Call IDs and tool names of started calls without a result."""

    def during(self, event: Event) -> Iterator[BaseEvent]:
        """Translate an event from a running turn: a part of its answer, or the start of a call. Skip other events."""
        if event.type == TOKEN:
            yield from self._add(event.payload["text"], event.payload["offset"])
        elif event.type == "tool_started" and event.number is None:
            yield from self._start_call(event.payload["tool_id"])

    def at_end(self, turn: JsonObject) -> Iterator[BaseEvent]:
        """Translate a finished turn: its call results, the rest of its reply, and its state."""
        for call in turn["tools"]:
            yield from self._end_call(call["tool_id"], call)
        for call_id, _ in self._started:
            yield ToolCallEndEvent(tool_call_id=call_id)
        self._started.clear()
        yield from self._complete(turn["reply"] or "")
        yield StateSnapshotEvent(snapshot={name: turn[name] for name in STATE})

    def _add(self, text: str, offset: int) -> Iterator[BaseEvent]:
        self._is_replaced |= offset < len(self._text)
        self._text = self._text[:offset] + text
        if text and not self._is_replaced:
            yield from self._open()
            yield TextMessageContentEvent(message_id=self._message_id, delta=text)

    def _complete(self, reply: str) -> Iterator[BaseEvent]:
        if reply.startswith(self._text) and not self._is_replaced:
            yield from self._add(reply[len(self._text) :], len(self._text))
            if self._is_open:
                yield TextMessageEndEvent(message_id=self._message_id)
            return
        if self._is_open:
            yield TextMessageEndEvent(message_id=self._message_id)
        answer = AssistantMessage(id=self._message_id, content=reply)
        yield MessagesSnapshotEvent(messages=[*self._given.messages, answer])

    def _open(self) -> Iterator[BaseEvent]:
        if not self._is_open:
            self._is_open = True
            yield TextMessageStartEvent(message_id=self._message_id, role="assistant")

    def _start_call(self, tool_id: str) -> Iterator[BaseEvent]:
        self._calls += 1
        call_id = f"{self._turn_id}:{self._calls}"
        self._started.append((call_id, tool_id))
        yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=tool_id)

    def _end_call(self, tool_id: str, call: JsonObject) -> Iterator[BaseEvent]:
        if all(name != tool_id for _, name in self._started):
            yield from self._start_call(tool_id)
        found = next(one for one in self._started if one[1] == tool_id)
        self._started.remove(found)
        call_id = found[0]
        yield ToolCallArgsEvent(tool_call_id=call_id, delta=orjson.dumps(call["arguments"]).decode())
        yield ToolCallEndEvent(tool_call_id=call_id)
        told = orjson.dumps({"status": call["status"]}).decode()
        yield ToolCallResultEvent(message_id=f"{call_id}:result", tool_call_id=call_id, content=told)


def end_run(
    given: RunAgentInput, turn: JsonObject | None, approvals: Sequence[ApprovalRecord]
) -> RunFinishedEvent | RunErrorEvent:
    """Return the last event of a run.

    `turn`: the run's last turn, or None if the run submitted no turn. `approvals`: pending approvals.
    """
    status = TurnStatus.DONE if turn is None else TurnStatus(turn["status"])
    if turn is not None and status not in {TurnStatus.DONE, TurnStatus.CANCELLED}:
        return RunErrorEvent(message=turn["reply"] or "The turn failed.", code=status.value)
    outcome: Any = RunFinishedSuccessOutcome()
    if status is TurnStatus.CANCELLED:
        outcome = RunFinishedCancelledOutcome()
    elif approvals:
        outcome = RunFinishedInterruptOutcome(interrupts=[_interrupt(one) for one in approvals])
    return RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, outcome=outcome)


def _interrupt(approval: ApprovalRecord) -> Interrupt:
    return Interrupt(
        id=approval.approval_id,
        reason="approval",
        message=approval.question,
        response_schema=APPROVAL_ANSWER,
        metadata={"tool_id": approval.tool_id, "arguments": approval.arguments},
    )
