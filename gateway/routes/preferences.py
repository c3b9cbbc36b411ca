"""Read and replace user preferences (CO-4)."""

from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import ConfigDict, Field, StringConstraints, model_validator

from gateway.dependencies import TheMemory, TheTenant
from gateway.schemas import GIVEN, ResponseModel, response_of
from orchestrator.dialogue.records import Label
from orchestrator.dialogue.validation import is_bounded_json
from orchestrator.ports.memory import preferences as records
from orchestrator.ports.memory.preferences import LONGEST_TEXT, MOST_PREFERENCES, PreferenceKind, Source
from orchestrator.turns.submission import NO_NUL, AnyJson, Identifier, RequestBody
from orchestrator.types import JsonObject, UserId

router = APIRouter(prefix="/v1/users/{user_id}/preferences", tags=["memory"])

PreferenceKey = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.*:-]+$")
]
PreferenceText = Annotated[str, StringConstraints(max_length=LONGEST_TEXT, pattern=NO_NUL)]


class PreferenceBody(RequestBody):
    """A preference.

    `key`: ``flow.slot``, or ``*.slot`` for all flows, for a rule with a value; any other key for a text
    note. A preference from a response can be sent back, and then keeps its source and origin.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["value"], "properties": {"value": GIVEN}},
                {"required": ["text"], "properties": {"text": {"pattern": r"\S"}}},
            ]
        },
    )

    key: PreferenceKey
    kind: PreferenceKind = PreferenceKind.RULE
    value: AnyJson = None
    text: PreferenceText = ""
    source: Source = Source.EXPLICIT
    labels: Annotated[list[Label], Field(max_length=8)] = Field(default_factory=list[Label])
    origin: dict[str, AnyJson] = Field(default_factory=dict[str, AnyJson])
    updated_at: str | None = None

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.value is None and not self.text.strip():
            raise ValueError("requires value or text")
        if not is_bounded_json(self.value) or not is_bounded_json(self.origin):
            raise ValueError("the value is too large or too deeply nested")
        return self


class PreferencesBody(RequestBody):
    """All preferences of a user. Preferences that are not listed are deleted."""

    model_config = ConfigDict(
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


class Preference(response_of(records.Preference)):
    """A user's preference. `value`: a rule's value, or a playbook's content. `origin`: where it was learned."""

    key: str = Field(examples=["*.seat_position"])
    text: str = Field(examples=["I prefer aisle seats"])


class Preferences(ResponseModel):
    user_id: str = Field(examples=["ada"])
    preferences: list[Preference]


@router.get("", response_model=Preferences)
async def show_preferences(user_id: Identifier, memory: TheMemory, tenant: TheTenant) -> JsonObject:
    """Return a user's preferences, with their sources."""
    return {"user_id": user_id, "preferences": await memory.preferences.of_user(tenant, UserId(user_id))}


@router.put("", response_model=Preferences)
async def replace_preferences(
    user_id: Identifier, body: PreferencesBody, memory: TheMemory, tenant: TheTenant
) -> JsonObject:
    """Replace a user's preferences. An empty list deletes all preferences."""
    given = tuple(
        records.Preference(
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
    await memory.preferences.replace(tenant, UserId(user_id), given)
    return await show_preferences(user_id, memory, tenant)
