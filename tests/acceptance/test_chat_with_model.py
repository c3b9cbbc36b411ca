"""A user's first minutes with a model: `parley chat` in a terminal, with the inputs in docs/models.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.testing.scripted_model import (
    Answer,
    Computed,
    Reply,
    Request,
    Rule,
    Script,
    ScriptedModel,
    ToolUse,
)
from tests.acceptance.test_terminal import Terminal, terminal

WEEK = timedelta(days=7)
TODAY = datetime.now(UTC).date()
LEAVE, BACK = TODAY + WEEK, TODAY + WEEK + timedelta(days=6)
ADVICE = f"advise me on a trip from Oslo to Madrid on {LEAVE:%-d %B}"
TRIP = f"plan a trip from Oslo to Madrid from {LEAVE:%-d %B} to {BACK:%-d %B}, with two days each in Rome and Milan"
LOUNGE = "what do I pay for the lounge?"
HORSEPOWER = "what is the average horsepower by origin"
BY_ORIGIN = "SELECT origin, avg(horsepower) AS average_horsepower FROM cars GROUP BY origin ORDER BY origin"


def pairs(**values: Any) -> list[dict[str, str]]:
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def task(dact: str, *beyond: str, **slots: Any) -> Answer:
    scores = [{"dact": dact, "score": 0.95}]
    return Answer(
        json={"kind": "task", "flows": scores, "slots": pairs(**slots), "not_understood": [*beyond]}
    )


def think(request: Request) -> Reply:
    trip = {"origin": "Oslo", "destination": "Madrid", "date": LEAVE}
    if request.said == ADVICE:
        return task("trip_advice", **trip)
    if request.said == TRIP:
        return task("plan_trip", "two days each in Rome and Milan", **trip, return_date=BACK)
    if request.said == HORSEPOWER:
        return task("ask_data")
    return Answer(json={"kind": "digression", "digression": "question", "flows": [], "slots": []})


def results(request: Request) -> list[dict[str, Any]]:
    told = [json.loads(one["content"]) for one in request.messages if one["role"] == "tool"]
    return [one.get("data", one) for one in told]


def finish(**data: Any) -> ToolUse:
    """End a skill with a result that is written slowly."""
    return ToolUse(calls=(("finish", {"outcome": "success", "data": data}),), piece_delay_s=0.05)


def run_skill(request: Request) -> Reply:
    tools, found = str(request.body["tools"]), results(request)
    if "flight_search" in tools:
        return advise(request, found)
    if "sql_run" in tools:
        return count(found)
    lounge = request.data["known"]["passages"][0]
    return finish(answer="It costs 35 euros a visit, unless you fly in business.", sources=[lounge["source"]])


def advise(request: Request, found: list[dict[str, Any]]) -> Reply:
    if not found:
        return ToolUse(calls=(("flight_search", {"origin": "OSL", "destination": "MAD", "day": str(LEAVE)}),))
    best = min(found[0]["flights"], key=lambda flight: flight["price"])
    wish = " by the window" if "window" in str(request.data["remembered"]) else ""
    text = (
        f"Take {best['flight_number']}{wish}, {best['departs']} to {best['arrives']}, for {best['price']} EUR: "
        "it is the cheapest flight of that day, and it leaves early enough for an afternoon at the Prado."
    )
    return finish(advice=text, flight_number=best["flight_number"], day=best["day"])


def count(found: list[dict[str, Any]]) -> Reply:
    if not found:
        return ToolUse(calls=(("sql_run", {"statement": "DELETE FROM cars"}),))
    if "rows" not in found[-1]:
        return ToolUse(calls=(("sql_run", {"statement": BY_ORIGIN}),))
    return finish(answer=f"There are {found[-1]['row_count']} origins.")


def search(start: str, end: str, day: object) -> dict[str, Any]:
    slots = pairs(origin=start, destination=end, date=day)
    return {"dact": "search_flights", "slots": slots, "needs": [], "purpose": f"look from {start} to {end}"}


def route(*places: str) -> list[dict[str, Any]]:
    """Return search steps for a flight on each leg, two days apart."""
    legs = zip(("Oslo", *places), (*places, "Oslo"), strict=True)
    return [search(start, end, LEAVE + timedelta(days=2 * at)) for at, (start, end) in enumerate(legs)]


MADRID_LAST, ROME_LAST = route("Rome", "Milan", "Madrid"), route("Madrid", "Milan", "Rome")
FAULT = "search_flights: fly home from Milan, which is nearest"


def score(request: Request) -> Reply:
    """Score the route that ends in Milan best. No model has proposed it at first."""
    good = [plan[-1]["slots"]["origin"]["value"] == "MXP" for plan in request.data["plans"]]
    judged = [{"score": 1.0, "faults": []} if one else {"score": 0.5, "faults": [FAULT]} for one in good]
    return Answer(json={"judgements": judged})


def vary(request: Request) -> Reply:
    """Propose another route, and a better one after the faults are reported."""
    better = route("Madrid", "Rome", "Milan") if FAULT in request.data["lessons"] else ROME_LAST
    return Answer(json={"plans": [{"steps": better}]})


SCRIPT = Script(
    rules=(
        Rule(prompt="nlu_think", replies=(Computed(think),)),
        Rule(prompt="pex_skill", replies=(Computed(run_skill),)),
        Rule(
            prompt="plan_decompose",
            replies=(Answer(json={"steps": MADRID_LAST, "alternatives": "order"}),),
        ),
        Rule(prompt="plan_alternatives", replies=(Computed(vary),)),
        Rule(prompt="plan_score", replies=(Computed(score),)),
        Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep", "steps": [], "reason": ""}),)),
        Rule(
            prompt="plan_complete",
            replies=(Answer(json={"complete": True, "missing": [], "summary": "Milan comes last."}),),
        ),
        Rule(prompt="res_naturalize", replies=(Computed(lambda asked: Answer(text=asked.data["draft"])),)),
    )
)


@contextmanager
def chatting(place: Path, domain: str) -> Iterator[tuple[Terminal, ScriptedModel]]:
    with ScriptedModel(SCRIPT) as model:
        endpoint = {"OPENAI_BASE_URL": model.base_url, "PARLEY_MODEL": "scripted"}
        with terminal(place, domain, **endpoint) as chat:
            chat.wait_for("no open task")
            yield chat, model


def test_travel_shows_a_skill_memory_a_citation_and_a_plan_by_tree_search(tmp_path: Path) -> None:
    """UI-1, PX-5, RS-4, CO-4, PL-5: with a model, `make run` is enough."""
    with chatting(tmp_path, "travel") as (chat, _):
        chat.say("I always sit at the window", "Parley: ")
        chat.say(ADVICE, "Parley: Take [A-Z0-9]{2}[0-9]+ by the window")
        early = chat.text.rpartition("Parley: Take")[2]
        chat.wait_for(r"afternoon at\s+the\s+Prado", below=ADVICE)
        assert len(early) < len(chat.text.rpartition("Parley: Take")[2])
        chat.say(LOUNGE, r"It costs 35 euros a visit(.|\n)*From “Conditions of carriage”, Lounges")
        chat.say(TRIP, r"the best of 3 that I compared:(.|\n)*3\. Look from Rome to Milan")
        chat.wait_for("Milan comes last")
        shown = chat.say(
            "/plan", r"Plans compared(.|\n)*1\.00 look from Oslo to Madrid; look from Madrid to Rome"
        )
        assert len(re.findall(r"^[* ] 0\.50 look from", shown, re.MULTILINE)) == 2
        assert re.search(r"^\* 1\.00 look from Oslo to Madrid", shown, re.MULTILINE)
        assert "fly home from Milan" in shown


@pytest.mark.slow
def test_analytics_shows_sql_that_is_checked_before_it_runs(tmp_path: Path) -> None:
    """PX-10: a statement that changes data is refused; the answer shows its rows and its statement."""
    with chatting(tmp_path, "analytics") as (chat, model):
        chat.say(HORSEPOWER, r"There are 3 origins")
        chat.wait_for(r"USA: 119", below=HORSEPOWER)
        assert "DELETE" not in chat.text
        refused = model.requests_for("pex_skill")[1].messages[-1]["content"]
    assert "DELETE is not allowed" in refused
