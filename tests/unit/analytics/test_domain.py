"""The domain as a whole: what it declares, and what a turn hands over for display."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.dialogue.specification import Family, Mode
from orchestrator.simulator import Simulator
from tests.trained import trained

EVALUATIONS = Path(__file__).parents[3] / "domains" / "analytics" / "evaluations"


def simulate() -> Simulator:
    domain, system1 = trained("analytics")
    return Simulator.of(domain, system1=system1)


def test_there_are_flows_of_every_family_that_a_domain_names() -> None:
    flows = trained("analytics")[0].domain.flows.values()
    assert len(flows) >= 24
    assert {flow.spec.family for flow in flows} == {
        Family.PLAN,
        Family.READ,
        Family.PREPARE,
        Family.TRANSFORM,
        Family.SCHEDULE,
    }


def test_every_flow_is_carried_out_in_some_evaluation() -> None:
    carried_out: set[str] = set()
    for path in EVALUATIONS.glob("*.yaml"):
        for conversation in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["conversations"]:
            for turn in conversation["turns"]:
                carried_out |= set(turn.get("expect", {}).get("completed", ()))
    flows = trained("analytics")[0].domain.flows.values()
    assert carried_out == {flow.spec.dact for flow in flows if flow.spec.mode is not Mode.SKILL}


def test_what_loses_data_is_confirmed() -> None:
    flows = trained("analytics")[0].domain.flows
    confirmed = {dact for dact, flow in flows.items() if flow.spec.confirm}
    assert {"deduplicate", "delete_rows", "drop_column", "filter", "cast_column", "merge"} <= confirmed


def test_every_change_can_be_looked_up_and_undone() -> None:
    """RT-9, RT-12: a status query and a compensation for each tool that changes a table."""
    tools = trained("analytics")[0].domain.tools.values()
    changing = [tool for tool in tools if not tool.idempotent and tool.tool_id != "step_undo"]
    tables = [tool for tool in changing if not tool.tool_id.startswith("schedule")]
    assert len(tables) == 19
    assert all((tool.status_query, tool.compensation) == ("step_outcome", "step_undo") for tool in tables)


async def test_a_long_answer_hands_over_its_first_page() -> None:
    """PX-12: data, code, source, display type, the first 512 rows with a `table_id` for the rest."""
    turn = await simulate().converse().say("show airports sorted by city")
    frame = turn["frame"]
    assert (frame["display_type"], len(frame["data"]), frame["rows"]) == ("table", 512, 3376)
    assert frame["table_id"]
    assert frame["code"].endswith('FROM airports ORDER BY "city" ASC NULLS LAST')
    assert frame["warning"] is None


@pytest.mark.parametrize(("text", "rows"), [("how many airports per city", 2675), ("preview airports", 3376)])
async def test_whatever_is_long_is_handed_over_page_by_page(text: str, rows: int) -> None:
    """PX-12: groups and whole tables as well as queries."""
    frame = (await simulate().converse().say(text))["frame"]
    assert (frame["display_type"], len(frame["data"]), frame["rows"]) == ("table", 512, rows)
    assert frame["table_id"]


async def test_a_chart_is_handed_over_as_a_specification() -> None:
    turn = await simulate().converse().say("draw a line chart of price by date in stocks")
    frame = turn["frame"]
    assert (frame["display_type"], frame["chart_type"]) == ("chart", "line")
    assert frame["data"]["mark"]["type"] == "line"
    assert len(frame["data"]["data"]["values"]) == 123


@pytest.mark.parametrize(
    "text",
    [
        'show "name"; DROP TABLE cars; --" of cars',
        "show cars where name is '; DROP TABLE cars; --",
        "describe cars; drop table cars",
        "sort cars by horsepower; delete from cars",
        "add a column x = (select 1) to cars",
        "add a column x = read_csv('/etc/passwd') to cars",
        "rename weight to in0 in cars",
    ],
)
async def test_hostile_messages_change_nothing(text: str) -> None:
    talk = simulate().converse()
    turn = await talk.say(text)
    assert turn["status"] == "done"
    counted = await talk.say("how many rows does the cars table have")
    assert "406" in counted["reply"]
    described = await talk.say("describe the cars table")
    assert "weight (number)" in described["reply"]
    assert "- x " not in described["reply"]


@pytest.mark.parametrize("asking", ["profile movies", "preview", "sort movies by weight"])
async def test_a_task_of_another_kind_is_no_answer(asking: str) -> None:
    """NL-4: it names its own table, which is not the one that was asked for."""
    talk = simulate().converse()
    assert "able" in (await talk.say(asking))["reply"]
    turn = await talk.say("draw a histogram of horsepower in cars")
    assert turn["reply"].startswith("Here is the histogram: horsepower of cars")


async def test_a_table_alone_is_an_answer() -> None:
    talk = simulate().converse()
    await talk.say("profile")
    assert (await talk.say("cars"))["completed"] == ["profile"]
