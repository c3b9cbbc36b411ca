"""What the tools returned becomes something to show: a frame for the domain's own families (PX-12)."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.specification import Family
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution
from orchestrator.pex.skills.components import write_note
from orchestrator.types import JsonObject

SHOWN_ROWS = 512

FRAMED = frozenset({Family.READ, Family.PREPARE, Family.TRANSFORM, Family.SCHEDULE})


async def results(run: Execution, policy: Choices) -> None:
    """Keep the findings for the answer and, where the family has one, make the flow's frame.

    Other families leave what they found in the scratchpad.
    """
    run.context.changes.findings[run.flow.flow_id] = run.data
    if run.flow.spec.family in FRAMED and run.has_result:
        run.frame = policy.frame(run)
        if run.warning is not None:
            run.frame.warning = run.warning
        if run.frame.code is None:
            run.frame.code = run.code
        run.context.changes.frames[run.flow.flow_id] = run.frame
    elif run.data and run.flow.spec.family not in FRAMED:
        await write_note(run, orjson.dumps(run.data, default=str).decode())
        run.noted = True


def make_frame(run: Execution) -> Frame:
    """A table when the data hold a list of rows, else a card."""
    frame_id = f"frame_{run.flow.flow_id.removeprefix('flow_')}"
    table = _first_table(run.data)
    frame = Frame(
        frame_id=frame_id,
        flow_id=run.flow.flow_id,
        data=run.data,
        display_name=run.flow.spec.description,
        source=[str(tool_id) for tool_id in run.used],
    )
    if table is not None:
        frame.display_type = "table"
        frame.data = table[:SHOWN_ROWS]
        frame.rows = len(table)
        frame.table_id = run.data.get("table_id")
        if len(table) > SHOWN_ROWS and frame.table_id is None:
            frame.warning = f"Only the first {SHOWN_ROWS} of {len(table)} rows are kept."
    return frame


def _first_table(data: JsonObject) -> list[JsonObject] | None:
    for value in data.values():
        if is_list(value) and value and is_object(value[0]):
            return value
    return None
