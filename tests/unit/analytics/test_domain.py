"""The domain as a whole: its declarations, and its behavior without a model."""

from __future__ import annotations

from pathlib import Path

import yaml

from orchestrator.dialogue.specification import Mode
from tests.cases import for_each
from tests.trained import converse, converse_after, trained

EVALUATIONS = Path(__file__).parents[3] / "domains" / "analytics" / "evaluations"


def test_every_flow_that_needs_no_model_is_completed_in_some_evaluation() -> None:
    completed: set[str] = set()
    for path in EVALUATIONS.glob("*.yaml"):
        for conversation in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["conversations"]:
            for turn in conversation["turns"]:
                completed |= set(turn.get("expect", {}).get("completed", ()))
    flows = trained("analytics")[0].domain.flows.values()
    assert completed == {flow.spec.dact for flow in flows if flow.spec.mode is not Mode.SKILL}


def test_what_removes_something_is_confirmed() -> None:
    flows = trained("analytics")[0].domain.flows
    assert {dact for dact, flow in flows.items() if flow.spec.confirm} == {"drop_table", "cancel_schedule"}


@for_each(
    "question",
    [
        "average mpg by origin",
        "show Japanese cars",
        "which company grew most",
        "how many rows does weather have",
        "use SQL to find the heaviest car",
        "cars where horsepower is over 200",
    ],
)
async def test_a_question_says_that_it_needs_a_model(question: str) -> None:
    """PX-7: the answer also lists the features that work without a model."""
    turn = await converse("analytics").say(question)
    assert "needs a language model" in turn["reply"]
    assert "Without one, I can list and describe tables" in turn["reply"]
    assert turn["tools"] == []


async def test_a_long_table_hands_over_its_first_page() -> None:
    """PX-12: data, code, source, display type, and the first 512 rows with a `table_id` for the rest."""
    turn = await converse("analytics").say("describe airports")
    frame = turn["frame"]
    assert (frame["display_type"], len(frame["data"]), frame["rows"]) == ("table", 512, 3376)
    assert frame["table_id"]
    assert frame["code"] == 'SELECT * FROM "airports"'
    assert frame["warning"] is None


async def test_a_chart_is_handed_over_as_a_specification() -> None:
    turn = await converse("analytics").say("draw a line chart of price by date in stocks")
    frame = turn["frame"]
    assert (frame["display_type"], frame["chart_type"]) == ("chart", "line")
    assert frame["data"]["mark"]["type"] == "line"
    assert len(frame["data"]["data"]["values"]) == 123


async def test_an_unknown_table_is_asked_for_whatever_was_shown_before() -> None:
    talk = await converse_after("analytics", "describe cars")
    turn = await talk.say("describe unicorns")
    assert turn["completed"] == []
    assert "There's no table 'unicorns'" in turn["reply"]
    assert (await talk.say("wheat"))["completed"] == ["describe_table"]


async def test_a_chart_leaves_the_table_that_lacks_its_columns() -> None:
    talk = await converse_after("analytics", "describe cars")
    turn = await talk.say("draw a bar chart of average yield by site")
    assert "Average yield of barley by site" in turn["reply"]


async def test_a_given_table_is_not_dropped() -> None:
    talk = converse("analytics")
    turn = await talk.say("drop the table cars")
    assert "only saved tables can be dropped" in turn["reply"]
    assert turn["tools"] == []
