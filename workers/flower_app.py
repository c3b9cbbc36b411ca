"""The Celery application for Flower, which only reads events.

A Celery consumer on Redis also restores other consumers' unacknowledged messages. Flower's Redis account
cannot access the workers' keys, so Flower uses separate keys.
"""

import asyncio
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
from workers.flower_pages import WatchedFlower

_OWN_KEYS: Final = {
    "unacked_key": "celeryev.unacked",
    "unacked_index_key": "celeryev.unacked_index",
    "unacked_mutex_key": "celeryev.unacked_mutex",
}


class OwnersServer(HTTPServer):
    """Flower's server, restricted to the account that runs it, because some pages require no password."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a connection, or close it if another account opened it."""
        if stream.socket is None or is_stranger(address, stream.socket.getsockname()):
            stream.close()
        else:
            super().handle_stream(stream, address)


def end_serving(*_: object) -> None:
    """Stop Flower's event loop. Flower's handler raises SystemExit, which a destructor can swallow."""
    loop = asyncio.get_event_loop()
    loop.call_soon_threadsafe(loop.stop)


def flower_app() -> Celery:
    """Create the application from the environment settings."""
    flower.command.sigterm_handler = end_serving
    settings = load_settings()
    app = create_app(settings, build_agent)
    app.conf.task_default_queue = TURNS  # Flower should show Parley's queue lengths, not those of a sender
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
