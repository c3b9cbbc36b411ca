from http import HTTPStatus

from fastapi import APIRouter

from gateway.dependencies import TheCaller, TheFeedback, TheOperations, TheTenant
from gateway.parameters import Limit
from gateway.request_bodies import NewFeedback
from gateway.responses import turns as responses
from orchestrator.telemetry import Signal, SignalType
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import SessionId, TurnId

router = APIRouter(prefix="/v1", tags=["feedback"])


@router.post("/turns/{turn_id}/feedback", status_code=HTTPStatus.CREATED, response_model=responses.Feedback)
async def give_feedback(
    turn_id: TurnId, body: NewFeedback, feedback: TheFeedback, operations: TheOperations, caller: TheCaller
) -> FeedbackRecord:
    """Submit feedback on a turn, replacing the author's earlier feedback.

    Backends set `author`. For users, `author` is ignored, because the author is the user.
    """
    correction = {} if body.correction is None else body.correction.model_dump(exclude_none=True)
    given = Feedback(body.rating, body.comment, correction, caller.author(body.author))
    record = await feedback.give(caller.tenant_id, turn_id, given)
    operations.record_signal(
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
    return record


@router.get("/feedback", response_model=list[responses.Feedback])
async def list_feedback(
    feedback: TheFeedback, tenant: TheTenant, session_id: SessionId | None = None, limit: Limit = 100
) -> list[FeedbackRecord]:
    """List feedback on turns of one session or all sessions, newest first."""
    return await feedback.list(tenant, session_id=session_id, limit=limit)
