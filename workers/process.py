"""One worker process: its loop, its ports, its runner and the work that it repeats.

Celery's threads call `run_session` and `submit_turn`; everything else happens on the loop.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace

from prometheus_client import start_http_server

from orchestrator.adapters.postgres.lane import PostgresLane
from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.adapters.postgres.runs import PostgresRunWork
from orchestrator.adapters.postgres.webhooks import PostgresWebhookFeeds
from orchestrator.adapters.redis.presence import ANNOUNCE_EVERY_S, Presence, PresenceBoard
from orchestrator.adapters.threads import run_in_thread
from orchestrator.adapters.webhook_posts import WebhookPosts
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, Ports, open_lane, open_ports
from orchestrator.errors import ConfigurationError, InvalidInput, NotFound, ParleyError, Unavailable
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.ports.scratchpad import Entry
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, SessionId, TurnId
from workers.catalogue import MakeCatalogue
from workers.freshener import RunsFreshener
from workers.internal import Dispatch, InternalExecutor
from workers.loop import LoopThread
from workers.outbox import Deliver, OutboxSender
from workers.patience import Patience
from workers.pulse import BEAT_EVERY_S, Condition, Pulse
from workers.runner import SessionRunner
from workers.sightings import Sightings
from workers.starting import read_start
from workers.submission import QueuedTurnRequest, submit
from workers.webhooks import LOOK_EVERY_S, WebhookSender

RENEW_EVERY_S = 1.0
LOOK_AT_TURNS_EVERY_S = 0.5
OUTBOX_EVERY_S = 5.0
LOOK_AROUND_EVERY_S = 2.0
OUTBOX_GATHERS_S = 0.05
"""So long, what several turns leave is gathered, to be sent together."""
TOLD_FOR_S = 10.0
STALLED_AFTER_LEASES = 2
"""A loop that has not moved for so many lease times will not commit anything any more."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InternalWork:
    """What a process needs for Internal flows.

    `carries_out`: whether it does so itself when no other can be told.
    """

    dispatch: Dispatch
    make_catalogue: MakeCatalogue
    carries_out: bool


class WorkerProcess:
    """Starts on construction; `close` it before the process ends."""

    def __init__(
        self,
        settings: Settings,
        build: BuildAgent,
        *,
        sightings: Sightings | None = None,
        runs_turns: bool = True,
        internal: InternalWork | None = None,
        pulse: Pulse | None = None,
        queues: tuple[str, ...] = (),
    ) -> None:
        self._settings = settings
        self._build = build
        self._sightings = sightings
        self._runs_turns = runs_turns
        self._internal = internal
        self._pulse = pulse or Pulse(None)
        self._condition = Condition.READY
        self._presence = Presence.here("worker", queues)
        self._thread = LoopThread(stalled_after_s=STALLED_AFTER_LEASES * settings.lease_ttl_s)
        self._resources = AsyncExitStack()
        self._repeated: list[asyncio.Task[None]] = []
        self._told: dict[SessionId, float] = {}
        self._ports: Ports
        self._lane: PostgresLane
        self._lanes: LaneRunner
        self._runner: SessionRunner
        self._outbox: OutboxSender
        self._executor: InternalExecutor | None = None
        self._webhooks: WebhookSender | None = None
        try:
            self._thread.submit(self._open()).result()
        except BaseException:
            self._thread.submit(self._resources.aclose()).result()
            self._thread.stop()
            raise

    def run_session(self, session_id: SessionId) -> None:
        """Run a session; returns at once when this process is a runner already, else when it has no
        more to do.
        """
        self._thread.submit(self._runner.wake(session_id)).result()

    def submit_turn(self, request: QueuedTurnRequest) -> JsonObject:
        """Accept a turn, and wait for it if the request says so."""
        return self._thread.submit(submit(request, self._ports, self._ports.domains.default)).result()

    def start_run(self, arguments: JsonObject, key: str) -> None:
        """Start Internal flows; the same key starts them once."""
        self._thread.submit(self._start(arguments, key)).result()

    def advance_run(self, run_id: str, flow: str) -> None:
        """Do what a run has to do now."""
        self._thread.submit(self._required().advance(run_id, flow)).result()

    def run_items(self, run_id: str, flow: str, in_chord: bool) -> None:
        """Do items of a run."""
        self._thread.submit(self._required().items(run_id, flow, in_chord=in_chord)).result()

    def stop_taking(self) -> None:
        """Begin a warm shutdown; callable from a signal handler."""
        self._thread.loop.call_soon_threadsafe(self._runner.stop)
        if self._executor is not None:
            self._thread.loop.call_soon_threadsafe(self._executor.stop)

    def close(self) -> None:
        """Finish or hand back what runs, then close everything."""
        self._thread.submit(self._close()).result()
        self._thread.stop()

    async def _open(self) -> None:
        self._ports = ports = await self._resources.enter_async_context(open_ports(self._settings))
        await ping_schema(ports.database)
        self._lane = await self._resources.enter_async_context(open_lane(ports))
        self._executor = self._open_internal(ports)
        if self._executor is not None:
            ports = replace(ports, freshener=RunsFreshener(self._executor, ports.runs, ports.inbox))
        self._agents = AgentCatalogue(self._build, ports)
        kinds: dict[str, Deliver] = {"notes": self._put_notes}
        if self._executor is not None:
            kinds["internal_flow"] = self._start_run
        self._outbox = OutboxSender(ports.outbox, kinds)
        self._lanes = LaneRunner(
            self._lane, ports.live, ports.wakeup, self._agents.get, outbox_filled=self._outbox.nudge
        )
        sightings = self._sightings
        self._runner = SessionRunner(
            self._lanes,
            ports.wakeup,
            capacity=self._settings.lanes_per_process,
            linger_s=self._settings.runner_linger_s,
            shown=sightings.shown if sightings else lambda _: nullcontext(),
        )
        if self._runs_turns:
            await self._warm_up()
        else:
            os.nice(self._settings.housekeeping_nice)
        self._repeat("renew", self._lanes.renew, RENEW_EVERY_S)
        self._repeat("sweep", self._sweep, self._settings.sweep_every_s)
        self._repeat("outbox", self._send_outbox, OUTBOX_GATHERS_S)
        if self._executor is not None:
            self._repeat("renew runs", self._executor.renew, RENEW_EVERY_S)
            self._repeat("sweep runs", self._executor.sweep, self._settings.sweep_every_s)
            if self._internal is not None and self._internal.carries_out:
                self._repeat("look at turns", self._executor.look_at_turns, LOOK_AT_TURNS_EVERY_S)
        if self._internal is not None and self._internal.carries_out:
            self._open_webhooks(ports)
        board = PresenceBoard(ports.redis)
        self._resources.push_async_callback(self._leave, board)
        self._repeat("presence", lambda: board.announce(self._presence), ANNOUNCE_EVERY_S)
        self._repeat("probe", self._look_around, LOOK_AROUND_EVERY_S)
        self._repeat("pulse", self._beat, BEAT_EVERY_S)
        if sightings:
            self._repeated.append(asyncio.create_task(sightings.keep_sending()))
        self._tell_metrics()

    def _tell_metrics(self) -> None:
        """Answer Prometheus on a thread of its own, so that a loop that hangs can be seen."""
        port = self._settings.metrics_port
        if port is None:
            return
        try:
            server, thread = start_http_server(port, self._settings.metrics_host)
        except OSError as error:
            _log.error("Metrics cannot be told.", port=port, error=error)
            return
        self._resources.callback(thread.join)
        self._resources.callback(server.server_close)
        self._resources.callback(server.shutdown)

    def _open_webhooks(self, ports: Ports) -> None:
        """Tell events outside from the workers of Internal flows: receivers are slow, turns are not."""
        settings = self._settings
        posts = WebhookPosts(settings.webhook_networks, timeout_s=settings.webhook_timeout_s)
        self._resources.push_async_callback(posts.aclose)
        feeds = PostgresWebhookFeeds(ports.database)
        sender = self._webhooks = WebhookSender(feeds, posts, give_up_s=settings.webhook_give_up_s)
        self._repeat("webhooks", sender.send_due, LOOK_EVERY_S)

    def _open_internal(self, ports: Ports) -> InternalExecutor | None:
        """What carries Internal flows out; a mistake in a flow must not keep turns from running."""
        if self._internal is None:
            return None
        try:
            catalogue = self._internal.make_catalogue(ports)
        except ParleyError as error:
            _log.error("Internal flows cannot be used.", error=error)
            return None
        work = PostgresRunWork(ports.database, self._lane.worker, lease_ttl_s=self._settings.lease_ttl_s)
        return InternalExecutor(
            catalogue,
            ports.runs,
            work,
            self._internal.dispatch,
            local=self._internal.carries_out,
            max_attempts=self._settings.max_attempts,
            patience=Patience(
                ports.pressure,
                above_s=self._settings.defer_above_s,
                at_most_s=self._settings.defer_at_most_s,
            ),
            live=ports.live,
        )

    def _required(self) -> InternalExecutor:
        if self._executor is None:
            raise Unavailable("This worker carries out no Internal flows; see its log.")
        return self._executor

    async def _warm_up(self) -> None:
        """Have the usual agent ready before the first turn; a broken domain fails its turns, not us."""
        default = self._ports.domains.default
        try:
            await self._agents.get(default)
        except ParleyError as error:
            _log.error("The default domain cannot be used.", domain=default, error=error)
        # A third of a million objects live as long as the process: no turn shall wait while they are looked through.
        gc.collect()
        gc.freeze()

    async def _close(self) -> None:
        await self._runner.drain(self._settings.shutdown_grace_s)
        if self._executor is not None:
            await self._executor.drain(self._settings.shutdown_grace_s)
        for task in self._repeated:
            task.cancel()
        await asyncio.gather(*self._repeated, return_exceptions=True)
        if self._webhooks is not None:
            await self._webhooks.close()
        if self._sightings:
            await run_in_thread(self._sightings.close)
        await self._resources.aclose()

    async def _look_around(self) -> None:
        """Whether the stores answer; without them we live, and wait."""
        missing = await self._ports.probe()
        condition = Condition.WAITING if missing else Condition.READY
        if condition is not self._condition:
            _log.warning(
                "Whether this worker is ready has changed.", condition=condition.value, missing=missing
            )
        self._condition = condition

    async def _beat(self) -> None:
        self._pulse.beat(self._condition)

    async def _leave(self, board: PresenceBoard) -> None:
        self._pulse.end()
        try:
            await board.leave(self._presence)
        except Unavailable as error:
            _log.warning("This worker is seen for a little longer.", error=error)

    def _repeat(self, name: str, step: Callable[[], Awaitable[object]], every_s: float) -> None:
        self._repeated.append(asyncio.create_task(_keep_doing(name, step, every_s), name=name))

    async def _sweep(self) -> int:
        """Offer what nobody holds; take it ourselves when telling does not help.

        Without Redis nobody can be told; and a message may wait behind tasks that wait for a turn.
        """
        found = await self._lane.sweep(grace_s=self._settings.sweep_grace_s)
        told = not found or await self._ports.wakeup.offer(*found)
        if self._runs_turns:
            untold = self._untold(found) if told else found
            for session_id in untold[: self._runner.room]:
                self._runner.start(session_id)
        return len(found)

    def _untold(self, found: list[SessionId]) -> list[SessionId]:
        """Those that were offered a moment ago to no effect while nobody here takes sessions."""
        now = asyncio.get_running_loop().time()
        before = {session_id: at for session_id, at in self._told.items() if now - at < TOLD_FOR_S}
        self._told = {**before, **dict.fromkeys(found, now)}
        return [] if self._runner.serving else [session_id for session_id in found if session_id in before]

    async def _send_outbox(self) -> None:
        await self._outbox.wait(OUTBOX_EVERY_S)
        await self._outbox.send_due()

    async def _put_notes(self, message: OutboxMessage) -> None:
        """What a turn noted goes into its session's scratchpad, once however often it is sent."""
        entries = tuple(Entry.from_json(body) for body in message.payload["entries"])
        await self._ports.scratchpad.put(
            message.tenant_id, message.session_id, entries, operation=f"outbox:{message.id}"
        )

    async def _start_run(self, message: OutboxMessage) -> None:
        """Starting is a matter of the store alone, so no message can be lost between."""
        arguments = {**message.payload, "session_id": message.session_id, "tenant_id": message.tenant_id}
        try:
            await self._start(arguments, f"outbox:{message.id}", turn_id=message.turn_id)
        except (InvalidInput, NotFound, ConfigurationError) as error:
            _log.error("A turn asked for an Internal flow that cannot be started.", error=error)

    async def _start(self, arguments: JsonObject, key: str, *, turn_id: TurnId | None = None) -> None:
        executor = self._required()
        runs = read_start(arguments, executor.catalogue)
        await executor.start(tuple(replace(run, turn_id=turn_id) for run in runs), key=key)


async def _keep_doing(name: str, step: Callable[[], Awaitable[object]], every_s: float) -> None:
    """Do a step again and again; a failure is told once it begins and once it is over."""
    failing = False
    while True:
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - whatever happened, the next round may succeed
            if not failing:
                _log.warning("A repeated job fails.", job=name, error=error)
            failing = True
            await asyncio.sleep(max(every_s, RENEW_EVERY_S))
            continue
        if failing:
            _log.info("A repeated job works again.", job=name)
            failing = False
        await asyncio.sleep(every_s)
