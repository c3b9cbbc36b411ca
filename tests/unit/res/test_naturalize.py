"""RS-3: a rephrased answer is used only if it has the same content."""

from __future__ import annotations

import pytest

from orchestrator.res.steps.naturalize import find_fault
from tests.cases import for_each

DRAFT = "Booked. Your reference is PX7K2M: DY1742 from Oslo to Madrid, Friday 27 November, 07:10–10:35, EUR 129.90."


@pytest.mark.parametrize(
    "text",
    [
        DRAFT,
        "DY1742 from Oslo to Madrid, Friday 27 November (07:10–10:35), is yours for EUR 129.90 as PX7K2M.",
    ],
)
def test_the_same_facts_in_other_words(text: str):
    assert find_fault(DRAFT, text) is None


@for_each(
    "text",
    [
        "You are booked!",
        DRAFT.replace("PX7K2M", "PX7K2N"),
        DRAFT.replace("129.90", "129.99"),
        DRAFT.replace("EUR", "USD"),
        DRAFT + " Call 555-0100 for help.",
        DRAFT + " See https://example.org for more.",
        DRAFT + " It was a pleasure." * 30,
    ],
)
def test_facts_that_are_lost_added_or_drowned(text: str):
    assert find_fault(DRAFT, text) is not None


@for_each(
    ("draft", "text"),
    [
        ("You fly from Oslo to Madrid.", "You fly from Oslo to Paris."),
        ("You fly from Oslo to Madrid.", "You fly to Madrid."),
        ("The booking is confirmed.", "The booking is not confirmed."),
        ("I could not find it.", "I could find it."),
        ("Your bags are booked.", "Your bags are booked, and Anna sends her love."),
        ("You fly from Oslo to Madrid.", "You fly from Madrid to Oslo."),
        ("You fly from Oslo to Madrid.", "To Oslo you fly, from Madrid."),
        ("It leaves at 07:10 and arrives at 10:35.", "It leaves at 10:35 and arrives at 07:10."),
        ("It leaves before Monday.", "It leaves after Monday."),
        ("Anna invited Bruno.", "It was Bruno who invited Anna."),
        ("Sales rose from 12 to 30.", "Sales fell to 12 from 30."),
    ],
)
def test_names_and_yes_or_no_are_facts_too(draft: str, text: str):
    assert find_fault(draft, text) is not None


@for_each(
    ("draft", "text"),
    [
        ("You fly from Oslo to Madrid.", "From Oslo you'll fly to Madrid. Enjoy!"),
        ("Oslo is where you leave from.", "You leave from Oslo."),
        ("Nothing is open.", "There is nothing open now."),
        ("From Oslo to Madrid on Friday.", "On Friday you fly to Madrid, from Oslo."),
        ("Sales rose from 12 to 30.", "Sales are up to 30 from 12."),
    ],
)
def test_other_words_are_free(draft: str, text: str):
    assert find_fault(draft, text) is None


def test_values_in_small_letters_are_kept_where_the_draft_has_them():
    assert find_fault("In business, then.", "As you like.", values=("business",)) is not None
    assert find_fault("As you like.", "Fine by me.", values=("business",)) is None


def test_capitals_are_no_names_where_the_language_writes_nouns_with_them():
    assert find_fault("The seat is 4A.", "Ihr Platz ist 4A.", english=False) is None


def test_a_rewriting_does_not_say_a_sentence_twice():
    """RS-3: small models repeat themselves."""
    draft = "You have no bookings yet. Tell me where you would like to fly."
    once = "There are no bookings yet. Where would you like to fly?"

    assert find_fault(draft, once) is None
    assert find_fault(draft, f"{once} There are no bookings yet.") is not None
    assert find_fault("No. No.", "No. No.") is None


def test_a_rewriting_is_not_twice_as_long_as_its_draft():
    """RS-3"""
    draft = "You have no bookings yet."
    assert (
        find_fault(draft, "You have no bookings yet, but of course you can make one whenever you like.")
        is not None
    )
