from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gateway.responses.common import ResponseModel, response_of
from orchestrator.ports.memory import documents, preferences
from orchestrator.ports.memory.documents import DocumentRecord

DocumentId = Annotated[str, Field(examples=["doc_3f2a91c0d4e5b6a7f8091a2b"])]


def _name_status(space: str | None) -> str:
    return "stored" if space is None else "embedded"


class Uploaded(ResponseModel):
    """An uploaded document. `run_id`: the run that embeds it.

    `created`: false if a document with the same title, text, domain and user already existed.
    """

    document_id: DocumentId
    created: bool
    run_id: str = Field(examples=["run_8c1d"])


class Document(response_of(DocumentRecord)):
    document_id: DocumentId
    title: str = Field(examples=["Baggage"])
    domain: str = Field(description="Empty for all domains.", examples=["travel"])
    user_id: str | None = Field(description="Owner, or null for all users of the tenant.")
    space: str | None = Field(examples=["hashed-384-1"])
    status: Annotated[Literal["stored", "embedded"], BeforeValidator(_name_status)] = Field(
        validation_alias="space", description="`embedded` once semantic search can find the document."
    )


class WholeDocument(Document):
    text: str


class Passage(response_of(documents.Passage)):
    """A search result. `score`: relevance from 0 to 1; higher is better."""


class Preference(response_of(preferences.Preference)):
    """A user's preference. `value`: a rule's value, or a playbook's content. `origin`: where it was learned."""

    key: str = Field(examples=["*.seat_position"])
    text: str = Field(examples=["I prefer aisle seats"])


class Preferences(ResponseModel):
    user_id: str = Field(examples=["ada"])
    preferences: list[Preference]
