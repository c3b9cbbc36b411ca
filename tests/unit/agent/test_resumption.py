"""IR-2: the interrupted flow that a description refers to."""

from __future__ import annotations

from orchestrator.agent.messages.resumption import find_words, match_words, rank
from orchestrator.dialogue.flow import BaseFlow
from tests.cases import for_each
from tests.unit.dialogue.factories import BOOK_FLIGHT, CHECK_BOOKING, FIND_HOTEL, MODIFY_BOOKING, RENT_CAR


def interrupted(cls: type[BaseFlow], at: float) -> BaseFlow:
    flow = cls(0.0)
    flow.interrupted_at = at
    return flow


def test_words_of_name_and_description_count_and_common_ones_do_not() -> None:
    assert find_words("Let's go back to the Booking, please") == {"booking"}
    flow = interrupted(FIND_HOTEL, at=0.0)
    assert match_words(find_words("the hotel search"), flow) == {"hotel", "search"}
    assert match_words(find_words("back to the hotels"), flow) == {"hotels"}
    assert match_words(find_words("to the car"), flow) == frozenset()


@for_each(
    ("text", "flows", "intent", "meant"),
    [
        ("back to the hotel", {FIND_HOTEL: 0, RENT_CAR: 3_590}, None, [FIND_HOTEL]),
        ("go back to the booking", {CHECK_BOOKING: 0, MODIFY_BOOKING: 3_540}, None, [MODIFY_BOOKING]),
        ("go back to the booking", {CHECK_BOOKING: 0, MODIFY_BOOKING: 60}, None, [MODIFY_BOOKING, CHECK_BOOKING]),
        ("the booking", {CHECK_BOOKING: 0, MODIFY_BOOKING: 60}, "Check", [CHECK_BOOKING]),
        ("the booking", {RENT_CAR: 0, CHECK_BOOKING: 0, MODIFY_BOOKING: 60}, None, [MODIFY_BOOKING, CHECK_BOOKING]),
        ("modify the booking", {CHECK_BOOKING: 0, MODIFY_BOOKING: 60}, None, [MODIFY_BOOKING]),
        ("search the hotel flight", {FIND_HOTEL: 0, BOOK_FLIGHT: 0}, None, [FIND_HOTEL, BOOK_FLIGHT]),
        ("where were we", {RENT_CAR: 0}, None, [RENT_CAR]),
        ("the car", {}, None, []),
    ],
)  # fmt: skip
def test_words_decide_then_the_intent_then_the_time(
    text: str, flows: dict[type[BaseFlow], float], intent: str | None, meant: list[type[BaseFlow]]
) -> None:
    """`flows`: the interrupted flows, with the times of their interruption. Flows as likely are all offered."""
    waiting = [interrupted(cls, at) for cls, at in flows.items()]
    found = rank(text, waiting, now=3_600.0, intent=intent)
    assert [type(flow) for flow in found] == meant


def test_at_most_three_to_choose_from() -> None:
    every = (BOOK_FLIGHT, CHECK_BOOKING, MODIFY_BOOKING, FIND_HOTEL, RENT_CAR)
    assert len(rank("continue", [interrupted(cls, 0.0) for cls in every], now=3_600.0)) == 3
