"""RT-35: permitted and rejected changes to sessions, their audit, and who is told of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.adapters import event_feed
from orchestrator.agent import repairs
from orchestrator.agent.repairs import Outcome, Place
from orchestrator.dialogue.consent import drop_candidate
from orchestrator.errors import InvalidInput
from orchestrator.turns.repair import Drop, Mark
from orchestrator.types import SessionId
from parley.commands.gateway.repair import FORMS, read_change
from tests.cases import for_each
from tests.unit.gateway.repairs import broken_sessions
from tests.unit.gateway.repairs.broken_sessions import (
    TO_MADRID,
    WHY,
    Site,
    break_one,
    lost_lease,
    quarantined,
    unknown_and_done,
    unwanted_task,
)
from tests.unit.gateway.repairs.repairing import goes_on, judge, read_events, repair_one
from tests.unit.gateway.repairs.test_broken_sessions import BY, exceed, open_site

SESSION = SessionId("session-1")
DROP = {"kind": "drop", "flow": "book_flight"}


@pytest.fixture
async def fresh() -> AsyncIterator[Site]:
    async with open_site() as (site, _):
        yield site


@pytest.fixture
async def site(fresh: Site) -> Site:
    """Return a site whose session has an offered flight."""
    await fresh.say(SESSION, TO_MADRID)
    return fresh


async def preview(site: Site, *wanted: Any) -> Any:
    answer = await site.http.post(f"/v1/sessions/{SESSION}/repairs/preview", json={"repairs": wanted})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def signed_in(site: Site) -> list[Any]:
    """Return the repairs in the session's log."""
    return [event["payload"] for event in await read_events(site, SESSION) if event["type"] == "repaired"]


async def epoch_of(site: Site) -> int:
    return (await site.look(SESSION))["epoch"]


@for_each(
    ("wanted", "why"),
    [
        ({**DROP, "flow": "flow_gone"}, "No open task 'flow_gone'"),
        ({"kind": "mark", "fingerprint": "f1", "done": True}, "Side effect f1 not found in the ledger."),
        ({"kind": "say", "text": "hello"}, "Only the operator who has taken over"),
        ({"kind": "hand_back"}, "No operator has taken over"),
        ({"kind": "release"}, "No turn is running"),
        ({"kind": "retry", "turn": "turn_gone"}, "Turn turn_gone is not queued or quarantined"),
        ({"kind": "give_up", "turn": "turn_gone"}, "Turn turn_gone is not queued or quarantined"),
    ],
)
async def test_what_does_not_fit_is_refused_and_changes_nothing(site: Site, wanted: Any, why: str) -> None:
    before = await site.get(f"/v1/sessions/{SESSION}")

    previewed = await preview(site, wanted)
    made = await site.post(SESSION, [wanted], before["epoch"])

    assert why in " ".join(previewed["refused"])
    assert (made.status_code, made.json()["code"]) == (409, "refused")
    assert await site.get(f"/v1/sessions/{SESSION}") == before


async def test_a_preview_says_what_the_repair_does_and_changes_nothing(site: Site) -> None:
    before = await site.get(f"/v1/sessions/{SESSION}")

    previewed = await preview(site, DROP)

    assert await site.get(f"/v1/sessions/{SESSION}") == before
    made = (await site.post(SESSION, [DROP], previewed["epoch"])).json()
    assert made["done"] == previewed["done"] == ["book_flight is canceled."]
    assert made["reply"] == previewed["told"]
    assert (made["by"], made["why"], made["epoch"]) == (BY, WHY, before["epoch"] + 1)


async def test_rolling_back_undoes_a_repair(site: Site) -> None:
    """ST-2"""
    before = await site.get(f"/v1/sessions/{SESSION}/state")
    await site.post(SESSION, [DROP], before["epoch"])

    await site.http.post(f"/v1/sessions/{SESSION}/rollback", json={"epoch": before["epoch"]})

    after = await site.get(f"/v1/sessions/{SESSION}/state")
    assert after["state"] == before["state"]
    assert after["epoch"] == before["epoch"] + 2


async def test_repairs_of_one_order_are_made_together_or_not_at_all(site: Site) -> None:
    epoch = await epoch_of(site)

    half = await site.post(SESSION, [DROP, {"kind": "hand_back"}], epoch)
    whole = await site.post(SESSION, [DROP, {"kind": "take_over"}], epoch)

    assert (half.status_code, whole.status_code) == (409, 200)
    assert (await site.look(SESSION))["person"] == BY


async def test_a_session_that_has_gone_on_is_not_repaired_unseen(site: Site) -> None:
    """The user's message is ahead of the repair in the lane."""
    epoch = await epoch_of(site)
    await site.submit(SESSION, "in business class please")  # ahead of the repair in the lane

    late = await site.post(SESSION, [DROP], epoch)

    assert late.status_code == 409
    assert "changed in the meantime" in late.json()["detail"]
    (flow,) = (await site.look(SESSION))["flows"]
    assert (flow["dact"], flow["state"]) == ("book_flight", "Active")


async def test_an_order_that_is_repeated_is_answered_as_it_was(site: Site) -> None:
    """RT-1: its response was lost. A different order at that epoch is rejected."""
    epoch = await epoch_of(site)
    first = await site.post(SESSION, [DROP], epoch)
    await site.say(SESSION, "what was the question?")

    again = await site.post(SESSION, [DROP], epoch)
    another = await site.post(SESSION, [{"kind": "take_over"}], epoch)

    assert (again.status_code, again.json()) == (200, first.json())
    assert another.status_code == 409
    assert len(await signed_in(site)) == 1


async def test_a_release_that_is_repeated_takes_the_lane_from_nobody_else(fresh: Site) -> None:
    ticket = await lost_lease(fresh, SESSION)
    order = {"repairs": [{"kind": "release"}], "epoch": await epoch_of(fresh), "why": WHY}
    path = f"/v1/sessions/{ticket.session}/repairs"
    first = await fresh.http.post(path, json={**order, "idempotency_key": "k1"})
    lease = await (await fresh.make_lane()).claim(SESSION)
    assert lease is not None

    again = await fresh.http.post(path, json={**order, "idempotency_key": "k1"})

    assert (again.status_code, again.json()) == (200, first.json())
    assert [one["status"] for one in (await fresh.look(SESSION))["turns"]] == ["running"]
    assert (await fresh.http.post(path, json={**order, "idempotency_key": "k2"})).status_code == 200
    assert len(await signed_in(fresh)) == 2


async def test_a_quarantined_turn_is_retried_by_its_id_and_signed(fresh: Site) -> None:
    """RT-6"""
    await quarantined(fresh, SESSION)
    [turn] = await fresh.get("/v1/turns?status=quarantined")
    path = f"/v1/turns/{turn['turn_id']}/retry"

    retried = await fresh.http.post(path, params={"why": WHY})
    again = await fresh.http.post(path)

    assert (retried.status_code, retried.json()["status"]) == (200, "queued")
    assert (again.status_code, again.json()["code"]) == (409, "refused")
    assert [one["why"] for one in await signed_in(fresh)] == [WHY]


@pytest.mark.parametrize(("kind", "becomes"), [("retry", ["queued"]), ("give_up", [])])
async def test_a_turn_that_was_set_aside_is_repaired_once_and_signed(
    fresh: Site, kind: str, becomes: list[str]
) -> None:
    """RT-6"""
    await quarantined(fresh, SESSION)
    found = await fresh.look(SESSION)
    repair = next(fit["repair"] for fit in found["fits"] if fit["repair"]["kind"] == kind)
    elsewhere = await fresh.http.post("/v1/sessions/another/repairs/preview", json={"repairs": [repair]})
    assert elsewhere.status_code == 404

    previewed = await preview(fresh, repair)
    made = [
        await fresh.http.post(
            f"/v1/sessions/{SESSION}/repairs",
            json={"repairs": [repair], "epoch": found["epoch"], "why": WHY, "idempotency_key": "k"},
        )
        for _ in range(2)
    ]

    assert [one.status_code for one in made] == [200, 200]
    assert made[0].json() == made[1].json()
    assert made[0].json()["done"] == previewed["done"]
    assert [turn["status"] for turn in (await fresh.look(SESSION))["turns"]] == becomes
    (signed,) = await signed_in(fresh)
    assert (signed["by"], signed["why"], signed["repairs"]) == (BY, WHY, [repair])


async def test_a_state_that_cannot_be_read_is_rolled_back_instead(site: Site) -> None:
    await site.edit(SESSION, lambda state: state.pop("stack"))
    found = await site.http.get(f"/v1/sessions/{SESSION}/repairs")
    assert (found.status_code, found.json()["code"]) == (409, "refused")

    await site.http.post(f"/v1/sessions/{SESSION}/rollback", json={"epoch": 1})

    assert (await site.look(SESSION))["wrong"] == []


async def test_while_a_person_answers_the_assistant_does_nothing(site: Site) -> None:
    await site.post(SESSION, [{"kind": "take_over"}], await epoch_of(site))

    turn = await site.say(SESSION, "yes")
    assert "A person is answering you here" in turn["reply"]
    assert site.airline.calls == []

    await site.post(SESSION, [{"kind": "hand_back"}], await epoch_of(site))
    turn = await site.say(SESSION, "yes")  # repeats the old offer
    assert "Shall I book it?" in turn["reply"]
    assert site.airline.calls == []
    lines = await site.get(f"/v1/sessions/{SESSION}/history")
    assert [line["role"] for line in lines] == [
        *("user", "agent", "operator", "agent", "user", "agent", "operator", "agent", "user", "agent")
    ]


async def test_a_call_is_marked_as_done_with_a_result_of_its_own_kind(fresh: Site) -> None:
    """RT-9, RT-10"""
    ticket = await unknown_and_done(fresh, SESSION)
    (want,) = ticket.wants

    previewed = await preview(fresh, {**want, "result": {"booking_ref": "?"}})
    assert "doesn't match the output schema of flight_book" in previewed["refused"][0]

    made = await fresh.post(SESSION, [want], await epoch_of(fresh))
    assert made.status_code == 200
    (entry,) = (await fresh.look(SESSION))["effects"]
    assert (entry["status"], entry["result"]["booking_ref"]) == (
        "done",
        (ticket.booked or {})["booking_ref"],
    )


async def test_a_repair_that_would_break_something_is_refused(
    fresh: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check, the judge of broken sessions finds the fault."""

    def drop(_place: Place, outcome: Outcome, change: Drop) -> None:
        flow = outcome.after.stack.find(change.flow)
        assert flow is not None
        outcome.after.stack.flows.remove(flow)
        outcome.told.append("It is gone.")

    monkeypatch.setitem(repairs._KINDS, Drop, drop)
    ticket = await unwanted_task(fresh, SESSION)
    (wrong,) = await repair_one(fresh, ticket)
    assert "belongs to a flow that no longer exists" in wrong

    monkeypatch.setattr(repairs, "find_faults", lambda _: [])
    ticket.posts = 0
    ticket.calls = len(fresh.airline.calls)
    assert await repair_one(fresh, ticket) == []
    assert any("a question of" in one for one in await judge(fresh, ticket, BY))


@pytest.mark.parametrize("route", [("GET", ""), ("POST", ""), ("POST", "/preview")])
async def test_a_right_that_nobody_asks_for_is_noticed(
    route: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.auth import authorization  # noqa: PLC0415

    named = (route[0], f"/v1/sessions/{{session_id}}/repairs{route[1]}")
    async with open_site() as (site, headers):
        ticket = await unwanted_task(site, SESSION)
        ticket.epoch = await epoch_of(site)
        assert await exceed(site, ticket, headers) == []

        monkeypatch.setattr(authorization, "OPERATORS_ONLY", authorization.OPERATORS_ONLY - {named})

        assert any("user was given" in one for one in await exceed(site, ticket, headers))


async def test_a_repair_that_marks_nothing_is_noticed(fresh: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is not marked in the ledger is made again."""

    def forget(_place: Place, outcome: Outcome, _change: Mark) -> None:
        for flow in outcome.after.stack.flows:
            drop_candidate(flow)
        outcome.done.append("Marked.")
        outcome.told.append("It was done.")

    monkeypatch.setitem(repairs._KINDS, Mark, forget)
    ticket = await break_one(fresh, broken_sessions.KINDS.index(unknown_and_done), random.Random(1))
    assert await repair_one(fresh, ticket) == []
    assert await goes_on(fresh, ticket) != []


def test_the_command_has_words_for_every_repair() -> None:
    given = {"flow": "f", "fingerprint": "p", "text": "t", "turn": "n"}
    read = [read_change([name, *(given[word] for word in words)]) for name, words in FORMS.items()]
    assert {one["kind"] for one in read} == {
        *("drop", "mark", "take_over", "say", "hand_back", "release", "retry", "give_up")
    }
    for wrong in (["drop"], ["repaint"], ["drop", "f", "s"]):
        with pytest.raises(InvalidInput):
            read_change(wrong)


async def test_who_waits_for_a_repair_hears_of_it_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the event, the gateway would only poll."""
    epoch = (await site.look(SESSION))["epoch"]
    monkeypatch.setattr(event_feed, "LOOK_EVERY_S", 60)

    async with asyncio.timeout(20):
        made = await site.post(SESSION, [{"kind": "take_over"}], epoch)

    assert made.status_code == 200


async def test_users_are_not_told_what_operators_write_for_each_other() -> None:
    async with open_site() as (site, headers):
        await site.say(SESSION, TO_MADRID)
        made = await site.post(SESSION, [{"kind": "take_over"}], 1)
        of_session = f"/v1/sessions/{SESSION}"
        compared = f"{of_session}/compare?with={SESSION}"
        turns = ("/v1/turns", f"/v1/turns/{made.json()['turn_id']}", f"{of_session}/turns")
        told = ("history", "events?follow=false", "?at=2")

        for path in (*(f"{of_session}/{name}".replace("/?", "?") for name in told), *turns, compared):
            for who in (BY, "user"):
                answer = await site.http.get(path, headers=headers[who])
                assert answer.status_code == 200, answer.text
                assert (WHY in answer.text) is (who == BY and path != compared), (who, path, answer.text)
                assert "A person has joined" in answer.text
