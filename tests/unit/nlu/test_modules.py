"""Actions, validation and reconsideration (NL-5, NL-6, NL-7)."""

import pytest

from orchestrator.dialogue.slots import EVERY_TYPE
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.errors import InvalidInput
from orchestrator.nlu.actions import Action, react
from orchestrator.nlu.contemplate import FailedRequest, narrow, reroute
from orchestrator.nlu.validate import Validation
from tests.unit.nlu.flights import BOOK, CHECK, FLOWS, booking, nothing_open, system1

FLOW_MAP = {flow.dact: flow for flow in FLOWS}


# React


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("explode", {}),
        ("choose_flow", {"dact": "nowhere"}),
        ("select_option", {"index": 5}),
        ("fill_slot", {}),
        ("fill_form", {"values": 3}),
        ("change_slot", {}),
    ],
)
def test_actions_that_are_none_name_the_field(name: str, payload: dict) -> None:
    with pytest.raises(InvalidInput) as caught:
        react(Action(name, payload), booking(), FLOW_MAP)
    assert caught.value.field.startswith("action")


# Validate


def validated(understanding: Understanding, context=None) -> tuple[Understanding, list[str]]:
    checker = Validation(FLOW_MAP, EVERY_TYPE, system1().extractor)
    return checker.validate(understanding, context or nothing_open())


def task(*flows: FlowScore, **slots: object) -> Understanding:
    mentions = {name: Mention(value) for name, value in slots.items()}
    return Understanding(MessageKind.TASK, Source.SYSTEM2, flows=flows, slots=mentions)


def test_unknown_flows_go_and_scores_are_put_in_order() -> None:
    result, problems = validated(
        task(FlowScore("nowhere", 1.0), FlowScore("search_flights", 0.2), FlowScore("book_flight", 7.0),
             FlowScore("book_flight", 0.1), FlowScore("check_booking", float("nan")))
    )  # fmt: skip
    assert result.flows == (FlowScore("book_flight", 1.0), FlowScore("search_flights", 0.2))
    assert problems


def test_a_task_without_a_known_flow_is_unknown() -> None:
    assert validated(task(FlowScore("nowhere", 1.0)))[0].kind is MessageKind.UNKNOWN


def test_slots_must_be_of_the_flow_and_of_their_type() -> None:
    flow = FlowScore("book_flight", 1.0)
    result = validated(task(flow, colour="red", passengers=40, date="tomorrow", cabin="Business"))[0]
    assert "colour" not in result.slots
    assert result.slots["passengers"].invalid
    assert result.slots["date"].value == "2026-11-21"
    assert result.slots["cabin"].value == "business"


# Contemplate


def test_the_failed_flow_is_excluded_and_its_fallback_comes_first() -> None:
    left = narrow(FailedRequest("", BOOK, {}), FLOW_MAP)
    assert left[0].dact == "search_flights"
    assert all(flow.dact != "book_flight" for flow in left)


def test_rerouting_without_a_model_takes_values_along() -> None:
    request = FailedRequest("I need a flight to Madrid", BOOK, {})
    found = reroute(request, system1(), booking())
    assert found.kind is MessageKind.TASK
    assert found.flows[0].dact == "search_flights"
    assert found.slots["destination"].value == "MAD"
    assert found.slots["origin"].value == "OSL"


def test_rerouting_gives_up_when_nothing_is_likely() -> None:
    found = reroute(FailedRequest("blorp", CHECK, {}), system1(), nothing_open())
    assert found.kind is MessageKind.UNKNOWN
