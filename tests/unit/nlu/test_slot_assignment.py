"""Assignment of values to slots, by the words around them (NL-2)."""

import pytest

from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.system1.slot_assignment import SlotAssigner, is_negated
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.unit.nlu.flights import TODAY, booking, understand, values


def test_accents_do_not_matter() -> None:
    assert values(understand("book a flight from Oslo to Sao Paulo"))["destination"] == "GRU"


def test_one_is_not_always_a_number() -> None:
    assert "passengers" not in understand("find the best one", booking()).slots


def test_a_number_that_another_flow_takes_is_none_of_this_one() -> None:
    """Even before the first message of the other flow."""
    takes = {"fly": "passengers", "pack": "bags"}
    fly, pack = (
        FlowSpec(Dact(dact), f"0f{place}", "Do", Family.READ, slots={slot: SlotSpec(slot, "number")})
        for place, (dact, slot) in enumerate(takes.items())
    )
    extractor, utterance = Extractor([fly, pack], {}, frozenset()), tokenize("with two bags")
    candidates = extractor.find(utterance, TODAY)
    assigner = SlotAssigner(extractor, [fly, pack])

    assert assigner.assign(utterance, candidates, fly, None) == {}
    assert assigner.assign(utterance, candidates, pack, None)["bags"].value == 2


@pytest.mark.parametrize("before", ["not", "not a", "not with", "not my", "instead of", "not the"])
def test_what_is_not_meant_may_have_small_words_before_it(before: str) -> None:
    utterance = tokenize(f"a filling, {before} cleaning")
    last = len(utterance.words)
    assert is_negated(utterance, Candidate(last - 1, last, "value:treatment", "cleaning"))
    assert not is_negated(utterance, Candidate(1, 2, "value:treatment", "filling"))


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("no , do the treatment on", "first_day"),
        ("the check-up will be on the", "check_day"),
        ("with dr berg until the", "check_day"),
        ("a treatment with dr berg on", "first_day"),
        ("my check-up and the treatment on", "first_day"),
        ("the treatment and check-up on", "check_day"),
        ("on", "first_day"),
    ],
)
def test_the_words_before_a_day_may_name_one_of_several(words: str, day: str) -> None:
    """IR-4: by the slot's name or description, if no other slot has the word."""
    days = {
        slot.name: slot
        for slot in (
            SlotSpec("first_day", "date", description="the day of the treatment"),
            SlotSpec("check_day", "date", description="the day of the check-up", not_before="first_day"),
        )
    }
    visit = FlowSpec(Dact("visit"), "02B", "Book", Family.TRANSFORM, slots=days)
    extractor, utterance = Extractor([visit], {}, frozenset()), tokenize(f"{words} 8 december")
    found = SlotAssigner(extractor, [visit]).assign(utterance, extractor.find(utterance, TODAY), visit, None)

    assert list(found) == [day]
