"""Undoes what a tool has done, with the compensation that the tool declares (RT-12)."""

from __future__ import annotations

from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.pex.envelope import ToolData, ToolError
from orchestrator.pex.tools import ToolRunner
from orchestrator.pex.unknown import settle_by_query
from orchestrator.turns.step import UnknownOutcome
from orchestrator.world.world import World


async def compensate(world: World, tools: ToolRunner, note: EffectNote) -> str | None:
    """Undo one effect; its inputs come from the call's result and arguments. None, or why it could not be."""
    tool = tools.find(note.compensation) if note.compensation is not None else None
    if tool is None:
        return "This cannot be undone."
    known = {**note.slots, **note.arguments, **note.result}
    inputs = {name: known[name] for name in tool.inputs if name in known}
    undone = note.fingerprint or None
    outcome = await tools.call(world, note.flow_id, tool, inputs, compensates=undone)
    if isinstance(outcome, UnknownOutcome):
        settled = await settle_by_query(world, tools, note.flow_id, tool, inputs, outcome, compensates=undone)
        outcome = settled or outcome
    match outcome:
        case ToolData():
            note.status = EffectStatus.COMPENSATED
            return None
        case ToolError(_, message):
            return message
        case UnknownOutcome():
            return f"I cannot tell whether it was undone ({tool.spec.name}), and I do not try it twice."
