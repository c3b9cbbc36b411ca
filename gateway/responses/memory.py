"""Document and preference responses."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gateway.responses.common import JsonMap, ResponseModel, Timestamp
from orchestrator.ports.memory.preferences import PreferenceKind, Source

DocumentId = Annotated[str, Field(examples=["doc_3f2a91c0d4e5b6a7f8091a2b"])]


def _name_status(space: str | None) -> str:
    return "stored" if space is None else "embedded"


class Uploaded(ResponseModel):
    """An uploaded document. `created`: false if it already existed. `run_id`: the run that embeds it."""

    document_id: DocumentId
    created: bool
    run_id: str = Field(examples=["run_8c1d"])


class Document(ResponseModel):
    document_id: DocumentId
    title: str = Field(examples=["Baggage"])
    domain: str = Field(description="Empty for all domains.", examples=["travel"])
    user_id: str | None = Field(description="Owner, or null for all users of the tenant.")
    labels: list[str]
    origin: JsonMap = Field(examples=[{"uploaded": True}])
    characters: int = Field(examples=[42])
    chunks: int = Field(examples=[1])
    space: str | None = Field(examples=["hashed-384-1"])
    status: Annotated[Literal["stored", "embedded"], BeforeValidator(_name_status)] = Field(
        validation_alias="space", description="`embedded` once it can be found by meaning."
    )
    updated_at: Timestamp


class WholeDocument(Document):
    text: str


class Passage(ResponseModel):
    document_id: DocumentId
    position: int
    title: str = Field(examples=["Baggage"])
    text: str = Field(examples=["Baggage\nOne cabin bag of up to 8 kg is free."])
    score: float = Field(examples=[0.71])
    labels: list[str]
    origin: JsonMap = Field(examples=[{"uploaded": True}])
    updated_at: Timestamp


class Preference(ResponseModel):
    key: str = Field(examples=["*.seat_position"])
    kind: PreferenceKind
    source: Source
    value: Any = Field(examples=["aisle"])
    text: str = Field(examples=["I prefer aisle seats"])
    labels: list[str] = Field(examples=[["private"]])
    origin: JsonMap = Field(examples=[{"session_id": "session_5d0f", "said_at": 1795176000.0}])
    updated_at: Timestamp


class Preferences(ResponseModel):
    user_id: str = Field(examples=["ada"])
    preferences: list[Preference]
