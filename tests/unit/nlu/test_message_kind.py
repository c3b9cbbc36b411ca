"""The kind of a message, which depends on its words and the open question (NL-4, IR-1)."""

from datetime import date

import pytest

from orchestrator.dialogue.questions import Option
from orchestrator.dialogue.understanding import Digression, FlowScore, MessageKind
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.classifier import Weighed
from orchestrator.nlu.system1.message_kind import Evidence
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.trained import trained
from tests.unit.nlu.flights import SEARCH, booked, booking, confirming, nothing_open, understand, values
from tests.wording import english


@pytest.mark.parametrize(
    ("text", "dact"),
    [
        ("Book a flight from Oslo to Madrid tomorrow", "book_flight"),
        ("could you find flights to Lisbon", "search_flights"),
        ("cancel my booking AB12CD", "cancel_booking"),
        ("what's the status of my booking?", "check_booking"),
    ],
)
def test_a_request_names_its_flow_with_three_scores_at_most(text: str, dact: str) -> None:
    understanding = understand(text)
    assert understanding.kind is MessageKind.TASK
    assert understanding.flows[0].dact == dact
    assert 1 <= len(understanding.flows) <= 3
    scores = [flow.score for flow in understanding.flows]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("text", ["tomorrow", "on the 3rd", "next friday please", "2026-12-24"])
def test_a_value_answers_the_open_question(text: str) -> None:
    understanding = understand(text, booking())
    assert understanding.kind is MessageKind.SLOT_VALUE
    assert set(understanding.slots) == {"date"}


def test_a_day_that_does_not_exist_is_an_answer_with_a_reason() -> None:
    mention = understand("February 30", booking()).slots["date"]
    assert mention.value is None
    assert mention.invalid


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("no, to Lisbon instead", {"destination": "LIS"}),
        ("actually from Porto", {"origin": "OPO"}),
        ("not Madrid but Porto", {"destination": "OPO"}),
        ("change the destination to Porto", {"destination": "OPO"}),
    ],
)
def test_a_correction_names_the_slot_that_changes(text: str, changed: dict[str, str]) -> None:
    understanding = understand(text, booking())
    assert understanding.kind is MessageKind.CORRECTION
    assert values(understanding) == changed


def test_i_meant_corrects_what_is_about_to_be_confirmed() -> None:
    understanding = understand("no, I meant Sunday", confirming())
    assert understanding.kind is MessageKind.CORRECTION
    assert values(understanding) == {"date": "2026-11-22"}


def test_a_correction_reaches_a_completed_flow() -> None:
    understanding = understand("no, to Lisbon instead", booked())
    assert understanding.kind is MessageKind.CORRECTION
    assert understanding.target == "book_flight"
    assert values(understanding) == {"destination": "LIS"}


@pytest.mark.parametrize("text", ["yes", "yes please", "sure, go ahead", "that's right", "y"])
def test_a_yes_confirms(text: str) -> None:
    assert understand(text, confirming()).kind is MessageKind.CONFIRMATION


@pytest.mark.parametrize("text", ["no", "nope", "no thanks", "n"])
def test_a_no_denies(text: str) -> None:
    assert understand(text, confirming()).kind is MessageKind.DENIAL


def test_yes_is_a_value_where_the_question_asks_for_yes_or_no() -> None:
    understanding = understand("yes please", booking(asked="wifi"))
    assert understanding.kind is MessageKind.SLOT_VALUE
    assert values(understanding) == {"wifi": True}


@pytest.mark.parametrize("text", ["never mind", "cancel that", "forget it"])
def test_cancelling_the_task_is_not_cancelling_a_booking(text: str) -> None:
    assert understand(text, booking()).kind is MessageKind.CANCELLATION


def test_a_resumption_says_what_it_goes_back_to() -> None:
    context = booking(interrupted=(PastFlow(SEARCH),))
    understanding = understand("go back to the search", context)
    assert understanding.kind is MessageKind.RESUMPTION
    assert understanding.target == "search"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("why do you need that?", Digression.CLARIFICATION),
        ("what can you do?", Digression.HELP),
        ("what do you still need?", Digression.STATUS),
        ("how much luggage can I take?", Digression.QUESTION),
    ],
)
def test_digressions_leave_the_open_question_alone(text: str, kind: Digression) -> None:
    understanding = understand(text, booking())
    assert understanding.kind is MessageKind.DIGRESSION
    assert understanding.digression is kind


def test_a_declared_answer_is_named() -> None:
    assert understand("what is the luggage limit?").target == "baggage"


@pytest.mark.parametrize("text", ["hello", "thank you", "how are you"])
def test_small_talk(text: str) -> None:
    assert understand(text).kind is MessageKind.CHITCHAT


@pytest.mark.parametrize("text", ["asdf qwer zxcv", "blorp", "Madrid"])
def test_what_nothing_explains_is_unknown(text: str) -> None:
    assert understand(text, nothing_open()).kind is MessageKind.UNKNOWN


def test_another_task_interrupts() -> None:
    understanding = understand("check my booking AB12CD first", booking())
    assert understanding.kind is MessageKind.TASK
    assert understanding.flows[0].dact == "check_booking"
    assert values(understanding) == {"ref": "AB12CD"}


def test_free_text_is_taken_as_it_is_but_not_a_cancellation() -> None:
    asked = booking(asked="note")
    assert values(understand("my suitcase is bright orange", asked)) == {
        "note": "my suitcase is bright orange"
    }
    assert understand("never mind", asked).kind is MessageKind.CANCELLATION


@pytest.mark.parametrize("text", ["2", "the second one", "Gatwick", "number 2 please"])
def test_one_of_several_options_is_chosen_by_place_or_name(text: str) -> None:
    options = tuple(
        Option(label, "fill_slot", {"flow_id": "f", "slot": "destination", "value": value})
        for label, value in (("Heathrow", "LHR"), ("London Gatwick", "LGW"))
    )
    context = booking(values={"origin": "OSL"}, asked="destination", options=options)
    assert values(understand(text, context)) == {"destination": "LGW"}


def test_an_unknown_city_is_named_as_such() -> None:
    mention = understand("to Xanadu", booking(asked="destination", values={})).slots["destination"]
    assert mention.value is None
    assert "Xanadu" in english(mention.invalid)


def test_a_task_without_values_can_interrupt() -> None:
    assert understand("I want to cancel my flight", booking()).flows[0].dact == "cancel_booking"


@pytest.mark.parametrize(
    ("text", "said"), [("from Oslo", {"origin": "OSL"}), ("Oslo", {"destination": "OSL"})]
)
def test_a_name_that_is_said_once_is_one_value(text: str, said: dict[str, str]) -> None:
    """“From Oslo” does not answer where to go."""
    assert values(understand(text, booking(asked="destination", values={}))) == said


@pytest.mark.parametrize(
    ("share", "flow", "score", "kind"),
    [
        (0.9, "export", 0.05, MessageKind.CONFIRMATION),
        (0.5, "export", 0.4, MessageKind.TASK),
        (0.5, "describe_table", 0.4, MessageKind.CONFIRMATION),
    ],
)
def test_an_unsure_yes_is_another_task(share: float, flow: str, score: float, kind: MessageKind) -> None:
    _, system1 = trained("analytics")
    weighed = Weighed("kind:confirmation", share, (FlowScore(Dact(flow), score),))
    evidence = Evidence(tokenize("export that"), [], weighed, {})
    context = NluContext(date(2026, 11, 20), active=system1.flows[Dact("describe_table")])

    assert system1.decider.decide(evidence, context) is kind
