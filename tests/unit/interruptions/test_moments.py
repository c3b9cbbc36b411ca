"""Messages under `understand` at exact moments of a turn, over the in-memory stores (RT-5, RT-25).

The table is in `docs/interruptions.md`, and `judge.py` checks it.
"""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnStatus
from orchestrator.types import DEFAULT_TENANT
from tests.cases import for_each
from tests.unit.interruptions.judge import ASK, SAID, find_faults
from tests.unit.interruptions.setting import MOMENTS, Booking, LateLane, NotingLane, Setting, interject


@for_each("moment", MOMENTS)
@for_each("kind", SAID)
async def test_each_kind_at_each_moment_comes_to_what_the_table_says(
    kind: str, moment: str, mailroom: str
) -> None:
    for text in SAID[kind]:
        setting = Setting.of(mailroom)
        turns = [await setting.read(each) for each in await interject(setting, text, moment)]

        assert find_faults(setting.outcome(kind, turns[0], turns[1])) == [], (text, turns)


@pytest.mark.parametrize("kind", ["correction", "cancellation"])
async def test_the_judge_finds_a_lane_that_looks_after_an_effect_instead_of_before(
    kind: str, mailroom: str
) -> None:
    setting = Setting.of(mailroom, LateLane)
    turns = [
        await setting.read(each) for each in await interject(setting, SAID[kind][0], "letters", polls=False)
    ]

    assert find_faults(setting.outcome(kind, turns[0], turns[1])) != []


@for_each("moment", ["letters", "label", "parcel"])
@for_each("kind", ["correction", "cancellation", "question", "thanks"])
async def test_whoever_takes_over_does_the_same(kind: str, moment: str, mailroom: str) -> None:
    """The worker dies after the message was accepted and before it was classified, and its call has no effect."""
    setting = Setting.of(mailroom)
    first, _, running = await setting.run_until(moment)
    second = await setting.submit(SAID[kind][0])
    setting.lane.die()
    running.cancel()
    await asyncio.wait({running})
    setting.calls.clear()
    heir = NotingLane(setting.simulator.store)
    heir.first = setting.lane.first
    setting.lane = heir
    setting.go_on()
    await heir.sweep(grace_s=0)
    await setting.runner().run(setting.session)

    turns = await setting.read(first), await setting.read(second)
    assert max(setting.calls.values(), default=0) <= 1
    if moment == "letters":
        assert find_faults(setting.outcome(kind, *turns)) == []
    elif kind in {"correction", "cancellation"}:
        assert setting.calls == {}, "what was begun is in doubt, and nothing else begins"


async def test_what_follows_another_task_is_about_that_one(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.submit("thanks")
    await setting.submit("send a mail to Eve")
    await setting.submit("no, to Ann")
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


async def test_talk_does_not_hide_what_is_said_after_it(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.submit("thanks")
    await setting.submit("what can you do?")
    await setting.submit("no, to Ann")
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.CANCELLED
    assert setting.calls == {("label", "ann"): 1, ("parcel", "ann"): 1}


async def test_turns_that_name_another_rule_are_not_heard(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first = await setting.submit(ASK)
    await setting.inbox.submit(
        Submission(setting.session, TurnInput("no, to Ann"), DEFAULT_TENANT, if_busy=IfBusy.ENQUEUE)
    )
    setting.go_on()
    await setting.runner().run(setting.session)

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


@pytest.mark.parametrize(
    ("text", "booked", "status"),
    [
        ("no", False, TurnStatus.CANCELLED),
        ("no, to Rome", False, TurnStatus.CANCELLED),
        ("thanks", True, TurnStatus.DONE),
    ],
)
async def test_a_yes_can_be_taken_back_before_it_has_done_anything(
    text: str, booked: bool, status: TurnStatus
) -> None:
    booking = await Booking.begin()
    first, second = await booking.submit("yes"), await booking.submit(text)
    await booking.runner().run(booking.session)

    said = await booking.reply(second)
    assert (await booking.read(first)).status is status
    assert bool(booking.simulator.store.effects) is booked
    if text == "no, to Rome":
        assert "from Madrid (MAD) to Rome (FCO)" in said
        assert "Shall I book it?" in said


async def test_a_yes_does_not_count_for_what_was_not_displayed() -> None:
    """AM-3: the earlier message is canceled before its turn runs, so no offer is displayed."""
    booking = await Booking.begin()
    await booking.submit("yes")
    second = await booking.submit("no, to Rome")
    runner = booking.runner()
    runner.drain()
    await runner.run(booking.session)
    await booking.inbox.cancel(DEFAULT_TENANT, second)
    yes = await booking.submit("yes")
    await booking.runner().run(booking.session)

    assert booking.simulator.store.effects == {}
    assert "Shall I book it?" in await booking.reply(yes)
