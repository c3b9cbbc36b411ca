"""`parley documents`: add, list, search and delete documents (CO-4)."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from parley.commands.gateway import gateway_command
from parley.output import Answer, Rows, progress
from parley_client import Client

app = typer.Typer(help="Manage the documents that Parley uses for answers.", no_args_is_help=True)

_LISTED = ("document_id", "title", "domain", "user_id", "status", "chunks", "characters")
_FOUND = ("score", "title", "text", "document_id")

OfUser = Annotated[str | None, typer.Option(help="Include this user's own documents.")]
OfDomain = Annotated[str | None, typer.Option(help="Include this domain's documents.")]


@gateway_command(app)
def add(
    client: Client,
    files: Annotated[list[Path], typer.Argument(help="Text or Markdown files.")],
    title: Annotated[
        str | None, typer.Option(help="Title of a single file. Default: the file's name.")
    ] = None,
    domain: Annotated[str | None, typer.Option(help="Restrict the documents to this domain.")] = None,
    user: Annotated[str | None, typer.Option(help="Restrict the documents to this user.")] = None,
) -> Answer | Rows:
    """Add documents. Documents with the same title, text, domain and user are stored only once."""
    if title is not None and len(files) > 1:
        raise InvalidInput("--title only works with a single file.", field="title")
    texts = [_read(file) for file in files]
    added: list[dict[str, object]] = []
    with progress("Storing documents") as show:
        for file, text in zip(files, texts, strict=True):
            name = file.stem if title is None else title
            added.append(
                {**client.add_document(text, title=name, domain=domain, user_id=user), "title": name}
            )
            show(len(added), len(files))
    if len(added) > 1:
        return Rows(added, ("document_id", "title", "created"))
    return Answer(added[0], f"{added[0]['document_id']}{'' if added[0]['created'] else ' (already existed)'}")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as text: {error}", field="files") from error


@gateway_command(app, "list")
def list_documents(client: Client, user: OfUser = None, domain: OfDomain = None) -> Rows:
    """List documents."""
    return Rows(client.documents(user_id=user, domain=domain), _LISTED)


@gateway_command(app)
def search(
    client: Client,
    question: Annotated[str, typer.Argument(help="Question to search for.")],
    user: OfUser = None,
    domain: OfDomain = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of passages.")] = 5,
) -> Rows:
    """Search for passages that answer a question, best first."""
    return Rows(client.search_documents(question, user_id=user, domain=domain, limit=limit), _FOUND)


@gateway_command(app)
def delete(
    client: Client,
    document: Annotated[str, typer.Argument(help="Document ID.")],
    user: Annotated[str | None, typer.Option(help="Owner of the document, unless it is shared.")] = None,
) -> Answer:
    """Delete a document."""
    client.delete_document(document, user_id=user)
    return Answer({"document_id": document, "removed": True}, f"{document} removed")
