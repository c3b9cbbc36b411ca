"""A turn as a case for `parley eval`, over HTTP on real stores."""

from __future__ import annotations

from typing import Any

import pytest

from lab.evaluation.conversations import read_conversations
from orchestrator.turns.turn import Submission, TurnInput, TurnKind
from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley_client import AsyncClient
from parley_client.errors import Refused
from tests.integration.gateway import House


async def converse(house: House, *said: str, **result: Any) -> list[str]:
    """Return the IDs of a session's turns. The last turn has a result."""
    session_id, turns = await house.session(), list[str]()
    for text in said:
        turns.append(await house.submit(session_id, text))
        await house.answer(session_id, result={"reply": "Fine.", **result})
    return turns


def read(case: JsonObject) -> JsonObject:
    (conversation,) = read_conversations(case["yaml"], case["name"]).conversations
    return conversation.model_dump(exclude_defaults=True, mode="json")


async def test_a_turn_becomes_the_conversation_up_to_it(house: House, client: AsyncClient) -> None:
    flow = {"dact": "book_flight", "state": "Active", "reason": None, "slots": {"origin": "OSL"}}
    _, second, _ = await converse(house, "hello", "from Oslo", "tomorrow", flows=[flow])

    case = await client.turn_case(second)

    assert case["name"] == f"case_{second}.yaml"
    assert [turn["user"] for turn in read(case)["turns"]] == ["hello", "from Oslo"]
    assert "For evaluations/ of the domain travel" in case["yaml"]
    assert "origin: OSL" in case["yaml"].partition("conversations:")[0]


async def test_feedback_says_what_is_expected(house: House, client: AsyncClient) -> None:
    _, second = await converse(house, "hello", "from Oslo")
    await client.give_feedback(second, rating="down", correction={"dact": "search_flights"})

    case = read(await client.turn_case(second))

    assert case["turns"][-1]["expect"] == {"flow": "search_flights"}
    assert case["name"].startswith("down by ")


async def test_a_case_hides_secrets(house: House, client: AsyncClient) -> None:
    (only,) = await converse(house, "my password: hunter2secret, book a flight")

    case = await client.turn_case(only)

    assert "hunter2secret" not in case["yaml"]
    assert read(case)["turns"][0]["user"].endswith("book a flight")


async def test_a_turn_of_the_system_is_no_case(house: House, client: AsyncClient) -> None:
    session_id = await house.session()
    event = TurnInput(action={"name": "event", "payload": {}}, kind=TurnKind.SYSTEM)
    receipt = await house.ports.stores.inbox.submit(Submission(session_id, event, DEFAULT_TENANT))

    with pytest.raises(Refused):
        await client.turn_case(receipt.turn_id)
