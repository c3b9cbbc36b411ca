"""`parley documents`: business context: add, list, search, delete (CO-4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir, Url
from parley.commands.output import print_json
from parley.commands.sessions import print_rows
from parley.connection import connect

_LISTED = ("document_id", "title", "domain", "user_id", "status", "chunks", "characters")
_FOUND = ("score", "title", "text", "document_id")

documents = typer.Typer(
    help="Keep documents that answers are looked up in; list, search or delete them.", no_args_is_help=True
)

OfUser = Annotated[str | None, typer.Option(help="Of this user, besides everybody's.")]
OfDomain = Annotated[str | None, typer.Option(help="Of this domain, besides those for all.")]


@documents.command()
def add(
    file: Annotated[Path, typer.Argument(help="A text or Markdown file.")],
    title: Annotated[str | None, typer.Option(help="Its title; else the file's name.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only for this domain.")] = None,
    user: Annotated[str | None, typer.Option(help="Only for this user.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Keep a document; the same text is kept once."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as text: {error}", field="file") from error
    name = file.stem if title is None else title
    added = connect(url, data_dir).add_document(text, title=name, domain=domain, user_id=user)
    if as_json:
        print_json(added)
    else:
        print(added["document_id"] if added["created"] else f"{added['document_id']} (was there already)")


@documents.command("list")
def list_documents(
    user: OfUser = None,
    domain: OfDomain = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List documents."""
    found = connect(url, data_dir).documents(user_id=user, domain=domain)
    print_rows(found, as_json=as_json, columns=_LISTED)


@documents.command()
def search(
    question: Annotated[str, typer.Argument(help="What is to be found.")],
    user: OfUser = None,
    domain: OfDomain = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="At most so many passages.")] = 5,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Find the passages that answer a question, best first."""
    found = connect(url, data_dir).search_documents(question, user_id=user, domain=domain, limit=limit)
    print_rows(found, as_json=as_json, columns=_FOUND)


@documents.command()
def delete(
    document: Annotated[str, typer.Argument(help="Identifier of the document.")],
    user: OfUser = None,
    url: Url = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Remove a document; it is not found any more."""
    connect(url, data_dir).delete_document(document, user_id=user)
    print(f"{document} removed")
