"""A domain's reader is asked before what was learnt, and leaves to it what it does not read."""

from __future__ import annotations

from datetime import date

from orchestrator.dialogue.understanding import MessageKind
from orchestrator.domain.reader import Heard, Mention, Read
from orchestrator.nlu.nlu_context import PastFlow, Situation
from orchestrator.nlu.readers.domain_reader import as_understanding, heard
from orchestrator.nlu.readers.system1 import System1
from orchestrator.types import Dact
from tests.unit.nlu.flights import AIRPORTS, BOOK, SEARCH

TODAY = date(2026, 11, 20)
FLOWS = {flow.dact: flow for flow in (BOOK, SEARCH)}


def read_code(said: Heard) -> Read | None:
    """Reads “OSL>MAD”."""
    origin, sign, destination = said.text.partition(">")
    if not sign:
        return None
    slots = {"origin": Mention(origin), "destination": Mention(destination)}
    return Read(Dact("search_flights"), slots, 0.9, ("I took “>” for “to”.",))


def test_what_a_reader_reads_is_not_asked_of_the_classifier() -> None:
    """NL-2: flow, values and how sure it is come from the reader; what it assumed goes along."""
    system1 = System1.train(FLOWS.values(), {"airport": AIRPORTS}, reader=read_code)
    read = system1.think("OSL>MAD", Situation(TODAY))
    assert (read.understanding.kind, read.understanding.flows[0].dact) == (
        MessageKind.TASK,
        "search_flights",
    )
    assert {name: mention.value for name, mention in read.understanding.slots.items()} == {
        "origin": "OSL",
        "destination": "MAD",
    }
    assert read.confidence == 0.9
    assert read.understanding.assumed == ("I took “>” for “to”.",)
    left = system1.think("book a flight from Oslo to Madrid", Situation(TODAY))
    assert left.understanding.flows[0].dact == "book_flight"


def test_a_reader_hears_where_the_conversation_stands() -> None:
    past = PastFlow(SEARCH, {"origin": "OSL"}, {"flight_id": "X1"})
    situation = Situation(TODAY, active=BOOK, asked="date", values={"origin": "MAD"}, completed=(past,))
    said = heard("tomorrow", situation)
    assert (said.active, said.asked, said.values) == ("book_flight", "date", {"origin": "MAD"})
    assert (said.completed[0].dact, said.completed[0].outputs) == ("search_flights", {"flight_id": "X1"})


def test_a_value_for_what_is_asked_is_an_answer_and_another_than_the_known_one_a_correction() -> None:
    """NL-4: of the active flow; what does not concern the open question is a task."""
    asked = Situation(TODAY, active=BOOK, asked="date", values={"origin": "OSL"})
    answer = Read(BOOK.dact, {"date": Mention("2026-11-21")})
    assert as_understanding(answer, "…", FLOWS, asked).kind is MessageKind.SLOT_VALUE
    both = Read(BOOK.dact, {"date": Mention("2026-11-21"), "origin": Mention("MAD")})
    assert as_understanding(both, "…", FLOWS, asked).kind is MessageKind.CORRECTION
    anew = Read(BOOK.dact, {"origin": Mention("MAD")})
    assert as_understanding(anew, "…", FLOWS, asked).kind is MessageKind.TASK
