"""Background runs in PostgreSQL, for workers: claims, items, ends and the reconciler's sweep.

The database decides which run can continue, regardless of the message that arrived (IF-8, IF-9). `ending`
ends runs.
"""

from collections.abc import Sequence
from contextlib import suppress

import psycopg
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.claims import HeldClaim, HeldClaims, WorkerLock
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.runs.ending import end_run
from orchestrator.adapters.postgres.runs.starting import ATTEMPTS, GRACE_S, STARTED_BY_OTHERS
from orchestrator.adapters.postgres.statements import statement
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Hint, Progress
from orchestrator.ports.runs.status import ENDED, Phase, RunStatus, Urgency
from orchestrator.ports.runs.work import (
    ClaimedItem,
    Deferred,
    ItemEnd,
    ItemsClaim,
    LostShare,
    Recorded,
    RunClaim,
    RunEnd,
    RunFacts,
    RunState,
    Swept,
    Unrun,
)
from orchestrator.types import Json, JsonObject

AGAIN_S = 5.0
"""Time for the reconciler's message to arrive before another is sent, in seconds. Queues can be long."""
MAX_ITEMS_PER_CLAIM = 50


class PostgresRunWork:
    """A PostgreSQL store of background runs, for workers. Each change is atomic. Every method can raise Unavailable.

    A claim permits a worker to execute part of a run while the claim's token is current. Former holders can
    no longer write (IF-9).
    """

    def __init__(self, database: Database, worker: WorkerLock, *, lease_ttl_s: float = 15.0) -> None:
        self._database = database
        self._held: HeldClaims[int] = HeldClaims(database, worker, "renew_claims", lease_ttl_s=lease_ttl_s)

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float = 0.0) -> RunClaim | None:
        """Claim a run's `before_all` or `after_all` stage. The first claim stores `config`.

        `waited_s`: background runs that have been ready for fewer seconds are deferred. Return None if the
        run has no due stage or another worker holds the run.
        """
        arguments = {
            "run_id": run_id,
            "config": dump_json(config),
            "waited_s": waited_s,
            **self._held.owner(),
        }
        row = await self._database.fetch_one(statement("claim_run"), arguments)
        if row is None:
            return None
        token, phase, attempts, inputs, progress = row[10:]
        facts = _facts(run_id, row)
        if attempts == 1 and phase == Phase.BEFORE and facts.session_id is not None:
            await self.log_progress(run_id)
        self._held.keep(token, HeldClaim(token))
        return RunClaim(facts, token, Phase(phase), attempts, tuple(inputs or ()), Progress(*progress))

    async def begin_items(
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json
    ) -> bool:
        """End `before_all` and store the items. Return False if the claim is no longer current."""
        self.give_up(claim.token)
        arguments = {
            "run_id": claim.facts.run_id,
            "token": claim.token,
            "inputs": dump_json(inputs),
            "options": dump_json(options),
            "data": dump_json(data),
            "grace_s": GRACE_S,
        }
        return await self._database.fetch_one(statement("begin_items"), arguments) is not None

    async def claim_items(
        self, run_id: str, *, task_id: str | None, waited_s: float = 0.0
    ) -> ItemsClaim | Deferred | None:
        """Claim unfinished items. Return None if no item is free or the run has reached its concurrency limit.

        `task_id`: the task that executes the items. `waited_s`: items in background runs that have been ready
        for fewer seconds are deferred. If positive, other background items are claimed one at a time.
        """
        async with self._database.hot_transaction() as transaction:
            run = await transaction.fetch_one(
                statement("lock_items_run"), {"run_id": run_id, "waited_s": waited_s}
            )
            if run is None:
                return None
            if run[-1]:
                return Deferred.ITEMS
            facts = _facts(run_id, run)
            slowly = waited_s > 0 and facts.urgency is Urgency.BACKGROUND
            arguments = {
                "run_id": run_id,
                "concurrency": 1 if slowly else facts.options["concurrency"],
                "at_most": 1 if slowly else MAX_ITEMS_PER_CLAIM,
                "task_id": task_id,
                **self._held.owner(),
            }
            rows = await transaction.fetch_all(statement("claim_items"), arguments)
            if not rows:
                await transaction.fetch_all(statement("close_items"), {"run_id": run_id, "grace_s": GRACE_S})
                return None
        token = rows[0][0]
        self._held.keep(token, HeldClaim(token))
        return ItemsClaim(facts, token, tuple(ClaimedItem(*row[1:]) for row in rows))

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...], *, last: bool) -> Recorded:
        """Record each item's result once. `last`: True to release the claim too.

        Return LOST, without changes, if the claim is no longer current. Return ALL if all items of the run are
        finished, which is checked only if `last`.
        """
        run_id = claim.facts.run_id
        if last:
            self.give_up(claim.token)
        async with self._database.hot_transaction() as transaction:
            if last:  # runs are locked before their claims
                await transaction.fetch_all(statement("lock_items_run"), {"run_id": run_id, "waited_s": 0.0})
            arguments = {
                "run_id": run_id,
                "token": claim.token,
                "ends": dump_json(ends),
                "last": last,
            }
            if await transaction.fetch_one(statement("record_items"), arguments) is None:
                return Recorded.LOST
            if not last:
                return Recorded.MORE
            closed = await transaction.fetch_one(
                statement("close_items"), {"run_id": run_id, "grace_s": GRACE_S}
            )
        return Recorded.MORE if closed is None else Recorded.ALL

    async def finish(self, claim: RunClaim, end: RunEnd) -> tuple[Hint, ...] | None:
        """End a run under its claim. Return None, without changes, if the claim is no longer current."""
        self.give_up(claim.token)
        for _ in range(ATTEMPTS):
            # Another process may have added the rerun at the same time.
            with suppress(psycopg.errors.UniqueViolation):
                async with self._database.hot_transaction() as transaction:
                    return await end_run(transaction, claim.facts.run_id, end, token=claim.token)
        raise Unavailable(STARTED_BY_OTHERS)

    async def state(self, run_id: str) -> RunState | None:
        """Return the state of a run that could not be claimed, or None if the run was deleted."""
        row = await self._database.fetch_one(statement("run_state"), {"run_id": run_id})
        return None if row is None else RunState(RunStatus(row[0]), Phase(row[1]), Urgency(row[2]), *row[3:])

    async def note_reported(self, run_ids: Sequence[str]) -> None:
        """Record that the tasks of ended runs have reported the end."""
        await self._database.fetch_all(statement("report_runs"), {"run_ids": [*run_ids]})

    async def log_progress(self, run_id: str) -> tuple[int, JsonObject] | None:
        """Append a run's progress to its session's log. Return the event's number and payload.

        Return None if the run has no session. The start and end of a run are appended automatically.
        """
        row = await self._database.fetch_one(statement("log_run"), {"run_id": run_id})
        return None if row is None else (row[0], row[1])

    async def outputs(self, run_id: str) -> list[Json]:
        """Return the items' outputs, ordered by position, with None for items without an output."""
        query = "SELECT result FROM internal_items WHERE run_id = %(run_id)s ORDER BY position"
        return [row[0] for row in await self._database.fetch_all(query, {"run_id": run_id})]

    async def renew(self) -> set[int]:
        """Renew this worker's claims. Return the tokens that are no longer current."""
        _, lost = await self._held.renew()
        return set(lost)

    def give_up(self, token: int) -> None:
        """Stop renewing a claim. Unless the claim is released, it expires, and another worker can take over."""
        self._held.drop(token, token)

    async def sweep(self, *, limit: int = 500, waited_s: float = 0.0) -> Swept:
        """Release the claims of dead or unresponsive workers, and find runs whose message may have been lost.

        `waited_s`: as in `claim`.
        """
        freed = await self._database.fetch_all(statement("free_claims"), {"grace_s": GRACE_S})
        arguments = {"again_s": AGAIN_S, "limit": limit, "waited_s": waited_s}
        rows = await self._database.fetch_all(statement("sweep_runs"), arguments)
        return Swept(
            tuple(Hint(row[0], row[1], Urgency(row[2])) for row in rows if not _never_ran(row)),
            tuple(
                LostShare(task, run_id, flow, Urgency(urgency))
                for run_id, flow, urgency, task in freed
                if task
            ),
            tuple(
                Unrun(row[0], row[3], row[1], RunStatus(row[4]), row[5]) for row in rows if _never_ran(row)
            ),
        )


def _never_ran(row: TupleRow) -> bool:
    *_, status, _, began = row
    return status in ENDED and not began


def _facts(run_id: str, row: TupleRow) -> RunFacts:
    """Convert a claim's first ten columns to `RunFacts`, whose fields they match."""
    return RunFacts(run_id, *row[:8], urgency=Urgency(row[8]), turn_id=row[9])
