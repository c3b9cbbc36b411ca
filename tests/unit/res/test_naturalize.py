"""RS-3: a rewriting is used only if it says what the draft says."""

from __future__ import annotations

import pytest

from orchestrator.res.facts import find_fault

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


@pytest.mark.parametrize(
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
