"""The Celery application for Flower, which only reads events.

With a Redis broker, a Celery consumer also tries to restore other consumers' unacknowledged messages. Flower's Redis
account cannot access the workers' keys for these messages, so Flower uses separate keys.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import flower.app
import flower.command
from celery import Celery
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from orchestrator.adapters.local_peers import is_stranger
from orchestrator.adapters.task_sender import is_redis
from orchestrator.bootstrap import build_agent
from orchestrator.ports.tasks import TURNS
from orchestrator.settings import load_settings
from workers.app import create_app

_OWN_KEYS: Final = {
    "unacked_key": "celeryev.unacked",
    "unacked_index_key": "celeryev.unacked_index",
    "unacked_mutex_key": "celeryev.unacked_mutex",
}
_FACTS: Final = ("pid", "sw_ident", "sw_ver", "freq", "loadavg", "active", "processed")
_COUNTED: Final = ("received", "succeeded", "failed", "retried", "revoked")


class WatchedFlower(flower.app.Flower):
    """Flower without remote control: worker data comes from events instead of inspection.

    Workers reject remote commands by default, so with inspection, Flower's lists of workers would be empty.
    """

    @property
    def workers(self) -> Any:
        """Return the latest data from each worker's events, by worker name."""
        events: Any = self.events
        # A lookup reorders Celery's worker cache, which must not happen during iteration.
        return {name: _describe(events.state, name) for name in list(events.state.workers)}

    def update_workers(self, workername: str | None = None) -> Any:
        """Return a finished future, because workers send events unprompted."""
        del workername
        answered: asyncio.Future[None] = asyncio.get_event_loop().create_future()
        answered.set_result(None)
        return answered


class OwnersServer(HTTPServer):
    """A server that serves only the account that runs it, because some pages require no password."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        if stream.socket is None or is_stranger(address, stream.socket.getsockname()):
            stream.close()
        else:
            super().handle_stream(stream, address)


def _describe(state: Any, name: str) -> dict[str, Any]:
    """Return a worker's data from its events.

    The key `stats` has the format of Celery's inspection replies, which Flower's worker page reads.
    """
    worker, counted = state.workers[name], state.counter[name]
    facts = {key: getattr(worker, key) for key in _FACTS}
    facts |= {key: counted.get(f"task-{key}", 0) for key in _COUNTED}
    tasks = [task for _, task in state.tasks_by_worker(name) if task.name is not None]
    stats = {**facts, "total": Counter(task.name for task in tasks), "broker": {}}
    return {"alive": worker.alive, "timestamp": worker.timestamp, "stats": stats}


def end_serving(*_: object) -> None:
    """Stop Flower's event loop on SIGTERM.

    Flower's own handler raises SystemExit, which Python ignores if the signal arrives during a destructor.
    """
    loop = asyncio.get_event_loop()
    loop.call_soon_threadsafe(loop.stop)


def flower_app() -> Celery:
    flower.command.sigterm_handler = end_serving
    settings = load_settings()
    app = create_app(settings, build_agent)
    app.conf.task_default_queue = TURNS  # so that Flower shows Parley's queues, not the senders' queue
    if is_redis(settings.broker_url or settings.redis_url):
        options: dict[str, Any] = app.conf.broker_transport_options
        app.conf.broker_transport_options = {**options, **_OWN_KEYS}
    if not app.conf.worker_enable_remote_control:
        flower.command.Flower = WatchedFlower
    if settings.owner_only:
        flower.app.HTTPServer = OwnersServer
    return app


def __getattr__(name: str) -> Celery:
    """Create the application on first access, for `celery -A workers.flower_app`."""
    if name != "app":
        raise AttributeError(name)
    app = flower_app()
    globals()["app"] = app
    return app
