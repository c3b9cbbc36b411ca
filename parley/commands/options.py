from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.extras import is_missing, needs_extra

Url = Annotated[
    str | None,
    typer.Option(help="Gateway URL. Default: PARLEY_URL, or the gateway of a running `parley up`."),
]
DataDir = Annotated[Path, typer.Option(help="Data folder of the embedded stores.")]
Domain = Annotated[str, typer.Option(help="Name of a built-in domain, or path to a domain folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
TimezoneOption = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        help="Your time zone, such as Europe/Berlin. Default: the session's or the domain's time zone.",
    ),
]
LocaleOption = Annotated[
    str | None,
    typer.Option("--locale", help="Your locale, such as de-DE, for numbers, dates and amounts."),
]

DEFAULT_DATA_DIR = Path(".parley")
DEFAULT_DOMAIN = "travel"


def resolve_domain(domain: str) -> str:
    """Return the name of a built-in domain, or the absolute path of a domain folder.

    Raises InvalidInput if the domain does not exist, has mistakes, or lacks dependencies.
    """
    from orchestrator.adapters.domains.folder import check_domain, shipped_domains  # noqa: PLC0415  # slow to import

    if domain in shipped_domains():
        if is_missing(domain):  # the extra has the same name as the domain
            raise InvalidInput(needs_extra(domain), field="domain")
        return domain
    problems = check_domain(domain)
    if not problems:
        return str(Path(domain).expanduser().resolve())
    more = (
        f" There are {len(problems)} problems; run `parley domain check {domain}`."
        if len(problems) > 1
        else ""
    )
    raise InvalidInput(f"{str(problems[0]).rstrip('.')}.{more}", field="domain")
