"""Create the frame for a flow's results, and repair an invalid frame (PX-12, AG-6 tier 1).

An automatic repair comes first, then another form chosen by a model, then a plain form. A model chooses how
data is displayed, but never changes the data.
"""

from __future__ import annotations

from orchestrator.dialogue.records import Frame
from orchestrator.errors import FailureCategory
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.schemas import bounded_text, closed, loose, one_of, one_of_or_null
from orchestrator.pex.execution import Execution, Failed
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.saying import say
from orchestrator.types import Json, JsonObject, are_rows, is_list, is_object

SHOWN_ROWS = 512
DISPLAY_TYPES = ("table", "chart", "card", "list", "form", "confirmation", "toast")
OF_ROWS = frozenset({"table", "chart", "list"})


def make_frame(run: Execution) -> Frame:
    """Create a table of at most `SHOWN_ROWS` rows if the results contain rows; otherwise, a card."""
    frame = Frame(
        frame_id=f"frame_{run.flow.flow_id.removeprefix('flow_')}",
        flow_id=run.flow.flow_id,
        data=run.data,
        display_name=run.flow.spec.description,
        source=[str(tool.spec.tool_id) for tool, _ in run.answers],
    )
    table = find_rows(run.data)
    if table is not None:
        frame.display_type = "table"
        frame.data = table[:SHOWN_ROWS]
        frame.rows = len(table)
        frame.table_id = run.data.get("table_id")
        if len(table) > SHOWN_ROWS and frame.table_id is None:
            frame.warning = say("rows_cut", most=SHOWN_ROWS, count=len(table))
    return frame


def find_rows(data: JsonObject) -> list[JsonObject] | None:
    """Return the first non-empty list of objects, or None."""
    return next((value for value in data.values() if is_list(value) and value and is_object(value[0])), None)


async def repair(run: Execution, engineer: PromptEngineer | None) -> Failed | None:
    """Repair an invalid frame, with a limited number of attempts. `engineer`: asks a model, or None.

    Return None if there is no frame or it is valid after the repair, or Failed if all attempts fail.
    """
    frame = run.frame
    if frame is None:
        return None
    while (fault := find_fault(frame)) is not None and run.begin_repair():
        how = _repair_once(run, frame)
        if how is None and run.has_repairs and engineer is not None:
            how = await _redraw(run, engineer, frame, fault)
        how = how or _show_plainly(run, frame)
        if how is None:
            break
        run.note_repair(how, fault)
    if fault is None:
        return None
    run.context.log.failed_check("pex", "frame", fault, run.flow.flow_id)
    run.context.changes.frames.pop(run.flow.flow_id, None)
    run.frame = None
    return Failed(FailureCategory.SERVER_ERROR, say("result_not_shown"), retryable=True, unusable=True)


def find_fault(frame: Frame) -> str | None:
    """Return why a frame cannot be displayed, or None."""
    if frame.error is not None:
        return frame.error
    if frame.data is None:
        return "it has no data"
    if frame.display_type not in DISPLAY_TYPES:
        return f"{frame.display_type!r} is not a display type"
    if frame.display_type in OF_ROWS and _plain_type(frame.data) != "table":
        return f"a {frame.display_type} needs a list of rows"
    if frame.display_type == "chart" and frame.chart_type is None:
        return "a chart needs a chart type"
    if is_list(frame.data) and len(frame.data) > SHOWN_ROWS:
        return f"it has more than {SHOWN_ROWS} rows"
    return None


def _plain_type(data: Json) -> str:
    return "table" if are_rows(data) else "card"


def _repair_once(run: Execution, frame: Frame) -> str | None:
    """Repair one fault. Return the repair's name, or None if no repair applies."""
    if frame.data is None and run.data:
        frame.data = find_rows(run.data) or run.data
        return "take_data"
    if is_list(frame.data) and len(frame.data) > SHOWN_ROWS:
        frame.rows = frame.rows or len(frame.data)
        frame.data = frame.data[:SHOWN_ROWS]
        return "cut_page"
    if frame.data is not None and frame.display_type not in DISPLAY_TYPES:
        frame.display_type = _plain_type(frame.data)
        return "name_type"
    return None


def _show_plainly(run: Execution, frame: Frame) -> str | None:
    """Fall back to a table or card. Return the repair's name, or None if nothing would change."""
    if frame.display_type == "chart":
        rows = frame.data if are_rows(frame.data) else find_rows(run.data) or []
        frame.data, frame.rows = rows[:SHOWN_ROWS] or frame.data, len(rows) or frame.rows
    plain = _plain_type(frame.data)
    if frame.data is None or (frame.display_type == plain and frame.error is None):
        return None
    if plain == "card" and not is_object(frame.data):
        frame.data = {"value": frame.data}
    if frame.error is not None:
        frame.warning = frame.warning or say("shown_as", display=plain, error=frame.error)
    frame.display_type, frame.chart_type, frame.error = plain, None, None
    return "plain"


PROMPT = "pex_redraw"
LONGEST_NAME = 120
LONGEST_CHART_TYPE = 20
_TEXT_OR_NULL: JsonObject = {"anyOf": [{"type": "string"}, {"type": "null"}]}
SCHEMA = loose(
    ["display_type"],
    display_type={"enum": list(DISPLAY_TYPES)},
    field=_TEXT_OR_NULL,
    display_name=bounded_text(LONGEST_NAME),
    chart_type=_TEXT_OR_NULL,
)


async def _redraw(run: Execution, engineer: PromptEngineer, frame: Frame, fault: str) -> str | None:
    """Apply a model's choice to a frame. Return the repair's name, or None if the answer is unusable.

    The model is asked for ``{display_type, field, display_name?, chart_type?}``.
    """
    variables: dict[str, Json] = {
        "task": run.flow.spec.description or run.flow.title,
        "display_types": list(DISPLAY_TYPES),
        "fault": fault,
        "frame": {"display_type": frame.display_type, "chart_type": frame.chart_type},
        "fields": {name: _describe(value) for name, value in run.data.items()},
    }
    chosen = await ask_model(run, engineer, PROMPT, variables, redraw_schema(run.data), SCHEMA)
    field = None if chosen is None else chosen.get("field")
    data = run.data.get(field) if field is not None else run.data or None
    if chosen is None or data is None:
        return None
    frame.data, frame.error = data, None
    frame.display_type = chosen["display_type"]
    frame.chart_type = chosen.get("chart_type")
    frame.display_name = chosen.get("display_name") or frame.display_name
    return "replace"


async def ask_model(
    run: Execution,
    engineer: PromptEngineer,
    prompt: str,
    variables: dict[str, Json],
    schema: JsonObject,
    judged_by: JsonObject,
) -> JsonObject | None:
    """Ask a model for a repair. Return None if no model answers. `judged_by`: validates the answer."""
    if not engineer.can_answer(prompt):
        return None
    try:
        call = run.context.call.for_flow(run.flow.flow_id)
        return await engineer.structured(prompt, variables, schema, call, judged_by=judged_by)
    except MODEL_FAILURES as error:
        check, why = prompt.removeprefix("pex_"), f"{error.code}: {error}"
        run.context.log.failed_check("pex", check, why, run.flow.flow_id)
        return None


def redraw_schema(data: JsonObject) -> JsonObject:
    return closed(
        display_type=one_of(DISPLAY_TYPES),
        field=one_of_or_null(data),
        display_name=bounded_text(LONGEST_NAME),
        chart_type={"type": ["string", "null"], "maxLength": LONGEST_CHART_TYPE},
    )


def _describe(value: Json) -> Json:
    if is_list(value):
        return {"rows": len(value), "first": value[:2]}
    return value if isinstance(value, (int, float, bool)) else str(value)[:200]
