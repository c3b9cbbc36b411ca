"""What is remembered of a user: look, and say what it shall be (CO-4)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from gateway import memory_shapes as shapes
from gateway.doors import TheDoors, TheTenant
from orchestrator.dialogue.labels import Label
from orchestrator.dialogue.validation import is_bounded_json
from orchestrator.ports.memory.preferences import (
    LONGEST_TEXT,
    MOST_PREFERENCES,
    Preference,
    PreferenceKind,
    Source,
)
from orchestrator.turns.request import Identifier
from orchestrator.types import JsonObject, UserId

router = APIRouter(prefix="/v1/users/{user_id}/preferences", tags=["memory"])

Key = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.*:-]+$")]
PlainText = Annotated[str, StringConstraints(max_length=LONGEST_TEXT, pattern=r"^[^\x00]*$")]


class PreferenceBody(BaseModel):
    """`key`: ``*.slot`` or ``flow.slot`` for a rule with its value; anything else for a note in words.

    What is shown besides (source, origin, labels, time) may come back with it, and is kept as far as it is
    about where it came from.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "anyOf": [
                {"required": ["value"], "properties": {"value": {"not": {"type": "null"}}}},
                {"required": ["text"], "properties": {"text": {"pattern": r"\S"}}},
            ]
        },
    )

    key: Key
    kind: PreferenceKind = PreferenceKind.RULE
    value: JsonValue = None
    text: PlainText = ""
    source: Source = Source.EXPLICIT
    labels: Annotated[list[Label], Field(max_length=8)] = Field(default_factory=list[Label])
    origin: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    updated_at: str | None = None

    @model_validator(mode="after")
    def _has_content(self) -> PreferenceBody:
        if self.value is None and not self.text.strip():
            raise ValueError("give a value or a text")
        if not is_bounded_json(self.value) or not is_bounded_json(self.origin):
            raise ValueError("the value is too large or too deeply nested")
        return self


class PreferencesBody(BaseModel):
    """Everything that shall be remembered: what is left out is forgotten."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "preferences": [
                        {"key": "*.seat_position", "value": "aisle", "text": "prefers aisle seats"},
                        {"key": "note.diet", "kind": "note", "text": "eats no meat"},
                    ]
                }
            ]
        },
    )

    preferences: Annotated[list[PreferenceBody], Field(max_length=MOST_PREFERENCES)]


def preference_object(preference: Preference) -> JsonObject:
    """A preference as it is shown; times are ISO 8601."""
    return {
        **asdict(preference),
        "labels": list(preference.labels),
        "updated_at": datetime.fromtimestamp(preference.updated_at, UTC).isoformat(),
    }


@router.get("", responses={200: {"model": shapes.Preferences}})
async def show_preferences(user_id: Identifier, doors: TheDoors, tenant: TheTenant) -> JsonObject:
    """Everything remembered of a user, with where it came from."""
    found = await doors.memory.preferences.of_user(tenant, UserId(user_id))
    return {"user_id": user_id, "preferences": [preference_object(one) for one in found]}


@router.put("", status_code=HTTPStatus.OK, responses={200: {"model": shapes.Preferences}})
async def replace_preferences(
    user_id: Identifier, body: PreferencesBody, doors: TheDoors, tenant: TheTenant
) -> JsonObject:
    """Let these be all that is remembered; an empty list forgets everything."""
    given = tuple(
        Preference(
            key=one.key,
            kind=one.kind,
            source=one.source,
            value=one.value,
            text=one.text,
            labels=tuple(sorted({label.value for label in one.labels})),
            origin=one.origin or {"given": "over HTTP"},
        )
        for one in body.preferences
    )
    await doors.memory.preferences.replace(tenant, UserId(user_id), given)
    return await show_preferences(user_id, doors, tenant)
