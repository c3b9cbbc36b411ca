"""System status: queue lengths, waiting times, and the backlog of background work (IF-14)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.types import SessionId, TenantId


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue's length, and the age of its oldest entry in seconds, or 0 if the queue is empty."""

    waiting: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """System-wide metrics.

    Args:
        held_lanes: number of sessions with a running turn.
        waiting_lanes: number of sessions with unfinished turns but no worker.
        oldest_turn_s: age of the oldest unfinished turn, in seconds.
        outbox: unacknowledged messages by kind.
        runs: due, unclaimed background runs by urgency. Runs with the urgency `background` are the backlog.
        webhooks_failing: number of feeds whose deliveries fail and are retried.
        webhooks_given_up: number of feeds whose deliveries are not retried until an operator restarts them.
        jobs: last and next firing of each scheduled job by name, in Unix seconds.
    """

    unfinished_turns: int
    held_lanes: int
    waiting_lanes: int
    oldest_turn_s: float
    quarantined_turns: int
    workers: int
    pending_approvals: int
    outbox: Mapping[str, Queue] = field(default_factory=dict[str, Queue])
    runs: Mapping[str, Queue] = field(default_factory=dict[str, Queue])
    webhooks_failing: int = 0
    webhooks_given_up: int = 0
    jobs: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


SINCE_S = 5.0
NEWEST_TURNS = 200


@dataclass(frozen=True, slots=True)
class SessionBacklog:
    """The due, unclaimed runs with the urgency `background` of one session, or of no session.

    `oldest_s`: time since the oldest of these runs became due, in seconds.
    """

    session_id: SessionId | None
    runs: int
    oldest_s: float


class PostgresStatus:
    """Status and load metrics, read from PostgreSQL. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> SystemStatus:
        """Return the system status across all tenants."""
        row = await self._database.fetch_one("SELECT * FROM parley_status()", {})
        assert row is not None
        *counts, outbox, runs, failing, given_up, jobs = row
        return SystemStatus(
            *counts,
            outbox=_queues(outbox),
            runs=_queues(runs),
            webhooks_failing=failing,
            webhooks_given_up=given_up,
            jobs=jobs,
        )

    async def turn_wait_s(self) -> float:
        """Return the 95th-percentile wait for a worker among recent user turns, in seconds.

        Return 0 if there are no recent user turns.
        """
        arguments = {"since_s": SINCE_S, "newest": NEWEST_TURNS}
        row = await self._database.fetch_one(statement("turn_wait"), arguments)
        return 0.0 if row is None or row[0] is None else row[0]

    async def backlog(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[SessionBacklog]:
        """Return the backlogs of up to `limit` sessions, oldest first. Default: all tenants' sessions."""
        arguments = {"tenant_id": tenant_id, "limit": limit}
        rows = await self._database.fetch_all(statement("run_backlog"), arguments)
        return [SessionBacklog(*row) for row in rows]


def _queues(found: Mapping[str, tuple[int, float]]) -> dict[str, Queue]:
    return {name: Queue(waiting, float(age or 0.0)) for name, (waiting, age) in found.items()}
