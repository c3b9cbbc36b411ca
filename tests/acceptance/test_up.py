"""`parley up`: used by other commands, one per folder, restarted after a kill, stopped in order."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from parley.processes import has_ended
from parley_client import AsyncClient
from tests.processes.forked import run
from tests.processes.gateway import stack

ROOT = Path(__file__).parents[2]
STORES = {"redis", "postgres"}
ROLES = STORES | {
    "gateway",
    "worker",
    "flower",
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def make_environment() -> dict[str, str]:
    hidden = {"DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": str(ROOT)}


def parley(data_dir: Path, *arguments: str, lines: bytes = b"") -> subprocess.CompletedProcess[str]:
    command = ("-m", "parley", *arguments, "--data-dir", str(data_dir))
    return run(command, given=lines, environment=make_environment())


def ask_doctor(data_dir: Path) -> None:
    """Check that all queues are served, and that beat runs as a thread of the worker."""
    said = parley(data_dir, "doctor", "--json").stdout
    found = {finding["name"]: finding for finding in map(json.loads, said.splitlines())}
    assert {name: finding["message"] for name, finding in found.items() if finding["state"] == "bad"} == {}
    assert found["beat"]["message"].startswith("runs on")
    assert found["queue submissions"]["message"] == found["queue urgent"]["message"] == "1 worker connected"


@contextmanager
def run_up(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a running `up` that has reported that it is ready, with its output."""
    command = [sys.executable, "-m", "parley", "up", "--data-dir", str(data_dir), "--port", str(free_port())]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=make_environment()
    ) as up:
        try:
            assert up.stderr is not None
            said: list[str] = []
            while not said or not said[-1].startswith("Ready."):
                said.append(up.stderr.readline())
                assert said[-1], "".join(said)
            yield up, "".join(said)
        finally:
            up.kill()


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


def join(data_dir: Path) -> None:
    """Chat, look at sessions and roll back with commands in the run's folder, which start no processes."""
    joined = parley(data_dir, "chat", "--session", "kept", lines=b"Hello\n")
    assert joined.returncode == 0, joined.stderr
    assert joined.stdout.startswith("You: Hello\nParley: ")
    assert "Starting" not in joined.stderr

    asked = parley(data_dir, "submit", "kept", "Book a flight to Madrid", "--wait")
    assert "fly from" in asked.stdout, asked.stderr
    assert parley(data_dir, "history", "kept").stdout.startswith("You: Hello\nParley: ")
    assert "book_flight (Active) destination=MAD" in parley(data_dir, "show", "kept").stdout
    back = parley(data_dir, "rollback", "kept", "1")
    assert back.stdout == "Rolled kept back to version 1; the current version is 3.\n"
    assert "book_flight" not in parley(data_dir, "show", "kept").stdout
    assert "kept" in parley(data_dir, "sessions").stdout
    past = parley(data_dir, "show", "kept", "--at", "2").stdout
    assert "book_flight (Active) destination=MAD" in past
    assert past.endswith("fly from?\n")
    made = parley(data_dir, "branch", "kept", "--at", "2", "--name", "other")
    assert made.stdout == "Created other, a fork of kept at version 2.\n", made.stderr
    assert parley(data_dir, "submit", "other", "from Oslo", "--wait").returncode == 0
    compared = parley(data_dir, "compare", "other", "kept").stdout
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


def test_up_is_joined_stopped_in_order_and_keeps_its_data(tmp_path: Path) -> None:
    """After a kill, the next start cleans up all remains; after a stop, nothing remains."""
    data_dir = tmp_path / "data"
    with run_up(data_dir) as (up, said):
        assert set(noted(data_dir)) == ROLES
        roles = {name: process for name, process in noted(data_dir).items() if name not in STORES}
        assert {name for name, process in roles.items() if process.name() != name} == set(), "each is forked"
        url = json.loads((data_dir / "up.json").read_bytes())["url"]
        assert url in said
        assert httpx.get(f"{url}/health/live").status_code == 200
        join(data_dir)
        ask_flower(said)
        if os.geteuid() == 0:  # only root can act as another account
            refused = {403, "URLError", "RemoteDisconnected", "ConnectionResetError"}
            assert set(answers_to_a_stranger(data_dir).values()) <= refused, answers_to_a_stranger(data_dir)

        ask_doctor(data_dir)

        before = noted(data_dir)["worker"]
        before.kill()
        assert up.stderr is not None
        assert "worker exited with code -9" in up.stderr.readline()
        assert "worker restarted" in up.stderr.readline()
        assert noted(data_dir)["worker"].pid != before.pid
        assert asyncio.run(say_hello(url)) == ("done", ["user", "agent"])

        second = parley(data_dir, "up", "--port", str(free_port()))
        assert second.returncode == 1
        assert f"(pid {up.pid})" in second.stderr
        assert len(second.stderr.splitlines()) == 1

        left_behind = noted(data_dir)
        up.send_signal(signal.SIGKILL)
        up.wait()

    with stack(data_dir, make_environment()) as (up, _):
        assert all(has_ended(process) for process in left_behind.values())
        children = noted(data_dir)
        listed = parley(data_dir, "sessions", "--json")
        assert [json.loads(line)["session_id"] for line in listed.stdout.splitlines()] == [
            "hello",
            "other",
            "kept",
        ]
        spoken = parley(data_dir, "history", "kept", "--json").stdout.splitlines()
        assert len(spoken) == 4

        up.send_signal(signal.SIGINT)
        assert up.wait() == 0
        assert all(has_ended(child) for child in children.values())
        assert not (data_dir / "up.json").exists()
