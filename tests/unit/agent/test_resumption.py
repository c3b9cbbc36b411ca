"""IR-2: the interrupted flow that a description refers to."""

from __future__ import annotations

import pytest

from orchestrator.agent.messages.resumption import (
    find_words,
    match_words,
    rank,
    score,
)
from orchestrator.dialogue.flow import BaseFlow
from tests.unit.dialogue.factories import BOOK_FLIGHT, CHECK_BOOKING, FIND_HOTEL, MODIFY_BOOKING, RENT_CAR


def interrupted(cls: type[BaseFlow], at: float) -> BaseFlow:
    flow = cls(0.0)
    flow.interrupted_at = at
    return flow


def test_weights() -> None:
    flow = interrupted(BOOK_FLIGHT, at=0.0)
    words = frozenset({"flight"})
    assert score(words, flow, now=0.0) == 15.0
    assert score(words, flow, now=240.0) == 11.0
    assert score(frozenset(), flow, now=240.0) == 1.0
    assert score(frozenset({"book", "flight"}), flow, now=0.0) == 15.0
    assert score(frozenset(), flow, now=0.0, intent="Book") == 8.0
    assert score(frozenset(), flow, now=0.0, intent="Search") == 5.0
    assert score(frozenset(), flow, now=-10.0) == 5.0


def test_words_of_name_and_description_count_and_common_ones_do_not() -> None:
    assert find_words("Let's go back to the Booking, please") == {"booking"}
    flow = interrupted(FIND_HOTEL, at=0.0)
    assert match_words(find_words("the hotel search"), flow) == {"hotel", "search"}
    assert match_words(find_words("back to the hotels"), flow) == {"hotels"}
    assert match_words(find_words("to the car"), flow) == frozenset()


def test_a_word_decides_over_recency() -> None:
    hotel, car = interrupted(FIND_HOTEL, at=0.0), interrupted(RENT_CAR, at=5_990.0)
    assert rank("back to the hotel", [hotel, car], now=6_000.0) == [hotel]


def test_recency_decides_between_equals_when_it_differs_enough() -> None:
    old, new = interrupted(CHECK_BOOKING, at=0.0), interrupted(MODIFY_BOOKING, at=540.0)
    assert rank("go back to the booking", [old, new], now=600.0) == [new]


def test_equals_are_put_to_the_user() -> None:
    check, modify = interrupted(CHECK_BOOKING, at=0.0), interrupted(MODIFY_BOOKING, at=60.0)
    assert rank("go back to the booking", [check, modify], now=3_600.0) == [modify, check]


def test_at_most_three_to_choose_from() -> None:
    flows = [
        interrupted(cls, 0.0) for cls in (BOOK_FLIGHT, CHECK_BOOKING, MODIFY_BOOKING, FIND_HOTEL, RENT_CAR)
    ]
    result = rank("continue", flows, now=3_600.0)
    assert len(result) == 3


def test_only_near_ones_are_offered() -> None:
    near = [interrupted(cls, 0.0) for cls in (CHECK_BOOKING, MODIFY_BOOKING)]
    far = interrupted(RENT_CAR, 0.0)
    result = rank("the booking", [far, *near], now=3_600.0)
    assert set(result) == set(near)


def test_the_same_intent_decides_between_equals() -> None:
    check, modify = interrupted(CHECK_BOOKING, at=0.0), interrupted(MODIFY_BOOKING, at=60.0)
    assert rank("the booking", [check, modify], now=3_600.0, intent="Check") == [check]


@pytest.mark.parametrize("text", ["the hotel booking", "booking a hotel"])
def test_more_telling_words_decide_between_equals(text: str) -> None:
    hotel = interrupted(FIND_HOTEL, at=0.0)
    other = interrupted(BOOK_FLIGHT, at=0.0)
    assert rank("search the hotel flight", [hotel, other], now=3_600.0) == [hotel, other]
    check, modify = interrupted(CHECK_BOOKING, at=0.0), interrupted(MODIFY_BOOKING, at=60.0)
    assert rank("modify the booking", [check, modify], now=3_600.0) == [modify]
    assert rank(text, [check, modify], now=3_600.0) == [modify, check]


def test_one_flow_and_none() -> None:
    flow = interrupted(RENT_CAR, at=0.0)
    assert rank("where were we", [flow], now=99_999.0) == [flow]
    assert rank("the car", [], now=0.0) == []
