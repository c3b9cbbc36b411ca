"""k8s/: scaler queries return the intended numbers, on real stores under load."""

from __future__ import annotations

from pathlib import Path

import psycopg
import redis
from celery import Celery

from orchestrator.adapters.redis.address import for_celery
from orchestrator.adapters.task_sender import TASK_QUEUES
from orchestrator.ports.tasks import START_RUN
from tests.celery_clients import submit_turn
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.submitting import submitter
from tests.integration.deploy.fixtures.manifests import KEDA_COUNT, Manifest, named


def triggers(scaled: str) -> dict[str, Manifest]:
    found = named("prod", "ScaledObject", scaled)["spec"]["triggers"]
    return {trigger["name"]: trigger for trigger in found if trigger["type"] != "cpu"}


def ask(trigger: Manifest, database_url: str, redis_url: str) -> float:
    """Query a trigger's source like its scaler."""
    if trigger["type"] == "redis":
        with redis.Redis.from_url(redis_url) as client:
            return float(client.eval(KEDA_COUNT, 1, trigger["metadata"]["listName"]))
    with psycopg.connect(database_url) as connection:
        row = connection.execute(trigger["metadata"]["query"]).fetchone()
    assert row is not None
    return float(row[0])


def wanted_replicas(numbers: dict[str, float], scaled: str) -> int:
    """Return the number of replicas for the largest number, within the bounds of the ScaledObject."""
    spec = named("prod", "ScaledObject", scaled)["spec"]
    given = triggers(scaled)

    def asked_for(name: str, number: float) -> float:
        metadata = given[name]["metadata"]
        return number / float(metadata.get("listLength") or metadata["targetQueryValue"])

    most = max(asked_for(name, number) for name, number in numbers.items())
    return max(spec["minReplicaCount"], min(spec["maxReplicaCount"], -int(-most // 1)))


SCALED = ("parley-turns", "parley-submissions", "parley-internal")


async def test_what_waits_raises_the_number_and_workers_bring_it_down(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:

    def numbers(scaled: str) -> dict[str, float]:
        return {name: ask(trigger, database_url, redis_url) for name, trigger in triggers(scaled).items()}

    assert {value for scaled in SCALED for value in numbers(scaled).values()} == {0}

    async with submitter(database_url, redis_url) as client:
        await client.submit_all((f"waiting-{number}" for number in range(40)), 2, lambda _: "say")
    with Celery(set_as_current=False, broker=for_celery(redis_url)) as backend:
        backend.conf.task_queues = TASK_QUEUES
        for number in range(7):
            submit_turn(backend, f"sent-{number}", "say", ignore_result=True)
        for _ in range(3):
            backend.send_task(
                START_RUN, kwargs={"flow": "expire_sessions"}, queue="internal", ignore_result=True
            )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE turns SET accepted_at = accepted_at - interval '11 s'")

    found = numbers("parley-turns")
    assert found["ready-sessions"] == 40
    assert sum(numbers("parley-submissions").values()) == 7
    assert 11 <= found["inbox-age"] < 60
    assert wanted_replicas(found, "parley-turns") >= 6, "by age: a worker for every two seconds"
    assert numbers("parley-internal")["internal"] == 3
    assert wanted_replicas(numbers("parley-internal"), "parley-internal") == 1

    with fleet(database_url, redis_url, tmp_path) as crew:
        crew.start(1)
        crew.start(1, queues="internal,urgent")
        for scaled in SCALED:
            wait_until(
                lambda scaled=scaled: not any(numbers(scaled).values()),
                within_s=60,
                what=f"nothing waits that {scaled} is scaled by",
            )
    assert wanted_replicas(numbers("parley-turns"), "parley-turns") == 2
