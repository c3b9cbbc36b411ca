"""A foreign Celery application that knows a broker, a result store and task names, but not Parley.

Start its worker with `celery -A tests.integration.front_door.plain_backend worker -Q theirs`. A Redis list
stores the arguments of each execution of its tasks.
"""

import json
import os
from typing import Any

import redis
from celery import Celery, Task

LOG = "their-log"
THEIRS = "theirs"


def make_app(broker: str, results: str) -> Celery:
    """Return the application with the configuration that the documentation recommends for senders."""
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
    """Store the arguments, and return them."""
    _log(self, tag=tag, args=args)
    return list(args)


@app.task(name="theirs.say")
def say(word: str) -> str:
    """Return the text for a turn."""
    return f"say {word}"


@app.task(bind=True, name="theirs.hand_over")
def hand_over(self: Task, arguments: dict[str, Any]) -> Any:
    """Replace this task with a turn."""
    return self.replace(app.signature("orchestrator.submit_turn", kwargs=arguments, queue="submissions"))
