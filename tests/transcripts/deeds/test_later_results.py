"""Asynchronous tools: accepted, interrupted by talk, answered once, polled, overdue, abandoned (RT-32)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import Accepted, ToolCall
from orchestrator.errors import FailureCategory, NotFound, Refused, ToolFailure
from orchestrator.types import Json, JsonObject
from parley.simulator import Conversation
from tests.trained import converse_after

PAID: JsonObject = {"status": "done", "data": {"receipt": "R-17"}}
DECLINED: JsonObject = {"status": "failed", "message": "Your bank has declined the payment."}


@dataclass
class Bank:
    """A bank that accepts charges.

    `known`: result of the status query. `cut`: True to cut the connection after a charge.
    """

    charges: list[ToolCall] = field(default_factory=list[ToolCall])
    asked: int = 0
    known: JsonObject = field(default_factory=lambda: {"status": "unknown"})
    cut: bool = False

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        if tool.tool_id == "charge_status":
            assert arguments["idempotency_key"] == self.charges[-1].idempotency_key
            self.asked += 1
            return self.known
        self.charges.append(call)
        if self.cut:
            raise ToolFailure(FailureCategory.SERVER_ERROR, "The connection was cut.", undecided=True)
        return Accepted("Your bank is checking the payment.")

    @property
    def url(self) -> str:
        return self.charges[-1].callback_url


async def donate(bank: Bank) -> tuple[Conversation, JsonObject]:
    asked = "I'd like to donate 20 euros for the bees"
    conversation = await converse_after("examples/donations", asked, transport=bank)
    return conversation, await conversation.say("yes")


def ledger(conversation: Conversation) -> list[str]:
    entries = conversation.simulator.store.effects.values()
    return [one.status.value for one in entries if one.session_id == conversation.session_id]


async def test_a_call_is_accepted_and_answered_while_something_else_is_talked_about() -> None:
    bank = Bank()
    conversation, accepted = await donate(bank)
    assert "Your bank is checking the payment." in accepted["reply"]
    assert [(flow["dact"], flow["reason"]) for flow in accepted["flows"]] == [("donate", "awaiting_result")]
    assert accepted["tools"] == [
        {"tool_id": "card_charge", "arguments": {"amount": 20, "cause": "bees"}, "status": "accepted"}
    ]
    assert ledger(conversation) == ["awaited"]

    aside = await conversation.say("where does the money go?")
    assert aside["reply"] == "Every euro goes to the cause that you choose."
    [done] = await conversation.answer_call(bank.url, PAID)
    assert "your receipt is R-17" in done["reply"]
    assert (done["completed"], done["flows"]) == (["donate"], [])
    assert (ledger(conversation), len(bank.charges)) == (["done"], 1)


async def test_a_result_counts_once() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    await conversation.answer_call(bank.url, PAID)
    assert await conversation.answer_call(bank.url, PAID) == []
    with pytest.raises(Refused):
        await conversation.answer_call(bank.url, DECLINED)
    with pytest.raises(NotFound):
        await conversation.answer_call(bank.url[:-2] + "AA", PAID)
    assert ledger(conversation) == ["done"]


async def test_a_failed_call_tells_why_and_leaves_nothing_done() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    [failed] = await conversation.answer_call(bank.url, DECLINED)
    assert "Your bank has declined the payment." in failed["reply"]
    assert ledger(conversation) == ["failed"]


async def test_an_unfinished_task_is_taken_up_again_after_the_result() -> None:
    """A test can't have several tasks of one type, so the open task is a repetition of the accepted task."""
    bank = Bank()
    conversation, _ = await donate(bank)
    again = await conversation.say("I'd like to donate 30 euros for the rivers")
    assert "still in progress" in again["reply"]
    assert len(bank.charges) == 1


async def test_a_correction_waits_for_the_result() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    corrected = await conversation.say("sorry, for the rivers")
    assert corrected["flows"][0]["slots"]["cause"] == "bees"
    [done] = await conversation.answer_call(bank.url, PAID)
    assert done["completed"] == ["donate"]


async def test_a_call_is_polled_without_a_word_until_it_is_done() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    [quiet] = await conversation.wait(3601)
    assert (quiet.get("reply"), bank.asked) == (None, 1)
    bank.known = PAID
    [done] = await conversation.wait(3601)
    assert "your receipt is R-17" in done["reply"]
    assert (ledger(conversation), len(bank.charges)) == (["done"], 1)


async def test_an_expired_call_asks_and_takes_its_result_after_all() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    turns = [turn for _ in range(25) for turn in await conversation.wait(3600)]
    told = [turn["reply"] for turn in turns if turn.get("reply")]
    assert len(told) == 1
    assert "Shall I do it again anyway?" in told[0]
    assert ledger(conversation) == ["unknown"]
    [done] = await conversation.answer_call(bank.url, PAID)
    assert "your receipt is R-17" in done["reply"]
    assert (ledger(conversation), len(bank.charges)) == (["done"], 1)


async def test_an_expired_call_is_repeated_with_the_same_key_after_a_yes() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    for _ in range(25):
        await conversation.wait(3600)
    await conversation.say("yes")
    first, second = bank.charges
    assert second.idempotency_key == first.idempotency_key
    assert (second.repeated, second.callback_url) == (True, first.callback_url)
    [done] = await conversation.answer_call(bank.url, PAID)
    assert done["completed"] == ["donate"]


async def test_what_was_given_up_is_told_when_it_was_done_after_all() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    stopped = await conversation.say("never mind")
    assert "may still complete" in stopped["reply"]
    assert stopped["flows"] == []
    [late] = await conversation.answer_call(bank.url, PAID)
    assert "was done after all" in late["reply"]
    assert ledger(conversation) == ["done"]


async def test_a_cut_connection_is_waited_for_like_an_accepted_call() -> None:
    bank = Bank(cut=True)
    conversation, waiting = await donate(bank)
    assert waiting["flows"][0]["reason"] == "awaiting_result"
    assert bank.asked == 1
    [done] = await conversation.answer_call(bank.url, PAID)
    assert done["completed"] == ["donate"]
    assert (ledger(conversation), len(bank.charges)) == (["done"], 1)


async def test_another_talk_cannot_bring_the_result() -> None:
    bank = Bank()
    conversation, _ = await donate(bank)
    forged = await conversation.act("tool_result", {"call": bank.charges[0].idempotency_key, "outcome": PAID})
    assert forged["flows"][0]["reason"] == "awaiting_result"


async def test_a_fork_does_not_take_the_result_of_its_parent() -> None:
    bank = Bank(known={"status": "unknown"})
    conversation, _ = await donate(bank)
    fork = conversation.branch()
    [done] = await conversation.answer_call(bank.url, PAID)
    assert done["completed"] == ["donate"]
    assert len(bank.charges) == 1
    assert (await fork.say("where does the money go?"))["completed"] == []
