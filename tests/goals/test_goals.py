"""Simulated users with goals: nothing is done that they did not ask for and agree to, and no ending is told wrongly.

A bound says how many of so many conversations may go wrong in one way. Bounds are only ever lowered. The long forms
measure: `make goals`.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.goals.conversations import Fault, hold, mask_references
from tests.goals.grammar import Grammar, Half, fields_of
from tests.goals.readers import Reader
from tests.goals.worlds import WORLDS

# How many conversations, and of these the most with: wrong deed, untrue ending, broken turn, dead end, lost request.
BOUNDS: Final = {
    ("travel", Reader.SYSTEM1): (120, (0, 0, 0, 1, 0)),
    ("travel", Reader.RIGHT): (60, (0, 0, 0, 0, 0)),
    ("travel", Reader.WRONG): (60, (0, 0, 0, 3, 0)),
    ("analytics", Reader.SYSTEM1): (80, (0, 0, 0, 0, 0)),
    ("analytics", Reader.RIGHT): (50, (0, 0, 0, 0, 0)),
    ("analytics", Reader.WRONG): (40, (0, 0, 0, 2, 0)),
    ("notes", Reader.SYSTEM1): (40, (0, 0, 0, 0, 0)),
    ("notes", Reader.RIGHT): (30, (0, 0, 0, 0, 0)),
    ("notes", Reader.WRONG): (20, (0, 0, 0, 0, 0)),
}

# Under `auto`, how many conversations, and of their turns the most that System 1 is sure of and takes for something
# else, and the most for which a model is asked: either alone could be had at the price of the other.
SURE: Final = {"travel": (60, 9, 53), "analytics": (60, 8, 21), "notes": (40, 1, 49)}


@pytest.mark.parametrize(("domain", "reader"), list(BOUNDS), ids=str)
async def test_what_is_done_is_what_was_asked(domain: str, reader: Reader) -> None:
    count, most = BOUNDS[domain, reader]
    figures = await hold(domain, reader, range(count))
    for fault, bound in zip(Fault, most, strict=True):
        shortest = figures.shortest(fault)
        transcript = "\n".join([shortest[0].faults[0][1], *shortest[0].transcript]) if shortest else ""
        assert figures.count(fault) <= bound, (
            f"{fault} in {figures.count(fault)} conversations:\n{transcript}"
        )


@pytest.mark.parametrize("domain", sorted(SURE))
async def test_system_1_is_sure_of_what_was_meant_and_asks_no_model_for_much_else(domain: str) -> None:
    count, most_misread, most_asked = SURE[domain]
    verdicts = (await hold(domain, Reader.AUTO, range(count))).verdicts
    assert sum(one.misread for one in verdicts) <= most_misread
    assert 0 < sum(one.asked for one in verdicts) <= most_asked


async def test_a_conversation_hangs_on_its_seed_alone() -> None:
    first, second = [
        [mask_references(line) for one in figures.verdicts for line in one.transcript]
        for figures in [await hold("travel", Reader.SYSTEM1, range(5)) for _ in range(2)]
    ]
    assert first == second


@pytest.mark.parametrize("domain", sorted(WORLDS))
async def test_half_of_the_wordings_is_held_out(domain: str) -> None:
    counts = [Grammar(domain, half).count() for half in (Half.SEEN, Half.HELD_OUT, Half.BOTH)]
    assert counts[0] + counts[1] == counts[2]
    assert min(counts[:2]) >= counts[2] / 3


@pytest.mark.parametrize("domain", sorted(WORLDS))
def test_the_blind_stock_has_other_words_for_what_the_other_stock_says(domain: str) -> None:
    """What names an act or a value otherwise would never be said, and nobody looks at what is."""
    known, blind = Grammar(domain, Half.BOTH).acts, Grammar(domain, Half.BLIND).acts
    assert blind.keys() == known.keys()
    assert blind != known
    for act, patterns in blind.items():
        fields = {field for pattern in known[act] for field in fields_of(pattern)}
        assert [one for one in patterns if not fields_of(one) <= fields] == []
