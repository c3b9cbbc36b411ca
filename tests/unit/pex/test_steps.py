"""Steps of a policy without failures: scratchpad entries, questions, confirmations (PX-4, PX-12, PX-14)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.dialogue.consent import agree
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.questions import TryAgain
from orchestrator.dialogue.specification import Family, ToolUse
from orchestrator.pex.execution import (
    Completed,
    NeedsInput,
)
from orchestrator.pex.steps import STEPS
from orchestrator.tools.toolbox import Toolbox
from orchestrator.tools.trifecta import find_cause, join_labels
from orchestrator.types import ToolId
from tests.unit.pex.setting import SPEC, TAKE, make_setting


async def test_the_steps_are_taken_in_their_order_and_each_is_the_policys_own() -> None:
    """PX-1: `recover` runs only after a failure."""
    taken: list[str] = []
    setting = make_setting()

    def watch(name: str) -> None:
        own = getattr(setting.policy, name)

        async def step(*arguments: object) -> object:
            taken.append(name)
            return await own(*arguments)

        setattr(setting.policy, name, step)

    for step in STEPS:
        watch(step.__name__)
    await setting.policy.execute(setting.run)

    assert " ".join(taken) == "check review check_slots invoke results verify_results complete verify"


async def test_a_task_without_a_frame_leaves_notes() -> None:
    """PX-12, PX-14: its findings and memories."""
    setting = make_setting(replace(SPEC, family=Family.CONVERSE))

    assert await setting.policy.execute(setting.run) == Completed()
    notes = [note.text for note in await setting.context.recall.notes.read(10)]
    assert notes[0] == "Find a thing found: seen a hat, taken a hat", "in words: raw data would be promoted"
    assert 3 <= len(notes) <= 5
    assert setting.failed_checks == []


async def test_a_completed_task_has_its_frame_state_flags_and_reflections() -> None:
    """PX-14: three to five sentences, without raw data."""
    setting = make_setting()

    assert await setting.policy.execute(setting.run) == Completed()

    run, state = setting.run, setting.context.state
    assert run.frame is not None
    assert run.frame.flow_id == run.flow.flow_id
    assert run.flow.status.state is FlowState.COMPLETED
    assert (state.flags.has_issues, state.flags.keep_going) == (False, False)
    notes = [note.text for note in await setting.context.recall.notes.read(10)]
    assert 3 <= len(notes) <= 5
    assert not any(note.startswith(("{", "[")) for note in notes)


async def test_a_yes_given_before_does_not_answer_a_question_that_is_open_now() -> None:
    """AM-3: no side effect happens while “shall I try again?” is open after a failed attempt."""
    setting = make_setting(replace(SPEC, tools=(ToolUse(TAKE.tool_id),), confirm=True))
    await setting.policy.execute(setting.run)
    agree(setting.context.state, setting.run.flow)
    ambiguity = setting.context.state.ambiguity
    ambiguity.resolve()
    ambiguity.declare(TryAgain(flow_id=setting.run.flow.flow_id))

    assert await setting.policy.execute(setting.run) == NeedsInput()
    assert setting.things.calls == []


def test_labels_of_what_was_kept_elsewhere_close_the_gate() -> None:
    """PX-3: memories and summaries keep their labels."""
    outward = replace(TAKE, tool_id=ToolId("mail_send"), communicates_externally=True)
    tool = Toolbox({outward.tool_id: outward}, lambda _: {}).find(outward.tool_id)
    assert tool is not None
    state = make_setting().context.state
    join_labels(state, ["private"], "what you told me in May")
    assert find_cause(outward, [tool], state.intake.labels, {}) is None

    join_labels(state, ["untrusted"], "the summary of a page")

    cause = find_cause(outward, [tool], state.intake.labels, {})
    assert cause is not None
    assert "what you told me in May" in str(cause.told)
