"""The rules of a conversation apply in every domain (IR-4, IR-5, PX-18).

A library, judged by its stored loans and replies, and never by states.
"""

from __future__ import annotations

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse, converse_after
from tests.unit.agent.test_days_in_order import LOAN


async def loans(talk: Conversation) -> list[tuple[str, str, str, str]]:
    """Return book, first and last day, and branch of each current loan."""
    records = talk.simulator.records.get(DEFAULT_TENANT)
    found = [] if records is None else await records.find("loans", {"status": "made"})
    return [(one["book_id"], one["from"][5:], one["until"][5:], one["branch"]) for one in found]


@for_each(
    ("words", "days"),
    [
        ("until 8 december please", ("12-01", "12-08")),
        ("until the 8th at the centre", ("12-01", "12-08")),
        ("I bring it back on 8 december", ("12-01", "12-08")),
        ("no, return it on 8 december", ("12-01", "12-08")),
        ("I'll fetch it on 3 december", ("12-03", "12-05")),
        ("no, fetch it by 3 december", ("12-03", "12-05")),
    ],
)
async def test_the_words_for_a_day_say_which_day_it_is(words: str, days: tuple[str, str]) -> None:
    """IR-4: no example of the domain has these words."""
    talk = await converse_after("library", LOAN, words, "yes")
    assert await loans(talk) == [("B01", *days, "centre")]


@for_each(
    ("words", "book"),
    [
        ("borrow the shortest one", "B02"),
        ("borrow the oldest one", "B03"),
        ("I'd like to borrow the longest book", "B03"),
        ("lend me the Mansfield one", "B03"),
        ("borrow the Park one", "B03"),
        ("borrow the second one", "B02"),
    ],
)
async def test_a_row_is_taken_by_the_words_of_the_task_that_takes_it(words: str, book: str) -> None:
    """IR-5: "borrow" describes a row no more than "book" does."""
    talk = converse("library")
    await talk.say("find books by Austen")
    await talk.say(words)
    await talk.say("from 1 december to 5 december")
    await talk.say("yes")
    assert await loans(talk) == [(book, "12-01", "12-05", "centre")]


async def test_an_offer_tells_what_was_found_for_it() -> None:
    """PX-18: users can't agree to a price that is not displayed."""
    offer = (await converse("library").say(LOAN))["reply"]
    assert "- year: 1815 (found)\n- pages: 474 (found)\n\nShall I go ahead?" in offer
    assert offer.count("Emma") == 1


async def test_what_was_done_is_told_with_what_it_gave() -> None:
    """RS-3: cancellation needs the code."""
    talk = await converse_after("library", LOAN)
    done = (await talk.say("yes"))["reply"]
    records = await talk.simulator.records[DEFAULT_TENANT].find("loans", {})
    assert done == f"Done: borrow book. The loan code is {records[0]['loan_code']}."
