import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator.adapters.domains.folder import domain_folder
from orchestrator.adapters.models.pool import read_endpoints
from orchestrator.settings.environment import read_environment
from parley.diagnosis.surroundings import read_model_settings
from parley_client import Client

FOLDER = "documents"
_EMBEDDED = "embedded"
_WAIT_S = 10.0
_PAUSE_S = 0.1


def add_documents(client: Client, domain: str, say: Callable[[str], None]) -> None:
    """If a model is configured, upload the domain's documents and wait up to `_WAIT_S` seconds for embedding."""
    found = [*_find(domain)]
    if not found or not read_endpoints(read_model_settings(read_environment())):
        return
    name = Path(domain).name
    for path in found:
        client.add_document(path.read_text(encoding="utf-8"), title=_title_of(path), domain=name)
    until = time.monotonic() + _WAIT_S
    while any(one["status"] != _EMBEDDED for one in client.documents(domain=name)):
        if time.monotonic() > until:
            say(f"{name}'s documents can't be searched yet.")
            return
        time.sleep(_PAUSE_S)
    say(f"Documents: {', '.join(map(_title_of, found))}.")


def _find(domain: str) -> Iterator[Path]:
    folder = domain_folder(domain)
    if folder is not None:
        yield from sorted((folder / FOLDER).glob("*.md"))


def _title_of(path: Path) -> str:
    """Return a title for the file, such as “Conditions of carriage” for `conditions_of_carriage.md`."""
    return path.stem.replace("_", " ").capitalize()
