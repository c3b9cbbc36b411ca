"""The status of the whole system at a moment: how long turns wait, and what is deferred for them (IF-14)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.types import SessionId, TenantId


@dataclass(frozen=True, slots=True)
class Queue:
    """`oldest_s`: how long its first entry has waited, in seconds; 0 when it is empty."""

    waiting: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """`held_lanes` are at work, `waiting_lanes` have turns and nobody who works on them.

    `outbox` by kind: what was committed and not yet sent. `runs` by urgency: Internal flows that are due
    and unclaimed; those of housekeeping are the debt (IF-14). `webhooks_…`: feeds whose receiver fails, and
    those that wait for an operator. `jobs` by name: when each was fired last and when it is due next, unix seconds.
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


class PostgresStatus:
    """Reads it, over all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> SystemStatus:
        """Raises Unavailable."""
        row = await self._database.fetch_one(statement("status"), {})
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


def _queues(found: Mapping[str, tuple[int, float]]) -> dict[str, Queue]:
    return {name: Queue(waiting, float(age or 0.0)) for name, (waiting, age) in found.items()}


SINCE_S = 5.0
NEWEST_TURNS = 200


@dataclass(frozen=True, slots=True)
class Debt:
    """Housekeeping of a session that is due and deferred: how many runs, and for how long the oldest."""

    session_id: SessionId | None
    runs: int
    oldest_s: float


class PostgresLoad:
    """Every method raises Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def turn_wait_s(self) -> float:
        """The 95th percentile of what turns of the last seconds waited for a worker."""
        arguments = {"since_s": SINCE_S, "newest": NEWEST_TURNS}
        row = await self._database.fetch_one(statement("turn_wait"), arguments)
        return 0.0 if row is None or row[0] is None else row[0]

    async def housekeeping_debt(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[Debt]:
        """Deferred runs by session, the oldest first; of one tenant or all."""
        arguments = {"tenant_id": tenant_id, "limit": limit}
        rows = await self._database.fetch_all(statement("run_debt"), arguments)
        return [Debt(*row) for row in rows]
