"""PX-12, RS-5: requests for other table pages in a message."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from tests.trained import converse
from tests.unit.salaries import Salaries, converse_about

ROWS = [{"person": f"person {at}", "salary": at} for at in range(1, 8)]
PAGES_OF_THREE = {"generation": {"page_rows": 3}}


class Paged(Salaries):
    """A service that keeps a table with pages of two rows."""

    def __init__(self) -> None:
        super().__init__(ROWS)
        self.calls: list[ToolCall] = []
        self.is_gone = False

    async def page(self, table_id: str, number: int, call: ToolCall) -> dict[str, Any]:
        self.calls.append(call)
        if self.is_gone:
            raise ToolFailure(FailureCategory.NOT_FOUND, f"There's no table {table_id}.")
        rows = ROWS[(number - 1) * 2 : number * 2]
        return {"rows": rows, "page": number, "pages": 4, "row_count": len(ROWS)}


def page_of(turn: dict[str, Any]) -> tuple[int, int, list[int]]:
    frame = turn["frame"]
    return frame["block"]["page"], frame["block"]["pages"], [row["salary"] for row in frame["data"]]


async def test_pages_are_turned_by_words() -> None:
    talk = converse_about(Salaries(ROWS), PAGES_OF_THREE)
    await talk.say("list the salaries")

    second = await talk.say("next page please")
    assert page_of(second) == (2, 3, [4, 5, 6])
    assert second["reply"].startswith("Rows 4 to 6 of 7 (page 2 of 3):\n- person 4, 4")
    assert [one["label"] for one in second["frame"]["block"]["actions"]] == ["Previous page", "Next page"]
    assert page_of(await talk.say("Show the rest!")) == (3, 3, [7])
    assert page_of(await talk.say("/page 2")) == (2, 3, [4, 5, 6])
    assert page_of(await talk.say("the last page")) == (3, 3, [7])
    assert page_of(await talk.say("page 2 of the table, please")) == (2, 3, [4, 5, 6])
    assert page_of(await talk.say("the previous page")) == (1, 3, [1, 2, 3])
    assert page_of(await talk.say("more")) == (2, 3, [4, 5, 6])


@pytest.mark.parametrize(("said", "told"), [("page 4", "no page 4"), ("previous page", "no page 0")])
async def test_a_page_out_of_range_is_told_and_the_present_one_stays(said: str, told: str) -> None:
    talk = converse_about(Salaries(ROWS), PAGES_OF_THREE)
    await talk.say("list the salaries")

    turn = await talk.say(said)

    assert told in turn["reply"]
    assert "3 pages, and this is page 1" in turn["reply"]
    assert turn["frame"] is None
    assert page_of(await talk.say("next page"))[0] == 2


async def test_a_table_of_one_page_has_no_other() -> None:
    talk = converse_about(Salaries(ROWS))
    await talk.say("list the salaries")

    assert (await talk.say("next page"))["reply"] == "That's the whole table; it has one page."
    assert "one page" not in (await talk.say("more"))["reply"]


async def test_pages_that_only_the_service_has_are_read_once_from_it() -> None:
    service = Paged()
    talk = converse_about(service, data=ROWS[:2], rows=len(ROWS), table_id="t1")
    first = await talk.say("list the salaries")
    assert page_of(first) == (1, 4, [1, 2])

    assert page_of(await talk.say("next page")) == (2, 4, [3, 4])
    assert page_of(await talk.say("page 4")) == (4, 4, [7])
    assert [(call.session_id, call.tenant_id) for call in service.calls] == [
        (talk.session_id, talk.tenant_id)
    ] * 2
    service.is_gone = True
    assert (await talk.say("page 2"))["reply"] == "I can't show page 2 now; the table may be gone."


async def test_without_a_table_the_words_are_a_message_like_others() -> None:
    turn = await converse_about(Salaries(ROWS), PAGES_OF_THREE).say("next page")

    assert {"page", "no_page"}.isdisjoint(turn["properties"]["templates"])


async def test_hidden_columns_are_not_told() -> None:
    talk = converse("travel", sections=PAGES_OF_THREE)
    await talk.say("show me flights from Oslo to London on Monday")

    turn = await talk.say("next page")

    assert "flight_id" in turn["frame"]["data"][0]
    assert turn["frame"]["data"][0]["flight_id"] not in turn["reply"]
    assert turn["frame"]["data"][0]["flight_number"] in turn["reply"]
