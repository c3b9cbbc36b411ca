"""PX-2: one row per check, each with a flow that violates exactly that check, so that no tool is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator.dialogue.specification import Family, FlowSpec, Priority, SlotSpec, ToolUse
from orchestrator.domain.model import ToolSpec
from orchestrator.pex.execution import Completed, Ending, Execution, Failed, Parked
from orchestrator.pex.policy import PEX, BasePolicy
from orchestrator.pex.steps.check import CHECKS
from orchestrator.types import ToolId
from tests.cases import for_each
from tests.unit.pex.setting import LOOK, SPEC, TAKE, Setting, make_setting


class Hasty(BasePolicy):
    """A domain's policy that skips the review, so missing slots are not requested."""

    async def review(self, run: Execution) -> Ending | None:
        del run
        return None


@dataclass
class Case:
    """A case. `has_policy`: True if PEX has a policy for the flow."""

    setting: Setting
    has_policy: bool = True


def flow(spec: FlowSpec = SPEC, **options: Any) -> Case:
    setting = make_setting(spec, **options)
    setting.policy = Hasty(spec)
    return Case(setting)


def nothing_active() -> Case:
    case = flow()
    case.setting.context.state.stack.cancel(case.setting.run.flow)
    return case


def without_policy() -> Case:
    return replace(flow(), has_policy=False)


def required_slot_empty() -> Case:
    return flow(slots={})


def elective_group_empty() -> Case:
    either = {name: SlotSpec(name, "base", Priority.ELECTIVE, group="either") for name in ("one", "other")}
    return flow(replace(SPEC, slots=either, tools=()), slots={})


def tool_not_in_manifest() -> Case:
    return flow(replace(SPEC, tools=(ToolUse(ToolId("thing_lose")),)))


def tool_without_time_out() -> Case:
    return flow(tools=(replace(LOOK, timeout_ms=0),))


def tool_with_all_three_tags() -> Case:
    return flow(tools=(replace(LOOK, **THREE_TAGS),))


THREE_TAGS = {
    "accesses_private_data": True,
    "receives_untrusted_input": True,
    "communicates_externally": True,
}

TRIPPED_BY: dict[str, Callable[[], Case]] = {
    "active_flow": nothing_active,
    "policy_registered": without_policy,
    "required_slots": required_slot_empty,
    "elective_slots": elective_group_empty,
    "tools_in_manifest": tool_not_in_manifest,
    "time_outs": tool_without_time_out,
    "trifecta_gate": tool_with_all_three_tags,
}

PARKS = {"trifecta_gate"}
"""Checks that pause a flow instead of rejecting it, because an approval is possible."""


async def execute(case: Case) -> Ending:
    setting = case.setting
    policies = {SPEC.dact: setting.policy} if case.has_policy else {}
    work = PEX(policies, setting.run.tools).find_work(setting.context, setting.context.state.stack.active)
    return work if isinstance(work, Failed) else await work[0].execute(work[1])


def test_every_check_has_its_row() -> None:
    assert list(TRIPPED_BY) != []
    assert sorted(TRIPPED_BY) == sorted(CHECKS)
    assert len(CHECKS) == 7


@for_each("name", TRIPPED_BY)
async def test_exactly_this_check_trips(name: str) -> None:
    """PX-2, AG-4, AG-5: its name is recorded, no tool is called, and the Agent regains control."""
    case = TRIPPED_BY[name]()

    ending = await execute(case)

    assert case.setting.failed_checks == [name]
    assert case.setting.things.calls == []
    if name in PARKS:
        assert isinstance(ending, Parked)
    else:
        assert isinstance(ending, Failed)
        assert ending.check == name
        assert case.setting.context.state.flags.has_issues


async def test_a_flow_without_a_fault_trips_none() -> None:
    case = flow()

    assert await execute(case) == Completed()
    assert case.setting.failed_checks == []
    assert case.setting.things.calls == ["attic"]
    assert not case.setting.context.state.flags.has_issues


@pytest.mark.parametrize("manifest", [False, True], ids=["manifest says no", "manifest says yes"])
async def test_the_gate_asks_whatever_the_manifest_says(manifest: bool) -> None:
    """PX-3: with its reason, unlike an approval from the manifest."""
    case = flow(tools=(replace(LOOK, requires_approval=manifest, **THREE_TAGS),))

    assert isinstance(await execute(case), Parked)
    [approval] = case.setting.context.state.approvals
    assert "reading private data" in str(approval.cause)
    assert "untrusted text" in str(approval.cause)


TAGGED: dict[str, ToolSpec] = {
    "private": replace(LOOK, tool_id=ToolId("row_read"), accesses_private_data=True),
    "untrusted": replace(LOOK, tool_id=ToolId("page_read"), receives_untrusted_input=True),
    "outward": replace(TAKE, tool_id=ToolId("mail_send"), communicates_externally=True),
}


@for_each(
    ("names", "parks"),
    [
        (("private", "untrusted", "outward"), True),
        (("private", "outward"), False),
        (("untrusted", "outward"), False),
        (("private", "untrusted"), False),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
async def test_the_gate_joins_the_tools_of_a_flow(names: tuple[str, ...], parks: bool) -> None:
    """PX-3: two of three capabilities are permitted. With the third, the outgoing call waits."""
    tools = tuple(TAGGED[name] for name in names)
    spec = replace(SPEC, family=Family.TRANSFORM, tools=tuple(ToolUse(tool.tool_id) for tool in tools))
    case = flow(spec, tools=tools)

    ending = await execute(case)

    assert isinstance(ending, Parked) is parks
    assert len(case.setting.things.calls) == len(names) - parks
