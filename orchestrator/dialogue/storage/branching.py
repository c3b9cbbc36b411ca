"""The stored state that a fork starts with (ST-4)."""

from collections.abc import Collection
from typing import cast

from orchestrator.dialogue.lifecycle import ACTIVE, AWAITING_APPROVAL, AWAITING_RESULT, INTERRUPTED
from orchestrator.types import JsonObject, SessionId

_WAITING = [one.serialize() for one in (AWAITING_APPROVAL, AWAITING_RESULT)]


def branch_state(state: JsonObject, session_id: SessionId) -> JsonObject:
    """Create the first state of a fork from its parent's state, without consent (PX-17).

    Pending or granted approvals are requested again. The late result of a call goes only to the parent.
    Offers stay, but the fork repeats them, because its first epoch differs (`DialogueState.follow`).
    """
    stack = cast("list[JsonObject]", state.get("stack", []))
    waiting = {flow["flow_id"] for flow in stack if any(flow.items() >= one.items() for one in _WAITING)}
    top = stack[-1]["flow_id"] if stack else None
    flows = [_go_on(flow, waiting, top) for flow in stack]
    return {**state, "session": session_id, "stack": flows, "approvals": []}


def _go_on(flow: JsonObject, waiting: Collection[str], top: str | None) -> JsonObject:
    """Return a copy of a flow without grants and awaited calls. A flow in `waiting` and its plan step can run again."""
    made = {**flow}
    if "consent" in flow:
        made["consent"] = {**flow["consent"], "grant": None}
    if "awaits" in flow.get("progress", {}):
        made["progress"] = {name: value for name, value in flow["progress"].items() if name != "awaits"}
    if flow["flow_id"] in waiting:
        made |= _as_written(flow["flow_id"] == top)
        made["interrupted_at"] = None if flow["flow_id"] == top else flow.get("interrupted_at")
    if "steps" in flow:
        made["steps"] = [
            {**step, **_as_written(step["flow_id"] == top)} if step["flow_id"] in waiting else step
            for step in flow["steps"]
        ]
    return made


def _as_written(on_top: bool) -> JsonObject:
    return (ACTIVE if on_top else INTERRUPTED).serialize()
