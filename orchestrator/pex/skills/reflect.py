"""Judges a skill's result once by its criteria, with a model (PX-11)."""

from __future__ import annotations

from orchestrator.domain.model import SkillSpec
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.execution import Execution
from orchestrator.pex.skills.time_limit import Clock, SkillTimedOut
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.types import JsonObject

PROMPT = "pex_reflect"
SCHEMA: JsonObject = {
    "type": "object",
    "required": ["good", "faults"],
    "properties": {
        "good": {"type": "boolean"},
        "faults": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 300}},
    },
}


def worth_reflecting(skill: SkillSpec) -> bool:
    return skill.reflect and bool(skill.criteria)


async def find_faults(
    run: Execution, skill: SkillSpec, engineer: PromptEngineer, clock: Clock, data: JsonObject
) -> list[str]:
    """Find what is to be corrected; empty when the result is good, or when nobody could judge it."""
    variables = {
        "task": skill.description,
        "criteria": list(skill.criteria),
        "utterance": run.context.text,
        "slots": run.flow.values(),
        "result": data,
    }
    call = run.context.call.for_flow(run.flow.flow_id)
    try:
        async with clock.limit():
            verdict = await engineer.structured(PROMPT, variables, SCHEMA, call)
    except (*MODEL_FAILURES, SkillTimedOut) as error:
        why = f"The result could not be judged: {error or 'its time was over'}"
        run.context.log.failed_check("pex", "reflection", why, run.flow.flow_id)
        return []
    return [] if verdict["good"] else [str(fault) for fault in verdict["faults"]]
