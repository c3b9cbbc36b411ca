"""Direct mode (PX-7): the flow's tools in order, each at most once, with the user's yes where one is needed."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.specification import ToolUse
from orchestrator.errors import FailureCategory
from orchestrator.pex.arguments import Arguments, Choice, NothingFound, Unfed
from orchestrator.pex.calls.candidate import Candidate, read_candidate
from orchestrator.pex.calls.guarded_call import carry
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed, NeedsInput, Parked
from orchestrator.tools.guardrails import Rejected
from orchestrator.tools.toolbox import Tool, ToolData, ToolError


async def call_in_order(run: Execution, policy: Choices) -> Ending | None:
    """Call the flow's tools; None when all have answered."""
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
    agreed = confirmed if confirmed is not None and confirmed.tool_id == use.tool_id else None
    if agreed is not None:
        arguments = agreed.arguments
    else:
        gathered = policy.arguments(run, use, tool)
        if not isinstance(gathered, Arguments):
            return _without_arguments(run, policy, gathered)
        arguments = gathered.values
    match await carry(run, policy, tool, arguments, agreed):
        case ToolData():
            return None
        case ToolError() as error:
            retryable = error.retryable and tool.spec.idempotent
            return Failed(error.category, error.message, retryable=retryable)
        case Rejected(_, message):
            return Failed(FailureCategory.VALIDATION_ERROR, message)
        case NeedsInput() | Parked() as waiting:
            return waiting


def _without_arguments(
    run: Execution, policy: Choices, gathered: Choice | NothingFound | Unfed
) -> NeedsInput | Failed:
    match gathered:
        case Choice():
            return _ask_to_choose(run, policy, gathered)
        case NothingFound():
            return Failed(FailureCategory.NOT_FOUND, "I found nothing that fits.")
        case Unfed(name):
            run.context.log.failed_check(
                "pex", "arguments", f"Nothing gives the input {name!r}.", run.flow.flow_id
            )
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
    run.context.changes.findings[run.flow.flow_id] = run.data
    run.context.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=run.flow.flow_id,
        slot=choice.slot,
        candidates=[row[choice.name] for row in choice.rows[: policy.most_choices]],
        options=options,
        turn_id=run.context.ids.turn_id,
        metadata={"about": "rows"},
    )
    return NeedsInput()
