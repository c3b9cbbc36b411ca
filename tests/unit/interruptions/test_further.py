"""Messages under `understand` that the local classifier doesn't read with certainty: clicks, changes of a plan, and
messages left to a model (RT-5). Checks calls, stored data and replies.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.turns.turn import TurnInput, TurnRecord, TurnStatus
from parley.simulator import Simulator
from parley.testing.scripted_model import Answer, Rule, ScriptedModel
from tests.cases import for_each
from tests.conversation import scripted
from tests.trained import trained
from tests.unit.interruptions.setting import Booking, Setting, write_mailroom

UNSURE = "my sister would be happier about it, by the way"
MEANT = Answer(
    json={
        "kind": "correction",
        "flows": [{"dact": "send_parcel", "score": 0.9}],
        "slots": {"recipient": "Ann"},
        "target": "the recipient",
        "digression": None,
    }
)


@pytest.fixture
async def model() -> AsyncIterator[tuple[ScriptedModel, ModelPool]]:
    async with scripted(Rule(match="my sister", replies=(MEANT,))) as (server, pool):
        yield server, pool


async def test_what_system_1_is_unsure_of_waits_for_its_turn_where_the_model_reads_it(
    mailroom: str, model: tuple[ScriptedModel, ModelPool]
) -> None:
    """The model would stop the turn. It is called once, after the running turn."""
    server, pool = model
    setting = Setting.of(mailroom, models=pool)
    first, runner, running = await setting.run_until("letters")
    asked = len(server.requests_for("nlu_think"))
    second = await setting.submit(UNSURE)
    await runner.renew()
    assert len(server.requests_for("nlu_think")) == asked
    setting.go_on()
    await running

    assert (await setting.read(first)).status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}
    said = await setting.read(second)
    assert len(server.requests_for("nlu_think")) == asked + 1
    assert said.result is not None
    assert "with Bob as the recipient. What should I do now?" in said.result["reply"]


@pytest.mark.parametrize(("name", "booked"), [("deny", False), ("confirm", True)])
async def test_a_click_is_read_like_words(name: str, booked: bool) -> None:
    """The confirmation waits. A click on No withdraws it, and a second click on Yes changes nothing."""
    booking = await Booking.begin()
    first = await booking.submit("yes")
    second = await booking.click(name)
    await booking.runner().run(booking.session)

    assert (await booking.read(first)).status is (TurnStatus.DONE if booked else TurnStatus.CANCELLED)
    assert (await booking.read(second)).status is TurnStatus.DONE
    assert [effect.tool_id for effect in booking.simulator.store.effects.values()] == ["flight_book"] * booked
    said = await booking.reply(second)
    assert ("no longer open" in said) is booked, said
    assert ("What would you like to change?" in said) is not booked, said


async def test_a_click_stops_the_task_at_work(mailroom: str) -> None:
    setting = Setting.of(mailroom)
    first, _, running = await setting.run_until("label")
    second = await setting.submit(TurnInput(action={"name": "cancel_flow", "payload": {}}, form="action"))
    setting.go_on()
    await running

    assert (await setting.read(first)).status is TurnStatus.CANCELLED
    assert setting.calls == {("label", "bob"): 1}
    said = (await setting.read(second)).result
    assert said is not None
    assert "I've already done this: Print a label, and I've left that as it is." in said["reply"]


class Gate:
    """A gate for calls. `reached`: a call has started. `open`: calls may end."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()


def with_gate(loaded: LoadedDomain, service: str, method: str, gate: Gate) -> LoadedDomain:
    """Return the domain with a gate in one method of a service."""

    async def wait(self: Any, **arguments: Any) -> Any:
        gate.reached.set()
        await gate.open.wait()
        return await getattr(loaded.services[service], method)(self, **arguments)

    waiting = functools.wraps(getattr(loaded.services[service], method))(wait)
    gated = type(service, (loaded.services[service],), {method: waiting})
    return replace(loaded, services={**loaded.services, service: gated})


@pytest.mark.parametrize(
    ("service", "method", "said", "stays"),
    [
        ("Flights", "search", ("plan a trip from Oslo to Lisbon", "Friday 27 November"), []),
        (
            "Flights",
            "offer",
            ("plan a trip from Oslo to Lisbon", "Friday 27 November", "Sunday 29 November"),
            ["flight_book"],
        ),
    ],
    ids=["in the first step", "after a step that did something"],
)
async def test_a_change_of_the_plan_stops_it_between_two_steps(
    service: str, method: str, said: tuple[str, ...], stays: list[str]
) -> None:
    """Completed steps stay, and the plan continues in the message's turn, without the step."""
    gate = Gate()
    loaded, system1 = trained("travel")
    gate.open.set()
    simulator = Simulator.of(with_gate(loaded, service, method, gate), system1=system1)
    booking = Booking(simulator, simulator.converse().session_id, [])
    for line in said:
        await booking.submit(line)
    await booking.runner().run(booking.session)
    gate.reached.clear()
    gate.open.clear()
    first = await booking.submit("yes" if stays else "Sunday 29 November")
    runner = booking.runner()
    running = asyncio.create_task(runner.run(booking.session))
    await gate.reached.wait()
    second = await booking.submit("skip the return flight")
    await runner.renew()
    gate.open.set()
    await running

    stopped = await booking.read(first)
    assert stopped.status is TurnStatus.CANCELLED
    assert stopped.result is not None
    assert [call["tool_id"] for call in stopped.result["tools"] if call["tool_id"] in stays] == stays
    assert ("I had booked your flight" in stopped.result["reply"]) is bool(stays), stopped.result["reply"]
    assert [effect.tool_id for effect in simulator.store.effects.values()] == stays
    reply = await booking.reply(second)
    assert "leave out “book the return flight”" in reply, reply
    assert ("Shall I book it?" in reply) is not bool(stays), reply


async def _interject(mailroom: str, text: str) -> tuple[Setting, TurnRecord, str]:
    """Send a message before the first effect. Return the setting, the interrupted turn and the reply."""
    setting = Setting.of(mailroom)
    first, _, running = await setting.run_until("letters")
    second = await setting.submit(text)
    setting.go_on()
    await running
    said = await setting.read(second)
    assert said.result is not None
    return setting, await setting.read(first), said.result["reply"]


@for_each(
    "text",
    ["no", "don't", "please don't", "actually don't", "no, wait", "hold on", "not yet", "one moment please"],
)
async def test_what_is_called_out_to_who_is_at_work_stops_it(text: str, mailroom: str) -> None:
    """The turn is canceled in time for any wording, and the reply asks for the intent."""
    setting, first, reply = await _interject(mailroom, text)

    assert setting.calls == {}
    assert first.status is TurnStatus.CANCELLED
    assert "I've stopped sending a parcel" in reply or "Shall I go ahead?" in reply, reply


@for_each(
    "text",
    [
        "and one to Ann",
        "another one to Ann please",
        "one more to Ann",
        "send a parcel to Ann as well",
        "to Ann too",
    ],
)
async def test_one_more_is_no_correction_of_the_first(text: str, mailroom: str) -> None:
    setting, first, reply = await _interject(mailroom, text)

    assert first.status is TurnStatus.DONE
    assert setting.calls["parcel", "bob"] == 1
    assert "changed the recipient" not in reply, reply


@for_each("text", ["have you sent it yet?", "did you send it?", "who is it going to?", "is it for Bob?"])
async def test_a_question_about_the_running_task_does_not_stop_it(text: str, mailroom: str) -> None:
    setting, first, _reply = await _interject(mailroom, text)

    assert first.status is TurnStatus.DONE
    assert setting.calls == {("label", "bob"): 1, ("parcel", "bob"): 1}


@pytest.mark.parametrize("text", ["never mind", "no, to Ann", "what can you do?"])
async def test_one_renewal_is_enough_while_a_call_that_changes_nothing_is_at_work(
    text: str, mailroom: str
) -> None:
    """Bounded delay: no call has to end, and no time has to pass."""
    setting = Setting.of(mailroom)
    first, runner, running = await setting.run_until("letters")
    second = await setting.submit(text)
    setting.reached["letters"].clear()
    await runner.renew()

    if text == "no, to Ann":
        await setting.reached["letters"].wait()
        statuses = TurnStatus.CANCELLED, TurnStatus.RUNNING
    elif text == "never mind":
        await running
        statuses = TurnStatus.CANCELLED, TurnStatus.DONE
    else:
        statuses = TurnStatus.RUNNING, TurnStatus.QUEUED
    assert ((await setting.read(first)).status, (await setting.read(second)).status) == statuses
    setting.go_on()
    await running


async def test_an_effect_that_does_not_end_is_waited_for_no_longer_than_its_time_out(tmp_path: Any) -> None:
    """Bounded delay: the label never ends, and the parcel is never started."""
    setting = Setting.of(str(write_mailroom(tmp_path / "mailroom", timeout_ms=50)))
    first, _, running = await setting.run_until("label")
    second = await setting.submit("never mind")
    await running

    assert setting.calls == {("label", "bob"): 1}
    stopped, said = await setting.read(first), await setting.read(second)
    assert (stopped.status, said.status) == (TurnStatus.DONE, TurnStatus.DONE)
    assert stopped.result is not None
    assert said.result is not None
    assert "Print a label" in stopped.result["reply"]
    assert said.result["reply"] == "OK, I've stopped sending a parcel."
