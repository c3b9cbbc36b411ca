"""The commit of a turn: its one statement, and what is done when the answer to it is lost (RT-4, RT-17)."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from orchestrator.adapters.postgres.lanes.claim_repair import find_commit
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit
from orchestrator.types import TurnId

_RETRY_DELAYS_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""A commit whose fate is unknown is looked up and tried again this often, then given up."""

_log = get_logger(__name__)


async def commit_surely(
    database: Database, lease: Lease, commit: TurnCommit, limits: dict[str, Any], *, merged: bool
) -> Sequence[Any] | None:
    """Commit a turn; the row of `commit_turn.sql`, or None when the fence held.

    When the answer is lost, look whether the commit held and try again. `merged`: other turns end with this one.
    """
    arguments = _arguments(lease, commit) | limits
    # Rare, so not in the statement: most turns are spared the cost.
    further = [name for name, rare in _RARE.items() if arguments[rare] is not None]
    further += ["finish_merged"] if merged else []
    for delay_s in _RETRY_DELAYS_S:
        try:
            return await _commit_once(database, arguments, further)
        except Unavailable as error:
            _log.warning(
                "A commit's fate is unknown; looking it up.",
                turn_id=lease.work.turn_id,
                cause=str(error.__cause__),
            )
            await asyncio.sleep(delay_s)
        try:
            found = await find_commit(database, lease, arguments["event_count"])
        except Unavailable:
            continue
        if found is not None:
            return found
    return await _commit_once(database, arguments, further)


_RARE = {"ask_approvals": "approvals", "close_approvals": "closed"}
"""Statements that a commit needs now and then, by the argument that says so."""
_PARTS = ("whole", "step", "archived", "frames", "plans", "plan_revisions", "outbox")
"""Arguments of the statement's own parts that a commit may do without."""


async def _commit_once(
    database: Database, arguments: dict[str, Any], further: list[str]
) -> Sequence[Any] | None:
    commit = statement("commit_turn", frozenset(part for part in _PARTS if arguments[part] is None))
    if not further:
        return await database.fetch_one(commit, arguments)
    async with database.hot_transaction() as transaction:
        row = await transaction.fetch_one(commit, arguments)
        for name in further if row is not None else ():
            await transaction.fetch_all(statement(name), arguments)
        return row


def _arguments(lease: Lease, commit: TurnCommit) -> dict[str, Any]:
    turn_id = lease.work.turn_id
    return {
        "session_id": lease.session_id,
        "tenant_id": lease.tenant_id,
        "turn_id": turn_id,
        "seq": lease.work.seq,
        "token": lease.token,
        "epoch": lease.epoch,
        "status": commit.status.value,
        **_state_arguments(lease, commit),
        "snapshot": commit.snapshot,
        "result": orjson.dumps(commit.result).decode(),
        "signals": _array(commit.signals),
        "error": commit.error,
        "event_count": len(commit.events),
        "events": _array(
            [
                {"turn_id": event.turn_id or turn_id, "type": event.type, "payload": event.payload}
                for event in commit.events
            ]
        ),
        "utterances": _array(commit.utterances),
        "archived": _array(tuple({flow.flow_id: flow for flow in commit.archived}.values())),
        "frames": _array(tuple({frame.flow_id: frame for frame in commit.frames}.values())),
        "plans": _array(commit.plans),
        "plan_revisions": _array(commit.plan_revisions),
        "outbox": _array(commit.outbox),
        "approvals": _array(
            [asdict(record) | {"expires_at": record.expires_at.timestamp()} for record in commit.approvals]
        ),
        "closed": _array(commit.closed_approvals),
    }


WHOLE_EVERY_EPOCHS = 10
"""So often at least the state is written whole; in between, its diffs are all that a commit writes of it."""


def _state_arguments(lease: Lease, commit: TurnCommit) -> dict[str, Any]:
    """The state whole, or only its diff where that is much smaller."""
    state, diff, outline = commit.state, commit.diff, commit.outline
    due = commit.snapshot or lease.state is None or (lease.epoch + 1) % WHOLE_EVERY_EPOCHS == 0
    whole = due or 2 * len(diff) > len(state)
    return {
        "whole": state.decode() if whole else None,
        "step": None if whole else "",
        "diff": diff.decode(),
        "open_flows": None if outline is None else outline.flows,
        "open_approvals": None if outline is None else outline.approvals,
        "unsummarised": None if outline is None else outline.unsummarised,
    }


def _array(entries: Any) -> str | None:
    """A JSON array for a statement; null when empty, which costs the database nothing."""
    return orjson.dumps(entries).decode() if entries else None


def number_events(events: tuple[Event, ...], first: int, turn_id: TurnId) -> tuple[Event, ...]:
    """The events of a commit as they stand in the session's log."""
    return tuple(
        Event(event.session_id, event.type, event.turn_id or turn_id, event.payload, first + place)
        for place, event in enumerate(events)
    )
