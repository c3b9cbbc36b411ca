"""Tier 1 of failure (AG-6): a frame with an error is repaired in a few attempts.

What can be mended is mended first; then a model may choose another form; a plain one is the last. A
model chooses how the data are shown, never what they are: they stay those that the tools returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.errors import FailureCategory
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.execution import Execution, Failed, Rung
from orchestrator.pex.steps.results import SHOWN_ROWS
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.telemetry import SignalType
from orchestrator.types import Json, JsonObject

DISPLAY_TYPES = ("table", "chart", "card", "list", "form", "confirmation", "toast")
OF_ROWS = frozenset({"table", "chart", "list"})


class FrameWriter(Protocol):
    """A model that says how data can be shown instead."""

    def can_write(self) -> bool: ...

    async def write(self, run: Execution, frame: Frame, fault: str) -> JsonObject | None:
        """``{display_type, field, display_name?, chart_type?}``; None when there is no usable answer."""
        ...


async def repair(run: Execution, writer: FrameWriter | None) -> Failed | None:
    """Make a faulty frame showable; Failed when that did not work."""
    frame = run.frame
    if frame is None or find_fault(frame) is None:
        return None
    attempts = run.context.world.domain.config.resilience.repair_attempts
    for number in range(attempts):
        fault = find_fault(frame)
        if fault is None:
            return None
        how = _fix(run, frame)
        if how is None and number < attempts - 1:
            how = await _replace(run, frame, fault, writer)
        if how is None and _show_plainly(run, frame):
            how = "plain"
        if how is None:
            break
        run.context.log.signal(
            "pex", SignalType.RECOVERY, run.flow.flow_id, rung=Rung.REPAIR, how=how, fault=fault
        )
    fault = find_fault(frame)
    if fault is None:
        return None
    run.context.log.failed_check("pex", "frame", fault, run.flow.flow_id)
    run.context.changes.frames.pop(run.flow.flow_id, None)
    run.frame = None
    return Failed(FailureCategory.SERVER_ERROR, "I have a result, but I cannot show it.")


def find_fault(frame: Frame) -> str | None:
    """Why a frame cannot be shown."""
    if frame.error is not None:
        return frame.error
    if frame.data is None:
        return "it has no data"
    if frame.display_type not in DISPLAY_TYPES:
        return f"there is no display type {frame.display_type!r}"
    if frame.display_type in OF_ROWS and not _are_rows(frame):
        return f"a {frame.display_type} needs a list of rows"
    if frame.display_type == "chart" and frame.chart_type is None and not is_object(frame.data):
        return "a chart needs a chart type"
    if is_list(frame.data) and len(frame.data) > SHOWN_ROWS:
        return f"it has more than {SHOWN_ROWS} rows"
    return None


def _are_rows(frame: Frame) -> bool:
    if frame.display_type == "chart" and is_object(frame.data):
        return True  # a chart's specification carries its own rows
    return is_list(frame.data) and all(is_object(row) for row in frame.data)


Fix = Callable[[Execution, Frame], bool]
"""Changes what it can; says whether it did."""


def _fix(run: Execution, frame: Frame) -> str | None:
    """Apply the first fix that finds something to do."""
    for fix in FIXES:
        if fix(run, frame):
            return fix.__name__.removeprefix("_")
    return None


def _take_data(run: Execution, frame: Frame) -> bool:
    """The frame lost its data: take what the tools returned."""
    if frame.data is not None or not run.data:
        return False
    rows = _find_rows(run.data)
    frame.data = run.data if rows is None else rows
    return True


def _cut_page(_run: Execution, frame: Frame) -> bool:
    """Keep the first page."""
    if not is_list(frame.data) or len(frame.data) <= SHOWN_ROWS:
        return False
    frame.rows = frame.rows or len(frame.data)
    frame.data = frame.data[:SHOWN_ROWS]
    return True


def _name_type(_run: Execution, frame: Frame) -> bool:
    """There is no such display type: name the plain one of these data."""
    if frame.data is None or frame.display_type in DISPLAY_TYPES:
        return False
    frame.display_type = "table" if is_list(frame.data) and _all_objects(frame.data) else "card"
    return True


FIXES: tuple[Fix, ...] = (_take_data, _cut_page, _name_type)


def _show_plainly(run: Execution, frame: Frame) -> bool:
    """Show as a table or card what cannot be shown as it was meant to be, and say so."""
    plain = "table" if is_list(frame.data) and _all_objects(frame.data) else "card"
    rows = _find_rows(run.data) if frame.display_type == "chart" and is_object(frame.data) else None
    if rows is not None:
        frame.data, plain = rows[:SHOWN_ROWS], "table"
    if frame.data is None or (frame.display_type == plain and frame.error is None):
        return False
    if plain == "card" and not is_object(frame.data):
        frame.data = {"value": frame.data}
    if frame.error is not None:
        frame.warning = frame.warning or f"This is shown as a {plain}: {frame.error}"
    frame.display_type, frame.chart_type, frame.error = plain, None, None
    return True


async def _replace(run: Execution, frame: Frame, fault: str, writer: FrameWriter | None) -> str | None:
    """Have a model choose another form for the data that there are."""
    if writer is None or not writer.can_write():
        return None
    chosen = await writer.write(run, frame, fault)
    data = None if chosen is None else _pick(run.data, chosen.get("field"))
    if chosen is None or data is None:
        return None
    frame.data, frame.error = data, None
    frame.display_type = chosen["display_type"]
    frame.chart_type = chosen.get("chart_type")
    frame.display_name = chosen.get("display_name") or frame.display_name
    return "replace"


def _pick(data: JsonObject, field: str | None) -> Json:
    """All data, or those of one name."""
    return data or None if field is None else data.get(field)


def _find_rows(data: JsonObject) -> list[Json] | None:
    return next((value for value in data.values() if is_list(value) and value and _all_objects(value)), None)


def _all_objects(rows: list[Json]) -> bool:
    return all(is_object(row) for row in rows)


PROMPT = "pex_redraw"
SCHEMA: JsonObject = {
    "type": "object",
    "required": ["display_type"],
    "properties": {
        "display_type": {"enum": list(DISPLAY_TYPES)},
        "field": {"type": ["string", "null"]},
        "display_name": {"type": "string", "maxLength": 120},
        "chart_type": {"type": ["string", "null"]},
    },
}


class ModelFrames:
    """Implements `FrameWriter`."""

    def __init__(self, engineer: PromptEngineer) -> None:
        self._engineer = engineer

    def can_write(self) -> bool:
        """See `FrameWriter`."""
        return self._engineer.can_answer(PROMPT)

    async def write(self, run: Execution, frame: Frame, fault: str) -> JsonObject | None:
        """See `FrameWriter`."""
        variables: dict[str, Json] = {
            "task": run.flow.spec.description or run.flow.title,
            "display_types": list(DISPLAY_TYPES),
            "fault": fault,
            "frame": {"display_type": frame.display_type, "chart_type": frame.chart_type},
            "fields": {name: _describe(value) for name, value in run.data.items()},
        }
        try:
            call = run.context.call.for_flow(run.flow.flow_id)
            return await self._engineer.structured(PROMPT, variables, SCHEMA, call)
        except MODEL_FAILURES as error:
            run.context.log.failed_check("pex", "redraw", f"{error.code}: {error}", run.flow.flow_id)
            return None


def _describe(value: Json) -> Json:
    """A value's shape with an example: enough to choose how it is shown."""
    if is_list(value):
        return {"rows": len(value), "first": value[:2]}
    return value if isinstance(value, (int, float, bool)) else str(value)[:200]
