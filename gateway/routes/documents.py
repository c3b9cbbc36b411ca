"""Business context: upload, list, look at, search and delete documents (CO-4)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from gateway import memory_shapes as shapes
from gateway.doors import Doors, TheDoors, TheTenant
from orchestrator.dialogue.labels import Label
from orchestrator.errors import InvalidInput
from orchestrator.ports.memory.documents import LONGEST_QUESTION, DocumentRecord, NewDocument, Owned, Passage
from orchestrator.ports.runs.records import NewRun
from orchestrator.turns.request import Identifier, PlainText
from orchestrator.types import JsonObject, TenantId, UserId

router = APIRouter(prefix="/v1/documents", tags=["memory"])

EMBED = "embed_documents"
"""The Internal flow that makes an uploaded document findable."""
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})

Limit = Annotated[int, Query(ge=1, le=1000)]
Owner = Annotated[Identifier | None, Query(description="With this user's own documents.")]
DomainName = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00]*$")]
Title = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Question = Annotated[str, Query(min_length=1, max_length=LONGEST_QUESTION, pattern=r"^[^\x00]*$")]


class DocumentBody(BaseModel):
    """A document. Without `domain` it is for all domains, without `user_id` for everybody of the tenant."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
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
        default_factory=list[Label], description="What must not simply go out again once it was read."
    )


def document_object(record: DocumentRecord) -> JsonObject:
    """A document as it is shown: `status` is `embedded` once it can be found by meaning."""
    return {
        **asdict(record),
        "labels": list(record.labels),
        "status": "stored" if record.space is None else "embedded",
        "updated_at": _show_time(record.updated_at),
    }


def passage_object(passage: Passage) -> JsonObject:
    return {**asdict(passage), "labels": list(passage.labels), "updated_at": _show_time(passage.updated_at)}


_WORDS = {"type": "string", "minLength": 1, "pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": DocumentBody.model_json_schema()},
            "text/markdown": {"schema": _WORDS, "example": "# Pets\n\nSmall dogs are welcome."},
            "text/plain": {"schema": _WORDS},
        },
    },
}


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    openapi_extra=_UPLOAD,
    responses={
        200: {"model": shapes.Uploaded, "description": "It was there already."},
        201: {"model": shapes.Uploaded},
    },
)
async def upload_document(
    request: Request,
    response: Response,
    doors: TheDoors,
    tenant: TheTenant,
    title: Annotated[Title, Query(description="Of a body that is plain text or Markdown.")] = "",
    domain: Annotated[DomainName, Query()] = "",
    user_id: Annotated[Identifier | None, Query()] = None,
) -> JsonObject:
    """Keep a document, as JSON or as plain text, and have it embedded.

    The same title and text is kept once: uploading it again answers 200 with the same identifier.
    """
    body = await _read(request, title, domain, user_id)
    labels = {label.value for label in body.labels} | ({Label.PRIVATE.value} if body.user_id else set())
    added = await doors.memory.context.documents.add(
        NewDocument(
            tenant_id=tenant,
            text=body.text,
            title=body.title,
            domain=doors.domains.resolve(body.domain) if body.domain else "",
            user_id=UserId(body.user_id) if body.user_id else None,
            labels=tuple(sorted(labels)),
            origin={"uploaded": True},
        )
    )
    if not added.created:
        response.status_code = HTTPStatus.OK
    run_id = await _start_embedding(doors, tenant, added.document_id)
    return {"document_id": added.document_id, "created": added.created, "run_id": run_id}


@router.get("", responses={200: {"model": list[shapes.Document]}})
async def list_documents(
    doors: TheDoors,
    tenant: TheTenant,
    user_id: Owner = None,
    domain: Annotated[DomainName | None, Query()] = None,
    after: Annotated[str, Query(max_length=64, description="The last identifier of the page before.")] = "",
    limit: Limit = 100,
) -> list[JsonObject]:
    """List documents by identifier, without their texts."""
    owned = _owned(tenant, user_id, domain)
    found = await doors.memory.context.documents.list(owned, after=after, limit=limit)
    return [document_object(record) for record in found]


@router.get("/search", responses={200: {"model": list[shapes.Passage]}})
async def search_documents(
    q: Question,
    doors: TheDoors,
    tenant: TheTenant,
    user_id: Owner = None,
    domain: Annotated[DomainName | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> list[JsonObject]:
    """Find the passages that answer a question, best first."""
    found = await doors.memory.context.search(_owned(tenant, user_id, domain), q, limit=limit)
    return [passage_object(passage) for passage in found]


@router.get("/{document_id}", responses={200: {"model": shapes.WholeDocument}})
async def show_document(
    document_id: Identifier, doors: TheDoors, tenant: TheTenant, user_id: Owner = None
) -> JsonObject:
    """A document with its text."""
    document = await doors.memory.context.documents.get(_owned(tenant, user_id, None), document_id)
    return {**document_object(document.record), "text": document.text}


@router.delete("/{document_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_document(
    document_id: Identifier, doors: TheDoors, tenant: TheTenant, user_id: Owner = None
) -> None:
    """Remove a document; it is not found from now on."""
    await doors.memory.context.documents.delete(_owned(tenant, user_id, None), document_id)


async def _read(request: Request, title: str, domain: str, user_id: str | None) -> DocumentBody:
    """The body in either form. Raises InvalidInput naming what does not fit."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    raw = await request.body()
    try:
        if kind in PLAIN_TYPES:
            return DocumentBody(text=raw.decode(), title=title, domain=domain, user_id=user_id)
        return DocumentBody.model_validate_json(raw)
    except UnicodeDecodeError as error:
        raise InvalidInput("text: is not UTF-8", field="text") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(f"{field}: {first['msg'].removeprefix('Value error, ')}", field=field) from error


async def _start_embedding(doors: Doors, tenant: TenantId, document_id: str) -> str:
    run = NewRun(
        flow=EMBED,
        inputs=({"document_id": document_id},),
        tenant_id=tenant,
        flight_key=f"{document_id}:{EMBED}",
    )
    started = await doors.runs.start((run,))
    await doors.send_runs(started)
    return started.runs[EMBED]


def _owned(tenant: TenantId, user_id: str | None, domain: str | None) -> Owned:
    return Owned(tenant, UserId(user_id) if user_id else None, domain)


def _show_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
