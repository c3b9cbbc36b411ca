"""A worker process: its event loop, components and periodic jobs.

Celery's threads call the public methods. All work runs on the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from celery import Celery
from prometheus_client import start_http_server

from orchestrator.adapters.local_names import refuse_public_names
from orchestrator.adapters.local_peers import is_stranger
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.postgres.turns.awaited import FINISH_TASK, PostgresAwaitedTasks
from orchestrator.adapters.postgres.webhooks import PostgresWebhookFeeds
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.worker_registry import ANNOUNCE_EVERY_S, RegisteredProcess, WorkerRegistry
from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, Ports, open_lane, open_ports, render_told
from orchestrator.errors import ParleyError, Unavailable
from orchestrator.ports.tasks import INTERNAL, SUBMISSIONS, TURNS
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import JsonObject, SessionId, TurnId
from workers.answers import TaskEnder
from workers.fork_server import ForkServer
from workers.heartbeat import BEAT_EVERY_S, Condition, Heartbeat
from workers.internal.backpressure import Backpressure
from workers.internal.canvas import RunCanvas, runs_carried_by
from workers.internal.catalogue import MakeCatalogue
from workers.internal.executor import RunExecutor
from workers.internal.outcomes import Later, Outcome
from workers.internal.starting import start_requested, start_runs
from workers.internal.summary_refresh import RunSummaryRefresh
from workers.internal.tools import make_session_side
from workers.isolation import Isolation
from workers.loop import LoopThread, collect_seldom
from workers.messages.fairness import LOOK_EVERY_S as LOOK_IN_QUEUE_EVERY_S
from workers.messages.fairness import FairOrder
from workers.messages.flower_events import FLUSH_EVERY_S, FlowerEvents
from workers.messages.unacknowledged import KEEP_EVERY_S, UnacknowledgedMessages
from workers.outbox import OutboxSender, note_into
from workers.periodic import (
    APART_S,
    DELIVER_EVENTS_EVERY_S,
    END_WAITS_EVERY_S,
    LOOK_FOR_ENDS_EVERY_S,
    MEASURE_LOAD_EVERY_S,
    OUTBOX_GATHERS_S,
    PROBE_EVERY_S,
    RENEW_EVERY_S,
    PeriodicJob,
)
from workers.session_pool import Reconciler, SessionPool
from workers.submission import BrokerTask, Submissions
from workers.webhook_posts import WebhookPosts
from workers.webhooks import LOOK_EVERY_S, WebhookSender

STALLED_AFTER_LEASES = 2
"""Number of lease durations after which a stalled process exits, because it can no longer commit."""

_log = get_logger(__name__)
T = TypeVar("T")


class WorkerProcess:
    """A worker process, started on construction. Call `close` before exiting.

    Args:
        queues: the queues that the process consumes. A process without the turn queue runs no lanes.
        forks: starts processes for suspected poison turns. Default: the fork server of `multiprocessing`.
        flower: publishes turn events, or None if the worker sends no task events.
        consumer: the process's consumer name, or None if the broker is not Redis.
    """

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        build: BuildAgent,
        make_catalogue: MakeCatalogue,
        *,
        queues: tuple[str, ...],
        forks: ForkServer | None = None,
        flower: FlowerEvents | None = None,
        heartbeat: Heartbeat | None = None,
        consumer: str | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._build = build
        self._make_catalogue = make_catalogue
        self._queues = queues
        self._runs_turns = TURNS in queues
        self._runs_flows = INTERNAL in queues
        self._forks = forks
        self._flower = flower
        self._heartbeat = heartbeat or Heartbeat(None)
        self._consumer = consumer
        self._thread = LoopThread(stalled_after_s=STALLED_AFTER_LEASES * settings.lease_ttl_s)
        self._resources = AsyncExitStack()
        self._jobs: list[PeriodicJob] = []
        self._running: list[asyncio.Task[None]] = []
        self._ports: Ports
        self._registered: RegisteredProcess
        self._submissions: Submissions
        self._ended_tasks: OutboxSender
        self._fair_order: FairOrder | None = None
        self._pool: SessionPool | None = None
        self._executor: RunExecutor | None = None
        self._webhooks: WebhookSender | None = None
        try:
            self._thread.submit(self._open()).result()
        except BaseException:
            self._thread.submit(self._resources.aclose()).result()
            self._thread.stop()
            raise

    def run_session(self, session_id: SessionId) -> None:
        """Run a session, and claim further sessions until the process is idle.

        Return immediately if another thread is already claiming sessions.
        """
        self._thread.submit(_required(self._pool).wake(session_id)).result()

    def submit_task(self, act: Callable[[Submissions], Coroutine[Any, Any, T]]) -> T:
        if self._fair_order is not None:
            self._thread.loop.call_soon_threadsafe(self._fair_order.note_consumed)
        return self._thread.submit(act(self._submissions)).result()

    def revoke(self, task_id: str) -> None:
        """Cancel a revoked task's turns without waiting."""
        self._thread.submit(self._submissions.revoke(task_id))

    def start_run(self, arguments: JsonObject, task: BrokerTask) -> JsonObject:
        """Start background flows, once per task. Return a receipt with the run IDs."""
        key = f"message:{task.task_id}"
        return self._thread.submit(start_runs(_required(self._executor), arguments, key)).result()

    def run_flow(self, run_id: str, flow: str, request: Any) -> Outcome:
        """Execute a background run. `request`: the request of the run's Celery task."""
        executor = _required(self._executor)
        done = executor.run(run_id, flow, carried=runs_carried_by(request), root=request.root_id)
        return self._thread.submit(done).result()

    def run_items(self, run_id: str, flow: str, request: Any) -> Later | None:
        """Execute shares of a run's items. `request`: the request of the Celery task for the items."""
        executor = _required(self._executor)
        done = executor.items(run_id, flow, task_id=request.id, in_chord=request.chord is not None)
        return self._thread.submit(done).result()

    def run_canvas(self) -> RunCanvas:
        return _required(self._executor).canvas

    def note_reported(self, run_id: str) -> None:
        self._thread.loop.call_soon_threadsafe(_required(self._executor).note_reported, run_id)

    def stop_taking(self) -> None:
        """Start a warm shutdown. Safe to call from a signal handler."""
        if self._pool is not None:
            self._thread.loop.call_soon_threadsafe(self._pool.stop)
        if self._executor is not None:
            self._thread.loop.call_soon_threadsafe(self._executor.stop)

    def close(self) -> None:
        """Finish or release running work, then close everything."""
        self._thread.submit(self._close()).result()
        self._thread.stop()

    async def _open(self) -> None:
        self._ports = ports = await self._resources.enter_async_context(open_ports(self._settings))
        await ping_schema(ports.stores.database)
        awaited = PostgresAwaitedTasks(ports.stores.database)
        self._submissions = Submissions(ports, awaited)
        ender = TaskEnder(self._app, ports, awaited, self._flower)
        self._ended_tasks = OutboxSender(
            ports.stores.outbox, {FINISH_TASK: ender.deliver}, look_every_s=LOOK_FOR_ENDS_EVERY_S
        )
        self._repeat("end tasks", 0.0, self._ended_tasks.send_next)
        self._repeat("end waits", END_WAITS_EVERY_S, self._end_waits)
        self._repeat("deliver events", DELIVER_EVENTS_EVERY_S, ports.submitter.deliver_due)
        self._open_messages()
        if set(self._queues) != {SUBMISSIONS}:
            await self._open_lanes()
        self._registered = RegisteredProcess.here("worker", self._queues, off=_off(self._executor))
        self._repeat("announce", ANNOUNCE_EVERY_S, self._announce)
        self._repeat("probe stores", PROBE_EVERY_S, self._probe)
        self._repeat("heartbeat", BEAT_EVERY_S, self._beat)
        if self._flower is not None:
            self._repeat("flower events", FLUSH_EVERY_S, self._flower.flush_in_thread)
        self._resources.push_async_callback(self._leave)
        self._running += [job.start(at * APART_S) for at, job in enumerate(reversed(self._jobs))]
        self._serve_metrics()

    def _repeat(self, name: str, every_s: float, step: Callable[[], Awaitable[object]]) -> None:
        """Add a periodic job, which starts when the process is open."""
        self._jobs.append(PeriodicJob(name, every_s, step))

    async def _open_lanes(self) -> None:
        ports, settings = self._ports, self._settings
        lane = await self._resources.enter_async_context(self._open_lane(ports))
        self._executor = executor = self._open_executor(lane)
        if executor is not None:
            refresh = RunSummaryRefresh(executor, ports.stores.runs, ports.shared.scratchpad)
            ports = replace(ports, summary_refresh=refresh)
            self._repeat("renew runs", RENEW_EVERY_S, executor.renew)
            self._repeat("sweep runs", settings.sweep_every_s, executor.sweep)
        agents = AgentCatalogue(self._build, ports)
        deliveries = {"notes": note_into(ports.shared.scratchpad)}
        if executor is not None:
            deliveries["internal_flow"] = start_requested(executor)
        outbox = OutboxSender(ports.stores.outbox, deliveries)
        lanes = LaneRunner(
            lane,
            ports.shared.live,
            ports.shared.wakeup,
            agents.get,
            observer=self._flower,
            outbox_filled=outbox.nudge,
            tasks_ended=self._ended_tasks.nudge,
            word=partial(render_told, ports.domains),
        )
        self._pool = pool = SessionPool(
            lanes,
            ports.shared.wakeup,
            capacity=settings.lanes_per_process,
            linger_s=settings.runner_linger_s,
        )
        reconciler = Reconciler(
            lane, ports.shared.wakeup, pool if self._runs_turns else None, grace_s=settings.sweep_grace_s
        )
        self._repeat("renew leases", RENEW_EVERY_S, lanes.renew)
        self._repeat("sweep lanes", settings.sweep_every_s, reconciler.sweep)
        self._repeat("send outbox", OUTBOX_GATHERS_S, outbox.send_next)
        if self._runs_flows:
            self._open_webhooks()
        if self._runs_turns:
            await _warm_up(agents, ports.domains.default)
            self._running.append(asyncio.create_task(ports.models.warm_up()))

    def _open_lane(self, ports: Ports) -> AbstractAsyncContextManager[PostgresLane]:
        open_noting = partial(open_lane, ports, quarantined=self._note_quarantined, freed=self._note_freed)
        if not self._runs_turns:
            return open_noting()
        isolation = Isolation(self._settings, self._build, ports.shared.wakeup, self._forks, self._flower)
        self._resources.push_async_callback(isolation.close)
        return open_noting(suspected=isolation.start)

    def _note_quarantined(self, session_id: SessionId, turn_id: TurnId) -> None:
        if self._flower is not None:
            self._flower.ended(session_id, turn_id, TurnStatus.QUARANTINED)

    def _note_freed(self, sessions: Sequence[SessionId]) -> None:
        if self._executor is not None:
            self._executor.repair_later(sessions)

    def _open_executor(self, lane: PostgresLane) -> RunExecutor | None:
        """Create the executor, or return None if the catalog can't be created.

        Turns run even without background flows.
        """
        ports, settings = self._ports, self._settings
        try:
            catalogue = self._make_catalogue(ports)
        except ParleyError as error:
            _log.error("Background flows are unavailable; fix the error and restart the worker.", error=error)
            return None
        backpressure = None
        if self._runs_flows:
            backpressure = Backpressure(
                ports.stores.load, above_s=settings.defer_above_s, at_most_s=settings.defer_at_most_s
            )
            self._repeat("measure load", MEASURE_LOAD_EVERY_S, backpressure.measure)
        return RunExecutor(
            catalogue,
            ports.stores.runs,
            PostgresRunWork(ports.stores.database, lane.worker, lease_ttl_s=settings.lease_ttl_s),
            RunCanvas(self._app, ports.stores.runs),
            make_session_side(ports),
            local=self._runs_flows,
            max_attempts=settings.max_attempts,
            backpressure=backpressure,
            live=ports.shared.live,
        )

    def _open_webhooks(self) -> None:
        """Create the webhook sender. Only background workers have one, because receivers can be slow."""
        settings = self._settings
        posts = WebhookPosts(settings.webhook_networks, timeout_s=settings.webhook_timeout_s)
        self._resources.push_async_callback(posts.aclose)
        feeds = PostgresWebhookFeeds(self._ports.stores.database)
        self._webhooks = WebhookSender(feeds, posts, give_up_s=settings.webhook_give_up_s)
        self._repeat("send webhooks", LOOK_EVERY_S, self._webhooks.send_due)

    def _open_messages(self) -> None:
        """Add the jobs that restore unacknowledged messages and order submissions, on a Redis broker only."""
        if self._consumer is None:
            return
        broker = connect(self._settings.broker_url or self._settings.redis_url, max_connections=2)
        self._resources.push_async_callback(broker.aclose)
        messages = UnacknowledgedMessages(broker, self._consumer)
        self._repeat("keep messages", KEEP_EVERY_S, messages.keep)
        if SUBMISSIONS in self._queues:
            self._fair_order = FairOrder(broker, self._consumer)
            self._repeat("keep submissions fair", LOOK_IN_QUEUE_EVERY_S, self._fair_order.watch)

    # Steps of periodic jobs.

    async def _probe(self) -> None:
        """Check the stores and set the heartbeat's condition. A process waits for its stores instead of exiting."""
        missing = await self._ports.probe()
        self._heartbeat.note(Condition.WAITING if missing else Condition.READY, missing)

    async def _end_waits(self) -> None:
        if await self._submissions.end_waits():
            self._ended_tasks.nudge()

    async def _beat(self) -> None:
        self._heartbeat.beat()

    async def _announce(self) -> None:
        await WorkerRegistry(self._ports.shared.redis).announce(self._registered)

    def _serve_metrics(self) -> None:
        """Serve Prometheus metrics on a separate thread, so that they stay available if the loop stalls."""
        port = self._settings.metrics_port
        if port is None:
            return
        try:
            server, thread = start_http_server(port, self._settings.metrics_host)
        except OSError as error:
            _log.error("Could not start the metrics server.", port=port, error=error)
            return
        metrics = server.get_app()
        assert metrics is not None  # `start_http_server` has just set it
        server.set_app(refuse_public_names(metrics))
        if self._settings.owner_only:
            server.verify_request = _is_from_owner
        self._resources.callback(thread.join)
        self._resources.callback(server.server_close)
        self._resources.callback(server.shutdown)

    async def _close(self) -> None:
        grace_s = self._settings.shutdown_grace_s
        if self._pool is not None:
            await self._pool.drain(grace_s)
        if self._executor is not None:
            await self._executor.drain(grace_s)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._webhooks is not None:
            await self._webhooks.close()
        if self._flower is not None:
            await run_in_thread(self._flower.close)
        await self._resources.aclose()

    async def _leave(self) -> None:
        self._heartbeat.end()
        try:
            await WorkerRegistry(self._ports.shared.redis).leave(self._registered)
        except Unavailable as error:
            _log.warning("Could not remove this worker's registration.", error=error)


def _required(part: T | None) -> T:
    if part is None:
        raise Unavailable(
            "This worker can't run this task. Check the worker's queues, and its log for invalid background flows."
        )
    return part


def _off(executor: RunExecutor | None) -> list[str]:
    """Return the problems that disable background flows."""
    off = {} if executor is None else executor.catalogue.off
    return [str(problem) for problems in off.values() for problem in problems]


async def _warm_up(agents: AgentCatalogue, domain: str) -> None:
    """Load the default agent before the first turn. An invalid domain fails its turns, not this process."""
    try:
        await agents.get(domain)
    except ParleyError as error:
        _log.error("The default domain is invalid.", domain=domain, error=error)
    collect_seldom()


def _is_from_owner(request: Any, client_address: Any) -> bool:
    return not is_stranger(client_address, request.getsockname())
