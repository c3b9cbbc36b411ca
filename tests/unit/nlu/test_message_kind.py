"""The kind of a message, which depends on its words and the open question (NL-4, IR-1)."""

from datetime import date

import pytest

from orchestrator.dialogue.understanding import FlowScore, MessageKind
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.classifier import Weighed
from orchestrator.nlu.system1.message_kind import Evidence
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.trained import trained
from tests.unit.nlu.flights import booking, understand, values


def test_yes_is_a_value_where_the_question_asks_for_yes_or_no() -> None:
    understanding = understand("yes please", booking(asked="wifi"))
    assert understanding.kind is MessageKind.SLOT_VALUE
    assert values(understanding) == {"wifi": True}


def test_free_text_is_taken_as_it_is_but_not_a_cancellation() -> None:
    asked = booking(asked="note")
    assert values(understand("my suitcase is bright orange", asked)) == {
        "note": "my suitcase is bright orange"
    }
    assert understand("never mind", asked).kind is MessageKind.CANCELLATION


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
