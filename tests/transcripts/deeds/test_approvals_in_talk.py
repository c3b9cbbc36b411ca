"""Approvals in conversations: several, in any order, with restarts, corrections, days and talk between (PX-17)."""

from __future__ import annotations

from typing import Any

from orchestrator.types import JsonObject
from parley.simulator import Conversation
from tests.trained import converse_after

ACME, MADRID = "pay the invoice of Acme", "close the account of Madrid"
DAY_S = 86_400.0


async def after(*said: str, **options: Any) -> Conversation:
    """Hold a conversation in which the user may decide, with the same turn as an operator's decision."""
    return await converse_after("examples/treasury", *said, sections={"approvals": {"by": "user"}}, **options)


def asked(conversation: Conversation) -> dict[str, str]:
    """Return the pending approvals by tool."""
    approvals = [record for _, record in conversation.simulator.store.approvals.values()]
    mine = [one for one in approvals if one.session_id == conversation.session_id]
    return {one.tool_id: one.approval_id for one in mine if one.status.value == "pending"}


async def decide(conversation: Conversation, approval_id: str, name: str = "approve") -> JsonObject:
    return await conversation.act(name, {"approval_id": approval_id})


def done(conversation: Conversation) -> list[tuple[JsonObject, str]]:
    entries = conversation.simulator.store.effects.values()
    return [(one.arguments, one.status.value) for one in entries if one.session_id == conversation.session_id]


async def test_two_at_once_are_decided_in_reverse_order() -> None:
    conversation = await after(ACME, MADRID)
    first, second = asked(conversation)["invoice_pay"], asked(conversation)["account_close"]

    paid = await decide(conversation, first)
    assert "The invoice of Acme is paid." in paid["reply"]
    assert paid["completed"] == ["pay_invoice"]
    assert [(flow["dact"], flow["reason"]) for flow in paid["flows"]] == [
        ("close_account", "awaiting_approval")
    ]
    closed = await decide(conversation, second)
    assert closed["completed"] == ["close_account"]
    assert done(conversation) == [({"supplier": "Acme"}, "done"), ({"branch": "Madrid"}, "done")]


async def test_a_denial_of_one_leaves_the_other() -> None:
    conversation = await after(ACME, MADRID)
    denied = await decide(conversation, asked(conversation)["account_close"], "deny")
    assert [flow["dact"] for flow in denied["flows"]] == ["pay_invoice"]
    await decide(conversation, asked(conversation)["invoice_pay"])
    assert done(conversation) == [({"supplier": "Acme"}, "done")]


async def test_another_worker_continues_after_a_restart() -> None:
    first = await after(ACME, MADRID)
    second = await after(beside=first.simulator)
    restarted = Conversation(second.simulator, first.session_id)
    paid = await decide(restarted, asked(first)["invoice_pay"])
    assert paid["completed"] == ["pay_invoice"]
    assert done(first) == [({"supplier": "Acme"}, "done")]


async def test_a_correction_makes_the_approval_void() -> None:
    conversation = await after("pay the invoice of Globex")
    old = asked(conversation)["invoice_pay"]
    corrected = await conversation.say("sorry, Initech")
    assert corrected["flows"][0]["slots"] == {"supplier": "Initech"}
    refused = await decide(conversation, old)
    assert refused["tools"] == []
    paid = await decide(conversation, asked(conversation)["invoice_pay"])
    assert paid["completed"] == ["pay_invoice"]
    assert done(conversation) == [({"supplier": "Initech"}, "done")]


async def test_a_day_later_nothing_is_done() -> None:
    conversation = await after(ACME)
    approval_id = asked(conversation)["invoice_pay"]
    await conversation.wait(DAY_S + 1)
    late = await decide(conversation, approval_id)
    assert (late["tools"], late["flows"]) == ([], [])
    assert "paying an invoice" in late["reply"]
    assert done(conversation) == []


async def test_just_before_it_expires_it_counts() -> None:
    conversation = await after(ACME)
    await conversation.wait(DAY_S - 60)
    assert (await decide(conversation, asked(conversation)["invoice_pay"]))["completed"] == ["pay_invoice"]


async def test_talk_between_neither_decides_nor_hinders() -> None:
    conversation = await after(ACME)
    told = await conversation.say("who approves this?")
    assert told["reply"].startswith("The finance team approves every payment within a day.")
    vague = await conversation.say("yes")
    assert vague["tools"] == [], "after other talk a bare yes names no approval"
    assert (await decide(conversation, asked(conversation)["invoice_pay"]))["completed"] == ["pay_invoice"]


async def test_the_same_decision_twice_is_one_call() -> None:
    conversation = await after(ACME)
    approval_id = asked(conversation)["invoice_pay"]
    await decide(conversation, approval_id)
    again = await decide(conversation, approval_id)
    assert again["tools"] == []
    assert done(conversation) == [({"supplier": "Acme"}, "done")]
