"""The recovery ladder (PX-16), and guardrails outside skills (PX-10)."""

from __future__ import annotations

import copy
from dataclasses import replace

from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Completed, Failed, Recover, Recovery
from orchestrator.pex.steps.recover import recover
from tests.unit.pex.setting import LOOK, SPEC, Setting, make_setting

UNCERTAIN = Failed(FailureCategory.VALIDATION_ERROR, "Which year?", uncertain=True)


async def climb(setting: Setting, failure: Failed, times: int) -> list[Recovery]:
    """Return the rungs chosen when the same failure repeats in one turn."""
    endings = [await recover(setting.policy, setting.run, failure) for _ in range(times)]
    return [ending.recovery for ending in endings if isinstance(ending, Recover)]


async def test_recovery_leaves_the_previous_frame_as_it_is() -> None:
    """PX-13: uncertain results keep it."""
    setting = make_setting()
    frame = Frame("frame_1", setting.run.flow.flow_id, {"seen": "a hat"})
    setting.context.changes.frames[setting.run.flow.flow_id] = frame
    before = copy.deepcopy(frame)

    await climb(setting, UNCERTAIN, 3)

    assert setting.context.changes.frames == {setting.run.flow.flow_id: before}


QUERY = replace(
    LOOK,
    input_schema={
        "type": "object",
        "required": ["place"],
        "properties": {"place": {"type": "string", "x-guardrail": "sql"}},
    },
)
FREE = replace(SPEC, slots={"place": SlotSpec("place", "free_text")})


async def test_code_of_a_user_is_judged_in_direct_mode_as_well() -> None:
    """PX-10"""
    setting = make_setting(FREE, tools=(QUERY,), slots={"place": "DROP TABLE things"})

    await setting.policy.execute(setting.run)

    assert setting.things.calls == []
    assert "guardrail" in setting.failed_checks


async def test_code_that_passes_is_written_anew_in_direct_mode_as_well() -> None:
    """PX-10"""
    setting = make_setting(FREE, tools=(QUERY,), slots={"place": "select 1 -- and more"})

    assert await setting.policy.execute(setting.run) == Completed()
    assert setting.things.calls == ["SELECT 1"]
