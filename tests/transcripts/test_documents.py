"""Questions about documents: quoted without a model, answered by a skill with a model, always with source."""

from __future__ import annotations

import json

import pytest

from orchestrator.ports.memory.documents import NewDocument
from orchestrator.types import DEFAULT_TENANT, JsonObject, UserId
from parley.simulator import Conversation, Simulator
from parley.testing.scripted_model import Request
from tests.cases import for_each
from tests.trained import simulate, state_of
from tests.transcripts.skills.skilled import Talk, answer, finish, talk

CONDITIONS = """
# Lounges

Business travelers can use the lounge with one guest. For others, lounge access costs 35 euros a visit.

# Pets

Small dogs and cats travel in the cabin in a carrier, for 60 euros. Larger animals are not accepted.
"""
GLOSSARY = """
# Active customer

A customer is active who has bought something in the last 90 days. Returned goods do not count.
"""
SYSTEM1 = {"mode": "system1"}


async def keep(simulator: Simulator, text: str, title: str, **more: object) -> None:
    added = await simulator.documents.add(NewDocument(DEFAULT_TENANT, text, title, **more))
    await simulator.make_memory().context.embed(DEFAULT_TENANT, added.document_id)


async def begin(domain: str, text: str, title: str, **more: object) -> Conversation:
    simulator = simulate(domain)
    await keep(simulator, text, title, **more)
    return simulator.converse(user_id="ada")


@for_each(
    ("domain", "text", "title", "question", "says", "source"),
    [
        (
            "travel",
            CONDITIONS,
            "Conditions",
            "how much does lounge access cost?",
            "35 euros a visit",
            "Lounges",
        ),
        ("travel", CONDITIONS, "Conditions", "what do the conditions say about pets", "in a carrier", "Pets"),
        (
            "analytics",
            GLOSSARY,
            "Terms",
            "when is a customer called active?",
            "last 90 days",
            "Active customer",
        ),
        ("analytics", GLOSSARY, "Terms", "look up active customers in our documents", "90 days", "Active"),
    ],
)
async def test_a_document_answers_and_is_named(
    domain: str, text: str, title: str, question: str, says: str, source: str
) -> None:
    conversation = await begin(domain, text, title)
    turn = await conversation.say(question)

    assert turn["completed"] == ["ask_documents"]
    assert says in turn["reply"]
    assert f"From “{title}”, {source}" in turn["reply"]
    assert [tool["tool_id"] for tool in turn["tools"]] == ["document_search"]
    assert turn["frame"]["data"][0]["section"].startswith(source)


async def test_a_question_aside_is_answered_and_the_task_goes_on() -> None:
    conversation = await begin("travel", CONDITIONS, "Conditions")
    await conversation.say("Book a flight from Oslo to Madrid tomorrow")
    turn = await conversation.say("do I have to pay for a lounge visit?")

    assert "35 euros" in turn["reply"]
    assert "Shall I book it?" in turn["reply"]
    assert [flow["dact"] for flow in turn["flows"]] == ["book_flight"]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("what is the meaning of life", "I'm not sure what you mean"),  # no document about this
        ("how many bags can I take", "bag"),  # the domain's own answer fits as well
    ],
)
async def test_what_no_document_is_about_is_not_taken_to_them(said: str, says: str) -> None:
    conversation = await begin("travel", CONDITIONS, "Conditions")
    turn = await conversation.say(said)

    assert "ask_documents" not in turn["completed"]
    assert turn["tools"] == []
    assert says in turn["reply"]
    assert "From “" not in turn["reply"]


async def test_who_asks_for_what_no_document_has_is_told() -> None:
    conversation = await begin("travel", CONDITIONS, "Conditions")
    turn = await conversation.say("look up visa rules in the documents")

    assert turn["reply"] == "I couldn't find anything about that in the documents."


async def test_a_document_of_somebody_else_answers_nothing() -> None:
    """RT-22"""
    conversation = await begin("travel", CONDITIONS, "Conditions", user_id=UserId("bob"))
    turn = await conversation.say("how much does lounge access cost?")

    assert "35 euros" not in turn["reply"]
    assert "one guest" not in turn["reply"]


async def test_labels_of_a_document_go_on_to_the_session() -> None:
    """PX-3: labels of documents and of other tools' results accumulate."""
    conversation = await begin("travel", CONDITIONS, "Conditions", labels=("untrusted",))
    await conversation.say("how much does lounge access cost?")
    state = state_of(conversation)

    assert {"untrusted"} == {label["label"] for label in state["labels"]}


def passages(request: Request) -> list[JsonObject]:
    return json.loads(request.messages[-1]["content"])["known"]["passages"]


async def asking(t: Talk) -> JsonObject:
    await keep(t.simulator, CONDITIONS, "Conditions")
    return await t.say("how much does lounge access cost?")


async def test_a_model_answers_from_the_passages_and_names_them() -> None:
    source = "unknown until it is searched"
    async with talk(finish("uncertain", message="nothing fits"), domain="travel", nlu=SYSTEM1) as first:
        await asking(first)
        source = passages(first.asked[0])[0]["source"]
    good = answer(answer="It costs 35 euros, unless you fly in business.", sources=[source])
    async with talk(good, domain="travel", nlu=SYSTEM1) as t:
        turn = await asking(t)

        assert turn["reply"].startswith("It costs 35 euros, unless you fly in business.")
        assert "From “Conditions”, Lounges." in turn["reply"]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"answer": "It costs 20 euros.", "sources": ["a"]}, "list the sources of the passages"),
        ({"answer": "It is free.", "sources": []}, ""),
    ],
)
async def test_an_answer_that_no_passage_bears_out_is_not_given(data: JsonObject, fault: str) -> None:
    """PX-6: the answer is rejected, and finally the passage itself is quoted."""
    async with talk(answer(**data), domain="travel", nlu=SYSTEM1) as t:
        turn = await asking(t)

        assert fault in t.told()
        assert data["answer"] not in turn["reply"]
        assert "lounge access costs 35 euros a visit" in turn["reply"]


async def test_a_model_that_finds_no_answer_says_so() -> None:
    async with talk(finish("uncertain", message="nothing fits"), domain="travel", nlu=SYSTEM1) as t:
        turn = await asking(t)

        assert turn["reply"] == "I couldn't find anything about that in the documents."
