"""`parley health ROLE`: how a role is; one line, and a non-zero exit code when it is not well."""

from __future__ import annotations

from typing import Annotated

import typer

from parley.probe import probe
from parley.roles import Role


def health(
    role: Annotated[Role, typer.Argument(help="Which role runs beside this command.")],
    live: Annotated[
        bool, typer.Option("--live", help="Only whether it moves, not whether it is ready.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(envvar="PARLEY_PORT", min=1, max=65535, help="Where a server listens.")
    ] = None,
) -> None:
    """Ask the role that runs beside this command, in the same container, how it is."""
    print(probe(role, live=live, port=port))
