"""Feedback on turns: thumbs, words, and what would have been right."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from gateway import shapes
from gateway.doors import TheCaller, TheDoors, TheTenant
from gateway.schemas import NewFeedback
from orchestrator.telemetry import Signal, SignalType
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import JsonObject, SessionId, TurnId

router = APIRouter(prefix="/v1", tags=["feedback"])


def feedback_object(record: FeedbackRecord) -> JsonObject:
    said = record.feedback
    return {
        "feedback_id": record.feedback_id,
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "rating": None if said.rating is None else said.rating.value,
        "comment": said.comment,
        "correction": said.correction or None,
        "author": said.author,
        "at": record.at.isoformat(),
    }


@router.post(
    "/turns/{turn_id}/feedback",
    status_code=HTTPStatus.CREATED,
    responses={201: {"model": shapes.Feedback}},
)
async def give_feedback(turn_id: TurnId, body: NewFeedback, doors: TheDoors, caller: TheCaller) -> JsonObject:
    """Say what you think of a turn. The same author's later word replaces the earlier one.

    Who asks as a user is the author, whatever `author` says; a backend names for whom it speaks.
    """
    correction = {} if body.correction is None else body.correction.model_dump(exclude_none=True)
    record = await doors.feedback.give(
        caller.tenant_id,
        turn_id,
        Feedback(body.rating, body.comment, correction, caller.author(body.author)),
    )
    doors.record_signal(
        Signal(
            source="gateway",
            type=SignalType.FEEDBACK,
            session=record.session_id,
            turn=turn_id,
            payload={
                "rating": None if body.rating is None else body.rating.value,
                "corrected": sorted(correction),
                "commented": body.comment is not None,
            },
        )
    )
    return feedback_object(record)


@router.get("/sessions/{session_id}/feedback", responses={200: {"model": list[shapes.Feedback]}})
async def list_feedback(
    session_id: SessionId,
    doors: TheDoors,
    tenant: TheTenant,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[JsonObject]:
    """What people said of a session's turns, newest first."""
    await doors.sessions.get(tenant, session_id)
    return [
        feedback_object(one) for one in await doors.feedback.list(tenant, session_id=session_id, limit=limit)
    ]
