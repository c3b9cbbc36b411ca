"""Has the flow's tools called, in order or by a skill, and takes over what a skill ended with (PX-5 … PX-7)."""

from __future__ import annotations

from orchestrator.dialogue.specification import Mode
from orchestrator.errors import FailureCategory
from orchestrator.pex.choices import Choices
from orchestrator.pex.direct import call_in_order
from orchestrator.pex.ending import Ending, Failed
from orchestrator.pex.execution import Execution
from orchestrator.pex.mode import choose_mode
from orchestrator.pex.outcome import Failure, Interrupted, Success, Uncertain
from orchestrator.pex.skills.components import write_note
from orchestrator.types import JsonObject, ToolId


async def invoke(run: Execution, policy: Choices) -> Ending | None:
    """Carry the flow out; None when there are results to go on with."""
    match choose_mode(run, policy.skills):
        case Mode.DIRECT:
            return await call_in_order(run, policy)
        case None:
            task = run.flow.spec.description or run.flow.title
            message = f"“{task}” needs a language model, and none is available at the moment."
            return Failed(FailureCategory.SERVER_ERROR, message, check="model_available")
        case _:
            return await _run_skill(run, policy)


async def _run_skill(run: Execution, policy: Choices) -> Ending | None:
    assert policy.skills is not None
    match await policy.skills.run(run, policy):
        case Success(data, entries):
            run.data, run.by_skill = _prefer_tools(run, data), True
            for entry in entries:
                await write_note(run, entry)
            return None
        case Failure(_, message, partial) if partial:
            run.data, run.by_skill = _prefer_tools(run, partial), True
            run.warning = message
            return None
        case Failure(category, message, _, retryable):
            return Failed(category, message, retryable=retryable and not _had_effect(run))
        case Uncertain(reason, context):
            return Failed(FailureCategory.VALIDATION_ERROR, reason, uncertain=True, evidence=context)
        case Interrupted(ending):
            return ending


def _prefer_tools(run: Execution, data: JsonObject) -> JsonObject:
    """What a tool that changed something returned for an output counts more than what the model says of it."""
    told = dict(data)
    for tool_id, returned in zip(run.used, run.returned, strict=True):
        if _changes(run, tool_id):
            told |= {name: returned[name] for name in run.flow.spec.outputs if name in returned}
    return told


def _had_effect(run: Execution) -> bool:
    return any(_changes(run, tool_id) for tool_id in run.used)


def _changes(run: Execution, tool_id: ToolId) -> bool:
    tool = run.tools.find(tool_id)
    return tool is not None and not tool.spec.idempotent
