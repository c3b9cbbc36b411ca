"""Upload, list, read, search and delete documents of the business context (CO-4)."""

from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from gateway.dependencies import TheMemory, TheRuns, TheSessions, TheTenant
from gateway.middleware.body_limit import PLAIN_TYPES
from gateway.schemas import Limit, ResponseModel, response_of
from orchestrator.dialogue.records import Label
from orchestrator.errors import InvalidInput
from orchestrator.ports.memory import documents as records
from orchestrator.ports.memory.documents import LONGEST_QUESTION, DocumentRecord, NewDocument, Owned
from orchestrator.ports.runs.records import NewRun
from orchestrator.turns.submission import NO_NUL, Identifier, PlainText, RequestBody, invalid_input
from orchestrator.types import JsonObject, TenantId, UserId

router = APIRouter(prefix="/v1/documents", tags=["memory"])

DomainName = Annotated[str, StringConstraints(max_length=128, pattern=NO_NUL)]
Title = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]


class DocumentBody(RequestBody):
    """A document for one domain or all domains, and for one user or all users of the tenant."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Baggage",
                    "text": "# Baggage\n\nOne cabin bag of up to 8 kg is free.",
                    "domain": "travel",
                }
            ]
        },
    )

    text: PlainText
    title: Title = ""
    domain: DomainName = ""
    user_id: Identifier | None = None
    labels: Annotated[list[Label], Field(max_length=8)] = Field(
        default_factory=list[Label], description="Labels for sessions that use the document."
    )


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


class Passage(response_of(records.Passage)):
    """A search result. `score`: relevance from 0 to 1; higher is better."""


EMBED = "embed_documents"  # the background flow that makes an uploaded document searchable

Question = Annotated[str, Query(min_length=1, max_length=LONGEST_QUESTION, pattern=NO_NUL)]

# Refers to definitions in the OpenAPI document.
_BODY = DocumentBody.model_json_schema(ref_template="#/components/schemas/{model}")
_BODY.pop("$defs", None)
# Any plain text is valid, so the schema has no type.
_TEXT_SCHEMA = {"minLength": 1, "pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _BODY},
            "text/markdown": {"schema": _TEXT_SCHEMA, "example": "# Pets\n\nSmall dogs are welcome."},
            "text/plain": {"schema": _TEXT_SCHEMA},
        },
    },
}


async def _read_document(
    request: Request,
    sessions: TheSessions,
    title: Annotated[Title, Query(description="Title of a plain-text or Markdown body.")] = "",
    domain: Annotated[DomainName, Query()] = "",
    user_id: Annotated[Identifier | None, Query()] = None,
) -> DocumentBody:
    """Parse a body in JSON, plain text or Markdown. Raises InvalidInput."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    raw = await request.body()
    domain = domain and sessions.domains.resolve(domain)
    try:
        if kind in PLAIN_TYPES:
            return DocumentBody(text=raw.decode(), title=title, domain=domain, user_id=user_id)
        return DocumentBody.model_validate_json(raw)
    except UnicodeDecodeError as error:
        raise InvalidInput("The text is not valid UTF-8.", field="text") from error
    except ValidationError as error:
        raise invalid_input(error) from error


def _select_owned(
    tenant: TheTenant,
    user_id: Annotated[Identifier | None, Query(description="Include this user's own documents.")] = None,
) -> Owned:
    return Owned(tenant, UserId(user_id) if user_id else None, None)


OwnedDocuments = Annotated[Owned, Depends(_select_owned)]


def _select_of_domain(owned: OwnedDocuments, domain: Annotated[DomainName | None, Query()] = None) -> Owned:
    return replace(owned, domain=domain)


OwnedInDomain = Annotated[Owned, Depends(_select_of_domain)]


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    openapi_extra=_UPLOAD,
    responses={200: {"model": Uploaded, "description": "The document already existed."}},
)
async def upload_document(
    body: Annotated[DocumentBody, Depends(_read_document)],
    response: Response,
    memory: TheMemory,
    sessions: TheSessions,
    runs: TheRuns,
    tenant: TheTenant,
) -> Uploaded:
    """Store a document, sent as JSON, plain text or Markdown, and embed it in the background.

    Uploading the same title and text for the same domain and user again returns 200 with the same ID.
    """
    labels = {label.value for label in body.labels} | ({Label.PRIVATE.value} if body.user_id else set())
    added = await memory.context.documents.add(
        NewDocument(
            tenant_id=tenant,
            text=body.text,
            title=body.title,
            domain=sessions.domains.resolve(body.domain) if body.domain else "",
            user_id=UserId(body.user_id) if body.user_id else None,
            labels=tuple(sorted(labels)),
            origin={"uploaded": True},
        )
    )
    if not added.created:
        response.status_code = HTTPStatus.OK
    started = await runs.start((_embedding_run(tenant, added.document_id),))
    return Uploaded(document_id=added.document_id, created=added.created, run_id=started.runs[EMBED])


@router.get("", response_model=list[Document])
async def list_documents(
    owned: OwnedInDomain,
    memory: TheMemory,
    after: Annotated[
        str, Query(max_length=64, pattern=NO_NUL, description="The last document ID on the previous page.")
    ] = "",
    limit: Limit = 100,
) -> list[DocumentRecord]:
    """List documents ordered by ID, without their text."""
    return await memory.context.documents.list(owned, after=after, limit=limit)


@router.get("/search", response_model=list[Passage])
async def search_documents(
    q: Question,
    owned: OwnedInDomain,
    memory: TheMemory,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> list[records.Passage]:
    """Find the passages that answer a question, best first."""
    return await memory.context.search(owned, q, limit=limit)


@router.get("/{document_id}", response_model=WholeDocument)
async def show_document(document_id: Identifier, owned: OwnedDocuments, memory: TheMemory) -> JsonObject:
    """Return a document with its text."""
    document = await memory.context.documents.get(owned, document_id)
    return {**asdict(document.record), "text": document.text}


@router.delete("/{document_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_document(document_id: Identifier, owned: OwnedDocuments, memory: TheMemory) -> None:
    """Delete a document."""
    await memory.context.documents.delete(owned, document_id)


def _embedding_run(tenant: TenantId, document_id: str) -> NewRun:
    return NewRun(
        flow=EMBED,
        inputs=({"document_id": document_id},),
        tenant_id=tenant,
        flight_key=f"{document_id}:{EMBED}",
    )
