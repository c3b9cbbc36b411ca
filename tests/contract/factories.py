"""Submissions and commits with defaults for values that a test does not specify."""

from __future__ import annotations

from typing import Any

import orjson

from orchestrator.dialogue.storage.serialization import diff, outline_of
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import Inbox
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease, TurnCommit, Utterance, Work
from orchestrator.turns.turn import Submission, TurnInput, TurnStatus
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, new_id


def submission(tenant: TenantId, session_id: str, text: str = "hello", **more: Any) -> Submission:
    return Submission(SessionId(session_id), TurnInput(text), tenant, **more)


def opening(session_id: str, given: str | TurnInput = "hello", **more: Any) -> Submission:
    """Return a submission that creates its session."""
    turn = TurnInput(given) if isinstance(given, str) else given
    values = {"create_session": True, "domain": "travel", **more}
    return Submission(SessionId(session_id), turn, DEFAULT_TENANT, **values)


async def claim(lane: Lane, session_id: SessionId) -> Lease:
    """Claim a session that must have a turn."""
    lease = await lane.claim(session_id)
    assert lease is not None
    return lease


def commit_of(
    work: Work,
    session_id: str,
    *,
    status: TurnStatus = TurnStatus.DONE,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
    **more: Any,
) -> TurnCommit:
    """Return a commit that answers the turn with its input."""
    state = {"last_seq": work.seq} if after is None else after
    answer = f"you said {work.input.text}"
    values: dict[str, Any] = {
        "status": status,
        "state": orjson.dumps(state),
        "diff": orjson.dumps(diff(before or {}, state)),
        "snapshot": False,
        "outline": outline_of(state),
        "result": {"turn_id": work.turn_id, "reply": answer},
        "utterances": (Utterance("user", "text", work.input.text or ""), Utterance("agent", "text", answer)),
        "events": (
            Event(SessionId(session_id), "started", work.turn_id),
            Event(SessionId(session_id), "answer", work.turn_id, {"reply": answer}),
        ),
    }
    return TurnCommit(**{**values, **more})


def commit_for(lease: Lease, **more: Any) -> TurnCommit:
    return commit_of(lease.work, lease.session_id, **more)


async def take_turn(inbox: Inbox, lane: Lane, tenant: TenantId, session_id: SessionId) -> None:
    """Submit a turn, then claim and commit it on this lane, with a small change of the state."""
    await inbox.submit(submission(tenant, session_id))
    lease = await claim(lane, session_id)
    before = orjson.loads(lease.present_state or b"{}")
    await lane.commit(lease, commit_for(lease, before=before, after={**before, "turn": lease.epoch}))


def new_session_id() -> SessionId:
    return SessionId(new_id("session"))
