"""Workers ignore commands through the broker, accept only JSON, and survive invalid messages (RT-22)."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from celery import Celery
from celery.exceptions import NotRegistered
from kombu.simple import SimpleQueue

from orchestrator.ports.tasks import SUBMIT_TURN
from parley.diagnosis.messaging import examine_processes
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.fleet import Worker, fleet, wait_until

SAID = "xylophone"
"""A word in every dropped message, and in no log."""
DROPPED = re.compile(r"was dropped\.|Dropped an? ")
PICKLED = {"content_type": "application/x-python-serialize", "content_encoding": "binary"}


@dataclass
class Target:
    """A worker that all tests attack, as it is before each of them. `ended_at`: size of its log then."""

    worker: Worker
    redis_url: str
    ended_at: int

    def log(self) -> str:
        """Return what the worker has logged during this test."""
        assert self.worker.process.poll() is None
        return self.worker.log.read_text()[self.ended_at :]

    def refused(self) -> list[bytes]:
        """Return the stored notes on refused messages."""
        with redis.Redis.from_url(self.redis_url) as queues:
            return queues.lrange("parley:refused", 0, -1)


@pytest.fixture(scope="module")
def worker(
    database: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    with fleet(database, module_redis_url, tmp_path_factory.mktemp("crew")) as crew:
        yield crew.start(1)[0]


@pytest.fixture
def target(worker: Worker, module_redis_url: str) -> Target:
    with redis.Redis.from_url(module_redis_url) as queues:
        queues.delete("parley:refused")
    return Target(worker, module_redis_url, len(worker.log.read_text()))


@pytest.fixture
def sender(module_redis_url: str) -> Iterator[Celery]:
    with celery_client(module_redis_url) as app:
        yield app


def answered(sender: Celery, session: str) -> bool:
    sent = submit_turn(sender, session, "say", wait=20)
    return sent.get(timeout=30, interval=0.05)["status"] == "done"


def put(sender: Celery, message: Any, **properties: Any) -> None:
    with sender.connection_for_write() as connection:
        queue = SimpleQueue(connection, "submissions")
        queue.put(message, **properties)
        queue.close()


class Exploit:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


def test_a_pickled_message_is_refused_without_being_loaded(
    target: Target, sender: Celery, tmp_path: Path
) -> None:
    trace = tmp_path / "loaded"
    payload = pickle.dumps([[], {"text": SAID, "x": Exploit(trace)}, {}])
    put(sender, payload, headers={"task": SUBMIT_TURN, "id": "p2"}, **PICKLED)
    put(sender, pickle.dumps({"task": SUBMIT_TURN, "id": "p1", "args": [Exploit(trace)]}), **PICKLED)
    put(sender, pickle.dumps(Exploit(trace)), headers={"task": "nothing.of_ours", "id": "p0"}, **PICKLED)

    assert answered(sender, "after-pickle")
    assert not trace.exists()
    assert len(DROPPED.findall(target.log())) == 3
    pickle.loads(payload)  # sending it would create the folder
    assert trace.exists()


SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "no task": ({"text": SAID}, {}),
    "a list": ([SAID], {}),
    "no JSON": (f"{{{SAID}", {"content_type": "application/json", "content_encoding": "utf-8"}),
    "no JSON in a task": (
        f"{{{SAID}",
        {
            "content_type": "application/json",
            "content_encoding": "utf-8",
            "headers": {"task": SUBMIT_TURN, "id": "a"},
        },
    ),
    "of no known type": (SAID, {"content_type": "text/x-nothing", "content_encoding": "utf-8"}),
    "an unknown task": ([[], {"text": SAID}, {}], {"headers": {"task": "nothing.of_ours", "id": "b"}}),
    "an unknown task without an identifier": (
        [[], {"text": SAID}, {}],
        {"headers": {"task": "nothing.of_ours"}},
    ),
    "a task that is no name": ([[], {"text": SAID}, {}], {"headers": {"task": {"a": SAID}, "id": "c"}}),
    "no identifier": ([[], {"text": SAID}, {}], {"headers": {"task": SUBMIT_TURN}}),
    "a body that is no list": ({"text": SAID}, {"headers": {"task": SUBMIT_TURN, "id": "d"}}),
    "a body that is too short": ([[SAID]], {"headers": {"task": SUBMIT_TURN, "id": "e"}}),
    "a number for a body": (7, {"headers": {"task": SUBMIT_TURN, "id": "f"}}),
    "arguments that are none": ([SAID, [SAID], {}], {"headers": {"task": SUBMIT_TURN, "id": "g"}}),
    "a time that is none": (
        [[], {"text": SAID}, {}],
        {"headers": {"task": SUBMIT_TURN, "id": "h", "eta": SAID}},
    ),
    "an end that is none": (
        [[], {"text": SAID}, {}],
        {"headers": {"task": SUBMIT_TURN, "id": "i", "expires": [SAID]}},
    ),
    "limits that are none": (
        [[], {"text": SAID}, {}],
        {"headers": {"task": SUBMIT_TURN, "id": "j", "timelimit": 1}},
    ),
    "compressed as nobody can": ([SAID], {"headers": {"task": SUBMIT_TURN, "id": "k", "compression": SAID}}),
}


def test_messages_that_are_none_are_dropped_and_the_worker_lives_on(target: Target, sender: Celery) -> None:
    """One worker takes all of them and is unchanged afterwards; none is redelivered."""
    for number, (message, properties) in enumerate(SHAPES.values()):
        put(sender, message, **properties)
        assert answered(sender, f"after-{number}"), list(SHAPES)[number]
    log = target.log()
    assert "Unrecoverable" not in log
    assert SAID not in log
    assert len(target.refused()) == len(DROPPED.findall(log)) >= 10
    assert SAID not in str(target.refused())


ENVELOPE: dict[str, Any] = {
    "body": "W10=",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {"task": SUBMIT_TURN, "id": "x", "note": SAID},
    "properties": {
        "delivery_tag": "tag",
        "body_encoding": "base64",
        "delivery_info": {"exchange": "", "routing_key": "submissions"},
    },
}


def changed(**properties: Any) -> dict[str, Any]:
    return {**ENVELOPE, "properties": {**ENVELOPE["properties"], **properties}}


ENVELOPES: dict[str, Any] = {
    "no object": [SAID],
    "nothing": None,
    "no properties": {"body": SAID},
    "properties that are none": {**ENVELOPE, "properties": SAID},
    "a body's encoding that is a number": changed(body_encoding=7),
    "a body's encoding that nobody knows": changed(body_encoding=SAID),
    "a tag that is an object": changed(delivery_tag={}),
    "a tag that is a list": changed(delivery_tag=[SAID]),
    "no place": changed(delivery_info=None),
    "a place that is a list": changed(delivery_info=[SAID]),
    "a priority that is none": changed(priority=SAID),
    "headers that are a list": {**ENVELOPE, "headers": [SAID]},
    "a body that is an object": {**ENVELOPE, "body": {"text": SAID}},
    "a body that is no base64": {**ENVELOPE, "body": "x"},
    "a type that is a list": {**ENVELOPE, "content-type": [SAID]},
}
BYTES = [
    *(b"", b"\xff\xfe", SAID.encode(), b"{", b"[" * 100_000, b"NaN", b'"' + SAID.encode() + b'"'),
    b'{"__type__": "uuid", "__value__": 7}',
]


def test_envelopes_that_are_none_are_dropped_and_the_worker_lives_on(target: Target, sender: Celery) -> None:
    """Messages that a sender puts directly into the queue, without Celery's client."""
    written = [*(orjson.dumps(envelope) for envelope in ENVELOPES.values()), *BYTES]
    with redis.Redis.from_url(target.redis_url) as queues:
        for item in written:
            queues.lpush("submissions", item)

        assert answered(sender, "after-envelopes")
        assert queues.hlen("unacked") == 0
    assert target.log().count("A malformed message was dropped.") == len(written)
    assert SAID not in target.log()
    kept = target.refused()
    assert len(kept) == len(written)
    assert SAID not in str(kept)
    assert orjson.loads(kept[-1])["wrong"] == "envelope"
    (found,) = [each for each in examine_processes(target.redis_url) if each.name == "refused messages"]
    assert f"{len(written)} stored without their contents" in found.message


@pytest.mark.usefixtures("target")
def test_who_waits_for_a_task_that_does_not_exist_is_told(sender: Celery) -> None:
    with pytest.raises(NotRegistered):
        sender.send_task("orchestrator.submit_turns", queue="submissions").get(timeout=20, interval=0.05)


def ask_to_stop(sender: Celery, worker: Worker) -> None:
    """Send the commands of `celery control shutdown`, to all and by name, and other commands that stop work."""
    name = f"{worker.log.stem}-"
    sender.control.shutdown()
    for command in ("shutdown", "cancel_consumer", "pool_shrink", "rate_limit", "revoke", "terminate"):
        arguments = {
            "queue": "submissions",
            "n": 8,
            "task_name": SUBMIT_TURN,
            "rate_limit": "1/d",
            "task_id": "x",
        }
        sender.control.broadcast(command, arguments=arguments, pattern=f"{name}*", matcher="glob")


def test_remote_control_through_the_broker_does_nothing(target: Target, sender: Celery) -> None:
    ask_to_stop(sender, target.worker)
    assert sender.control.inspect(timeout=1).ping() is None
    for number in range(3):
        assert answered(sender, f"controlled-{number}")
    assert target.worker.process.poll() is None


def test_remote_control_does_stop_a_worker_that_is_told_to_obey(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    """Otherwise the test above would pass with commands that reach no worker."""
    with (
        fleet(database, redis_url, tmp_path, {"PARLEY_REMOTE_CONTROL": "true"}) as crew,
        celery_client(redis_url) as sender,
    ):
        (worker,) = crew.start(1)
        wait_until(lambda: sender.control.inspect(timeout=1).ping(), within_s=20, what="the worker answers")
        ask_to_stop(sender, worker)
        wait_until(lambda: worker.process.poll() is not None, within_s=40, what="the worker stops")
