"""Simulated users with goals: Parley does nothing without request and consent, and reports every ending
correctly.

A bound limits the number of conversations with a kind of failure. Bounds may only decrease. The long forms
measure: `make goals`.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from random import Random
from typing import Final

import pytest

from lab.goals.conversations import Fault, hold, mask_references
from lab.goals.grammar import Grammar, Half, fields_of
from lab.goals.near_yes import NearYes
from lab.goals.readers import Reader
from lab.goals.worlds import WORLDS

# Number of conversations in the long form; the short form uses the first sixth.
CONVERSATIONS: Final = {
    ("travel", Reader.SYSTEM1): 120,
    ("travel", Reader.RIGHT): 60,
    ("travel", Reader.WRONG): 60,
    ("travel", Reader.YES): 40,
    ("notes", Reader.SYSTEM1): 40,
    ("notes", Reader.RIGHT): 30,
    ("notes", Reader.WRONG): 20,
    ("notes", Reader.YES): 20,
}
# Accepted number of conversations with a fault, in the first sixth and in all. Other faults: none.
LET_PASS: Final = {("travel", Reader.WRONG, Fault.DEAD_END): (2, 3)}


def in_short(part: str) -> pytest.MarkDecorator:
    whole = pytest.param(True, id="whole", marks=pytest.mark.slow)
    return pytest.mark.parametrize("whole", [pytest.param(False, id=part), whole])


@in_short("sixth")
@pytest.mark.parametrize(("domain", "reader"), list(CONVERSATIONS), ids=str)
async def test_what_is_done_is_what_was_asked(domain: str, reader: Reader, whole: bool) -> None:
    count = CONVERSATIONS[domain, reader]
    figures = await hold(domain, reader, range(count if whole else count // 6))
    for fault in Fault:
        bound = LET_PASS.get((domain, reader, fault), (0, 0))[whole]
        shortest = figures.shortest(fault)
        transcript = "\n".join([shortest[0].faults[0][1], *shortest[0].transcript]) if shortest else ""
        assert figures.count(fault) <= bound, (
            f"{fault} in {figures.count(fault)} conversations:\n{transcript}"
        )


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
    """Differently named acts and values would never be used, and their checks would be empty."""
    known, blind = Grammar(domain, Half.BOTH).acts, Grammar(domain, Half.BLIND).acts
    assert blind.keys() == known.keys()
    assert blind != known
    for act, patterns in blind.items():
        fields = {field for pattern in known[act] for field in fields_of(pattern)}
        assert [one for one in patterns if not fields_of(one) <= fields] == []


def test_a_pair_differs_in_one_word() -> None:
    for plain, near in NearYes(Half.BOTH).pairs:
        one, other = plain.split(), near.split()
        same = sum(block.size for block in SequenceMatcher(None, one, other).get_matching_blocks())
        assert max(len(one), len(other)) - same == 1, (plain, near)


def test_held_out_near_confirmations_use_other_words() -> None:
    seen, held_out = NearYes(Half.SEEN), NearYes(Half.HELD_OUT)
    assert not set(seen.pairs) & set(held_out.pairs)
    assert min(len(seen.pairs), len(held_out.pairs)) >= 8


@pytest.mark.parametrize("half", [Half.SEEN, Half.BLIND], ids=str)
def test_near_confirmations_are_never_confirmations_of_the_phrases(half: Half) -> None:
    chance, near = Random(0), NearYes(half)
    said = {near.say(chance, kind) for kind in near.kinds for _ in range(100)} | {
        one for _, one in near.pairs
    }
    grammar = Grammar("travel", half)
    assert len(said) > 100
    assert not said & {grammar.say("yes", {}, chance).text.lower() for _ in range(2000)}
