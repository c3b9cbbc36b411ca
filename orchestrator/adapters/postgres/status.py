"""The status of the whole system at a moment: what no single process can count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.adapters.postgres.pool import Database, translated
from orchestrator.adapters.postgres.statements import statement


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
    those that wait for an operator.
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


class PostgresStatus:
    """Reads it, over all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> SystemStatus:
        """Raises Unavailable."""
        with translated():
            row = await self._database.fetch_one(statement("status"), {})
        assert row is not None
        *counts, outbox, runs, failing, given_up = row
        return SystemStatus(
            *counts,
            outbox=_queues(outbox),
            runs=_queues(runs),
            webhooks_failing=failing,
            webhooks_given_up=given_up,
        )


def _queues(found: Mapping[str, tuple[int, float]]) -> dict[str, Queue]:
    return {name: Queue(waiting, float(age or 0.0)) for name, (waiting, age) in found.items()}
