"""NL-2, NL-4: simple forms are read as a whole, and of anything else nothing is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from domains.analytics.reader import NO_FLOW, read
from orchestrator.domain.reader import Heard, Past
from orchestrator.types import Dact
from tests.trained import trained
from tests.unit.analytics.asking import TODAY, Request, faults, read_requests, understood

UNREAD: dict[str, list[str]] = yaml.load(
    Path(__file__).with_name("unread.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
REQUESTS = read_requests("requests.yaml")
WORDS = [*sorted({word for request in REQUESTS for word in request.say.split()}), *",?()'\"-+=", "100", "70s"]
STRANGE = ["unless", "except", "heavier", "biweekly"]
SAID_BEFORE: list[tuple[Past, ...]] = [
    (),
    (Past(Dact("query"), {"table": "cars", "condition": "where origin is Japan"}),),
    (Past(Dact("aggregate"), {"table": "stocks", "function": "average", "column": "price", "by": "month"}),),
    (Past(Dact("compare"), {"table": "cars", "first": "Japan", "second": "USA", "column": "mpg"}),),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.say)
def test_a_request_is_read_as_it_is_meant(request_: Request) -> None:
    """NL-2: flow and slots, by the catalogue's names and the simple forms."""
    assert faults(request_) == []


@pytest.mark.parametrize("said", [said for wordings in UNREAD.values() for said in wordings])
def test_what_has_no_simple_form_is_not_taken_for_something_else(said: str) -> None:
    """NL-4: no condition, group or word is dropped in silence; the user hears what was not taken."""
    found = read(Heard(said, TODAY))
    assert found is not None
    assert (found.flow, found.sure, len(found.assumed)) == (NO_FLOW, 0.0, 1)
    assert understood(Request(said, "", {}))[0] == "unknown"


@pytest.mark.parametrize("said", ["export that as csv", "save this as heavy cars", "export it"])
def test_what_was_worked_out_with_sql_is_not_taken_for_its_whole_table(said: str) -> None:
    """NL-4: neither saved nor exported, and the user hears why."""
    before = (Past(Dact("ask_data"), {}, {"table": "cars"}),)

    found = read(Heard(said, TODAY, completed=before))

    assert found is not None
    assert found.flow == NO_FLOW
    assert "neither save nor export" in found.assumed[0]


@given(st.sampled_from(REQUESTS), st.sampled_from(STRANGE), st.data())
def test_a_word_more_is_never_passed_over(request_: Request, word: str, data: st.DataObject) -> None:
    """NL-4: the word is a part of some value, such as an unknown table, or nothing is read."""
    words = request_.say.split()
    place = data.draw(st.integers(0, len(words)))
    found = read(Heard(" ".join([*words[:place], word, *words[place:]]), TODAY))
    if found is not None and found.flow != NO_FLOW:
        assert word in str({name: mention.value for name, mention in found.slots.items()})


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join),
    st.sampled_from([None, "condition", "column", "table", "values", "new_name"]),
    st.sampled_from(SAID_BEFORE),
)
def test_nothing_that_is_typed_breaks_the_reader(
    text: str, asked: str | None, before: tuple[Past, ...]
) -> None:
    """NL-1: a reading names a known flow or none, or the message is left to what was learnt."""
    active = Dact("delete_rows") if asked else None
    found = read(Heard(text, TODAY, active=active, asked=asked, completed=before))
    assert found is None or found.flow in {NO_FLOW, *trained("analytics")[1].flows}
