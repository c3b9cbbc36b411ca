"""Runs of Internal flows are decided once more: what did not change is the same, what did is found, nothing is done."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import yaml
from celery import Celery

from internal_flows.catalogue import Catalogue
from internal_flows.housekeeping import FLOWS
from internal_flows.housekeeping.session import summarize_session
from internal_flows.recording import NO_JSON, TOO_LARGE, StageRecord
from orchestrator.adapters.postgres.runs.recordings import NO_RECORD
from orchestrator.adapters.redis.address import for_celery
from orchestrator.adapters.task_sender import RunCanvas
from orchestrator.bootstrap import Ports, open_lane, open_ports
from orchestrator.errors import NotFound
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import ENDED, RunStatus
from orchestrator.settings import read_settings
from orchestrator.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from orchestrator.turns.lease import ArchivedFlow
from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.embedded import Stores
from parley.main import run
from parley.replay.running import Wanted
from parley.replay.runs import replay_runs
from tests.integration.chaos.fleet import fleet
from tests.integration.internal.test_housekeeping import House, flow_body, spoken
from tests.integration.modelled import ROOT, travel_with
from tests.redis_numbers import numbered

WITHIN_S = 90
SUMMARY = "They want to go to Lisbon."
FINDINGS = (
    {"text": "Prefers to fly in the morning.", "about": "user", "salience": 0.9},
    {"text": "The lounge in Lisbon closes at nine.", "about": "business", "salience": 0.9},
)
QUESTION: JsonObject = {
    "turn_id": "turn_1",
    "flow_id": "flow_1",
    "domain": "modelled",
    "dact": "book_flight",
    "question": "Which flight to Lisbon?",
    "slots": {"destination": "where to"},
    "user_id": "ann",
}


@dataclass(frozen=True)
class Recorded:
    url: str
    redis_url: str
    model: ScriptedModel
    folder: Path
    runs: dict[str, list[str]]
    """By flow; reruns follow."""
    asked: int

    def replay(self, *runs: str, **wanted: Any) -> list[JsonObject]:
        given = {"domain": str(self.folder / "modelled"), **wanted}
        return replay_runs(self.url, Wanted(runs=runs, **given))[1]

    def of(self, *flows: str) -> list[str]:
        return [run_id for flow in flows for run_id in self.runs[flow]]

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def digest(self) -> dict[str, Any]:
        """Every row of every table, and all that the scratchpads have."""
        names = self.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        whole = "SELECT count(*), sum(hashtextextended(one::text, 0)::numeric) FROM {} AS one"
        with redis.Redis.from_url(self.redis_url) as connection:
            pads = {
                key: connection.dump(key)
                for key in connection.scan_iter("*")
                if b"note" in key or b"pad" in key
            }
        return {"": pads, **{name: self.ask(whole.format(name)) for (name,) in names}}


@pytest.fixture(scope="module")
def recorded(
    database_url: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    """Runs of the shipped flows by a real worker, some of them asking a model."""
    folder, redis_url = tmp_path_factory.mktemp("replayed"), numbered(stores.redis_url, 9)
    place = travel_with(folder)
    settled = {"repair_state": {"quiet_for_s": 0}, "abandon_flows": {"abandon_after_s": 0.01}}
    (place / "internal_flows.yaml").write_text(
        yaml.safe_dump({"flows": settled, "schedule": dict.fromkeys(("repair_state", "abandon_flows"))})
    )
    written = Rule(replies=(Answer(json={"summary": SUMMARY, "findings": FINDINGS}),))
    with ScriptedModel(Script(rules=(written,))) as model:
        environment = {"PARLEY_DOMAIN": str(place), "OPENAI_BASE_URL": model.base_url}
        with fleet(database_url, redis_url, folder, environment) as crew:
            runs = asyncio.run(_record(database_url, redis_url, crew.start))
        kept = Recorded(database_url, redis_url, model, folder, runs, len(model.requests))
        assert kept.asked == 1
        before = kept.digest()
        yield kept
        assert kept.digest() == before


async def _record(database_url: str, redis_url: str, start: Any) -> dict[str, list[str]]:
    settings = read_settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    async with open_ports(settings) as ports, open_lane(ports) as lane:
        house, catalogue = House(ports, lane, {}), Catalogue(FLOWS)
        seat = {"slots": {"seat": {"value": "aisle", "source": "user"}}}
        tasks = tuple(ArchivedFlow(f"flow_{n}", "book_flight", "Completed", None, seat) for n in range(4))
        talked = await house.session(spoken(1), spoken(2), spoken(3), user="ann", archived=tasks)
        await house.execute("UPDATE sessions SET domain = 'modelled'")
        active = flow_body("book_flight", "Active", started_at=1.0)
        await house.session({**spoken(1), "stack": [active, flow_body("check_booking", "Active")]})
        pending = flow_body("book_flight", "Pending", "interrupted", started_at=1.0)
        await house.session({**spoken(1), "stack": [pending, flow_body("check_booking", "Active")]})
        app = Celery(set_as_current=False, broker=for_celery(redis_url), backend=for_celery(redis_url))
        canvas = RunCanvas(app)
        start(1, application="workers.app", queues="internal,urgent", threads=8)
        asked = {"parameters": QUESTION, "session_id": talked}
        found: dict[str, list[str]] = {}
        for nodes in (
            catalogue.new_graph("summary_due", session_id=talked),
            (catalogue.new_run("gather_context", **asked),),
            (catalogue.new_run("repair_state"),),
            (catalogue.new_run("abandon_flows"),),
            (catalogue.new_run("erase_forgotten"),),
        ):
            await _run(ports, canvas, nodes, found)
        app.close()
        return found


async def _run(
    ports: Ports, canvas: RunCanvas, nodes: tuple[NewRun, ...], found: dict[str, list[str]]
) -> None:
    started = await ports.stores.runs.start(nodes)
    await canvas.send(started)
    ends_at = time.monotonic() + WITHIN_S
    for flow, run_id in started.runs.items():
        chain = await ports.stores.runs.chain(DEFAULT_TENANT, run_id)
        while not all(one.status in ENDED for one in chain):
            assert time.monotonic() < ends_at, chain
            await asyncio.sleep(0.05)
            chain = await ports.stores.runs.chain(DEFAULT_TENANT, run_id)
        assert chain[-1].status in {RunStatus.DONE, RunStatus.SKIPPED}, chain
        found[flow] = [one.run_id for one in chain]


def found(outcomes: list[JsonObject]) -> dict[tuple[str, str], set[str]]:
    """The stages that came out otherwise, by flow and stage, with the aspects."""
    return {
        (stage["said"], stage["stage"]): set(stage["changes"])
        for one in outcomes
        for stage in one["different"]
    }


def test_what_has_not_changed_comes_out_the_same_and_makes_nothing(recorded: Recorded) -> None:
    """Also what a model was asked: it is not asked again."""
    flows = (
        "summarize_session",
        "distil_preferences",
        "promote_context",
        "tidy_scratchpad",
        "gather_context",
    )
    outcomes = recorded.replay(*recorded.of(*flows, "repair_state", "abandon_flows"))

    assert found(outcomes) == {}
    assert not any(one["not_made"] or one["left_out"] for one in outcomes)
    stages = {one["run"]: one["stages"] for one in outcomes}
    assert [stages[one] for one in recorded.of(*flows)] == [3, 2, 3, 2, 5]
    assert len(recorded.runs["repair_state"]) == 2
    assert all(stages[one] >= 3 for one in recorded.of("repair_state", "abandon_flows"))
    assert len(recorded.model.requests) == recorded.asked
    assert recorded.ask("SELECT count(*) FROM preferences") > [(1,)]


def test_a_planted_prompt_is_found_where_it_was_asked_and_another_model_is_asked(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = (ROOT / "orchestrator" / "models" / "prompts" / "memory_summarize.md").read_text()
    version = shipped.partition("version: ")[2].partition("\n")[0]
    tried = recorded.folder / "modelled" / "prompts" / "next" / "memory_summarize.md"
    tried.parent.mkdir(parents=True)
    tried.write_text(shipped.replace(f"version: {version}", "version: 99").rstrip() + "\n\nBe brief.\n")
    every = [run_id for runs in recorded.runs.values() for run_id in runs]

    outcomes = recorded.replay(*every, prompt="memory_summarize@99")

    assert {stage: aspects & {"models"} for stage, aspects in found(outcomes).items()} == {
        ("summarize_session", "item 1"): {"models"}
    }
    assert found(recorded.replay(*every, prompt=f"memory_summarize@{version}")) == {}
    assert len(recorded.model.requests) == recorded.asked
    monkeypatch.setenv("OPENAI_BASE_URL", recorded.model.base_url)
    summary = recorded.of("summarize_session")
    assert found(recorded.replay(*summary, model="another")) == {}  # it answers the same
    recorded.model.follow(Script(rules=(Rule(replies=(Answer(json={"summary": "Nothing."}),)),)))
    [outcome] = recorded.replay(*summary, model="another")
    assert found([outcome]) == {("summarize_session", "item 1"): {"calls"}}
    places = {place["at"]: place for place in outcome["different"][0]["changes"]["calls"]}
    assert places["1.arguments.1.4.text"] | {"at": ""} == {"at": "", "then": SUMMARY, "now": "Nothing."}
    assert {request.model for request in recorded.model.requests[recorded.asked :]} == {"another"}


def test_a_planted_stage_is_found_where_it_works_and_nowhere_else(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [run_id for runs in recorded.runs.values() for run_id in runs]
    monkeypatch.setattr(summarize_session, "LONGEST_FINDING", 7)

    outcomes = recorded.replay(*every)

    assert found(outcomes) == {("summarize_session", "item 1"): {"calls"}}
    (summary,) = [one for one in outcomes if one["different"]]
    assert summary["not_made"] == {"scratchpad.put": 1}
    assert {place["now"] for place in summary["different"][0]["changes"]["calls"]} == {"Prefers", "The lou"}


def test_planted_settings_and_a_flow_that_asks_for_more_are_found(recorded: Recorded) -> None:
    place = recorded.folder / "settled" / "modelled"
    shutil.copytree(recorded.folder / "modelled", place)
    (place / "internal_flows.yaml").write_text("flows: {repair_state: {quiet_for_s: 0, dry_run: true}}\n")

    outcomes = recorded.replay(*recorded.of("repair_state", "abandon_flows"), domain=str(place))

    changed = found(outcomes)
    assert changed["repair_state", "item 1"] >= {"calls", "directives"}
    assert {flow for flow, _ in changed} == {"repair_state", "abandon_flows"}
    assert not any(one["not_made"].get("proposals.propose") for one in outcomes)


def test_runs_without_a_record_are_left_out_and_what_is_not_there_is_told(recorded: Recorded) -> None:
    [outcome] = recorded.replay(*recorded.of("erase_forgotten"))
    assert (outcome["stages"], outcome["left_out"]) == (0, {NO_RECORD: 1})
    with pytest.raises(NotFound):
        recorded.replay("run_nowhere")


async def test_what_cannot_be_kept_is_said() -> None:
    """What a tool gave reaches the flow all the same."""
    large, odd = StageRecord(0.0), StageRecord(0.0)

    async def give(value: Any) -> Any:
        return value

    for text in ("x" * 1_100_000, "no more of it is kept"):
        assert (
            await large.call("pad.read", "tool", [], lambda _, one=text: give(one), idempotent=True) == text
        )
    thing = object()
    assert await odd.call("mine.read", "tool", [], lambda _: give(thing), idempotent=True) is thing
    assert (large.lost, large.steps, odd.lost) == (TOO_LARGE, [], NO_JSON)


def test_the_command_ends_with_1_for_what_may_not_change(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", recorded.url)
    monkeypatch.chdir(tmp_path)
    place = str(recorded.folder / "modelled")
    [summary] = recorded.of("summarize_session")
    assert run(["replay", summary, "--domain", place]) == 0
    assert "1 run, 3 stages: 0 came out otherwise." in capsys.readouterr().out
    monkeypatch.setattr(summarize_session, "LONGEST_FINDING", 7)
    words = ["replay", "--runs", "--of", "modelled", "--domain", place]
    assert run(words) == 1
    told = capsys.readouterr().out
    assert f"{summary}, item 1: “summarize_session”" in told
    assert "5 runs, 15 stages: 1 came out otherwise." in told
    assert run([*words, "--fail-on", "findings"]) == 0
    (tmp_path / "allowed.txt").write_text(f"{summary} item 1  # agreed\n")
    capsys.readouterr()
    assert run([*words, "--allow", "allowed.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["runs"], report["sessions"], report["different"][0]["allowed"]) == (5, 0, True)
