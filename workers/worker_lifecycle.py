"""Start and stop the `WorkerProcess` as Celery starts and stops."""

import os
import threading
import time
from functools import partial
from importlib import import_module
from typing import Any, Final

from celery import Celery
from celery.worker import state as celery_state

from orchestrator.bootstrap import BuildAgent
from orchestrator.errors import Unavailable
from orchestrator.ports.tasks import INTERNAL, SUBMISSIONS, TURNS
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.traces import set_up_tracing, shut_down_tracing
from workers.fork_server import ForkServer
from workers.heartbeat import Condition, Heartbeat
from workers.internal.catalogue import MakeCatalogue
from workers.isolation import run_suspects
from workers.messages.flower_events import FlowerEvents
from workers.process import WorkerProcess

TRY_AGAIN_AFTER_S = 1.0
_AGENT: Final = "orchestrator.agent.build"
"""The module that imports all code for running turns. Only processes that run turns need it."""

_log = get_logger(__name__)


class WorkerLifecycle:
    """The owner of this process's `WorkerProcess`.

    `consumer`: this process's consumer name, or None if the broker is not Redis.
    """

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        build: BuildAgent,
        make_catalogue: MakeCatalogue,
        consumer: str | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._build = build
        self._make_catalogue = make_catalogue
        self._consumer = consumer
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._forks: ForkServer | None = None
        self._heartbeat = Heartbeat(settings.heartbeat_file)

    def prepare(self) -> None:
        """Start a fork server, or lower the priority of a process that runs only background work.

        Call this before the process opens files or starts threads. A worker for all queues, as on a small machine,
        does without the server, which needs 30 MB.
        """
        queues = set(self._app.amqp.queues.consume_from)
        if TURNS in queues and INTERNAL not in queues:
            import_module(_AGENT)  # once here instead of in each forked process
            self._forks = ForkServer(partial(run_suspects, self._settings, self._build))
        elif TURNS not in queues and queues != {SUBMISSIONS}:
            os.nice(self._settings.background_nice)  # affects this thread and the threads that it starts

    def open(self, consumer: Any) -> None:
        """Open the process, retrying until the stores respond or Celery stops. `consumer`: Celery's consumer."""
        flower = FlowerEvents(self._app, consumer.hostname) if _sends_task_events(consumer) else None
        while not _stopping():
            try:
                self._open(flower)
            except Unavailable as error:
                _log.warning("Waiting for the stores.", error=error)
                self._heartbeat.note(Condition.WAITING, str(error))
                self._heartbeat.beat()
                time.sleep(TRY_AGAIN_AFTER_S)
            else:
                return

    def process(self) -> WorkerProcess:
        """Return the process, opening it if necessary. Raises Unavailable."""
        return self._open(None)

    def revoke(self, task_id: str) -> None:
        if self._process is not None:
            self._process.revoke(task_id)

    def stop_taking(self) -> None:
        if self._process is not None:
            self._process.stop_taking()

    def close(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()
        shut_down_tracing()

    def _open(self, flower: FlowerEvents | None) -> WorkerProcess:
        with self._lock:
            if self._process is None:
                queues = self._app.amqp.queues.consume_from
                set_up_tracing(
                    next((name for name in (TURNS, SUBMISSIONS) if name in queues), INTERNAL), os.environ
                )
                self._process = WorkerProcess(
                    self._app,
                    self._settings,
                    self._build,
                    self._make_catalogue,
                    queues=tuple(queues),
                    forks=self._forks,
                    flower=flower,
                    heartbeat=self._heartbeat,
                    consumer=self._consumer,
                )
            return self._process


def _sends_task_events(consumer: Any) -> bool:
    dispatcher = consumer.event_dispatcher
    return dispatcher is not None and dispatcher.enabled and not dispatcher.groups


def _stopping() -> bool:
    return bool(celery_state.should_stop or celery_state.should_terminate)
