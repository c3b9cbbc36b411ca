"""`parley documents`: business context: add, list, search, delete (CO-4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.client import Client
from orchestrator.errors import InvalidInput
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows

app = typer.Typer(help="Keep, list, search or delete documents that answers draw on.", no_args_is_help=True)

_LISTED = ("document_id", "title", "domain", "user_id", "status", "chunks", "characters")
_FOUND = ("score", "title", "text", "document_id")

OfUser = Annotated[str | None, typer.Option(help="Of this user, besides everybody's.")]
OfDomain = Annotated[str | None, typer.Option(help="Of this domain, besides those for all.")]


@gateway_command(app)
def add(
    client: Client,
    file: Annotated[Path, typer.Argument(help="A text or Markdown file.")],
    title: Annotated[str | None, typer.Option(help="Its title; else the file's name.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only for this domain.")] = None,
    user: Annotated[str | None, typer.Option(help="Only for this user.")] = None,
) -> Answer:
    """Keep a document; the same text is kept once."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as text: {error}", field="file") from error
    name = file.stem if title is None else title
    added = client.add_document(text, title=name, domain=domain, user_id=user)
    return Answer(added, f"{added['document_id']}{'' if added['created'] else ' (was there already)'}")


@gateway_command(app, "list")
def list_documents(client: Client, user: OfUser = None, domain: OfDomain = None) -> Rows:
    """List documents."""
    return Rows(client.documents(user_id=user, domain=domain), _LISTED)


@gateway_command(app)
def search(
    client: Client,
    question: Annotated[str, typer.Argument(help="What is to be found.")],
    user: OfUser = None,
    domain: OfDomain = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="At most so many passages.")] = 5,
) -> Rows:
    """Find the passages that answer a question, best first."""
    return Rows(client.search_documents(question, user_id=user, domain=domain, limit=limit), _FOUND)


@gateway_command(app)
def delete(
    client: Client,
    document: Annotated[str, typer.Argument(help="Identifier of the document.")],
    user: OfUser = None,
) -> Answer:
    """Remove a document; it is not found any more."""
    client.delete_document(document, user_id=user)
    return Answer({"document_id": document, "removed": True}, f"{document} removed")
