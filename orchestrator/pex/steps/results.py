"""Store a flow's findings in a frame or in the scratchpad (PX-12), and complete the flow (PX-14)."""

from orchestrator.dialogue.specification import Family
from orchestrator.memory.notes import NoteKind
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.frames import repair
from orchestrator.pex.queries import repair_query
from orchestrator.pex.skills.components import write_note
from orchestrator.types import Json, is_list, is_object

LONGEST_SNIPPET = 160
SHORT = 40

FRAMED = frozenset({Family.READ, Family.PREPARE, Family.TRANSFORM, Family.SCHEDULE})


async def results(policy: Choices, run: Execution) -> Ending | None:
    """Store the findings for the answer, and create a frame if the flow's family has frames.

    Flows in other families write their findings to the scratchpad.
    """
    run.context.changes.findings[run.flow.flow_id] = run.data
    if run.flow.spec.family in FRAMED:
        failed = await _frame(run, policy) if run.has_result else None
        return (
            None if run.has_effect else failed
        )  # a side effect stays in place even if its result cannot be displayed
    if run.data:
        await write_note(run, say_found(run), kind=NoteKind.RESULT)
        run.noted = True
    return None


def say_found(run: Execution) -> str:
    """Return a one-sentence summary of the findings, without raw data (PX-14)."""
    found = ", ".join([f"{name} {_sum_up(value)}" for name, value in run.data.items()])
    return f"{run.flow.spec.description or run.flow.title} found: {found or 'nothing'}"[:LONGEST_SNIPPET]


def _sum_up(value: Json) -> str:
    if not isinstance(value, (str, int, float)):
        if is_list(value):
            return f"({len(value)} rows)"
        if is_object(value):
            return f"({len(value)} values)"
    text = str(value)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


async def _frame(run: Execution, policy: Choices) -> Failed | None:
    if await repair_query(run, policy):
        run.context.changes.findings[run.flow.flow_id] = run.data
    frame = run.frame = run.context.changes.frames[run.flow.flow_id] = policy.frame(run)
    if run.warning is not None:
        frame.warning = run.warning
    elif run.repaired is not None:
        frame.warning = run.repaired
    if frame.code is None:
        frame.code = run.code
    return await repair(run, policy.engineer)


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
