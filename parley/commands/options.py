"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput

Url = Annotated[
    str | None, typer.Option(help="Address of the gateway; else PARLEY_URL, else the running `up`.")
]
DataDir = Annotated[Path, typer.Option(help="Folder with the data of the embedded stores.")]
Domain = Annotated[str, typer.Option(help="Name of a shipped domain, or path of a domain folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text, one object per line.")]

DEFAULT_DATA_DIR = Path(".parley")
DEFAULT_DOMAIN = "travel"


def settle_domain(domain: str) -> str:
    """A shipped domain's name as it is, a folder as its absolute path.

    Raises:
        InvalidInput: it is neither.
    """
    folder = Path(domain).expanduser()
    if (folder / "domain.yaml").is_file() or (folder / "ontology.yaml").is_file():
        return str(folder.resolve())
    if domain in shipped_domains():
        return domain
    known = ", ".join(shipped_domains()) or "the shipped ones (there are none)"
    raise InvalidInput(
        f"There is no domain {domain!r}: it is neither a folder with an ontology.yaml nor one of {known}.",
        field="domain",
    )


def shipped_domains() -> list[str]:
    """The names of the domains that come with Parley."""
    import domains  # noqa: PLC0415  # located only when a domain is asked for

    folders = [path for root in domains.__path__ for path in Path(root).iterdir()]
    return sorted(path.name for path in folders if (path / "ontology.yaml").is_file())
