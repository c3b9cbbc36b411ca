"""An asynchronous tool in a skill: the skill continues with the result, and the call is made once (RT-32)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.domain.services import Accepted, ServiceContext, ToolCall
from orchestrator.domain.tool_schema import LaterSpec
from orchestrator.types import ToolId
from parley.testing.memory import MemoryRecords
from tests.trained import trained
from tests.transcripts.skills.skilled import answer, call, talk

ORDER = ToolId("part_order")


def patient_lab() -> tuple[LoadedDomain, Any]:
    """Return the lab with asynchronous orders, and its service, which accepts them."""
    loaded, _ = trained("lab")
    tools = dict(loaded.domain.tools)
    tools[ORDER] = replace(tools[ORDER], later=LaterSpec(expires_s=3600))

    class Lab(loaded.services["Lab"]):
        def __init__(self) -> None:
            super().__init__(ServiceContext(MemoryRecords()))
            self.accepted: list[ToolCall] = []

        async def order(self, *, name: str, call: ToolCall) -> Accepted:
            del name
            self.accepted.append(call)
            return Accepted("The supplier is looking for it.")

    return replace(loaded, domain=replace(loaded.domain, tools=tools)), Lab()


async def test_a_skill_continues_with_a_result_that_comes_later() -> None:
    loaded, lab = patient_lab()
    replies = call("part_order", name="lens"), answer(order_id="O-1")
    async with talk(*replies, loaded=loaded, stand_ins={"Lab": lab}) as t:
        await t.say("order a part")
        waiting = await t.say("yes")
        assert [flow["reason"] for flow in waiting["flows"]] == ["awaiting_result"], waiting["reply"]
        assert "The supplier is looking for it." in waiting["reply"]

        result = {"status": "done", "data": {"order_id": "O-1", "name": "lens"}}
        [done] = await t.conversation.answer_call(lab.accepted[0].callback_url, result)

        assert "O-1" in str(t.asked[-1].messages)
        assert done["completed"] == ["order_part"], done["reply"]
        assert len(lab.accepted) == 1
