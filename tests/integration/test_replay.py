"""Replay of finished conversations: unchanged decisions are equal, changes are found, and nothing is executed."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from benchmarks.environment import open_lanes
from benchmarks.profile import Calls
from benchmarks.replay import DOMAINS, conversations, hold, say
from lab.replay import running
from lab.replay.comparing import CALLS
from lab.replay.running import Setup, Wanted, prepare, replay, replay_parts
from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.postgres.pool import Database
from orchestrator.domain.model import Domain
from orchestrator.errors import InvalidInput, NotFound
from orchestrator.nlu.system1 import System1
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.turns.turn import TurnInput
from orchestrator.types import DEFAULT_TENANT, Epoch, JsonObject, SessionId
from parley.embedded import Stores
from parley.main import run
from parley.testing.scripted_model import Rule, Script, ScriptedModel
from tests.integration.modelled import ROOT, TAPAS, script_of, travel_with, understood
from tests.redis_numbers import numbered
from tests.trained import trained

MODELLED = "modelled"
TALKS = {
    "booked": ("travel", "Book a flight from Oslo to Madrid tomorrow", "yes"),
    "searched": ("travel", "Find flights from Berlin to Rome next Friday", "thanks"),
    "withdrawn": ("travel", "Book a flight from Oslo to Madrid tomorrow", "no", "what can you do?"),
    "tapas": (MODELLED, "Find flights from Berlin to Rome next Friday", TAPAS, "Oslo"),
    "pruned": ("travel", "Find flights from Oslo to Rome next Friday", "thanks"),
}
OF_EACH = 4
"""Number of additional shipped conversations per domain; with a model, one."""


@dataclass(frozen=True)
class Recorded:
    url: str
    model: ScriptedModel
    folder: Path
    asked: int
    """Requests that the model has received."""

    def replay(self, *sessions: str, **wanted: Any) -> list[JsonObject]:
        return replay(self.url, Wanted(tuple(map(SessionId, sessions)), **wanted))[1]

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def digest(self) -> dict[str, Any]:
        """Return a digest of all rows of all tables."""
        names = self.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        whole = "SELECT count(*), sum(hashtextextended(one::text, 0)::numeric) FROM {} AS one"
        return {name: self.ask(whole.format(name)) for (name,) in names}

    def copy(self, name: str) -> Path:
        """Copy the travel domain for modification."""
        place = self.folder / name
        shutil.copytree(ROOT / "domains" / "travel", place, ignore=shutil.ignore_patterns("__pycache__"))
        return place


@pytest.fixture(scope="module", autouse=True)
def _shipped_domains_once() -> Iterator[None]:
    """Load and train the unchanged domains once, because that takes longer than most replays."""
    load, train = running.load_domain, System1.for_domain

    def load_once(name: str) -> LoadedDomain:
        return trained(name)[0] if name in DOMAINS else load(name)

    def train_once(domain: Domain) -> System1:
        if domain.name in DOMAINS and domain.flows is trained(domain.name)[0].domain.flows:
            return trained(domain.name)[1]
        return train(domain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "load_domain", load_once)
        patch.setattr(running, "System1", SimpleNamespace(for_domain=train_once))
        yield


@pytest.fixture(scope="module")
def recorded(
    database_url: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("replayed")
    place = travel_with(folder)
    own = Stores(database_url, numbered(stores.redis_url, 9))
    with ScriptedModel(script_of(understood("unknown"))) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_DOMAIN", str(place))
        asyncio.run(_record(own, "travel", *DOMAINS, of_each=OF_EACH))
        patch.setenv("OPENAI_BASE_URL", model.base_url)
        asyncio.run(_record(own, MODELLED, *DOMAINS, of_each=1, prefix="asking-"))
        kept = Recorded(database_url, model, folder, len(model.requests))
        assert kept.asked > 0
        before = kept.digest()
        yield kept
        assert kept.digest() == before


async def _record(own: Stores, talked: str, *domains: str, of_each: int, prefix: str = "") -> None:
    async with open_lanes(own) as (ports, lanes):
        for name, (domain, *lines) in TALKS.items():
            for line in lines if domain == talked else ():
                await say(ports, lanes, SessionId(name), domain, TurnInput(line))
        for domain in domains:
            for number, (_, one) in enumerate(islice(conversations(domain), of_each)):
                await hold(ports, lanes, domain, one, f"{prefix}{domain}-{number}")
        if talked == "travel":
            await ports.stores.database.write(text("DELETE FROM journal WHERE session_id = 'pruned'"))
            branch = SessionId("branched")
            await ports.stores.sessions.branch(
                DEFAULT_TENANT, SessionId("withdrawn"), epoch=Epoch(1), branch_id=branch
            )
            for line in ("yes", "yes"):  # the offer is repeated and accepted
                await say(ports, lanes, branch, "travel", TurnInput(line))


def found(outcomes: list[JsonObject]) -> dict[tuple[str, int], set[str]]:
    """Return the different turns, by session and epoch, with the aspects."""
    return {
        (one["session"], turn["epoch"]): set(turn["changes"]) for one in outcomes for turn in one["different"]
    }


@pytest.mark.parametrize(("domain", "least"), [("travel", 16), ("analytics", 5), (MODELLED, 2)])
def test_what_has_not_changed_is_decided_the_same(recorded: Recorded, domain: str, least: int) -> None:
    """Also model requests: the model is not called again."""
    place = recorded.folder / MODELLED if domain == MODELLED else domain
    outcomes = recorded.replay(of=domain, domain=str(place), last=100)

    assert found(outcomes) == {}
    assert sum(one["turns"] for one in outcomes) >= least
    assert not any(one["not_made"] for one in outcomes)
    assert len(recorded.model.requests) == recorded.asked


def test_psql_shows_states_results_and_journals(recorded: Recorded) -> None:
    of_booked = "WHERE session_id = 'booked'"
    stacks = recorded.ask(f"SELECT json_typeof(body -> 'stack') FROM states {of_booked}")
    results = recorded.ask(f"SELECT result -> 'completed' FROM turns {of_booked} ORDER BY seq")
    calls = recorded.ask(f"SELECT result FROM journal {of_booked} AND key LIKE 'tool:flight_book:%'")

    assert stacks[0][0] in {"array", "object"}
    assert results[-1] == (["book_flight"],)
    assert "booking_ref" in str(calls)


def test_a_branch_is_replayed_from_where_it_parts(recorded: Recorded) -> None:
    (outcome,) = recorded.replay("branched")

    assert (outcome["turns"], found([outcome]), outcome["left_out"]) == (2, {}, {})
    assert recorded.ask("SELECT count(*) FROM effects WHERE session_id = 'branched'") == [(1,)]


def test_a_planted_mapping_is_found_where_the_tool_is_called_and_nowhere_else(recorded: Recorded) -> None:
    place = recorded.copy("mapped")
    file = place / "ontology.yaml"
    planted = "{tool_id: flight_offer, slot_mapping: {day: date, origin: destination, destination: origin}}"
    whole, wanted = file.read_text(), "{tool_id: flight_offer, slot_mapping: {day: date}}"
    assert whole.count(wanted) == 1
    file.write_text(whole.replace(wanted, planted))

    outcomes = recorded.replay(of="travel", domain=str(place), last=100)

    called = recorded.ask(
        "SELECT DISTINCT session_id, epoch FROM turns JOIN journal USING (turn_id, session_id)"
        " JOIN sessions USING (session_id) WHERE key LIKE 'tool:flight_offer:%' AND domain = 'travel'"
    )
    assert len(called) >= 2
    assert set(found(outcomes)) == set(called)
    assert all(CALLS in aspects for aspects in found(outcomes).values())
    booked = next(one for one in outcomes if one["session"] == "booked")
    assert booked["not_made"] == {"tool:flight_offer": 1}
    changes = {place["at"]: place for place in booked["different"][0]["changes"][CALLS]}
    assert changes["1.arguments.origin"] == {"at": "1.arguments.origin", "then": "OSL", "now": "MAD"}
    assert changes["1.status"]["now"] == "not made"


def test_a_planted_slot_is_found_where_its_flow_is_at_work(recorded: Recorded) -> None:
    place = recorded.copy("slotted")
    file = place / "ontology.yaml"
    whole, optional = (
        file.read_text(),
        "maximum: 9, default: 1, counts: people, description: the number of pass",
    )
    required = optional.replace("default: 1", 'priority: required, prompt: "How many?"')
    head, flow, rest = whole.partition("  book_flight:\n")
    assert optional in rest
    file.write_text(head + flow + rest.replace(optional, required, 1))

    outcomes = recorded.replay("booked", "searched", "withdrawn", domain=str(place))

    assert set(found(outcomes)) == {("booked", 1), ("booked", 2), ("withdrawn", 1)}
    first = next(one for one in outcomes if one["session"] == "booked")["different"][0]["changes"]
    assert {"at": "asks.2", "then": None, "now": "passengers"} in first["answer"]


def test_a_planted_prompt_is_found_where_it_was_asked_and_another_model_is_asked(recorded: Recorded) -> None:
    place = recorded.folder / MODELLED
    tried = place / "prompts" / "next" / "nlu_think.md"
    tried.parent.mkdir(parents=True)
    shipped = (ROOT / "orchestrator" / "models" / "prompts" / "nlu_think.md").read_text()
    tried.write_text(re.sub(r"version: \d+", "version: 99", shipped).rstrip() + "\n\nBe brief.\n")

    outcomes = recorded.replay("tapas", domain=str(place), prompt="nlu_think@99")
    assert {turn: aspects & {"models"} for turn, aspects in found(outcomes).items()} == {
        ("tapas", turn): {"models"} for turn in (1, 2, 3)
    }
    assert len(recorded.model.requests) == recorded.asked
    current = "nlu_think@" + re.findall(r"version: (\d+)", shipped)[0]
    assert found(recorded.replay("tapas", domain=str(place), prompt=current)) == {}
    with pytest.raises(InvalidInput, match=f"{current}, nlu_think@99"):
        recorded.replay("tapas", domain=str(place), prompt="nlu_think@98")

    outcomes = recorded.replay("tapas", domain=str(place), model="another")
    assert found(outcomes) == {}  # it answers the same
    otherwise = Rule(prompt="nlu_think", replies=(understood("task", "book_flight", destination="Lisbon"),))
    recorded.model.follow(Script(rules=(otherwise,)))
    outcomes = recorded.replay("tapas", domain=str(place), model="another")
    assert found(outcomes)["tapas", 2] >= {"slots"}
    assert {request.model for request in recorded.model.requests[recorded.asked :]} == {"another"}


def test_what_retention_took_is_told_and_so_is_where_to_begin(recorded: Recorded) -> None:
    (outcome,) = recorded.replay("pruned")
    assert (outcome["left_out"], outcome["turns"]) == ({"whose journal was pruned": 1}, 1)
    (outcome,) = recorded.replay("booked", since=2)
    assert outcome["turns"] == 1
    with pytest.raises(NotFound):
        recorded.replay("nowhere")
    with pytest.raises(InvalidInput, match="one domain at a time"):
        recorded.replay("booked", "tapas")


CALLS_OF_A_TURN = {"travel": 1_770, "analytics": 1_880}
"""Maximum number of function calls for a replayed turn, including reading and comparison."""


@pytest.mark.parametrize("domain", ["travel", pytest.param("analytics", marks=pytest.mark.slow)])
def test_deciding_a_turn_anew_costs_no_more_than_this(
    recorded: Recorded, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second round, without work that a process does only once."""
    loaded = prepare(Wanted(), domain)
    setup = Setup(
        recorded.url, read_settings(**NO_STORES), loaded, System1.for_domain(loaded.domain), None, 0
    )
    named, calls = [SessionId(f"{domain}-{number}") for number in range(OF_EACH)], Calls()
    outcomes: list[JsonObject] = []
    opened: list[Database] = []
    transaction, hot_path = Database.transaction, Database.fetch_all
    monkeypatch.setattr(Database, "transaction", lambda self: opened.append(self) or transaction(self))
    monkeypatch.setattr(
        Database, "fetch_all", lambda self, *asked: opened.append(self) or hot_path(self, *asked)
    )

    def rounds() -> Iterator[list[SessionId]]:
        yield named
        outcomes.clear()
        opened.clear()
        yield named[:1]
        of_one = len(opened)
        outcomes.clear()
        calls.begin()
        yield named
        calls.end()
        assert len(opened) == 2 * of_one > 0, "what is read grows with the sessions"

    asyncio.run(replay_parts(setup, rounds(), outcomes.append))

    counted = calls.of_one(sum(one["turns"] for one in outcomes))
    assert 0 < counted["function calls"] <= CALLS_OF_A_TURN[domain], counted
    assert found(outcomes) == {}


def test_several_processes_find_the_same(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "AT_ONCE", 2)
    wanted = Wanted(of="travel", last=6)
    one, several = (replay(recorded.url, wanted, processes=number)[1] for number in (1, 2))
    assert one == several
    assert len(one) >= OF_EACH


def test_the_command_ends_with_1_for_what_may_not_change(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", recorded.url)
    monkeypatch.chdir(tmp_path)
    place = recorded.copy("worded")
    (place / "templates" / "search_flights.md.j2").write_text("Some flights.\n")
    words = ["replay", "booked", "searched", "--domain", str(place), "--processes", "1"]

    assert run(words) == 1
    told = capsys.readouterr()
    assert "searched, version 1: “Find flights from Berlin to Rome next Friday”" in told.out
    assert "2 sessions, 4 turns: 1 changed." in told.out
    assert run([*words, "--fail-on", "calls"]) == 0
    (tmp_path / "allowed.txt").write_text("# since the new words\nsearched 1  # agreed\n")
    assert run([*words, "--allow", "allowed.txt"]) == 0
    assert run([*words, "--fail-on", "nonsense"]) == 1
    capsys.readouterr()
    assert run([*words, "--allow", "allowed.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["changed"], report["different"][0]["allowed"]) == ({"answer": 1}, True)
    kept = json.loads(Path(report["report"]).read_text())
    assert kept == {name: value for name, value in report.items() if name != "report"}
    assert Path(report["report"]).parent == Path(".parley/evaluations/travel/replays")
