"""Broker tasks that finish when their turns end, stored in PostgreSQL (RT-30).

A task is stored with its turn, and the end of the turn moves the task to the outbox. This module doesn't use
Celery: a task's request is JSON, and the sender of outbox messages finishes the task.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

FINISH_TASK: Final = "finish_task"
"""The kind of outbox message that ends a task. Its payload names the task."""
KEPT_FOR_S: Final = 3600.0
"""Retention time of an ended task, in case its message is redelivered, in seconds."""
MOST_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTask:
    """A broker task that ends when a turn ends.

    Args:
        request: Celery's request, or None for a task that has ended but whose expiry still cancels the turn.
        wait_s: maximum wait for the turn, in seconds, or None if unlimited.
        expires_at: when the turn is canceled, or None if the task doesn't expire.
        cancels: True if revoking the task cancels the turn, because the task submitted the turn.
    """

    task_id: str
    tenant_id: TenantId
    session_id: SessionId
    turn_id: TurnId
    request: JsonObject | None
    wait_s: float | None = None
    expires_at: datetime | None = None
    cancels: bool = True


@dataclass(frozen=True, slots=True)
class EndingTask:
    """A task that is about to end.

    Args:
        request: Celery's request.
        stopped: ``revoked``, ``expired``, or None if the task was not stopped.
        waited_s: seconds since the task was stored.
    """

    request: JsonObject
    stopped: str | None
    waited_s: float


class PostgresAwaitedTasks:
    """A PostgreSQL store of awaited tasks. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, task: AwaitedTask) -> None:
        """Store a task once, even if its message is redelivered.

        If the turn has already ended, the task ends immediately.
        """
        arguments = asdict(task) | {
            "request": None if task.request is None else dump_json(task.request),
            "expires_at": None if task.expires_at is None else task.expires_at.timestamp(),
        }
        await self._database.fetch_all(statement("await_turn"), arguments)

    async def end_waits(self) -> int:
        """End up to `MOST_AT_ONCE` tasks that have reached their maximum wait. Return how many must report their end.

        Also delete tasks that ended more than `KEPT_FOR_S` seconds ago.
        """
        limits = {"kept_for_s": KEPT_FOR_S, "limit": MOST_AT_ONCE}
        return len(await self._database.fetch_all(statement("end_waits"), limits))

    async def expired(self) -> list[tuple[TenantId, TurnId]]:
        """Return up to `MOST_AT_ONCE` turns to cancel because their tasks have expired."""
        rows = await self._database.fetch_all(statement("expire_tasks"), {"limit": MOST_AT_ONCE})
        return [(TenantId(tenant), TurnId(turn)) for tenant, turn in rows]

    async def revoked(self, task_id: str) -> list[tuple[TenantId, TurnId]]:
        """Record that a task was revoked. Return the unfinished turns that the task submitted."""
        rows = await self._database.fetch_all(statement("revoke_task"), {"task_id": task_id})
        return [(TenantId(tenant), TurnId(turn)) for tenant, turn in rows]

    async def ending(self, task_id: str) -> EndingTask | None:
        """Return a task that is about to end.

        Return None if the task is unknown or its sender has already received the response.
        """
        row = await self._database.fetch_one(statement("read_awaited"), {"task_id": task_id})
        return None if row is None else EndingTask(row[0], row[1], row[2])

    async def answered(self, task_id: str) -> None:
        """Delete a task's request, after its sender has received the response."""
        await self._database.fetch_all(statement("forget_awaited"), {"task_id": task_id})
