"""Effects of `domain.yaml` settings with non-default values, for users and model endpoints (CO-5)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.models.config import ModelChoice, Timeouts, read_model_config
from orchestrator.telemetry import SignalType
from parley.simulator import Simulator
from parley.testing.scripted_model import Answer, Fail
from tests.cases import for_each
from tests.configuration import default_config
from tests.integration.modelled import TAPAS, script_of, understood
from tests.integration.models.staging import rules, staged
from tests.trained import trained

SYSTEM2 = {"nlu": {"mode": "system2"}}
PRICES = {"scripted": {"prompt": 1.0, "completion": 1.0}}
LOST = ("Book a flight", "hm", "hm er")


def simulated(**sections: Any) -> Simulator:
    loaded, system1 = trained("travel")
    return Simulator.of(loaded, sections=sections, system1=system1)


BUDGETS = {
    "tokens_per_call": 10,
    "tokens_per_turn": 10,
    "tokens_per_session": 10,
    "tokens_per_user_day": 10,
    "tokens_per_tenant_minute": 10,
    "tokens_per_tenant_day": 10,
    "tokens_per_day": 10,
    "cost_per_call": 1e-6,
    "cost_per_turn": 1e-6,
    "cost_per_session": 1e-6,
    "cost_per_user_day": 1e-6,
    "cost_per_tenant_day": 1e-6,
    "cost_per_day": 1e-6,
}


@for_each("budget", [{name: most} for name, most in BUDGETS.items()], ids=str)
async def test_each_budget_ends_the_asking(budget: dict[str, float]) -> None:
    async with staged(
        script_of(understood("unknown")), budgets=budget, models={"prices": PRICES}, **SYSTEM2
    ) as stage:
        turn = await stage.simulator.converse().say("Book a flight to Madrid")

    assert stage.model.requests == []
    assert turn["flags"]["model_problem"] == "budget_exceeded"
    [refusal] = (call.payload for call in stage.calls if call.type is SignalType.MODEL_CALL)
    assert (refusal["outcome"], refusal["asked"]) == ("budget_exceeded", "scripted")
    assert f"_per_{refusal['refused_by']}" in str(budget)


@for_each(
    ("budget", "told"),
    [
        ("tokens_per_session", "This conversation has used up its allowance"),
        ("tokens_per_user_day", "You've used up today's allowance"),
        ("tokens_per_tenant_day", "Today's allowance for my language model is used up"),
        ("tokens_per_turn", None),
    ],
)
async def test_users_are_told_once_which_allowance_is_used_up(budget: str, told: str | None) -> None:
    """CO-2: for a budget that later turns exceed, too; other budgets only affect this turn."""
    async with staged(script_of(understood("unknown")), budgets={budget: 10}, **SYSTEM2) as stage:
        talk = stage.simulator.converse()
        first = await talk.say("Book a flight to Madrid")
        second = await talk.say("Oslo")

    assert ("allowance" in first["reply"]) is (told is not None), first["reply"]
    assert (told or "") in first["reply"]
    assert "allowance" not in second["reply"]


async def test_a_request_says_what_the_settings_of_models_say() -> None:
    models = {"max_tokens_per_prompt": {"nlu_think": 77}, "temperature": 0.25}
    async with staged(script_of(understood("unknown")), models=models, **SYSTEM2) as stage:
        await stage.simulator.converse().say(TAPAS)

    body = stage.model.requests[0].body
    assert 77 in {body.get("max_tokens"), body.get("max_completion_tokens")}
    assert body["temperature"] == 0.25


def test_the_time_that_a_model_has_is_what_the_settings_say() -> None:
    times = {"timeout_s": 1, "stream_timeout_s": 2, "patience_s": 3}
    config = read_model_config(default_config({"models": times}), ModelChoice("any"))
    assert config.timeouts == Timeouts(request_s=1, stream_s=2, answer_s=3)


@pytest.mark.parametrize(("told", "is_told"), [(False, False), (True, True)])
async def test_users_are_told_that_no_model_answers_where_the_domain_says_so(
    *, told: bool, is_told: bool
) -> None:
    async with staged(rules(nlu_think=Fail(500)), generation={"tell_degraded": told}, **SYSTEM2) as stage:
        turn = await stage.simulator.converse().say("Show my bookings")

    assert ("language model" in turn["reply"]) is is_told, turn["reply"]


@pytest.mark.parametrize("most", [1, 3])
async def test_no_more_is_offered_than_may_be_chosen_from(most: int) -> None:
    scores = [{"dact": dact, "score": 0.2} for dact in ("book_flight", "search_flights", "list_bookings")]
    unsure = Answer(json={"kind": "unknown", "flows": scores, "slots": {}, "digression": None})
    async with staged(
        rules(nlu_think=unsure, nlu_contemplate=unsure), ambiguity={"max_choices": most}, **SYSTEM2
    ) as stage:
        turn = await stage.simulator.converse().say(TAPAS)

    assert len(turn["actions"]) == most, turn


@pytest.mark.parametrize(("turns", "escalated"), [(1, [False, True, True]), (2, [False, False, True])])
async def test_who_is_not_understood_is_offered_a_way_out_after_so_many_turns(
    turns: int, escalated: list[bool]
) -> None:
    talk = simulated(ambiguity={"escalation_turns": turns}).converse()
    assert [bool((await talk.say(text))["flags"].get("escalated")) for text in LOST] == escalated


@pytest.mark.parametrize(("most", "offered"), [(0, 0), (1, 1)])
async def test_so_many_next_steps_are_suggested(most: int, offered: int) -> None:
    turn = await simulated(generation={"suggested_replies": most}).converse().say("Show my bookings")
    assert len(turn["actions"]) == offered


async def test_only_supported_languages_are_understood() -> None:
    german = {"default": "de", "supported": ["de"]}
    # In words that the domain's own English examples don't contain.
    turn = await simulated(language=german).converse().say("Twice as cold as yours, or not?")
    assert turn["reply"] == "Ich verstehe leider nur diese Sprachen: German."


async def test_what_is_less_likely_than_the_settings_say_is_not_begun() -> None:
    simulator = Simulator.of(trained("travel")[0], sections={"thresholds": {"likely": 0.9999}})
    turn = await simulator.converse().say("Book a flight")
    assert turn["flows"] == []


async def test_a_model_is_told_in_which_tone_it_puts_things() -> None:
    shown = rules(res_naturalize=Answer(text="You have no bookings yet."))
    tone = {"persona": {"tone": "like a pirate"}, "generation": {"naturalize": "on", "fewest_words": 0}}
    async with staged(shown, **tone) as stage:
        await stage.simulator.converse().say("Show my bookings")
    [request] = stage.model.requests_for("res_naturalize")
    assert "like a pirate" in str(request.body["messages"])


@pytest.mark.parametrize(("rounds", "is_cut"), [(1, True), (12, False)])
async def test_a_turn_goes_round_so_often(rounds: int, *, is_cut: bool) -> None:
    simulator = simulated(flow_management={"keep_going_budget": rounds})
    talk = simulator.converse()
    await talk.say("Book a flight from Oslo to Madrid")
    await talk.say("Show my bookings")  # this reveals the flow below
    assert any(s.payload.get("check") == "keep_going_budget" for s in simulator.signals) is is_cut


@pytest.mark.parametrize(("most", "kept"), [(2, 2), (50, 6)])
async def test_so_many_messages_of_a_conversation_are_kept(most: int, kept: int) -> None:
    simulator = simulated(memory={"max_history_messages": most})
    talk = simulator.converse()
    for _ in range(3):
        await talk.say("Show my bookings")
    [session] = simulator.store.sessions.values()
    assert session.state is not None
    assert len(orjson.loads(session.state)["messages"]) == kept


@pytest.mark.parametrize(("every", "kept"), [(1, 4), (20, 1)])
async def test_the_whole_state_is_kept_every_so_many_turns(every: int, kept: int) -> None:
    simulator = simulated(memory={"snapshot_every_turns": every})
    talk = simulator.converse()
    for _ in range(4):
        await talk.say("Show my bookings")
    [session] = simulator.store.sessions.values()
    assert sum(revision.snapshot is not None for revision in session.revisions.values()) == kept
