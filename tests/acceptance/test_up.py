"""`parley up`: used by other commands, one per folder, restarted after a kill, stopped in order."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from parley.embedded.ports import free_port
from parley.main import run as run_command
from parley.processes import has_ended
from parley_client import AsyncClient
from tests.integration.chaos.fleet import wait_until
from tests.processes.forked import run, user_environment
from tests.processes.gateway import stack

ROOT = Path(__file__).parents[2]
STORES = {"redis", "postgres"}
ROLES = STORES | {"gateway", "worker", "flower"}


def parley(data_dir: Path, *arguments: str, lines: bytes = b"") -> subprocess.CompletedProcess[str]:
    command = ("-m", "parley", *arguments, "--data-dir", str(data_dir))
    return run(command, given=lines, environment=user_environment())


def ask_doctor(said: str) -> None:
    """Check that all queues are served, and that beat runs as a thread of the worker."""
    found = {finding["name"]: finding for finding in map(json.loads, said.splitlines())}
    assert {name: finding["message"] for name, finding in found.items() if finding["state"] == "bad"} == {}
    assert found["beat"]["message"].startswith("runs on")
    assert found["queue submissions"]["message"] == found["queue urgent"]["message"] == "1 worker connected"


def noted(data_dir: Path) -> dict[str, psutil.Process]:
    """Return the child processes of a run, by role."""
    notes = (data_dir / "run").glob("*.json")
    return {note.stem: psutil.Process(json.loads(note.read_bytes())["pid"]) for note in notes}


async def say_hello(url: str) -> tuple[str, list[str]]:
    """Submit a turn like a backend, and return its status and the speaker."""
    async with AsyncClient(url) as client:
        session = await client.create_session(session_id="hello", user_id="ada")
        turn = await client.submit(session["session_id"], "Hello", idempotency_key="1", wait_s=30)
        again = await client.submit(session["session_id"], "Hello", idempotency_key="1", wait_s=30)
        assert again["turn_id"] == turn["turn_id"]
        return turn["status"], [line["role"] for line in await client.history(session["session_id"])]


def join(data_dir: Path, ask: Callable[..., str]) -> None:
    """Chat, look at sessions and roll back with commands in the run's folder, which start no processes."""
    joined = parley(data_dir, "chat", "--session", "kept", lines=b"Hello\n")
    assert joined.returncode == 0, joined.stderr
    assert joined.stdout.startswith("You: Hello\nParley: ")
    assert "Starting" not in joined.stderr

    assert "fly from" in ask("submit", "kept", "Book a flight to Madrid", "--wait")
    assert ask("history", "kept").startswith("You: Hello\nParley: ")
    assert "book_flight (Active) destination=MAD" in ask("show", "kept")
    assert ask("rollback", "kept", "1") == "Rolled kept back to version 1; the current version is 3.\n"
    assert "book_flight" not in ask("show", "kept")
    assert "kept" in ask("sessions")
    past = ask("show", "kept", "--at", "2")
    assert "book_flight (Active) destination=MAD" in past
    assert past.endswith("fly from?\n")
    made = ask("branch", "kept", "--at", "2", "--name", "other")
    assert made == "Created other, a fork of kept at version 2.\n"
    ask("submit", "other", "from Oslo", "--wait")
    compared = ask("compare", "other", "kept")
    assert "shared       version 2 of kept" in compared
    assert "> from Oslo" in compared


def ask_flower(said: str) -> None:
    """Check that Flower requires the password that `up` prints."""
    line = next(line for line in said.splitlines() if line.startswith("Flower"))
    url, user, password = line.split()[1], line.split()[3].rstrip(","), line.split()[5].rstrip(")")
    assert httpx.get(f"{url}/workers").status_code == 401
    assert httpx.get(f"{url}/workers", auth=(user, password)).status_code == 200


# Prints the status of each answer, or the kind of error.
ASK = """
import json, sys, urllib.error, urllib.request
answers = {}
for url in sys.argv[1:]:
    try:
        answers[url] = urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as error:
        answers[url] = error.code
    except OSError as error:
        answers[url] = type(error).__name__
print(json.dumps(answers))
"""


def answers_to_a_stranger(data_dir: Path) -> dict[str, int | str]:
    """Return the answers that another account of this machine gets at each port of a run."""
    family = [each for child in noted(data_dir).values() for each in (child, *child.children(recursive=True))]
    pids = {process.pid for process in family}
    ports = {
        each.laddr.port for each in psutil.net_connections("inet") if each.pid in pids and not each.raddr
    }
    assert len(ports) == 3  # the gateway, the worker's metrics, Flower
    paths = (
        "",
        "health/live",
        "healthcheck",
        "static/js/flower.js",
        "v1/sessions",
        "metrics",
        "workers",
        "docs",
    )
    urls = [f"http://127.0.0.1:{port}/{path}" for port in ports for path in paths]
    account = pwd.getpwnam("games")
    asked = subprocess.run(
        ["/usr/bin/python3", "-c", ASK, *urls],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        capture_output=True,
        check=True,
    )
    return json.loads(asked.stdout)


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs a command for the run's folder in this process, and returns its output."""
    for name in os.environ.keys() - user_environment().keys():
        monkeypatch.delenv(name)

    def run_here(*words: str) -> str:
        capsys.readouterr()
        code = run_command([*words, "--data-dir", str(tmp_path / "data")])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    return run_here


def test_up_is_joined_stopped_in_order_and_keeps_its_data(tmp_path: Path, ask: Callable[..., str]) -> None:
    """After a kill, the next start cleans up all remains; after a stop, nothing remains."""
    data_dir = tmp_path / "data"
    with stack(data_dir, user_environment()) as (up, said):
        assert set(noted(data_dir)) == ROLES
        roles = {name: process for name, process in noted(data_dir).items() if name not in STORES}
        assert {name for name, process in roles.items() if process.name() != name} == set(), "each is forked"
        url = json.loads((data_dir / "up.json").read_bytes())["url"]
        assert url in said
        assert httpx.get(f"{url}/health/live").status_code == 200
        join(data_dir, ask)
        ask_flower(said)
        if os.geteuid() == 0:  # only root can act as another account
            refused = {403, "URLError", "RemoteDisconnected", "ConnectionResetError"}
            assert set(answers_to_a_stranger(data_dir).values()) <= refused, answers_to_a_stranger(data_dir)

        ask_doctor(ask("doctor", "--json"))

        before = noted(data_dir)["worker"]
        before.kill()
        log = data_dir.with_suffix(".said")
        wait_until(lambda: "worker restarted" in log.read_text(), within_s=60, what=f"see {log}")
        assert "worker exited with code -9" in log.read_text()
        assert noted(data_dir)["worker"].pid != before.pid
        assert asyncio.run(say_hello(url)) == ("done", ["user", "agent"])

        second = parley(data_dir, "up", "--port", str(free_port()))
        assert second.returncode == 1
        assert f"(pid {up.pid})" in second.stderr
        assert len(second.stderr.splitlines()) == 1

        left_behind = noted(data_dir)
        up.kill()
        up.wait()

    with stack(data_dir, user_environment()) as (up, _):
        assert all(has_ended(process) for process in left_behind.values())
        children = noted(data_dir)
        listed = [json.loads(line)["session_id"] for line in ask("sessions", "--json").splitlines()]
        assert listed == ["hello", "other", "kept"]
        assert len(ask("history", "kept", "--json").splitlines()) == 4

        up.send_signal(signal.SIGINT)
        assert up.wait() == 0
        assert all(has_ended(child) for child in children.values())
        assert not (data_dir / "up.json").exists()
