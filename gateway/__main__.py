"""``python -m gateway``: serve the gateway until SIGTERM."""

# ruff: noqa: E402
from __future__ import annotations

import gc

# What a start makes stays. Looking through it for what may go, hundreds of times, takes a sixth of the start.
gc.set_threshold(50_000)

import sys
from typing import Annotated

import typer
import uvicorn

from gateway.app import production_app
from gateway.auth.binding import require_safe_host, requires_callers
from gateway.protocol import BoundedProtocol, OwnersProtocol
from orchestrator.errors import ConfigurationError
from orchestrator.redaction import hide_secrets
from orchestrator.settings import known_secrets, load_settings
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.turns.submission import MAX_INPUT_BYTES

LOOPBACK = "127.0.0.1"
# A message that is a little too long is answered; one that is longer ends its socket before it is held.
MAX_SOCKET_MESSAGE_BYTES = 2 * MAX_INPUT_BYTES


def serve(
    host: Annotated[str, typer.Option(envvar="PARLEY_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(envvar="PARLEY_PORT")] = 8600,
) -> None:
    """Serve the gateway."""
    try:
        settings = load_settings()
        set_up_logging(secrets=known_secrets(settings))
        require_safe_host(host, authenticated=requires_callers(settings))
        app = production_app(host)
    except ConfigurationError as error:
        print(f"parley gateway: {hide_secrets('; '.join(str(error).splitlines()))}", file=sys.stderr)  # noqa: T201
        raise typer.Exit(2) from error
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=OwnersProtocol if settings.owner_only and not requires_callers(settings) else BoundedProtocol,
        log_config=None,
        access_log=False,
        ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
    )


if __name__ == "__main__":
    typer.run(serve)
