"""Slot review (PX-4): fill what can be filled without asking, then ask for the first slot that is missing."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level
from orchestrator.pex.ending import NeedsInput
from orchestrator.pex.execution import Execution


async def review(run: Execution) -> NeedsInput | None:
    """Fill from what the flow can find itself; a slot still missing becomes the open question."""
    flow, state = run.flow, run.world.state
    finders = run.world.recent_turns, run.world.memory
    if any(finders) and flow.needs_to_think():
        await flow.fill_slot_values(*finders, turn_id=run.world.turn_id)
    missing = flow.missing()
    if missing:
        state.ambiguity.declare(
            Level.SPECIFIC, flow_id=flow.flow_id, slot=missing[0].name, turn_id=run.world.turn_id
        )
        return NeedsInput()
    run.filled = frozenset(flow.slots)
    return None
