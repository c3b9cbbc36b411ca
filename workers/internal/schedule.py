"""A Celery beat scheduler that claims firings in PostgreSQL, by job and due time (IF-15).

Several beats can run without a leader, so a dead beat does not delay firings. One transaction stores a firing
and its runs. The scheduler sends no messages, because workers poll for ready runs.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Final

from celery import bootsteps
from celery.beat import EmbeddedService, Scheduler
from click import Option

from internal_flows.catalogue import Catalogue
from internal_flows.schedule import Job, read_jobs
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.redis.worker_registry import ANNOUNCE_EVERY_S, RegisteredProcess, WorkerRegistry
from orchestrator.bootstrap import Ports, open_ports
from orchestrator.errors import ConfigurationError, NotFound, Unavailable
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from workers.heartbeat import Condition, Heartbeat
from workers.internal.catalogue import FlowSettings, MakeCatalogue

TICK_S = 1.0
SCHEDULES: Final = Option(
    ["--schedules"], is_flag=True, help="Also start scheduled jobs, as Celery beat does."
)

_log = get_logger(__name__)


def scheduler_of(settings: Settings, make_catalogue: MakeCatalogue) -> type[Scheduler]:
    class ClaimedScheduler(Scheduler):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._firing = Firing(settings, make_catalogue)
            super().__init__(*arguments, **options)

        def setup_schedule(self) -> None:
            """Do nothing: the schedule is not stored in beat's file."""

        def tick(self, *_: Any, **__: Any) -> float:
            self._firing.fire_due()
            return TICK_S

        def close(self) -> None:
            self._firing.close()

    return ClaimedScheduler


class ScheduleThread(bootsteps.StartStopStep):
    """The worker step that starts beat in a thread, for a single machine.

    Celery's `-B` option would fork a process, which outlives a killed worker.
    """

    conditional = True

    def __init__(self, parent: Any, *, schedules: bool = False, **options: Any) -> None:
        self.enabled = schedules
        super().__init__(parent, **options)

    def create(self, parent: Any) -> Any:
        return EmbeddedService(parent.app, thread=True, scheduler_cls=parent.app.conf.beat_scheduler)


class Firing:
    """A component that fires due jobs, unless another beat has already fired them.

    It uses a separate event loop.
    """

    def __init__(self, settings: Settings, make_catalogue: MakeCatalogue) -> None:
        self._settings = settings
        self._make_catalogue = make_catalogue
        self._flows = FlowSettings(served_folders(settings.domain))
        self._runner = asyncio.Runner()
        self._resources = AsyncExitStack()
        self._opened: tuple[Ports, Catalogue] | None = None
        self._fired: dict[str, float] = {}
        self._logged: set[str] = set()
        self._off: list[str] = []
        self._heartbeat = Heartbeat(settings.heartbeat_file)
        self._announced_at = 0.0
        self._closed = False

    def fire_due(self) -> int:
        """Fire due jobs and return their number. If the stores or flows are not usable, log why and return 0."""
        fired, condition = 0, Condition.READY
        try:
            fired = self._runner.run(self._fire_due())
        except (Unavailable, ConfigurationError) as error:
            condition = Condition.WAITING
            self._log_once("The scheduler cannot start jobs.", str(error))
        self._heartbeat.note(condition)
        self._heartbeat.beat()
        return fired

    def close(self) -> None:
        """Close the stores, except during a firing.

        Beat calls this in a signal handler, possibly during a firing, and again at exit.
        """
        if self._closed or _in_loop():
            return
        self._closed = True
        self._heartbeat.end()
        self._runner.run(self._resources.aclose())
        self._runner.close()

    async def _fire_due(self) -> int:
        ports, catalogue = await self._open()
        if not self._fired:
            await ping_schema(ports.stores.database)
        jobs, off = read_jobs(self._flows.schedule())
        self._off = [str(problem) for problem in off]
        for problem in self._off:
            self._log_once("A job is not scheduled; fix its definition.", problem)
        now = await ports.stores.runs.now()
        due = [(job, job.due(now)) for job in jobs if job.due(now) != self._fired.get(job.name)]
        fired = sum([await self._fire(ports.stores.runs, catalogue, job, at) for job, at in due])
        await self._announce(ports)
        return fired

    async def _fire(self, runs: PostgresRuns, catalogue: Catalogue, job: Job, at: float) -> bool:
        try:
            nodes = catalogue.new_graph(
                job.trigger, parameters={"job": job.name, "due": at}, flight="schedule"
            )
        except (NotFound, ConfigurationError) as error:
            problem = f"internal_flows.yaml: schedule.{job.name}: cannot be started: {error}"
            self._off.append(problem)
            self._log_once("A job is not scheduled; fix its definition.", problem)
            return False
        due_at, next_due_at = (datetime.fromtimestamp(one, UTC) for one in (at, job.following(at)))
        ours = await runs.fire(job.name, due_at, next_due_at, nodes)
        self._fired[job.name] = at
        if ours:
            _log.info("A scheduled job was started.", job=job.name, due=at)
        return ours

    async def _announce(self, ports: Ports) -> None:
        """Periodically update this beat's registration in Redis. Jobs fire even if Redis is unavailable."""
        if time.monotonic() - self._announced_at < ANNOUNCE_EVERY_S:
            return
        self._announced_at = time.monotonic()
        try:
            await WorkerRegistry(ports.shared.redis).announce(RegisteredProcess.here("beat", off=self._off))
        except Unavailable as error:
            _log.warning("Could not update the scheduler's registration.", error=error)

    async def _open(self) -> tuple[Ports, Catalogue]:
        if self._opened is None:
            ports = await self._resources.enter_async_context(open_ports(self._settings))
            self._opened = ports, self._make_catalogue(ports)
        return self._opened

    def _log_once(self, event: str, why: str) -> None:
        if why not in self._logged:
            _log.warning(event, why=why)
        self._logged.add(why)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
