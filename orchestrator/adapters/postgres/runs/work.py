"""Runs of Internal flows as workers see them, on PostgreSQL: claims, items, ends, the reconciler's sweep.

Readiness and truth are here; messages are hints (IF-8, IF-9). How a run ends is in `ending`.
"""

from contextlib import suppress

import psycopg
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.claims import HeldClaim, HeldClaims, WorkerLock, free_claims
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.runs.ending import end_at_once, end_run
from orchestrator.adapters.postgres.runs.starting import ATTEMPTS, GRACE_S, STARTED_BY_OTHERS
from orchestrator.adapters.postgres.statements import statement
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Hint, Progress
from orchestrator.ports.runs.status import SUCCEEDED, Phase, RedoStatus, Urgency
from orchestrator.ports.runs.work import (
    ClaimedItem,
    ItemEnd,
    ItemsClaim,
    Recorded,
    RunClaim,
    RunEnd,
    RunFacts,
)
from orchestrator.types import Json, JsonObject

AGAIN_S = 5.0
"""How long the reconciler's own message may take: a queue may be long."""
MAX_ITEMS_PER_CLAIM = 50


class PostgresRunWork:
    """Every method that changes something is one transaction, and raises Unavailable.

    A claim is the right to carry a part of a run out while its token is current; whoever lost it writes
    nothing any more (IF-9).
    """

    def __init__(self, database: Database, worker: WorkerLock, *, lease_ttl_s: float = 15.0) -> None:
        self._database = database
        self._held: HeldClaims[int] = HeldClaims(database, worker, "renew_claims", lease_ttl_s=lease_ttl_s)

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float = 0.0) -> RunClaim | None:
        """Take up `before_all` or `after_all`; `config` is kept with the run when it starts.

        `waited_s`: housekeeping that became ready later than so long ago is deferred. None: nothing to do
        now, or somebody holds it.
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
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json, record: Json = None
    ) -> bool:
        """`before_all` has ended: store the items, and its record. False: the claim is no longer current."""
        self.give_up(claim.token)
        arguments = {
            "run_id": claim.facts.run_id,
            "token": claim.token,
            "inputs": dump_json(inputs),
            "options": dump_json(options),
            "data": dump_json(data),
            "record": None if record is None else dump_json(record),
            "grace_s": GRACE_S,
        }
        return await self._database.fetch_one(statement("begin_items"), arguments) is not None

    async def claim_items(self, run_id: str, *, waited_s: float = 0.0) -> ItemsClaim | None:
        """Take some unfinished items, unless as many holders as the run allows are at work already.

        `waited_s`: as in `claim`; items of housekeeping that waited long enough are taken one by one.
        """
        async with self._database.hot_transaction() as transaction:
            run = await transaction.fetch_one(
                statement("lock_items_run"), {"run_id": run_id, "waited_s": waited_s}
            )
            if run is None:
                return None
            facts = _facts(run_id, run)
            slowly = waited_s > 0 and facts.urgency is Urgency.HOUSEKEEPING
            arguments = {
                "run_id": run_id,
                "concurrency": 1 if slowly else facts.options["concurrency"],
                "at_most": 1 if slowly else MAX_ITEMS_PER_CLAIM,
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
        """Write what became of items, each once; `last` gives the claim back."""
        run_id = claim.facts.run_id
        if last:
            self.give_up(claim.token)
        async with self._database.hot_transaction() as transaction:
            if last:  # runs are locked before their claims
                await transaction.fetch_all(statement("lock_items_run"), {"run_id": run_id, "waited_s": 0.0})
            arguments = {
                "run_id": run_id,
                "session_id": claim.facts.session_id,
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
        """End a run under its claim. None: the claim is no longer current, nothing was written."""
        self.give_up(claim.token)
        if (
            end.status in SUCCEEDED
            and end.redo is not RedoStatus.SCHEDULED
            and claim.facts.session_id is None
        ):
            hints = await end_at_once(self._database, claim.facts.run_id, end, token=claim.token)
            if hints is not None:
                return hints
        for _ in range(ATTEMPTS):
            # What is to start again may have been started at this moment.
            with suppress(psycopg.errors.UniqueViolation):
                async with self._database.hot_transaction() as transaction:
                    return await end_run(transaction, claim.facts.run_id, end, token=claim.token)
        raise Unavailable(STARTED_BY_OTHERS)

    async def log_progress(self, run_id: str) -> tuple[int, JsonObject] | None:
        """Append how far a run has come to its session's log; the number and payload of that event.

        Beginnings and ends are appended by themselves. None: it has no session.
        """
        row = await self._database.fetch_one(statement("log_run"), {"run_id": run_id})
        return None if row is None else (row[0], row[1])

    async def outputs(self, run_id: str) -> list[Json]:
        """Outputs by position; None for items that were skipped."""
        query = "SELECT result FROM internal_items WHERE run_id = %(run_id)s ORDER BY position"
        return [row[0] for row in await self._database.fetch_all(query, {"run_id": run_id})]

    async def renew(self) -> set[int]:
        """Prolong the claims of this worker; the tokens that are no longer current."""
        _, lost = await self._held.renew()
        return set(lost)

    def give_up(self, token: int) -> None:
        """Stop prolonging a claim; what was not given back runs out, and another worker takes over."""
        self._held.drop(token, token)

    async def sweep(self, *, limit: int = 500, waited_s: float = 0.0) -> tuple[Hint, ...]:
        """Free what dead or silent workers held, and name runs that a lost message left hanging.

        `waited_s`: as in `claim`.
        """
        await free_claims(self._database)
        arguments = {"again_s": AGAIN_S, "limit": limit, "waited_s": waited_s}
        rows = await self._database.fetch_all(statement("sweep_runs"), arguments)
        return tuple(Hint(row[0], row[1], Phase(row[2]), Urgency(row[3])) for row in rows)


def _facts(run_id: str, row: TupleRow) -> RunFacts:
    """The first ten columns of a claim, which stand in the order of the record's fields."""
    return RunFacts(run_id, *row[:8], urgency=Urgency(row[8]), turn_id=row[9])
