"""Remembers what calls have done with which values, so that a correction can name it (RT-12)."""

from __future__ import annotations

from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.pex.choices import Choices, is_short
from orchestrator.pex.execution import Execution
from orchestrator.tools.effects import make_effect
from orchestrator.tools.toolbox import Tool
from orchestrator.types import JsonObject


def note_effect(
    run: Execution, policy: Choices, tool: Tool, arguments: JsonObject, data: JsonObject | None
) -> None:
    """Note the effect of a call, in place of what was noted while its outcome was unknown.

    `data`: what it returned; None: nobody knows whether it was done.
    """
    known, notes = data is not None, run.context.changes.state.effects
    note = EffectNote(
        tool_id=tool.spec.tool_id,
        flow_id=run.flow.flow_id,
        slots=run.flow.values(),
        arguments=arguments,
        summary=_summarise(run, policy, tool, data or {}),
        status=EffectStatus.FINISHED if known else EffectStatus.UNKNOWN,
        compensation=tool.spec.compensation if known else None,
        turn_id=run.context.ids.turn_id,
        result=_needed_to_undo(run, tool, data or {}),
        fingerprint=make_effect(run.context, run.flow.flow_id, tool, arguments).fingerprint,
    )
    same = (
        at for at, other in enumerate(notes) if other.fingerprint and other.fingerprint == note.fingerprint
    )
    place = next(same, len(notes))
    notes[place : place + 1] = [note]


def _summarise(run: Execution, policy: Choices, tool: Tool, data: JsonObject) -> str:
    """Say what one call did; of several calls with effects each is named by its tool."""
    changing = [other for other in run.tools.find_all(run.flow.spec.tools) if not other.spec.idempotent]
    return f"done this: {tool.spec.name}" if len(changing) > 1 else policy.effect_summary(run, data)


def _needed_to_undo(run: Execution, tool: Tool, data: JsonObject) -> JsonObject:
    """Keep what a compensation is called with, and judged by: bounds above which it needs an approval."""
    undo = run.tools.find(tool.spec.compensation) if tool.spec.compensation is not None else None
    wanted = {*undo.inputs, *undo.spec.approval_above} if undo is not None else set[str]()
    return {name: value for name, value in data.items() if name in wanted and is_short(value)}
