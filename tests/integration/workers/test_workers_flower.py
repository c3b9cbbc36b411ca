"""Sessions at work are shown to whoever watches task events, though no message is sent for each turn."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from celery import Celery

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.tasks import RUN_SESSION
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.submitting import submitter


async def test_each_run_of_a_lane_is_shown(database_url: str, redis_url: str, tmp_path: Path) -> None:
    migrate(database_url)
    shown: dict[str, list[dict[str, Any]]] = {"received": [], "started": [], "succeeded": []}
    watched = threading.Event()
    with (
        fleet(database_url, redis_url, tmp_path) as crew,
        Celery(set_as_current=False, broker=for_celery(redis_url)) as app,
    ):
        crew.start(1, options=("-E",))
        watching = asyncio.create_task(asyncio.to_thread(_watch, app, shown, watched))
        async with submitter(database_url, redis_url) as client:
            for number in range(3):
                await client.finished(await client.submit(f"shown-{number}", "say"))
        await asyncio.to_thread(
            wait_until, lambda: len(_sessions(shown)) == 3, within_s=20, what="3 are shown"
        )
        watched.set()
        await watching

    received = {event["uuid"]: event for event in shown["received"]}
    ours = [event for event in shown["succeeded"] if event["uuid"] in received]
    assert _sessions(shown) == {"['shown-0']", "['shown-1']", "['shown-2']"}
    assert {received[event["uuid"]]["name"] for event in ours} == {RUN_SESSION}
    assert all("say" not in str(event) for event in received.values()), "contents are not shown"


def _sessions(shown: dict[str, list[dict[str, Any]]]) -> set[str]:
    ended = {event["uuid"] for event in shown["succeeded"]}
    return {
        event["args"] for event in shown["received"] if event["uuid"] in ended and "shown-" in event["args"]
    }


def _watch(app: Celery, shown: dict[str, list[dict[str, Any]]], until: threading.Event) -> None:
    with app.connection() as connection:
        handlers = {f"task-{kind}": events.append for kind, events in shown.items()}
        receiver = app.events.Receiver(connection, handlers=handlers)
        while not until.is_set():
            try:
                receiver.capture(limit=None, timeout=0.5, wakeup=False)
            except TimeoutError:
                continue
