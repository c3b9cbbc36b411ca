"""Commit a turn, usually in a single statement, and recover if the response is lost (RT-4, RT-17)."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.adapters.postgres.events import write_events
from orchestrator.adapters.postgres.lanes.claim_repair import find_commit
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event
from orchestrator.turns.lease import AGENT, Lease, TurnCommit, Utterance
from orchestrator.types import TurnId

_RETRY_DELAYS_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Delays between retries of a commit whose outcome is unknown, in seconds."""

_log = get_logger(__name__)


async def commit_surely(
    database: Database,
    lease: Lease,
    commit: TurnCommit,
    limits: dict[str, Any],
    *,
    last: bool,
) -> Sequence[Any] | None:
    """Commit a turn. Return the row from `commit_turn.sql`, or None if the fence rejected the commit.

    If the response is lost, find out whether the commit took effect, and retry if not. `last`: True if no
    other turn was pending at the claim. If so, a separate statement claims a turn that has arrived since.
    """
    arguments = _arguments(lease, commit) | limits
    arguments |= {"last": "", "following": None} if last else {"last": None, "following": ""}
    # These are separate statements, because most turns don't need them.
    further = [name for name, rare in _RARE.items() if arguments[rare] is not None]
    for delay_s in _RETRY_DELAYS_S:
        try:
            return await _commit_once(database, arguments, further)
        except Unavailable as error:
            _log.warning(
                "A commit's outcome is unknown; checking it.",
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
"""Arguments that require an additional statement, by statement."""
_PARTS = ("whole", "step", "last", "following", "archived", "frames", "plans", "plan_revisions", "outbox")
"""Arguments for optional parts of `commit_turn.sql`. If an argument is None, its part is left out."""


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
        "result": dump_json(commit.result),
        "signals": dump_json(commit.signals),
        "error": commit.error,
        "event_count": len(commit.events),
        "events": write_events(commit.events, turn_id),
        **_said_arguments(commit.utterances),
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


WHOLE_EVERY_EPOCHS = 16
"""Maximum number of epochs between commits of the full state. Other commits can write just a diff."""


def _state_arguments(lease: Lease, commit: TurnCommit) -> dict[str, Any]:
    """Return the arguments for the full state, or for only the diff.

    The diff suffices if it is at most half the size of the state and no full state is due.
    """
    state, diff, outline = commit.state, commit.diff, commit.outline
    due = commit.snapshot or lease.state is None or (lease.epoch + 1) % WHOLE_EVERY_EPOCHS == 0
    whole = due or 2 * len(diff) > len(state)
    return {
        "whole": state.decode() if whole else None,
        "step": None if whole else "",
        "diff": diff.decode(),
        "open_flows": None if outline is None else outline.flows,
        "open_approvals": None if outline is None else outline.approvals,
        "unsummarized": None if outline is None else outline.unsummarized,
    }


def _said_arguments(lines: tuple[Utterance, ...]) -> dict[str, Any]:
    said: dict[str, Any] = dict.fromkeys(("role", "form", "content", "reply"))
    for line in lines:
        if line.role == AGENT:
            said["reply"] = line.content
        else:
            said |= {"role": line.role, "form": line.form, "content": line.content}
    return said


def _array(entries: Any) -> str | None:
    """Return a JSON array, or None if there are no entries. None removes this part of the statement."""
    return dump_json(entries) if entries else None


def number_events(events: tuple[Event, ...], first: int, turn_id: TurnId) -> tuple[Event, ...]:
    return tuple(
        Event(event.session_id, event.type, event.turn_id or turn_id, event.payload, first + place)
        for place, event in enumerate(events)
    )
