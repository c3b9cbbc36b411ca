"""A worker process: its event loop, components and periodic jobs.

Celery's threads call the public methods. All work runs on the loop.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
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
from orchestrator.adapters.redis.worker_registry import RegisteredProcess, WorkerRegistry
from orchestrator.adapters.threads import run_in_thread
from orchestrator.adapters.webhook_posts import WebhookPosts
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, Ports, open_lane, open_ports, render_told
from orchestrator.errors import ConfigurationError, InvalidInput, ParleyError, Unavailable
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.ports.tasks import SUBMISSIONS
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import JsonObject, SessionId, TurnId
from workers.heartbeat import Heartbeat
from workers.internal.backpressure import Backpressure
from workers.internal.canvas import RunCanvas, runs_carried_by
from workers.internal.catalogue import MakeCatalogue
from workers.internal.executor import RunExecutor
from workers.internal.outcomes import Later, Outcome
from workers.internal.starting import start_runs
from workers.internal.summary_refresh import RunSummaryRefresh
from workers.internal.tools import make_session_side
from workers.isolation import Isolation
from workers.loop import LoopThread, collect_seldom
from workers.messages.fairness import FairOrder
from workers.messages.flower_events import FlowerEvents
from workers.messages.unacknowledged import UnacknowledgedMessages
from workers.outbox import Deliver, OutboxSender, note_into
from workers.periodic import WorkerParts, start_periodic_work
from workers.session_pool import Reconciler, SessionPool
from workers.submission import BrokerTask, Submissions
from workers.webhooks import WebhookSender

STALLED_AFTER_LEASES = 2
"""Number of lease durations after which a stalled process can no longer commit."""

LOOK_FOR_ENDS_EVERY_S = 1.0
"""Interval between checks for tasks whose turn ended in another process, in seconds."""

_log = get_logger(__name__)
T = TypeVar("T")

MakeTaskEnder = Callable[[Ports, PostgresAwaitedTasks, FlowerEvents | None], Deliver]
"""A function that creates the delivery function for ending tasks that wait for a turn."""


@dataclass(frozen=True, slots=True)
class InternalWork:
    """The dependencies of background flows.

    `carries_out`: True if this process executes runs, rather than only starting them.
    """

    app: Celery
    make_catalogue: MakeCatalogue
    carries_out: bool


class WorkerProcess:
    """A worker process, started on construction. Call `close` before exiting."""

    def __init__(
        self,
        settings: Settings,
        build: BuildAgent,
        *,
        flower: FlowerEvents | None = None,
        runs_turns: bool = True,
        internal: InternalWork | None = None,
        end_task: MakeTaskEnder | None = None,
        heartbeat: Heartbeat | None = None,
        queues: tuple[str, ...] = (),
        consumer: str | None = None,
    ) -> None:
        self._settings = settings
        self._build = build
        self._flower = flower
        self._runs_turns = runs_turns
        self._internal = internal
        self._end_task = end_task
        self._heartbeat = heartbeat or Heartbeat(None)
        self._queues = queues
        self._consumer = consumer
        self._thread = LoopThread(stalled_after_s=STALLED_AFTER_LEASES * settings.lease_ttl_s)
        self._resources = AsyncExitStack()
        self._periodic: list[asyncio.Task[None]] = []
        self._parts: WorkerParts
        self._submissions: Submissions
        try:
            self._thread.submit(self._open()).result()
        except BaseException:
            self._thread.submit(self._resources.aclose()).result()
            self._thread.stop()
            raise

    def run_session(self, session_id: SessionId) -> None:
        """Run a session.

        Returns when the process is idle, or immediately if another thread is already claiming sessions.
        """
        self._thread.submit(_required(self._parts.pool).wake(session_id)).result()

    def submit_task(self, act: Callable[[Submissions], Coroutine[Any, Any, T]]) -> T:
        """Execute a sender's task on the loop and return its result."""
        return self._thread.submit(act(self._submissions)).result()

    def revoke(self, task_id: str) -> None:
        """Cancel a revoked task's turns without waiting."""
        self._thread.submit(self._submissions.revoke(task_id))

    def start_run(self, arguments: JsonObject, task: BrokerTask) -> JsonObject:
        """Start background flows, once per task. Return the run IDs, as a list and by flow."""
        key = f"message:{task.task_id}"
        return self._thread.submit(start_runs(_required(self._parts.executor), arguments, key)).result()

    def run_flow(self, run_id: str, flow: str, request: Any) -> Outcome:
        """Execute a background run. `request`: the request of the run's Celery task."""
        executor = _required(self._parts.executor)
        done = executor.run(run_id, flow, carried=runs_carried_by(request), root=request.root_id)
        return self._thread.submit(done).result()

    def run_items(self, run_id: str, flow: str, request: Any) -> Later | None:
        """Execute a share of a run's items. `request`: the request of the share's Celery task."""
        executor = _required(self._parts.executor)
        done = executor.items(run_id, flow, task_id=request.id, in_chord=request.chord is not None)
        return self._thread.submit(done).result()

    def run_canvas(self) -> RunCanvas:
        return _required(self._parts.executor).canvas

    def note_reported(self, run_id: str) -> None:
        """Record that a run's task has reported the run's end."""
        self._thread.loop.call_soon_threadsafe(_required(self._parts.executor).note_reported, run_id)

    def stop_taking(self) -> None:
        """Start a warm shutdown. Safe to call from a signal handler."""
        if self._parts.pool is not None:
            self._thread.loop.call_soon_threadsafe(self._parts.pool.stop)
        if self._parts.executor is not None:
            self._thread.loop.call_soon_threadsafe(self._parts.executor.stop)

    def close(self) -> None:
        """Finish or release running work, then close everything."""
        self._thread.submit(self._close()).result()
        self._thread.stop()

    async def _open(self) -> None:
        ports = await self._resources.enter_async_context(open_ports(self._settings))
        await ping_schema(ports.stores.database)
        awaited = PostgresAwaitedTasks(ports.stores.database)
        self._submissions = Submissions(ports, awaited)
        common: dict[str, Any] = {
            "submissions": self._submissions,
            "ended_tasks": self._open_ends(ports, awaited),
            "settings": self._settings,
            "heartbeat": self._heartbeat,
            "flower": self._flower,
            **self._open_messages(),
        }
        if self._internal is None:  # the worker only accepts submissions
            registered = RegisteredProcess.here("worker", self._queues)
            self._parts = WorkerParts(**common, ports=ports, registered=registered)
        else:
            self._parts = await self._open_lanes(ports, common, self._internal)
        self._resources.push_async_callback(self._leave)
        self._periodic += start_periodic_work(self._parts)
        self._serve_metrics()

    async def _open_lanes(self, ports: Ports, common: dict[str, Any], internal: InternalWork) -> WorkerParts:
        """Open the components for turns, sweeps and background flows."""
        lane = await self._resources.enter_async_context(self._open_lane(ports))
        executor = self._open_executor(ports, lane, internal)
        if executor is not None:
            refresh = RunSummaryRefresh(executor, ports.stores.runs, ports.shared.scratchpad)
            ports = replace(ports, summary_refresh=refresh)
        agents = AgentCatalogue(self._build, ports)
        outbox = OutboxSender(ports.stores.outbox, _deliveries(ports, executor))
        ended: OutboxSender | None = common["ended_tasks"]
        lanes = LaneRunner(
            lane,
            ports.shared.live,
            ports.shared.wakeup,
            agents.get,
            observer=self._flower,
            outbox_filled=outbox.nudge,
            tasks_ended=ended.nudge if ended else lambda: None,
            word=partial(render_told, ports.domains),
        )
        pool = SessionPool(
            lanes,
            ports.shared.wakeup,
            capacity=self._settings.lanes_per_process,
            linger_s=self._settings.runner_linger_s,
        )
        if self._runs_turns:
            await _warm_up(agents, ports.domains.default)
            self._periodic.append(asyncio.create_task(ports.models.warm_up()))
        return WorkerParts(
            **common,
            ports=ports,
            registered=RegisteredProcess.here("worker", self._queues, off=_off(executor)),
            lanes=lanes,
            pool=pool,
            reconciler=Reconciler(
                lane,
                ports.shared.wakeup,
                pool if self._runs_turns else None,
                grace_s=self._settings.sweep_grace_s,
            ),
            outbox=outbox,
            executor=executor,
            backpressure=None if executor is None else executor.backpressure,
            webhooks=self._open_webhooks(ports),
        )

    def _open_lane(self, ports: Ports) -> AbstractAsyncContextManager[PostgresLane]:
        if not self._runs_turns:
            return open_lane(ports, quarantined=self._note_quarantined, freed=self._note_freed)
        isolation = Isolation(self._settings, self._build, ports.shared.wakeup, self._flower)
        self._resources.push_async_callback(isolation.close)
        return open_lane(
            ports,
            suspected=isolation.start,
            quarantined=self._note_quarantined,
            freed=self._note_freed,
        )

    def _note_quarantined(self, session_id: SessionId, turn_id: TurnId) -> None:
        if self._flower is not None:
            self._flower.ended(session_id, turn_id, TurnStatus.QUARANTINED)

    def _note_freed(self, sessions: Sequence[SessionId]) -> None:
        if self._parts.executor is not None:
            self._parts.executor.repair_later(sessions)

    def _open_executor(self, ports: Ports, lane: PostgresLane, internal: InternalWork) -> RunExecutor | None:
        """Create the executor of background flows, or return None if they are invalid.

        Turns run even without background flows.
        """
        settings = self._settings
        try:
            catalogue = internal.make_catalogue(ports)
        except ParleyError as error:
            _log.error("Background flows are unavailable.", error=error)
            return None
        backpressure = None
        if internal.carries_out:
            backpressure = Backpressure(
                ports.stores.load, above_s=settings.defer_above_s, at_most_s=settings.defer_at_most_s
            )
        return RunExecutor(
            catalogue,
            ports.stores.runs,
            PostgresRunWork(ports.stores.database, lane.worker, lease_ttl_s=settings.lease_ttl_s),
            RunCanvas(internal.app, ports.stores.runs),
            make_session_side(ports),
            local=internal.carries_out,
            max_attempts=settings.max_attempts,
            backpressure=backpressure,
            live=ports.shared.live,
        )

    def _open_ends(self, ports: Ports, awaited: PostgresAwaitedTasks) -> OutboxSender | None:
        if self._end_task is None:
            return None
        deliver = {FINISH_TASK: self._end_task(ports, awaited, self._flower)}
        return OutboxSender(ports.stores.outbox, deliver, look_every_s=LOOK_FOR_ENDS_EVERY_S)

    def _open_webhooks(self, ports: Ports) -> WebhookSender | None:
        """Create the webhook sender. Only background workers have one, because receivers can be slow."""
        if self._internal is None or not self._internal.carries_out:
            return None
        settings = self._settings
        posts = WebhookPosts(settings.webhook_networks, timeout_s=settings.webhook_timeout_s)
        self._resources.push_async_callback(posts.aclose)
        feeds = PostgresWebhookFeeds(ports.stores.database)
        return WebhookSender(feeds, posts, give_up_s=settings.webhook_give_up_s)

    def _open_messages(self) -> dict[str, Any]:
        """Open the components that maintain messages on a Redis broker."""
        if self._consumer is None:
            return {}
        broker = connect(self._settings.broker_url or self._settings.redis_url, max_connections=2)
        self._resources.push_async_callback(broker.aclose)
        fair_order = FairOrder(broker, self._consumer) if SUBMISSIONS in self._queues else None
        return {"unacknowledged": UnacknowledgedMessages(broker, self._consumer), "fair_order": fair_order}

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
        parts, grace_s = self._parts, self._settings.shutdown_grace_s
        if parts.pool is not None:
            await parts.pool.drain(grace_s)
        if parts.executor is not None:
            await parts.executor.drain(grace_s)
        for task in self._periodic:
            task.cancel()
        await asyncio.gather(*self._periodic, return_exceptions=True)
        if parts.webhooks is not None:
            await parts.webhooks.close()
        if self._flower is not None:
            await run_in_thread(self._flower.close)
        await self._resources.aclose()

    async def _leave(self) -> None:
        self._heartbeat.end()
        try:
            await WorkerRegistry(self._parts.ports.shared.redis).leave(self._parts.registered)
        except Unavailable as error:
            _log.warning("Could not remove this worker's registration.", error=error)


def _required(part: T | None) -> T:
    if part is None:
        raise Unavailable("This worker does not run such messages; see its log.")
    return part


def _off(executor: RunExecutor | None) -> list[str]:
    """Return the problems that disable background flows."""
    off = {} if executor is None else executor.catalogue.off
    return [str(problem) for problems in off.values() for problem in problems]


def _deliveries(ports: Ports, executor: RunExecutor | None) -> dict[str, Deliver]:
    """Return this process's delivery functions, by message kind."""
    kinds: dict[str, Deliver] = {"notes": note_into(ports.shared.scratchpad)}
    if executor is None:
        return kinds

    async def start_run(message: OutboxMessage) -> None:
        """Start a run. Writes only to the store, so no message can be lost in between."""
        arguments = {**message.payload, "session_id": message.session_id, "tenant_id": message.tenant_id}
        try:
            await start_runs(executor, arguments, f"outbox:{message.id}", turn_id=message.turn_id)
        except (InvalidInput, ConfigurationError) as error:
            _log.error("A turn requested a background flow that can't be started.", error=error)

    return {**kinds, "internal_flow": start_run}


async def _warm_up(agents: AgentCatalogue, domain: str) -> None:
    """Load the default agent before the first turn. An invalid domain fails its turns, not this process."""
    try:
        await agents.get(domain)
    except ParleyError as error:
        _log.error("The default domain is invalid.", domain=domain, error=error)
    collect_seldom()


def _is_from_owner(request: Any, client_address: Any) -> bool:
    return not is_stranger(client_address, request.getsockname())
