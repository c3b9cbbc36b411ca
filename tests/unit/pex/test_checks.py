"""Each of the seven checks (PX-2) and the five verifications (PX-15) is tripped by exactly its fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.specification import Priority, SlotSpec, ToolUse
from orchestrator.pex.candidate import confirm_candidate
from orchestrator.pex.check import check, check_slots, tools_to_approve
from orchestrator.pex.ending import Completed, Failed, NeedsInput, Parked
from orchestrator.pex.toolbox import Toolbox
from orchestrator.pex.verify import verify
from orchestrator.types import ToolId
from tests.unit.pex.setting import LOOK, SPEC, TAKE, make_setting


async def test_a_complete_flow_trips_nothing() -> None:
    setting = make_setting()

    ending = await setting.policy.execute(setting.run)

    assert ending == Completed()
    assert setting.failed_checks == []
    assert setting.run.flow.outputs == {"seen": "a hat"}


def test_active_flow() -> None:
    setting = make_setting()
    setting.world.state.stack.cancel(setting.run.flow)

    failed = check(setting.run)

    assert isinstance(failed, Failed)
    assert failed.check == "active_flow"
    assert setting.failed_checks == ["active_flow"]
    assert setting.world.state.flags.has_issues


def test_policy_registered() -> None:
    setting = make_setting()
    setting.world.domain = replace(setting.world.domain, flows={})

    assert check(setting.run).check == "policy_registered"


def test_tools_in_manifest() -> None:
    setting = make_setting(replace(SPEC, tools=(ToolUse(ToolId("thing_lose")),)))

    assert check(setting.run).check == "tools_in_manifest"


def test_time_outs() -> None:
    setting = make_setting(tools=(replace(LOOK, timeout_ms=0),))

    assert check(setting.run).check == "time_outs"


def test_required_slots() -> None:
    setting = make_setting(slots={})

    assert check_slots(setting.run).check == "required_slots"


def test_elective_slots() -> None:
    """A group without any value; the first of it is what would be asked."""
    one = SlotSpec("one", "base", Priority.ELECTIVE, group="either")
    other = SlotSpec("other", "base", Priority.ELECTIVE, group="either")
    setting = make_setting(replace(SPEC, slots={"one": one, "other": other}), slots={})

    assert check_slots(setting.run).check == "elective_slots"


async def test_trifecta_gate_parks_the_flow() -> None:
    """PX-3: whatever the manifest says."""
    dangerous = replace(
        LOOK, accesses_private_data=True, receives_untrusted_input=True, communicates_externally=True
    )
    setting = make_setting(tools=(dangerous,))

    ending = await setting.policy.execute(setting.run)

    assert isinstance(ending, Parked)
    assert setting.things.calls == []
    assert [approval.tool_id for approval in setting.world.state.approvals] == [LOOK.tool_id]


def test_trifecta_gate_joins_the_tools_of_a_flow() -> None:
    """PX-3: the combination cannot be assembled across tools."""
    private = replace(LOOK, accesses_private_data=True)
    untrusted = replace(LOOK, tool_id=ToolId("web_read"), receives_untrusted_input=True)
    outward = replace(LOOK, tool_id=ToolId("mail_send"), communicates_externally=True)
    tools = {spec.tool_id: spec for spec in (private, untrusted, outward)}
    toolbox = Toolbox(tools, lambda _: {})

    assert tools_to_approve([toolbox.find(tool_id) for tool_id in tools]) == {"mail_send"}
    assert tools_to_approve([toolbox.find(private.tool_id), toolbox.find(outward.tool_id)]) == frozenset()


def test_verify_state_consistent() -> None:
    setting = make_setting()
    setting.world.state.stack.flows.clear()

    assert verify(setting.run) == ["state_consistent"]


async def test_verify_slots_intact() -> None:
    setting = make_setting()
    await setting.policy.review(setting.run)
    setting.run.flow.clear("place")

    assert verify(setting.run) == ["slots_intact"]


def test_verify_output_well_formed() -> None:
    setting = make_setting()
    setting.run.take(LOOK.tool_id, {"seen": "a hat"})

    assert verify(setting.run) == ["output_well_formed"]


def test_verify_no_duplicate_flows() -> None:
    setting = make_setting()
    stack = setting.world.state.stack
    twin = type(setting.run.flow)(0.0)
    stack.flows.append(twin)

    assert "no_duplicate_flows" in verify(setting.run)


def test_verify_flags_coherent() -> None:
    setting = make_setting()
    setting.world.state.flags.keep_going = True

    assert verify(setting.run) == ["flags_coherent"]


async def test_a_missing_slot_is_asked_for_before_any_tool_runs() -> None:
    """PX-4."""
    setting = make_setting(slots={})

    assert await setting.policy.execute(setting.run) == NeedsInput()
    assert setting.things.calls == []
    assert setting.world.state.ambiguity.current.slot == "place"


@pytest.mark.parametrize("confirmed", [False, True])
async def test_a_call_with_effect_waits_for_its_yes(confirmed: bool) -> None:
    """AM-3."""
    setting = make_setting(replace(SPEC, tools=(ToolUse(TAKE.tool_id),), confirm=True))
    assert await setting.policy.execute(setting.run) == NeedsInput()
    if confirmed:
        assert confirm_candidate(setting.run.flow)
        setting.world.state.ambiguity.resolve()

    ending = await setting.policy.execute(setting.run)

    assert ending == (Completed() if confirmed else NeedsInput())
    assert setting.things.calls == (["attic"] if confirmed else [])


async def test_a_yes_given_before_does_not_answer_a_question_that_is_open_now() -> None:
    """AM-3: after a failed attempt nothing that lasts is done while "shall I try again?" is open."""
    setting = make_setting(replace(SPEC, tools=(ToolUse(TAKE.tool_id),), confirm=True))
    await setting.policy.execute(setting.run)
    confirm_candidate(setting.run.flow)
    ambiguity = setting.world.state.ambiguity
    ambiguity.resolve()
    ambiguity.declare(Level.CONFIRMATION, flow_id=setting.run.flow.flow_id, metadata={"about": "retry"})

    assert await setting.policy.execute(setting.run) == NeedsInput()
    assert setting.things.calls == []
