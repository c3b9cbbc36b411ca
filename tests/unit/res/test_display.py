"""RS-5: frames as blocks, paged tables, and notices about simplified display."""

from __future__ import annotations

from typing import Any

from tests.cases import for_each
from tests.trained import converse
from tests.unit.res.test_charts import validator
from tests.unit.salaries import Salaries, converse_about

ROWS = [{"person": name, "salary": 100 * place} for place, name in enumerate(("ann", "bob", "eve"), start=1)]


async def ask(rows: list[Any] = ROWS, sections: Any = None, **looks: Any) -> dict[str, Any]:
    """Run a turn that lists the salaries, with a different frame display."""
    return await converse_about(Salaries(rows), sections, **looks).say("list the salaries")


async def test_rows_are_a_table_with_columns_and_one_page() -> None:
    frame = (await ask())["frame"]

    assert frame["data"] == ROWS
    block = frame["block"]
    assert (block["type"], block["rows"], block["page"], block["pages"]) == ("table", 3, 1, 1)
    assert block["columns"] == [
        {"name": "person", "label": "person", "type": "text"},
        {"name": "salary", "label": "salary", "type": "number"},
    ]
    assert block["actions"] == []


async def test_more_rows_than_a_page_have_further_pages() -> None:
    frame = (await ask(ROWS, table_id="t1"))["frame"]
    small = (await ask(ROWS, {"generation": {"page_rows": 2}}, table_id="t1"))["frame"]

    assert frame["block"]["pages"] == 1
    assert (small["block"]["pages"], small["block"]["table_id"]) == (2, "t1")
    assert [action["payload"]["page"] for action in small["block"]["actions"]] == [2]


async def test_rows_that_are_to_be_a_chart_are_drawn() -> None:
    frame = (await ask(display_type="chart", chart_type="auto", display_name="Salaries"))["frame"]

    assert frame["block"]["type"] == "chart"
    assert frame["block"]["note"] is None
    assert list(validator().iter_errors(frame["data"])) == []
    assert frame["data"]["data"]["values"] == ROWS


async def test_a_chart_that_cannot_be_drawn_is_a_table_and_says_so() -> None:
    """RS-5: in the answer and on the block."""
    turn = await ask(display_type="chart", chart_type="auto", data=[{"person": "ann"}])

    block = turn["frame"]["block"]
    assert block["type"] == "table"
    assert "couldn't draw this chart because" in block["note"]
    assert "couldn't draw this chart because" in turn["reply"]


async def test_part_of_the_data_is_told_once_and_stands_on_the_block() -> None:
    turn = await ask(warning="Two of three offices answered.")

    assert turn["reply"].count("Two of three offices answered.") == 1
    assert turn["frame"]["block"]["note"] == "Two of three offices answered."


@for_each(
    ("looks", "kind"),
    [
        ({"display_type": "card", "data": {"paid": True, "total": 3}}, "card"),
        ({"display_type": "list"}, "list"),
        ({"display_type": "toast", "data": {"text": "Saved"}}, "toast"),
        ({"display_type": "confirmation", "data": {"total": 3}}, "confirmation"),
        ({"display_type": "form", "data": [{"name": "day", "type": "date"}]}, "form"),
        ({"display_type": "card", "data": ["a"]}, "list"),
    ],
)
async def test_every_kind_of_frame_has_a_block(looks: dict[str, Any], kind: str) -> None:
    frame = (await ask(**looks))["frame"]

    assert frame["block"]["type"] == frame["display_type"] == kind
    assert (frame["block"]["note"] is not None) == (kind != looks["display_type"])


async def test_the_turn_object_holds_the_seven_parts_of_the_payload() -> None:
    """RS-7"""
    turn = await ask(code="SELECT 1")

    assert {"reply", "text", "actions", "interaction", "code_snippet", "frame", "properties"} <= turn.keys()
    assert turn["text"] == "list the salaries"
    assert turn["code_snippet"] == {"language": "sql", "code": "SELECT 1"}
    assert turn["properties"]["templates"]


async def test_all_frames_of_a_turn_are_delivered_in_their_order() -> None:
    """RS-5: a turn that completes several tasks shows all results."""
    talk = converse("travel")
    turn = await talk.say(
        "Plan a trip to Rome from Oslo from 1 December to 5 December for at most 9000 euros"
    )

    told = [
        tool["tool_id"] for tool in turn["tools"] if tool["tool_id"] in {"flight_search", "fares_compare"}
    ]
    assert [frame["source"][-1] for frame in turn["frames"]] == told
    assert told == ["flight_search", "flight_search", "fares_compare"]
    assert turn["frame"] == turn["frames"][-1]


async def test_fields_are_named_as_the_tool_declares_them() -> None:
    """RS-5: with units, and without fields for programs."""
    talk = converse("travel")
    turn = await talk.say("which flights are there from Oslo to Madrid tomorrow")

    labels = {column["name"]: column["label"] for column in turn["frame"]["block"]["columns"]}
    assert labels["minutes"] == "Duration (min)"
    assert labels["flight_number"] == "Flight"
    assert "flight_id" not in labels
    assert all("flight_id" in row for row in turn["frame"]["data"])
