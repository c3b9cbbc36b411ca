"""The Celery application as Flower loads it: it only reads events.

Whoever consumes from Redis also looks after what others took and did not finish. Flower consumes nothing but
events, so it keeps that book apart from the workers', which its account may not open.
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
from orchestrator.settings import load_settings
from workers.app import create_app

_OWN_KEYS: Final = {
    "unacked_key": "celeryev.unacked",
    "unacked_index_key": "celeryev.unacked_index",
    "unacked_mutex_key": "celeryev.unacked_mutex",
}


class OwnersServer(HTTPServer):
    """Flower's server, which talks to no other account of this machine: some of its pages ask for no password."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Drop the connection of a stranger."""
        if stream.socket is None or is_stranger(address, stream.socket.getsockname()):
            stream.close()
        else:
            super().handle_stream(stream, address)


def end_serving(*_: object) -> None:
    """End Flower between two callbacks; SystemExit, as Flower raises it, is lost where a signal finds a destructor."""
    loop = asyncio.get_event_loop()
    loop.call_soon_threadsafe(loop.stop)


def flower_app() -> Celery:
    """The application of the environment's settings."""
    flower.command.sigterm_handler = end_serving
    settings = load_settings()
    app = create_app(settings, build_agent)
    if is_redis(settings.broker_url or settings.redis_url):
        options: dict[str, Any] = app.conf.broker_transport_options
        app.conf.broker_transport_options = {**options, **_OWN_KEYS}
    if settings.owner_only:
        flower.app.HTTPServer = OwnersServer
    return app


def __getattr__(name: str) -> Celery:
    """Made when `celery -A workers.flower_app` asks for it."""
    if name != "app":
        raise AttributeError(name)
    app = flower_app()
    globals()["app"] = app
    return app
