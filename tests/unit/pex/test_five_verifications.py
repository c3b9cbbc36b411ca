"""PX-15: one row per verification, each with a policy that violates exactly that one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from orchestrator.dialogue.lifecycle import COMPLETED
from orchestrator.dialogue.records import EffectNote, EffectStatus, Frame
from orchestrator.dialogue.specification import Family, FlowSpec, ToolUse
from orchestrator.pex.execution import Completed, Ending, Execution, Partial, Recover
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.steps.check import OF_RESULTS, OF_STATE
from orchestrator.types import TurnId
from tests.cases import for_each
from tests.unit.pex.setting import SPEC, TAKE, make_setting


class LeavesTheStack(BasePolicy):
    async def complete(self, run: Execution) -> Ending | None:
        ending = await super().complete(run)
        run.context.state.stack.flows.remove(run.flow)
        return ending


class LosesASlot(BasePolicy):
    async def results(self, run: Execution) -> Ending | None:
        run.flow.clear("place")
        return await super().results(run)


class MakesNoFrame(BasePolicy):
    """A policy without a frame, or without notes in a family that has no frames."""

    async def results(self, run: Execution) -> Ending | None:
        del run
        return None


class FormlessFrame(BasePolicy):
    async def results(self, run: Execution) -> Ending | None:
        ending = await super().results(run)
        assert run.frame is not None
        run.frame.display_type = ""
        return ending


class CannotBeShown(BasePolicy):
    """A policy whose frame cannot be repaired."""

    def frame(self, run: Execution) -> Frame:
        run.data.clear()
        return Frame("frame_1", run.flow.flow_id, None, error="There is nothing to draw.")


class StacksATwin(BasePolicy):
    async def complete(self, run: Execution) -> Ending | None:
        """Complete another flow of a kind that is already on the stack, below this one."""
        ending = await super().complete(run)
        waiting = replace(SPEC, dact="wait_for_thing")
        run.context.state.stack.flows[:0] = [pending(waiting), pending(waiting)]
        return ending


def pending(spec: FlowSpec) -> object:
    setting = make_setting(spec)
    setting.context.state.stack.park(setting.run.flow, 0.0)
    return setting.run.flow


class GoesOnWithNothing(BasePolicy):
    async def complete(self, run: Execution) -> Ending | None:
        run.context.state.flags.keep_going = True
        return await super().complete(run)


class HidesItsIssues(BasePolicy):
    async def complete(self, run: Execution) -> Ending | None:
        run.warning = "Only a part."
        ending = await super().complete(run)
        run.context.state.flags.has_issues = False
        return ending


@dataclass(frozen=True)
class Case:
    name: str
    policy: type[BasePolicy]
    spec: FlowSpec = SPEC

    def __str__(self) -> str:
        return f"{self.name}-{self.policy.__name__}"


CONVERSE = replace(SPEC, family=Family.CONVERSE)

CASES = [
    Case("state_consistent", LeavesTheStack),
    Case("slots_intact", LosesASlot),
    Case("output_well_formed", MakesNoFrame),
    Case("output_well_formed", FormlessFrame),
    Case("output_well_formed", MakesNoFrame, CONVERSE),
    Case("no_duplicate_flows", StacksATwin),
    Case("flags_coherent", GoesOnWithNothing),
    Case("flags_coherent", HidesItsIssues),
]


def test_every_verification_has_its_row() -> None:
    verifications = (*OF_RESULTS, *OF_STATE)
    assert {case.name for case in CASES} == {verification.__name__ for verification in verifications}
    assert len(verifications) == 5


@for_each("case", CASES, ids=str)
async def test_exactly_this_verification_trips(case: Case) -> None:
    """PX-15, AG-4: its name is recorded. Wrong results are retried once, and a wrong state is not."""
    setting = make_setting(case.spec)

    ending = await case.policy(case.spec).execute(setting.run)

    assert setting.failed_checks == [case.name]
    assert setting.context.state.flags.has_issues
    of_results = case.name in {verification.__name__ for verification in OF_RESULTS}
    assert isinstance(ending, Recover if of_results else Completed | Partial)
    assert setting.things.calls == ["attic"]


@for_each("policy", [LosesASlot, MakesNoFrame, FormlessFrame, CannotBeShown])
async def test_what_is_done_stays_done_whatever_is_wrong_with_its_result(policy: type[BasePolicy]) -> None:
    """PX-15, PX-16: a flow with a side effect is Completed and never repeated."""
    spec = replace(SPEC, tools=(ToolUse(TAKE.tool_id),), outputs=("taken",))
    setting = make_setting(spec)

    assert await policy(spec).execute(setting.run) == Completed()

    assert len(setting.failed_checks) >= 1
    assert setting.context.state.flags.has_issues
    assert setting.run.flow.status == COMPLETED
    assert setting.things.calls == ["attic"]


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (EffectStatus.FINISHED, Completed),
        (EffectStatus.UNKNOWN, Completed),
        (EffectStatus.COMPENSATED, Recover),
    ],
)
async def test_what_an_earlier_turn_did_for_the_flow_stays_done(
    status: EffectStatus, ending: type[Ending]
) -> None:
    """PX-16: the flow waited for a confirmation in between. A restart would ask for it again."""
    setting = make_setting()
    done = EffectNote(TAKE.tool_id, setting.run.flow.flow_id, {}, {}, status=status, turn_id=TurnId("turn_0"))
    setting.context.state.note_effect(done)

    assert isinstance(await CannotBeShown(SPEC).execute(setting.run), ending)


@pytest.mark.parametrize("spec", [SPEC, CONVERSE], ids=["with a frame", "with notes"])
async def test_sound_work_trips_none(spec: FlowSpec) -> None:
    setting = make_setting(spec)

    assert await BasePolicy(spec).execute(setting.run) == Completed()
    assert setting.failed_checks == []
    assert not setting.context.state.flags.has_issues
