"""RabbitMQ as the broker by `PARLEY_BROKER_URL`: the same tasks, without loss after a kill (RT-18, RT-21)."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from amqp import Message
from celery import Celery

from orchestrator.adapters.broker_queues import TASK_QUEUES
from orchestrator.adapters.task_sender import producer_options
from orchestrator.ports.tasks import START_RUN, SUBMIT_TURN
from parley.diagnosis.messaging import examine_broker
from parley.main import run
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import ROOT, fleet, wait_until
from tests.integration.chaos.submitting import Submitter, all_finished
from tests.integration.deploy.fixtures.manifests import named
from tests.integration.workers.rabbit import Rabbit, is_installed, rabbit
from tests.processes.rows import read_rows

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="Debian's package rabbitmq-server is not installed"),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    with rabbit(tmp_path_factory.mktemp("rabbit") / "node") as running:
        yield running


@pytest.fixture
def backend(node: Rabbit, redis_url: str) -> Iterator[Celery]:
    """A backend that uses only Celery and the broker."""
    with celery_client(node.url, redis_url) as app:
        app.conf.update(
            task_queues=TASK_QUEUES,
            task_default_queue="submissions",
            broker_transport_options=producer_options(node.url),
        )
        with app.connection_for_write() as connection:
            for queue in TASK_QUEUES:
                # Messages of another test's killed workers would be redelivered to this test's workers.
                queue.bind(connection.default_channel).declare()
                queue.bind(connection.default_channel).purge()
        yield app


def submit(backend: Celery, session: str, text: str) -> dict[str, object]:
    return submit_turn(backend, session, text, wait=30).get(timeout=60)


def count(database_url: str, query: LiteralString) -> int:
    [(found,)] = read_rows(database_url, query)
    return found


def test_turns_and_internal_flows_go_through_it(
    node: Rabbit, backend: Celery, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_BROKER_URL": node.url}) as crew:
        crew.start(1)
        crew.start(1, queues="internal,urgent")
        assert submit(backend, "through-rabbit", "say")["status"] == "done"
        assert submit(backend, "through-rabbit", "say again")["reply"] == "2"

        backend.send_task(START_RUN, kwargs={"flow": "expire_sessions"}, queue="internal")
        wait_until(
            lambda: count(
                database_url,
                "SELECT count(*) FROM internal_runs WHERE flow = 'expire_sessions' AND status = 'done'",
            ),
            within_s=30,
            what="the flow that was asked for has run",
        )


def test_scalers_and_doctor_ask_it_what_waits(node: Rabbit, backend: Celery) -> None:
    """RT-21: KEDA counts the queues in which messages wait; the doctor checks the broker."""
    for queue, count in (("submissions", 7), ("internal", 3), ("urgent", 2)):
        for _ in range(count):
            backend.send_task(START_RUN, kwargs={"flow": "nothing"}, queue=queue, ignore_result=True)
    told: dict[str, int] = {}
    with backend.connection_for_read() as connection:
        for scaled in ("parley-submissions", "parley-internal"):
            for trigger in named("prod-rabbitmq", "ScaledObject", scaled)["spec"]["triggers"]:
                if trigger["type"] == "rabbitmq":
                    name = trigger["metadata"]["queueName"]
                    # Like KEDA's scaler in QueueLength mode.
                    told[name] = connection.default_channel.queue_declare(name, passive=True).message_count
    assert told == {"submissions": 7, "internal": 3, "urgent": 2}

    (finding,) = examine_broker(node.url)
    assert (finding.name, finding.fine) == ("broker", True)
    assert str(urlsplit(node.url).password) not in str(finding)


SAID = "xylophone"
JSON = {"content_type": "application/json", "content_encoding": "utf-8"}
# Bodies and properties that a sender can send without Celery's client.
ODD: list[tuple[bytes, dict[str, Any]]] = [
    (SAID.encode(), {}),
    (b"[[], {}, {}]", {"content_type": f"no {SAID}"}),
    (b"\xff\xfe", {"content_type": "application/json", "content_encoding": "utf-8"}),
    (b"[[], {}, {}]", {**JSON, "content_encoding": SAID}),
    (b"[" * 100_000, JSON),
    *(
        (body, JSON)
        for body in (
            b'{"task": 7}',
            b'{"task": "none", "id": [7]}',
            b'{"task": "orchestrator.submit_turn", "id": ["xylophone"]}',
            b'{"task": ["xylophone"]}',
        )
    ),
    (b'{"task": "orchestrator.submit_turn", "args": 7, "kwargs": "xylophone"}', JSON),
    (
        pickle.dumps([[SAID], {}, {}]),
        {"content_type": "application/x-python-serialize", "content_encoding": "binary"},
    ),
    *(
        (b"[[], {}, {}]", {**JSON, "application_headers": {"task": SUBMIT_TURN, "id": "x", **odd}})
        for odd in (
            {"task": 7},
            {"task": [SAID]},
            {"id": [SAID]},
            {"id": {"a": SAID}},
            {"id": f"{SAID}\n" * 5_000},
            {"retries": SAID},
            {"eta": SAID},
            {"expires": [SAID]},
            {"timelimit": 7},
            {"compression": SAID},
            {"stamps": SAID, "stamped_headers": 7},
            {"replaced_task_nesting": SAID},
        )
    ),
    (b"[[], {}, {}]", {**JSON, "reply_to": SAID, "priority": 255, "correlation_id": "a" * 255}),
    (b"[7, 7, 7]", {**JSON, "application_headers": {"task": SUBMIT_TURN, "id": "y"}}),
    (b"{}", {**JSON, "application_headers": {"task": SUBMIT_TURN, "id": "z"}}),
    (b'[[], "x", {}]', {**JSON, "application_headers": {"task": SUBMIT_TURN, "id": "z"}}),
]


def test_messages_that_are_none_end_no_worker(
    node: Rabbit, backend: Celery, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """RT-22: each is dropped, logged without contents, and not redelivered."""
    with (
        fleet(database_url, redis_url, tmp_path, {"PARLEY_BROKER_URL": node.url}) as crew,
        backend.connection_for_write() as connection,
    ):
        (worker,) = crew.start(1)
        channel = connection.default_channel
        for number, (body, properties) in enumerate(ODD):
            channel.basic_publish(Message(body, **properties), exchange="", routing_key="submissions")
            assert submit(backend, f"after-{number}", "say")["status"] == "done", (body[:40], properties)
        assert worker.process.poll() is None
        assert channel.queue_declare("submissions", passive=True).message_count == 0
        log = worker.log.read_text()
    assert SAID not in log
    with redis.Redis.from_url(redis_url) as kept:
        refused = kept.lrange("parley:refused", 0, -1)
    assert len(refused) == len(re.findall(r"was dropped\.|Dropped an? ", log)) > 20
    assert SAID not in str(refused)


POLICY = '{"delivery-limit": 20, "dead-letter-exchange": "parley.dead"}'


def test_what_was_delivered_too_often_is_listed_and_replayed(
    node: Rabbit,
    backend: Celery,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RT-30: with the documented policy, by workers at the last delivery, and by the broker after it."""
    assert POLICY in (ROOT / "docs" / "submit-by-celery.md").read_text()
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("PARLEY_BROKER_URL", node.url)

    def send_and_return(session: str, times: int) -> None:
        """Send a submission, and receive it `times` times without acknowledgment, like dying workers."""
        submit_turn(backend, session, f"say {SAID}", ignore_result=True)
        with backend.connection_for_write() as connection:
            for _ in range(times):
                with connection.channel() as channel:
                    wait_until(partial(channel.basic_get, "submissions"), within_s=10, what="it is there")

    def has_no_consumer() -> bool:
        with backend.connection_for_write() as connection, connection.channel() as channel:
            return channel.queue_declare("submissions", passive=True).consumer_count == 0

    def letters() -> list[dict[str, Any]]:
        assert run(["dead-letters", "list", "--json"]) == 0
        printed = capsys.readouterr().out
        assert SAID not in printed
        return [json.loads(line) for line in printed.splitlines()]

    node.control("set_policy", "parley", "^(submissions|internal)$", POLICY, "--apply-to", "queues")
    try:
        with fleet(database_url, redis_url, tmp_path, {"PARLEY_BROKER_URL": node.url}) as crew:
            (declares,) = crew.start(1, queues="submissions")
            declares.kill()
            # Until RabbitMQ notices the kill, deliveries to the killed worker count.
            wait_until(has_no_consumer, within_s=10, what="the queue has no consumer")
            send_and_return("given-up", 21)
            send_and_return("once-more", 20)
            crew.start(1)
            wait_until(lambda: len(letters()) == 2, within_s=20, what="both are kept")
            told = {letter["code"]: (letter["queue"], letter["task"]) for letter in letters()}
            assert told == dict.fromkeys(
                ("delivery_limit", "delivered_too_often"), ("submissions", SUBMIT_TURN)
            )

            assert run(["dead-letters", "replay", "--all"]) == 0
            done = (
                "SELECT count(*) FROM turns WHERE session_id IN ('given-up', 'once-more') AND status = 'done'"
            )
            wait_until(lambda: count(database_url, done) == 2, within_s=20, what="both are done")
            capsys.readouterr()
            assert letters() == []
    finally:
        node.control("clear_policy", "parley")


@pytest.mark.slow
def test_submissions_that_it_confirmed_outlive_it(
    node: Rabbit, backend: Celery, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Queues and messages are durable: confirmed submissions survive a crash of the node."""
    for number in range(20):
        submit_turn(backend, f"kept-{number}", "say", ignore_result=True)
    node.kill()
    node.start()
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_BROKER_URL": node.url}) as crew:
        crew.start(1)
        done = "SELECT count(*) FROM turns WHERE session_id LIKE 'kept-%' AND status = 'done'"
        wait_until(lambda: count(database_url, done) == 20, within_s=60, what="all 20 are done")


@pytest.mark.parametrize(
    ("count_of_sessions", "turns"), [(6, 4), pytest.param(30, 8, marks=pytest.mark.slow)]
)
async def test_it_may_be_killed_in_the_middle_of_a_load(
    node: Rabbit,
    backend: Celery,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    count_of_sessions: int,
    turns: int,
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        tables = "sessions, turns, journal, events, utterances, state_history"
        connection.execute(f"TRUNCATE {tables} CASCADE")
    environment = {"PARLEY_BROKER_URL": node.url, "PARLEY_RUNNER_LINGER_S": "0.2"}
    with fleet(database_url, redis_url, tmp_path, environment) as crew:
        crew.start(2)
        async with crew.ports(PARLEY_BROKER_URL=node.url) as ports:
            client = Submitter(ports)
            sessions = [f"load-{number}" for number in range(count_of_sessions)]
            load = asyncio.create_task(client.submit_all(sessions, turns, lambda _: "wait 0.05"))
            while len(client.accepted) < count_of_sessions * turns // 4:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(node.kill)
            await load
            await all_finished(database_url, within_s=90)

            await asyncio.to_thread(node.start)
            history = read_history(database_url, client.accepted)
            assert Counter(turn.status for turn in history.turns) == {"done": count_of_sessions * turns}
            assert check(history) == []

        again = await asyncio.to_thread(submit, backend, "after", "say")
        assert again["status"] == "done", "workers found the broker again"
        assert all(worker.process.poll() is None for worker in crew.workers)
