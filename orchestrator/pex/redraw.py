"""Asks a model how data can be shown whose frame cannot be (AG-6). The data stay as they are."""

from __future__ import annotations

from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.json_values import is_list
from orchestrator.pex.execution import Execution
from orchestrator.pex.repair import DISPLAY_TYPES
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.prompting.engineer import PromptEngineer
from orchestrator.types import Json, JsonObject

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
            call = run.world.call.for_flow(run.flow.flow_id)
            return await self._engineer.structured(PROMPT, variables, SCHEMA, call)
        except MODEL_FAILURES as error:
            run.world.failed_check("pex", "redraw", f"{error.code}: {error}", run.flow.flow_id)
            return None


def _describe(value: Json) -> Json:
    """A value's shape with an example: enough to choose how it is shown."""
    if is_list(value):
        return {"rows": len(value), "first": value[:2]}
    return value if isinstance(value, (int, float, bool)) else str(value)[:200]
