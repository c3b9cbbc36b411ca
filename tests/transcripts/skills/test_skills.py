"""Skills in whole conversations: the loop and its end, permitted tools, and permitted changes."""

from __future__ import annotations

from typing import Any

from orchestrator.memory.business_context import BusinessContext
from orchestrator.ports.memory.documents import NewDocument
from orchestrator.types import DEFAULT_TENANT
from parley.testing.scripted_model import Answer, Reply, Request, ToolUse
from tests.cases import for_each
from tests.trained import converse, trained
from tests.transcripts.skills.skilled import QUERY, answer, call, talk

# The loop and its end.


async def test_a_skill_calls_tools_and_ends_with_a_result() -> None:
    """PX-5, PX-6: instructions, slots and message as input; tools; one end; the template displays it."""
    async with talk(call("data_query", sql=QUERY), answer(answer="the lens")) as t:
        turn = await t.say("ask the data")

        assert turn["reply"] == "Answer: the lens"
        assert turn["completed"] == ["ask_data"]
        assert turn["frame"]["data"] == {"answer": "the lens"}
        assert turn["frame"]["source"] == ["data_query"]
        assert "Write one query" in t.asked[0].messages[0]["content"]
        assert t.asked[0].data["utterance"] == "ask the data"
        assert '"ran"' in t.told()


async def test_a_skill_may_end_with_its_result_as_text() -> None:
    """PX-6: structured JSON, in any form."""
    async with talk(Answer(json={"outcome": "success", "data": {"answer": "nothing"}})) as t:
        assert (await t.say("ask the data"))["reply"] == "Answer: nothing"


@for_each(
    ("bad", "reason"),
    [
        (Answer(text="Let me think about it."), "text alone does nothing"),
        (ToolUse(calls=(("finish", {"outcome": "success"}),)), "success needs data"),
        (ToolUse(calls=(("finish", {"outcome": "uncertain"}),)), "uncertain needs a message"),
        (ToolUse(calls=(("finish", {"outcome": "failure", "data": {}}),)), "failure needs a message"),
        (ToolUse(calls=(("finish", {"outcome": "done", "data": {}}),)), "outcome"),
        (ToolUse(calls=(("finish", {"outcome": "success", "data": {}}),) * 2), "only once"),
        (
            ToolUse(calls=(("data_query", {"sql": QUERY}), ("finish", {"outcome": "success", "data": {}}))),
            "must be called alone",
        ),
        (call("state_write", slot="x"), "unknown tool"),
    ],
)
async def test_an_end_that_is_none_is_asked_for_again_with_the_reason(bad: Reply, reason: str) -> None:
    """PX-6, PX-9: invalid output is regenerated with the reason, once."""
    async with talk(bad, answer(answer="now")) as t:
        turn = await t.say("ask the data")

        assert turn["reply"] == "Answer: now"
        assert len(t.asked) == 2
        assert reason in t.told()
        assert t.lab.queries == []


async def test_what_never_ends_well_is_a_failure_of_the_skill_and_not_of_the_turn() -> None:
    """PX-6: the turn succeeds, and the user can try again."""
    async with talk(Answer(text="Hm.")) as t:
        turn = await t.say("ask the data")

        assert turn["status"] == "done"
        assert turn["ambiguity"]["level"] == "confirmation"
        assert "Shall I try again?" in turn["reply"]
        assert t.rungs == ["retry", "escalate"]
        assert turn["flags"]["model_problem"] == "model_output_invalid"


async def test_a_loop_without_end_is_bounded() -> None:
    """PX-5: at most six rounds here; in the last round, only an end is accepted."""
    async with talk(call("data_query", sql=QUERY)) as t:
        turn = await t.say("ask the data")

        first = [one for one in t.asked if len(one.messages) == 2]
        rounds = len(t.asked) // len(first)
        assert rounds <= 7
        assert "no steps are left" in t.asked[6].messages[-1]["content"]
        assert turn["completed"] == []


async def test_calls_are_bounded() -> None:
    """PX-5: six calls here, of any kind."""
    eight = ToolUse(calls=(("data_query", {"sql": QUERY}),) * 8)
    async with talk(eight, answer(answer="enough")) as t:
        await t.say("ask the data")

        assert len(t.lab.queries) == 6
        assert "no calls are left" in t.told()


async def test_a_truncated_answer_is_asked_for_with_twice_the_tokens() -> None:
    """PX-9."""
    cut = Answer(text="", finish_reason="length")
    async with talk(cut, answer(answer="whole")) as t:
        assert (await t.say("ask the data"))["reply"] == "Answer: whole"
        limits = [one.body["max_tokens"] for one in t.asked]
        assert limits[1] == 2 * limits[0]


async def test_a_skill_that_takes_too_long_is_stopped() -> None:
    """PX-9: the sum of tool timeouts and overhead, here 2.5 seconds."""
    slow = Answer(text="late", delay_s=30)
    async with talk(slow, resilience={"skill_overhead_ms": 300}) as t:
        turn = await t.say("list the parts")
        assert turn["completed"] == ["list_parts"]  # the flow maps to its tool and needs no model
        turn = await t.say("ask the data")

        assert "too long" in turn["reply"]
        assert turn["status"] == "done"


# Mode.


async def test_a_flow_that_needs_a_model_says_so_without_one() -> None:
    """PX-7, PX-5."""
    conversation = converse("lab")

    turn = await conversation.say("ask the data")

    assert "“Answer a question about the data” needs a language model" in turn["reply"]
    assert turn["flows"] == []
    assert (await conversation.say("list the parts"))["completed"] == ["list_parts"]


# Effects.


async def test_an_order_waits_for_a_yes_and_is_made_once() -> None:
    """PX-5, AM-3: after the yes, exactly the displayed call is made, and the skill gets the result."""
    replies = (call("part_list"), call("part_order", name="lens"), call("part_order", name="lens"))
    async with talk(*replies, answer(order_id="made up")) as t:
        asked = await t.say("order a part")
        assert asked["ambiguity"]["level"] == "confirmation"
        assert t.lab.orders == []

        turn = await t.say("yes")

        assert t.lab.orders == ["lens"]
        assert turn["reply"] == "Ordered: O-lens-1."  # the tool's text, not the model's
        assert t.asked[2].data["done"][0]["result"]["data"] == {"order_id": "O-lens-1"}
        assert "already made and is not repeated" in t.told()


async def test_what_was_not_done_cannot_be_reported_as_done() -> None:
    """PX-6: success without the task's call is sent back to the model."""
    async with talk(answer(order_id="O-1"), call("part_order", name="lens")) as t:
        turn = await t.say("order a part")

        assert "nothing was done" in t.told(1)
        assert turn["ambiguity"]["level"] == "confirmation"
        assert turn["completed"] == []


async def test_an_approval_is_asked_for_and_exactly_that_call_is_made() -> None:
    """PX-17 within a skill."""
    async with talk(call("mail_send", text="hello"), answer(sent=True)) as t:
        parked = await t.say("send the report")
        assert [flow["reason"] for flow in parked["flows"]] == ["awaiting_approval"]
        assert t.lab.mails == []

        turn = await t.conversation.act("approve", {})

        assert t.lab.mails == ["hello"]
        assert turn["completed"] == ["send_report"]


# Permitted tools and data.


def offered(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.body["tools"]]


async def test_a_skill_has_the_tools_that_it_names_and_no_other() -> None:
    """PX-5: tools of its flow, components named in its SKILL.md, and the end."""
    every = answer(answer="x")
    components = ["context_coordinator", "memory_manager", "flow_stack"]
    for words, own in (
        ("ask the data", ["data_query", *components]),
        ("order a part", ["part_list", "part_order"]),
    ):
        async with talk(every) as t:
            await t.say(words)
            assert offered(t.asked[0]) == [*own, "finish"]


FORBIDDEN: list[tuple[str, dict[str, Any]]] = [
    ("flow_stack", {"operation": "push", "task": "list_parts"}),
    ("flow_stack", {"operation": "pop"}),
    ("flow_stack", {"operation": "write", "slots": {"topic": "x"}}),
    ("context_coordinator", {"turns": 3, "session": "another"}),
    ("context_coordinator", {"turns": 10_000}),
    ("memory_manager", {"operation": "delete"}),
    ("memory_manager", {"operation": "write_preference", "text": "x"}),
    ("dialogue_state", {"operation": "read"}),
    ("display_frame", {"data": {}}),
    ("ambiguity_handler", {"operation": "declare"}),
    ("prompt_engineer", {"text": "x"}),
    ("part_order", {"name": "lens"}),
    ("list_parts", {}),
]


@for_each(("name", "arguments"), FORBIDDEN)
async def test_everything_else_is_out_of_reach(name: str, arguments: dict[str, Any]) -> None:
    """PX-5: no state, stack, frame, question, other flow, or other flow's tool."""
    async with talk(call(name, **arguments), answer(answer="x")) as t:
        turn = await t.say("ask the data")

        assert "cannot be used" in t.told()
        assert turn["completed"] == ["ask_data"]
        assert [tool["tool_id"] for tool in turn["tools"]] == []
        assert t.lab.orders == []


async def test_what_the_components_give() -> None:
    """PX-5: history (three turns by default), notes and preferences, slots and earlier results."""
    async with talk(
        call("context_coordinator"),
        call("memory_manager", operation="preferences"),
        call("flow_stack", operation="slots"),
        call("flow_stack", operation="metadata"),
        call("flow_stack", operation="results", task="list_parts"),
        answer(answer="x"),
    ) as t:
        for words in ("list the parts", "thanks", "show all parts", "parts list please"):
            await t.say(words)
        await t.say("ask the data")

        told = [t.told(number) for number in range(1, 6)]
        assert "show all parts" in told[0]
        assert "thanks" in told[0]
        assert "user: list the parts" not in told[0]
        assert told[1] == '{"preferences":[]}'
        assert '"empty":["topic"]' in told[2]
        assert '"task":"ask_data"' in told[3]
        assert told[4].count('"task":"list_parts"') == 3


async def test_what_a_skill_reads_brings_its_labels() -> None:
    """PX-3, CO-4: a foreign document that a skill looks up makes the session untrusted."""
    async with talk(
        call("memory_manager", operation="documents", text="the spare pump"), answer(answer="x")
    ) as t:
        context = t.simulator.make_memory().context
        assert isinstance(context, BusinessContext)
        added = await context.documents.add(
            NewDocument(DEFAULT_TENANT, "The spare pump is in hall nine.", labels=("untrusted",))
        )
        await context.embed(DEFAULT_TENANT, added.document_id)
        await t.say("ask the data")

        assert "hall nine" in t.told()
        [session] = t.simulator.store.sessions.values()
        assert b'"label":"untrusted"' in session.state


async def test_a_tool_that_gives_too_much_is_cut_for_the_model() -> None:
    """PX-9: the turn stores everything, the model sees the beginning."""
    loaded, _ = trained("lab")
    assert loaded.domain.config.network.max_output_bytes > 20_000
    async with talk(call("part_list"), call("part_order", name="x"), answer(order_id="x")) as t:
        t.lab.list_parts = _many_parts
        await t.say("order a part")

        assert '"cut":true' in t.told()
        assert len(t.told()) < 60_000


async def _many_parts() -> dict[str, Any]:
    return {"parts": [{"name": f"part {number}", "note": "x" * 40} for number in range(1000)]}
