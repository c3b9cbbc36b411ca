"""Runs started over HTTP and from the command line, on real workers (IF-16)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import orjson
import pytest

from orchestrator.errors import InvalidInput, NotFound, Refused
from parley_client import Client
from tests.integration.chaos.fleet import Fleet, wait_until
from tests.processes.forked import run
from tests.processes.gateway import gateway as serve


@pytest.fixture(scope="module")
def gateway(crew: Fleet) -> Iterator[str]:
    program = ("-m", "tests.contract.internal.gateway", "127.0.0.1")
    stores = {"DATABASE_URL": crew.database_url, "REDIS_URL": crew.redis_url}
    with serve(stores, crew.logs / "gateway.log", program=program) as url:
        yield url


def ended(client: Client, run_id: str) -> dict:
    statuses = {"done", "skipped", "failed", "cancelled"}
    wait_until(lambda: client.run(run_id)["status"] in statuses, within_s=30, what=f"{run_id} has ended")
    return client.run(run_id)


def test_a_run_is_started_listed_and_inspected(gateway: str) -> None:
    with Client(gateway) as client:
        run_id = client.start_run("doubling", inputs=[1, 2, 3], parameters={"skip": [2]})["run_id"]
        run = ended(client, run_id)
        items = client.run_items(run_id, after=0)

        assert (run["status"], run["closing"], run["chain"]) == ("done", [2, None, 6], [run_id])
        assert run["progress"] == {"total": 3, "done": 2, "skipped": 1, "failed": 0}
        assert [(item["position"], item["status"], item["output"]) for item in items] == [
            (1, "skipped", None),
            (2, "done", 6),
        ]
        assert run_id in [listed["run_id"] for listed in client.runs(flow="doubling", status="done")]
        assert client.runs(flow="doubling", status="failed") == []


def test_a_run_is_cancelled_and_redone(gateway: str) -> None:
    with Client(gateway) as client:
        run_id = client.start_run("doubling", inputs=[1, 2], parameters={"takes_s": 1})["run_id"]
        with pytest.raises(Refused):
            client.redo_run(run_id)
        assert client.cancel_run(run_id)["status"] == "cancelled"
        again = client.redo_run(run_id)["run_id"]

        assert ended(client, again)["status"] == "done"
        assert client.run(run_id)["chain"] == [run_id, again]


def test_what_is_not_there_is_named(gateway: str) -> None:
    with Client(gateway) as client:
        for call in (client.run, client.run_items, client.cancel_run, client.redo_run):
            with pytest.raises(NotFound):
                call("run_none")
        with pytest.raises(NotFound):
            client.start_run("doubling", session_id="nobody")


def test_a_flow_that_there_is_not_is_refused_at_once(gateway: str) -> None:
    """IF-16: the error lists the known flows."""
    with Client(gateway) as client, pytest.raises(InvalidInput, match=r"'nonsense'.*doubling") as refusal:
        client.start_run("nonsense")

    assert refusal.value.field == "flow"
    with Client(gateway) as client:
        assert client.runs(flow="nonsense") == []


def test_the_flows_of_a_trigger_are_started_together(gateway: str, crew: Fleet) -> None:
    """IF-16"""
    with Client(gateway) as client:
        started = client.start_run(trigger="graph", parameters={"n0": {"takes_s": 0.1}})
        assert (started["run_id"], len(started["runs"])) == (None, 41)
        assert ended(client, started["runs"]["n0"])["status"] == "done"
        with pytest.raises(InvalidInput, match=r"'nonsense'.*by_hand, diamond, graph") as refusal:
            client.start_run(trigger="nonsense")
        with pytest.raises(InvalidInput, match="either `flow` or `trigger`"):
            client.start_run("doubling", trigger="graph")

    assert refusal.value.field == "trigger"
    told = parley(gateway, "start", "--trigger", "diamond", "--watch")
    assert told.stdout.splitlines()[1::2] == [f"diamond_{name}: done" for name in "abcdef"]
    assert "Could not send" not in (crew.logs / "gateway.log").read_text()


def parley(gateway: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ("-m", "parley", "runs", *arguments, "--url", gateway)
    return run(command, environment={**os.environ, "COLUMNS": "200"})


def test_the_command_line_starts_watches_and_shows(gateway: str) -> None:
    done = parley(gateway, "start", "doubling", "--inputs", "[1, 2, 3]", "--watch")
    run_id, ending = done.stdout.splitlines()
    shown = parley(gateway, "show", run_id, "--items", "10", "--json")
    listed = parley(gateway, "list", "--flow", "doubling")

    assert ending == "doubling: done"
    assert "3/3" in done.stderr
    assert [item["output"] for item in orjson.loads(shown.stdout)["items"]] == [2, 4, 6]
    assert "doubling" in listed.stdout


def test_mistakes_are_one_line(gateway: str) -> None:
    failed = parley(gateway, "start", "doubling", "--inputs", "{}")

    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "JSON list" in failed.stderr
