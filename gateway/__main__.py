"""``python -m gateway``: serve the gateway until SIGTERM."""

from __future__ import annotations

import ipaddress
import sys
from typing import Annotated

import typer
import uvicorn
from pydantic import ValidationError

from gateway.app import production_app, requires_callers
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.settings import load_settings

LOOPBACK = "127.0.0.1"


def serve(
    host: Annotated[str, typer.Option(envvar="PARLEY_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(envvar="PARLEY_PORT")] = 8600,
) -> None:
    """Serve the gateway."""
    try:
        require_safe_host(host, authenticated=requires_callers(load_settings()))
        app = production_app(host)
    except (ConfigurationError, ValidationError) as error:
        print(f"parley gateway: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        raise typer.Exit(2) from error
    uvicorn.run(app, host=host, port=port, log_level="info", access_log=False)


def require_safe_host(host: str, *, authenticated: bool) -> None:
    """Other machines may reach the gateway only when it asks who they are. Raises ConfigurationError."""
    if authenticated or is_loopback(host):
        return
    raise ConfigurationError(
        [
            Problem(
                "PARLEY_AUTH",
                f"is not `required`, so the gateway will not listen on {host}, where other machines reach it:"
                " set PARLEY_AUTH=required and make a key with `parley keys create`, or listen on 127.0.0.1",
            )
        ]
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


if __name__ == "__main__":
    typer.run(serve)
