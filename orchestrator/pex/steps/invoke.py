"""Run a flow deterministically, with its tools in order (PX-7), or with a skill (PX-5)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.dialogue.specification import Mode
from orchestrator.errors import FailureCategory
from orchestrator.pex.calls.guarded_call import call_in_order
from orchestrator.pex.choices import Choices, Skills
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.queries import repair_query
from orchestrator.pex.skill_outcome import Success
from orchestrator.pex.skills.components import write_note
from orchestrator.saying import say
from orchestrator.types import Json, JsonObject, is_object


def choose_mode(run: Execution, skills: Skills | None) -> Mode | None:
    """Return DIRECT or SKILL, or None if the flow needs a model and no model is available.

    In `auto` mode, a flow runs deterministically if each required tool input has a source, or if it has no
    skill.
    """
    spec = run.flow.spec
    if spec.mode is Mode.DIRECT:
        return Mode.DIRECT
    has_skill = spec.dact in run.context.world.domain.skills
    if spec.mode is Mode.AUTO and (not has_skill or maps_completely(run)):
        return Mode.DIRECT
    return Mode.SKILL if skills is not None and skills.can_run(spec.dact) else None


def maps_completely(run: Execution) -> bool:
    """Return whether each required input has a source: a slot, a flow input or an earlier tool's output."""
    spec = run.flow.spec
    known = {*spec.slots, *spec.inputs}
    for use in spec.tools:
        tool = run.tools.find(use.tool_id)
        if tool is None or any(use.slot_mapping.get(name, name) not in known for name in tool.required):
            return False
        known |= _output_names(tool.spec.output_schema)
    return bool(spec.tools)


def _output_names(schema: Json) -> set[str]:
    """Return the names of a tool's outputs, including the fields of rows in lists."""
    if not is_object(schema):
        return set()
    names: set[str] = set()
    properties: JsonObject = schema.get("properties") or {}
    for name, body in properties.items():
        names.add(name)
        if is_object(body):
            names |= _output_names(body.get("items"))
    return names


NO_MODEL = "model_available"


async def invoke(policy: Choices, run: Execution) -> Ending | None:
    """Run the flow, and repair its query if it fails. Return None if there are results."""
    match choose_mode(run, policy.skills):
        case Mode.DIRECT:
            ending = await call_in_order(run, policy)
        case None:
            task = run.flow.spec.description or run.flow.title
            message = say("needs_model", task=task)
            return Failed(FailureCategory.SERVER_ERROR, message, check=NO_MODEL)
        case _:
            ending = await _run_skill(run, policy)
    if isinstance(ending, Failed) and await repair_query(run, policy, failed=str(ending.message)):
        return None
    return ending


async def _run_skill(run: Execution, policy: Choices) -> Ending | None:
    assert policy.skills is not None
    match await policy.skills.run(run, policy):
        case Success(data, entries, warning):
            run.data, run.by_skill, run.warning = _prefer_tools(run, data), True, warning
            for entry in entries:
                await write_note(run, entry)
            return None
        case Failed() as failed:
            unchanged = not any(tool.has_effect for tool, _ in run.answers)
            return replace(failed, retryable=failed.retryable and unchanged)
        case waiting:
            return waiting


def _prefer_tools(run: Execution, data: JsonObject) -> JsonObject:
    """Return the model's data, but use the tools' values for outputs from tools with side effects."""
    merged = dict(data)
    for tool, returned in run.answers:
        if tool.has_effect:
            merged |= {name: returned[name] for name in run.flow.spec.outputs if name in returned}
    return merged
