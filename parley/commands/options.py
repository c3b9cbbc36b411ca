"""Options that several commands share."""

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


def resolve_domain(domain: str) -> str:
    """Return a shipped domain's name as it is; a folder, checked, as its absolute path.

    Raises:
        InvalidInput: there is no such domain, or its folder has mistakes.
    """
    from orchestrator.adapters.domains.folder import check_domain, shipped_domains  # noqa: PLC0415  # slow to import

    if domain in shipped_domains():
        return domain
    problems = check_domain(domain)
    if not problems:
        return str(Path(domain).expanduser().resolve())
    more = (
        f" There are {len(problems)} mistakes: `parley domain check {domain}`." if len(problems) > 1 else ""
    )
    raise InvalidInput(f"{str(problems[0]).rstrip('.')}.{more}", field="domain")
