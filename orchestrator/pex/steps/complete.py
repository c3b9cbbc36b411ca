"""Complete a successful flow: store its outputs, and set its state and flags (PX-14)."""

from orchestrator.memory.notes import NoteKind
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution
from orchestrator.pex.skills.components import write_note
from orchestrator.pex.steps.results import LONGEST_SNIPPET, say_found


async def complete(policy: Choices, run: Execution) -> Ending | None:
    """Mark the flow as Completed, and store its outputs for dependent flows (FS-7).

    A flow with partial results stays Active and sets `has_issues`.
    """
    state = run.context.state
    await _reflect(run)
    if run.warning is not None:
        state.note_issues()
        return None
    run.flow.give(policy.outputs(run))
    run.context.world.registry.learn(run.flow)
    state.stack.complete(run.flow, run.context.now)
    state.ambiguity.resolve(flow_id=run.flow.flow_id)
    warned = run.frame is not None and run.frame.warning is not None
    state.note_issues(present=run.faulty or warned)
    return None


async def _reflect(run: Execution) -> None:
    """Write the inputs, the findings and the conclusion to the scratchpad, without raw data (PX-14)."""
    flow = run.flow
    what = flow.spec.description or flow.title
    given = ", ".join([f"{name} {value}" for name, value in flow.values().items() if value is not None])
    end = "The task is complete." if run.warning is None else f"The task is incomplete: {run.warning}"
    sentences = f"{what}: {given or 'nothing was given'}", say_found(run), f"{what}: {end}"
    await write_note(run, *[sentence[:LONGEST_SNIPPET] for sentence in sentences], kind=NoteKind.RESULT)
