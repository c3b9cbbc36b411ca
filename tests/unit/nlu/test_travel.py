"""NLU on the shipped travel domain: new wordings, and the three entry points."""

from functools import cache

import pytest

from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import MessageKind
from orchestrator.nlu.module import NLU
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.trained import trained
from tests.unit.nlu.flights import FakeTurn

UNTAUGHT = [
    ("I gotta be in Rome by Friday, coming from Oslo, book me something", "book_flight"),
    ("reserve two seats on a plane to Lisbon tomorrow", "book_flight"),
    ("any connections between Bergen and Paris on Saturday?", "search_flights"),
    ("list the flights going to Madrid next week", "search_flights"),
    ("pull up booking PX7K2M for me", "check_booking"),
    ("please get rid of my reservation PX7K2M", "cancel_booking"),
    ("can I move my booking PX7K2M to December 5", "modify_booking"),
    ("put one more suitcase on booking PX7K2M", "add_baggage"),
    ("I'd rather sit at the window on booking PX7K2M", "choose_seat"),
    ("has flight SK 1465 been delayed", "check_flight_status"),
]


@cache
def nlu() -> NLU:
    loaded, system1 = trained("travel")
    return NLU(loaded.domain, system1=system1)


def state() -> DialogueState:
    return DialogueState.new("session_1")


def test_wordings_that_the_domain_does_not_hold() -> None:
    examples = {text.lower() for flow in nlu().system1.flows.values() for text in flow.examples}
    assert not examples & {text.lower() for text, _dact in UNTAUGHT}


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[[[[',
        "asdfgh qwerty",
        "<<<>>> ### $$$",
        "SELECT * FROM users; DROP TABLE x",
        "lorem ipsum dolor",
    ],
)
async def test_what_says_nothing_starts_nothing(text: str) -> None:
    """NL-4: no kind is likely enough, so the reply is a question."""
    understanding = await nlu().think(text, state(), FakeTurn())
    assert understanding.kind is MessageKind.UNKNOWN


async def test_most_untaught_wordings_find_their_flow() -> None:
    wrong: list[str] = []
    for text, dact in UNTAUGHT:
        understanding = await nlu().think(text, state(), FakeTurn())
        if not understanding.flows or understanding.flows[0].dact != dact:
            wrong.append(text)
    assert len(wrong) <= 2, wrong


async def test_second_thoughts_never_return_what_failed() -> None:
    text = "I need a flight from Oslo to Madrid"
    book = nlu().system1.flows[Dact("book_flight")]
    found = await nlu().contemplate(text, state(), FakeTurn(), book, {})
    assert found.flows
    assert all(flow.dact != "book_flight" for flow in found.flows)


@pytest.mark.parametrize(("said", "code"), [("from los angeles", "LAX"), ("to San Francisco please", "SFO")])
def test_a_name_may_begin_with_a_word_that_is_a_code(said: str, code: str) -> None:
    """LOS and SAN are airport codes."""
    [found] = nlu().system1.extractor.gazetteer.find(tokenize(said))
    assert found.reading.value == code
