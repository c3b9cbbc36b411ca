"""The turn object's part that the Agent knows (the rest is the lane's): what `--json` and HTTP show."""

from __future__ import annotations

import time

from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Question
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.res.answer import Answer
from orchestrator.res.display import show_code
from orchestrator.res.naturalize import NATURALIZE
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import JsonObject


def make_result(turn: RunningTurn, answer: Answer) -> JsonObject:
    """The result of a turn; `epoch` is the one that its commit makes."""
    state, world, lease = turn.state, turn.world, turn.lease
    return {
        "session_id": lease.session_id,
        "turn_id": turn.work.turn_id,
        "seq": turn.work.seq,
        "epoch": lease.epoch + 1,
        "status": TurnStatus.DONE.value,
        "text": turn.work.input.text,
        "reply": answer.message,
        "flows": [_show_flow(flow) for flow in state.stack.flows],
        "completed": [flow.dact for flow in world.completed],
        "tools": [tool.serialize() for tool in world.tools],
        "frame": answer.frame,
        "actions": answer.actions,
        "interaction": answer.interaction,
        "code_snippet": show_code(answer.frame),
        "properties": {
            "templates": answer.templates,
            "naturalized": NATURALIZE in answer.templates,
            "streamed": answer.streamed,
        },
        "ambiguity": _show_question(answer.question),
        "flags": {**state.flags.serialize(), **world.flags},
        "duration_ms": round((time.monotonic() - turn.began) * 1000, 3),
    }


def _show_flow(flow: BaseFlow) -> JsonObject:
    return {
        "dact": flow.dact,
        "state": flow.state.value,
        "reason": flow.reason.value if flow.reason is not None else None,
        "slots": {name: slot.value for name, slot in flow.slots.items()},
    }


def _show_question(question: Question | None) -> JsonObject | None:
    if question is None:
        return None
    return {"level": question.level.value, "slot": question.slot, "flow_id": question.flow_id}
