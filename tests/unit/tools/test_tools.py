"""Tool calls: schemas, timeouts, retries, unknown outcomes (PX-7 … PX-9, RT-9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.dialogue.specification import ToolUse
from orchestrator.errors import ConfigurationError, FailureCategory, LaneLost, ToolFailure
from orchestrator.pex.execution import Completed, NeedsInput
from orchestrator.tools.toolbox import Toolbox, ToolData, ToolError, read_envelope, write_envelope
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, ToolId
from tests.cases import for_each
from tests.unit.pex.setting import LOOK, SPEC, TAKE, Journal, Setting, Things, make_setting

FLOW = FlowId("flow")
DOWN = ToolFailure(FailureCategory.SERVER_ERROR, "It is down.")


async def call(setting: Setting, tool_id: str, **arguments: object) -> object:
    tool = setting.run.tools.find(ToolId(tool_id))
    return await setting.run.tools.call(setting.context, FLOW, tool, arguments)


async def test_data_comes_back() -> None:
    setting = make_setting()

    assert await call(setting, "thing_look", place="attic") == ToolData({"seen": "a hat", "taken": "a hat"})
    assert [(used.tool_id, used.status) for used in setting.context.log.tools] == [("thing_look", "ok")]
    assert [event.type for event in setting.context.log.events] == ["tool_started", "tool_finished"]


@pytest.mark.parametrize("arguments", [{}, {"place": 7}])
async def test_input_that_does_not_fit_is_never_sent(arguments: dict[str, object]) -> None:
    """PX-8"""
    setting = make_setting()

    result = await call(setting, "thing_look", **arguments)

    assert isinstance(result, ToolError)
    assert result.category is FailureCategory.VALIDATION_ERROR
    assert setting.things.calls == []


@for_each("answer", [{"seen": 7}, {}, "a hat", None])
async def test_output_that_does_not_fit_is_not_used(answer: object) -> None:
    """PX-8"""
    setting = make_setting(tools=(replace(LOOK, max_retries=0),), things=Things(answer))

    result = await call(setting, "thing_look", place="attic")

    assert isinstance(result, ToolError)
    assert result.category is FailureCategory.SERVER_ERROR


async def test_what_changes_nothing_is_tried_again() -> None:
    """PX-9"""
    setting = make_setting(things=Things(DOWN, DOWN, {"seen": "a hat"}))

    assert isinstance(await call(setting, "thing_look", place="attic"), ToolData)
    assert len(setting.things.calls) == 3


async def test_what_changes_something_is_not_tried_again() -> None:
    """PX-9"""
    setting = make_setting(things=Things(DOWN))

    assert await call(setting, "thing_take", place="attic") == ToolError(
        FailureCategory.SERVER_ERROR, "It is down."
    )
    assert len(setting.things.calls) == 1


async def test_a_mistake_is_not_tried_again() -> None:
    setting = make_setting(things=Things(ToolFailure("not_found", "There is no attic.")))

    result = await call(setting, "thing_look", place="attic")

    assert result == ToolError(FailureCategory.NOT_FOUND, "There is no attic.")
    assert len(setting.things.calls) == 1


async def test_a_break_in_the_middle_of_an_effect_is_an_unknown_outcome() -> None:
    """RT-9"""
    setting = make_setting(things=Things(RuntimeError("boom")))

    assert isinstance(await call(setting, "thing_take", place="attic"), UnknownOutcome)
    assert setting.context.log.tools[-1].status == "unknown"


@pytest.mark.parametrize(
    ("status", "ending", "calls"),
    [("done", Completed(), 0), ("not_done", Completed(), 1), ("unknown", NeedsInput(), 0)],
)
async def test_the_tools_own_status_query_decides(status: str, ending: object, calls: int) -> None:
    """RT-9"""
    query = replace(
        LOOK,
        tool_id=ToolId("thing_status"),
        target="Status.ask",
        input_schema={"type": "object", "properties": {"idempotency_key": {"type": "string"}}},
        output_schema={"type": "object"},
    )
    take = replace(TAKE, status_query=query.tool_id)
    setting = make_setting(
        replace(SPEC, tools=(ToolUse(take.tool_id),)),
        tools=(take, query),
        journal=Journal(begun={"tool:thing_take:1"}),
    )
    asked: list[str] = []

    class Status:
        async def ask(self, *, idempotency_key: str) -> dict[str, object]:
            asked.append(idempotency_key)
            return {"status": status, "data": {"taken": "a hat"}}

    services = {"Things": setting.things, "Status": Status()}
    setting.run.tools._toolbox = Toolbox(setting.context.world.domain.tools, lambda _: services)

    assert await setting.policy.execute(setting.run) == ending
    assert asked == ["turn_1:tool:thing_take:1"]
    assert len(setting.things.calls) == calls


async def test_what_ends_the_turn_from_outside_is_no_error_of_a_tool() -> None:
    """AG-4"""
    setting = make_setting(things=Things(LaneLost("Somebody else has it.")))

    with pytest.raises(LaneLost):
        await call(setting, "thing_look", place="attic")


def test_a_broken_schema_is_found_at_once() -> None:
    """PX-2"""
    broken = replace(LOOK, input_schema={"type": "colour"})

    with pytest.raises(ConfigurationError, match=r"tools\.thing_look\.input_schema"):
        Toolbox({broken.tool_id: broken}, lambda _: {})


@pytest.mark.parametrize(
    "result", [ToolData({"a": [1]}), ToolError(FailureCategory.TIMEOUT, "Too late.", undecided=True)]
)
def test_envelopes_survive_the_journal(result: ToolData | ToolError) -> None:
    assert read_envelope(write_envelope(result)) == result
