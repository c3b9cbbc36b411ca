"""Archive flows that left the stack, and trim the state (ST-3, FS-9)."""

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.state import StateLimits
from orchestrator.dialogue.tables import ShownTable
from orchestrator.dialogue.understanding import Cue
from orchestrator.memory.notes import drop_old_notes
from orchestrator.types import JsonObject, is_list, is_object


async def archive(turn: RunningTurn, modules: Modules) -> None:
    state = turn.context.state
    keep_recent(turn, modules)
    state.end_turn(_trace(turn, turn.context.changes.completed), _limits(modules))
    if state.completed:
        drop_old_notes(state)


def keep_recent(turn: RunningTurn, modules: Modules) -> None:
    """Keep in the state the flows that left the stack in this turn, and the rows and tables they displayed."""
    state = turn.context.state
    known = {flow.flow_id for flow in state.completed}
    left = state.archive(
        [flow for flow in turn.context.changes.finished if flow.flow_id not in known], _limits(modules)
    )
    for flow in left:
        if flow in turn.context.changes.completed:
            _note_shown(turn, modules, flow)
            _note_table(turn, modules, flow)


def _limits(modules: Modules) -> StateLimits:
    memory = modules.domain.config.memory
    return StateLimits(
        messages=memory.max_history_messages,
        trace=memory.max_trace_entries,
        completed=memory.completed_flows,
    )


def _note_table(turn: RunningTurn, modules: Modules, flow: BaseFlow) -> None:
    """Remember the displayed table, so that the user can ask for other pages."""
    frame = turn.context.changes.frames.get(flow.flow_id)
    table = None if frame is None else ShownTable.of(frame, modules.domain.config.generation.page_rows)
    if table is not None and table.rows:
        turn.context.state.note_table(table)


def _note_shown(turn: RunningTurn, modules: Modules, flow: BaseFlow) -> None:
    """Remember the displayed rows, so that the user can refer to them (IR-5)."""
    for use in flow.spec.tools:
        spec = modules.domain.tools[use.tool_id].rows
        rows = turn.context.changes.findings.get(flow.flow_id, {}).get(spec.output) if spec else None
        if spec is not None and is_list(rows):
            names = (spec.key, *spec.fields)
            kept = [
                {name: row[name] for name in names if name in row}
                for row in rows[: spec.most]
                if is_object(row)
            ]
            values = {name: flow.value(name) for name in flow.spec.slots if name in flow.spec.required}
            made_from = {name: value for name, value in values.items() if value is not None}
            place = _find_other_row(turn, flow, spec.key, kept)
            shown = Shown(use.tool_id, flow.dact, spec.key, kept, place, made_from)
            turn.context.state.note_shown(shown)


def _find_other_row(turn: RunningTurn, flow: BaseFlow, key: str, rows: list[JsonObject]) -> int:
    """Return the index of the new current row: the first row, or the first different row if the user wants another."""
    before = next((one for one in turn.context.state.displayed if one.dact == flow.dact), None)
    understood = turn.context.changes.understanding
    if before is None or understood is None or Cue.OTHER_ROW not in understood.cues:
        return 0
    passed = before.current.get(key)
    return next((place for place, row in enumerate(rows) if row.get(key) != passed), 0)


def _trace(turn: RunningTurn, completed: list[BaseFlow]) -> JsonObject:
    entry: JsonObject = {"turn": turn.context.state.turn}
    if turn.context.changes.understanding is not None:
        entry["kind"] = turn.context.changes.understanding.kind.value
    if completed:
        entry["completed"] = [flow.dact for flow in completed]
    return entry
