"""The end of a run, whoever brings it about, and what follows from it: one home for all of that (IF-5, IF-9).

Done, skipped, failed, cancelled and blocked runs end here; so successors are released or blocked, the flight key is
freed, the session's log is written, and what was asked for meanwhile is started in the same transaction, always.
"""

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.adapters.postgres.hot_connections import HotConnection
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.runs.starting import GRACE_S, start_again, to_hints
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import SUCCEEDED, OnFailure, RedoStatus, RunStatus
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import TenantId, new_id

_END: Final = statement("end_run", frozenset({"grace_s"}))
"""It leaves successors to a statement of its own, which sees all of them."""


async def end_run(
    transaction: HotConnection,
    run_id: str,
    end: RunEnd,
    *,
    token: int | None = None,
    tenant_id: TenantId | None = None,
) -> tuple[Hint, ...] | None:
    """End a run, and release or block its successors, or add the next run of its chain.

    Without a `token` it is ended for its holder, who is fenced. None: the claim is no longer current, or the run has
    ended; nothing was written.
    """
    row = await transaction.fetch_one(_END, _arguments(run_id, end, token, tenant_id))
    if row is None:
        return None
    flow, successors, on_failure, flight_key, again, session_id = row[:6]
    hints: tuple[Hint, ...] = ()
    if end.redo is RedoStatus.SCHEDULED:
        hint = await add_rerun(
            transaction, run_id, redo_count=end.redo_count, flight_key=flight_key, after_s=end.redo_after_s
        )
        hints, again = (hint,), None  # the next run of the chain has it
    elif end.status in SUCCEEDED or on_failure == OnFailure.RELEASE:
        released = {"run_ids": successors, "grace_s": GRACE_S}
        hints = (
            to_hints(await transaction.fetch_all(statement("release_runs"), released)) if successors else ()
        )
    elif successors:
        hints = await _block(transaction, successors, f"{flow} is {end.status}", end.status)
    await _log_end(transaction, run_id, session_id)
    if again is not None and end.status is not RunStatus.CANCELLED:
        hints += await start_again(transaction, run_id, again)
    return hints


async def end_at_once(database: Database, run_id: str, end: RunEnd, *, token: int) -> tuple[Hint, ...] | None:
    """End a run that has succeeded and whose end no session's log has, in a single statement.

    None: nothing was written; `end_run` tells why, or does more than this can.
    """
    arguments = {**_arguments(run_id, end, token), "grace_s": GRACE_S}
    row = await database.fetch_one(statement("end_run"), arguments)
    return None if row is None else to_hints(row[-1] or ())


async def add_rerun(
    transaction: HotConnection,
    run_id: str,
    *,
    redo_count: int | None,
    flight_key: str | None,
    after_s: float = 0.0,
) -> Hint:
    """Add the next run of a chain, whose last one `run_id` is; that one's successors wait for it from now on."""
    arguments = {
        "run_id": run_id,
        "new_run_id": new_id("run"),
        "redo_count": redo_count,
        "flight_key": flight_key,
        "after_s": after_s,
        "grace_s": GRACE_S,
    }
    [hint] = to_hints(await transaction.fetch_all(statement("rerun"), arguments), after_s)
    return hint


async def _block(
    transaction: HotConnection, successors: list[str], reason: str, cause: RunStatus
) -> tuple[Hint, ...]:
    """Leave everything unrun that depends on a failed run, directly or through others; hints of what starts again."""
    hints: tuple[Hint, ...] = ()
    for run_id, why in await transaction.fetch_all(
        statement("block_runs"), {"run_ids": successors, "reason": reason}
    ):
        blocked = RunEnd(RunStatus.BLOCKED, reason=why)
        row = await transaction.fetch_one(_END, _arguments(run_id, blocked))
        if row is None:
            continue
        again, session_id = row[4:6]
        await _log_end(transaction, run_id, session_id)
        if again is not None and cause is not RunStatus.CANCELLED:
            hints += await start_again(transaction, run_id, again)
    return hints


async def _log_end(transaction: HotConnection, run_id: str, session_id: str | None) -> None:
    """Log the end of a run among its session's events; maintenance of stores has no session."""
    if session_id is not None:
        await transaction.fetch_all(statement("log_run"), {"run_id": run_id})


def _arguments(
    run_id: str, end: RunEnd, token: int | None = None, tenant_id: TenantId | None = None
) -> Mapping[str, Any]:
    return {
        "run_id": run_id,
        "tenant_id": tenant_id,
        "token": token,
        "status": end.status.value,
        "closing": dump_json(end.closing),
        "reason": end.reason,
        "error": end.error,
        "redo": end.redo.value,
        "records": dump_json(
            [{"phase": phase, "body": body} for phase, body in end.records if body is not None]
        ),
    }
