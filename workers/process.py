"""One worker process: its loop, its parts, and the work that it does again and again.

Celery's threads call `run_session` and `submit_turn`; everything else happens on the loop.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from prometheus_client import start_http_server

from internal_flows.start_request import read_start
from orchestrator.adapters.local_peers import is_stranger
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.postgres.webhooks import PostgresWebhookFeeds
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.worker_registry import RegisteredProcess, WorkerRegistry
from orchestrator.adapters.task_sender import RunCanvas
from orchestrator.adapters.threads import run_in_thread
from orchestrator.adapters.webhook_posts import WebhookPosts
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, Ports, open_lane, open_ports
from orchestrator.errors import ConfigurationError, InvalidInput, ParleyError, Unavailable
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, SessionId, TurnId
from workers.fork_server import ForkServer
from workers.heartbeat import Heartbeat
from workers.internal.backpressure import Backpressure
from workers.internal.catalogue import MakeCatalogue
from workers.internal.executor import RunExecutor
from workers.internal.links import Link
from workers.internal.summary_refresh import RunSummaryRefresh
from workers.internal.tools import make_session_side
from workers.isolation import Isolation
from workers.loop import LoopThread, collect_seldom
from workers.messages.flower_events import FlowerEvents
from workers.messages.unacknowledged import UnacknowledgedMessages
from workers.outbox import Deliver, OutboxSender, note_into
from workers.periodic import WorkerParts, start_periodic_work
from workers.session_pool import Reconciler, SessionPool
from workers.submission import Answer, QueuedTurnRequest, Submissions
from workers.webhooks import WebhookSender

STALLED_AFTER_LEASES = 2
"""A loop that has not moved for so many lease times will not commit anything any more."""

_log = get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InternalWork:
    """The needs of a process for Internal flows.

    `carries_out`: whether it does so itself when no message can be sent.
    """

    canvas: RunCanvas
    make_catalogue: MakeCatalogue
    carries_out: bool


class WorkerProcess:
    """Starts on construction; `close` it before the process ends. Who runs turns needs `forks`, for suspects."""

    def __init__(
        self,
        settings: Settings,
        build: BuildAgent,
        *,
        forks: ForkServer | None = None,
        flower: FlowerEvents | None = None,
        runs_turns: bool = True,
        internal: InternalWork | None = None,
        heartbeat: Heartbeat | None = None,
        queues: tuple[str, ...] = (),
        consumer: str | None = None,
    ) -> None:
        self._settings = settings
        self._build = build
        self._forks = forks
        self._flower = flower
        self._runs_turns = runs_turns
        self._internal = internal
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
        """Run a session; returns at once when this process takes sessions already, else when there is no more to do."""
        self._thread.submit(_required(self._parts.pool).wake(session_id)).result()

    def submit_turn(self, request: QueuedTurnRequest, answer: Answer) -> JsonObject | None:
        """Accept a turn; None when the sender waits, who gets the `answer` once the turn has ended."""
        return self._thread.submit(self._submissions.accept(request, answer)).result()

    def show_answered(self, task_id: str, runtime_s: float) -> None:
        """Show in Flower, where it is fed, that a sender who waited has the answer."""
        if self._flower is not None:
            self._flower.show_answered(task_id, runtime_s)

    def start_run(self, arguments: JsonObject, key: str) -> JsonObject:
        """Start Internal flows; the same key starts them once. Gives their runs by flow, and the run that was named."""
        return self._thread.submit(_start(_required(self._parts.executor), arguments, key)).result()

    def advance_runs(self, links: Sequence[Link]) -> int:
        """Do what a run has to do now, and then what follows it in its chain; how many of them have ended."""
        return self._thread.submit(_required(self._parts.executor).advance_all(links)).result()

    def run_items(self, run_id: str, flow: str, in_chord: bool) -> None:
        """Do items of a run."""
        executor = _required(self._parts.executor)
        self._thread.submit(executor.items(run_id, flow, in_chord=in_chord)).result()

    def stop_taking(self) -> None:
        """Begin a warm shutdown; callable from a signal handler."""
        if self._parts.pool is not None:
            self._thread.loop.call_soon_threadsafe(self._parts.pool.stop)
        if self._parts.executor is not None:
            self._thread.loop.call_soon_threadsafe(self._parts.executor.stop)

    def close(self) -> None:
        """Finish or hand back what runs, then close everything."""
        self._thread.submit(self._close()).result()
        self._thread.stop()

    async def _open(self) -> None:
        ports = await self._resources.enter_async_context(open_ports(self._settings))
        await ping_schema(ports.stores.database)
        self._submissions = Submissions(ports)
        common: dict[str, Any] = {
            "settings": self._settings,
            "heartbeat": self._heartbeat,
            "flower": self._flower,
            "unacknowledged": self._open_messages(),
        }
        if self._internal is None:  # submissions are all that it takes
            registered = RegisteredProcess.here("worker", self._queues)
            self._parts = WorkerParts(**common, ports=ports, registered=registered)
        else:
            self._parts = await self._open_lanes(ports, common, self._internal)
        self._resources.push_async_callback(self._leave)
        self._periodic = start_periodic_work(self._parts)
        self._serve_metrics()

    async def _open_lanes(self, ports: Ports, common: dict[str, Any], internal: InternalWork) -> WorkerParts:
        """Open what runs turns, or looks for those that nobody runs, and starts or runs Internal flows."""
        lane = await self._resources.enter_async_context(self._open_lane(ports))
        executor = self._open_executor(ports, lane, internal)
        if executor is not None:
            refresh = RunSummaryRefresh(executor, ports.stores.runs, ports.shared.scratchpad)
            ports = replace(ports, summary_refresh=refresh)
        agents = AgentCatalogue(self._build, ports)
        outbox = OutboxSender(ports.stores.outbox, _deliveries(ports, executor))
        lanes = LaneRunner(
            lane, ports.shared.live, ports.shared.wakeup, agents.get, outbox_filled=outbox.nudge
        )
        pool = SessionPool(
            lanes,
            ports.shared.wakeup,
            capacity=self._settings.lanes_per_process,
            linger_s=self._settings.runner_linger_s,
            observe=self._flower.session if self._flower else lambda _: nullcontext(),
        )
        if self._runs_turns:
            await _warm_up(agents, ports.domains.default)
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
            return open_lane(ports, freed=self._note_freed)
        isolation = Isolation(self._settings, _required(self._forks), ports.shared.wakeup)
        self._resources.push_async_callback(isolation.close)
        return open_lane(ports, suspected=isolation.start, freed=self._note_freed)

    def _note_freed(self, sessions: Sequence[SessionId]) -> None:
        if self._parts.executor is not None:
            self._parts.executor.repair_later(sessions)

    def _open_executor(self, ports: Ports, lane: PostgresLane, internal: InternalWork) -> RunExecutor | None:
        """Make what carries Internal flows out; a mistake in a flow must not keep turns from running."""
        settings = self._settings
        try:
            catalogue = internal.make_catalogue(ports)
        except ParleyError as error:
            _log.error("Internal flows cannot be used.", error=error)
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
            internal.canvas,
            make_session_side(ports),
            local=internal.carries_out,
            max_attempts=settings.max_attempts,
            backpressure=backpressure,
            live=ports.shared.live,
            show=self._flower.link if self._flower else None,
        )

    def _open_webhooks(self, ports: Ports) -> WebhookSender | None:
        """Send events outside from the workers of Internal flows: receivers are slow, turns are not."""
        if self._internal is None or not self._internal.carries_out:
            return None
        settings = self._settings
        posts = WebhookPosts(settings.webhook_networks, timeout_s=settings.webhook_timeout_s)
        self._resources.push_async_callback(posts.aclose)
        feeds = PostgresWebhookFeeds(ports.stores.database)
        return WebhookSender(feeds, posts, give_up_s=settings.webhook_give_up_s)

    def _open_messages(self) -> UnacknowledgedMessages | None:
        if self._consumer is None:
            return None
        broker = connect(self._settings.broker_url or self._settings.redis_url, max_connections=2)
        self._resources.push_async_callback(broker.aclose)
        return UnacknowledgedMessages(broker, self._consumer)

    def _serve_metrics(self) -> None:
        """Answer Prometheus on a thread of its own, so that a loop that hangs can be seen."""
        port = self._settings.metrics_port
        if port is None:
            return
        try:
            server, thread = start_http_server(port, self._settings.metrics_host)
        except OSError as error:
            _log.error("Could not start the metrics server.", port=port, error=error)
            return
        if self._settings.owner_only:
            server.verify_request = _is_from_owner
        self._resources.callback(thread.join)
        self._resources.callback(server.server_close)
        self._resources.callback(server.shutdown)

    async def _close(self) -> None:
        parts, grace_s = self._parts, self._settings.shutdown_grace_s
        if parts.pool is not None:
            await parts.pool.drain(grace_s)
        await self._submissions.close()
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
            _log.warning("This worker is seen for a little longer.", error=error)


def _required(part: T | None) -> T:
    if part is None:
        raise Unavailable("This worker does not carry out such messages; see its log.")
    return part


def _off(executor: RunExecutor | None) -> list[str]:
    """What is wrong with the Internal flows that are off here."""
    off = {} if executor is None else executor.catalogue.off
    return [str(problem) for problems in off.values() for problem in problems]


def _deliveries(ports: Ports, executor: RunExecutor | None) -> dict[str, Deliver]:
    """How the outbox's messages are delivered here, by kind."""
    kinds: dict[str, Deliver] = {"notes": note_into(ports.shared.scratchpad)}
    if executor is None:
        return kinds

    async def start_run(message: OutboxMessage) -> None:
        """Starting is a matter of the store alone, so no message can be lost between."""
        arguments = {**message.payload, "session_id": message.session_id, "tenant_id": message.tenant_id}
        try:
            await _start(executor, arguments, f"outbox:{message.id}", turn_id=message.turn_id)
        except (InvalidInput, ConfigurationError) as error:
            _log.error("A turn asked for an Internal flow that cannot be started.", error=error)

    return {**kinds, "internal_flow": start_run}


async def _start(
    executor: RunExecutor, arguments: JsonObject, key: str, *, turn_id: TurnId | None = None
) -> JsonObject:
    runs = read_start(arguments, executor.catalogue)
    started = await executor.start(tuple(replace(run, turn_id=turn_id) for run in runs), key=key)
    return {
        "status": "joined" if started.joined else "started",
        "run_id": started.runs.get(runs[0].flow) if len(runs) == 1 else None,
        "runs": started.runs,
    }


async def _warm_up(agents: AgentCatalogue, domain: str) -> None:
    """Have the usual agent ready before the first turn; a broken domain fails its turns, not us."""
    try:
        await agents.get(domain)
    except ParleyError as error:
        _log.error("The default domain cannot be used.", domain=domain, error=error)
    collect_seldom()


def _is_from_owner(request: Any, client_address: Any) -> bool:
    return not is_stranger(client_address, request.getsockname())
