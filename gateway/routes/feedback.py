from http import HTTPStatus
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import AliasPath, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from gateway.dependencies import TheCaller, TheFeedback, TheOperations, TheTenant
from gateway.schemas import GIVEN, JsonMap, Limit, ResponseModel, Timestamp
from orchestrator.telemetry import Signal, SignalType
from orchestrator.turns import feedback as records
from orchestrator.turns.feedback import FeedbackRecord, Rating
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, RequestBody
from orchestrator.types import SessionId, TurnId

router = APIRouter(prefix="/v1", tags=["feedback"])


class Correction(RequestBody):
    """The correct reply, flow or slots."""

    reply: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=NO_NUL)] | None = None
    dact: Identifier | None = None
    slots: dict[str, AnyJson] | None = None


class NewFeedback(RequestBody):
    """Feedback with at least one of rating, comment and correction."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: GIVEN}}
                for name in ("rating", "comment", "correction")
            ],
            "examples": [
                {"rating": "up"},
                {
                    "rating": "down",
                    "comment": "I meant Friday.",
                    "correction": {"slots": {"date": "2026-12-04"}},
                },
            ],
        }
    )

    rating: Rating | None = None
    comment: Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=NO_NUL)] | None = None
    correction: Correction | None = None
    author: Identifier | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.rating is None and self.comment is None and self.correction is None:
            raise ValueError("requires rating, comment or correction")
        return self


def _none_if_empty(correction: JsonMap) -> JsonMap | None:
    return correction or None


class Feedback(ResponseModel):
    feedback_id: str
    session_id: str
    turn_id: str
    rating: Rating | None = Field(validation_alias=AliasPath("feedback", "rating"))
    comment: str | None = Field(validation_alias=AliasPath("feedback", "comment"))
    correction: Annotated[JsonMap | None, BeforeValidator(_none_if_empty)] = Field(
        validation_alias=AliasPath("feedback", "correction")
    )
    author: str | None = Field(validation_alias=AliasPath("feedback", "author"))
    at: Timestamp


@router.post("/turns/{turn_id}/feedback", status_code=HTTPStatus.CREATED, response_model=Feedback)
async def give_feedback(
    turn_id: TurnId, body: NewFeedback, feedback: TheFeedback, operations: TheOperations, caller: TheCaller
) -> FeedbackRecord:
    """Submit feedback on a turn, replacing the author's earlier feedback.

    Backends set `author`. For users, `author` is ignored, because the author is the user.
    """
    correction = {} if body.correction is None else body.correction.model_dump(exclude_none=True)
    given = records.Feedback(body.rating, body.comment, correction, caller.author(body.author))
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


@router.get("/feedback", response_model=list[Feedback])
async def list_feedback(
    feedback: TheFeedback, tenant: TheTenant, session_id: SessionId | None = None, limit: Limit = 100
) -> list[FeedbackRecord]:
    """List feedback on turns of one session or all sessions, newest first."""
    return await feedback.list(tenant, session_id=session_id, limit=limit)
