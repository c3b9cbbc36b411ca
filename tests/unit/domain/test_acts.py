"""FS-5: flows with common acts are near for re-routing, and look-ups among them are edge flows."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.domain.acts import SHARED, count_shared, propose_dax, read_acts
from orchestrator.domain.summary import summarize
from orchestrator.nlu.contemplate import FailedRequest, narrow
from orchestrator.types import Dact
from tests.cases import for_each
from tests.unit.domain.factories import ONTOLOGY, edit, write_domain

BOOKS = """\
acts: {find: "1", rank: "2", loan: "A", book: "B", send: "C"}
flows:
  find_books: {dax: "1b", intent: Read, description: Find books, examples: [find books]}
  rank_books: {dax: "12B", intent: Read, description: Rank books, examples: [rank books]}
  find_loans: {dax: "1A", intent: Read, description: Find loans, examples: [find loans]}
  send_books: {dax: "1BC", intent: Transform, description: Send books, examples: [send books]}
  rank_loans: {dax: "12A", intent: Read, description: Rank loans, examples: [rank loans], edge_flows: [find_books]}
"""


def test_look_ups_with_two_common_acts_are_edge_flows_unless_edges_are_declared(tmp_path: Path) -> None:
    domain = load_domain(write_domain(tmp_path, {"ontology.yaml": BOOKS})).domain

    edges = {dact: flow.spec.edge_flows for dact, flow in domain.flows.items()}
    assert edges == {
        "find_books": ("rank_books",),
        "rank_books": ("find_books", "rank_loans"),
        "find_loans": ("rank_loans",),
        "send_books": ("find_books", "rank_books"),
        "rank_loans": ("find_books",),
    }
    assert summarize(domain)[1].acts == ("find", "rank", "book")


def test_a_re_route_tries_flows_with_common_acts_first() -> None:
    def flow(dact: str, dax: str) -> FlowSpec:
        return FlowSpec(Dact(dact), dax, "Read", Family.READ)

    failed = flow("find_books", "01B")
    others = {one.dact: one for one in (flow("a", "00C"), flow("b", "01C"), flow("c", "1B2"))}

    left = narrow(FailedRequest("find it", failed, {}), others)

    assert [one.dact for one in left] == ["c", "b", "a"]


@for_each(
    ("words", "description", "family", "dax"),
    [
        ("cancel_booking", "Cancel a booking", Family.TRANSFORM, "006"),
        ("schedule_report", "Send a report every week", Family.SCHEDULE, "09C"),
        ("tell_reminder", "Remind you now", Family.SCHEDULE, "090"),
        ("wipe_disk", "Wipe a disk", Family.TRANSFORM, "005"),
        ("chatter", "", Family.CONVERSE, "000"),
    ],
)
def test_a_dax_is_proposed_from_the_words_of_a_flow(
    words: str, description: str, family: Family, dax: str
) -> None:
    assert propose_dax(SHARED, family, words.split("_"), description.lower().split()) == dax


def test_zeros_at_the_front_are_no_acts() -> None:
    assert [read_acts(dax) for dax in ("001", "02B", "0A0", "000")] == ["1", "2B", "A0", "0"]
    assert (count_shared("001", "002"), count_shared("02B", "0B1"), count_shared("090", "000")) == (0, 1, 1)


def with_acts(acts: str, dax: str) -> str:
    return f"acts: {acts}\n" + edit(ONTOLOGY, ('"001"', '"003"'), ('"02B"', f'"{dax}"'))


@pytest.mark.parametrize(
    ("acts", "dax", "told"),
    [
        ("{find: '3'}", "32", "flows.book_flight.dax: has no act for '2'; the acts are 3 (find)"),
        ("{find: '3', book: 'g'}", "3", "acts.book: should be one hexadecimal digit (it is 'g')"),
        ("{find: '3', book: '3'}", "3", "acts.book: '3' is already assigned to find"),
        (
            "{find: '3', book: '4'}",
            "3434",
            "should be one to 3 different acts, one digit each (it is '3434')",
        ),
        ("{find: '3', book: '4'}", "", "should be one to 3 different acts, one digit each (it is '')"),
    ],
)
def test_a_dax_is_composed_of_the_acts_of_its_domain(acts: str, dax: str, told: str, tmp_path: Path) -> None:
    """FS-5"""
    problems = check_domain(write_domain(tmp_path, {"ontology.yaml": with_acts(acts, dax)}))

    assert any(told in str(problem) for problem in problems), problems


def test_a_flow_without_a_dax_gets_the_acts_that_its_words_name(tmp_path: Path) -> None:
    """FS-5: flows with the same acts have the same dax."""
    ontology = edit(ONTOLOGY, ('    dax: "001"\n', ""), ('    dax: "02B"\n', ""))
    flows = load_domain(write_domain(tmp_path, {"ontology.yaml": ontology})).domain.flows

    assert {dact: flow.spec.dax for dact, flow in flows.items()} == {
        "search_flights": "001",
        "book_flight": "004",
    }
