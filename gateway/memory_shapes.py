"""What answers about documents and preferences look like, for the OpenAPI document (see `shapes`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from gateway.shapes import Shape
from orchestrator.ports.memory.preferences import PreferenceKind, Source

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


class Uploaded(Shape):
    """`created`: false when the same text was there before. `run_id`: of the run that embeds it."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"document_id": _DOCUMENT["document_id"], "created": True, "run_id": "run_8c1d"}]
        },
    )

    document_id: str
    created: bool
    run_id: str


class Document(Shape):
    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [_DOCUMENT]})

    document_id: str
    title: str
    domain: str = Field(description="Empty: for all domains.")
    user_id: str | None = Field(description="Whose it is; null: everybody's of the tenant.")
    labels: list[str]
    origin: dict[str, Any]
    characters: int
    chunks: int
    space: str | None
    status: Literal["stored", "embedded"]
    updated_at: str


class WholeDocument(Document):
    text: str


class Passage(Shape):
    model_config = ConfigDict(
        extra="allow",
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
    updated_at: str


class Preference(Shape):
    key: str
    kind: PreferenceKind
    source: Source
    value: Any
    text: str
    labels: list[str]
    origin: dict[str, Any]
    updated_at: str


class Preferences(Shape):
    model_config = ConfigDict(
        extra="allow",
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
