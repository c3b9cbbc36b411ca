"""Which way a flow is carried out: its tools in order, or a skill (PX-5, PX-7)."""

from __future__ import annotations

from orchestrator.dialogue.json_values import is_object
from orchestrator.dialogue.specification import Mode
from orchestrator.pex.choices import Skills
from orchestrator.pex.execution import Execution
from orchestrator.types import Json, JsonObject


def choose_mode(run: Execution, skills: Skills | None) -> Mode | None:
    """DIRECT or SKILL; None when the flow needs a model and none can be asked.

    Under `auto` a flow is carried out directly when its slots map completely onto its tools' inputs,
    or when there is no skill for it.
    """
    spec = run.flow.spec
    if spec.mode is Mode.DIRECT:
        return Mode.DIRECT
    has_skill = spec.dact in run.world.domain.skills
    if spec.mode is Mode.AUTO and (not has_skill or maps_completely(run)):
        return Mode.DIRECT
    return Mode.SKILL if skills is not None and skills.can_run(spec.dact) else None


def maps_completely(run: Execution) -> bool:
    """Whether every required input has a slot, a flow input or an earlier tool's output to come from."""
    spec = run.flow.spec
    known = {*spec.slots, *spec.inputs}
    for use in spec.tools:
        tool = run.tools.find(use.tool_id)
        if tool is None or any(use.slot_mapping.get(name, name) not in known for name in tool.required):
            return False
        known |= _output_names(tool.spec.output_schema)
    return bool(spec.tools)


def _output_names(schema: Json) -> set[str]:
    """Names of what a tool gives, also of the rows in its lists."""
    if not is_object(schema):
        return set()
    names: set[str] = set()
    properties: JsonObject = schema.get("properties") or {}
    for name, body in properties.items():
        names.add(name)
        if is_object(body):
            names |= _output_names(body.get("items"))
    return names
