"""Turns through the broker only: submit, show, cancel, decide, revoke and expire (RT-1, RT-5, RT-22, RT-23)."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from celery import Celery
from celery.exceptions import TaskRevokedError

from orchestrator.adapters.redis.address import for_celery
from parley.main import run
from tests.celery_clients import connected
from tests.integration.chaos.fleet import ROOT, Fleet, fleet, wait_until
from tests.integration.front_door.plain_backend import make_app
from tests.processes.rows import read_rows

SUBMISSIONS = "submissions"
DOCUMENT = ROOT / "docs" / "submit-by-celery.md"


class Backend:
    def __init__(self, app: Celery, database_url: str) -> None:
        self.app, self._database_url = app, database_url

    def send(self, verb: str, /, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        name = f"orchestrator.{verb}"
        return self.app.send_task(name, args=args, kwargs=kwargs, queue=SUBMISSIONS, **(options or {}))

    def call(self, verb: str, /, *args: Any, **kwargs: Any) -> Any:
        return self.send(verb, *args, **kwargs).get(timeout=40, interval=0.05)

    def turn(self, session: str, text: str, **more: Any) -> dict[str, Any]:
        return {"session_id": session, "domain": "counting", "text": text, **more}

    def status(self, session: str) -> list[str]:
        query = "SELECT status FROM turns WHERE session_id = %s ORDER BY seq"
        return [status for (status,) in read_rows(self._database_url, query, [session])]

    def note_effect(self, session: str, turn_id: str, tool_id: str) -> None:
        """Insert a ledger entry like a call of the turn."""
        with psycopg.connect(self._database_url) as connection:
            connection.execute(
                "INSERT INTO effects (session_id, fingerprint, tenant_id, turn_id, step_key, idempotency_key, flow_id,"
                " tool_id, arguments, slots, status)"
                " VALUES (%s, 'f', 'default', %s, 'k', 'k', 'flow', %s, '{\"to\": \"ann\"}', '{}', 'done')",
                (session, turn_id, tool_id),
            )

    def until(self, session: str, *statuses: str) -> None:
        what = f"the turns of {session} are {statuses}"
        wait_until(lambda: self.status(session) == list(statuses), within_s=20, what=what)


@pytest.fixture(scope="module")
def crew(database: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    settings = {"PARLEY_LEASE_TTL_S": "3"}
    with fleet(database, module_redis_url, tmp_path_factory.mktemp("crew"), settings) as crew:
        crew.start(1)
        yield crew


@pytest.fixture
def backend(crew: Fleet) -> Iterator[Backend]:
    with backend_of(crew.database_url, crew.redis_url) as backend:
        yield backend


@contextmanager
def backend_of(database_url: str, redis_url: str) -> Iterator[Backend]:
    url = for_celery(redis_url)
    with connected(make_app(url, url)) as app:
        yield Backend(app, database_url)


def test_a_turn_is_shown_by_its_identifier_its_key_or_its_receipt(backend: Backend) -> None:
    sent = backend.send("submit_turn", **backend.turn("shown", "wait 0.5"))
    receipt = sent.get(timeout=30)

    shown = backend.call("show_turn", turn_id=receipt["turn_id"], wait=20)
    assert (shown["status"], shown["reply"], shown["seq"]) == ("done", "1", 1)
    assert backend.call("show_turn", receipt) == shown
    assert backend.call("show_turn", idempotency_key=sent.id) == shown, (
        "the message's own identifier is the key"
    )
    with pytest.raises(Exception, match="Turn 'turn_0' not found") as caught:
        backend.call("show_turn", turn_id="turn_0")
    assert caught.value.args[0] == "not_found"


def test_a_message_in_its_documented_form_needs_no_client(crew: Fleet) -> None:
    """As `docs/submit-by-celery.md` documents the message for other languages."""
    text = DOCUMENT.read_text()
    (form,) = re.findall(r"```json\n(.*?)```", text.partition("## Other languages")[2], re.DOTALL)
    arguments = {"session_id": "from-elsewhere", "domain": "counting", "text": "hello", "wait": 20}
    message = json.loads(form.replace("<id>", "message-1"))
    message["body"] = base64.b64encode(json.dumps([[], arguments, {}]).encode()).decode()
    with redis.Redis.from_url(crew.redis_url) as server:
        server.lpush(SUBMISSIONS, json.dumps(message))
        wait_until(lambda: server.exists("celery-task-meta-message-1"), within_s=60, what="there is a result")
        result = json.loads(server.get("celery-task-meta-message-1"))

    assert (result["status"], result["result"]["status"], result["result"]["count"]) == ("SUCCESS", "done", 1)


def test_more_waiting_submissions_than_threads_still_end(backend: Backend) -> None:
    """Eight threads wait for turns, and no thread remains for the wake-up."""
    sent = [backend.send("submit_turn", **backend.turn(f"full-{n}", "wait 0.1", wait=25)) for n in range(12)]

    assert [one.get(timeout=40, interval=0.05)["status"] for one in sent] == ["done"] * 12


def test_one_key_is_one_turn_of_its_session_and_names_none_of_two_sessions(backend: Backend) -> None:
    for session in ("one", "two"):
        order = backend.turn(session, "say", idempotency_key="order")
        first, again = (backend.call("submit_turn", **order) for _ in range(2))
        assert again["turn_id"] == first["turn_id"]
    with pytest.raises(Exception, match="specify session_id"):
        backend.call("show_turn", idempotency_key="order")
    assert (
        backend.call("show_turn", idempotency_key="order", session_id="two", wait=20)["session_id"] == "two"
    )


def test_a_waiting_turn_is_cancelled_and_its_sender_told(backend: Backend, tmp_path: Path) -> None:
    backend.send("submit_turn", **backend.turn("queue", f"until {tmp_path / 'go'}"))
    backend.until("queue", "running")
    waits = backend.send("submit_turn", **backend.turn("queue", "say", wait=60))
    backend.until("queue", "running", "queued")

    cancelled = backend.call("cancel_turn", idempotency_key=waits.id)
    assert (cancelled["status"], cancelled["done"]) == ("cancelled", [])
    assert waits.get(timeout=10)["status"] == "cancelled"
    (tmp_path / "go").touch()
    backend.until("queue", "done", "cancelled")


def test_a_running_turn_is_stopped_and_what_it_did_is_told(backend: Backend, tmp_path: Path) -> None:
    receipt = backend.call("submit_turn", **backend.turn("runs", f"effect until {tmp_path / 'never'}"))
    backend.until("runs", "running")
    backend.note_effect("runs", receipt["turn_id"], "parcel_send")

    cancelled = backend.call("cancel_turn", turn_id=receipt["turn_id"])
    assert (cancelled["turn_id"], cancelled["status"]) == (receipt["turn_id"], "cancelled")
    assert cancelled["done"] == [{"tool_id": "parcel_send", "arguments": {"to": "ann"}, "status": "done"}]
    assert backend.call("cancel_turn", turn_id=receipt["turn_id"])["status"] == "cancelled", "again"


@pytest.mark.parametrize("wait", [None, 60])
def test_revoke_cancels_what_is_running(backend: Backend, tmp_path: Path, wait: float | None) -> None:
    session = f"revoked-{wait}"
    more = {} if wait is None else {"wait": wait}
    sent = backend.send("submit_turn", **backend.turn(session, f"until {tmp_path / 'never'}", **more))
    backend.until(session, "running")

    sent.revoke()

    backend.until(session, "cancelled")
    if wait is not None:
        with pytest.raises(TaskRevokedError, match="without side effects"):
            sent.get(timeout=10)
        assert sent.state == "REVOKED"


def test_revoke_of_one_that_only_waits_leaves_the_turn_alone(backend: Backend, tmp_path: Path) -> None:
    receipt = backend.call("submit_turn", **backend.turn("watched", f"until {tmp_path / 'go'}"))
    shows = backend.send("show_turn", turn_id=receipt["turn_id"], wait=60)
    backend.until("watched", "running")
    time.sleep(1)

    shows.revoke()

    with pytest.raises(TaskRevokedError):
        shows.get(timeout=10)
    (tmp_path / "go").touch()
    backend.until("watched", "done")


def test_a_turn_that_expires_while_it_waits_is_cancelled(backend: Backend, tmp_path: Path) -> None:
    backend.send("submit_turn", **backend.turn("late", f"until {tmp_path / 'go'}"))
    backend.until("late", "running")
    sent = backend.send("submit_turn", options={"expires": 2}, **backend.turn("late", "say", wait=60))
    plain = backend.send("submit_turn", options={"expires": 2}, **backend.turn("late", "say"))

    with pytest.raises(TaskRevokedError, match="expired"):
        sent.get(timeout=20)
    assert plain.get(timeout=5)["status"] == "queued", "its receipt"
    backend.until("late", "running", "cancelled", "cancelled")
    (tmp_path / "go").touch()


def test_a_wait_that_is_over_ends_with_the_turn_as_it_is(backend: Backend, tmp_path: Path) -> None:
    waited = backend.call("submit_turn", **backend.turn("slow", f"until {tmp_path / 'go'}", wait=1))
    assert waited["status"] == "running"
    (tmp_path / "go").touch()


def test_an_approval_that_is_not_there_is_refused(backend: Backend) -> None:
    with pytest.raises(Exception, match="approval") as caught:
        backend.call("decide_approval", "approval_0", "grant")
    assert caught.value.args[0] == "not_found"
    with pytest.raises(Exception, match="decision") as caught:
        backend.call("decide_approval", approval_id="approval_0", decision="perhaps")
    assert caught.value.args[0] == "invalid_input"
    with pytest.raises(Exception, match="reason"):  # longer than over HTTP
        backend.call("decide_approval", approval_id="approval_0", decision="grant", reason="x" * 1001)


def test_too_many_positional_arguments_are_refused(backend: Backend) -> None:
    with pytest.raises(Exception, match="At most 2 positional"):
        backend.call("submit_turn", "session", "say", "more")
    told = backend.call("submit_turn", "by-position", "say", domain="counting", wait=20)
    assert (told["session_id"], told["text"], told["status"]) == ("by-position", "say", "done")


def test_what_is_refused_for_good_is_listed_and_replayed_without_showing_contents(
    backend: Backend, crew: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REDIS_URL", crew.redis_url)

    def letters() -> list[dict[str, Any]]:
        assert run(["dead-letters", "list", "--json"]) == 0
        printed = capsys.readouterr().out
        assert "xylophone" not in printed
        return [json.loads(line) for line in printed.splitlines()]

    for earlier in letters():
        assert run(["dead-letters", "drop", earlier["id"]]) == 0
    capsys.readouterr()
    with pytest.raises(Exception, match="Unknown domain"):
        backend.call("submit_turn", session_id="lost", domain="not-yet", text="say xylophone", wait=20)
    backend.app.send_task("orchestrator.later", kwargs={"text": "xylophone"}, queue=SUBMISSIONS)
    with pytest.raises(Exception, match="Turn 'turn_0' not found"):
        backend.call("show_turn", turn_id="turn_0")
    wait_until(lambda: len(letters()) == 2, within_s=20, what="both are kept")
    unknown, refused = letters()
    assert (unknown["task"], unknown["code"]) == ("orchestrator.later", "unknown_task")
    assert (refused["code"], refused["session_id"]) == ("invalid_input", "lost")
    assert refused["queue"] == SUBMISSIONS

    assert run(["dead-letters", "drop", unknown["id"]]) == 0
    assert run(["dead-letters", "replay", "--all"]) == 0
    capsys.readouterr()
    wait_until(
        lambda: [one["id"] for one in letters()] != [refused["id"]], within_s=20, what="it was sent again"
    )
    wait_until(lambda: len(letters()) == 1, within_s=20, what="it is refused again, by the same worker")
    assert letters()[0]["code"] == "invalid_input"
    assert run(["dead-letters", "replay", "dead_0"]) != 0
