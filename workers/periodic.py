"""Periodic jobs of a worker process."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from orchestrator.adapters.redis.worker_registry import ANNOUNCE_EVERY_S, RegisteredProcess, WorkerRegistry
from orchestrator.bootstrap import Ports
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings
from orchestrator.telemetry import get_logger
from workers.heartbeat import BEAT_EVERY_S, Condition, Heartbeat
from workers.internal.backpressure import Backpressure
from workers.internal.executor import RunExecutor
from workers.messages.fairness import LOOK_EVERY_S as LOOK_IN_QUEUE_EVERY_S
from workers.messages.fairness import FairOrder
from workers.messages.flower_events import FLUSH_EVERY_S, FlowerEvents
from workers.messages.unacknowledged import KEEP_EVERY_S, UnacknowledgedMessages
from workers.outbox import OutboxSender
from workers.session_pool import Reconciler, SessionPool
from workers.submission import Submissions
from workers.webhooks import LOOK_EVERY_S, WebhookSender

RENEW_EVERY_S = 1.0
MEASURE_LOAD_EVERY_S = 1.0
OUTBOX_GATHERS_S = 0.25
"""Interval between sends, in seconds, which batches the messages of several turns."""
END_WAITS_EVERY_S = 1.0
DELIVER_EVENTS_EVERY_S = 1.0
PROBE_EVERY_S = 2.0
PAUSE_AFTER_FAILURE_S = 1.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The components of a worker process, bound to its event loop.

    The process's queues determine the optional components: a worker that only accepts submissions has no
    lanes and no outbox.
    """

    settings: Settings
    ports: Ports
    heartbeat: Heartbeat
    registered: RegisteredProcess
    submissions: Submissions
    ended_tasks: OutboxSender | None = None
    lanes: LaneRunner | None = None
    pool: SessionPool | None = None
    reconciler: Reconciler | None = None
    outbox: OutboxSender | None = None
    executor: RunExecutor | None = None
    backpressure: Backpressure | None = None
    webhooks: WebhookSender | None = None
    flower: FlowerEvents | None = None
    unacknowledged: UnacknowledgedMessages | None = None
    fair_order: FairOrder | None = None

    async def probe(self) -> None:
        """Check the stores and set the heartbeat's condition. A process waits for its stores instead of exiting."""
        missing = await self.ports.probe()
        self.heartbeat.note(Condition.WAITING if missing else Condition.READY, missing)

    async def end_waits(self) -> None:
        """End senders' tasks that have reached their wait timeout."""
        if await self.submissions.end_waits() and self.ended_tasks is not None:
            self.ended_tasks.nudge()

    async def beat(self) -> None:
        self.heartbeat.beat()

    async def announce(self) -> None:
        await WorkerRegistry(self.ports.shared.redis).announce(self.registered)


@dataclass(frozen=True, slots=True)
class Periodic:
    """A periodic job.

    Args:
        every_s: interval in seconds, or None to use `Settings.sweep_every_s`.
        step: returns the function to repeat, or None if the process lacks the component.
    """

    name: str
    every_s: float | None
    step: Callable[[WorkerParts], Callable[[], Awaitable[object]] | None]


PERIODIC: Final[tuple[Periodic, ...]] = (
    Periodic("renew leases", RENEW_EVERY_S, lambda parts: parts.lanes and parts.lanes.renew),
    Periodic("sweep lanes", None, lambda parts: parts.reconciler and parts.reconciler.sweep),
    Periodic("send outbox", OUTBOX_GATHERS_S, lambda parts: parts.outbox and parts.outbox.send_next),
    Periodic("end tasks", 0.0, lambda parts: parts.ended_tasks and parts.ended_tasks.send_next),
    Periodic("end waits", END_WAITS_EVERY_S, lambda parts: parts.end_waits),
    Periodic("deliver events", DELIVER_EVENTS_EVERY_S, lambda parts: parts.ports.submitter.deliver_due),
    Periodic("renew runs", RENEW_EVERY_S, lambda parts: parts.executor and parts.executor.renew),
    Periodic("sweep runs", None, lambda parts: parts.executor and parts.executor.sweep),
    Periodic(
        "measure load", MEASURE_LOAD_EVERY_S, lambda parts: parts.backpressure and parts.backpressure.measure
    ),
    Periodic("send webhooks", LOOK_EVERY_S, lambda parts: parts.webhooks and parts.webhooks.send_due),
    Periodic("keep messages", KEEP_EVERY_S, lambda parts: parts.unacknowledged and parts.unacknowledged.keep),
    Periodic(
        "keep submissions fair",
        LOOK_IN_QUEUE_EVERY_S,
        lambda parts: parts.fair_order and parts.fair_order.watch,
    ),
    Periodic("announce", ANNOUNCE_EVERY_S, lambda parts: parts.announce),
    Periodic("probe stores", PROBE_EVERY_S, lambda parts: parts.probe),
    Periodic("heartbeat", BEAT_EVERY_S, lambda parts: parts.beat),
    Periodic("flower events", FLUSH_EVERY_S, lambda parts: parts.flower and parts.flower.flush_in_thread),
)


def start_periodic_work(parts: WorkerParts) -> list[asyncio.Task[None]]:
    """Start the jobs for which this process has the components."""
    tasks: list[asyncio.Task[None]] = []
    for work in PERIODIC:
        step = work.step(parts)
        every_s = parts.settings.sweep_every_s if work.every_s is None else work.every_s
        if step is not None:
            tasks.append(asyncio.create_task(_repeat(work.name, step, every_s), name=work.name))
    return tasks


async def _repeat(name: str, step: Callable[[], Awaitable[object]], every_s: float) -> None:
    """Repeat a step forever. Log only the first of consecutive failures, and the recovery."""
    failing = False
    while True:
        pause_s = every_s
        try:
            await step()
        except Exception as error:  # noqa: BLE001 - the next round may succeed
            if not failing:
                _log.warning("A periodic job failed.", job=name, error=error)
            failing, pause_s = True, max(every_s, PAUSE_AFTER_FAILURE_S)
        else:
            if failing:
                _log.info("A periodic job works again.", job=name)
            failing = False
        await asyncio.sleep(pause_s)
