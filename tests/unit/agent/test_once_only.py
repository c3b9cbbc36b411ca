"""Whole conversations about effects: unknown outcomes, resumed tasks, corrections, and the lethal trifecta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.domain.services import ServiceContext
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import JsonObject
from parley.simulator import Conversation
from parley.testing.memory import MemoryRecords
from tests.domains.mailroom.services import Mailroom
from tests.trained import simulate


@dataclass
class Talk:
    """A conversation, and an external system that counts its calls."""

    conversation: Conversation
    outside: Mailroom

    async def say(self, text: str) -> JsonObject:
        return await self.conversation.say(text)

    async def act(self, name: str, **payload: Any) -> JsonObject:
        return await self.conversation.act(name, payload)

    async def all(self, *texts: str) -> JsonObject:
        """Send several messages and return the last turn."""
        turn: JsonObject = {}
        for text in texts:
            turn = await self.say(text)
        return turn

    @property
    def ledger(self) -> list[tuple[str, str]]:
        effects = self.conversation.simulator.store.effects.values()
        return [(entry.tool_id, entry.status.value) for entry in effects]


def begin(sections: JsonObject | None = None, **troubles: list[Exception]) -> Talk:
    """Start a conversation with the mailroom. `troubles`: errors of its calls, by kind."""
    mailroom = Mailroom(ServiceContext(MemoryRecords(), {}))
    mailroom.troubles = troubles
    simulator = simulate("mailroom", services={"Mailroom": mailroom}, sections=sections)
    return Talk(simulator.converse(user_id="ann"), mailroom)


def options_of(turn: JsonObject) -> list[str]:
    return [action["label"] for action in turn["actions"]]


# Unknown outcomes


async def test_an_unknown_outcome_is_put_to_the_user_by_name() -> None:
    """RT-9, AM-3"""
    talk = begin(parcel=[RuntimeError("the line went dead")])

    turn = await talk.say("send a parcel to Bob")

    assert turn["ambiguity"]["level"] == "confirmation"
    assert "can't tell whether it worked" in turn["reply"]
    assert "Send a parcel (recipient: Bob)" in turn["reply"]
    assert options_of(turn) == ["Do it again", "Leave it"]
    assert talk.ledger == [("parcel_label", "done"), ("parcel_send", "unknown")]


async def test_a_yes_does_it_again_with_the_same_key_and_nothing_else_twice() -> None:
    """RT-9, RT-10: the printed label is not printed again."""
    talk = begin(parcel=[RuntimeError("the line went dead")])

    turn = await talk.all("send a parcel to Bob", "yes")

    assert turn["completed"] == ["send_parcel"]
    assert talk.outside.calls == [("label", "bob"), ("parcel", "bob"), ("parcel", "bob")]
    assert len(set(talk.outside.keys)) == 1
    assert talk.ledger == [("parcel_label", "done"), ("parcel_send", "done")]


async def test_a_no_leaves_it_and_says_what_is_still_unknown() -> None:
    talk = begin(parcel=[RuntimeError("the line went dead")])

    turn = await talk.all("send a parcel to Bob", "no")

    assert turn["flows"] == []
    assert "still can't tell whether sending a parcel worked" in turn["reply"]
    assert talk.outside.calls.count(("parcel", "bob")) == 1
    assert ("parcel_send", "unknown") in talk.ledger


async def test_other_talk_neither_repeats_nor_forgets_it() -> None:
    talk = begin(parcel=[RuntimeError("the line went dead")])

    turn = await talk.all("send a parcel to Bob", "read the web page")

    assert turn["completed"] == ["read_page"]
    assert [flow["dact"] for flow in turn["flows"]] == ["send_parcel"]
    assert turn["ambiguity"]["level"] == "confirmation"
    assert talk.outside.calls.count(("parcel", "bob")) == 1


async def test_a_correction_of_what_is_unknown_says_so() -> None:
    """RT-12"""
    talk = begin(parcel=[RuntimeError("the line went dead")])

    turn = await talk.all("send a parcel to Bob", "no, I meant Ann")

    assert "I can't tell whether I have done this: Send a parcel" in turn["reply"]
    assert talk.outside.calls.count(("parcel", "bob")) == 1
    assert ("parcel", "ann") not in talk.outside.calls


# Resumed tasks


async def test_a_resumed_task_does_not_repeat_what_was_done() -> None:
    """RT-10: only the second tool, which certainly failed, is called again."""
    talk = begin(parcel=[ToolFailure(FailureCategory.SERVER_ERROR, "The van is broken.")])

    turn = await talk.all("send a parcel to Bob", "read the web page", "yes")

    assert turn["completed"] == ["send_parcel"]
    assert talk.outside.calls == [("label", "bob"), ("parcel", "bob"), ("parcel", "bob")]


async def test_a_new_task_with_the_same_values_is_another_effect() -> None:
    talk = begin()

    await talk.all("send a mail to Bob", "send an email to Bob")

    assert talk.outside.calls == [("mail", "bob"), ("mail", "bob")]
    assert len(talk.ledger) == 2


# Corrections after an effect


async def test_a_late_correction_names_what_was_done_and_undoes_it_once() -> None:
    """IR-4, RT-12"""
    talk = begin()
    turn = await talk.all("send a mail to Bob", "no, to Ann")
    assert "I've already sent the mail (M-bob), with Bob as the recipient" in turn["reply"]
    assert talk.outside.calls == [("mail", "bob")]

    await talk.act("compensate_effect")

    assert talk.outside.calls == [("mail", "bob"), ("recall", "M-bob"), ("mail", "ann")]
    assert talk.ledger == [("mail_send", "compensated"), ("mail_recall", "done"), ("mail_send", "done")]
    turn = await talk.act("compensate_effect")
    assert len(talk.outside.calls) == 3


async def test_an_undoing_that_may_have_failed_is_not_tried_twice() -> None:
    talk = begin(recall=[RuntimeError("the line went dead")])

    turn = await talk.all("send a mail to Bob", "no, to Ann", "2")

    assert "can't tell whether it was undone" in turn["reply"]
    assert talk.outside.calls == [("mail", "bob"), ("recall", "M-bob")]
    await talk.act("compensate_effect")
    assert talk.outside.calls.count(("recall", "M-bob")) == 1


async def test_an_undoing_is_gated_like_any_other_call() -> None:
    """PX-3, PX-17, RT-12: the compensation sends data outside, after private data and untrusted text arrived."""
    talk = begin()
    await talk.all("read the web page", "list the salaries", "send a mail to Bob", "yes", "no, to Ann")
    assert talk.outside.calls == [("mail", "bob")]

    turn = await talk.act("compensate_effect")
    assert talk.outside.calls == [("mail", "bob")]
    assert "Recall a mail" in turn["reply"]
    assert "reading private data (List salaries)" in turn["reply"]
    assert [flow["reason"] for flow in turn["flows"]] == ["awaiting_approval"]

    turn = await talk.say("yes")
    assert talk.outside.calls == [("mail", "bob"), ("recall", "M-bob")]
    assert "Send a mail" in turn["reply"]
    assert "needs approval" in turn["reply"]

    turn = await talk.say("yes")
    assert talk.outside.calls == [("mail", "bob"), ("recall", "M-bob"), ("mail", "ann")]
    assert talk.ledger == [("mail_send", "compensated"), ("mail_recall", "done"), ("mail_send", "done")]


async def test_an_undoing_that_is_not_approved_leaves_everything_as_it_is() -> None:
    """PX-17"""
    talk = begin()
    await talk.all("read the web page", "list the salaries", "send a mail to Bob", "yes", "no, to Ann")
    await talk.act("compensate_effect")

    turn = await talk.say("no")

    assert talk.outside.calls == [("mail", "bob")]
    assert turn["flows"] == []
    assert talk.ledger == [("mail_send", "done")]


# Lethal trifecta


async def test_an_approval_for_one_mail_is_none_for_the_next() -> None:
    talk = begin()
    await talk.all("read the web page", "list the salaries", "send a mail to Bob", "yes")
    assert talk.outside.calls == [("mail", "bob")]

    turn = await talk.say("send a mail to Eve")

    assert talk.outside.calls == [("mail", "bob")]
    assert "needs approval" in turn["reply"]
