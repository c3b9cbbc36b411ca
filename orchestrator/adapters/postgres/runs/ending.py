"""End a run, and handle the consequences (IF-5, IF-9).

All runs end here, whether done, skipped, failed, canceled or blocked. One transaction releases or blocks
successors, frees the run's flight key, logs the end and starts a requested rerun.
"""

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.adapters.postgres.hot_connections import HotConnection
from orchestrator.adapters.postgres.pool import dump_json
from orchestrator.adapters.postgres.runs.starting import GRACE_S, start_again, to_hints
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import SUCCEEDED, OnFailure, RedoStatus, RunStatus
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import TenantId, new_id

REPORT_S: Final = 3.0
"""Time for a run's task to report the end before the reconciler sends another message, in seconds."""


async def end_run(
    transaction: HotConnection,
    run_id: str,
    end: RunEnd,
    *,
    token: int | None = None,
    tenant_id: TenantId | None = None,
) -> tuple[Hint, ...] | None:
    """End a run. Release or block its successors, or add the next run of its chain.

    Without a `token`, the run ends even if a worker holds it; the worker is fenced off. Return hints for the
    runs that can now start, or None, without changes, if the claim is no longer current or the run has ended.
    """
    row = await transaction.fetch_one(statement("end_run"), _arguments(run_id, end, token, tenant_id))
    if row is None:
        return None
    flow, successors, on_failure, flight_key, again, session_id = row[:6]
    hints: tuple[Hint, ...] = ()
    if end.redo is RedoStatus.SCHEDULED:
        hint = await add_rerun(
            transaction,
            run_id,
            by_hand=False,
            redo_count=end.redo_count,
            flight_key=flight_key,
            after_s=end.redo_after_s,
        )
        hints, again = (hint,), None  # the next run of the chain inherits the task
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


async def add_rerun(
    transaction: HotConnection,
    run_id: str,
    *,
    by_hand: bool,
    redo_count: int | None,
    flight_key: str | None,
    after_s: float = 0.0,
) -> Hint:
    """Add the next run to the chain that ends in `run_id`. The new run inherits the last run's successors.

    An automatic rerun continues the last run's task. A manual rerun (`by_hand`) gets a new task. `after_s`:
    delay of the new run, in seconds.
    """
    arguments = {
        "run_id": run_id,
        "new_run_id": new_id("run"),
        "by_hand": by_hand,
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
    """Block `successors` and all runs that wait for them. Return hints for graphs that then start again."""
    hints: tuple[Hint, ...] = ()
    for run_id, why in await transaction.fetch_all(
        statement("block_runs"), {"run_ids": successors, "reason": reason}
    ):
        blocked = RunEnd(RunStatus.BLOCKED, reason=why)
        row = await transaction.fetch_one(statement("end_run"), _arguments(run_id, blocked))
        if row is None:
            continue
        again, session_id = row[4:6]
        await _log_end(transaction, run_id, session_id)
        if again is not None and cause is not RunStatus.CANCELLED:
            hints += await start_again(transaction, run_id, again)
    return hints


async def _log_end(transaction: HotConnection, run_id: str, session_id: str | None) -> None:
    """Append a run's end to its session's log. Runs that maintain the stores have no session."""
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
        "report_s": REPORT_S,
    }
