"""What a call that is not idempotent is about to do, as the journal and the ledger know it (RT-9, RT-10)."""

from __future__ import annotations

from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.pex.envelope import ToolError, read_envelope
from orchestrator.pex.toolbox import Tool
from orchestrator.turns.effect import Effect, LedgerStatus, fingerprint_effect
from orchestrator.types import FlowId, Json, JsonObject
from orchestrator.world.world import World


def make_effect(
    world: World,
    flow_id: FlowId,
    tool: Tool,
    arguments: JsonObject,
    *,
    again: bool = False,
    compensates: str | None = None,
) -> Effect:
    """The effect of a call for a flow. A step that is planned anew is the same flow instance."""
    flow = world.state.stack.get(flow_id)
    instance = f"{flow.plan_id}:{flow.dact}" if flow is not None and flow.plan_id is not None else flow_id
    return Effect(
        fingerprint=fingerprint_effect(tool.spec.tool_id, arguments, instance, defaults=_defaults(tool)),
        flow_id=flow_id,
        tool_id=tool.spec.tool_id,
        arguments=arguments,
        slots={} if flow is None else flow.values(),
        judge=judge,
        again=again,
        compensates=compensates,
    )


def judge(envelope: Json) -> LedgerStatus:
    """What the envelope of a finished call tells about its effect."""
    result = read_envelope(envelope)
    if not isinstance(result, ToolError):
        return LedgerStatus.DONE
    return LedgerStatus.UNKNOWN if result.undecided else LedgerStatus.FAILED


def keep_note(world: World, note: EffectNote) -> None:
    """Remember an effect; one that was unknown until now is replaced."""
    notes = world.state.effects
    for place, known in enumerate(notes):
        if known.fingerprint and known.fingerprint == note.fingerprint:
            notes[place] = note
            return
    notes.append(note)


def note_unknown(world: World, effect: Effect, summary: str) -> None:
    """Remember a call that may have had its effect, so that a correction can name it (RT-12)."""
    note = EffectNote(
        tool_id=effect.tool_id,
        flow_id=effect.flow_id,
        slots=effect.slots,
        arguments=effect.arguments,
        summary=summary,
        status=EffectStatus.UNKNOWN,
        turn_id=world.turn_id,
        fingerprint=effect.fingerprint,
    )
    keep_note(world, note)


def _defaults(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.spec.input_schema.get("properties", {})
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if is_object(schema) and "default" in schema
    }
