from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import orjson

from orchestrator.agent.approvals import close_approvals
from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.context import Answer, TurnContext
from orchestrator.dialogue.ambiguity import Asked
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import diff, dump, outline_of
from orchestrator.memory.notes import entries_of_turn
from orchestrator.plans.changes import describe
from orchestrator.ports.summary_refresh import SUMMARY_DUE
from orchestrator.res.steps.display import show_code
from orchestrator.res.steps.naturalize import NATURALIZE
from orchestrator.telemetry.signals import describe_all
from orchestrator.turns.event import Event
from orchestrator.turns.lease import AGENT, ArchivedFlow, FrameRecord, OutboxEntry, TurnCommit, Utterance
from orchestrator.turns.plan import PlanRecord
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus
from orchestrator.types import JsonObject, as_json


def make_result(turn: RunningTurn, answer: Answer, reply: str, flags: JsonObject) -> JsonObject:
    """Return a turn's result as JSON. `flags`: the flags in the dialogue state."""
    state, context, lease = turn.context.state, turn.context, turn.lease
    frame = answer.frames[-1] if answer.frames else None
    return {
        "session_id": lease.session_id,
        "turn_id": turn.work.turn_id,
        "seq": turn.work.seq,
        "epoch": lease.epoch + 1,
        "status": TurnStatus.DONE.value,
        "text": turn.work.input.text,
        "reply": reply,
        "flows": [_show_flow(flow) for flow in state.stack.flows],
        "completed": [flow.dact for flow in context.changes.completed],
        "tools": [as_json(tool) for tool in context.log.tools],
        "earlier_frames": answer.frames[:-1],
        "frame": frame,
        "actions": answer.actions,
        "interaction": answer.interaction,
        "code_snippet": show_code(frame),
        "properties": {
            "templates": answer.templates,
            "naturalized": NATURALIZE in answer.templates,
            "streamed": context.changes.streamed,
        },
        "ambiguity": _show_question(answer.question),
        "flags": {**flags, **context.log.flags},
        "duration_ms": round((time.monotonic() - turn.began) * 1000, 3),
    }


def _show_flow(flow: BaseFlow) -> JsonObject:
    status = flow.status
    return {
        "dact": flow.dact,
        "state": status.state.value,
        "reason": status.reason.value if status.reason is not None else None,
        "slots": {name: slot.value for name, slot in flow.slots.items()},
    }


def _show_question(question: Asked | None) -> JsonObject | None:
    if question is None:
        return None
    about = question.about
    return {"level": about.level.value, "slot": about.slot, "flow_id": about.flow_id}


SUMMARIZE_EVERY_TURNS = 20
SUMMARIZE_EVERY_TOKENS = 32_000
CHARACTERS_PER_TOKEN = 4
NOTES = "notes"
"""Kind of outbox messages that contain scratchpad entries."""


def record(turn: RunningTurn, modules: Modules) -> TurnCommit:
    """Add the message and the reply to the state, compare the new state with the stored state, and build the commit."""
    answer = turn.answer
    assert answer is not None
    state, context = turn.context.state, turn.context
    reply = answer.message
    for entry in state.ambiguity.open:
        if entry.about.must_be_seen:
            entry.note_time(modules.ports.clock())
    state.converse(turn.work.input.text or "", reply, modules.domain.config.memory.max_history_messages)
    after, raw = state.write()
    _tell_answer(context, reply, answer.frames)
    return make_commit(
        context.world.prior_state,
        (after, raw),
        make_result(turn, answer, reply, after["flags"]),
        snapshot=_wants_snapshot(turn, modules),
        events=context.log.events,
        left=context.changes.finished,
        plans=_worked_on(turn),
        utterances=utterances_of(turn.work.input, reply),
        frames=tuple(
            FrameRecord(frame.frame_id, frame.flow_id, dump(frame))
            for frame in context.changes.frames.values()
        ),
        plan_revisions=tuple(context.changes.plans.log),
        approvals=tuple(context.changes.approvals.asked),
        closed_approvals=close_approvals(turn.context) if _touches_approvals(turn) else (),
        outbox=_outbox(turn, len(raw)),
        signals=describe_all(context.log.signals),
    )


def make_commit(
    before: JsonObject,
    written: tuple[JsonObject, bytes],
    result: JsonObject,
    *,
    snapshot: bool,
    events: Iterable[Event],
    left: Iterable[BaseFlow] = (),
    plans: Iterable[BaseFlow] = (),
    **more: Any,
) -> TurnCommit:
    """Build the commit of a turn.

    Args:
        before: the stored state.
        written: the state to store, and its bytes.
        result: the turn's result.
        snapshot: True to store the full state in the history, not only the difference.
        events: the turn's events.
        left: flows to archive.
        plans: flows that the turn changed. Of these, plans with at least one revision are stored.
        more: further fields of the commit.
    """
    after, raw = written
    return TurnCommit(
        status=TurnStatus.DONE,
        state=raw,
        diff=orjson.dumps(diff(before, after)),
        snapshot=snapshot,
        result=result,
        archived=tuple(_archive(flow) for flow in left),
        plans=tuple(_keep_plan(plan) for plan in plans if isinstance(plan, PlanFlow) and plan.noted),
        events=tuple(events),
        outline=outline_of(after),
        **more,
    )


_ENDS_WITH_FLOW = frozenset({"consent", "progress", "notes"})


def _archive(flow: BaseFlow) -> ArchivedFlow:
    """Return the archive record of a flow, without the consents, progress and notes that end with the flow."""
    return ArchivedFlow(
        flow_id=flow.flow_id,
        dact=flow.dact,
        **flow.status.serialize(),
        body={name: value for name, value in flow.serialize().items() if name not in _ENDS_WITH_FLOW},
    )


def _tell_answer(context: TurnContext, reply: str, frames: list[JsonObject]) -> None:
    """Log the reply and the types of its blocks. The blocks' data is in the frames."""
    for frame in frames:
        names = ("frame_id", "flow_id", "display_type", "display_name")
        context.log.event("block", **{name: frame[name] for name in names})
    context.log.event("answer", reply=reply)


def _touches_approvals(turn: RunningTurn) -> bool:
    changes = turn.context.changes.approvals
    return bool(turn.context.world.prior_state.get("approvals") or changes.asked or changes.closed)


def utterances_of(given: TurnInput, reply: str) -> tuple[Utterance, ...]:
    content = given.text if given.action is None else orjson.dumps(given.action).decode()
    form = given.form if given.action is None else "action"
    role = "system" if given.kind is TurnKind.SYSTEM else "user"
    return (Utterance(role, form, content or ""), Utterance(AGENT, "text", reply))


def _worked_on(turn: RunningTurn) -> list[BaseFlow]:
    """Return the flows that this turn finished, and the stacked plans that it revised."""
    changed = {revision.plan_id for revision in turn.context.changes.plans.log}
    stacked = [flow for flow in turn.context.state.stack.flows if flow.flow_id in changed]
    return [*{flow.flow_id: flow for flow in (*stacked, *turn.context.changes.finished)}.values()]


def _keep_plan(plan: PlanFlow) -> PlanRecord:
    return PlanRecord(
        plan_id=plan.flow_id,
        dact=plan.dact,
        goal=plan.goal,
        **plan.status.serialize(),
        revision=plan.revision,
        body=describe(plan),
    )


def _wants_snapshot(turn: RunningTurn, modules: Modules) -> bool:
    """Return whether to store a snapshot: first turn, configured interval, or several completed flows (ST-2)."""
    distance = modules.domain.config.memory.snapshot_every_turns
    first, due = not turn.context.world.prior_state, (turn.lease.epoch + 1) % distance == 0
    return first or due or len(turn.context.changes.completed) > 1


def _outbox(turn: RunningTurn, size: int) -> tuple[OutboxEntry, ...]:
    due = find_due(turn.context.state, size)
    summary = (OutboxEntry("internal_flow", {"trigger": SUMMARY_DUE}),) if due else ()
    return (*turn.context.changes.outbox, *_notes(turn), *summary)


def _notes(turn: RunningTurn) -> tuple[OutboxEntry, ...]:
    """Return an outbox message with the turn's scratchpad entries, if any.

    They are stored after the commit (RT-14).
    """
    state = turn.context.state
    flows = [
        flow for flow in (*turn.context.changes.finished, *state.stack.flows) if flow.progress.scratchpad
    ]
    entries = entries_of_turn(flows, state.turn, turn.work.turn_id, turn.context.now) if flows else []
    return (OutboxEntry(NOTES, {"entries": [entry.to_json() for entry in entries]}),) if entries else ()


def find_due(state: DialogueState, size: float = math.inf) -> bool:
    """Return whether a summary is due (IF-11).

    It is due every `SUMMARIZE_EVERY_TURNS` turns and every `SUMMARIZE_EVERY_TOKENS` tokens. `size`: the
    state's size in bytes, an upper limit on the length of its messages.
    """
    covered = state.history.summarized_through
    since = state.turn - covered
    bound = SUMMARIZE_EVERY_TOKENS * CHARACTERS_PER_TOKEN
    return since > 0 and (
        since % SUMMARIZE_EVERY_TURNS == 0 or (size >= bound and _long_enough(state, covered, bound))
    )


def _long_enough(state: DialogueState, covered: int, bound: int) -> bool:
    """Return whether the text since the last summary reached a multiple of `bound` characters in this turn.

    `covered`: the last turn that the summary covers.
    """
    before = latest = 0
    for message in state.history.messages:
        if message.turn == state.turn:
            latest += len(message.text)
        elif message.turn > covered:
            before += len(message.text)
    return before // bound != (before + latest) // bound
