"""Answers about documents and preferences."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from gateway.responses.common import ResponseModel, Timestamp
from orchestrator.ports.preferences import PreferenceKind, Source

_DOCUMENT: dict[str, Any] = {
    "document_id": "doc_3f2a91c0d4e5b6a7f8091a2b",
    "title": "Baggage",
    "domain": "travel",
    "user_id": None,
    "labels": [],
    "origin": {"uploaded": True},
    "characters": 42,
    "chunks": 1,
    "space": "hashed-384-1",
    "status": "embedded",
    "updated_at": "2026-11-20T12:00:00+00:00",
}


def _name_status(space: str | None) -> str:
    return "stored" if space is None else "embedded"


class Uploaded(ResponseModel):
    """`created`: false when the same text was there before. `run_id`: of the run that embeds it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"document_id": _DOCUMENT["document_id"], "created": True, "run_id": "run_8c1d"}]
        },
    )

    document_id: str
    created: bool
    run_id: str


class Document(ResponseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_DOCUMENT]})

    document_id: str
    title: str
    domain: str = Field(description="Empty: for all domains.")
    user_id: str | None = Field(description="Whose it is; null: everybody's of the tenant.")
    labels: list[str]
    origin: dict[str, Any]
    characters: int
    chunks: int
    space: str | None
    status: Annotated[Literal["stored", "embedded"], BeforeValidator(_name_status)] = Field(
        validation_alias="space", description="`embedded` once it can be found by meaning."
    )
    updated_at: Timestamp


class WholeDocument(Document):
    text: str


class Passage(ResponseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "document_id": _DOCUMENT["document_id"],
                    "position": 0,
                    "title": "Baggage",
                    "text": "Baggage\nOne cabin bag of up to 8 kg is free.",
                    "score": 0.71,
                    "labels": [],
                    "origin": {"uploaded": True},
                    "updated_at": "2026-11-20T12:00:00+00:00",
                }
            ]
        },
    )

    document_id: str
    position: int
    title: str
    text: str
    score: float
    labels: list[str]
    origin: dict[str, Any]
    updated_at: Timestamp


class Preference(ResponseModel):
    key: str
    kind: PreferenceKind
    source: Source
    value: Any
    text: str
    labels: list[str]
    origin: dict[str, Any]
    updated_at: Timestamp


class Preferences(ResponseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "ada",
                    "preferences": [
                        {
                            "key": "*.seat_position",
                            "kind": "rule",
                            "source": "explicit",
                            "value": "aisle",
                            "text": "I prefer aisle seats",
                            "labels": ["private"],
                            "origin": {"session_id": "session_5d0f", "said_at": 1795176000.0},
                            "updated_at": "2026-11-20T12:00:00+00:00",
                        }
                    ],
                }
            ]
        },
    )

    user_id: str
    preferences: list[Preference]
