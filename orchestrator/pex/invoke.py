"""Direct mode (PX-7): the flow's tools in order, each at most once, with the user's yes where one is needed."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.specification import Mode, ToolUse
from orchestrator.errors import FailureCategory
from orchestrator.pex.approve import hold_for_approval
from orchestrator.pex.arguments import Arguments, Choice, NothingFound, Unfed
from orchestrator.pex.candidate import (
    Candidate,
    drop_candidate,
    fingerprint,
    read_candidate,
    write_candidate,
)
from orchestrator.pex.choices import Choices
from orchestrator.pex.ending import Ending, Failed, NeedsInput
from orchestrator.pex.envelope import ToolData, ToolError
from orchestrator.pex.execution import Execution
from orchestrator.pex.toolbox import Tool
from orchestrator.pex.unknown import settle_unknown
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import JsonObject


async def invoke(run: Execution, policy: Choices) -> Ending | None:
    """Call the flow's tools; None when all have answered."""
    if run.flow.spec.mode is Mode.SKILL:
        task = run.flow.spec.description or run.flow.title
        message = f"“{task}” needs a language model, and none is available at the moment."
        return Failed(FailureCategory.SERVER_ERROR, message, check="model_available")
    candidate = read_candidate(run.flow)
    confirmed = candidate if candidate is not None and candidate.confirmed else None
    if confirmed is not None:
        run.data.update(confirmed.data)
    for use in run.flow.spec.tools:
        tool = run.tools.find(use.tool_id)
        assert tool is not None
        if confirmed is not None and use.tool_id != confirmed.tool_id and tool.spec.idempotent:
            continue  # it ran when the candidate was made
        ending = await _use(run, policy, use, tool, confirmed)
        if ending is not None:
            return ending
        if confirmed is not None and use.tool_id == confirmed.tool_id:
            confirmed = None
    return None


async def _use(
    run: Execution, policy: Choices, use: ToolUse, tool: Tool, confirmed: Candidate | None
) -> Ending | None:
    if confirmed is not None and confirmed.tool_id == use.tool_id:
        arguments = confirmed.arguments
    else:
        gathered = policy.arguments(run, use, tool)
        if not isinstance(gathered, Arguments):
            return _without_arguments(run, policy, gathered)
        arguments = gathered.values
        if run.flow.spec.confirm and not tool.spec.idempotent:
            return _ask_to_confirm(run, policy, tool, arguments)
    if not tool.spec.idempotent and run.world.state.ambiguity.blocks(run.flow.flow_id):
        return NeedsInput()
    if use.tool_id in run.gated:
        parked = hold_for_approval(run, tool, arguments)
        if parked is not None:
            return parked
    return await _call(run, policy, tool, arguments)


def _without_arguments(
    run: Execution, policy: Choices, gathered: Choice | NothingFound | Unfed
) -> NeedsInput | Failed:
    match gathered:
        case Choice():
            return _ask_to_choose(run, policy, gathered)
        case NothingFound():
            return Failed(FailureCategory.NOT_FOUND, "I found nothing that fits.")
        case Unfed(name):
            run.world.failed_check("pex", "arguments", f"Nothing gives the input {name!r}.", run.flow.flow_id)
            return Failed(FailureCategory.VALIDATION_ERROR, "I do not have what this task needs.")


def _ask_to_choose(run: Execution, policy: Choices, choice: Choice) -> NeedsInput:
    """Offer the rows as options for the slot that they would fill (partial ambiguity)."""
    options = [
        Option(
            label=policy.label(run, row),
            action_name="fill_slot",
            payload={"flow_id": run.flow.flow_id, "slot": choice.slot, "value": row[choice.name]},
        )
        for row in choice.rows[: policy.most_choices]
    ]
    run.world.findings[run.flow.flow_id] = run.data
    run.world.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=run.flow.flow_id,
        slot=choice.slot,
        candidates=[row[choice.name] for row in choice.rows[: policy.most_choices]],
        options=options,
        turn_id=run.world.turn_id,
        metadata={"about": "rows"},
    )
    return NeedsInput()


def _ask_to_confirm(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> NeedsInput:
    """Show what is about to be done and wait for a yes (AM-3)."""
    write_candidate(
        run.flow,
        Candidate(
            tool_id=tool.spec.tool_id,
            arguments=arguments,
            data=policy.keep(run),
            slots=fingerprint(run.flow),
        ),
    )
    run.world.findings[run.flow.flow_id] = run.data
    run.world.state.ambiguity.declare(
        Level.CONFIRMATION,
        flow_id=run.flow.flow_id,
        turn_id=run.world.turn_id,
        metadata={"about": "candidate", "shown": policy.summary(run, arguments)},
    )
    return NeedsInput()


async def _call(run: Execution, policy: Choices, tool: Tool, arguments: JsonObject) -> Ending | None:
    result = await run.tools.call(run.world, run.flow.flow_id, tool, arguments)
    if isinstance(result, UnknownOutcome):
        result = await settle_unknown(run, tool, arguments, result)
    match result:
        case ToolData(data):
            run.take(tool.spec.tool_id, data)
            if not tool.spec.idempotent:
                drop_candidate(run.flow)
                policy.note_effect(run, tool, arguments, data)
            return None
        case ToolError() as error:
            retryable = error.retryable and tool.spec.idempotent
            return Failed(error.category, error.message, retryable=retryable)
        case NeedsInput():
            return result
