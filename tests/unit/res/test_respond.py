"""Parts of an answer: forms, suggested replies, notes, and merged results of several tasks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from orchestrator.context import Answer, TurnContext
from orchestrator.res.languages import load_base_templates
from orchestrator.res.response import Response
from orchestrator.res.steps.naturalize import naturalize
from orchestrator.res.templates import Templates
from parley.simulator import Conversation, Simulator
from tests.cases import for_each
from tests.trained import converse, simulate, trained

DOMAINS = Path(__file__).parents[3] / "domains"


def with_form(folder: Path) -> Conversation:
    """Return the travel domain with forms for bookings."""
    place = folder / "formal"
    shutil.copytree(DOMAINS / "travel", place, ignore=shutil.ignore_patterns("__pycache__"))
    path = place / "ontology.yaml"
    text, plain = path.read_text(encoding="utf-8"), "options: {doing: booking a flight, "
    assert plain in text
    path.write_text(text.replace(plain, f"{plain}form: true, "), encoding="utf-8")
    return Simulator.of(place, system1=trained("travel")[1]).converse()


def labels(turn: dict[str, Any]) -> list[str]:
    return [action["label"] for action in turn["actions"]]


async def test_several_missing_values_are_asked_for_in_a_form_and_filled_from_it(tmp_path: Path) -> None:
    """RS-5, NL-6"""
    talk = with_form(tmp_path)
    asked = await talk.say("Book a flight from Oslo")

    form = asked["interaction"]
    assert form["kind"] == "form"
    assert [(field["name"], field["type"]) for field in form["fields"]] == [
        ("destination", "text"),
        ("date", "date"),
    ]
    assert asked["reply"] == "I need a few things to book a flight: the destination and the day of travel."

    submit = form["submit"]
    values = {"destination": "MAD", "date": "2026-12-04"}
    filled = await talk.act(submit["name"], {**submit["payload"], "values": values})

    assert filled["flows"][-1]["slots"] == {"origin": "OSL", **values}
    assert filled["interaction"]["kind"] == "confirmation"


async def test_one_missing_value_is_asked_for_in_words(tmp_path: Path) -> None:
    turn = await with_form(tmp_path).say("Book a flight from Oslo to Madrid")

    assert turn["interaction"] == {
        "kind": "open",
        "level": "specific",
        "slot": "date",
        "flow_id": turn["ambiguity"]["flow_id"],
    }
    assert "What day" in turn["reply"]


async def test_a_confirmation_offers_yes_and_no() -> None:
    """RS-2"""
    turn = await converse("travel").say("Book a flight from Oslo to Madrid tomorrow")

    assert turn["interaction"]["kind"] == "confirmation"
    assert labels(turn) == ["Yes", "No"]


async def test_what_often_comes_next_is_offered_and_can_be_taken() -> None:
    """RS-7: the edge flows of the completed task."""
    talk = converse("travel")
    found = await talk.say("Which flights are there from Oslo to Madrid tomorrow?")

    assert found["interaction"] == {"kind": "none"}
    (action,) = found["actions"]
    assert (action["label"], action["name"]) == ("Book a flight", "start_flow")
    booked = await talk.act(action["name"], action["payload"])
    assert booked["flows"][-1]["slots"]["destination"] == "MAD"


async def test_steps_of_a_plan_can_be_left_out_by_a_click() -> None:
    """PL-4"""
    talk = converse("travel")
    turn = await talk.say("Plan a trip from Oslo to Rome from 4 December to 8 December")

    skips = [action for action in turn["actions"] if action["name"] == "skip_step"]
    assert skips
    assert all(action["label"].startswith("Leave out: ") for action in skips)
    after = await talk.act("skip_step", skips[-1]["payload"])
    assert "leave out" in after["reply"].lower()


class Merging:
    """A model that rephrases its input and records it."""

    def __init__(self) -> None:
        self.drafts: list[str] = []

    def can_answer(self, prompt_id: str | None) -> bool:
        return prompt_id == "res_naturalize"

    async def text(self, prompt_id: str, variables: dict[str, Any], call: Any, *, publish: Any = None) -> str:
        self.drafts.append(variables["draft"])
        return " ".join(variables["draft"].split())


@for_each(
    ("parts", "fixed", "draft", "message"),
    [
        (
            ["One is done.", "Two is done."],
            set(),
            "One is done.\n\nTwo is done.",
            "One is done. Two is done.",
        ),
        (["- a list", "Two is done."], set(), "Two is done.", "- a list\n\nTwo is done."),
        (["One, as is.", "Two is done.", "Three is done."], {0}, "Two is done.\n\nThree is done.", None),
        (
            ["A.", "Fixed.", "Longer than that."],
            {1},
            "Longer than that.",
            "A.\n\nFixed.\n\nLonger than that.",
        ),
    ],
)
async def test_what_several_tasks_say_becomes_one_text(
    parts: list[str], fixed: set[int], draft: str, message: str | None
) -> None:
    """RS-3: filled separately, then merged. Fixed parts keep their text and position."""
    context, writer = await make_world(), Merging()
    answer = Answer(parts=list(parts), fixed=fixed)

    await naturalize(
        Response(
            context,
            answer,
            Templates(context.world.domain, context.world.registry, load_base_templates()),
            writer,
        )
    )

    assert writer.drafts == [draft]
    if message is not None:
        assert answer.message == message


async def make_world() -> TurnContext:
    """Return the world of a turn that completed a flow, in a domain with rephrased answers."""
    kept: list[TurnContext] = []

    simulator = simulate("travel", sections={"generation": {"naturalize": "auto", "fewest_words": 0}})
    agent: Any = simulator.agent
    modules = agent._modules
    respond = modules.res.respond

    async def keep(context: TurnContext) -> Answer:
        kept.append(context)
        return await respond(context)

    modules.res.respond = keep
    await simulator.converse().say("show my bookings")
    return kept[0]
