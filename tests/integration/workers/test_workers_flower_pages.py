"""The real Flower: protected by a password, and without users' texts (RT-22)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from orchestrator.adapters.task_sender import TASK_QUEUES
from orchestrator.ports.tasks import SUBMIT_TURN
from tests.cases import for_each
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.flower.server import ask, flower
from tests.integration.workers.rabbit import is_installed, rabbit
from tests.processes.forked import ROOT, run

PASSWORD = "flower:open-sesame"
SAID = "wait 0 my-card-number-is-4111"
CLOSED = (
    *(
        ("GET", f"/{path}")
        for path in ("", "workers", "worker/any", "tasks", "task/any", "tasks/datatable", "broker")
    ),
    *(
        ("GET", f"/api/{path}")
        for path in ["tasks", "workers", "task/types", "task/info/any", "queues/length"]
    ),
    *(("POST", f"/api/task/{path}/any") for path in ("send-task", "apply", "revoke", "rate-limit")),
    *(("POST", f"/api/worker/{path}/any") for path in ("shutdown", "pool/grow", "queue/add-consumer")),
)
"""All except `/healthcheck` and `/metrics`, which name and count tasks and workers."""
STOPPED_IN_A_DESTRUCTOR = """
import asyncio, runpy, signal, sys

class Doomed:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

asyncio.set_event_loop(asyncio.new_event_loop())
asyncio.get_event_loop().call_soon(Doomed)
sys.argv[1:] = ["-A", "workers.flower_app", "flower", "--address=127.0.0.1", "--port=0"]
runpy.run_module("workers", run_name="__main__")
"""


@pytest.fixture(params=["redis", pytest.param("rabbitmq", marks=pytest.mark.slow)])
def broker_url(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Iterator[str]:
    if request.param == "redis":
        yield redis_url
        return
    if not is_installed():
        pytest.skip("Debian's package rabbitmq-server is not installed")
    with rabbit(tmp_path / "rabbit") as node:
        yield node.url


def test_tasks_are_shown_by_name_and_identifier_to_those_who_know_the_password(
    database_url: str, redis_url: str, broker_url: str, tmp_path: Path
) -> None:
    secret = tmp_path / "flower"
    secret.write_text(f"{PASSWORD}\n")
    environment = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "PARLEY_BROKER_URL": broker_url,
        "FLOWER_BASIC_AUTH_FILE": str(secret),
        "PARLEY_HOST": "0.0.0.0",
    }
    name, _, password = PASSWORD.partition(":")
    user = name, password
    with (
        fleet(database_url, redis_url, tmp_path, {"PARLEY_BROKER_URL": broker_url}) as crew,
        flower(environment, tmp_path / "flower.log") as url,
        celery_client(broker_url, redis_url) as sender,
    ):
        sender.conf.task_queues = TASK_QUEUES
        for method, path in CLOSED:
            for given in (None, ("flower", "wrong")):
                assert ask(method, f"{url}{path}", auth=given).status_code == 401, path

        crew.start(1, options=("-E",))
        result = submit_turn(sender, "seen", SAID, wait=60).get(timeout=90)
        assert result["status"] == "done"
        wait_until(lambda: succeeded(url, user), within_s=60, what="Flower shows the submission as done")
        shown = ask("GET", f"{url}/api/tasks", auth=user).text
        pages = shown + ask("GET", f"{url}/tasks", auth=user).text
        metrics = ask("GET", f"{url}/metrics").text
        for path in ("/", "/workers", "/broker", "/api/workers", "/api/task/types"):
            assert ask("GET", f"{url}{path}", auth=user).is_success, path
        (name,) = ask("GET", f"{url}/api/workers", auth=user).json()
        page = ask("GET", f"{url}/worker/{name}", auth=user)
        assert page.is_success
        assert SUBMIT_TURN in page.text
        pages += page.text
        assert ask("GET", f"{url}/worker/nobody@nowhere", auth=user).status_code == 404
        log = crew.workers[0].log.read_text()

    (task,) = [task for task in listed(shown) if task["name"] == SUBMIT_TURN]
    assert task["kwargs"] == "{session_id: seen}"
    assert "my-card-number" not in pages
    assert SUBMIT_TURN in metrics
    assert "seen" not in metrics, "open to everybody, so it names no session"
    assert "my-card-number" not in log
    assert str(result["reply"]) not in (task["result"] or "")


def succeeded(url: str, user: tuple[str, str]) -> bool:
    tasks = listed(ask("GET", f"{url}/api/tasks", auth=user).text)
    return any(task["name"] == SUBMIT_TURN and task["state"] == "SUCCESS" for task in tasks)


def listed(body: str) -> list[dict[str, str]]:
    return list(orjson.loads(body).values())


@for_each("password", [None, "no-colon", "a:b,"])
def test_it_does_not_start_where_others_reach_it_without_a_password(
    password: str | None, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FLOWER")},
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        **({} if password is None else {"FLOWER_BASIC_AUTH": password}),
    }
    ended = run(["-m", "parley", "serve", "flower", "--host", "0.0.0.0"], environment=environment)
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        "parley: Flower would be open to everyone on 0.0.0.0: set FLOWER_BASIC_AUTH"
    )


@pytest.mark.slow
def test_it_ends_by_the_first_signal_wherever_that_finds_it(redis_url: str) -> None:
    """An exception that a signal raises in a destructor has no effect."""
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED_IN_A_DESTRUCTOR],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": redis_url},
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0
