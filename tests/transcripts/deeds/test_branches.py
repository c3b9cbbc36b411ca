"""Actions in one fork of a conversation, and their effect on other forks, by stores and replies (ST-4)."""

from __future__ import annotations

from typing import Any

from orchestrator.turns.effect import LedgerEntry
from parley.simulator import Conversation
from tests.trained import converse_after
from tests.transcripts.test_never_the_wrong_deed import after, begin, booked, payload_of

OFFER = "book a flight from oslo to madrid tomorrow"


def calls(turn: dict[str, Any]) -> list[str]:
    return [tool["tool_id"] for tool in turn["tools"] if tool["status"] == "ok"]


def ledger(talk: Conversation) -> list[LedgerEntry]:
    kept = talk.simulator.store.effects.items()
    return [entry for (session, _), entry in kept if session == talk.session_id]


def reference_of(turn: dict[str, Any]) -> str:
    return turn["reply"].split("Your reference is ")[1][:6]


async def test_an_offer_is_made_anew_before_a_yes_counts() -> None:
    """AM-3, PX-18: neither by words nor by a button on the parent's page."""
    parent = begin()
    offered = await parent.say(OFFER)
    button = payload_of(offered, "confirm")
    for answer in ("said", "clicked"):
        branch = parent.branch()
        again = await (branch.say("yes") if answer == "said" else branch.act("confirm", button))
        assert again["reply"] == offered["reply"]
        assert again["ambiguity"]["level"] == "confirmation"
        assert await booked(parent) == []
    assert "Booked" in (await branch.say("yes"))["reply"]
    assert ledger(parent) == []


async def test_each_branch_books_its_own_flight() -> None:
    parent = await after(OFFER)
    first, second = parent.branch(), parent.branch(epoch=1)
    for branch, words in ((first, "to paris instead"), (second, "to rome instead")):
        await branch.say(words)
        await branch.say("yes")
    assert sorted(await booked(parent)) == [("OSL", "CDG"), ("OSL", "FCO")]
    assert [(entry.tool_id, entry.of_session) for entry in ledger(first)] == [("flight_book", None)]
    assert "Shall I book it?" in (await parent.say("what was the question?"))["reply"]


async def test_a_branch_asks_anew_and_books_for_itself() -> None:
    """ST-4: a yes to the fork's own question makes a call with its own key."""
    parent = await after(OFFER)
    branch = parent.branch()
    first = await parent.say("yes")
    asked = await branch.say("yes")
    assert "flight_book" not in calls(asked)
    second = await branch.say("yes")
    assert calls(second) == ["flight_book"]
    assert reference_of(first) != reference_of(second)
    assert await booked(parent) == [("OSL", "MAD")] * 2
    ((mine,), (theirs,)) = ledger(branch), ledger(parent)
    assert mine.idempotency_key != theirs.idempotency_key


async def test_a_branch_knows_what_was_booked_before_it() -> None:
    """RT-12: the ledger records the booking and its session."""
    parent = await after(OFFER)
    reference = reference_of(await parent.say("yes"))
    branch = parent.branch()
    (had,) = ledger(branch)
    assert (had.tool_id, had.status, had.of_session) == ("flight_book", "done", parent.session_id)
    assert reference in (await branch.say("show my bookings"))["reply"]
    await parent.say("cancel it")
    assert f"{reference} is canceled" in (await parent.say("yes"))["reply"]

    told = await branch.say("cancel it")

    assert f"Booking {reference} is already canceled" in told["reply"]
    assert "booking_cancel" not in calls(told)


async def test_an_approval_of_the_parent_allows_nothing_in_a_branch() -> None:
    """PX-17: the fork requests its own approval, and the parent's remains open."""
    parent = await after("Book a flight from Oslo to Tokyo on 4 December for 4 people in business class")
    asked = await parent.say("yes")
    button = payload_of(asked, "approve")
    branch = parent.branch()
    clicked = await branch.act("approve", button)
    assert "flight_book" not in calls(clicked)
    assert await booked(parent) == []
    told = await branch.say("yes")
    if told["flows"][-1]["reason"] != "awaiting_approval":
        told = await branch.say("yes")
    assert told["flows"][-1]["reason"] == "awaiting_approval"
    assert "flight_book" not in calls(told)
    assert calls(await branch.act("approve", {})) == ["flight_book"]
    waiting = {record.session_id: record.status for _, record in parent.simulator.store.approvals.values()}
    assert waiting[parent.session_id] == "pending"


async def test_a_branch_without_a_user_has_the_tables_of_its_family() -> None:
    parent = await converse_after("analytics", "describe cars", "save it as autos")
    branch = parent.branch()
    assert "406 rows" in (await branch.say("describe autos"))["reply"]
