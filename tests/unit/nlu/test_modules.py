"""Actions, validation, models and reconsideration (NL-2, NL-5, NL-6, NL-7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from orchestrator.dialogue.slots import EVERY_TYPE
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.errors import InvalidInput, ModelTimedOut
from orchestrator.models.calling import CallContext
from orchestrator.nlu.actions import Action, react
from orchestrator.nlu.contemplate import FailedRequest, narrow, reroute
from orchestrator.nlu.module import NLU
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reading
from orchestrator.nlu.readers.system2 import System2
from orchestrator.nlu.validate import Validation
from tests.trained import trained
from tests.unit.nlu.flights import BOOK, FLOWS, FakeTurn, booking, nothing_open, system1, values

FLOW_MAP = {flow.dact: flow for flow in FLOWS}
CALL = CallContext(session_id="session_1", turn_id="turn_1")


@dataclass
class ScriptedModel:
    """A model with scripted answers and failures."""

    answer: object
    available: bool = True
    asked: list[str] = field(default_factory=list)

    async def structured(
        self,
        prompt_id: str,
        variables: Mapping,
        schema: Mapping,
        call: CallContext,
        *,
        judged_by: Mapping | None = None,
    ) -> dict:
        self.asked.append(prompt_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def answer(dact: str = "book_flight", kind: str = "task", **slots: object) -> dict:
    return {"kind": kind, "intent": "Book", "flows": [{"dact": dact, "score": 0.9}], "slots": slots}


async def ask(text: str, model: ScriptedModel, context: NluContext | None = None) -> Reading:
    context = context or nothing_open()
    guess = system1().think(text, context)
    system2 = System2(model, FLOWS, system1().opinion, "A travel assistant")
    return await system2.read(Message(text, text, text, CALL, guess), context) or guess


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


# Models


@pytest.mark.parametrize(
    "text",
    [
        "book a flight from Oslo to Madrid",
        "gimme wings southward",
        "can you help me",
        "thanks a lot",
        "a question",
    ],
)
async def test_the_model_reads_what_system_1_is_sure_of_too(text: str) -> None:
    """NL-2: only closed messages don't reach the model."""
    model = ScriptedModel(answer(destination="Madrid"))
    thought = await ask(text, model)
    assert thought.understanding.source is Source.SYSTEM2
    assert values(thought.understanding) == {"destination": "Madrid"}
    assert model.asked == ["nlu_think"]


@pytest.mark.parametrize("text", ["yes please", "no thanks", "👍"])
async def test_a_plain_answer_asks_no_model(text: str) -> None:
    """NL-2, PX-18"""
    model = ScriptedModel(answer())
    loaded, trained_once = trained("travel")
    nlu = NLU(loaded.domain, cast("Any", model), system1=trained_once)
    understood = await nlu.think(text, DialogueState.new("session_1"), cast("Any", FakeTurn()), CALL)
    assert understood.source is Source.COMMAND
    assert model.asked == []


@pytest.mark.parametrize("model", [ScriptedModel({}, available=False), ScriptedModel(ModelTimedOut("late"))])
async def test_a_model_that_is_down_leaves_system_1_alone_and_says_so(model: ScriptedModel) -> None:
    thought = await ask("book a flight to Madrid", model)
    assert thought.understanding.source is Source.SYSTEM1
    assert thought.understanding.flows[0].dact == "book_flight"
    assert thought.understanding.degraded


# Contemplate


def test_the_failed_flow_is_excluded_and_its_fallback_comes_first() -> None:
    left = narrow(FailedRequest("", BOOK, {"book_flight"}, {}), FLOW_MAP)
    assert left[0].dact == "search_flights"
    assert all(flow.dact != "book_flight" for flow in left)


def test_rerouting_without_a_model_takes_values_along() -> None:
    request = FailedRequest("I need a flight to Madrid", BOOK, {"book_flight"}, {})
    found = reroute(request, system1(), booking())
    assert found.kind is MessageKind.TASK
    assert found.flows[0].dact == "search_flights"
    assert found.slots["destination"].value == "MAD"
    assert found.slots["origin"].value == "OSL"


def test_rerouting_gives_up_when_nothing_is_likely() -> None:
    found = reroute(FailedRequest("blorp", None, {"book_flight"}, {}), system1(), nothing_open())
    assert found.kind is MessageKind.UNKNOWN
