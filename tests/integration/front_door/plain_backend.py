"""Somebody else's Celery application: it knows a broker, a store of results and the names of tasks, not Parley.

`celery -A tests.integration.front_door.plain_backend worker -Q theirs` is its worker. What its tasks were called with
is kept in a list of Redis, one entry for each time a task ran.
"""

import json
import os
from typing import Any

import redis
from celery import Celery, Task

LOG = "their-log"
THEIRS = "theirs"


def make_app(broker: str, results: str) -> Celery:
    """The application, with what the documentation tells senders to configure."""
    app = Celery("theirs", broker=broker, backend=results, set_as_current=False)
    app.conf.task_create_missing_queue_type = "quorum"
    app.conf.task_default_queue = THEIRS
    app.conf.broker_connection_retry_on_startup = True
    app.conf.worker_prefetch_multiplier = 1
    app.conf.task_acks_late = True
    if broker.startswith("redis"):
        app.conf.broker_transport_options = {
            "visibility_timeout": 5,
            "unacked_key": "theirs.unacked",
            "unacked_index_key": "theirs.unacked_index",
            "unacked_mutex_key": "theirs.unacked_mutex",
        }
    return app


app = make_app(
    os.environ.get("THEIR_BROKER", "memory://"), os.environ.get("THEIR_RESULTS", "cache+memory://")
)


def _log(task: Task, **facts: Any) -> None:
    with redis.Redis.from_url(os.environ["THEIR_LOG"]) as server:
        server.rpush(LOG, json.dumps({"task": task.name, "id": task.request.id, **facts}))


@app.task(bind=True, name="theirs.note")
def note(self: Task, *args: Any, tag: str) -> list[Any]:
    """Keep what it was called with, and return it."""
    _log(self, tag=tag, args=args)
    return list(args)


@app.task(name="theirs.say")
def say(word: str) -> str:
    """Return the words for a turn."""
    return f"say {word}"


@app.task(bind=True, name="theirs.hand_over")
def hand_over(self: Task, arguments: dict[str, Any]) -> Any:
    """Replace itself by a turn."""
    return self.replace(app.signature("orchestrator.submit_turn", kwargs=arguments, queue="submissions"))
